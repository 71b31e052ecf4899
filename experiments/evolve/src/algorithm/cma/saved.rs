//! The state of CMA-ES as a message.

use prost::Message as _;

use super::{
    covariance::Covariance,
    model::{Model, points_max},
    restart::{DOUBLINGS_MAX, Schedule},
    stop::{HISTORY_MAX, History},
    strategy::{Directions, Distribution, Strategy, directions_max},
};
use crate::messages::{CmaDirections, CmaRun, CmaState};

/// The run in a saved state.
type Saved = (Schedule, Distribution, History, Option<Model>);

/// The state after `births` evaluations. `run` is `None` if the search has ended.
pub(super) fn write(
    births: u64,
    run: Option<(&Schedule, &Distribution, &History, Option<&Model>)>,
    form: Covariance,
) -> Vec<u8> {
    let Some((schedule, distribution, history, model)) = run else {
        return CmaState { births, ended: true, ..Default::default() }.encode_to_vec();
    };
    let n = distribution.mean.len();
    let covariance = match form {
        Covariance::Separable | Covariance::Limited => distribution.covariance.clone(),
        Covariance::Full => (0..n).flat_map(|j| &distribution.covariance[j * n + j..(j + 1) * n]).copied().collect(),
    };
    let Schedule { run, doublings, lambda, sigma, small, began, limit, great_used, small_used, last_great } = *schedule;
    let lambda = lambda as u64;
    let run = CmaRun { run, doublings, lambda, sigma, small, began, limit, great_used, small_used, last_great };
    CmaState {
        births,
        ended: false,
        run: Some(run),
        generation: distribution.generation,
        sigma: distribution.sigma,
        mean: distribution.mean.clone(),
        path_sigma: distribution.path_sigma.clone(),
        path: distribution.path.clone(),
        covariance,
        axes: distribution.axes.clone(),
        scales: distribution.scales.clone(),
        decomposed: distribution.decomposed,
        best: history.best.clone(),
        median: history.median.clone(),
        shift: distribution.shift.clone(),
        trend: distribution.trend,
        stretched: distribution.stretched.clone(),
        points: model
            .iter()
            .flat_map(|model| model.points())
            .flat_map(|(point, value)| [point, &[value]].concat())
            .collect(),
        directions: (form == Covariance::Limited).then(|| {
            let Directions { most, stretches, since, sigma, variances, along } = distribution.directions.clone();
            CmaDirections { most: most as u64, stretches, since, sigma, variances, along }
        }),
    }
    .encode_to_vec()
}

/// The births and the run in a saved state, or a sentence that says what is wrong with the state. `strategy` makes the
/// strategy for a schedule; `first` is the population of the first run; `whole` says whether there are whole genes, and `modelled` whether
/// there is a model.
pub(super) fn read(
    state: &[u8],
    first: usize,
    (whole, modelled): (bool, bool),
    strategy: &dyn Fn(&Schedule) -> Strategy,
) -> Result<(u64, Option<Saved>), String> {
    let state = CmaState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
    let births = state.births;
    if state.ended {
        let empty = CmaState { births, ended: true, ..Default::default() };
        let fits = state == empty;
        return fits
            .then_some((births, None))
            .ok_or_else(|| "the search in the state has ended, but the state has a run".into());
    }
    let run = state.run.as_ref().ok_or("the state has no run")?;
    let schedule = schedule(run, first, births)?;
    let strategy = strategy(&schedule);
    let (n, diagonal) = (strategy.n, strategy.has_diagonal());
    let triangle = if diagonal { n } else { n * (n + 1) / 2 };
    let directions = directions(state.directions.as_ref(), &strategy, state.generation)?;
    let CmaState {
        mean,
        path_sigma,
        path,
        covariance,
        axes,
        scales,
        best,
        median,
        shift,
        trend,
        stretched,
        points,
        ..
    } = state;
    let lengths = [mean.len(), path_sigma.len(), path.len(), covariance.len(), axes.len(), scales.len()];
    if lengths != [n, n, n, triangle, strategy.axes() + n * directions.stretches.len(), n] {
        return Err(format!("the state does not have {n} coordinates"));
    }
    let two_points = strategy.two_points && state.generation > 0;
    if shift.len() != if two_points { n } else { 0 } || !(-1.0..=1.0).contains(&trend) || (!two_points && trend != 0.0)
    {
        return Err("the state's two points make no sense".into());
    }
    if best.len() != median.len() || best.len() > HISTORY_MAX || best.iter().chain(&median).any(|value| value.is_nan())
    {
        return Err("the state's history makes no sense".into());
    }
    let numbers = [&mean, &path_sigma, &path, &covariance, &axes, &scales, &shift];
    let finite = numbers.into_iter().flatten().all(|number| number.is_finite());
    if stretched.len() != if whole { n } else { 0 }
        || !stretched.iter().all(|factor| *factor > 0.0 && factor.is_finite())
    {
        return Err("the state's whole genes make no sense".into());
    }
    let model = model(&points, n, modelled && schedule.run == 0)?;
    let positive = state.sigma > 0.0 && state.sigma.is_finite() && scales.iter().all(|scale| *scale > 0.0);
    if !finite || !positive || state.decomposed > state.generation || state.generation > births {
        return Err("the state's distribution makes no sense".into());
    }
    let (generation, sigma, decomposed) = (state.generation, state.sigma, state.decomposed);
    let covariance = if diagonal { covariance } else { unpacked(&covariance, n) };
    let distribution = Distribution {
        generation,
        sigma,
        mean,
        path_sigma,
        path,
        covariance,
        axes,
        scales,
        decomposed,
        shift,
        trend,
        directions,
        stretched,
    };
    Ok((births, Some((schedule, distribution, History { best, median }, model))))
}

