//! Tests of what every algorithm promises, and of how good the candidates are that each finds.

use super::*;
use crate::{
    genome::{Genes, Part as GenomePart, Type},
    problem::{self, Problem},
};

/// A search for a built-in problem.
pub(super) fn search(problem: &Problem, length: usize, evaluations: u64) -> Search {
    let stream = Stream::root(1).text("evolve").text(problem.name);
    Search { genome: (problem.genome)(length), evaluations, start: Vec::new(), stream }
}

/// MAP-Elites with a grid of `cells` cells for each measure of a problem.
pub(super) fn grid(problem: &Problem, cells: usize) -> MapElitesSettings {
    let axis = |measure: &problem::Measure| Axis { low: measure.low, high: measure.high, cells };
    MapElitesSettings { grid: problem.measures.iter().map(axis).collect(), ..MapElitesSettings::default() }
}

/// The candidates whose evaluations the algorithm gets next.
pub(crate) fn next(algorithm: &dyn Algorithm) -> Vec<Candidate> {
    algorithm.ask(0..if algorithm.has_barrier() { algorithm.size() } else { algorithm.size().min(1) })
}

/// The evaluations of the next candidates.
pub(super) fn evaluate(algorithm: &dyn Algorithm, problem: &Problem) -> Vec<Evaluation> {
    next(algorithm).iter().map(|candidate| problem.minimised(candidate)).collect()
}

/// Runs an algorithm to its end and returns the best evaluation, by the first objective.
pub(super) fn minimise(algorithm: &mut dyn Algorithm, problem: &Problem) -> Evaluation {
    let mut best = Evaluation { failed: true, ..Default::default() };
    while algorithm.size() > 0 {
        let evaluations = evaluate(algorithm, problem);
        best = evaluations.iter().fold(best, |best, one| if one.better(&best) { one.clone() } else { best });
        algorithm.tell(&evaluations);
    }
    best
}

/// Starts an algorithm, or restores it from a state.
type Make = fn(Search, Option<&[u8]>) -> Result<Box<dyn Algorithm>, String>;

