//! Problems with constraints.
//!
//! J. J. Liang et al., "Problem Definitions and Evaluation Criteria for the CEC 2006 Special Session on Constrained
//! Real-Parameter Optimization", 2006. The optima are those that this report gives.

use super::definition::{Objective, Problem, genome, reals};
use crate::{genome::Type, messages::Evaluation};

pub(super) const G06: Problem = Problem {
    name: "g06",
    doc: "two numbers, a sliver between two circles (Floudas and Pardalos 1987; g06 of CEC 2006)",
    objectives: &[Objective::min("f")],
    constraints: 2,
    lengths: (2, 2),
    length: 2,
    genome: |_| {
        let (first, second) = (Type::Real { low: 13.0, high: 100.0 }, Type::Real { low: 0.0, high: 100.0 });
        genome(&[("first", 1, first), ("second", 1, second)])
    },
    evaluate: |candidate| {
        let x = reals(candidate);
        let (square, cube) = (|x: f64| x * x, |x: f64| x * x * x);
        Evaluation {
            objectives: vec![cube(x[0] - 10.0) + cube(x[1] - 20.0)],
            constraints: vec![
                100.0 - square(x[0] - 5.0) - square(x[1] - 5.0),
                square(x[0] - 6.0) + square(x[1] - 5.0) - 82.81,
            ],
            ..Default::default()
        }
    },
    noise: None,
    optimum: |_| Some(-6_961.813_875_580_15),
    measures: &[],
    reference: &[],
    front: |_| Vec::new(),
};

pub(super) const G07: Problem = Problem {
    name: "g07",
    doc: "ten numbers, eight constraints of which six bind (Hock and Schittkowski 1981; g07 of CEC 2006)",
    objectives: &[Objective::min("f")],
    constraints: 8,
    lengths: (10, 10),
    length: 10,
    genome: |_| genome(&[("x", 10, Type::Real { low: -10.0, high: 10.0 })]),
    evaluate: |candidate| {
        let genes = reals(candidate);
        let x = |index: usize| genes[index - 1];
        let square = |x: f64| x * x;
        let terms = [
            square(x(1)) + square(x(2)) + x(1) * x(2) - 14.0 * x(1) - 16.0 * x(2),
            square(x(3) - 10.0) + 4.0 * square(x(4) - 5.0) + square(x(5) - 3.0) + 2.0 * square(x(6) - 1.0),
            5.0 * square(x(7)) + 7.0 * square(x(8) - 11.0) + 2.0 * square(x(9) - 10.0) + square(x(10) - 7.0) + 45.0,
        ];
        let constraints = vec![
            -105.0 + 4.0 * x(1) + 5.0 * x(2) - 3.0 * x(7) + 9.0 * x(8),
            10.0 * x(1) - 8.0 * x(2) - 17.0 * x(7) + 2.0 * x(8),
            -8.0 * x(1) + 2.0 * x(2) + 5.0 * x(9) - 2.0 * x(10) - 12.0,
            3.0 * square(x(1) - 2.0) + 4.0 * square(x(2) - 3.0) + 2.0 * square(x(3)) - 7.0 * x(4) - 120.0,
            5.0 * square(x(1)) + 8.0 * x(2) + square(x(3) - 6.0) - 2.0 * x(4) - 40.0,
            square(x(1)) + 2.0 * square(x(2) - 2.0) - 2.0 * x(1) * x(2) + 14.0 * x(5) - 6.0 * x(6),
            0.5 * square(x(1) - 8.0) + 2.0 * square(x(2) - 4.0) + 3.0 * square(x(5)) - x(6) - 30.0,
            -3.0 * x(1) + 6.0 * x(2) + 12.0 * square(x(9) - 8.0) - 7.0 * x(10),
        ];
        Evaluation { objectives: vec![terms.iter().sum()], constraints, ..Default::default() }
    },
    noise: None,
    optimum: |_| Some(24.306_209_068_179_7),
    measures: &[],
    reference: &[],
    front: |_| Vec::new(),
};
