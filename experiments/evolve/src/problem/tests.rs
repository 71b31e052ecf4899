//! Tests of built-in problems against known facts.

use super::*;
use crate::genome::{Candidate, Genes};
use evoxo_common::rng::Stream;

fn value(name: &str, parts: Vec<Genes>) -> Vec<f64> {
    let problem = find(name).unwrap();
    let candidate = Candidate { parts };
    let length = candidate.parts.iter().map(Genes::len).sum();
    assert_eq!((problem.genome)(length).check(&candidate), Ok(()));
    (problem.evaluate)(&candidate).objectives
}

fn reals(name: &str, genes: &[f64]) -> Vec<f64> {
    value(name, vec![Genes::Real(genes.to_vec())])
}

#[test]
fn each_problem_fits_its_own_genome() {
    for problem in &PROBLEMS {
        let (least, most) = problem.lengths;
        assert!((least..=most).contains(&problem.length), "{}", problem.name);
        for length in [least, problem.length] {
            let genome = (problem.genome)(length);
            assert_eq!((genome.valid(), genome.genes()), (Ok(()), length), "{}", problem.name);
            let evaluation = (problem.evaluate)(&genome.random(&mut Stream::root(1).rng()));
            assert_eq!(evaluation.objectives.len(), problem.objectives.len(), "{}", problem.name);
            assert_eq!(evaluation.constraints.len(), problem.constraints, "{}", problem.name);
            assert_eq!(evaluation.measures.len(), problem.measures.len(), "{}", problem.name);
            let range = |(value, measure): (&f64, &Measure)| (measure.low..=measure.high).contains(value);
            assert!(evaluation.measures.iter().zip(problem.measures).all(range), "{}", problem.name);
            assert!(evaluation.objectives.iter().chain(&evaluation.constraints).all(|number| number.is_finite()));
        }
        let measured = problem.objectives.len() > 1 || !problem.measures.is_empty();
        assert_eq!(problem.reference.len(), if measured { problem.objectives.len() } else { 0 }, "{}", problem.name);
    }
}

#[test]
fn no_random_candidate_beats_the_optimum() {
    for problem in PROBLEMS.iter().filter(|problem| problem.objectives.len() == 1) {
        let Some(optimum) = (problem.optimum)(problem.length) else { continue };
        let optimum = if problem.objectives[0].maximised { -optimum } else { optimum };
        let (genome, mut rng) = ((problem.genome)(problem.length), Stream::root(2).rng());
        for _ in 0..100 {
            let evaluation = problem.minimised(&genome.random(&mut rng));
            assert!(!evaluation.feasible() || evaluation.objective(0) > optimum, "{}", problem.name);
        }
    }
}

#[test]
fn optima_of_functions_are_those_of_their_papers() {
    assert_eq!(reals("sphere", &[1.0, 2.0, -3.0]), [14.0]);
    assert_eq!(reals("ellipsoid", &[1.0, 1.0, -1.0]), [1_001_001.0]);
    assert_eq!(reals("rastrigin", &[0.0; 5]), [0.0]);
    assert!((reals("rastrigin", &[1.0, 0.5])[0] - 21.25).abs() < 1e-12);
    assert_eq!((reals("rosenbrock", &[1.0; 5]), reals("rosenbrock", &[0.0, 1.0])), (vec![0.0], vec![101.0]));
    for (name, candidate) in [
        ("g06", vec![Genes::Real(vec![14.095]), Genes::Real(vec![0.842_960_789_215_479_6])]),
        (
            "g07",
            vec![Genes::Real(vec![
                2.171_996_341_426_92,
                2.363_683_041_618_82,
                8.773_925_738_978_63,
                5.095_984_437_458_99,
                0.990_654_756_560_493,
                1.430_573_928_533_55,
                1.321_644_154_105_12,
                9.828_725_765_244_79,
                8.280_091_648_358_24,
                8.375_926_647_744_54,
            ])],
        ),
    ] {
        let problem = find(name).unwrap();
        let evaluation = problem.minimised(&Candidate { parts: candidate });
        let optimum = (problem.optimum)(problem.length).unwrap();
        assert!((evaluation.objective(0) - optimum).abs() < 1e-5, "{name}: {evaluation:?}");
        assert!(evaluation.violation() < 1e-6, "{name}: {evaluation:?}");
        let binding = evaluation.constraints.iter().filter(|broken| broken.abs() < 1e-5).count();
        assert_eq!(binding, if name == "g06" { 2 } else { 6 }, "{evaluation:?}");
    }
}