/// The algorithms, each with a problem and a length.
const ALL: [(&str, &str, usize, Make); 21] = [
    ("random", "rastrigin", 5, |search, state| {
        let settings = RandomSettings { batch: 30, kept: 0 };
        Ok(match state {
            None => Box::new(Random::start(&settings, search)?),
            Some(state) => Box::new(Random::restore(&settings, search, state)?),
        })
    }),
    ("random-front", "zdt1", 4, |search, state| {
        let settings = RandomSettings { batch: 30, kept: 20 };
        Ok(match state {
            None => Box::new(Random::start(&settings, search)?),
            Some(state) => Box::new(Random::restore(&settings, search, state)?),
        })
    }),
    ("ga", "tsp", 12, |search, state| {
        let settings = GaSettings { population: 20, elite: 2, ..GaSettings::default() };
        Ok(match state {
            None => Box::new(Ga::start(&settings, search)?),
            Some(state) => Box::new(Ga::restore(&settings, search, state)?),
        })
    }),
    ("restricted-ga", "nk", 24, |search, state| {
        let settings = GaSettings { population: 20, elite: 8, restricted: true, ..GaSettings::default() };
        Ok(match state {
            None => Box::new(Ga::start(&settings, search)?),
            Some(state) => Box::new(Ga::restore(&settings, search, state)?),
        })
    }),
    ("cma", "rosenbrock", 4, |search, state| {
        Ok(match state {
            None => Box::new(Cma::start(&CmaSettings::default(), search)?),
            Some(state) => Box::new(Cma::restore(&CmaSettings::default(), search, state)?),
        })
    }),
    ("separable-cma", "g06", 2, |search, state| {
        let settings = CmaSettings {
            covariance: CmaCovariance::Separable,
            restarts: CmaRestarts::Ipop,
            population: Some(5),
            ..CmaSettings::default()
        };
        Ok(match state {
            None => Box::new(Cma::start(&settings, search)?),
            Some(state) => Box::new(Cma::restore(&settings, search, state)?),
        })
    }),
    ("two-point-cma", "sphere", 100, |search, state| {
        let settings =
            CmaSettings { covariance: CmaCovariance::Separable, population: Some(12), ..CmaSettings::default() };
        Ok(match state {
            None => Box::new(Cma::start(&settings, search)?),
            Some(state) => Box::new(Cma::restore(&settings, search, state)?),
        })
    }),
    ("limited-cma", "rosenbrock", 5, |search, state| {
        let settings = CmaSettings { covariance: CmaCovariance::Limited, ..CmaSettings::default() };
        Ok(match state {
            None => Box::new(Cma::start(&settings, search)?),
            Some(state) => Box::new(Cma::restore(&settings, search, state)?),
        })
    }),
    ("modelled-cma", "rosenbrock", 4, |search, state| {
        let settings = CmaSettings { model: true, ..CmaSettings::default() };
        Ok(match state {
            None => Box::new(Cma::start(&settings, search)?),
            Some(state) => Box::new(Cma::restore(&settings, search, state)?),
        })
    }),
    ("cma-of-bits", "onemax", 12, |search, state| {
        Ok(match state {
            None => Box::new(Cma::start(&CmaSettings::default(), search)?),
            Some(state) => Box::new(Cma::restore(&CmaSettings::default(), search, state)?),
        })
    }),
    ("averaged-cma", "rosenbrock", 4, |search, state| {
        let (settings, own) = (CmaSettings::default(), search.clone());
        let noise = Noise { common: usize::MAX, draws: 5 };
        Ok(Box::new(match state {
            None => Averaged::start(Box::new(Cma::start(&settings, own)?), search, noise),
            Some(state) => {
                let cma = |state: &[u8]| -> Result<Box<dyn Algorithm>, String> {
                    Ok(Box::new(Cma::restore(&settings, own, state)?))
                };
                Averaged::restore(cma, search, noise, state)?
            }
        }))
    }),
    ("nsga2", "zdt1", 4, |search, state| {
        let settings = Nsga2Settings { population: 20, ..Nsga2Settings::default() };
        Ok(match state {
            None => Box::new(Nsga2::start(&settings, search)?),
            Some(state) => Box::new(Nsga2::restore(&settings, search, state)?),
        })
    }),
    ("nsga3", "dtlz2", 4, |search, state| {
        let settings = Nsga3Settings { population: 20, ..Nsga3Settings::of(3) };
        Ok(match state {
            None => Box::new(Nsga3::start(&settings, search)?),
            Some(state) => Box::new(Nsga3::restore(&settings, search, state)?),
        })
    }),
    ("sms-emoa", "zdt1", 4, |search, state| {
        let settings = Nsga2Settings { population: 20, ..Nsga2Settings::default() };
        Ok(match state {
            None => Box::new(SmsEmoa::start(&settings, search)?),
            Some(state) => Box::new(SmsEmoa::restore(&settings, search, state)?),
        })
    }),
    ("map-elites", "arm", 3, |search, state| {
        let settings = MapElitesSettings { batch: 20, ..grid(problem::find("arm").unwrap(), 6) };
        Ok(match state {
            None => Box::new(MapElites::start(&settings, search)?),
            Some(state) => Box::new(MapElites::restore(&settings, search, state)?),
        })
    }),
    ("islands", "onemax", 16, |search, state| {
        let ga = GaSettings { population: 10, elite: 5, ..GaSettings::default() };
        let settings = IslandsSettings { ga, islands: 3, interval: 2, migrants: 2 };
        Ok(match state {
            None => Box::new(Islands::start(&settings, &search)?),
            Some(state) => Box::new(Islands::restore(&settings, &search, state)?),
        })
    }),
    ("windowed", "sphere", 3, |search, state| {
        let settings = GaSettings { population: 20, elite: 10, ..GaSettings::default() };
        let own = search.clone();
        Ok(Box::new(match state {
            None => Windowed::start(Box::new(Ga::start(&settings, own)?), search, 7)?,
            Some(state) => {
                let ga = |state: &[u8]| -> Result<Box<dyn Steady>, String> {
                    Ok(Box::new(Ga::restore(&settings, own, state)?))
                };
                Windowed::restore(ga, search, 7, state)?
            }
        }))
    }),
    ("l-shade", "rosenbrock", 4, |search, state| {
        let settings = LShadeSettings { population: 30, reevaluate: false };
        Ok(match state {
            None => Box::new(LShade::start(&settings, search)?),
            Some(state) => Box::new(LShade::restore(&settings, search, state)?),
        })
    }),
    ("pso", "rosenbrock", 4, |search, state| {
        let settings = PsoSettings { population: 30, ..PsoSettings::default() };
        Ok(match state {
            None => Box::new(Pso::start(&settings, search)?),
            Some(state) => Box::new(Pso::restore(&settings, search, state)?),
        })
    }),
    ("cma-mae", "arm", 3, |search, state| {
        let axes = grid(problem::find("arm").unwrap(), 6).grid;
        let settings = CmaMaeSettings { emitters: 3, initial: 20, ..CmaMaeSettings::of(axes) };
        Ok(match state {
            None => Box::new(CmaMae::start(&settings, search)?),
            Some(state) => Box::new(CmaMae::restore(&settings, search, state)?),
        })
    }),
    ("openai-es", "rosenbrock", 4, |search, state| {
        let settings = OpenAiEsSettings { pairs: 8, ..OpenAiEsSettings::default() };
        Ok(match state {
            None => Box::new(OpenAiEs::start(&settings, search)?),
            Some(state) => Box::new(OpenAiEs::restore(&settings, search, state)?),
        })
    }),
];

