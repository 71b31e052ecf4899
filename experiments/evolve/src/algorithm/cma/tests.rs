//! Tests of CMA-ES on functions of known difficulty.

use evoxo_common::rng::Stream;
use prost::Message as _;

use super::*;
use crate::{
    algorithm::tests::{evaluate, minimise, search},
    genome::{Genes, Part, Type},
    messages::{CmaRun, CmaState},
    problem,
};

/// The evaluations until the objective is below the target, and the least objective.
fn until(name: &str, length: usize, settings: &Settings, target: f64, evaluations: u64) -> (u64, f64) {
    let problem = problem::find(name).unwrap();
    let mut cma = Cma::start(settings, search(problem, length, evaluations)).unwrap();
    let mut least = f64::INFINITY;
    while cma.size() > 0 && least > target {
        let evaluations = evaluate(&cma, problem);
        least = evaluations
            .iter()
            .fold(least, |least, one| if one.feasible() { least.min(one.objective(0)) } else { least });
        cma.tell(&evaluations);
    }
    (cma.births, least)
}

fn plain() -> Settings {
    Settings { restarts: Restarts::None, ..Settings::default() }
}

/// pycma 4.5 stops on the sphere of BBOB after 2,281 to 2,471 evaluations.
#[test]
fn convex_functions_take_the_expected_evaluations() {
    let took = [
        until("sphere", 10, &plain(), 1e-10, 10_000),
        until("ellipsoid", 10, &plain(), 1e-10, 20_000),
        until("rosenbrock", 10, &plain(), 1e-10, 20_000),
        until("ellipsoid", 10, &Settings { covariance: Covariance::Separable, ..plain() }, 1e-10, 10_000),
    ];
    insta::assert_snapshot!(format!("{took:?}"));
    let limits = [2300, 6500, 9000, 5000];
    assert!(took.iter().zip(limits).all(|((births, least), limit)| *births < limit && *least < 1e-10), "{took:?}");
}

/// A model of a quadratic function is exact as soon as there are enough points for all its numbers, 66 with ten genes. Where the
/// function is not quadratic, the model saves evaluations, too.
#[test]
fn a_model_saves_evaluations() {
    let modelled = || Settings { model: true, ..plain() };
    let names = ["sphere", "ellipsoid", "rosenbrock", "rastrigin"];
    let took = names.map(|name| until(name, 10, &modelled(), if name == "rastrigin" { 60.0 } else { 1e-8 }, 10_000));
    insta::assert_snapshot!(format!("{took:?}"));
    let limits = [100, 130, 4000, 1000];
    assert!(took.iter().zip(limits).all(|((births, _), limit)| *births < limit), "{took:?}");
}

/// Later runs look elsewhere: with a model, they find the same optimum again more often.
#[test]
fn only_the_first_run_has_a_model() {
    let problem = problem::find("rastrigin").unwrap();
    let mut cma = Cma::start(&Settings { model: true, ..Settings::default() }, search(problem, 2, 3000)).unwrap();
    let mut runs = 0;
    while cma.size() > 0 {
        let run = cma.run.as_ref().unwrap();
        assert_eq!(run.model.is_some(), run.schedule.run == 0);
        runs = run.schedule.run;
        let again = Cma::restore(&cma.settings, cma.search.clone(), &cma.save()).unwrap();
        let points =
            |run: &Run| run.model.as_ref().map(|model| model.points().map(|(_, value)| value).collect::<Vec<_>>());
        assert_eq!(points(again.run.as_ref().unwrap()), points(run));
        let evaluations = evaluate(&cma, problem);
        cma.tell(&evaluations);
    }
    assert!(runs > 0, "the search restarts");
}

