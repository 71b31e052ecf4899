//! Players made of strings: two alphabets, decoding, and decisions that name a taken cell.

use evoxo_common::choice;
use evoxo_common::rng::{Generator, below};
use evoxo_games::index::{Classes, Index, PLACEMENT, Strings, code_of, inverse, moved_cell, ruled};
use evoxo_games::{
    board::{Board, Side, tic_tac_toe},
    odds::Subject,
};

choice! {
    /// How a decision is written: as one letter, 0 to 8, which is the cell, or as two letters, d1 d0 for cell 3 d1 + d0.
    pub enum Alphabet {
        /// two letters per decision
        Three = "3",
        /// one letter per decision
        Nine = "9",
    }
}

impl Alphabet {
    /// The number of letters of the alphabet.
    #[must_use]
    pub const fn letters(self) -> u8 {
        match self {
            Self::Nine => 9,
            Self::Three => 3,
        }
    }

    /// The number of letters per decision.
    #[must_use]
    pub const fn digits(self) -> usize {
        match self {
            Self::Nine => 1,
            Self::Three => 2,
        }
    }
}

/// The meaning of a string: its side, the decisions that it holds, and how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The side that the string plays.
    pub side: Side,
    /// The decisions that the string holds.
    pub strings: Strings,
    /// Which boards share a decision.
    pub classes: Classes,
    /// How the decisions are written.
    pub alphabet: Alphabet,
}

/// A string with its meaning: a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ternary {
    /// The meaning of the string.
    pub code: Code,
    /// The letters of the string, as numbers.
    pub genome: Vec<u8>,
}

/// A place of a string, and the cell that it names on the current board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    class: usize,
    variation: u8,
    /// The cell that the string names, numbered as in the chapter and turned to the board.
    pub cell: u8,
}

