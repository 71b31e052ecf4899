//! The modern rival: an evolution strategy with covariance matrix adaptation ([`evoxo_common::evolve::adaptation`]).
//!
//! It searches without ends; a gene is the place folded into -1 to 1 by reflection at both, so that steps near an end are as
//! good as anywhere. The first mean is a random chromosome. The champion is the best ever judged.

use crate::nndtf::messages;

use super::{Asked, CHROMOSOMES_MAX, Search, first_greatest};
use crate::nndtf::network::gene;
use evoxo_common::evolve::{
    adaptation::{Distribution, Strategy},
    select,
};

/// Beyond this a step means nothing: genes have a range of 2.
const SIGMA_MAX: f64 = 1e6;

/// Whether the figures are in range.
pub(super) fn check(adaptation: &messages::Adaptation) -> Result<(), String> {
    let messages::Adaptation { offspring, sigma } = *adaptation;
    if !(4..=CHROMOSOMES_MAX as u32).contains(&offspring) {
        return Err(format!("a generation has 4 to {CHROMOSOMES_MAX} individuals, not {offspring}"));
    }
    if !(sigma > 0.0 && sigma <= 1000.0) {
        return Err(format!("the first step is above 0 and at most 1000, not {sigma}"));
    }
    Ok(())
}

/// Whether a state has the numbers of a distribution and one chromosome, or nothing yet.
pub(super) fn fits(search: &Search, state: &messages::State) -> bool {
    let n = search.kind.genes();
    let begun = state.iteration > 0;
    state.sums.len() == usize::from(begun)
        && state.distribution.len() == if begun { 1 + n + n + n * n } else { 0 }
        && state.distribution.iter().all(|number| number.is_finite())
}

fn strategy(search: &Search, adaptation: &messages::Adaptation) -> Strategy {
    Strategy::new(search.kind.genes(), adaptation.offspring as usize)
}

fn distribution(search: &Search, adaptation: &messages::Adaptation, state: &messages::State) -> Distribution {
    let n = search.kind.genes();
    let Some((sigma, rest)) = state.distribution.split_first() else {
        let mut rng = search.rng(state, "mean");
        let mean = (0..n).map(|_| f64::from(gene(&mut rng))).collect();
        return strategy(search, adaptation).start(mean, adaptation.sigma);
    };
    let (mean, rest) = rest.split_at(n);
    let (path, matrix) = rest.split_at(n);
    Distribution { sigma: *sigma, mean: mean.to_vec(), path: path.to_vec(), matrix: matrix.to_vec() }
}

/// A place folded into -1 to 1.
fn fold(place: f64) -> f32 {
    // 1 away from a whole multiple of 4 is an end; 2 away is the middle again, upside down.
    let turned = place + 1.0;
    let within = turned - 4.0 * (turned / 4.0).floor();
    (if within <= 2.0 { within - 1.0 } else { 3.0 - within }) as f32
}

/// A generation.
pub(super) fn ask(search: &Search, adaptation: &messages::Adaptation, state: &messages::State) -> Asked {
    let (strategy, distribution) = (strategy(search, adaptation), distribution(search, adaptation, state));
    let steps = strategy.draw(&distribution, &mut search.rng(state, "steps"));
    let individuals = 0..adaptation.offspring as usize;
    let genes = individuals.flat_map(|index| strategy.individual(&distribution, &steps, index).map(fold)).collect();
    Asked { genes, steps: Some(steps) }
}

/// Moves the distribution.
pub(super) fn tell(
    search: &Search,
    adaptation: &messages::Adaptation,
    state: &mut messages::State,
    asked: Asked,
    sums: &[u64],
) {
    let before = distribution(search, adaptation, state);
    let mut distribution = before.clone();
    let steps = asked.steps.expect("the strategy asked with steps");
    let order = select::fittest(sums, sums.len());
    strategy(search, adaptation).adapt(&mut distribution, &steps, &order);
    let best = first_greatest(sums).expect("a generation was judged");
    if state.sums.first().is_none_or(|so_far| sums[best] > *so_far) {
        state.sums = vec![sums[best]];
        state.genes = search.chromosome(&asked.genes, best).to_vec();
    }
    let Distribution { sigma, mean, path, matrix } = distribution;
    let numbers: Vec<f64> = std::iter::once(sigma).chain(mean).chain(path).chain(matrix).collect();
    // Where nothing tells the individuals apart, steps may grow without an end: then all begins anew from where it stood.
    state.distribution = match numbers.iter().all(|number| number.is_finite()) && sigma <= SIGMA_MAX {
        true => numbers,
        false => {
            let strategy = strategy(search, adaptation);
            let Distribution { sigma, mean, path, matrix } = strategy.start(before.mean, adaptation.sigma);
            std::iter::once(sigma).chain(mean).chain(path).chain(matrix).collect()
        }
    };
    state.iteration += 1;
}