/// Optima on a bound, and so near to one that the coordinates bend there, are found as fast; and candidates with a penalty do not
/// hide the differences between the others.
#[test]
fn a_model_is_right_near_bounds_and_beside_penalties() {
    let took = |optimum: f64, penalty: f64| {
        let sphere = problem::find("sphere").unwrap();
        let mut cma = Cma::start(&Settings { model: true, ..plain() }, search(sphere, 10, 2000)).unwrap();
        let mut least = f64::INFINITY;
        while cma.size() > 0 && least > 1e-8 {
            let value = |candidate: &Candidate| match &candidate.parts[0] {
                Genes::Real(genes) if genes[0] > 4.0 => penalty,
                Genes::Real(genes) => genes.iter().map(|gene| (gene - optimum) * (gene - optimum)).sum(),
                other => unreachable!("{other:?}"),
            };
            let values: Vec<f64> = cma.ask(0..cma.size()).iter().map(value).collect();
            least = values.iter().fold(least, |least, value| least.min(*value));
            let told = |value| Evaluation { objectives: vec![value], ..Evaluation::default() };
            cma.tell(&values.into_iter().map(told).collect::<Vec<_>>());
        }
        cma.births
    };
    let all = [took(0.0, 25.0), took(-5.0, 1e3), took(-4.975, 1e3), took(1.0, 1e30)];
    insta::assert_snapshot!(format!("{all:?}"));
    assert!(all.iter().all(|births| *births <= 300), "{all:?}");
}

/// Also with whole genes, and with an optimum on the bounds or beyond bounds that only say where the search begins.
#[test]
fn a_model_keeps_to_the_genome() {
    let [mixed, corner, far] =
        [(Some(3), true, 2.0), (None, true, 250.0), (None, false, 250.0)].map(|(whole, bounded, optimum)| {
            let part = |length, of| Part { name: "x".into(), length, of };
            let parts = [(6 - whole.unwrap_or(0), Type::Real { low: -5.0, high: 5.0 })].into_iter();
            let parts = parts.chain(whole.map(|length| (length, Type::Integer { low: -5, high: 5 })));
            let genome = Genome { parts: parts.map(|(length, of)| part(length, of)).collect(), bounded };
            let search = Search { genome, evaluations: 400, start: Vec::new(), stream: Stream::root(1) };
            let mut cma = Cma::start(&Settings { model: true, ..plain() }, search).unwrap();
            let mut least = f64::INFINITY;
            while cma.size() > 0 {
                let genes = |genes: &Genes| match genes {
                    Genes::Real(genes) => genes.clone(),
                    Genes::Integer(genes) => genes.iter().map(|gene| *gene as f64).collect(),
                    other => unreachable!("{other:?}"),
                };
                let value = |candidate: &Candidate| {
                    assert_eq!(cma.search.genome.check(candidate), Ok(()));
                    candidate.parts.iter().flat_map(genes).map(|gene| (gene - optimum) * (gene - optimum)).sum::<f64>()
                };
                let values: Vec<f64> = cma.ask(0..cma.size()).iter().map(value).collect();
                least = values.iter().fold(least, |least, value| least.min(*value));
                let told = |value| Evaluation { objectives: vec![value], ..Evaluation::default() };
                cma.tell(&values.into_iter().map(told).collect::<Vec<_>>());
            }
            least
        });
    assert!(mixed < 1e-8 && corner == 6.0 * 245.0 * 245.0 && far < 1e-6, "{mixed} {corner} {far}");
}

/// With 300 genes and 10,000 evaluations, pycma 4.5 ends on the sphere at 0.003, and a step size controlled by a path ends at
/// 1.26.
#[test]
fn steps_fit_many_genes() {
    let least = [Covariance::Full, Covariance::Separable, Covariance::Limited].map(|covariance| {
        let (length, evaluations) = if covariance == Covariance::Full { (150, 5000) } else { (1000, 20_000) };
        until("sphere", length, &Settings { covariance, ..Settings::default() }, 0.0, evaluations).1
    });
    assert!(least[0] < 0.02 && least[1] < 3.0 && least[2] < 3.0, "{least:?}");
}

