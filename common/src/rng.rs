//! Named streams of random numbers.
//!
//! A stream's name is the path of its purpose in the experiment's own terms (seed, experiment, replica, generation,
//! individual, purpose), never the task, slice, worker or time. All code that draws from the stream with this name draws the
//! same numbers, wherever and whenever it runs. That is why results do not depend on how work is divided.

use crate::math::ln;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator of every stream: xoshiro256++ 1.0 (Blackman and Vigna, 2019).
pub type Generator = Xoshiro256PlusPlus;

/// The name of a stream: a path of words and texts, folded into 128 bits.
///
/// ```
/// use evoxo_common::rng::Stream;
/// let replica = Stream::root(7).text("invincible").word(3);
/// assert_eq!(replica.text("births").word(12), replica.text("births").word(12));
/// assert_ne!(replica.text("births").word(12), replica.text("games").word(12));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stream {
    high: u64,
    low: u64,
}

/// 2^64 divided by the golden ratio, the increment of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014; constants by Stafford): a bijection of 64-bit words.
#[inline]
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Stream {
    /// The root stream of an experiment with this seed; all other streams are below it.
    #[must_use]
    pub fn root(seed: u64) -> Self {
        Self { high: 0, low: 0 }.word(seed)
    }

    /// The stream with the two words that a task carries; see [`Stream::high`] and [`Stream::low`].
    #[must_use]
    pub const fn from_words(high: u64, low: u64) -> Self {
        Self { high, low }
    }

    /// The name's upper 64 bits.
    #[must_use]
    pub const fn high(self) -> u64 {
        self.high
    }

    /// The name's lower 64 bits.
    #[must_use]
    pub const fn low(self) -> u64 {
        self.low
    }

    /// Goes one step down the path, to a numbered child.
    #[must_use]
    #[inline]
    pub fn word(self, word: u64) -> Self {
        let low = mix(self.low ^ mix(word.wrapping_add(GOLDEN)));
        let high = mix(self.high.rotate_left(32).wrapping_add(low) ^ word.wrapping_mul(GOLDEN));
        Self { high, low }
    }

    /// Goes one step down the path, to a child named by a text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        let start = self.word(!(text.len() as u64));
        text.as_bytes().chunks(8).fold(start, |stream, chunk| {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            stream.word(u64::from_le_bytes(bytes))
        })
    }

    /// A generator of the stream's numbers, from the first one on.
    #[must_use]
    #[inline]
    pub fn rng(self) -> Generator {
        let words = [
            mix(self.high.wrapping_add(GOLDEN)),
            mix(self.low.wrapping_add(GOLDEN.wrapping_mul(2))),
            mix((self.high ^ self.low.rotate_left(17)).wrapping_add(GOLDEN.wrapping_mul(3))),
            mix((self.low ^ self.high.rotate_left(29)).wrapping_add(GOLDEN.wrapping_mul(4))),
        ];
        let mut seed = [0; 32];
        for (bytes, word) in seed.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Generator::from_seed(seed)
    }
}

/// An integer in `0..bound`, each equally likely (Lemire, 2019: multiply, and reject the few that would bias).
///
/// # Panics
/// If `bound` is 0.
#[inline]
pub fn below(rng: &mut Generator, bound: u64) -> u64 {
    assert!(bound > 0, "a random number below 0 was asked for");
    loop {
        let product = u128::from(rng.next_u64()) * u128::from(bound);
        let rest = product as u64;
        // The threshold lies below the bound, so the division is rarely needed.
        if rest >= bound || rest >= bound.wrapping_neg() % bound {
            return (product >> 64) as u64;
        }
    }
}

/// True with probability `numerator` / `denominator`, exactly.
#[inline]
pub fn chance(rng: &mut Generator, numerator: u64, denominator: u64) -> bool {
    below(rng, denominator) < numerator
}

/// A number in [0, 1): a multiple of 2^-53, all equally likely.
#[inline]
pub fn unit(rng: &mut Generator) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// Two independent normal numbers with mean 0 and variance 1 (the polar method: Marsaglia and Bray 1964).
pub fn normal_pair(rng: &mut Generator) -> [f64; 2] {
    loop {
        let [x, y] = [(); 2].map(|()| 2.0 * unit(rng) - 1.0);
        let square = x * x + y * y;
        if 0.0 < square && square < 1.0 {
            let scale = (-2.0 * ln(square) / square).sqrt();
            return [x * scale, y * scale];
        }
    }
}

/// Puts a slice in random order, each order equally likely (Fisher and Yates; Durstenfeld, 1964).
pub fn shuffle<T>(rng: &mut Generator, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(rng, last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_named_streams_are_pinned() {
        let mut rng = Stream::root(1).text("invincible").word(3).text("births").rng();
        let numbers = [(); 4].map(|()| rng.next_u64());
        insta::assert_snapshot!(format!("{numbers:016x?}"));
        let mut rng = Stream::root(0).rng();
        insta::assert_snapshot!(format!("{:?}", [(); 8].map(|()| below(&mut rng, 1000))));
        insta::assert_snapshot!(format!("{:?}", [(); 3].map(|()| unit(&mut rng).to_bits())));
        let mut order = [0, 1, 2, 3, 4, 5, 6, 7];
        shuffle(&mut rng, &mut order);
        insta::assert_snapshot!(format!("{order:?}"));
    }

    #[test]
    fn different_stream_names_give_different_numbers() {
        let mut names = vec![Stream::root(0), Stream::root(1), Stream::root(0).word(0), Stream::root(0).text("")];
        for word in 0..1000 {
            names.push(Stream::root(0).word(word).word(1));
            names.push(Stream::root(0).text(&format!("{word}")));
        }
        names.push(Stream::root(0).text("ab").text("c"));
        names.push(Stream::root(0).text("a").text("bc"));
        names.push(Stream::root(0).text("abc"));
        names.sort_unstable();
        let total = names.len();
        names.dedup();
        assert_eq!(names.len(), total);
    }

    #[test]
    fn below_is_uniform_within_chance() {
        let mut rng = Stream::root(5).rng();
        let mut counts = [0_i64; 7];
        for _ in 0..70_000 {
            counts[below(&mut rng, 7) as usize] += 1;
        }
        // The standard deviation is 93; the bound is six of them.
        assert!(counts.iter().all(|count| (count - 10_000).abs() < 560), "{counts:?}");
    }

    #[test]
    fn a_power_of_two_rejects_no_number() {
        let (mut rng, mut words) = (Stream::root(6).rng(), Stream::root(6).rng());
        for _ in 0..100 {
            assert_eq!(below(&mut rng, 1 << 63), words.next_u64() >> 1);
        }
    }

    #[test]
    fn normal_numbers_have_a_normal_distribution() {
        let mut rng = Stream::root(2).rng();
        let values: Vec<f64> = (0..100_000).flat_map(|_| normal_pair(&mut rng)).collect();
        let moment = |power: i32| values.iter().map(|value| (0..power).fold(1.0, |x, _| x * value)).sum::<f64>() / 2e5;
        let moments = [moment(1), moment(2), moment(3), moment(4)];
        assert!(moments[0].abs() < 0.012 && (moments[1] - 1.0).abs() < 0.02, "{moments:?}");
        assert!(moments[2].abs() < 0.05 && (moments[3] - 3.0).abs() < 0.13, "{moments:?}");
    }

    #[test]
    fn a_stream_name_survives_a_round_trip() {
        let name = Stream::root(9).text("games");
        assert_eq!(Stream::from_words(name.high(), name.low()), name);
    }
}