#[test]
fn a_straight_arm_reaches_farthest() {
    let problem = find("arm").unwrap();
    let end = |angles: [f64; 2]| (problem.evaluate)(&Candidate { parts: vec![Genes::Real(angles.to_vec())] });
    assert_eq!((end([0.0, 0.0]).measures, end([0.0, 0.0]).objectives), (vec![1.0, 0.0], vec![0.0]));
    let bent = end([std::f64::consts::FRAC_PI_2, -std::f64::consts::FRAC_PI_2]);
    assert!((bent.measures[0] - 0.5).abs() < 1e-15 && (bent.measures[1] - 0.5).abs() < 1e-15, "{bent:?}");
}

#[test]
fn strings_are_counted() {
    let string = |text: &str| vec![Genes::Bits(text.bytes().map(|bit| bit == b'1').collect())];
    assert_eq!(value("onemax", string("110101")), [4.0]);
    assert_eq!(value("leadingones", string("110111")), [2.0]);
    // The Barker sequence of length 13.
    assert_eq!(value("labs", string("1111100110101")), [6.0]);
    assert_eq!(value("nk", string("0110100111")), value("nk", string("0110100111")));
    insta::assert_snapshot!(value("nk", string("0110100111"))[0].to_bits());
}

#[test]
fn minimum_energies_of_short_sequences_match_the_table() {
    for length in 2..=13_usize {
        let sequence = |number: u32| vec![Genes::Bits((0..length).map(|bit| number >> bit & 1 == 1).collect())];
        let least = (0..1_u32 << length).map(|number| value("labs", sequence(number))[0]).fold(f64::INFINITY, f64::min);
        assert_eq!((find("labs").unwrap().optimum)(length), Some(least), "{length} bits");
    }
}

/// All round trips of seven cities, by Heap's algorithm.
#[test]
fn no_tour_is_shorter_than_the_circle() {
    fn each(order: &mut Vec<u32>, count: usize, least: &mut f64) {
        if count <= 1 {
            *least = least.min(value("tsp", vec![Genes::Permutation(order.clone())])[0]);
            return;
        }
        for index in 0..count {
            each(order, count - 1, least);
            order.swap(if count.is_multiple_of(2) { index } else { 0 }, count - 1);
        }
    }
    let mut least = f64::INFINITY;
    each(&mut (0..7).collect(), 7, &mut least);
    let optimum = (find("tsp").unwrap().optimum)(7).unwrap();
    assert!((least - optimum).abs() < 1e-12, "{least} {optimum}");
}

#[test]
fn fronts_match_their_papers() {
    let point = |name: &str, first: f64, length: usize, rest: f64| {
        let mut genes = vec![rest; length];
        genes[0] = first;
        reals(name, &genes)
    };
    assert_eq!(point("zdt1", 0.25, 30, 0.0), [0.25, 0.5]);
    assert_eq!(point("zdt1", 0.25, 30, 1.0), [0.25, 10.0 * (1.0 - 0.025_f64.sqrt())]);
    assert_eq!(point("zdt2", 0.5, 30, 0.0), [0.5, 0.75]);
    assert!((point("zdt3", 0.25, 30, 0.0)[1] - 0.25).abs() < 1e-12);
    let zdt4 = |rest: f64| value("zdt4", vec![Genes::Real(vec![0.25]), Genes::Real(vec![rest; 9])]);
    assert_eq!(zdt4(0.0), [0.25, 0.5]);
    assert!((zdt4(0.5)[1] - 3.25 * (1.0 - (0.25 / 3.25_f64).sqrt())).abs() < 1e-9);
    let zdt5 = |first: usize, rest: &str| {
        let first = (0..30).map(|place| place < first);
        value("zdt5", vec![Genes::Bits(first.chain(rest.repeat(10).bytes().map(|bit| bit == b'1')).collect())])
    };
    assert_eq!([zdt5(0, "11111"), zdt5(30, "11111"), zdt5(4, "11111")], [[1.0, 10.0], [31.0, 10.0 / 31.0], [5.0, 2.0]]);
    assert_eq!([zdt5(0, "00000"), zdt5(9, "01111")], [[1.0, 20.0], [10.0, 6.0]]);
    assert_eq!(point("zdt6", 0.0, 10, 0.0), [1.0, 0.0]);
    let sphere = point("dtlz2", 0.3, 12, 0.5);
    assert!((sphere.iter().map(|value| value * value).sum::<f64>() - 1.0).abs() < 1e-12, "{sphere:?}");
}
