//! From settings to the algorithm that they describe.

use evoxo_common::{ratio::Ratio, rng::Stream};

use super::{
    algorithm::{
        Algorithm, Cma, CmaRestarts, CmaSettings, Ga, GaSettings, Islands, IslandsSettings, MapElites,
        MapElitesSettings, Most, Nsga2, Nsga2Settings, OpenAiEs, OpenAiEsSettings, Random, RandomSettings, Search,
        Steady, Windowed, windowed_most,
    },
    genome::{Candidate, Genome, Type},
    messages::Steps,
    settings::{
        AlgorithmName, CovarianceName, IntegerMutationName, OrderCrossoverName, OrderMutationName, RealMutationName,
        RestartsName, Settings, StringCrossoverName,
    },
    variation::{IntegerMutation, OrderCrossover, OrderMutation, RealMutation, StringCrossover, Variation},
    wrong::Wrong,
};

/// The most candidates of a front that are evaluated anew after a noisy search.
const CONFIRMED_FRONT_MAX: usize = 1000;

/// What cannot have a window.
const ISLANDS_WITH_WINDOW: &str = "islands have generations: take window = 0 or islands = 1";
const STRATEGY_WITH_WINDOW: &str = "cma-es and openai-es need whole generations: take window = 0, or another algorithm";

/// Whether there is such an algorithm for these settings, or why not. It looks at figures and starts nothing: tasks read their
/// settings with it, and a file is read before anybody knows what its run takes.
pub(super) fn check(settings: &Settings) -> Result<(), Wrong> {
    let strategy = matches!(settings.algorithm, AlgorithmName::Cma | AlgorithmName::OpenAiEs);
    if settings.islands > 1 && settings.algorithm != AlgorithmName::Ga {
        let sentence = "islands are of the genetic algorithm: take algorithm = \"ga\" or islands = 1";
        return Err(Wrong::new("islands", sentence));
    }
    if settings.window > 0 && settings.islands > 1 {
        return Err(Wrong::new("window", ISLANDS_WITH_WINDOW));
    }
    if settings.window > 0 && strategy {
        return Err(Wrong::new("window", STRATEGY_WITH_WINDOW));
    }
    match settings.algorithm {
        AlgorithmName::Random => random(settings).check(),
        AlgorithmName::Ga if settings.elite >= Ratio::ONE && settings.elite.denominator() != 1 => {
            let sentence =
                format!("elite is {}, but it must be a whole number, or a share below 1", settings.elite.to_f64());
            Err(Wrong::new("elite", sentence))
        }
        AlgorithmName::Ga if settings.islands > 1 => islands(settings).check(),
        AlgorithmName::Ga => ga(settings).check(),
        AlgorithmName::Cma => cma(settings).check(&settings.genome()),
        AlgorithmName::OpenAiEs => openai_es(settings).check(&settings.genome()),
        AlgorithmName::Nsga2 => nsga2(settings).check(),
        AlgorithmName::MapElites => map_elites(settings).check(),
    }
}

/// What is searched, with the random numbers of this stream.
pub(super) fn search(settings: &Settings, stream: Stream) -> Search {
    Search { genome: settings.genome(), evaluations: settings.evaluations, stream }
}

/// The candidates of openai-es with these numbers, made of what a task has of its search.
pub(super) fn made(
    settings: &Settings,
    steps: &Steps,
    numbers: impl IntoIterator<Item = u64>,
) -> Result<Vec<Candidate>, String> {
    let search = search(settings, Stream::from_words(steps.stream_high, steps.stream_low));
    OpenAiEs::candidates(openai_es(settings).sigma, &search, &steps.mean, numbers)
}

