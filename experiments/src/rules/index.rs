//! Matches all rules of an agent against a board at once.
//!
//! For each row of the board and each of its 27 states there is a mask of the rules that accept that state. The rules that
//! match a board are the AND of three masks. The mask of a row is itself the AND of the masks of its three cells, so this is
//! the bit-sliced index with nine ANDs, six of which are computed once, when the index is built.
//!
//! A word holds 128 rules. Longer lists have several *blocks* of such words. The number of blocks is a compile-time constant,
//! so an agent with one block costs nothing extra.

use super::{
    agent::{Agent, RULES_MAX},
    rule::{CELLS, Needs, Rule},
};

/// The number of codes for a row's state: own stones are the low three bits, the opponent's stones the next three.
const STATES: usize = 64;

/// The number of rules in a block, one bit each in a word.
pub const BLOCK: usize = u128::BITS as usize;

/// A set of rules of an agent with this many blocks, one bit per rule. The rule at place p is bit p % 128 of word p / 128.
pub type Mask<const BLOCKS: usize> = [u128; BLOCKS];

/// Evaluates `$body`, where `$blocks` is a constant: the number of blocks that hold this number of rules.
macro_rules! with_blocks {
    ($rules:expr, $blocks:ident => $body:expr) => {
        match usize::div_ceil($rules, $crate::rules::index::BLOCK) {
            0 | 1 => {
                const $blocks: usize = 1;
                $body
            }
            2 => {
                const $blocks: usize = 2;
                $body
            }
            3 | 4 => {
                const $blocks: usize = 4;
                $body
            }
            _ => {
                const $blocks: usize = 8;
                $body
            }
        }
    };
}
pub(super) use with_blocks;

const _: () = assert!(RULES_MAX <= 8 * BLOCK, "the longest list fits the most blocks");

/// A block of an agent's rules: the index, and for each rule its rank (priority, then weight, in one number) and the cell
/// that it moves to.
#[derive(Clone, Debug)]
struct Block {
    rows: [[u128; STATES]; 3],
    ranks: [i64; BLOCK],
    cells: [u8; BLOCK],
}

impl Block {
    /// Prepares at most [`BLOCK`] rules with their weights.
    fn new(rules: &[Rule], weights: &[i32]) -> Self {
        let refusing = planes(rules);
        let all = u128::MAX.checked_shr((BLOCK - rules.len()) as u32).unwrap_or(0);
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
        let (mut ranks, mut cells) = ([0; BLOCK], [0; BLOCK]);
        for (place, (rule, weight)) in rules.iter().zip(weights).enumerate() {
            ranks[place] = i64::from(rule.priority()) * PRIORITY + i64::from(*weight);
            cells[place] = rule.to();
        }
        Self { rows, ranks, cells }
    }

    /// The rules of the highest rank among these rules, and that rank. If there are no rules, the result is empty.
    #[inline(always)]
    fn highest(&self, mut rules: u128) -> (u128, i64) {
        let (mut best, mut highest) = (0, i64::MIN);
        while rules != 0 {
            let bit = rules & rules.wrapping_neg();
            let rank = self.ranks[rules.trailing_zeros() as usize];
            if rank >= highest {
                best = if rank > highest { bit } else { best | bit };
                highest = rank;
            }
            rules ^= bit;
        }
        (best, highest)
    }

    /// The rules that match the board for the side with these stones, one bit per rule.
    #[inline(always)]
    fn matching(&self, own: u32, other: u32) -> u128 {
        let state = |row: u32| (own >> (3 * row) & 7 | (other >> (3 * row) & 7) << 3) as usize;
        self.rows[0][state(0)] & self.rows[1][state(1)] & self.rows[2][state(2)]
    }
}

/// A cell's states empty, own and other, as bits of the row's state.
const STATE: [usize; 3] = [0, 1, 8];

