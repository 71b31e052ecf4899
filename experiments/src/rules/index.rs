//! All rules of an agent matched against a board at once.
//!
//! For each row of the board and each of its 27 states there is a mask of the rules that accept it; the rules that
//! match a board are the AND of three masks. A row's mask is itself the AND of the masks of its three cells, so this is
//! the bit-sliced index with nine ANDs, six of which are done once, when the index is built.

use super::{
    agent::{Agent, RULES_MAX},
    rule::{CELLS, Needs, Rule},
};

/// A row's state: own stones in the low three bits, the opponent's in the next three.
const STATES: usize = 64;

/// The index of an agent's rules. A rule's bit is its place in the list.
#[derive(Clone, Debug)]
pub struct Index {
    rows: [[u128; STATES]; 3],
}

impl Index {
    /// Builds the index of an agent's rules.
    ///
    /// # Panics
    /// If there are more than [`RULES_MAX`].
    #[must_use]
    pub fn new(rules: &[Rule]) -> Self {
        assert!(rules.len() <= RULES_MAX, "{} rules, more than {RULES_MAX}", rules.len());
        let refusing = planes(rules);
        let all = u128::MAX.checked_shr((RULES_MAX - rules.len()) as u32).unwrap_or(0);
        let mut rows = [[0; STATES]; 3];
        for (row, masks) in rows.iter_mut().enumerate() {
            // The masks of a cell's three states: empty, own, other.
            let cell = |column: usize| [0, 9, 18].map(|plane| !refusing[plane + 3 * row + column]);
            let (first, second, third) = (cell(0), cell(1), cell(2));
            for (a, one) in first.iter().enumerate() {
                for (b, two) in second.iter().enumerate() {
                    for (c, three) in third.iter().enumerate() {
                        masks[STATE[a] | STATE[b] << 1 | STATE[c] << 2] = one & two & three & all;
                    }
                }
            }
        }
        Self { rows }
    }

    /// The rules that match the board for the side with these stones, a bit each.
    #[must_use]
    #[inline(always)]
    pub fn matching(&self, own: u32, other: u32) -> u128 {
        let state = |row: u32| (own >> (3 * row) & 7 | (other >> (3 * row) & 7) << 3) as usize;
        self.rows[0][state(0)] & self.rows[1][state(1)] & self.rows[2][state(2)]
    }
}

/// A cell's states empty, own and other, as bits of its row's.
const STATE: [usize; 3] = [0, 1, 8];

/// For each state (empty, own, other) and each cell, the rules that do not accept it.
fn planes(rules: &[Rule]) -> [u128; 3 * CELLS] {
    let mut words = [0_u32; RULES_MAX];
    for (word, rule) in words.iter_mut().zip(rules) {
        let Needs { own, other, empty } = rule.needs();
        *word = own | other | (other | empty) << CELLS | (own | empty) << (2 * CELLS);
    }
    let mut planes = [0; 3 * CELLS];
    for (block, words) in words.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        transpose(words);
        for (plane, word) in planes.iter_mut().zip(words) {
            *plane |= u128::from(*word) << (32 * block);
        }
    }
    planes
}

/// Swaps rows and columns of a matrix of 32 x 32 bits: bit j of word i becomes bit i of word j (Warren, *Hacker's Delight*,
/// 2nd ed. 2013, section 7-3).
fn transpose(words: &mut [u32; 32]) {
    let (mut width, mut mask) = (16, 0x0000_ffff_u32);
    while width != 0 {
        let mut word = 0;
        while word < 32 {
            let swapped = (words[word] >> width ^ words[word + width]) & mask;
            words[word] ^= swapped << width;
            words[word + width] ^= swapped;
            word = (word + width + 1) & !width;
        }
        width >>= 1;
        mask ^= mask << width;
    }
}