/// The mean number of evaluations until a function of ten real and ten whole genes is 1e-10 or less, over ten searches.
fn mean_until_mixed((low, high): (i64, i64), function: fn(&[f64], &[i64]) -> f64) -> f64 {
    let part = |name: &str, of| Part { name: name.into(), length: 10, of };
    let parts = vec![part("x", Type::Real { low: -10.0, high: 10.0 }), part("z", Type::Integer { low, high })];
    let genome = Genome { parts, bounded: true };
    let mut births = 0;
    for seed in 0..10 {
        let stream = Stream::root(seed);
        let search = Search { genome: genome.clone(), evaluations: 30_000, start: Vec::new(), stream };
        let mut cma = Cma::start(&plain(), search).unwrap();
        let mut least = f64::INFINITY;
        while cma.size() > 0 && least > 1e-10 {
            let value = |candidate: &Candidate| match &candidate.parts[..] {
                [Genes::Real(x), Genes::Integer(z)] => function(x, z),
                other => unreachable!("{other:?}"),
            };
            let evaluation = |one: &Candidate| Evaluation { objectives: vec![value(one)], ..Default::default() };
            let evaluations: Vec<Evaluation> = cma.ask(0..cma.size()).iter().map(evaluation).collect();
            least = evaluations.iter().fold(least, |least, one| least.min(one.objective(0)));
            cma.tell(&evaluations);
        }
        assert!(least <= 1e-10, "seed {seed}: {least}");
        births += cma.births;
    }
    births as f64 / 10.0
}

/// With the authors' program (cmaes 0.13), the medians of 20 searches of these functions with the same start are 4,080, 9,756, 4,284
/// and 11,352 evaluations.
#[test]
fn whole_genes_are_as_fast_as_with_the_authors_program() {
    fn ellipsoid(genes: &mut dyn Iterator<Item = f64>, n: f64) -> f64 {
        let factor = |index: usize| evoxo_common::math::pow(1e6, index as f64 / (n - 1.0));
        genes.enumerate().map(|(index, gene)| factor(index) * gene * gene).sum()
    }
    let took = [
        mean_until_mixed((-10, 10), |x, z| {
            x.iter().map(|gene| gene * gene).sum::<f64>() + z.iter().map(|gene| (gene * gene) as f64).sum::<f64>()
        }),
        mean_until_mixed((-10, 10), |x, z| {
            ellipsoid(&mut x.iter().copied().chain(z.iter().map(|gene| *gene as f64)), 20.0)
        }),
        mean_until_mixed((0, 1), |x, z| {
            let leading = z.iter().take_while(|gene| **gene == 1).count();
            x.iter().map(|gene| gene * gene).sum::<f64>() + 10.0 - leading as f64
        }),
        mean_until_mixed((0, 1), |x, z| ellipsoid(&mut x.iter().copied(), 10.0) + 10.0 - z.iter().sum::<i64>() as f64),
    ];
    assert!(took.iter().zip([4_700.0, 11_200.0, 4_900.0, 13_000.0]).all(|(took, most)| *took < most), "{took:?}");
}

/// However wide the box is, the search finds the optimum to full precision.
#[test]
fn a_wide_box_does_not_limit_precision() {
    let problem = problem::find("sphere").unwrap();
    let mut own = search(problem, 10, 20_000);
    own.genome.parts[0].of = Type::Real { low: -1e12, high: 1e12 };
    let least = minimise(&mut Cma::start(&plain(), own).unwrap(), problem).objective(0);
    assert!(least < 1e-11, "{least}");
}

/// The mean number of evaluations until a function of five genes is below 1e-8, over fifteen searches in the box from -5 to
/// 5.
fn mean_until(function: fn(&[f64]) -> f64) -> f64 {
    let sphere = problem::find("sphere").unwrap();
    let mut births = 0;
    for seed in 0..15 {
        let search = Search { stream: Stream::root(seed), ..search(sphere, 5, 20_000) };
        let mut cma = Cma::start(&plain(), search).unwrap();
        let mut least = f64::INFINITY;
        while cma.size() > 0 && least > 1e-8 {
            let value = |candidate: &Candidate| match &candidate.parts[0] {
                Genes::Real(genes) => function(genes),
                other => unreachable!("{other:?}"),
            };
            let values: Vec<f64> = cma.ask(0..cma.size()).iter().map(value).collect();
            least = values.iter().fold(least, |least, value| least.min(*value));
            let told = |value| Evaluation { objectives: vec![value], ..Evaluation::default() };
            cma.tell(&values.into_iter().map(told).collect::<Vec<_>>());
        }
        assert!(least <= 1e-8, "{least} after {} with seed {seed}", cma.births);
        births += cma.births;
    }
    births as f64 / 15.0
}