/// The model with these points, if there is a model: only the first run has one.
fn model(points: &[f64], n: usize, modelled: bool) -> Result<Option<Model>, String> {
    let sensible = || {
        let whole = points.len().is_multiple_of(n + 1) && points.len() / (n + 1) <= points_max(n);
        modelled && whole && points.iter().all(|number| number.is_finite())
    };
    if !(points.is_empty() || sensible()) {
        return Err("the state has points of a model that do not fit the settings".into());
    }
    Ok(modelled.then(|| Model::of(points.chunks_exact(n + 1).map(|one| (one[..n].to_vec(), one[n])))))
}

/// The directions of a limited matrix; empty for other forms.
fn directions(message: Option<&CmaDirections>, strategy: &Strategy, generation: u64) -> Result<Directions, String> {
    let Some(message) = message else {
        return match strategy.covariance {
            Covariance::Limited => Err("the state has no directions".into()),
            Covariance::Full | Covariance::Separable => Ok(Directions::default()),
        };
    };
    let CmaDirections { most, stretches, since, sigma, variances, along } = message.clone();
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let fits = strategy.covariance == Covariance::Limited
        && most <= directions_max(strategy.n)
        && stretches.len() <= most
        && along.len() == most
        && variances.len() == strategy.n;
    let sensible = stretches.iter().all(|stretch| *stretch > -1.0)
        && [sigma].iter().chain(&stretches).chain(&variances).chain(&along).all(|number| number.is_finite());
    match fits && sensible && since <= generation {
        true => Ok(Directions { most, stretches, since, sigma, variances, along }),
        false => Err("the state's directions make no sense".into()),
    }
}

/// The full matrix from its lower triangle. The upper triangle stays zero, because nothing reads it.
fn unpacked(triangle: &[f64], n: usize) -> Vec<f64> {
    let mut matrix = vec![0.0; n * n];
    let mut rest = triangle;
    for j in 0..n {
        let (column, others) = rest.split_at(n - j);
        matrix[j * n + j..(j + 1) * n].copy_from_slice(column);
        rest = others;
    }
    matrix
}

fn schedule(run: &CmaRun, first: usize, births: u64) -> Result<Schedule, String> {
    let CmaRun { run, doublings, lambda, sigma, small, began, limit, great_used, small_used, last_great } = *run;
    let counts = [run, began, great_used, small_used, last_great];
    let sensible = doublings <= DOUBLINGS_MAX && sigma > 0.0 && sigma.is_finite();
    let (first, greatest) = (first as u64, (first as u64).checked_shl(doublings));
    // The population of a small run lies between the first one and half of the last large one.
    let fits = greatest.is_some_and(|greatest| match small {
        true => (first..=first.max(greatest / 2)).contains(&lambda),
        false => lambda == greatest,
    });
    if !sensible || !fits || counts.iter().any(|count| *count > births) {
        return Err("the state's run makes no sense".into());
    }
    let lambda = lambda as usize;
    Ok(Schedule { run, doublings, lambda, sigma, small, began, limit, great_used, small_used, last_great })
}
