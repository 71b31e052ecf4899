//! Outputs with the greatest and the least numbers, with values that are not numbers, and of no length. Each output is either
//! rejected, or the replica continues to its end, is reported and has a digest. No output causes a panic.

use std::{collections::BTreeMap, panic::AssertUnwindSafe};

use bytes::Bytes;
use evoxo_common::{
    experiment::{Config, Replica},
    local,
};
use evoxo_experiments::registry;
use prost::encoding::{WireType, encode_key, encode_varint};

use crate::{EVOLVE, Field, fields, small::SMALL};

/// The most changes of one output. With THOROUGH there are that many times more.
const CHANGES_MAX: usize = 24;
const THOROUGH: usize = 20;

const WHOLE: [u64; 6] = [0, 1, i32::MAX as u64, u32::MAX as u64, i64::MAX as u64, u64::MAX];
const REAL: [f64; 8] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, 5e-324, -0.0, 1e300];

#[test]
fn no_number_in_an_output_is_a_panic() {
    let most = if std::env::var_os("THOROUGH").is_some() { THOROUGH * CHANGES_MAX } else { CHANGES_MAX };
    let (mut counts, mut panics) = (BTreeMap::<&str, [usize; 2]>::new(), Vec::new());
    for file in SMALL.iter().chain(&EVOLVE) {
        let config = Config::parse(&registry(), "t", file, &[("replicas".into(), "1".into())])
            .unwrap_or_else(|problems| panic!("{problems}"));
        let mut rounds = Replica::start(&config, &config.arms[0], 0);
        while local::step(&mut rounds).unwrap() {}
        for round in [0, rounds.rounds() - 1] {
            let mut replica = Replica::start(&config, &config.arms[0], 0);
            while replica.rounds() < round {
                local::step(&mut replica).unwrap();
            }
            let saved = replica.save();
            let tasks = replica.plan(0..replica.needed());
            let outputs: Vec<Bytes> = tasks.iter().map(|task| task.run().unwrap()).collect();
            let changes = changes(&outputs[0]);
            let step = changes.len().div_ceil(most).max(1);
            let [refused, taken] = counts.entry(config.kind.name).or_default();
            for change in changes.into_iter().step_by(step) {
                let tried = std::panic::catch_unwind(AssertUnwindSafe(|| {
                    let changed = tasks[0].check(&change.clone().into()).ok()?;
                    let mut outputs = outputs.clone();
                    outputs[0] = changed;
                    go_on(&config, Replica::restore(&config, &saved).unwrap(), &outputs);
                    Some(())
                }));
                match tried {
                    Ok(Some(())) => *taken += 1,
                    Ok(None) => *refused += 1,
                    Err(_) => panics.push(format!("{file}, round {round}: {change:02x?}")),
                }
            }
        }
    }
    assert!(panics.is_empty(), "{} outputs are panics, the first of {}", panics.len(), panics[0]);
    for (kind, [refused, taken]) in counts {
        println!("{kind}: {refused} refused, {taken} taken");
        assert!(refused > 5, "{kind}: too few extreme numbers for this test to mean anything");
    }
}

/// Continues to the end, with everything that is reported there, and saves and restores the replica after each round.
fn go_on(config: &Config, mut replica: Replica, outputs: &[Bytes]) {
    replica.absorb(outputs);
    // The next task may be impossible after the change. The replica then stays as it is.
    while local::step(&mut replica).unwrap_or(false) {
        replica = Replica::restore(config, &replica.save()).unwrap_or_else(|why| panic!("its own state: {why}"));
    }
    let players = replica.champion().into_iter().chain(replica.population());
    players.for_each(|card| drop(card.write("card")));
    let report = config.report(std::slice::from_ref(&replica));
    drop((format!("{:?} {} {:?}", report.tables, report.json, report.notes), replica.digest(), replica.failure()));
}

/// The variants of an output in which one leaf, or its whole list, has an extreme value.
fn changes(message: &[u8]) -> Vec<Vec<u8>> {
    let Some(fields) = fields(message) else { return Vec::new() };
    let mut all = vec![Vec::new(), message.repeat(2)];
    for Field { start, number, wire, body } in fields {
        let with = |wire: WireType, value: &[u8]| {
            let mut whole = message[..start].to_vec();
            encode_key(number, wire, &mut whole);
            if wire == WireType::LengthDelimited {
                encode_varint(value.len() as u64, &mut whole);
            }
            whole.extend(value);
            whole.extend(&message[body.end..]);
            whole
        };
        let varint = |value: u64| {
            let mut bytes = Vec::new();
            encode_varint(value, &mut bytes);
            bytes
        };
        match wire {
            WireType::Varint => all.extend(WHOLE.map(|value| with(wire, &varint(value)))),
            WireType::SixtyFourBit => all.extend(REAL.map(|value| with(wire, &value.to_le_bytes()))),
            WireType::ThirtyTwoBit => all.extend(REAL.map(|value| with(wire, &(value as f32).to_le_bytes()))),
            _ => {
                let inside = &message[body.clone()];
                all.extend(changes(inside).into_iter().map(|changed| with(wire, &changed)));
                all.extend([&[][..], &[0xff; 40], &inside.repeat(3)].map(|value| with(wire, value)));
                // In a list of numbers, either a single number changes, or all of them.
                for value in REAL {
                    for bytes in [value.to_le_bytes().to_vec(), (value as f32).to_le_bytes().to_vec()] {
                        if inside.len().is_multiple_of(bytes.len()) && !inside.is_empty() {
                            all.push(with(wire, &[&bytes[..], &inside[bytes.len()..]].concat()));
                            all.push(with(wire, &bytes.repeat(inside.len() / bytes.len())));
                        }
                    }
                }
                all.extend(WHOLE.map(|value| with(wire, &varint(value).repeat(inside.len().min(64)))));
            }
        }
    }
    all
}
