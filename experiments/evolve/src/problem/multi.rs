//! Problems with several objectives, all to be minimised.
//!
//! ZDT: E. Zitzler, K. Deb and L. Thiele, "Comparison of Multiobjective Evolutionary Algorithms: Empirical Results",
//! Evolutionary Computation 8(2), 2000. DTLZ: K. Deb, L. Thiele, M. Laumanns and E. Zitzler, "Scalable Test Problems
//! for Evolutionary Multiobjective Optimization", 2005.

use std::f64::consts::PI;

use evoxo_common::math::{cos, exp, pow, sin};

use super::definition::{Objective, Problem, bits, genome, objectives, reals};
use crate::{
    genome::{Candidate, Type},
    pareto::keep_front,
};

/// The type of most genes.
const UNIT: Type = Type::Real { low: 0.0, high: 1.0 };

/// The defaults of the ZDT problems.
const ZDT: Problem = Problem {
    name: "",
    doc: "",
    objectives: &[Objective::min("f1"), Objective::min("f2")],
    constraints: 0,
    lengths: (2, 1000),
    length: 30,
    genome: |length| genome(&[("x", length, UNIT)]),
    evaluate: |_| objectives(&[]),
    noise: None,
    optimum: |_| None,
    measures: &[],
    reference: &[1.1, 1.1],
    front: |_| Vec::new(),
};

/// The number of points of a known front besides the first one, as usual in benchmarks of such problems.
const POINTS: usize = 1000;

/// The points of a front of two objectives, from this value of the first objective to 1.
fn curve(from: f64, second: fn(f64) -> f64) -> Vec<Vec<f64>> {
    let first = |index: usize| from + (1.0 - from) * index as f64 / POINTS as f64;
    (0..=POINTS).map(first).map(|first| vec![first, second(first)]).collect()
}

/// The first gene, and the mean of the others.
fn first_and_mean(candidate: &Candidate) -> (f64, f64) {
    let x = reals(candidate);
    (x[0], x[1..].iter().sum::<f64>() / (x.len() - 1) as f64)
}

pub(super) const ZDT1: Problem = Problem {
    name: "zdt1",
    doc: "a convex front, f2 = 1 - sqrt(f1) (Zitzler, Deb and Thiele 2000)",
    evaluate: |candidate| {
        let (first, mean) = first_and_mean(candidate);
        let g = 1.0 + 9.0 * mean;
        objectives(&[first, g * (1.0 - (first / g).sqrt())])
    },
    front: |_| curve(0.0, |first| 1.0 - first.sqrt()),
    ..ZDT
};

pub(super) const ZDT2: Problem = Problem {
    name: "zdt2",
    doc: "a concave front, f2 = 1 - f1^2 (Zitzler, Deb and Thiele 2000)",
    evaluate: |candidate| {
        let (first, mean) = first_and_mean(candidate);
        let g = 1.0 + 9.0 * mean;
        objectives(&[first, g * (1.0 - (first / g) * (first / g))])
    },
    front: |_| curve(0.0, |first| 1.0 - first * first),
    ..ZDT
};

pub(super) const ZDT3: Problem = Problem {
    name: "zdt3",
    doc: "a front in five pieces (Zitzler, Deb and Thiele 2000)",
    evaluate: |candidate| {
        let (first, mean) = first_and_mean(candidate);
        let g = 1.0 + 9.0 * mean;
        let share = first / g;
        objectives(&[first, g * (1.0 - share.sqrt() - share * sin(10.0 * PI * first))])
    },
    front: |_| {
        let mut points = curve(0.0, |first| 1.0 - first.sqrt() - first * sin(10.0 * PI * first));
        keep_front(&mut points);
        points
    },
    ..ZDT
};