/// For each state (empty, own, other) and each cell, the rules that do not accept it.
fn planes(rules: &[Rule]) -> [u128; 3 * CELLS] {
    let mut words = [0_u32; BLOCK];
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

/// Transposes a matrix of 32 x 32 bits: bit j of word i becomes bit i of word j (Warren, *Hacker's Delight*, 2nd ed. 2013,
/// section 7-3).
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

/// An agent prepared for playing.
#[derive(Clone, Debug)]
pub struct IndexedAgent<const BLOCKS: usize> {
    blocks: [Block; BLOCKS],
}

/// The rank of one priority level. It is greater than any weight.
const PRIORITY: i64 = 1 << 40;

impl<const BLOCKS: usize> IndexedAgent<BLOCKS> {
    /// Prepares an agent.
    ///
    /// # Panics
    /// If the agent has more rules than these blocks hold.
    #[must_use]
    pub fn new(agent: &Agent) -> Self {
        let rules = agent.rules.len();
        assert!(rules <= BLOCKS * BLOCK, "{rules} rules, more than {BLOCKS} blocks of {BLOCK}");
        let block = |block: usize| {
            let places = (BLOCK * block).min(rules)..(BLOCK * (block + 1)).min(rules);
            Block::new(&agent.rules[places.clone()], &agent.weights[places])
        };
        Self { blocks: std::array::from_fn(block) }
    }

    /// Adds to the weights of the rules in a mask.
    #[inline(always)]
    pub fn add(&mut self, rules: Mask<BLOCKS>, change: i64) {
        for (block, mut rules) in self.blocks.iter_mut().zip(rules) {
            while rules != 0 {
                block.ranks[rules.trailing_zeros() as usize] += change;
                rules &= rules - 1;
            }
        }
    }

    /// The rules among which the side with these stones draws: [`Agent::candidates`] as a mask.
    #[must_use]
    #[inline(always)]
    pub fn candidates(&self, own: u32, other: u32) -> Mask<BLOCKS> {
        let matching: Mask<BLOCKS> = std::array::from_fn(|block| self.blocks[block].matching(own, other));
        if BLOCKS == 1 && matching[0] & matching[0].wrapping_sub(1) == 0 {
            return matching;
        }
        let (mut best, mut highest) = ([0; BLOCKS], i64::MIN);
        for (block, matching) in matching.into_iter().enumerate() {
            let (rules, rank) = self.blocks[block].highest(matching);
            if rank > highest {
                (best, highest) = ([0; BLOCKS], rank);
            }
            best[block] = if rank == highest { rules } else { 0 };
        }
        best
    }

    /// The cell that the rule at this place moves to.
    #[must_use]
    #[inline(always)]
    pub fn cell(&self, place: usize) -> u8 {
        self.blocks[place / BLOCK % BLOCKS].cells[place % BLOCK]
    }

    /// The weight of the rule at this place.
    #[must_use]
    pub fn weight(&self, place: usize, rule: Rule) -> i32 {
        (self.blocks[place / BLOCK].ranks[place % BLOCK] - i64::from(rule.priority()) * PRIORITY) as i32
    }
}

/// The number of rules in a mask.
#[must_use]
#[inline(always)]
pub fn count<const BLOCKS: usize>(mask: &Mask<BLOCKS>) -> u32 {
    mask.iter().map(|word| word.count_ones()).sum()
}

/// The places of the rules in a mask, in order.
pub fn places<const BLOCKS: usize>(mask: &Mask<BLOCKS>) -> impl Iterator<Item = usize> {
    mask.iter().copied().enumerate().flat_map(|(block, mut word)| {
        std::iter::from_fn(move || {
            let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
            word &= word - 1;
            Some(BLOCK * block + bit)
        })
    })
}

/// The place of the rule of the mask that follows `nth` other rules of the mask.
///
/// # Panics
/// If the mask has fewer rules.
#[must_use]
#[inline(always)]
pub fn place<const BLOCKS: usize>(mask: &Mask<BLOCKS>, mut nth: u32) -> usize {
    for (block, mut word) in mask.iter().copied().enumerate() {
        let rules = word.count_ones();
        if BLOCKS == 1 || nth < rules {
            (0..nth).for_each(|_| word &= word.wrapping_sub(1));
            return BLOCK * block + word.trailing_zeros() as usize;
        }
        nth -= rules;
    }
    panic!("a mask has fewer rules than the number of the one that was asked for")
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

        /// The index agrees on every board, for agents with few and with many matching rules.
        #[test]
        fn candidates_match_the_definition(seed: u64, count in 0..=RULES_MAX, rigged in 0..=10_i128) {
            let rng = &mut Stream::root(seed).rng();
            let rules: Vec<Rule> = (0..count).map(|_| Rule::born(rng, Ratio::new(rigged, 10))).collect();
            let weights = rules.iter().map(|_| below(rng, 5) as i32 - 2).collect();
            let agent = Agent { weights, ..Agent::newborn(rules) };
            with_blocks!(count, BLOCKS => {
            let mut ready = IndexedAgent::<BLOCKS>::new(&agent);
            for code in 0..3_u32.pow(9) {
                let state = |wanted| (0..9).map(|cell| u32::from(code / 3_u32.pow(cell) % 3 == wanted) << cell).sum::<u32>();
                let (own, other) = (state(1), state(2));
                let (found, places) = (ready.candidates(own, other), agent.candidates(own, other));
                let listed: Vec<usize> = super::places(&found).collect();
                prop_assert_eq!(&listed, &places);
                prop_assert!((0..super::count(&found)).all(|nth| place(&found, nth) == places[nth as usize]));
                prop_assert!(places.iter().all(|place| ready.cell(*place) == agent.rules[*place].to()));
            }
            ready.add([u128::MAX; BLOCKS], 3);
            prop_assert!((0..count).all(|place| ready.weight(place, agent.rules[place]) == agent.weights[place] + 3));
            });
        }
    }
}
