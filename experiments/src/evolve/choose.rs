//! From settings to the algorithm that they describe.

use evoxo_common::{ratio::Ratio, rng::Stream};

use super::{
    algorithm::{
        Algorithm, Axis, Cma, CmaRestarts, CmaSettings, Ga, GaSettings, MapElites, MapElitesSettings, Most, Nsga2,
        Nsga2Settings, OpenAiEs, OpenAiEsSettings, Random, RandomSettings, Search,
    },
    genome::Genome,
    settings::{
        AlgorithmName, CovarianceName, IntegerMutationName, OrderCrossoverName, OrderMutationName, RealMutationName,
        RestartsName, Settings, StringCrossoverName,
    },
    variation::{IntegerMutation, OrderCrossover, OrderMutation, RealMutation, StringCrossover, Variation},
};

/// Cells of each measure of a built-in problem.
const OWN_CELLS: usize = 20;

/// Whether there is such an algorithm for these settings, or why not.
pub(super) fn check(settings: &Settings) -> Result<(), String> {
    algorithm(settings, search(settings, Stream::root(0)), None).map(drop)
}

/// What is searched, with the random numbers of this stream.
pub(super) fn search(settings: &Settings, stream: Stream) -> Search {
    Search { genome: settings.genome(), evaluations: settings.evaluations, stream }
}

/// The algorithm at its beginning, or from its saved state.
pub(super) fn algorithm(
    settings: &Settings,
    search: Search,
    state: Option<&[u8]>,
) -> Result<Box<dyn Algorithm>, String> {
    Ok(match (settings.algorithm, state) {
        (AlgorithmName::Random, None) => Box::new(Random::start(&random(settings), search)?),
        (AlgorithmName::Random, Some(state)) => Box::new(Random::restore(&random(settings), search, state)?),
        (AlgorithmName::Ga, None) => Box::new(Ga::start(&ga(settings), search)?),
        (AlgorithmName::Ga, Some(state)) => Box::new(Ga::restore(&ga(settings), search, state)?),
        (AlgorithmName::Cma, None) => Box::new(Cma::start(&cma(settings), search)?),
        (AlgorithmName::Cma, Some(state)) => Box::new(Cma::restore(&cma(settings), search, state)?),
        (AlgorithmName::OpenAiEs, None) => Box::new(OpenAiEs::start(&openai_es(settings), search)?),
        (AlgorithmName::OpenAiEs, Some(state)) => Box::new(OpenAiEs::restore(&openai_es(settings), search, state)?),
        (AlgorithmName::Nsga2, None) => Box::new(Nsga2::start(&nsga2(settings), search)?),
        (AlgorithmName::Nsga2, Some(state)) => Box::new(Nsga2::restore(&nsga2(settings), search, state)?),
        (AlgorithmName::MapElites, None) => Box::new(MapElites::start(&map_elites(settings), search)?),
        (AlgorithmName::MapElites, Some(state)) => Box::new(MapElites::restore(&map_elites(settings), search, state)?),
    })
}

/// What the algorithm needs at most.
pub(super) fn most(settings: &Settings, genome: &Genome) -> Most {
    let numbers = (settings.objectives().len() + settings.constraint_count() + settings.measure_count()) as u64;
    match settings.algorithm {
        AlgorithmName::Random => random(settings).most(),
        AlgorithmName::Ga => ga(settings).most(genome, numbers),
        AlgorithmName::Cma => cma(settings).most(genome, settings.evaluations),
        AlgorithmName::OpenAiEs => openai_es(settings).most(genome),
        AlgorithmName::Nsga2 => nsga2(settings).most(genome, numbers),
        AlgorithmName::MapElites => map_elites(settings).most(genome, numbers),
    }
}

/// The most batches of a search.
pub(super) fn batches_most(settings: &Settings) -> u64 {
    let evaluations = settings.evaluations;
    match settings.algorithm {
        AlgorithmName::Random => evaluations.div_ceil(random(settings).batch as u64),
        AlgorithmName::Ga => {
            let GaSettings { population, elite, .. } = ga(settings);
            1 + evaluations.saturating_sub(population as u64).div_ceil((population - elite).max(1) as u64)
        }
        AlgorithmName::Cma => evaluations.div_ceil(cma(settings).lambda(&settings.genome()) as u64),
        AlgorithmName::OpenAiEs => evaluations.div_ceil(2 * openai_es(settings).pairs as u64),
        AlgorithmName::Nsga2 => evaluations.div_ceil(nsga2(settings).population as u64),
        AlgorithmName::MapElites => {
            let MapElitesSettings { batch, initial, .. } = map_elites(settings);
            1 + evaluations.saturating_sub(initial as u64).div_ceil(batch as u64)
        }
    }
}

