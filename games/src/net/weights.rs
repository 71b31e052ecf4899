//! The limits of architectures, and their weights: names, order, number and initial values.

use super::{
    architecture::{Architecture, First, Tensor},
    planes,
    shared::{self, Ties},
    tuples,
};
use crate::board::Geometry;
use evoxo_common::rng::{Stream, unit};

/// The most units of a dense first layer.
const UNITS_MAX: usize = 1024;
/// The most detectors of a line.
const DETECTORS_MAX: usize = 16;
/// The most units of a plane.
const PLANE_UNITS_MAX: usize = 16;
/// The most units of the first layer on all lines together.
const LINE_UNITS_MAX: usize = 2032;
/// The most units of the second layer.
const SECOND_MAX: usize = 64;
/// The most numbers in all tables together.
const TABLES_MAX: usize = 1 << 20;
/// The bound of the initial numbers in filters' tables. Many of them add up in one sum, so they are smaller than other
/// weights.
const TABLES_INITIAL: f32 = 0.1;

impl Architecture {
    /// Checks that such a network is possible.
    ///
    /// # Errors
    /// A message that says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let lines = Geometry::new(self.shape)?.lines().len();
        if self.second > SECOND_MAX {
            return Err(format!("a second layer of {} units is too large: give at most {SECOND_MAX}", self.second));
        }
        match self.first {
            First::Dense { units } if !(1..=UNITS_MAX).contains(&units) => {
                Err(format!("a first layer of {units} units is not possible: give 1 to {UNITS_MAX}"))
            }
            First::Dense { .. } if self.shared => {
                Err("a dense first layer cannot share weights over the board's symmetries: use lines or tuples"
                    .to_owned())
            }
            First::Dense { .. } => Ok(()),
            First::Lines { .. } | First::Planes { .. } | First::Tuples { .. } if lines == 0 => {
                Err("this board has no lines for the first layer to look at: use a dense one".to_owned())
            }
            First::Lines { detectors } | First::Planes { detectors, .. }
                if !(1..=DETECTORS_MAX).contains(&detectors) =>
            {
                Err(format!("{detectors} detectors for each line are not possible: give 1 to {DETECTORS_MAX}"))
            }
            First::Lines { detectors } if lines * detectors.next_multiple_of(4) > LINE_UNITS_MAX => Err(format!(
                "{detectors} detectors for each of {lines} lines are too many: together at most {LINE_UNITS_MAX}"
            )),
            First::Lines { detectors } if self.shared && !detectors.is_multiple_of(2) => Err(format!(
                "{detectors} detectors for each line cannot share weights: they come in mirrored pairs, so give an \
                 even number"
            )),
            First::Lines { detectors } if self.shared && shared::quad_count(self) > shared::QUADS_MAX => Err(format!(
                "{detectors} detectors for each of {lines} lines are too many to share weights: give fewer"
            )),
            First::Lines { .. } => Ok(()),
            First::Planes { .. } if !planes::has_planes(self.shape) => {
                Err("only boards of 4x4x4 cells with four in a row have planes: use lines".to_owned())
            }
            First::Planes { units, .. } if !(1..=PLANE_UNITS_MAX).contains(&units) => {
                Err(format!("{units} units for each plane are not possible: give 1 to {PLANE_UNITS_MAX}"))
            }
            First::Planes { .. } if self.shared => {
                Err("a network with planes cannot share weights over the board's symmetries: use lines or tuples"
                    .to_owned())
            }
            First::Planes { .. } if self.second > 0 => Err(format!(
                "the units of planes are the second layer, so there is no other one of {} units: give 0",
                self.second
            )),
            First::Planes { .. } => Ok(()),
            First::Tuples { states } if !(3..=4).contains(&states) => {
                Err(format!("{states} states of a cell are not possible: give 3 or 4"))
            }
            First::Tuples { states } => {
                let entries = states.checked_pow(self.shape.k.into()).and_then(|entries| entries.checked_mul(lines));
                match entries.and_then(|entries| entries.checked_mul(self.second.max(1))) {
                    Some(..=TABLES_MAX) => Ok(()),
                    _ => Err(format!(
                        "tables of {states}^{} entries for each of {lines} lines are too large: together at most \
                         {TABLES_MAX} numbers",
                        self.shape.k
                    )),
                }
            }
        }
    }

    /// The number of units in the first hidden layer.
    ///
    /// # Panics
    /// If [`Architecture::check`] rejects the architecture, or if its first layer has tables instead of units.
    #[must_use]
    pub fn units(&self) -> usize {
        self.first_layer().1.iter().product()
    }

    /// The shapes of the first layer's weights and of its biases.
    fn first_layer(&self) -> (Vec<usize>, Vec<usize>) {
        let geometry = Geometry::new(self.shape).expect("the architecture was checked");
        let (cells, lines) = (geometry.cells().count_ones() as usize, geometry.lines().len());
        match self.first {
            First::Dense { units } => (vec![cells, units], vec![units]),
            First::Lines { detectors } | First::Planes { detectors, .. } => {
                (vec![lines, usize::from(self.shape.k), detectors], vec![lines, detectors])
            }
            First::Tuples { .. } => panic!("a network of tables has no units in a first layer"),
        }
    }

    /// All weights in their canonical order. Tables and first layers come first, the output last; biases follow the weights
    /// of their layer.
    ///
    /// # Panics
    /// If [`Architecture::check`] rejects the architecture.
    #[must_use]
    pub fn tensors(&self) -> Vec<Tensor> {
        match self.first {
            First::Tuples { .. } => return self.placed(tuples::tensors(self)),
            First::Lines { .. } if self.shared => return self.placed(Ties::new(self).tensors),
            _ => {}
        }
        let (first, units) = self.first_layer();
        let mut all: Vec<(&'static str, Vec<usize>)> = vec![("first.weight", first)];
        let mut inputs = units.iter().product();
        all.push(("first.bias", units));
        if let First::Planes { detectors, units } = self.first {
            all.push(("planes.weight", vec![planes::PLANES, planes::LINES, detectors, units]));
            all.push(("planes.bias", vec![planes::PLANES, units]));
            inputs = planes::PLANES * units;
        }
        if self.second > 0 {
            all.push(("second.weight", vec![inputs, self.second]));
            all.push(("second.bias", vec![self.second]));
            inputs = self.second;
        }
        all.push(("output.weight", vec![inputs]));
        all.push(("output.bias", vec![1]));
        self.placed(all)
    }

    /// Tensors with these names and shapes, one after the other, without biases if the architecture has none.
    fn placed(&self, mut all: Vec<(&'static str, Vec<usize>)>) -> Vec<Tensor> {
        all.retain(|(name, _)| self.biases || name.ends_with(".weight"));
        let mut end = 0;
        let place = |(name, shape): (&'static str, Vec<usize>)| {
            let start = end;
            end += shape.iter().product::<usize>();
            Tensor { name, shape, range: start..end }
        };
        all.into_iter().map(place).collect()
    }

    /// The weights of the tensor with this name; none if there is no such tensor.
    pub(super) fn part<'a>(&self, name: &str, weights: &'a [f32]) -> &'a [f32] {
        let tensor = self.tensors().into_iter().find(|tensor| tensor.name == name);
        tensor.map_or(&[], |tensor| &weights[tensor.range])
    }

    /// The number of weights, including biases.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.tensors().last().map_or(0, |tensor| tensor.range.end)
    }

    /// The number of weights without biases, as the paper counts them: without shared weights, one for each connection
    /// between units.
    #[must_use]
    pub fn connections(&self) -> usize {
        let weights = self.tensors().into_iter().filter(|tensor| tensor.name.ends_with(".weight"));
        weights.map(|tensor| tensor.range.len()).sum()
    }

    /// The initial weights, drawn from the stream in canonical order. Each is uniform in [-0.5, 0.5). Those of tables below a
    /// second layer are uniform in [-0.1, 0.1), and those of linear tables are 0, because they have no symmetry to break.
    #[must_use]
    pub fn initial(&self, stream: Stream) -> Vec<f32> {
        let mut rng = stream.rng();
        let mut weights: Vec<f32> = (0..self.parameters()).map(|_| (unit(&mut rng) - 0.5) as f32).collect();
        if let First::Tuples { .. } = self.first {
            let bound = if self.second == 0 { 0.0 } else { TABLES_INITIAL };
            weights[self.tensors()[0].range.clone()].iter_mut().for_each(|weight| *weight *= 2.0 * bound);
        }
        weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{board::Shape, net::Activation};

    const fn network(first: First, second: usize) -> Architecture {
        let shape = Shape::SCORE_FOUR;
        Architecture { shape, first, second, biases: false, activation: Activation::Logistic, shared: false }
    }

    #[test]
    fn connections_match_the_paper() {
        let lines = First::Lines { detectors: 4 };
        let dense = |units| First::Dense { units };
        let networks = [(lines, 0), (lines, 32), (dense(50), 0), (dense(95), 51), (dense(169), 0)];
        let count = |(first, second)| {
            let network = network(first, second);
            let biased = Architecture { biases: true, ..network };
            assert_eq!(biased.connections(), network.connections());
            assert_eq!(network.parameters(), network.connections());
            assert_eq!(biased.parameters(), network.connections() + network.units() + second + 1);
            network.connections()
        };
        assert_eq!(networks.map(count), [1520, 10976, 3250, 10976, 10985]);
    }

    #[test]
    fn tensors_are_contiguous_and_fill_their_shapes() {
        let biased = Architecture { biases: true, ..network(First::Lines { detectors: 4 }, 32) };
        let tensors = biased.tensors();
        let names: Vec<&str> = tensors.iter().map(|tensor| tensor.name).collect();
        let expected = ["first.weight", "first.bias", "second.weight", "second.bias", "output.weight", "output.bias"];
        assert_eq!(names, expected);
        assert_eq!(tensors[0].shape, [76, 4, 4]);
        assert_eq!(tensors[2].shape, [304, 32]);
        let mut end = 0;
        for tensor in tensors {
            assert_eq!(tensor.range.start, end);
            assert_eq!(tensor.range.len(), tensor.shape.iter().product::<usize>());
            end = tensor.range.end;
        }
    }

    #[test]
    fn initial_weights_are_uniform_between_minus_a_half_and_a_half() {
        let weights = network(First::Dense { units: 169 }, 0).initial(Stream::root(1));
        assert!(weights.iter().all(|weight| (-0.5..=0.5).contains(weight)));
        let mean = |f: fn(f64) -> f64| weights.iter().map(|weight| f((*weight).into())).sum::<f64>() / 10_985.0;
        // The mean is 0 and the variance 1/12. The limits are four standard errors of each.
        assert!(mean(|w| w).abs() < 0.011 && (mean(|w| w * w) - 1.0 / 12.0).abs() < 0.003);
    }

    #[test]
    fn impossible_architectures_are_rejected_with_a_reason() {
        let good = network(First::Lines { detectors: 4 }, 32);
        assert_eq!(good.check(), Ok(()));
        let bad = [
            Architecture { first: First::Lines { detectors: 0 }, ..good },
            Architecture { first: First::Lines { detectors: 17 }, ..good },
            Architecture { first: First::Dense { units: 1025 }, ..good },
            Architecture { first: First::Dense { units: 5 }, shared: true, ..good },
            Architecture { first: First::Lines { detectors: 3 }, shared: true, ..good },
            Architecture {
                shape: Shape { width: 5, height: 5, depth: 1, k: 2, gravity: true },
                first: First::Lines { detectors: 16 },
                shared: true,
                ..good
            },
            Architecture { first: First::Tuples { states: 2 }, ..good },
            Architecture { first: First::Tuples { states: 4 }, second: 64, ..good },
            Architecture {
                shape: Shape { width: 26, height: 1, depth: 1, k: 26, gravity: false },
                first: First::Tuples { states: 4 },
                ..good
            },
            Architecture { second: 65, ..good },
            Architecture { shape: Shape { k: 9, ..Shape::SCORE_FOUR }, ..good },
            Architecture {
                shape: Shape { width: 8, height: 8, depth: 1, k: 2, gravity: false },
                first: First::Lines { detectors: 16 },
                ..good
            },
        ];
        let sentences: Vec<String> = bad.iter().map(|bad| bad.check().unwrap_err()).collect();
        insta::assert_snapshot!(sentences.join("\n"));
    }
}