/// Without a limit on the deviations, one search in a hundred left the box: its steps grew until good and bad ones no longer
/// differed. Large first steps provoke this soonest.
#[test]
fn no_search_leaves_the_box() {
    let sphere = problem::find("sphere").unwrap();
    for (seed, separable) in (0..400).map(|seed| (seed, seed % 8 == 7)) {
        let covariance = if separable { Covariance::Separable } else { Covariance::Full };
        let settings = Settings { sigma: 1.0 / 3.0, covariance, ..plain() };
        let search = Search { stream: Stream::root(seed), ..search(sphere, 10, 5000) };
        let mut cma = Cma::start(&settings, search).unwrap();
        let mut least = f64::INFINITY;
        while cma.size() > 0 && least > 1e-8 {
            let evaluations = evaluate(&cma, sphere);
            least = evaluations.iter().fold(least, |least, one| least.min(one.objective(0)));
            cma.tell(&evaluations);
        }
        assert!(least <= 1e-8, "{least} after {} with seed {seed}", cma.births);
    }
}

/// A discus, as f11 of BBOB: one axis counts a million times as much as the others. Its axes are those of the box, or their
/// mirror images at the plane with the normal 1, 2, 3, 4, 5.
fn discus(genes: &[f64], turned: bool) -> f64 {
    const OPTIMUM: [f64; 5] = [2.0, -3.0, 1.0, -2.0, 3.0];
    const NORMAL: [f64; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];
    let mut from: Vec<f64> = genes.iter().zip(OPTIMUM).map(|(gene, best)| gene - best).collect();
    if turned {
        let along = from.iter().zip(NORMAL).map(|(axis, part)| axis * part).sum::<f64>() / 55.0;
        from.iter_mut().zip(NORMAL).for_each(|(axis, part)| *axis -= 2.0 * along * part);
    }
    from.iter().enumerate().map(|(index, axis)| if index == 0 { 1e6 * axis * axis } else { axis * axis }).sum()
}

/// Many of the first candidates lie beyond a bound. This disturbs what is learnt about genes that depend on each other, but
/// not much. An optimum on bounds is no harder to find than another one.
#[test]
fn bounds_do_not_slow_the_search() {
    let took = [
        mean_until(|genes| discus(genes, false)),
        mean_until(|genes| discus(genes, true)),
        mean_until(|genes| genes.iter().map(|gene| gene + 5.0).sum()),
    ];
    insta::assert_snapshot!(format!("{took:.0?}"));
    assert!(took[1] < 1.25 * took[0] && took[2] < 1100.0, "{took:?}");
}

/// A search whose bounds only say where it starts finds an optimum 25 box widths away. A search that keeps its bounds ends in
/// the corner nearest to that optimum.
#[test]
fn an_optimum_outside_optional_bounds_is_found() {
    let sphere = problem::find("sphere").unwrap();
    let least = |bounded| {
        let mut own = search(sphere, 4, 6000);
        own.genome.bounded = bounded;
        let mut cma = Cma::start(&plain(), own).unwrap();
        let mut least = f64::INFINITY;
        while cma.size() > 0 {
            let far = |candidate: &Candidate| match &candidate.parts[0] {
                Genes::Real(genes) => genes.iter().map(|gene| (gene - 250.0) * (gene - 250.0)).sum::<f64>(),
                other => unreachable!("{other:?}"),
            };
            let values: Vec<f64> = cma.ask(0..cma.size()).iter().map(far).collect();
            least = values.iter().fold(least, |least, value| least.min(*value));
            let told = |value| Evaluation { objectives: vec![value], ..Evaluation::default() };
            cma.tell(&values.into_iter().map(told).collect::<Vec<_>>());
        }
        least
    };
    assert!(least(false) < 1e-9);
    let Type::Real { high, .. } = search(sphere, 4, 1).genome.parts[0].of else { unreachable!("it is real") };
    assert!((least(true) / (4.0 * (250.0 - high) * (250.0 - high)) - 1.0).abs() < 1e-9);
}

