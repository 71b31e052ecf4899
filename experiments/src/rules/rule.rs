//! A rule: a condition for each of the nine cells, the cell that it then moves to, and its priority.
//!
//! A rule is **valid** if it can never move to a taken cell. The cell that it moves to must be V (empty) or `*` (anything),
//! and with `*` the rule matches only boards on which that cell is empty. An agent that uses a rule that is not valid loses
//! the game at once. [`Source`] defines how random rules are drawn.

use evoxo_common::{
    choice,
    ratio::Ratio,
    rng::{Generator, below, chance},
    text::quoted,
};
use evoxo_games::board::cells;
use rand_core::Rng as _;

/// A rule's condition for a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// `*`: anything.
    Any,
    /// `P`: an own stone.
    Own,
    /// `C`: a stone of the opponent ("contrario").
    Other,
    /// `V`: no stone ("vacío").
    Empty,
}

impl Need {
    /// The letter that the page uses.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Any => '*',
            Self::Own => 'P',
            Self::Other => 'C',
            Self::Empty => 'V',
        }
    }

    fn of_letter(letter: char) -> Option<Self> {
        [Self::Any, Self::Own, Self::Other, Self::Empty].into_iter().find(|need| need.letter() == letter)
    }
}

/// A rule without its weight. Two rules are equal if all parts listed here are.
///
/// It is one word: two planes of nine bits (own stones in the first, the opponent's in the second, empty cells in both), four
/// bits for the cell to move to, and two bits for the priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule(u32);

/// How new rules are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The probability of a rule that the page presumes useful.
    pub rigged: Ratio,
    /// How the other rules are drawn.
    pub random: RandomRules,
}

impl From<Ratio> for Source {
    /// A source with this share of rigged rules. The others are drawn letters first.
    fn from(rigged: Ratio) -> Self {
        Self { rigged, random: RandomRules::LettersFirst }
    }
}

/// The number of cells of a board.
pub const CELLS: usize = 9;
/// The highest priority.
pub const PRIORITY_MAX: u32 = 3;
/// The bits of all cells.
const BOARD: u32 = 0x1ff;
const MOVE_SHIFT: u32 = 18;
const PRIORITY_SHIFT: u32 = 22;
/// The number of sought rules: "two own stones and an empty cell in line: complete" and "two of the opponent's: block", for
/// each line and each of its cells.
pub const SOUGHT: usize = 48;

/// A rule's conditions, as masks of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Own stones.
    pub own: u32,
    /// The opponent's stones.
    pub other: u32,
    /// Empty cells, including the cell to move to, even if the rule has `*` there.
    pub empty: u32,
}

choice! {
    /// How random rules are drawn.
    pub enum RandomRules {
        /// nine letters, each equally likely, then a move to any cell that is V or *
        LettersFirst = "letters-first",
        /// all valid rules are equally likely; twice as many match the empty board as with letters-first
        Alike = "alike",
        /// any nine letters and any move; half of these rules move to a stone, and an agent that uses one loses at once
        Any = "any",
    }
}

impl Rule {
    /// The rule with this pattern that moves to cell `to`, 0 to 8.
    ///
    /// # Errors
    /// A message if a number is out of range.
    pub fn new(pattern: [Need; CELLS], to: u8, priority: u32) -> Result<Self, String> {
        let mut code = u32::from(to) << MOVE_SHIFT | priority << PRIORITY_SHIFT;
        for (cell, need) in pattern.into_iter().enumerate() {
            let (first, second): (u32, u32) = match need {
                Need::Any => (0, 0),
                Need::Own => (1, 0),
                Need::Other => (0, 1),
                Need::Empty => (1, 1),
            };
            code |= (first | second << CELLS) << cell;
        }
        if usize::from(to) >= CELLS || priority > PRIORITY_MAX {
            return Err(format!(
                "a rule moves to a cell from 0 to 8 with a priority from 0 to {PRIORITY_MAX}, not to {to} with {priority}"
            ));
        }
        Self::of_code(code)
    }

