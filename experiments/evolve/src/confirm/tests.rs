//! Tests that a verdict under noise is not a matter of luck.

use evoxo_common::{
    experiment::Replica,
    math::{ln, pow},
    rng::{Stream, unit},
};
use serde_json::Value;

use super::*;
use crate::{
    genome::{Genes, Part, Type},
    rows::{BEST, CONFIRMED, ERROR, SEEN},
    testing::{parse, run},
};

fn candidate(gene: f64) -> Candidate {
    Candidate { parts: vec![Genes::Real(vec![gene])] }
}

fn seen(objectives: &[f64]) -> Evaluation {
    Evaluation { objectives: objectives.to_vec(), ..Default::default() }
}

fn failed() -> Evaluation {
    Evaluation { failed: true, ..Default::default() }
}

/// The finalist with the best mean is chosen, and its value comes from other seeds than those of the choice.
#[test]
fn the_chosen_candidate_is_evaluated_again() {
    let mut stages = Confirmation::start([0.1, 0.2, 0.3].map(candidate).to_vec(), 2, 7.0);
    let seeds = Seeds::of(5, 3);
    assert_eq!((stages.left(), stages.answer()), (6, None));
    let first: Vec<u64> = (0..6).map(|index| stages.item(index, &seeds).1).collect();
    assert_eq!((&first[..2], &first[..2]), (&first[2..4], &first[4..]), "all finalists have the same seeds");
    stages.take(&[seen(&[1.0]), seen(&[2.0]), seen(&[0.5]), seen(&[0.75])]);
    // Evaluations come one by one or together, with or without a restore in between.
    let genome = Genome {
        parts: vec![Part { name: "x".into(), length: 1, of: Type::Real { low: 0.0, high: 1.0 } }],
        bounded: true,
    };
    let mut stages = Confirmation::restore(&stages.message(), &genome, [1, 0, 0], 2).unwrap();
    assert_eq!((stages.left(), stages.item(0, &seeds).2), (2, "choose-2-0".to_owned()));
    stages.take(&[failed(), seen(&[-9.0])]);
    assert_eq!(stages.left(), 2, "a finalist that failed is worse than any that did not");
    let again = stages.item(0, &seeds);
    assert_eq!((again.0, again.2.as_str()), (&candidate(0.2), "confirm-0-0"));
    assert!(!first.contains(&again.1) && !first.contains(&stages.item(1, &seeds).1));
    stages.take(&[seen(&[3.0])]);
    assert_eq!(stages.answer(), None);
    stages.take(&[seen(&[5.0])]);
    let answer = stages.answer().unwrap();
    assert_eq!((answer[0].mean.objective(0), answer[0].draws, answer[0].failures), (4.0, 2, 0));
    assert!((answer[0].half_width - 12.706).abs() < 1e-3, "Student's t with one degree of freedom");
    let wrong = messages::Confirmation { evaluations: vec![seen(&[1.0]).message(); 3], ..stages.message() };
    assert!(Confirmation::restore(&wrong, &genome, [1, 0, 0], 2).is_err());
    assert!(Confirmation::restore(&stages.message(), &genome, [2, 0, 0], 2).is_err());
}

#[test]
fn several_objectives_are_chosen_by_the_front_of_means() {
    let mut stages = Confirmation::start([0.1, 0.2, 0.3].map(candidate).to_vec(), 2, 0.0);
    stages.take(&[[0.0, 3.0], [2.0, 1.0], [2.0, 3.0], [2.0, 3.0], [3.0, 0.0], [3.0, 0.0]].map(|it| seen(&it)));
    assert_eq!((&stages.candidates[..], stages.left()), (&[0.1, 0.3].map(candidate)[..], 4));
}

#[test]
fn without_a_value_there_is_no_conclusion() {
    let mut stages = Confirmation::start(vec![candidate(0.5)], 2, 0.0);
    stages.take(&[failed(), failed()]);
    stages.take(&[failed(), failed()]);
    assert_eq!((stages.left(), stages.answer()), (0, None));
    assert_eq!(Confirmation::start(Vec::new(), 2, 0.0).left(), 0);
}

/// The true value of a replica's answer, without noise.
fn worth(replica: &Replica) -> f64 {
    let card: Value = serde_json::from_str(&replica.champion().unwrap().write("c").0).unwrap();
    let genes = card["genes"]["x"].as_array().unwrap();
    genes.iter().map(|gene| gene.as_f64().unwrap()).map(|x| x * x).sum()
}

