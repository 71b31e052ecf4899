//! Problems with bits or permutations.

use std::f64::consts::PI;

use evoxo_common::{
    math::{cos, sin},
    rng::{Stream, shuffle, unit},
};

use super::definition::{Objective, Problem, bits, genome, objectives, permutation};
use crate::genome::Type;

/// The defaults of problems with bits.
const STRING: Problem = Problem {
    name: "",
    doc: "",
    objectives: &[],
    constraints: 0,
    lengths: (2, 10_000),
    length: 100,
    genome: |length| genome(&[("bits", length, Type::Bits)]),
    evaluate: |_| objectives(&[]),
    noise: None,
    optimum: |_| None,
    measures: &[],
    reference: &[],
    front: |_| Vec::new(),
};

pub(super) const ONEMAX: Problem = Problem {
    name: "onemax",
    doc: "the number of ones (Ackley 1987)",
    objectives: &[Objective::max("ones")],
    evaluate: |candidate| objectives(&[bits(candidate).iter().filter(|bit| **bit).count() as f64]),
    optimum: |length| Some(length as f64),
    ..STRING
};

pub(super) const LEADINGONES: Problem = Problem {
    name: "leadingones",
    doc: "the number of ones before the first zero (Rudolph 1997)",
    objectives: &[Objective::max("leading ones")],
    evaluate: |candidate| objectives(&[bits(candidate).iter().take_while(|bit| **bit).count() as f64]),
    optimum: |length| Some(length as f64),
    ..STRING
};

/// How many of the following bits the value of a bit of [`NK`] depends on.
const NEIGHBOURS: usize = 4;

pub(super) const NK: Problem = Problem {
    name: "nk",
    doc: "an NK landscape: each bit with the next 4 chooses a random number from 0 to 1; their mean (Kauffman 1993)",
    objectives: &[Objective::max("fitness")],
    lengths: (NEIGHBOURS + 1, 10_000),
    evaluate: |candidate| {
        let (bits, tables) = (bits(candidate), Stream::root(0).text("evolve").text("nk"));
        let choice = |index: usize| {
            let pattern = (0..=NEIGHBOURS).map(|offset| bits[(index + offset) % bits.len()]);
            let entry = pattern.fold(0, |entry, bit| entry << 1 | u64::from(bit));
            unit(&mut tables.word(index as u64).word(entry).rng())
        };
        objectives(&[(0..bits.len()).map(choice).sum::<f64>() / bits.len() as f64])
    },
    ..STRING
};

/// The least energies for 2 to 66 bits: T. Packebusch and S. Mertens, "Low Autocorrelation Binary Sequences", Journal
/// of Physics A 49, 2016, table 1.
const ENERGIES: [u16; 65] = [
    1, 1, 2, 2, 7, 3, 8, 12, 13, 5, 10, 6, 19, 15, 24, 32, 25, 29, 26, 26, 39, 47, 36, 36, 45, 37, 50, 62, 59, 67, 64,
    64, 65, 73, 82, 86, 87, 99, 108, 108, 101, 109, 122, 118, 131, 135, 140, 136, 153, 153, 166, 170, 175, 171, 192,
    188, 197, 205, 218, 226, 235, 207, 208, 240, 257,
];

pub(super) const LABS: Problem = Problem {
    name: "labs",
    doc: "the energy of the autocorrelations of a sequence of -1 and 1 (Golay 1982)",
    objectives: &[Objective::min("energy")],
    lengths: (2, 1000),
    length: 40,
    evaluate: |candidate| {
        let bits = bits(candidate);
        let correlation = |lag: usize| {
            let equal = bits.iter().zip(&bits[lag..]).filter(|(one, two)| one == two).count();
            2 * equal as i64 - (bits.len() - lag) as i64
        };
        let energy: i64 = (1..bits.len()).map(correlation).map(|correlation| correlation * correlation).sum();
        objectives(&[energy as f64])
    },
    optimum: |length| ENERGIES.get(length.checked_sub(2)?).map(|energy| f64::from(*energy)),
    ..STRING
};

pub(super) const TSP: Problem = Problem {
    name: "tsp",
    doc: "a round trip through cities on a circle of radius 1, numbered at random; its length (the best goes around)",
    objectives: &[Objective::min("length")],
    lengths: (4, 1000),
    length: 50,
    genome: |length| genome(&[("trip", length, Type::Permutation)]),
    evaluate: |candidate| {
        let trip = permutation(candidate);
        let mut place: Vec<u32> = (0..trip.len() as u32).collect();
        shuffle(&mut Stream::root(0).text("evolve").text("tsp").word(trip.len() as u64).rng(), &mut place);
        let angle = |city: u32| 2.0 * PI * f64::from(place[city as usize]) / trip.len() as f64;
        let at: Vec<(f64, f64)> = trip.iter().map(|city| (cos(angle(*city)), sin(angle(*city)))).collect();
        let next = at.iter().cycle().skip(1);
        let leg = |((x, y), (u, v)): (&(f64, f64), &(f64, f64))| ((x - u) * (x - u) + (y - v) * (y - v)).sqrt();
        objectives(&[at.iter().zip(next).map(leg).sum()])
    },
    optimum: |length| Some(2.0 * length as f64 * sin(PI / length as f64)),
    ..STRING
};
