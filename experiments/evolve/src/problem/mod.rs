//! The built-in problems: standard test functions of the field, to try algorithms and clusters with.

mod constrained;
mod definition;
mod discrete;
mod multi;
mod real;
#[cfg(test)]
mod tests;

pub use definition::{Measure, Objective, Problem};

/// All built-in problems.
pub static PROBLEMS: [Problem; 21] = [
    real::SPHERE,
    real::NOISY_SPHERE,
    real::GROWING_NOISE,
    real::ELLIPSOID,
    real::RASTRIGIN,
    real::ROSENBROCK,
    real::ARM,
    discrete::ONEMAX,
    discrete::LEADINGONES,
    discrete::NK,
    discrete::LABS,
    discrete::TSP,
    multi::ZDT1,
    multi::ZDT2,
    multi::ZDT3,
    multi::ZDT4,
    multi::ZDT5,
    multi::ZDT6,
    multi::DTLZ2,
    constrained::G06,
    constrained::G07,
];

/// The problem with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Problem> {
    PROBLEMS.iter().find(|problem| problem.name == name)
}