    /// The rule with a code that [`Rule::code`] returned.
    ///
    /// # Errors
    /// A message if there is no such rule.
    pub fn of_code(code: u32) -> Result<Self, String> {
        let rule = Self(code);
        if code >> (PRIORITY_SHIFT + 2) != 0 || usize::from(rule.to()) >= CELLS {
            return Err(format!("{code:#x} is not the code of a rule"));
        }
        Ok(rule)
    }

    /// Whether the rule can never move to a taken cell.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        matches!(self.need(self.to()), Need::Any | Need::Empty)
    }

    /// The rule as a number, for sending and sorting.
    #[must_use]
    pub const fn code(self) -> u32 {
        self.0
    }

    /// The cell that the rule moves to, 0 to 8.
    #[must_use]
    pub const fn to(self) -> u8 {
        (self.0 >> MOVE_SHIFT & 15) as u8
    }

    /// The priority, 0 to 3. Rules of a higher priority are preferred.
    #[must_use]
    pub const fn priority(self) -> u32 {
        self.0 >> PRIORITY_SHIFT
    }

    /// The condition for a cell.
    #[must_use]
    pub const fn need(self, cell: u8) -> Need {
        match (self.0 >> cell & 1, self.0 >> (cell as usize + CELLS) & 1) {
            (0, 0) => Need::Any,
            (_, 0) => Need::Own,
            (0, _) => Need::Other,
            _ => Need::Empty,
        }
    }

    /// All conditions, including the empty cell that a valid rule moves to.
    #[must_use]
    #[inline(always)]
    pub const fn needs(self) -> Needs {
        let (first, second) = (self.0 & BOARD, self.0 >> CELLS & BOARD);
        let taken = first ^ second;
        Needs { own: first & !second, other: second & !first, empty: first & second | (1 << self.to()) & !taken }
    }

    /// Whether the rule matches for the side with these stones.
    #[must_use]
    pub const fn matches(self, own: u32, other: u32) -> bool {
        let needs = self.needs();
        needs.own & !own == 0 && needs.other & !other == 0 && needs.empty & (own | other) == 0
    }

    /// Any valid rule, all equally likely.
    #[must_use]
    pub fn random(rng: &mut Generator) -> Self {
        let (bits, to) = (rng.next_u64() as u32, below(rng, CELLS as u64) as u32);
        let priority = bits >> 30;
        // A rule is valid if both planes agree on the cell to move to: it has neither bit, or both.
        let (first, second) = (bits & BOARD, bits >> CELLS & BOARD);
        let second = second & !(1 << to) | first & 1 << to;
        Self(first | second << CELLS | to << MOVE_SHIFT | priority << PRIORITY_SHIFT)
    }

    /// Any nine letters and any move, all equally likely.
    fn any(rng: &mut Generator) -> Self {
        let (bits, to) = (rng.next_u64() as u32, below(rng, CELLS as u64) as u32);
        Self(bits & ((1 << MOVE_SHIFT) - 1) | to << MOVE_SHIFT | (bits >> 30) << PRIORITY_SHIFT)
    }

    /// Nine letters, each equally likely, and a move to any of the cells that are V or `*`. If there is no such cell, the
    /// letters are drawn again.
    fn letters_first(rng: &mut Generator) -> Self {
        loop {
            let bits = rng.next_u64() as u32;
            let (first, second) = (bits & BOARD, bits >> CELLS & BOARD);
            let legal = !(first ^ second) & BOARD;
            if legal != 0 {
                let nth = below(rng, legal.count_ones().into());
                let to = (0..nth).fold(legal, |rest, _| rest & (rest - 1)).trailing_zeros();
                return Self(first | second << CELLS | to << MOVE_SHIFT | (bits >> 30) << PRIORITY_SHIFT);
            }
        }
    }

    /// A rule that the page presumes useful: two P or two C, and a V to move to, on three cells that need not be in line,
    /// with `*` elsewhere. All such rules are equally likely.
    fn presumed_useful(rng: &mut Generator) -> Self {
        let to = below(rng, 9) as u32;
        let pairs = cells(u64::from(BOARD & !(1 << to)));
        let others: Vec<u32> = pairs.map(u32::from).collect();
        let first = below(rng, 8) as usize;
        let second = (first + 1 + below(rng, 7) as usize) % 8;
        let pair: u32 = 1 << others[first] | 1 << others[second];
        let (own, other) = if chance(rng, 1, 2) { (pair, 0) } else { (0, pair) };
        let priority = below(rng, u64::from(PRIORITY_MAX) + 1) as u32;
        Self((own | 1 << to) | (other | 1 << to) << CELLS | to << MOVE_SHIFT | priority << PRIORITY_SHIFT)
    }

    /// A new rule.
    #[must_use]
    pub fn born(rng: &mut Generator, source: impl Into<Source>) -> Self {
        let Source { rigged, random } = source.into();
        if rigged != Ratio::ZERO && chance(rng, rigged.numerator() as u64, rigged.denominator() as u64) {
            return Self::presumed_useful(rng);
        }
        match random {
            RandomRules::LettersFirst => Self::letters_first(rng),
            RandomRules::Alike => Self::random(rng),
            RandomRules::Any => Self::any(rng),
        }
    }

    /// The number of the sought rule that this rule is, 0 to 47, ignoring priority. A sought rule completes (even) or blocks
    /// (odd) one of the 24 pairs of a line and one of its cells. It has V on that cell, and `*` everywhere off the line.
    #[must_use]
    pub fn sought(self) -> Option<u8> {
        let Needs { own, other, empty } = self.needs();
        if own != 0 && other != 0 || empty != 1 << self.to() || self.need(self.to()) != Need::Empty {
            return None;
        }
        let goal = GOALS[usize::from(self.to())].iter().find(|goal| goal.rest == own | other)?;
        Some((2 * goal.number + usize::from(own == 0)) as u8)
    }

    /// Whether every use of the rule completes an own line or blocks one of the opponent's.
    #[must_use]
    pub fn is_good(self) -> bool {
        let Needs { own, other, .. } = self.needs();
        let helps = |goal: &Goal| goal.rest & !own == 0 || goal.rest & !other == 0;
        self.is_valid() && GOALS[usize::from(self.to())].iter().any(helps)
    }
}

