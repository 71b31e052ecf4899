//! CMA-ES on functions whose difficulty is known.

use super::*;
use crate::evolve::{
    algorithm::tests::{evaluate, minimise, search},
    problem,
};

/// Evaluations until the objective is below the target, and the least objective.
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
fn convex_functions_take_as_long_as_they_should() {
    let took = [
        until("sphere", 10, &plain(), 1e-10, 10_000),
        until("ellipsoid", 10, &plain(), 1e-10, 20_000),
        until("rosenbrock", 10, &plain(), 1e-10, 20_000),
        until("ellipsoid", 10, &Settings { separable: true, ..plain() }, 1e-10, 10_000),
    ];
    insta::assert_snapshot!(format!("{took:?}"));
    let limits = [2300, 6500, 9000, 5000];
    assert!(took.iter().zip(limits).all(|((births, least), limit)| *births < limit && *least < 1e-10), "{took:?}");
}

/// Without restarts the search ends when nothing is left to be found.
#[test]
fn a_run_that_has_converged_ends() {
    let (births, least) = until("sphere", 5, &plain(), 0.0, 100_000);
    assert!(births < 5000 && least < 1e-12, "{births} {least}");
    let mut cma = Cma::start(&plain(), search(problem::find("sphere").unwrap(), 5, 100_000)).unwrap();
    let best = minimise(&mut cma, problem::find("sphere").unwrap());
    assert_eq!((cma.size(), best.objective(0)), (0, least));
    let again = Cma::restore(&plain(), cma.search.clone(), &cma.save()).unwrap();
    assert_eq!((again.size(), again.births), (0, births));
}

/// With greater populations the global optimum is found.
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
fn constraints_are_kept() {
    let (_, least) = until("g06", 2, &Settings::default(), -6961.8, 20_000);
    assert!(least < -6961.0, "{least}");
}

#[test]
fn the_size_of_states_is_bounded() {
    let problem = problem::find("rosenbrock").unwrap();
    for separable in [false, true] {
        let settings = Settings { separable, ..Settings::default() };
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
fn settings_that_make_no_sense_have_a_sentence() {
    let wrong = [
        Settings { population: Some(3), ..plain() },
        Settings { sigma: 0.0, ..plain() },
        Settings { tolerance: -1.0, ..plain() },
    ];
    let mut sentences: Vec<String> = wrong.iter().map(|settings| settings.check().unwrap_err()).collect();
    let bits = search(problem::find("onemax").unwrap(), 10, 100);
    sentences.push(Cma::start(&plain(), bits).unwrap_err());
    insta::assert_snapshot!(sentences.join("\n"));
}
