//! Which states from the middle of a run stay in its store, so that a fork or a comparison need not compute them again.
//!
//! `keep` in the experiment file bounds their bytes. Checkpoints are made at equal intervals of time, and those whose number is
//! a multiple of a power of two stay: the smallest power with which they fit. So whatever the length of the run turns out to be,
//! the states that stay are spread evenly over its time, and what has to be computed again is at most the time between two.

/// The most checkpoints that stay. Whoever looks for a state may have to read all of them.
const KEPT_MAX: u64 = 128;

/// The power of two of which a checkpoint's number must be a multiple for the checkpoint to stay. `kept` are the numbers and
/// bytes of those that have stayed so far, and `new` is the next one. The power never becomes less, so the distances stay equal.
#[must_use]
pub fn stride(kept: &[(u64, u64)], new: (u64, u64), bytes_max: u64) -> u64 {
    let fits = |stride: &u64| {
        let stay = kept.iter().chain([&new]).filter(|(number, _)| number % stride == 0);
        let sizes = stay.map(|(_, bytes)| (*bytes).max(bytes_max.div_ceil(KEPT_MAX)));
        sizes.fold(0, u64::saturating_add) <= bytes_max
    };
    let so_far = kept.iter().map(|(number, _)| number.trailing_zeros()).min().unwrap_or(0);
    // No number of a checkpoint is a multiple of the largest power.
    (so_far..u64::BITS).map(|power| 1 << power).find(fits).unwrap_or(1 << (u64::BITS - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_that_stay_are_spread_evenly_and_fit() {
        for (bytes, bytes_max) in [(10, 100), (10, 109), (7, 1000), (1, 3), (5, 4), (1, 1 << 20)] {
            let mut kept: Vec<(u64, u64)> = Vec::new();
            for number in 1..=3000 {
                let stride = stride(&kept, (number, bytes), bytes_max);
                kept.push((number, bytes));
                kept.retain(|(number, _)| number % stride == 0);
                let all: u64 = kept.iter().map(|(_, bytes)| bytes).sum();
                assert!(all <= bytes_max, "{all} of {bytes_max} bytes");
                // About half of the bytes are used at least, as far as there are checkpoints.
                let room = (bytes_max / bytes.max(bytes_max.div_ceil(KEPT_MAX))).min(number);
                assert!(2 * kept.len() as u64 + 1 >= room, "{} of {room} after {number}", kept.len());
                let steps: Vec<u64> = kept.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
                assert!(steps.iter().all(|step| *step == steps[0]), "{kept:?}");
            }
        }
    }

    #[test]
    fn a_state_that_does_not_fit_does_not_stay() {
        let strides = [stride(&[], (4, 10), 10), stride(&[], (4, 11), 10), stride(&[(2, 1)], (3, 1), 1000)];
        assert_eq!(strides, [1, 8, 2]);
        assert!(!u64::MAX.is_multiple_of(stride(&[(u64::MAX - 1, 1)], (u64::MAX, u64::MAX), 0)));
    }
}
