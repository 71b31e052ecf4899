//! The smallest possible lies: one leaf of one output is changed by the least amount. Then either the output is rejected, or
//! the digest differs, or everything that is reported stays the same.

mod extremes;
mod small;

use std::collections::BTreeMap;

use bytes::Bytes;
use evoxo_common::{
    card::Card,
    experiment::{Config, Replica},
    local,
    task::Task,
};
use evoxo_experiments::registry;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field};
use small::SMALL;

/// Runs of evolve, which [`small::SMALL`] lacks: one objective, several objectives, a distribution, noise, and an archive.
const EVOLVE: [&str; 5] = [
    "experiment = \"evolve\"\n[settings]\nproblem = \"sphere\"\nevaluations = 60\nalgorithm = \"ga\"\npopulation = 20",
    "experiment = \"evolve\"\n[settings]\nproblem = \"zdt1\"\nevaluations = 60\nalgorithm = \"nsga2\"\npopulation = 20",
    "experiment = \"evolve\"\n[settings]\nproblem = \"rosenbrock\"\nevaluations = 60\nalgorithm = \"cma-es\"",
    "experiment = \"evolve\"\n[settings]\nproblem = \"noisy-sphere\"\nlength = 3\nalgorithm = \"ga\"\nevaluations = 40\npopulation = 20\n\
     finalists = 1\nconfirmations = 3",
    "experiment = \"evolve\"\n[settings]\nproblem = \"arm\"\nlength = 3\nevaluations = 60\nalgorithm = \"map-elites\"\ninitial = 20\npopulation = 20",
];

/// The most lies for one output.
const LIES_MAX: usize = 60;

#[test]
fn no_lie_changes_the_report_without_the_digest() {
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for file in SMALL.iter().chain(&EVOLVE) {
        let config = Config::parse(&registry(), "t", file, &[("replicas".into(), "1".into())])
            .unwrap_or_else(|problems| panic!("{problems}"));
        let honest = local::run(&config).unwrap();
        let (digest, told) = (honest[0].digest(), told(&config, &honest));
        // There is a lie in the first round, in a middle round, and in the last.
        let rounds = honest[0].rounds();
        for round in [0, rounds / 2, rounds - 1] {
            let mut replica = Replica::start(&config, &config.arms[0], 0);
            while replica.rounds() < round {
                local::step(&mut replica).unwrap();
            }
            let saved = replica.save();
            let tasks = replica.plan(0..replica.needed());
            let outputs: Vec<Bytes> = tasks.iter().map(|task| task.run().unwrap()).collect();
            let place = outputs.len() / 2;
            let [refused, seen, without_effect] = counts.entry(config.kind.name).or_default();
            for lie in lies(&outputs[place]) {
                let Some(lie) = accepted(&tasks[place], lie) else {
                    *refused += 1;
                    continue;
                };
                if lie == outputs[place] {
                    continue;
                }
                let mut outputs = outputs.clone();
                outputs[place] = lie;
                let mut liar = Replica::restore(&config, &saved).unwrap();
                liar.absorb(&outputs);
                while local::step(&mut liar).unwrap_or(false) {}
                if liar.digest() != digest {
                    *seen += 1;
                    continue;
                }
                *without_effect += 1;
                assert!(self::told(&config, &[liar]) == told, "{file}: a lie in round {round} has the honest digest");
            }
        }
    }
    for (kind, [refused, seen, without_effect]) in counts {
        println!("{kind}: {refused} refused, {seen} with another digest, {without_effect} without effect");
        assert!(refused > 0 && seen > 10, "{kind}: too few lies for this test to mean anything");
    }
}

/// The output in the form in which it is accepted; `None` if it is rejected.
fn accepted(task: &Task, lie: Vec<u8>) -> Option<Bytes> {
    task.check(&lie.into()).ok()
}

/// Everything that is reported about replicas, as text.
fn told(config: &Config, replicas: &[Replica]) -> String {
    let report = config.report(replicas);
    let players = replicas.iter().flat_map(|it| it.champion().into_iter().chain(it.population()));
    let cards: Vec<_> = players.map(|card: Card| card.write("card")).collect();
    let rows: Vec<_> = replicas.iter().map(|it| (it.history(), it.failure(), it.is_finished())).collect();
    format!("{:?} {} {:?} {cards:?} {rows:?}", report.tables, report.json, report.notes)
}

/// An even selection of the possible changes of one leaf: the lowest bit of a number or text, or a number that was 0.
fn lies(output: &[u8]) -> Vec<Vec<u8>> {
    let all = changes(output, 3);
    let step = all.len().div_ceil(LIES_MAX).max(1);
    all.into_iter().step_by(step).collect()
}

fn changes(message: &[u8], depth: usize) -> Vec<Vec<u8>> {
    let flipped = |place: usize| {
        let mut changed = message.to_vec();
        changed[place] ^= 1;
        changed
    };
    // An odd step reaches each byte of a list of numbers.
    let step = (message.len() / 200) | 1;
    let mut all: Vec<Vec<u8>> = (0..message.len()).step_by(step).map(flipped).collect();
    // A value of 0 is not encoded.
    for field in 1..=12 {
        let with = |wire: WireType, value: &[u8]| {
            let mut changed = message.to_vec();
            encode_key(field, wire, &mut changed);
            changed.extend(value);
            changed
        };
        all.push(with(WireType::Varint, &[1]));
        all.push(with(WireType::SixtyFourBit, &f64::from_bits(1).to_le_bytes()));
    }
    for Field { start, number, body, .. } in inner(message).unwrap_or_default().into_iter().filter(|_| depth > 0) {
        if inner(&message[body.clone()]).is_none() {
            continue;
        }
        for changed in changes(&message[body.clone()], depth - 1) {
            let mut whole = message[..start].to_vec();
            encode_key(number, WireType::LengthDelimited, &mut whole);
            encode_varint(changed.len() as u64, &mut whole);
            whole.extend(changed);
            whole.extend(&message[body.end..]);
            all.push(whole);
        }
    }
    all
}

/// A field of a message: where it begins, its number and wire type, and where its body is.
struct Field {
    start: usize,
    number: u32,
    wire: WireType,
    body: std::ops::Range<usize>,
}

/// The fields of a message; `None` if these bytes are not a message.
fn fields(message: &[u8]) -> Option<Vec<Field>> {
    let (mut rest, mut found) = (message, Vec::new());
    while !rest.is_empty() {
        let start = message.len() - rest.len();
        let (number, wire) = decode_key(&mut rest).ok()?;
        let mut from = message.len() - rest.len();
        if wire == WireType::LengthDelimited {
            let length = decode_varint(&mut rest).ok()? as usize;
            from = message.len() - rest.len();
            rest = rest.get(length..)?;
        } else {
            skip_field(wire, number, &mut rest, Default::default()).ok()?;
        }
        found.push(Field { start, number, wire, body: from..message.len() - rest.len() });
    }
    Some(found)
}

/// The fields of bytes that may be a nested message.
fn inner(message: &[u8]) -> Option<Vec<Field>> {
    Some(fields(message)?.into_iter().filter(|field| field.wire == WireType::LengthDelimited).collect())
}