fn population(settings: &Settings, default: usize) -> usize {
    if settings.population == 0 { default } else { settings.population }
}

fn random(settings: &Settings) -> RandomSettings {
    RandomSettings { batch: population(settings, RandomSettings::default().batch) }
}

fn cma(settings: &Settings) -> CmaSettings {
    CmaSettings {
        population: (settings.population > 0).then_some(settings.population),
        sigma: above_zero(settings.sigma, CmaSettings::default().sigma),
        separable: settings.covariance == CovarianceName::Separable,
        restarts: match settings.restarts {
            RestartsName::None => CmaRestarts::None,
            RestartsName::Ipop => CmaRestarts::Ipop,
            RestartsName::Bipop => CmaRestarts::Bipop,
        },
        ..CmaSettings::default()
    }
}

/// The number, or the algorithm's own if it is 0.
fn above_zero(number: Ratio, default: f64) -> f64 {
    if number == Ratio::ZERO { default } else { number.to_f64() }
}

fn openai_es(settings: &Settings) -> OpenAiEsSettings {
    let default = OpenAiEsSettings::default();
    OpenAiEsSettings {
        pairs: population(settings, 2 * default.pairs).div_ceil(2),
        sigma: above_zero(settings.sigma, default.sigma),
        rate: settings.rate.to_f64(),
        ..default
    }
}

fn nsga2(settings: &Settings) -> Nsga2Settings {
    let population = population(settings, Nsga2Settings::default().population);
    Nsga2Settings { population, variation: variation(settings) }
}

fn map_elites(settings: &Settings) -> MapElitesSettings {
    let default = MapElitesSettings::default();
    let given = settings.grid.0.iter().map(|axis| (axis.low.to_f64(), axis.high.to_f64(), axis.cells));
    let own = settings.built_in().filter(|_| settings.grid.0.is_empty()).map_or(&[][..], |problem| problem.measures);
    let own = own.iter().map(|measure| (measure.low, measure.high, OWN_CELLS));
    MapElitesSettings {
        grid: given.chain(own).map(|(low, high, cells)| Axis { low, high, cells }).collect(),
        batch: population(settings, default.batch),
        initial: settings.initial,
        iso: settings.iso.to_f64(),
        line: settings.line.to_f64(),
        variation: variation(settings),
    }
}

fn ga(settings: &Settings) -> GaSettings {
    GaSettings {
        population: population(settings, GaSettings::default().population),
        elite: settings.elite,
        tournament: settings.tournament,
        variation: variation(settings),
    }
}

fn variation(settings: &Settings) -> Variation {
    let share = Ratio::to_f64;
    Variation {
        crossover: share(settings.crossover),
        mutations: share(settings.mutations),
        crossover_eta: share(settings.crossover_eta),
        real_mutation: match settings.real_mutation {
            RealMutationName::Polynomial => RealMutation::Polynomial { eta: share(settings.mutation_eta) },
            RealMutationName::Gaussian => RealMutation::Gaussian { deviation: share(settings.deviation) },
        },
        integer_mutation: match settings.integer_mutation {
            IntegerMutationName::Step => IntegerMutation::Step { mean: share(settings.deviation) },
            IntegerMutationName::Redraw => IntegerMutation::Redraw,
        },
        string_crossover: match settings.string_crossover {
            StringCrossoverName::Uniform => StringCrossover::Uniform,
            StringCrossoverName::OnePoint => StringCrossover::OnePoint,
            StringCrossoverName::TwoPoint => StringCrossover::TwoPoint,
        },
        order_crossover: match settings.order_crossover {
            OrderCrossoverName::Order => OrderCrossover::Order,
            OrderCrossoverName::Edge => OrderCrossover::Edge,
        },
        order_mutation: match settings.order_mutation {
            OrderMutationName::Swap => OrderMutation::Swap,
            OrderMutationName::Inversion => OrderMutation::Inversion,
            OrderMutationName::Insertion => OrderMutation::Insertion,
        },
        order_rate: share(settings.order_rate),
    }
}
