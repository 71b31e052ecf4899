//! How a longer search continues a shorter one: it keeps everything except what only the end of the shorter one added.

use evoxo_common::{experiment::Saved, rng::Stream};

use super::{
    messages::SearchState,
    rows::{self, EVALUATIONS},
    settings::Settings,
};

/// Undoes the end of a search that had fewer evaluations than these settings. A search that has not ended, or that would have
/// ended there in any case, stays as it is. For a noisy search, the stages that confirm its answer are dropped. A last batch
/// that was cut off will be completed, and its rows are made again. A row that exists only because the search ended is dropped.
pub(super) fn lengthen(settings: &Settings, stream: Stream, saved: &mut Saved<SearchState>) -> Result<(), String> {
    let Saved { state, rounds, history, is_amid_round } = saved;
    let used = state.evaluations.saturating_add(state.cut.len() as u64);
    *is_amid_round = state.resumed;
    if state.resumed || used >= settings.evaluations {
        return Ok(());
    }
    if state.cut.is_empty() {
        let given = settings.given();
        let kind = settings.algorithm;
        let algorithm = kind.begin(&given, given.search(stream), kind.saved(state.evaluations, &state.algorithm))?;
        if state.reached > 0 || algorithm.size() == 0 {
            return Ok(());
        }
    }
    if let Some(confirmation) = state.confirmation.take() {
        let stages =
            u64::from(confirmation.chosen) + u64::from(confirmation.chosen && !confirmation.evaluations.is_empty());
        // With a window, each evaluation is a round.
        *rounds = if settings.window > 0 { state.evaluations } else { rounds.saturating_sub(stages) };
        history.pop_if(|row| rows::is_confirmed(row));
    }
    if state.cut.is_empty() {
        if rows::is_of_end(settings, history) {
            history.pop();
        }
    } else {
        let before = state.evaluations as f64;
        history.retain(|row| row.get(EVALUATIONS).is_some_and(|evaluations| *evaluations <= before));
        *rounds = rounds.saturating_sub(1);
        (state.resumed, *is_amid_round) = (true, true);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use evoxo_common::{
        experiment::{Config, Replica},
        local,
    };

    use super::*;
    use crate::testing::{parse, run};

    /// Every algorithm with generations and with windows, with noise, with a target, and one that ends by itself. Some of the
    /// ends below cut off a batch of each file.
    const FILES: [&str; 29] = [
        "algorithm = \"random\"\nproblem = \"onemax\"\nlength = 12\npopulation = 30",
        "algorithm = \"random\"\nproblem = \"zdt1\"\nlength = 4\npopulation = 20",
        "algorithm = \"ga\"\nproblem = \"sphere\"\nlength = 3\npopulation = 20\nslice = 7",
        "problem = \"tsp\"\nlength = 9\npopulation = 20\nelite = 3",
        "algorithm = \"ga\"\nproblem = \"g06\"\npopulation = 20\non_failure = \"worst\"",
        "problem = \"onemax\"\nlength = 12\npopulation = 20\ntarget = \"12\"",
        "problem = \"tsp\"\nlength = 9\npopulation = 20\nislands = 4\nmigration = 2",
        "algorithm = \"ga\"\nproblem = \"sphere\"\nlength = 3\npopulation = 20\nwindow = 7",
        "algorithm = \"ga\"\nproblem = \"sphere\"\nlength = 3\npopulation = 10\nwindow = 25",
        "problem = \"onemax\"\nlength = 8\npopulation = 10\nwindow = 5\ntarget = \"8\"",
        "algorithm = \"random\"\nproblem = \"sphere\"\nlength = 2\nwindow = 30",
        "algorithm = \"cma-es\"\nproblem = \"rosenbrock\"\nlength = 3",
        "algorithm = \"cma-es\"\nproblem = \"sphere\"\nlength = 2\npopulation = 40\nrestarts = \"ipop\"",
        "algorithm = \"cma-es\"\nproblem = \"sphere\"\nlength = 2\nrestarts = \"none\"\ncovariance = \"separable\"",
        "algorithm = \"cma-es\"\nproblem = \"ellipsoid\"\nlength = 100\ncovariance = \"limited\"",
        "algorithm = \"openai-es\"\nproblem = \"sphere\"\nlength = 4\npopulation = 22",
        "algorithm = \"nsga2\"\nproblem = \"zdt1\"\nlength = 4\npopulation = 20",
        "algorithm = \"map-elites\"\nproblem = \"arm\"\nlength = 4\npopulation = 20\ninitial = 30",
        "algorithm = \"map-elites\"\nproblem = \"arm\"\nlength = 4\ninitial = 20\nwindow = 3",
        "algorithm = \"nsga3\"\nproblem = \"dtlz2\"\nlength = 5\npopulation = 20",
        "algorithm = \"nsga3\"\nproblem = \"dtlz2\"\nlength = 5\npopulation = 10\nwindow = 4",
        "algorithm = \"sms-emoa\"\nproblem = \"zdt1\"\nlength = 4\npopulation = 20",
        "algorithm = \"pso\"\nproblem = \"rosenbrock\"\nlength = 3",
        "algorithm = \"pso\"\nproblem = \"noisy-sphere\"\nlength = 3\npopulation = 12\nconfirmations = 2",
        "algorithm = \"cma-mae\"\nproblem = \"arm\"\nlength = 4\npopulation = 15\ninitial = 30\nemitters = 2",
        "algorithm = \"ga\"\nproblem = \"noisy-sphere\"\nlength = 3\npopulation = 20\nslice = 7\nconfirmations = 2",
        "algorithm = \"openai-es\"\nproblem = \"growing-noise\"\nlength = 3\npopulation = 20\nconfirmations = 2",
        "algorithm = \"ga\"\nproblem = \"noisy-sphere\"\nlength = 3\npopulation = 20\nwindow = 7\nconfirmations = 2\nfinalists = 2",
        "algorithm = \"nsga2\"\nproblem = \"zdt1\"\nlength = 4\npopulation = 10\nnoise = \"yes\"\nconfirmations = 2",
    ];

    fn config(settings: &str, evaluations: u64) -> Config {
        parse(&format!(
            "experiment = \"evolve\"\nseed = 3\nreplicas = 1\n[settings]\nevaluations = {evaluations}\n{settings}\n"
        ))
    }

    /// The replica of a longer search that continues a shorter one.
    fn longer(settings: &str, evaluations: u64, shorter: &Replica) -> Replica {
        let config = config(settings, evaluations);
        Replica::restore(&config, &Replica::lengthened(&config, shorter.save()).unwrap()).unwrap()
    }

    /// Computes up to this number of further rounds.
    fn go_on(replica: &mut Replica, rounds: usize) {
        (0..rounds).all(|_| local::step(replica).unwrap());
    }

    /// A search may end in the middle of a batch, after a batch, before its first batch is complete, or at a row of its
    /// history. A longer search always continues to the same end in every byte, and computes nothing twice.
    #[test]
    fn longer_searches_continue_to_the_same_end() {
        for settings in FILES {
            let straight = run(&config(settings, 400)).swap_remove(0);
            for end in [1, 7, 30, 64, 150, 199, 399] {
                let shorter = run(&config(settings, end)).swap_remove(0);
                let mut replica = longer(settings, 400, &shorter);
                assert!(replica.rounds() <= shorter.rounds(), "{settings} {end}");
                go_on(&mut replica, usize::MAX);
                assert_eq!(replica.history(), straight.history(), "{settings} {end}");
                assert!(replica.save() == straight.save(), "{settings} {end}: the states differ");
            }
        }
    }

    /// A search is extended twice, and is stopped and continued after every round, also in the middle of a batch and of the
    /// stages that confirm an answer.
    #[test]
    fn searches_can_be_extended_at_any_point() {
        for settings in FILES {
            let straight = run(&config(settings, 230)).swap_remove(0);
            let long = config(settings, 230);
            let mut shorter = Replica::start(&config(settings, 47), &config(settings, 47).arms[0], 0);
            let mut more = true;
            while more {
                let mut middle = longer(settings, 110, &shorter);
                go_on(&mut middle, 1);
                let mut replica = longer(settings, 230, &longer(settings, 120, &middle));
                while local::step(&mut replica).unwrap() {
                    replica = Replica::restore(&long, &replica.save()).unwrap();
                }
                assert!(replica.save() == straight.save(), "{settings} {}", shorter.rounds());
                more = local::step(&mut shorter).unwrap();
            }
        }
    }

    /// The evaluations that a shorter search made of a batch are not made again.
    #[test]
    fn a_batch_that_was_cut_off_is_completed() {
        let settings = "algorithm = \"ga\"\nproblem = \"sphere\"\nlength = 3\npopulation = 20\nelite = 0\nslice = 1";
        let shorter = run(&config(settings, 33)).swap_remove(0);
        let left = |evaluations: u64| longer(settings, evaluations, &shorter).tasks();
        assert_eq!([34, 40, 100].map(left), [1, 7, 7]);
        // With the same number of evaluations, nothing is left to do.
        assert!(longer(settings, 33, &shorter).is_finished());
    }

    /// A state that does not fit its search is rejected.
    #[test]
    fn states_with_another_last_batch_are_rejected() {
        use crate::messages::Evaluation;
        use crate::testing::states_are_checked;

        let config = config("algorithm = \"ga\"\nproblem = \"sphere\"\nlength = 3\npopulation = 20\nelite = 0", 33);
        let changes: [&dyn Fn(&mut SearchState); 5] = [
            &|state| state.resumed = true,
            &|state| state.cut.truncate(5),
            &|state| state.cut.push(Evaluation { objectives: vec![1.0], ..Evaluation::default() }),
            &|state| state.cut[0].objectives.push(1.0),
            &|state| state.cut[0].objectives[0] = f64::NAN,
        ];
        states_are_checked(&config, &run(&config), &changes);
    }
}