/// The algorithm at its beginning, or from its saved state.
pub(super) fn algorithm(
    settings: &Settings,
    search: Search,
    state: Option<&[u8]>,
) -> Result<Box<dyn Algorithm>, String> {
    if settings.window > 0 {
        return Ok(Box::new(windowed(settings, search, state)?));
    }
    Ok(match (settings.algorithm, state) {
        (AlgorithmName::Random, None) => Box::new(Random::start(&random(settings), search)?),
        (AlgorithmName::Random, Some(state)) => Box::new(Random::restore(&random(settings), search, state)?),
        (AlgorithmName::Ga, None) if settings.islands > 1 => Box::new(Islands::start(&islands(settings), &search)?),
        (AlgorithmName::Ga, Some(state)) if settings.islands > 1 => {
            Box::new(Islands::restore(&islands(settings), &search, state)?)
        }
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

/// The algorithm with a window, at its beginning or from its saved state.
fn windowed(settings: &Settings, search: Search, state: Option<&[u8]>) -> Result<Windowed, String> {
    let own = search.clone();
    let steady = |state: Option<&[u8]>| -> Result<Box<dyn Steady>, String> {
        Ok(match (settings.algorithm, state) {
            (AlgorithmName::Random, None) => Box::new(Random::start(&random(settings), own)?),
            (AlgorithmName::Random, Some(state)) => Box::new(Random::restore(&random(settings), own, state)?),
            (AlgorithmName::Ga, _) if settings.islands > 1 => {
                return Err(ISLANDS_WITH_WINDOW.into());
            }
            (AlgorithmName::Ga, None) => Box::new(Ga::start(&ga(settings), own)?),
            (AlgorithmName::Ga, Some(state)) => Box::new(Ga::restore(&ga(settings), own, state)?),
            (AlgorithmName::Nsga2, None) => Box::new(Nsga2::start(&nsga2(settings), own)?),
            (AlgorithmName::Nsga2, Some(state)) => Box::new(Nsga2::restore(&nsga2(settings), own, state)?),
            (AlgorithmName::MapElites, None) => Box::new(MapElites::start(&map_elites(settings), own)?),
            (AlgorithmName::MapElites, Some(state)) => Box::new(MapElites::restore(&map_elites(settings), own, state)?),
            (AlgorithmName::Cma | AlgorithmName::OpenAiEs, _) => {
                return Err(STRATEGY_WITH_WINDOW.into());
            }
        })
    };
    match state {
        None => Windowed::start(steady(None)?, search, settings.window),
        Some(state) => Windowed::restore(|own| steady(Some(own)), search, settings.window, state),
    }
}

/// What the algorithm needs at most.
pub(super) fn most(settings: &Settings, genome: &Genome) -> Most {
    let own = most_of_algorithm(settings, genome);
    if settings.window > 0 { windowed_most(own, settings.window, genome) } else { own }
}

fn most_of_algorithm(settings: &Settings, genome: &Genome) -> Most {
    let numbers = settings.counts().iter().sum::<usize>() as u64;
    match settings.algorithm {
        AlgorithmName::Random => random(settings).most(),
        AlgorithmName::Ga if settings.islands > 1 => islands(settings).most(genome, numbers),
        AlgorithmName::Ga => ga(settings).most(genome, numbers),
        AlgorithmName::Cma => cma(settings).most(genome, settings.evaluations),
        AlgorithmName::OpenAiEs => openai_es(settings).most(genome),
        AlgorithmName::Nsga2 => nsga2(settings).most(genome, numbers),
        AlgorithmName::MapElites => map_elites(settings).most(genome, numbers),
    }
}

/// The most rounds of a replica: batches, and the two stages after a noisy search. With a window each candidate is a round.
pub(super) fn rounds_most(settings: &Settings) -> u64 {
    let stages = match (settings.is_noisy(), settings.window) {
        (false, _) => 0,
        (true, 0) => 2,
        // Of several objectives all finalists may be chosen.
        (true, _) => 2 * confirmed_most(settings),
    };
    stages + batches_most(settings)
}

/// The most evaluations of a stage after a noisy search.
pub(super) fn confirmed_most(settings: &Settings) -> u64 {
    let finalists = match settings.objectives().len() {
        0 | 1 => 2 * settings.finalists + 1,
        _ => confirmed_front(settings),
    };
    (finalists * settings.confirmations) as u64
}

/// The most candidates of the front of a search with these settings that are evaluated anew.
pub(super) fn confirmed_front(settings: &Settings) -> usize {
    nsga2(settings).population.min(CONFIRMED_FRONT_MAX)
}

fn batches_most(settings: &Settings) -> u64 {
    let evaluations = settings.evaluations;
    if settings.window > 0 {
        return evaluations;
    }
    match settings.algorithm {
        AlgorithmName::Random => evaluations.div_ceil(random(settings).batch as u64),
        AlgorithmName::Ga => {
            let ga = ga(settings);
            let evaluations = evaluations.div_ceil(settings.islands as u64);
            1 + evaluations.saturating_sub(ga.population as u64).div_ceil(ga.generation().max(1) as u64)
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
    MapElitesSettings {
        grid: settings.axes(),
        centroids: settings.centroids,
        batch: population(settings, default.batch),
        initial: settings.initial,
        iso: settings.iso.to_f64(),
        line: settings.line.to_f64(),
        variation: variation(settings),
    }
}

fn islands(settings: &Settings) -> IslandsSettings {
    IslandsSettings {
        ga: ga(settings),
        islands: settings.islands,
        interval: settings.migration,
        migrants: settings.migrants,
    }
}

/// The genetic algorithm, or that of each island.
fn ga(settings: &Settings) -> GaSettings {
    let population = population(settings, GaSettings::default().population) / settings.islands;
    let (most, least) = (settings.elite.numerator().unsigned_abs(), settings.elite.denominator().unsigned_abs());
    GaSettings {
        population,
        // Below 1 it is a share.
        elite: (if most < least { population as u64 * most / least } else { most / least }) as usize,
        reevaluate: settings.is_noisy(),
        tournament: settings.tournament,
        variation: variation(settings),
    }
}

/// The operators. One that no part of the genome needs is the usual one, whatever its figures.
fn variation(settings: &Settings) -> Variation {
    let (share, usual, genome) = (Ratio::to_f64, Variation::default(), settings.genome());
    let has = |needs: fn(Type) -> bool| genome.parts.iter().any(|part| needs(part.of));
    let has_reals = has(|of| matches!(of, Type::Real { .. }));
    let has_integers = has(|of| matches!(of, Type::Integer { .. }));
    Variation {
        crossover: share(settings.crossover),
        mutations: share(settings.mutations),
        crossover_eta: share(settings.crossover_eta),
        real_mutation: match settings.real_mutation {
            _ if !has_reals => usual.real_mutation,
            RealMutationName::Polynomial => RealMutation::Polynomial { eta: share(settings.mutation_eta) },
            RealMutationName::Gaussian => RealMutation::Gaussian { deviation: share(settings.deviation) },
        },
        integer_mutation: match settings.integer_mutation {
            _ if !has_integers => usual.integer_mutation,
            IntegerMutationName::Step => IntegerMutation::Step { mean: share(settings.deviation) },
            IntegerMutationName::Redraw => IntegerMutation::Redraw,
            IntegerMutationName::Harmonic => IntegerMutation::Harmonic,
        },
        string_crossover: match settings.string_crossover {
            StringCrossoverName::Uniform => StringCrossover::Uniform,
            StringCrossoverName::OnePoint => StringCrossover::OnePoint,
            StringCrossoverName::TwoPoint => StringCrossover::TwoPoint,
        },
        order_crossover: match settings.order_crossover {
            OrderCrossoverName::Order => OrderCrossover::Order,
            OrderCrossoverName::Edge => OrderCrossover::Edge,
            OrderCrossoverName::Mixed => OrderCrossover::Mixed,
        },
        order_mutation: match settings.order_mutation {
            OrderMutationName::Swap => OrderMutation::Swap,
            OrderMutationName::Inversion => OrderMutation::Inversion,
            OrderMutationName::Insertion => OrderMutation::Insertion,
            OrderMutationName::Mixed => OrderMutation::Mixed,
        },
        order_rate: share(settings.order_rate),
    }
}
