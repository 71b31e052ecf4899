//! One learner with several workers: the changes that each worker made to the same weights, and how to join them.
//!
//! An update has the new values of the weights that changed, not differences. A single update therefore gives exactly the
//! weights from which it was made, and a learner with one worker equals the serial learner bit for bit.

use super::messages;

/// The workers that count in the mean of a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// All workers. A worker that did not change the weight counts with its old value.
    All,
    /// The workers that changed the weight.
    Touched,
}

/// How the mean of all workers' weights moves the learner: gradient descent with Nesterov's momentum, where the gradient is
/// the distance to the mean (Douillard and others, "DiLoCo", 2023, with a rate of 0.7 and a momentum of 0.9).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outer {
    /// The workers that count in the mean.
    pub over: Over,
    /// The learning rate, above 0. A rate of 1 without momentum moves to the mean.
    pub rate: f64,
    /// The factor of the velocity in each round: at least 0, below 1.
    pub momentum: f64,
}

impl Outer {
    /// Whether the result is simply the mean.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.rate == 1.0 && self.momentum == 0.0
    }
}

/// The update from `old` to `new`: the weights whose bits changed.
#[must_use]
pub fn difference(old: &[f32], new: &[f32]) -> messages::WeightUpdate {
    assert_eq!(old.len(), new.len(), "an update is between weights of one network");
    let (mut changed, mut values) = (Vec::with_capacity(old.len().div_ceil(8)), Vec::new());
    for (old, new) in old.chunks(8).zip(new.chunks(8)) {
        let mut bits = 0;
        for (place, (old, new)) in old.iter().zip(new).enumerate() {
            if old.to_bits() != new.to_bits() {
                bits |= 1 << place;
                values.extend(new.to_le_bytes());
            }
        }
        changed.push(bits);
    }
    messages::WeightUpdate { changed: changed.into(), values: values.into() }
}

/// Checks an update for a network with this number of weights.
///
/// # Errors
/// A message if the update is invalid.
pub fn check(update: &messages::WeightUpdate, weights: usize) -> Result<(), String> {
    let (bits, bytes) = (update.changed.len(), update.values.len());
    let count: usize = update.changed.iter().map(|bits| bits.count_ones() as usize).sum();
    if bits != weights.div_ceil(8) || bytes != 4 * count {
        return Err(format!(
            "an update of {weights} weights in which {count} changed, with {bits} bytes of bits and {bytes} of values"
        ));
    }
    let in_last = weights % 8;
    let past_the_last = in_last > 0 && update.changed.last().is_some_and(|bits| bits >> in_last > 0);
    if past_the_last {
        return Err(format!("an update of a weight after the last of {weights}"));
    }
    Ok(())
}

/// Computes the weights after a round. `velocity` has one number per weight, or is empty without momentum. The updates must
/// have been [checked](check), and are taken in the order of the tasks.
pub fn join(weights: &mut [f32], velocity: &mut [f32], updates: &[messages::WeightUpdate], outer: Outer) {
    let mut sums = vec![0.0_f64; weights.len()];
    let mut touched = vec![0_u32; weights.len()];
    for update in updates {
        for (index, value) in changes(update) {
            sums[index] += f64::from(value);
            touched[index] += 1;
        }
    }
    for (index, weight) in weights.iter_mut().enumerate() {
        let old = f64::from(*weight);
        let (sum, count) = match outer.over {
            Over::All => (sums[index] + f64::from(updates.len() as u32 - touched[index]) * old, updates.len() as u32),
            Over::Touched => (sums[index], touched[index]),
        };
        let mean = if touched[index] == 0 { old } else { sum / f64::from(count) };
        if outer.is_plain() {
            // This equals the formula below, but without its rounding errors.
            *weight = mean as f32;
            continue;
        }
        let gradient = old - mean;
        let mut step = gradient;
        if let Some(velocity) = velocity.get_mut(index) {
            let speed = outer.momentum * f64::from(*velocity) + gradient;
            *velocity = speed as f32;
            step += outer.momentum * speed;
        }
        *weight = (old - outer.rate * step) as f32;
    }
}

/// The index and the new value of each weight that changed, in order.
fn changes(update: &messages::WeightUpdate) -> impl Iterator<Item = (usize, f32)> {
    let places = |(byte, bits): (usize, &u8)| {
        let mut left = *bits;
        std::iter::from_fn(move || {
            let place = left.trailing_zeros() as usize;
            // Clears the lowest bit.
            left &= left.wrapping_sub(1);
            (place < 8).then_some(8 * byte + place)
        })
    };
    update.changed.iter().enumerate().flat_map(places).zip(from_bytes(&update.values))
}