/// The algorithms whose candidates have parents, each with its name and its problem.
pub(crate) fn with_parents() -> Vec<(&'static str, Box<dyn Algorithm>, &'static Problem)> {
    let named = ["ga", "restricted-ga", "nsga2", "nsga3", "sms-emoa", "map-elites", "islands", "windowed"];
    let start = |(name, problem, length, make): (&'static str, &str, usize, Make)| {
        let problem = problem::find(problem).unwrap();
        (name, make(search(problem, length, 600), None).unwrap(), problem)
    };
    ALL.into_iter().filter(|(name, ..)| named.contains(name)).map(start).collect()
}

/// The candidates of the whole search, batch by batch. `act` may replace the algorithm before each batch.
fn history(
    problem: &Problem,
    mut algorithm: Box<dyn Algorithm>,
    mut act: impl FnMut(Box<dyn Algorithm>) -> Box<dyn Algorithm>,
) -> Vec<Candidate> {
    let mut all = Vec::new();
    while algorithm.size() > 0 {
        algorithm = act(algorithm);
        all.extend(next(&*algorithm));
        let evaluations = evaluate(&*algorithm, problem);
        algorithm.tell(&evaluations);
    }
    all
}

#[test]
fn a_search_does_not_depend_on_when_it_is_saved() {
    for (name, problem, length, make) in ALL {
        let problem = problem::find(problem).unwrap();
        let search = search(problem, length, 333);
        let straight = history(problem, make(search.clone(), None).unwrap(), |algorithm| algorithm);
        let restored = history(problem, make(search.clone(), None).unwrap(), |algorithm| {
            let again = make(search.clone(), Some(&algorithm.save())).unwrap();
            assert_eq!((again.size(), again.save()), (algorithm.size(), algorithm.save()), "{name}");
            again
        });
        assert_eq!(straight.len(), 333, "{name}");
        assert!(straight == restored, "{name}");
        assert!(straight.iter().all(|candidate| search.genome.check(candidate) == Ok(())), "{name}");
    }
}

#[test]
fn candidates_do_not_depend_on_the_requested_ranges() {
    for (name, problem, length, make) in ALL {
        let problem = problem::find(problem).unwrap();
        let mut algorithm = make(search(problem, length, 100), None).unwrap();
        while algorithm.size() > 0 {
            let size = algorithm.size();
            let whole = algorithm.ask(0..size);
            let pieces: Vec<Candidate> = (0..size)
                .step_by(7)
                .rev()
                .map(|from| algorithm.ask(from..(from + 7).min(size)))
                .rev()
                .flatten()
                .collect();
            assert_eq!(pieces, whole, "{name}");
            assert!(algorithm.ask(size..size).is_empty());
            let evaluations = evaluate(&*algorithm, problem);
            algorithm.tell(&evaluations);
        }
    }
}

/// The first population has the given candidates, and random ones if there is room for more. A distribution begins around the
/// first one.
#[test]
fn a_search_begins_with_given_candidates() {
    for (name, problem, length, make) in ALL {
        let random = search(problem::find(problem).unwrap(), length, 100);
        let start: Vec<Candidate> = (0..2).map(|seed| random.genome.random(&mut Stream::root(seed).rng())).collect();
        let begun = make(Search { start: start.clone(), ..random.clone() }, None).unwrap();
        let first = begun.ask(0..begun.size());
        match begun.mean() {
            Some(mean) => {
                let apart = random.genome.distance(&mean, &start[0]);
                assert!(apart < 1e-12 * length as f64, "{name}: {apart}");
            }
            None => {
                assert!(start.iter().all(|one| first.contains(one)), "{name}");
                let others = make(random, None).unwrap().ask(0..begun.size());
                assert_eq!(first.iter().filter(|one| others.contains(one)).count(), others.len() - 2, "{name}");
            }
        }
    }
}

#[test]
fn the_hundredth_candidate_is_pinned() {
    for (name, problem, length, make) in ALL {
        let problem = problem::find(problem).unwrap();
        let algorithm = make(search(problem, length, 120), None).unwrap();
        let candidate = &history(problem, algorithm, |algorithm| algorithm)[99];
        let text = match &candidate.parts[0] {
            crate::genome::Genes::Real(genes) => {
                format!("{genes:?}\n{:016x?}", genes.iter().map(|gene| gene.to_bits()).collect::<Vec<u64>>())
            }
            genes => format!("{genes:?}"),
        };
        insta::assert_snapshot!(name, text);
    }
}

