//! The functions: shifted, and some rotated, so that no algorithm gains from an optimum in the middle or from separate genes.

use std::f64::consts::{E, PI};

use evoxo_experiments::evolve::genome::{Candidate, Genes, Genome, Part, Type};

/// A random word made from another one: SplitMix64's scrambler.
pub(crate) fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// A number from 0 to 1 made from a word.
fn share(word: u64) -> f64 {
    (mix(word) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A standard normal deviate made from a word.
pub(crate) fn normal(word: u64) -> f64 {
    (-2.0 * (1.0 - share(word)).ln()).sqrt() * (2.0 * PI * share(mix(word ^ 77))).cos()
}

/// A random rotation: rows at right angles, by Gram and Schmidt.
fn rotation(genes: usize) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for row in 0..genes {
        let word = |column: usize| (1000 + genes * genes + row * genes + column) as u64;
        let mut new: Vec<f64> = (0..genes).map(|column| normal(word(column))).collect();
        for _ in 0..2 {
            for other in &rows {
                let along = dot(other, &new);
                new.iter_mut().zip(other).for_each(|(value, other)| *value -= along * other);
            }
        }
        let length = dot(&new, &new).sqrt();
        new.iter_mut().for_each(|value| *value /= length);
        rows.push(new);
    }
    rows
}

fn dot(one: &[f64], two: &[f64]) -> f64 {
    one.iter().zip(two).map(|(one, two)| one * two).sum()
}

fn square(value: f64) -> f64 {
    value * value
}

pub(crate) type Function = fn(&[f64]) -> f64;

/// The half, the name, the function, and whether it is rotated. The rule was chosen on one half, and is judged by the other.
pub(crate) const FUNCTIONS: [(&str, &str, Function, bool); 14] = [
    ("tuned", "sphere", sphere, false),
    ("tuned", "ellipsoid rotated", ellipsoid, true),
    ("tuned", "rosenbrock", rosenbrock, false),
    ("tuned", "rastrigin", rastrigin, false),
    ("tuned", "griewank", griewank, false),
    ("tuned", "schaffer rotated", schaffer, true),
    ("other", "ellipsoid", ellipsoid, false),
    ("other", "ackley", ackley, false),
    ("other", "levy", levy, false),
    ("other", "schwefel", schwefel, false),
    ("other", "rastrigin rotated", rastrigin, true),
    ("other", "rosenbrock rotated", rosenbrock, true),
    ("other", "cigar rotated", cigar, true),
    ("other", "alpine", alpine, false),
];

fn sphere(z: &[f64]) -> f64 {
    dot(z, z)
}

fn ellipsoid(z: &[f64]) -> f64 {
    let last = (z.len() - 1) as f64;
    z.iter().enumerate().map(|(place, v)| v * v * 10_f64.powf(6.0 * place as f64 / last)).sum()
}

fn rosenbrock(z: &[f64]) -> f64 {
    let step = |pair: &[f64]| {
        let (a, b) = (pair[0] + 1.0, pair[1] + 1.0);
        100.0 * square(b - a * a) + square(1.0 - a)
    };
    z.windows(2).map(step).sum()
}

fn rastrigin(z: &[f64]) -> f64 {
    z.iter().map(|v| 10.0 + v * v - 10.0 * (2.0 * PI * v).cos()).sum()
}

fn ackley(z: &[f64]) -> f64 {
    let mean = |of: fn(f64) -> f64| z.iter().map(|v| of(6.0 * v)).sum::<f64>() / z.len() as f64;
    20.0 + E - 20.0 * (-0.2 * mean(square).sqrt()).exp() - mean(|v| (2.0 * PI * v).cos()).exp()
}

fn griewank(z: &[f64]) -> f64 {
    let waves = z.iter().enumerate().map(|(place, v)| (100.0 * v / ((place + 1) as f64).sqrt()).cos());
    1.0 + 2.5 * dot(z, z) - waves.product::<f64>()
}

fn schwefel(z: &[f64]) -> f64 {
    z.iter().map(|v| 418.982_887_272_433_8 - 100.0 * v * (100.0 * v).abs().sqrt().sin()).sum()
}

fn levy(z: &[f64]) -> f64 {
    let w: Vec<f64> = z.iter().map(|v| 1.0 + v / 2.0).collect();
    let last = w[w.len() - 1];
    let inner = |v: &f64| square(v - 1.0) * (1.0 + 10.0 * square((PI * v + 1.0).sin()));
    let ends = square((PI * w[0]).sin()) + square(last - 1.0) * (1.0 + square((2.0 * PI * last).sin()));
    ends + w[..w.len() - 1].iter().map(inner).sum::<f64>()
}

fn alpine(z: &[f64]) -> f64 {
    z.iter().map(|v| (2.0 * v * (2.0 * v).sin() + 0.2 * v).abs()).sum()
}

fn cigar(z: &[f64]) -> f64 {
    z[0] * z[0] + 1e6 * dot(&z[1..], &z[1..])
}

fn schaffer(z: &[f64]) -> f64 {
    let pair = |pair: &[f64]| {
        let radius = dot(pair, pair).sqrt();
        radius.sqrt() * (1.0 + square((50.0 * radius.powf(0.2)).sin()))
    };
    square(z.windows(2).map(pair).sum::<f64>() / (z.len() - 1) as f64)
}

/// Types of genes; all values are from -5 to 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Real numbers.
    Real,
    /// Whole numbers from -100 to 100, each a twentieth.
    Wide,
    /// Whole numbers from -5 to 5.
    Narrow,
    /// Half of each: real, and whole from -5 to 5.
    Mixed,
    /// Half of each: real, and bits, which are -1 and 1.
    Bits,
}