/// Reads weights in the form in which messages carry them. Incomplete bytes at the end are ignored.
pub fn from_bytes(bytes: &[u8]) -> impl Iterator<Item = f32> {
    let (numbers, _) = bytes.as_chunks::<4>();
    numbers.iter().map(|bytes| f32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Outer = Outer { over: Over::Touched, rate: 1.0, momentum: 0.0 };

    /// Joins updates weight by weight, following the printed formulas.
    fn joined_by_definition(old: &[f32], velocity: &[f32], news: &[Vec<f32>], outer: Outer) -> (Vec<f32>, Vec<f32>) {
        let mut result = (old.to_vec(), velocity.to_vec());
        for index in 0..old.len() {
            let all = news.iter().map(|new| new[index]);
            let taken: Vec<f64> = match outer.over {
                Over::All => all.map(f64::from).collect(),
                Over::Touched => all.filter(|new| new.to_bits() != old[index].to_bits()).map(f64::from).collect(),
            };
            let old = f64::from(old[index]);
            let mean = if taken.is_empty() { old } else { taken.iter().sum::<f64>() / taken.len() as f64 };
            let gradient = old - mean;
            let before = if velocity.is_empty() { 0.0 } else { f64::from(velocity[index]) };
            let speed = outer.momentum * before + gradient;
            let new = old - outer.rate * (gradient + outer.momentum * speed);
            result.0[index] = new as f32;
            if !velocity.is_empty() {
                result.1[index] = speed as f32;
            }
        }
        result
    }

    fn joined(old: &[f32], velocity: &[f32], news: &[Vec<f32>], outer: Outer) -> (Vec<f32>, Vec<f32>) {
        let updates: Vec<messages::WeightUpdate> = news.iter().map(|new| difference(old, new)).collect();
        updates.iter().for_each(|update| check(update, old.len()).unwrap());
        let mut result = (old.to_vec(), velocity.to_vec());
        join(&mut result.0, &mut result.1, &updates, outer);
        result
    }

    #[test]
    fn means_are_over_all_learners_or_those_that_changed_a_weight() {
        let old = [1.0, 2.0, 3.0];
        let news = [vec![2.0, 2.0, 3.0], vec![4.0, 4.0, 3.0]];
        assert_eq!(joined(&old, &[], &news, PLAIN).0, [3.0, 4.0, 3.0]);
        assert_eq!(joined(&old, &[], &news, Outer { over: Over::All, ..PLAIN }).0, [3.0, 3.0, 3.0]);
        assert_eq!(joined(&old, &[], &news, Outer { rate: 0.5, ..PLAIN }).0, [2.0, 3.0, 3.0]);
    }

    #[test]
    fn momentum_continues_without_updates() {
        let outer = Outer { rate: 0.5, momentum: 0.5, ..PLAIN };
        let (weights, velocity) = joined(&[1.0], &[0.0], &[vec![3.0]], outer);
        assert_eq!((weights[0], velocity[0]), (2.5, -2.0), "half of 2, and half of that");
        let (weights, velocity) = joined(&weights, &velocity, std::slice::from_ref(&weights), outer);
        assert_eq!((weights[0], velocity[0]), (2.75, -1.0));
    }

    #[test]
    fn updates_name_the_weights_that_changed() {
        let old = [0.0; 9];
        let mut new = old;
        (new[1], new[7], new[8]) = (1.0, 2.0, -0.0);
        let update = difference(&old, &new);
        assert_eq!((&update.changed[..], update.values.len()), (&[0b1000_0010, 1][..], 12));
        assert_eq!(changes(&update).collect::<Vec<_>>(), [(1, 1.0), (7, 2.0), (8, -0.0)]);
        assert_eq!(changes(&difference(&old, &old)).count(), 0);
    }

    #[test]
    fn invalid_updates_are_rejected_with_a_reason() {
        let update = |changed: &[u8], bytes: usize| messages::WeightUpdate {
            changed: changed.to_vec().into(),
            values: vec![0; bytes].into(),
        };
        for good in [update(&[0], 0), update(&[0b100], 4), update(&[0b111], 12)] {
            assert_eq!(check(&good, 3), Ok(()));
        }
        assert_eq!(check(&update(&[0x80], 4), 8), Ok(()));
        for (bad, part) in [
            (update(&[], 0), "0 changed, with 0 bytes of bits"),
            (update(&[1, 0], 4), "an update of 3 weights in which 1 changed, with 2 bytes of bits"),
            (update(&[0b1000], 4), "a weight after the last of 3"),
            (update(&[1], 3), "1 changed, with 1 bytes of bits and 3 of values"),
            (update(&[1], 8), "8 of values"),
        ] {
            let sentence = check(&bad, 3).unwrap_err();
            assert!(sentence.contains(part), "{sentence}");
        }
    }

    fn weights() -> impl Strategy<Value = Vec<f32>> {
        let value = || prop_oneof![4 => Just(0.25_f32), 1 => -2.0..2.0_f32, 1 => -1e-12..1e-12_f32];
        prop::collection::vec(value(), 12)
    }

    proptest! {
        #[test]
        fn joins_match_the_reference(
            old in weights(),
            velocity in weights(),
            news in prop::collection::vec(weights(), 1..6),
            all: bool,
            rate in 0.1..1.5_f64,
            momentum in 0.0..0.99_f64,
            fading: bool,
        ) {
            let over = if all { Over::All } else { Over::Touched };
            let velocity = if fading { velocity } else { Vec::new() };
            let outer = Outer { over, rate, momentum: if fading { momentum } else { 0.0 } };
            let (fast, expected) = (joined(&old, &velocity, &news, outer), joined_by_definition(&old, &velocity, &news, outer));
            for (fast, expected) in fast.0.iter().chain(&fast.1).zip(expected.0.iter().chain(&expected.1)) {
                // The order of additions differs, so the last bits of a double may differ. A float seldom shows the
                // difference.
                prop_assert!((fast - expected).abs() <= expected.abs() * 1e-6 + 1e-12, "{fast} {expected}");
            }
        }

        #[test]
        fn joining_one_learner_keeps_its_weights(old in weights(), new in weights(), all: bool) {
            let over = if all { Over::All } else { Over::Touched };
            let (joined, _) = joined(&old, &[], std::slice::from_ref(&new), Outer { over, ..PLAIN });
            prop_assert!(joined.iter().zip(&new).all(|(one, other)| one.to_bits() == other.to_bits()));
        }

        #[test]
        fn arbitrary_updates_never_panic(changed in prop::collection::vec(any::<u8>(), 0..4), count in 0..17_usize) {
            let update = messages::WeightUpdate { changed: changed.into(), values: vec![7; 4 * count].into() };
            if check(&update, 12).is_ok() {
                join(&mut [0.0; 12], &mut [], &[update], PLAIN);
            }
        }
    }
}