pub(super) const ZDT4: Problem = Problem {
    name: "zdt4",
    doc: "many local fronts, the best f2 = 1 - sqrt(f1) (Zitzler, Deb and Thiele 2000)",
    length: 10,
    genome: |length| genome(&[("first", 1, UNIT), ("x", length - 1, Type::Real { low: -5.0, high: 5.0 })]),
    evaluate: |candidate| {
        let x = reals(candidate);
        let term = |x: &f64| x * x - 10.0 * cos(4.0 * PI * x);
        let g = 1.0 + 10.0 * (x.len() - 1) as f64 + x[1..].iter().map(term).sum::<f64>();
        objectives(&[x[0], g * (1.0 - (x[0] / g).sqrt())])
    },
    front: |_| curve(0.0, |first| 1.0 - first.sqrt()),
    ..ZDT
};

/// The length of the first group of bits of [`ZDT5`], and of every other group.
const GROUPS: (usize, usize) = (30, 5);

pub(super) const ZDT5: Problem = Problem {
    name: "zdt5",
    doc: "bits: a front of 31 points, f2 = 10 / f1, and groups of 5 that lead away from it (Zitzler, Deb and Thiele 2000)",
    lengths: (GROUPS.0 + GROUPS.1, 10_000),
    length: 80,
    genome: |length| genome(&[("bits", length, Type::Bits)]),
    evaluate: |candidate| {
        let ones = |group: &[bool]| group.iter().filter(|bit| **bit).count();
        let (first, rest) = bits(candidate).split_at(GROUPS.0);
        let first = 1.0 + ones(first) as f64;
        // If the length is not a multiple of 5, the last group is shorter.
        let value = |group: &[bool]| if ones(group) == group.len() { 1 } else { 2 + ones(group) };
        let g: usize = rest.chunks(GROUPS.1).map(value).sum();
        objectives(&[first, g as f64 / first])
    },
    // As for the other problems, 1.1 times the ends of the front, here of the default length.
    reference: &[34.1, 11.0],
    front: |length| {
        let groups = (length - GROUPS.0).div_ceil(GROUPS.1) as f64;
        (0..=GROUPS.0).map(|ones| 1.0 + ones as f64).map(|first| vec![first, groups / first]).collect()
    },
    ..ZDT
};

pub(super) const ZDT6: Problem = Problem {
    name: "zdt6",
    doc: "a concave front whose points are unevenly dense (Zitzler, Deb and Thiele 2000)",
    length: 10,
    evaluate: |candidate| {
        let (x, mean) = first_and_mean(candidate);
        let first = 1.0 - exp(-4.0 * x) * pow(sin(6.0 * PI * x), 6.0);
        let g = 1.0 + 9.0 * pow(mean, 0.25);
        objectives(&[first, g * (1.0 - (first / g) * (first / g))])
    },
    // The front begins at the least first objective, which occurs at a first gene of about 0.0815.
    front: |_| curve(0.280_775_318_8, |first| 1.0 - first * first),
    ..ZDT
};

pub(super) const DTLZ2: Problem = Problem {
    name: "dtlz2",
    doc: "an eighth of a sphere as the front of three objectives (Deb, Thiele, Laumanns and Zitzler 2005)",
    objectives: &[Objective::min("f1"), Objective::min("f2"), Objective::min("f3")],
    lengths: (3, 1000),
    length: 12,
    evaluate: |candidate| {
        let x = reals(candidate);
        let g: f64 = x[2..].iter().map(|x| (x - 0.5) * (x - 0.5)).sum();
        let (one, two) = (x[0] * PI / 2.0, x[1] * PI / 2.0);
        let radius = 1.0 + g;
        objectives(&[radius * cos(one) * cos(two), radius * cos(one) * sin(two), radius * sin(one)])
    },
    reference: &[1.1, 1.1, 1.1],
    front: |_| {
        // The 1,035 weights that are multiples of 1/44, projected onto the sphere.
        let weights = (0..=44).flat_map(|one| (0..=44 - one).map(move |two| [one, two, 44 - one - two].map(f64::from)));
        let length = |point: &[f64; 3]| point.iter().map(|it| it * it).sum::<f64>().sqrt();
        weights.map(|point| point.map(|it| it / length(&point)).to_vec()).collect()
    },
    ..ZDT
};