/// The lines of the 3x3 board, the same as [`evoxo_games::board::Geometry::lines`].
pub(super) const LINES: [u32; 8] = [0o7, 0o70, 0o111, 0o124, 0o222, 0o421, 0o444, 0o700];

/// A line through a cell: its other two cells, and the number of the pair of line and cell.
#[derive(Clone, Copy)]
struct Goal {
    rest: u32,
    number: usize,
}

/// The lines of each cell. A cell with fewer than four lines has dummies that no rule can match.
const GOALS: [[Goal; 4]; CELLS] = goals();

const fn goals() -> [[Goal; 4]; CELLS] {
    let mut goals = [[Goal { rest: u32::MAX, number: 0 }; 4]; CELLS];
    let (mut lengths, mut number, mut line) = ([0; CELLS], 0, 0);
    while line < LINES.len() {
        let mut cell = 0;
        while cell < CELLS {
            if LINES[line] >> cell & 1 == 1 {
                goals[cell][lengths[cell]] = Goal { rest: LINES[line] & !(1 << cell), number };
                lengths[cell] += 1;
                number += 1;
            }
            cell += 1;
        }
        line += 1;
    }
    goals
}

impl std::fmt::Display for Rule {
    /// Nine letters and the number of the cell to move to, 1 to 9, as on the page: "C********1".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let letters: String = (0..CELLS as u8).map(|cell| self.need(cell).letter()).collect();
        write!(f, "{letters}{}", self.to() + 1)
    }
}

