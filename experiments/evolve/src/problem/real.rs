//! Functions of real numbers, to be minimised. The least value of each is 0.

use std::f64::consts::PI;

use evoxo_common::{
    math::{cos, pow, sin},
    rng::normal_pair,
};

use super::definition::{Measure, Objective, Problem, genome, objectives, reals};
use crate::{
    genome::{Genome, Type},
    messages,
};

/// The defaults of these functions.
const FUNCTION: Problem = Problem {
    name: "",
    doc: "",
    objectives: &[Objective::min("f")],
    constraints: 0,
    lengths: (2, 1000),
    length: 10,
    genome: |length| within(5.0, length),
    evaluate: |_| objectives(&[]),
    noise: None,
    optimum: |_| Some(0.0),
    measures: &[],
    reference: &[],
    front: |_| Vec::new(),
};

fn within(bound: f64, length: usize) -> Genome {
    genome(&[("x", length, Type::Real { low: -bound, high: bound })])
}

pub(super) const SPHERE: Problem = Problem {
    name: "sphere",
    doc: "the sum of squares, from -5 to 5; least at 0 (Hansen et al. 2009, BBOB f1, not shifted)",
    evaluate: |candidate| objectives(&[reals(candidate).iter().map(|x| x * x).sum()]),
    ..FUNCTION
};

pub(super) const NOISY_SPHERE: Problem = Problem {
    name: "noisy-sphere",
    doc: "the sphere, seen with normal noise of deviation 1 (Hansen et al. 2009, UH-CMA-ES, section V)",
    noise: Some(|value, rng| value + normal_pair(rng)[0]),
    ..SPHERE
};

pub(super) const GROWING_NOISE: Problem = Problem {
    name: "growing-noise",
    doc: "the sphere, seen with normal noise whose deviation is the value itself: the luckiest values are far from 0",
    noise: Some(|value, rng| value + value * normal_pair(rng)[0]),
    ..SPHERE
};

pub(super) const ELLIPSOID: Problem = Problem {
    name: "ellipsoid",
    doc: "squares with weights from 1 to 1,000,000, from -5 to 5 (the ellipsoid of Hansen et al. 2009, BBOB f2, without its shift and oscillation)",
    evaluate: |candidate| {
        let x = reals(candidate);
        let last = (x.len() - 1) as f64;
        let weight = |index: usize| pow(1e6, index as f64 / last);
        objectives(&[x.iter().enumerate().map(|(index, x)| weight(index) * x * x).sum()])
    },
    ..FUNCTION
};

pub(super) const RASTRIGIN: Problem = Problem {
    name: "rastrigin",
    doc: "squares and cosines, with 11^n local optima, from -5.12 to 5.12; least at 0 (Muehlenbein et al. 1991)",
    genome: |length| within(5.12, length),
    evaluate: |candidate| {
        let term = |x: &f64| x * x - 10.0 * cos(2.0 * PI * x);
        let x = reals(candidate);
        objectives(&[10.0 * x.len() as f64 + x.iter().map(term).sum::<f64>()])
    },
    ..FUNCTION
};

pub(super) const ROSENBROCK: Problem = Problem {
    name: "rosenbrock",
    doc: "a bent valley, from -5 to 10; least where all numbers are 1 (Rosenbrock 1960)",
    genome: |length| genome(&[("x", length, Type::Real { low: -5.0, high: 10.0 })]),
    evaluate: |candidate| {
        let square = |x: f64| x * x;
        let pair = |pair: &[f64]| 100.0 * square(pair[1] - square(pair[0])) + square(1.0 - pair[0]);
        objectives(&[reals(candidate).windows(2).map(pair).sum()])
    },
    ..FUNCTION
};

pub(super) const ARM: Problem = Problem {
    name: "arm",
    doc: "joints of an arm in the plane: even bends for every place that its end can reach (Cully et al. 2015)",
    objectives: &[Objective::min("variance")],
    genome: |length| within(PI, length),
    evaluate: |candidate| {
        let angles = reals(candidate);
        let count = angles.len() as f64;
        let mean = angles.iter().sum::<f64>() / count;
        let variance = angles.iter().map(|angle| (angle - mean) * (angle - mean)).sum::<f64>() / count;
        let (mut direction, mut x, mut y) = (0.0, 0.0, 0.0);
        for angle in &angles {
            direction += angle;
            x += cos(direction) / count;
            y += sin(direction) / count;
        }
        messages::Evaluation { measures: vec![x, y], ..objectives(&[variance]) }
    },
    // Slightly above pi squared, the variance of angles that are as far apart as possible.
    reference: &[10.0],
    measures: &[Measure { name: "x", low: -1.0, high: 1.0 }, Measure { name: "y", low: -1.0, high: 1.0 }],
    ..FUNCTION
};