impl Code {
    /// The table of the decisions.
    #[must_use]
    pub fn index(self) -> &'static Index {
        Index::of(self.side, self.strings, self.classes)
    }

    /// The number of letters of a string: for X and rotations 1,224 or 612 (long), 208 or 104 (short).
    #[must_use]
    pub fn len(self) -> usize {
        self.index().len() * self.alphabet.digits()
    }

    /// Whether strings have no letters, which is never the case.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.index().is_empty()
    }

    /// A random string, in which all letters are equally likely.
    pub fn random(self, rng: &mut Generator) -> Vec<u8> {
        (0..self.len()).map(|_| self.letter(rng)).collect()
    }

    /// A random letter; all are equally likely.
    pub fn letter(self, rng: &mut Generator) -> u8 {
        below(rng, u64::from(self.alphabet.letters())) as u8
    }

    /// Checks a string.
    ///
    /// # Errors
    /// A message if the length or a letter is wrong.
    pub fn check(self, genome: &[u8]) -> Result<(), String> {
        if genome.len() != self.len() {
            let (side, wanted) = (self.side.letter(), self.len());
            return Err(format!("a string for {side} has {} letters instead of {wanted}", genome.len()));
        }
        let letters = self.alphabet.letters();
        // The maximum of many letters is computed at once, which a search is not.
        if genome.iter().copied().max().is_none_or(|letter| letter < letters) {
            return Ok(());
        }
        match genome.iter().position(|letter| *letter >= letters) {
            None => Ok(()),
            Some(place) => Err(format!(
                "letter {place} of a string is {}, but the alphabet has only 0 to {}",
                genome[place],
                letters - 1
            )),
        }
    }

    /// The decision of a string for the board with this code; `None` if the string has none.
    #[must_use]
    #[inline]
    pub fn decision(self, genome: &[u8], code: u16) -> Option<Decision> {
        let entry = self.index().entry(code)?;
        let class = usize::from(entry.class);
        let cell = moved_cell(self.named(genome, class), inverse(entry.variation));
        Some(Decision { class, variation: entry.variation, cell })
    }

    /// The cell that a string names on the representative of a class.
    fn named(self, genome: &[u8], class: usize) -> u8 {
        match self.alphabet {
            Alphabet::Nine => genome[class],
            Alphabet::Three => 3 * genome[2 * class] + genome[2 * class + 1],
        }
    }

    /// The place of a decision in a string, counted from 1, and the letters at that place.
    #[must_use]
    pub fn place(self, genome: &[u8], decision: Decision) -> (usize, String) {
        let digits = self.alphabet.digits();
        let letters = &genome[digits * decision.class..][..digits];
        (decision.class + 1, letters.iter().map(|letter| char::from(b'0' + letter)).collect())
    }

    /// Replaces a decision that names a taken cell with the cell that was played instead.
    pub fn repair(self, genome: &mut [u8], decision: Decision, cell: u8) {
        let cell = moved_cell(cell, decision.variation);
        match self.alphabet {
            Alphabet::Nine => genome[decision.class] = cell,
            Alphabet::Three => genome[2 * decision.class..][..2].copy_from_slice(&[cell / 3, cell % 3]),
        }
    }

    /// The cells of [`tic_tac_toe`] that a player takes on a board, all equally likely: the cell that its rules or its string
    /// name, or all empty cells if the string's cell is taken. 0 if it is not the player's turn.
    #[must_use]
    pub fn choose(self, genome: &[u8], board: Board) -> u64 {
        let on_board = |cell: u8| 1 << PLACEMENT[usize::from(cell)];
        let rule = (self.strings == Strings::Short && board.to_move() == self.side).then(|| ruled(board)).flatten();
        match (rule, self.decision(genome, code_of(board))) {
            (Some(cell), _) => on_board(cell),
            (None, None) => 0,
            (None, Some(decision)) => match on_board(decision.cell) & tic_tac_toe().legal(board) {
                0 => tic_tac_toe().legal(board),
                cell => cell,
            },
        }
    }

    /// The player of a string, for exact odds. If several cells complete or block a line, the rules of a short string choose
    /// one of them in a fixed way, so the rules are part of the player's choice.
    #[must_use]
    pub fn subject(self, genome: &[u8]) -> Subject<'_> {
        Subject { side: self.side, filtered: false, choose: Box::new(move |board| self.choose(genome, board)) }
    }

    /// The number of decisions that name a taken cell on the representative board. Games would repair these decisions.
    #[must_use]
    pub fn broken(self, genome: &[u8]) -> usize {
        let broken = |(class, taken): &(usize, &u16)| *taken >> self.named(genome, *class) & 1 == 1;
        self.index().taken().iter().enumerate().filter(broken).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::rng::Stream;
    use evoxo_games::board::cells;
    use evoxo_games::index::{number_of, numbers, weight};
    use proptest::prelude::*;

    fn codes() -> impl Strategy<Value = Code> {
        let side = prop::sample::select(Side::BOTH.to_vec());
        let strings = prop::sample::select(Strings::BOTH.to_vec());
        let classes = prop::sample::select(Classes::BOTH.to_vec());
        let alphabet = prop::sample::select(vec![Alphabet::Nine, Alphabet::Three]);
        let parts = (side, strings, classes, alphabet);
        parts.prop_map(|(side, strings, classes, alphabet)| Code { side, strings, classes, alphabet })
    }

    /// The chapter's example: with nine letters, the string of a hundred decisions begins 5 0 4, and its second decision is
    /// for board 5 and names cell 0. With three letters the string begins 12 00 11 (the chapter prints 10 for 4, which is 3).
    #[test]
    fn the_chapters_example_is_reproduced() {
        for (alphabet, start) in [(Alphabet::Nine, vec![5, 0, 4]), (Alphabet::Three, vec![1, 2, 0, 0, 1, 1])] {
            let code = Code { side: Side::X, strings: Strings::Long, classes: Classes::Rotations, alphabet };
            let mut genome = vec![0; code.len()];
            genome[..start.len()].copy_from_slice(&start);
            assert_eq!([0, 5, 7].map(|board| code.decision(&genome, board).unwrap().cell), [5, 0, 4]);
            // Board 15 is board 5 turned back by a quarter. Cell 0, the centre, stays, and the other cells turn with the
            // board.
            assert_eq!(code.decision(&genome, 15).unwrap().cell, 0);
            let decision = code.decision(&genome, 15).unwrap();
            code.repair(&mut genome, decision, 8);
            assert_eq!([5, 15].map(|board| code.decision(&genome, board).unwrap().cell), [5, 8]);
        }
    }

    #[test]
    fn lengths_match_the_chapter() {
        let classes = Classes::Rotations;
        let lengths = |side, alphabet| Strings::BOTH.map(|strings| Code { side, strings, classes, alphabet }.len());
        assert_eq!(lengths(Side::X, Alphabet::Nine), [612, 104]);
        assert_eq!(lengths(Side::X, Alphabet::Three), [1224, 208]);
        assert_eq!(lengths(Side::O, Alphabet::Three), [1052, 136]);
    }

    proptest! {
        /// From then on, a repaired string plays the repaired cell on every variation of the board.
        #[test]
        fn a_repaired_string_plays_the_repair_from_then_on(code in codes(), seed: u64) {
            let mut rng = Stream::root(seed).rng();
            let mut genome = code.random(&mut rng);
            prop_assert_eq!(code.check(&genome), Ok(()));
            let index = code.index();
            let board = index.representatives()[below(&mut rng, index.len() as u64) as usize];
            let decision = code.decision(&genome, board).unwrap();
            code.repair(&mut genome, decision, 7);
            prop_assert_eq!(code.decision(&genome, board).unwrap().cell, 7);
            prop_assert_eq!(code.check(&genome), Ok(()));
        }

        /// The player's moves are legal and turn with the board. With all symmetries they are mirrored with the board, too.
        #[test]
        fn moves_turn_with_the_board(code in codes(), seed: u64) {
            let genome = code.random(&mut Stream::root(seed).rng());
            let all = tic_tac_toe().symmetries();
            let quarter = all.iter().find(|turn| turn.cell(0) == 2 && turn.cell(2) == 8).unwrap();
            let mirror = all.iter().find(|turn| turn.cell(0) == 2 && turn.cell(8) == 6).unwrap();
            for representative in code.index().representatives() {
                let board = evoxo_games::index::board_of(*representative);
                let chosen = code.choose(&genome, board);
                prop_assert!(chosen != 0 && chosen & !tic_tac_toe().legal(board) == 0);
                // A board that equals one of its own images has one decision for both, so its move may not turn.
                let lopsided = match code.classes {
                    Classes::Rotations => quarter.board(quarter.board(board)) != board,
                    Classes::Symmetries => all.iter().filter(|symmetry| symmetry.board(board) == board).count() == 1,
                };
                if lopsided {
                    prop_assert_eq!(code.choose(&genome, quarter.board(board)), quarter.mask(chosen));
                    let image = code.choose(&genome, mirror.board(board));
                    prop_assert!(code.classes == Classes::Rotations || image == mirror.mask(chosen));
                }
            }
            let broken = code.index().representatives().iter().filter(|representative| {
                let board = evoxo_games::index::board_of(**representative);
                let decision = code.decision(&genome, **representative).unwrap();
                !numbers(tic_tac_toe().legal(board)).any(|cell| cell == decision.cell)
            });
            prop_assert_eq!(broken.count(), code.broken(&genome));
        }
    }

    #[test]
    fn short_strings_obey_the_rules() {
        let classes = Classes::Rotations;
        let code = Code { side: Side::O, strings: Strings::Short, classes, alphabet: Alphabet::Nine };
        let genome = vec![0; code.len()];
        let board = tic_tac_toe().board_of("X..OOX...").unwrap();
        assert!(board.to_move() == Side::X && code.choose(&genome, board) == 0, "not its turn");
        let board = tic_tac_toe().board_of("X.XOO.X..").unwrap();
        assert_eq!(cells(code.choose(&genome, board)).collect::<Vec<_>>(), [5], "it completes before it blocks");
        assert_eq!(weight(number_of(5), Side::O), 2 * 3_u16.pow(6));
    }

    #[test]
    fn invalid_strings_are_rejected() {
        let classes = Classes::Rotations;
        let code = Code { side: Side::X, strings: Strings::Short, classes, alphabet: Alphabet::Three };
        assert!(code.check(&[0; 104]).unwrap_err().contains("104 letters instead of 208"));
        let mut genome = vec![0; 208];
        genome[17] = 3;
        assert!(code.check(&genome).unwrap_err().contains("letter 17 of a string is 3"));
    }
}