impl Kind {
    /// The kind with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let numbers = [("real", Self::Real), ("wide", Self::Wide), ("narrow", Self::Narrow)];
        let mut all = numbers.into_iter().chain([("mixed", Self::Mixed), ("bits", Self::Bits)]);
        all.find(|(other, _)| *other == name).map(|(_, kind)| kind)
    }

    /// The genome with this number of genes.
    pub(crate) fn genome(self, genes: usize) -> Genome {
        let real = Type::Real { low: -5.0, high: 5.0 };
        let (wide, narrow) = (Type::Integer { low: -100, high: 100 }, Type::Integer { low: -5, high: 5 });
        let parts = match self {
            Self::Real => vec![(genes, real)],
            Self::Wide => vec![(genes, wide)],
            Self::Narrow => vec![(genes, narrow)],
            Self::Mixed => vec![(genes / 2, real), (genes - genes / 2, narrow)],
            Self::Bits => vec![(genes / 2, real), (genes - genes / 2, Type::Bits)],
        };
        let part = |(place, (length, of)): (usize, (usize, Type))| Part { name: format!("x{place}"), length, of };
        Genome { parts: parts.into_iter().enumerate().map(part).collect(), bounded: true }
    }

    /// The values of a candidate's genes.
    pub(crate) fn point(self, candidate: &Candidate) -> Vec<f64> {
        let unit = if self == Self::Wide { 20.0 } else { 1.0 };
        let values = |genes: &Genes| match genes {
            Genes::Real(genes) => genes.clone(),
            Genes::Integer(genes) => genes.iter().map(|gene| *gene as f64 / unit).collect(),
            Genes::Bits(genes) => genes.iter().map(|bit| if *bit { 1.0 } else { -1.0 }).collect(),
            other => panic!("a genome of numbers has {other:?}"),
        };
        candidate.parts.iter().flat_map(values).collect()
    }
}

/// A function with its shift and its rotation.
pub(crate) struct Problem {
    function: Function,
    shift: Vec<f64>,
    rotation: Option<Vec<Vec<f64>>>,
}

impl Problem {
    /// The function with this index, for genes of this kind. The best value, 0, is at a point that the genes can have.
    pub(crate) fn new(index: usize, kind: Kind, genes: usize) -> Self {
        let (_, name, function, is_rotated) = FUNCTIONS[index];
        let key = name.bytes().fold(7_u64, |key, byte| key.wrapping_mul(131).wrapping_add(byte.into()));
        let step = |place: usize| match kind {
            Kind::Wide => Some(0.05),
            Kind::Narrow => Some(1.0),
            Kind::Mixed if place >= genes / 2 => Some(1.0),
            _ => None,
        };
        let shift = |place: usize| {
            let drawn = 8.0 * share(key.wrapping_add((genes * 1000 + place) as u64)) - 4.0;
            if kind == Kind::Bits && place >= genes / 2 {
                return drawn.signum();
            }
            step(place).map_or(drawn, |step| (drawn / step).round() * step)
        };
        // The optimum of schwefel is near a corner already.
        let shift = (0..genes).map(|place| if name == "schwefel" { 0.0 } else { shift(place) }).collect();
        Self { function, shift, rotation: is_rotated.then(|| rotation(genes)) }
    }

    /// The value of a point.
    pub(crate) fn value(&self, point: &[f64]) -> f64 {
        let moved: Vec<f64> = point.iter().zip(&self.shift).map(|(value, shift)| value - shift).collect();
        match &self.rotation {
            None => (self.function)(&moved),
            Some(rows) => (self.function)(&rows.iter().map(|row| dot(row, &moved)).collect::<Vec<f64>>()),
        }
    }
}