/// Each byte of a state is changed, and the state is cut at each place. Either the algorithm rejects it, or the search goes
/// on and every candidate still belongs to the genome.
#[test]
fn damaged_states_are_rejected_or_harmless() {
    for (name, problem, length, make) in ALL {
        let problem = problem::find(problem).unwrap();
        let search = search(problem, length, 150);
        let mut algorithm = make(search.clone(), None).unwrap();
        for _ in 0..2 {
            let evaluations = evaluate(&*algorithm, problem);
            algorithm.tell(&evaluations);
        }
        let state = algorithm.save();
        let (mut refused, step) = (0, state.len().div_ceil(300));
        for at in (0..state.len()).step_by(step) {
            let changed = [0x00, 0x7f, 0x80, 0xff, state[at] ^ 1, state[at] ^ 0x40].map(|byte| {
                let mut bytes = state.clone();
                bytes[at] = byte;
                bytes
            });
            for bytes in changed.into_iter().chain([state[..at].to_vec()]) {
                let Ok(mut algorithm) = make(search.clone(), Some(&bytes)) else {
                    refused += 1;
                    continue;
                };
                for _ in 0..3 {
                    let candidates = next(&*algorithm);
                    assert!(candidates.iter().all(|candidate| search.genome.check(candidate) == Ok(())), "{name}");
                    let evaluations: Vec<Evaluation> = candidates.iter().map(|one| problem.minimised(one)).collect();
                    algorithm.tell(&evaluations);
                }
            }
        }
        assert!(refused > 0, "{name}");
    }
}

/// Genes whose bounds are equal keep their value, whatever algorithm searches the others.
#[test]
fn fixed_genes_never_change() {
    let part = |length, of| GenomePart { name: "x".into(), length, of };
    let fixed = [part(2, Type::Real { low: -2.5, high: -2.5 }), part(1, Type::Integer { low: 7, high: 7 })];
    let genome =
        Genome { parts: [&fixed[..], &[part(3, Type::Real { low: -1.0, high: 3.0 })]].concat(), bounded: true };
    let own = SETTINGS.defaults();
    for kind in ALGORITHMS.iter().filter(|kind| !kind.asks) {
        let with = |objectives: usize| Given {
            own: &own,
            genome: genome.clone(),
            evaluations: 2000,
            population: Some(20),
            window: 0,
            noisy: false,
            objectives,
            numbers: 3,
            grid: vec![Axis { low: -1.0, high: 3.0, cells: 10 }],
            worthless: None,
            start: Vec::new(),
        };
        // Some algorithms need several objectives; then they are all the same.
        let given = [1, 2].map(with).into_iter().find(|given| kind.check_all(given) == Ok(()));
        let given = given.unwrap_or_else(|| panic!("{kind:?} searches neither one objective nor two"));
        let mut algorithm = kind.begin(&given, given.search(Stream::root(1)), None).unwrap();
        let mut best = f64::INFINITY;
        while algorithm.size() > 0 {
            let candidates = algorithm.ask(0..algorithm.size());
            let evaluation = |candidate: &Candidate| {
                assert_eq!(candidate.parts[..2], [Genes::Real(vec![-2.5; 2]), Genes::Integer(vec![7])], "{kind:?}");
                let Genes::Real(genes) = &candidate.parts[2] else { unreachable!() };
                let cost: f64 = genes.iter().map(|gene| (gene - 0.5) * (gene - 0.5)).sum();
                Evaluation { objectives: vec![cost; given.objectives], measures: vec![genes[0]], ..Default::default() }
            };
            let evaluations: Vec<Evaluation> = candidates.iter().map(evaluation).collect();
            best = evaluations.iter().fold(best, |best, one| one.objective(0).min(best));
            algorithm.tell(&evaluations);
        }
        assert!(best < 0.5, "{kind:?}: {best}");
    }
}

/// Every third candidate fails, every fourth has NaN as its objective, and the others break a constraint.
#[test]
fn searches_continue_without_any_valid_evaluation() {
    for (name, problem, length, make) in ALL {
        let problem = problem::find(problem).unwrap();
        let mut algorithm = make(search(problem, length, 200), None).unwrap();
        let mut count = 0;
        while algorithm.size() > 0 {
            let evaluation = |index: usize| match index % 12 {
                0 | 3 | 6 | 9 => Evaluation { failed: true, ..Default::default() },
                4 | 8 => Evaluation { objectives: vec![f64::NAN; problem.objectives.len()], ..Default::default() },
                _ => Evaluation {
                    objectives: vec![f64::NEG_INFINITY; problem.objectives.len()],
                    constraints: vec![f64::INFINITY],
                    ..Default::default()
                },
            };
            let size = next(&*algorithm).len();
            algorithm.tell(&(count..count + size).map(evaluation).collect::<Vec<_>>());
            count += size;
        }
        assert_eq!(count, 200, "{name}");
    }
}