/// Reads a rule in the form in which [`Rule`] is displayed, with this priority.
///
/// # Errors
/// A message if the text is not a rule.
pub fn read(text: &str, priority: u32) -> Result<Rule, String> {
    let wrong = || format!("{} is not a rule: give nine of P, C, V and *, then 1 to 9 for the move", quoted(text));
    let letters: Vec<char> = text.chars().collect();
    let [pattern @ .., to] = letters.as_slice() else { return Err(wrong()) };
    let pattern: Option<Vec<Need>> = pattern.iter().map(|letter| Need::of_letter(*letter)).collect();
    let pattern: [Need; CELLS] = pattern.and_then(|needs| needs.try_into().ok()).ok_or_else(wrong)?;
    let to = to.to_digit(10).filter(|to| *to > 0).ok_or_else(wrong)?;
    Rule::new(pattern, to as u8 - 1, priority)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::rng::Stream;
    use evoxo_games::board::tic_tac_toe;
    use proptest::prelude::*;

    /// Follows the definition of a match.
    fn matches_by_definition(rule: Rule, own: u32, other: u32) -> bool {
        let fits = |cell: u8| match (own >> cell & 1, other >> cell & 1, rule.need(cell)) {
            (0, 0, Need::Empty) => true,
            (0, 0, Need::Any) => true,
            (1, 0, Need::Own) | (0, 1, Need::Other) => true,
            (1, 0, Need::Any) | (0, 1, Need::Any) => rule.to() != cell,
            _ => false,
        };
        (0..9).all(fits)
    }

    proptest! {
        #[test]
        fn a_rules_text_code_and_parts_agree(seed: u64) {
            let rule = Rule::random(&mut Stream::root(seed).rng());
            prop_assert_eq!(Rule::of_code(rule.code()), Ok(rule));
            prop_assert_eq!(read(&rule.to_string(), rule.priority()), Ok(rule));
            let pattern = std::array::from_fn(|cell| rule.need(cell as u8));
            prop_assert_eq!(Rule::new(pattern, rule.to(), rule.priority()), Ok(rule));
        }

        #[test]
        fn a_rule_matches_by_its_letters(seed: u64, own in 0..512_u32, other in 0..512_u32) {
            let source = Source { rigged: Ratio::ZERO, random: RandomRules::Any };
            let rule = Rule::born(&mut Stream::root(seed).rng(), source);
            let other = other & !own;
            prop_assert_eq!(rule.matches(own, other), matches_by_definition(rule, own, other));
            // Few random boards match, so the test takes one that matches and fills the other cells at will.
            let Needs { own: p, other: c, empty } = rule.needs();
            let (own, other) = (own & !c & !empty | p, other & !own & !p & !empty | c);
            prop_assert!(rule.matches(own, other) && matches_by_definition(rule, own, other));
        }

        #[test]
        fn every_code_is_a_rule_or_rejected(code: u32) {
            if let Ok(rule) = Rule::of_code(code) {
                prop_assert!(rule.to() < 9 && rule.priority() <= 3);
                prop_assert_eq!(rule.needs().empty >> rule.to() & 1 == 1, rule.is_valid());
            }
        }
    }

    #[test]
    fn invalid_rules_are_rejected() {
        // The page's own example of a rule that is not valid.
        assert!(!read("C********1", 0).unwrap().is_valid() && !read("P********1", 0).unwrap().is_valid());
        assert!(read("V********1", 3).unwrap().is_valid() && read("*********9", 3).unwrap().is_valid());
        for text in ["", "V********", "V********0", "V*******1", "v********1", "V*********1", "V********10", "ÄÄ"] {
            assert!(read(text, 0).unwrap_err().contains("is not a rule"), "{text}");
        }
        assert!(read("V********1", 4).unwrap_err().contains("with 4"));
        assert!(Rule::of_code(1 << 24).is_err() && Rule::of_code(9 << 18).is_err());
    }

    #[test]
    fn lines_match_the_board() {
        assert_eq!(LINES.map(u64::from), tic_tac_toe().lines());
    }

    #[test]
    fn there_are_48_sought_rules_of_each_priority() {
        let letters = [Need::Any, Need::Own, Need::Other, Need::Empty];
        let mut found = vec![0; SOUGHT];
        let mut good = 0;
        for code in 0..4_usize.pow(9) {
            let pattern = std::array::from_fn(|cell| letters[code >> (2 * cell) & 3]);
            for rule in (0..9).map(|to| Rule::new(pattern, to, 2).unwrap()) {
                good += usize::from(rule.is_good());
                if let Some(number) = rule.sought() {
                    assert!(rule.is_good(), "{rule}");
                    found[usize::from(number)] += 1;
                }
            }
        }
        assert_eq!(found, vec![1; SOUGHT]);
        // The other two cells of a line have the same kind in 2 of 16 patterns, and the lines through a cell share no other
        // cell. The four corners have 3 lines, the four edges 2, and the centre 4. The cell itself has V or *.
        let met = |lines: u32| 65_536 - 65_536 / 8_usize.pow(lines) * 7_usize.pow(lines);
        assert_eq!(good, 2 * (4 * met(3) + 4 * met(2) + met(4)));
        assert_eq!(read("PPV******3", 0).unwrap().sought().map(|number| number % 2), Some(0));
        assert_eq!(read("C***V***C5", 0).unwrap().sought().map(|number| number % 2), Some(1));
        for text in ["PP*******3", "PPV*****C3", "PCV******3", "PPV***V**3", "PPV******7"] {
            assert_eq!(read(text, 0).unwrap().sought(), None, "{text}");
        }
        assert!(read("PPV*****C3", 0).unwrap().is_good() && !read("PCV******3", 0).unwrap().is_good());
    }

    #[test]
    fn random_rules_are_valid_and_evenly_spread() {
        let mut rng = Stream::root(1).rng();
        let (mut letters, mut moves, mut priorities) = ([0_i32; 4], [0_i32; 9], [0_i32; 4]);
        for _ in 0..36_000 {
            let rule = Rule::random(&mut rng);
            assert!(Rule::of_code(rule.code()) == Ok(rule) && rule.is_valid());
            moves[usize::from(rule.to())] += 1;
            priorities[rule.priority() as usize] += 1;
            letters[rule.need((rule.to() + 1) % 9) as usize] += 1;
        }
        // The limit is six standard deviations.
        assert!(
            letters.iter().chain(&priorities).all(|count| (count - 9000).abs() < 500),
            "{letters:?} {priorities:?}"
        );
        assert!(moves.iter().all(|count| (count - 4000).abs() < 360), "{moves:?}");
    }

    /// Rules that match the empty board distinguish the two sources. If letters come first, their share is 1 in 2^9 - 1: all
    /// 2^9 patterns of taken and open cells are equally likely, one has only open cells, and one has none and is drawn again.
    /// Otherwise their share is 1 in 2^8.
    #[test]
    fn random_rules_follow_their_source() {
        use RandomRules::{Alike, Any, LettersFirst};
        let mut rng = Stream::root(3).rng();
        for (random, share) in [(LettersFirst, 511.0), (Alike, 256.0), (Any, 512.0)] {
            let (count, mut open, mut moves, mut valid) = (200_000, 0.0, [0_i32; 9], 0_i32);
            for _ in 0..count {
                let rule = Rule::born(&mut rng, Source { rigged: Ratio::ZERO, random });
                assert_eq!(Rule::of_code(rule.code()), Ok(rule));
                valid += i32::from(rule.is_valid());
                open += f64::from(u8::from(rule.matches(0, 0)));
                moves[usize::from(rule.to())] += 1;
            }
            let expected = f64::from(count) / share;
            // The limit is six standard deviations.
            assert!((open - expected).abs() < 6.0 * expected.sqrt(), "{random:?} {open}");
            assert!(moves.iter().all(|moves| (moves - count / 9).abs() < 850), "{random:?} {moves:?}");
            let half = random == Any;
            assert!((valid - if half { count / 2 } else { count }).abs() < if half { 1350 } else { 1 }, "{valid}");
        }
    }

    #[test]
    fn rigged_rules_are_two_of_a_kind_and_an_empty_cell() {
        let mut rng = Stream::root(2).rng();
        let (mut sought, mut useful) = (0, 0);
        for _ in 0..10_000 {
            let rule = Rule::born(&mut rng, Ratio::new(1, 2));
            assert_eq!(Rule::of_code(rule.code()), Ok(rule));
            let Needs { own, other, empty } = rule.needs();
            let pair = [own, other].map(u32::count_ones);
            useful += i32::from(empty == 1 << rule.to() && (pair == [2, 0] || pair == [0, 2]));
            sought += i32::from(rule.sought().is_some());
        }
        // Half of the rules are useful by design, and one in a thousand of the others by chance. 24 of 252 pairs are in line
        // with the cell.
        assert!((useful - 5004).abs() < 300 && (sought - 476).abs() < 130, "{useful} {sought}");
        assert!((0..1000).all(|_| Rule::born(&mut rng, Ratio::ONE).needs().empty.count_ones() == 1));
    }
}
