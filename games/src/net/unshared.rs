//! A network that shares weights over the symmetries of the board, expanded: it has the same values without shared weights.

use super::{Architecture, First, Network, shared::Ties, tuples};

impl Network {
    /// The network with the same values that shares no weights, or the network itself if it shares none. `None` for filters
    /// over tables: they read the board in all its orientations, and no network without shared weights does that.
    #[must_use]
    pub fn without_sharing(&self) -> Option<Self> {
        let Self { architecture, weights } = self;
        match architecture.first {
            _ if !architecture.shared => Some(self.clone()),
            First::Lines { .. } => {
                let Ties { unshared, weights: ties, .. } = Ties::new(architecture);
                let weights = ties.into_iter().map(|tie| weights[tie]).collect();
                Some(Self { architecture: unshared, weights })
            }
            First::Tuples { .. } if architecture.second == 0 => {
                let entries = tuples::sums(architecture, weights).into_iter().map(|(_, entry)| entry);
                let bias = architecture.biases.then(|| weights.last().copied()).flatten();
                let weights = entries.chain(bias).collect();
                Some(Self { architecture: Architecture { shared: false, ..*architecture }, weights })
            }
            First::Tuples { .. } | First::Dense { .. } | First::Planes { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        board::{Position, Shape, Side, cells, score_four},
        net::{Activation, reference},
    };
    use evoxo_common::rng::{Stream, below};

    #[test]
    fn values_are_the_same_without_sharing() {
        let (lines, tuples) = (First::Lines { detectors: 4 }, First::Tuples { states: 4 });
        let cases = [(lines, 0, true), (lines, 3, true), (tuples, 0, true), (tuples, 2, false), (lines, 3, false)];
        for (first, second, shared) in cases {
            let (shape, activation) = (Shape::SCORE_FOUR, Activation::Logistic);
            let architecture = Architecture { shape, first, second, biases: true, activation, shared };
            // The initial weights will not do, because they are 0 in linear tables.
            let change = |(at, weight): (usize, f32)| weight + (at % 97) as f32 / 970.0;
            let weights: Vec<f32> = architecture.initial(Stream::root(8)).into_iter().enumerate().map(change).collect();
            let network = Network { architecture, weights };
            let plain = network.without_sharing().expect("the network has an unshared form");
            assert!(!plain.architecture.shared && plain.weights.len() == plain.architecture.parameters());
            let [one, other] = [&network, &plain].map(|it| reference::of(&it.architecture, &it.weights));
            let (mut rng, mut position) = (Stream::root(9).rng(), Position::START);
            for _ in 0..20 {
                let legal: Vec<u8> = cells(position.legal(score_four())).collect();
                position = position.play(score_four(), legal[below(&mut rng, legal.len() as u64) as usize]);
                for side in Side::BOTH {
                    let sums = [&one, &other].map(|network| network.sum(position.board(), side));
                    assert!((sums[0] - sums[1]).abs() < 1e-9, "{first:?}: {sums:?}");
                }
            }
        }
    }

    #[test]
    fn filters_that_share_weights_have_no_unshared_form() {
        let architecture = Architecture {
            shape: Shape::SCORE_FOUR,
            first: First::Tuples { states: 3 },
            second: 2,
            biases: false,
            activation: Activation::Tanh,
            shared: true,
        };
        let weights = architecture.initial(Stream::root(1));
        assert_eq!(Network { architecture, weights }.without_sharing(), None);
    }
}