/// An agent prepared for playing: its index, and for each rule its rank (priority, then weight, in one number) and the
/// cell it moves to.
#[derive(Clone, Debug)]
pub struct IndexedAgent {
    index: Index,
    ranks: [i64; RULES_MAX],
    cells: [u8; RULES_MAX],
}

/// The rank of a priority level, greater than any weight.
const PRIORITY: i64 = 1 << 40;

impl IndexedAgent {
    /// Prepares an agent.
    #[must_use]
    pub fn new(agent: &Agent) -> Self {
        let (mut ranks, mut cells) = ([0; RULES_MAX], [0; RULES_MAX]);
        for (place, (rule, weight)) in agent.rules.iter().zip(&agent.weights).enumerate() {
            ranks[place] = i64::from(rule.priority()) * PRIORITY + i64::from(*weight);
            cells[place] = rule.to();
        }
        Self { index: Index::new(&agent.rules), ranks, cells }
    }

    /// Adds to the weights of the rules in a mask.
    #[inline(always)]
    pub fn add(&mut self, mut rules: u128, change: i64) {
        while rules != 0 {
            self.ranks[rules.trailing_zeros() as usize] += change;
            rules &= rules - 1;
        }
    }

    /// The rules among which the side with these stones draws: [`Agent::candidates`] with a bit each.
    #[must_use]
    #[inline(always)]
    pub fn candidates(&self, own: u32, other: u32) -> u128 {
        let mut matching = self.index.matching(own, other);
        if matching & matching.wrapping_sub(1) == 0 {
            return matching;
        }
        let (mut best, mut highest) = (0, i64::MIN);
        while matching != 0 {
            let bit = matching & matching.wrapping_neg();
            let rank = self.ranks[matching.trailing_zeros() as usize];
            if rank >= highest {
                best = if rank > highest { bit } else { best | bit };
                highest = rank;
            }
            matching ^= bit;
        }
        best
    }

    /// The cell that a rule moves to.
    #[must_use]
    #[inline(always)]
    pub fn cell(&self, rule: u32) -> u8 {
        self.cells[rule as usize % RULES_MAX]
    }

    /// The weight of the rule at this place.
    #[must_use]
    pub fn weight(&self, place: usize, rule: Rule) -> i32 {
        (self.ranks[place] - i64::from(rule.priority()) * PRIORITY) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::{
        ratio::Ratio,
        rng::{Stream, below},
    };
    use proptest::prelude::*;

    #[test]
    fn rows_become_columns() {
        let mut words: [u32; 32] = std::array::from_fn(|word| (word as u32 + 1).wrapping_mul(0x9e37_79b9));
        let before = words;
        transpose(&mut words);
        for (i, j) in (0..32).flat_map(|i| (0..32).map(move |j| (i, j))) {
            assert_eq!(words[i] >> j & 1, before[j] >> i & 1);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// On every board, for agents with few and with many matching rules.
        #[test]
        fn candidates_are_those_of_the_definition(seed: u64, count in 0..=RULES_MAX, rigged in 0..=10_i128) {
            let rng = &mut Stream::root(seed).rng();
            let rules: Vec<Rule> = (0..count).map(|_| Rule::born(rng, Ratio::new(rigged, 10))).collect();
            let weights = rules.iter().map(|_| below(rng, 5) as i32 - 2).collect();
            let agent = Agent { weights, ..Agent::newborn(rules) };
            let mut ready = IndexedAgent::new(&agent);
            for code in 0..3_u32.pow(9) {
                let state = |wanted| (0..9).map(|cell| u32::from(code / 3_u32.pow(cell) % 3 == wanted) << cell).sum::<u32>();
                let (own, other) = (state(1), state(2));
                let candidates: u128 = agent.candidates(own, other).iter().map(|rule| 1_u128 << rule).sum();
                prop_assert_eq!(ready.candidates(own, other), candidates);
            }
            ready.add(u128::MAX, 3);
            prop_assert!((0..count).all(|place| ready.weight(place, agent.rules[place]) == agent.weights[place] + 3));
        }
    }
}
