//! The history of a run as event files for TensorBoard: one directory for each replica, in which every column is a curve over
//! the first column. The files are TFRecords of `tensorflow.Event` messages, with only the fields that are needed here.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Context as _;
use evoxo_common::experiment::{Config, champion_stem};
use prost::Message;

use crate::history::History;

/// `tensorflow.Event`.
#[derive(Clone, PartialEq, Message)]
struct Event {
    /// Seconds since 1970. A history has no times, so this is 0.
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(oneof = "What", tags = "3, 5")]
    what: Option<What>,
}

/// The content of an event.
#[derive(Clone, PartialEq, prost::Oneof)]
enum What {
    #[prost(string, tag = "3")]
    FileVersion(String),
    #[prost(message, tag = "5")]
    Summary(Summary),
}

/// `tensorflow.Summary`.
#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    value: Vec<Scalar>,
}

/// `tensorflow.Summary.Value` with a scalar.
#[derive(Clone, PartialEq, Message)]
struct Scalar {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, tag = "2")]
    simple_value: f32,
}

/// TensorBoard recognizes files by the first part of this name.
const FILE: &str = "events.out.tfevents.0.evoxo";

/// Writes a history, with one directory for each replica.
pub(crate) fn write(history: &History, config: &Config, to: &Path) -> anyhow::Result<()> {
    let mut files: BTreeMap<(usize, u32), Vec<u8>> = BTreeMap::new();
    let columns = config.kind.columns;
    history.each_row(config, |arm, replica, row| {
        let file = files.entry((arm, replica)).or_insert_with(|| {
            record(&Event { what: Some(What::FileVersion("brain.Event:2".into())), ..Event::default() })
        });
        let scalars = columns.iter().zip(&row).skip(1);
        // TensorBoard has no double precision.
        let value = scalars.map(|(column, value)| Scalar { tag: column.name.into(), simple_value: *value as f32 });
        let summary = Summary { value: value.collect() };
        file.extend(record(&Event { step: row[0] as i64, what: Some(What::Summary(summary)), wall_time: 0.0 }));
    })?;
    for ((arm, replica), bytes) in &files {
        let folder = to.join(champion_stem(config, *arm, *replica));
        let unwritable = || format!("cannot write {}: give another directory with --tensorboard", folder.display());
        fs::create_dir_all(&folder).with_context(unwritable)?;
        fs::write(folder.join(FILE), bytes).with_context(unwritable)?;
    }
    Ok(())
}

/// A message as a TFRecord: its length, the length's checksum, its bytes, and their checksum.
fn record(event: &Event) -> Vec<u8> {
    let body = event.encode_to_vec();
    let length = (body.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), &body, &masked(&body)].concat()
}

/// The checksum of a TFRecord: a CRC-32C that is rotated and offset, because the CRC of data that contains its own CRC is
/// degenerate.
fn masked(bytes: &[u8]) -> [u8; 4] {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// The CRC-32 with Castagnoli's polynomial.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)])
}

/// The checksums of all single bytes.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_experiments::registry;

    /// Reads the events of a file; every checksum must be right.
    fn read(mut bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_at(8);
            let (check, rest) = rest.split_at(4);
            assert_eq!(check, masked(length));
            let (body, rest) = rest.split_at(u64::from_le_bytes(length.try_into().unwrap()) as usize);
            let (check, rest) = rest.split_at(4);
            assert_eq!(check, masked(body));
            events.push(Event::decode(body).unwrap());
            bytes = rest;
        }
        events
    }

    #[test]
    fn checksums_match_the_standard() {
        // The test vectors of RFC 3720, B.4, and the usual check value.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(masked(b""), 0xa282_ead8_u32.to_le_bytes());
    }

    #[test]
    fn events_are_the_rows_of_the_history() {
        let text = "experiment = \"rules\"\nreplicas = 2\n[arms.\"a, 1\"]\n[arms.b]\n";
        let config = Config::parse(&registry(), "a file", text, &[]).unwrap();
        let names: Vec<&str> = config.kind.columns.iter().map(|column| column.name).collect();
        let desk = tempfile::tempdir().unwrap();
        let line = |arm: &str, replica: u32, step: u32| {
            let values: Vec<String> = (1..names.len()).map(|place| (place as f64 + 0.5).to_string()).collect();
            format!("{arm},{replica},{step},{}\n", values.join(","))
        };
        let lines = [line("\"a, 1\"", 0, 1), line("\"a, 1\"", 0, 2), line("b", 1, 7)].concat();
        let history = History::of(format!("arm,replica,{}\n{lines}", names.join(",")).into_bytes());
        let out = desk.path().join("events");
        write(&history, &config, &out).unwrap();
        let events = |stem: &str| read(&fs::read(out.join(stem).join(FILE)).unwrap());
        let (first, second) = (events("a-1-0"), events("b-1"));
        assert_eq!(first[0].what, Some(What::FileVersion("brain.Event:2".into())));
        assert_eq!(first.iter().map(|event| event.step).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((second.len(), second[1].step), (2, 7));
        let Some(What::Summary(summary)) = &second[1].what else { panic!("no summary") };
        let told: Vec<(&str, f32)> = summary.value.iter().map(|it| (it.tag.as_str(), it.simple_value)).collect();
        let expected: Vec<(&str, f32)> =
            names.iter().enumerate().skip(1).map(|(place, name)| (*name, place as f32 + 0.5)).collect();
        assert_eq!(told, expected);
    }
}
