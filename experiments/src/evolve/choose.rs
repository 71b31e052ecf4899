//! From settings to the algorithm that they describe.

use evoxo_common::ratio::Ratio;

use super::{
    algorithm::{Algorithm, Cma, CmaRestarts, CmaSettings, Ga, GaSettings, Most, Random, RandomSettings, Search},
    genome::Genome,
    settings::{
        AlgorithmName, CovarianceName, IntegerMutationName, OrderCrossoverName, OrderMutationName, RealMutationName,
        RestartsName, Settings, StringCrossoverName,
    },
    variation::{IntegerMutation, OrderCrossover, OrderMutation, RealMutation, StringCrossover, Variation},
};

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
    })
}

/// What the algorithm needs at most.
pub(super) fn most(settings: &Settings, genome: &Genome) -> Most {
    let numbers = (settings.objectives().len() + settings.constraint_count() + settings.measures) as u64;
    match settings.algorithm {
        AlgorithmName::Random => random(settings).most(),
        AlgorithmName::Ga => ga(settings).most(genome, numbers),
        AlgorithmName::Cma => cma(settings).most(genome, settings.evaluations),
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
        sigma: settings.sigma.to_f64(),
        separable: settings.covariance == CovarianceName::Separable,
        restarts: match settings.restarts {
            RestartsName::None => CmaRestarts::None,
            RestartsName::Ipop => CmaRestarts::Ipop,
            RestartsName::Bipop => CmaRestarts::Bipop,
        },
        ..CmaSettings::default()
    }
}

fn ga(settings: &Settings) -> GaSettings {
    let share = Ratio::to_f64;
    let population = population(settings, GaSettings::default().population);
    GaSettings {
        population,
        elite: settings.elite,
        tournament: settings.tournament,
        variation: Variation {
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
            ..Variation::default()
        },
    }
}