/// Without restarts, the search ends when it has converged.
#[test]
fn a_converged_run_ends() {
    let (births, least) = until("sphere", 5, &plain(), 0.0, 100_000);
    assert!(births < 5000 && least < 1e-12, "{births} {least}");
    let mut cma = Cma::start(&plain(), search(problem::find("sphere").unwrap(), 5, 100_000)).unwrap();
    let best = minimise(&mut cma, problem::find("sphere").unwrap());
    assert_eq!((cma.size(), best.objective(0)), (0, least));
    let again = Cma::restore(&plain(), cma.search.clone(), &cma.save()).unwrap();
    assert_eq!((again.size(), again.births), (0, births));
}

/// Larger populations find the global optimum.
#[test]
fn restarts_solve_rastrigin() {
    for restarts in [Restarts::Ipop, Restarts::Bipop] {
        let (births, least) = until("rastrigin", 5, &Settings { restarts, ..Settings::default() }, 1e-8, 60_000);
        assert!(least < 1e-8, "{restarts:?}: {least} after {births}");
    }
    let (births, least) = until("rastrigin", 5, &plain(), 1e-8, 60_000);
    assert!(least > 0.5 && births < 10_000, "one run with a small population finds a local optimum: {least}");
}

/// The optimum of g06 lies in a corner of two constraints.
#[test]
fn constraints_are_satisfied() {
    let (_, least) = until("g06", 2, &Settings::default(), -6961.8, 20_000);
    assert!(least < -6961.0, "{least}");
}

#[test]
fn the_size_of_states_is_bounded() {
    let problem = problem::find("rosenbrock").unwrap();
    let forms = [Covariance::Full, Covariance::Separable, Covariance::Limited].map(|covariance| (covariance, false));
    for (covariance, model) in forms.into_iter().chain([(Covariance::Full, true)]) {
        let settings = Settings { covariance, model, ..Settings::default() };
        let mut cma = Cma::start(&settings, search(problem, 8, 40_000)).unwrap();
        let most = settings.most(&cma.search.genome, 40_000);
        while cma.size() > 0 {
            assert!(cma.size() as u64 <= most.candidates && cma.save().len() as u64 <= most.state_bytes);
            let evaluations = evaluate(&cma, problem);
            cma.tell(&evaluations);
        }
    }
}

#[test]
fn invalid_settings_are_rejected_with_a_reason() {
    let wrong = [
        Settings { population: Some(3), ..plain() },
        Settings { sigma: 0.0, ..plain() },
        Settings { tolerance: -1.0, ..plain() },
        Settings { model: true, covariance: Covariance::Limited, ..plain() },
        Settings { model: true, population: Some(1001), ..plain() },
    ];
    let genome = search(problem::find("sphere").unwrap(), 3, 100).genome;
    let sentence = |settings: &Settings| settings.check(&genome).unwrap_err().sentence;
    let mut sentences: Vec<String> = wrong.iter().map(sentence).collect();
    let long = search(problem::find("sphere").unwrap(), 41, 100).genome;
    sentences.push(Settings { model: true, ..plain() }.check(&long).unwrap_err().sentence);
    let trip = search(problem::find("tsp").unwrap(), 10, 100);
    sentences.push(Cma::start(&plain(), trip).unwrap_err());
    insta::assert_snapshot!(sentences.join("\n"));
}

/// The populations of large runs are the first population times a power of two, and small runs have at most half of that.
#[test]
fn populations_of_no_restart_are_rejected() {
    let search = search(problem::find("sphere").unwrap(), 3, 1000);
    let mut cma = Cma::start(&Settings::default(), search.clone()).unwrap();
    cma.tell(&evaluate(&cma, problem::find("sphere").unwrap()));
    let restored = |change: &dyn Fn(&mut CmaRun)| {
        let mut state = CmaState::decode(&cma.save()[..]).unwrap();
        change(state.run.as_mut().unwrap());
        Cma::restore(&Settings::default(), search.clone(), &state.encode_to_vec())
    };
    assert!(restored(&|_| {}).is_ok());
    let changes: [&dyn Fn(&mut CmaRun); 4] = [
        &|run| run.lambda += 1,
        &|run| run.doublings = 1,
        &|run| (run.small, run.lambda) = (true, 2 * run.lambda),
        &|run| run.doublings = 99,
    ];
    assert!(changes.iter().all(|change| restored(*change).is_err()));
}
