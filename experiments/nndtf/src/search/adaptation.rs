//! The modern rival: an evolution strategy with covariance matrix adaptation ([`super::strategy`]).
//!
//! The search space has no bounds. A gene is its coordinate folded into -1 to 1 by reflection at both ends, so steps near a
//! bound work as well as anywhere. -1 and 1 stand for the bounds of the gene. The first mean is a random chromosome, and the
//! champion is the best chromosome ever evaluated.

use crate::messages;

use super::{
    Candidates, Search, first_greatest,
    strategy::{Distribution, Strategy},
};
use crate::network::{Bounds, RANGE, gene};
use evoxo_common::evolve::select;

/// A greater step size is useless, because coordinates have a range of 2.
const SIGMA_MAX: f64 = 1e6;

/// Whether a state is empty, or has the numbers of a distribution and one chromosome.
pub(super) fn fits(search: &Search, state: &messages::State) -> bool {
    let n = search.genes;
    let begun = state.iteration > 0;
    state.sums.len() == usize::from(begun)
        && state.distribution.len() == if begun { 1 + n + n + n * n } else { 0 }
        && state.distribution.iter().all(|number| number.is_finite())
}

fn strategy(search: &Search) -> Strategy {
    Strategy::new(search.genes, search.settings.offspring as usize)
}

fn distribution(search: &Search, state: &messages::State) -> Distribution {
    let n = search.genes;
    let Some((sigma, rest)) = state.distribution.split_first() else {
        let mut rng = search.rng(state, "mean");
        let mean = (0..n).map(|_| f64::from(gene(&mut rng, RANGE))).collect();
        return strategy(search).start(mean, search.settings.sigma.to_f64());
    };
    let (mean, rest) = rest.split_at(n);
    let (path, matrix) = rest.split_at(n);
    Distribution { sigma: *sigma, mean: mean.to_vec(), path: path.to_vec(), matrix: matrix.to_vec() }
}

/// The gene for a folded coordinate. With the paper's bounds, the gene equals the coordinate.
fn scaled(folded: f64, (least, most): Bounds) -> f32 {
    let [least, most] = [least, most].map(f64::from);
    ((most + least) / 2.0 + (most - least) / 2.0 * folded) as f32
}

/// Folds a coordinate into -1 to 1.
fn fold(place: f64) -> f64 {
    // At an odd distance from a multiple of 4 there is a bound. At a distance of 2 the middle recurs, in the opposite
    // direction.
    let turned = place + 1.0;
    let within = turned - 4.0 * (turned / 4.0).floor();
    if within <= 2.0 { within - 1.0 } else { 3.0 - within }
}

/// The next generation.
pub(super) fn ask(search: &Search, state: &messages::State) -> Candidates {
    let (strategy, distribution) = (strategy(search), distribution(search, state));
    let steps = strategy.draw(&distribution, &mut search.rng(state, "steps"));
    let individuals = 0..search.settings.offspring as usize;
    let genes = individuals
        .flat_map(|index| {
            strategy.individual(&distribution, &steps, index).map(|place| scaled(fold(place), search.bounds))
        })
        .collect();
    Candidates { genes, steps: Some(steps) }
}

/// Updates the distribution.
pub(super) fn tell(search: &Search, state: &mut messages::State, asked: Candidates, sums: &[u64]) {
    let before = distribution(search, state);
    let mut distribution = before.clone();
    let steps = asked.steps.expect("a generation of this strategy has its steps");
    let order = select::fittest(sums, sums.len());
    strategy(search).adapt(&mut distribution, &steps, &order);
    let best = first_greatest(sums).expect("a generation was evaluated");
    if state.sums.first().is_none_or(|so_far| sums[best] > *so_far) {
        state.sums = vec![sums[best]];
        state.genes = search.chromosome(&asked.genes, best).to_vec();
    }
    let Distribution { sigma, mean, path, matrix } = distribution;
    let numbers: Vec<f64> = std::iter::once(sigma).chain(mean).chain(path).chain(matrix).collect();
    // If all individuals are equally fit, steps may grow without limit. In that case the search restarts from the same mean.
    state.distribution = match numbers.iter().all(|number| number.is_finite()) && sigma <= SIGMA_MAX {
        true => numbers,
        false => {
            let strategy = strategy(search);
            let Distribution { sigma, mean, path, matrix } =
                strategy.start(before.mean, search.settings.sigma.to_f64());
            std::iter::once(sigma).chain(mean).chain(path).chain(matrix).collect()
        }
    };
    state.iteration += 1;
}