/// Over 100 seeds of two sorts of noise: how often the interval of an answer covers its true value, and how often a verdict
/// of P < 0.05 in the report is wrong about the true values. Two of the arms are the same search.
#[test]
fn verdicts_are_not_about_luck() {
    for problem in ["noisy-sphere", "growing-noise"] {
        let (mut answers, mut covered, mut wrong, mut verdicts, mut luck) = (0, 0, 0, 0, 0);
        for seed in 0..100 {
            let config = parse(&format!(
                "experiment = \"evolve\"\nseed = {seed}\nreplicas = 9\n[settings]\nproblem = \"{problem}\"\nlength = 5\n\
                 evaluations = 300\npopulation = 20\n[arms.random]\nalgorithm = \"random\"\n[arms.again]\n\
                 algorithm = \"random\"\n[arms.cma]\nalgorithm = \"cma-es\"\n"
            ));
            let replicas = run(&config);
            let arm = |name: &str| {
                let arm = config.arms.iter().position(|arm| arm.name == name).unwrap();
                replicas[arm * 9..][..9].iter().map(worth).collect::<Vec<f64>>()
            };
            for replica in &replicas {
                let last = replica.history().last().unwrap();
                assert_eq!(last[CONFIRMED], 30.0);
                answers += 1;
                covered += usize::from((last[BEST] - worth(replica)).abs() <= last[ERROR]);
                luck += usize::from(last[SEEN] < worth(replica));
            }
            let report = config.report(&replicas);
            for contest in report.json["contests"].as_array().unwrap() {
                if contest["p"].as_f64().unwrap() < 0.05 {
                    let name = |key: &str| arm(contest[key].as_str().unwrap());
                    let (better, worse) = (name("better"), name("worse"));
                    let wins = better.iter().zip(&worse).filter(|(one, two)| one < two).count();
                    let same = [&contest["better"], &contest["worse"]].iter().all(|name| name.as_str() != Some("cma"));
                    verdicts += 1;
                    wrong += usize::from(2 * wins < better.len() || same);
                }
            }
        }
        let share = covered as f64 / answers as f64;
        assert!((0.92..=0.98).contains(&share), "{problem}: {share}");
        assert!(wrong <= 5 && verdicts >= 20, "{problem}: {wrong} of {verdicts}");
        assert!(luck * 10 > answers * 6, "{problem}: the values that a search sees are lucky");
    }
}

/// Values as those of a pole that must not fall: the chance to fall is the same in each of 500 steps, and up to three of five
/// values are the greatest possible one. If nearly all values are, no interval of 30 values covers the truth. A note says
/// that values may have been equal by chance.
#[test]
fn intervals_of_values_that_pile_up_cover() {
    let mut rng = Stream::root(7).rng();
    let true_steps = |fall: f64| (1.0 - pow(1.0 - fall, 500.0)) / fall;
    let mut steps = |fall: f64| seen(&[-(ln(1.0 - unit(&mut rng)) / ln(1.0 - fall)).ceil().clamp(1.0, 500.0)]);
    let (mut covered, mut luck) = (0, 0);
    for replica in 0..400 {
        let falls: Vec<f64> = (1..=9).map(|place| f64::from(place * (1 + replica % 5)) / 1000.0).collect();
        let mut stages = Confirmation::start(falls.iter().map(|fall| candidate(*fall)).collect(), 30, 0.0);
        for fall in falls {
            stages.take(&(0..30).map(|_| steps(fall)).collect::<Vec<_>>());
        }
        let Genes::Real(chosen) = &stages.candidates[0].parts[0] else { panic!("real genes") };
        let fall = chosen[0];
        stages.take(&(0..30).map(|_| steps(fall)).collect::<Vec<_>>());
        let answer = stages.answer().unwrap().remove(0);
        let error = -answer.mean.objective(0) - true_steps(fall);
        covered += usize::from(error.abs() <= answer.half_width);
        luck += usize::from(error > 0.0);
    }
    let share = f64::from(u32::try_from(covered).unwrap()) / 400.0;
    assert!((0.92..=0.98).contains(&share), "{share}");
    assert!((160..=260).contains(&luck), "the choice is evaluated again, so no luck is left: {luck}");
}
