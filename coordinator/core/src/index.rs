//! The index of a run: one object that lists the run's finished replicas without their states. A coordinator that starts
//! reads the index instead of the objects, whose total size may far exceed its memory.
//!
//! Nothing is stored only in an index. An entry counts only if the object that it names exists and has the length that the
//! entry states. The digest in the object's name ties the entry to the object's bytes.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use evoxo_common::{
    envelope::{Damage, Kind, open, seal},
    experiment::ResultDigest,
};
use evoxo_proto::v1;
use prost::Message as _;

use crate::saved::{Origin, ReplicaSummary, SavedFinished};

/// The approximate size of one entry, in bytes.
pub const ENTRY_BYTES: u64 = 200;

/// Finished replicas, keyed by the names of their objects.
#[derive(Debug, Default)]
pub struct Index(BTreeMap<String, SavedFinished>);

impl Index {
    /// Reads a stored index.
    ///
    /// # Errors
    /// How the bytes are damaged.
    pub fn read(bytes: &Bytes) -> Result<Self, Damage> {
        let body = open(Kind::Index, bytes)?;
        // Decode from a slice: entries decoded from `Bytes` would keep the whole buffer in memory.
        let found = v1::Index::decode(&body[..]).map_err(|_| Damage::Body)?;
        Self::of_message(found).ok_or(Damage::Body)
    }

    fn of_message(message: v1::Index) -> Option<Self> {
        let origins: Vec<Origin> = message.origins.into_iter().map(Origin::of_message).collect();
        let entry = |entry: v1::IndexedReplica| {
            let replica = ReplicaSummary {
                arm: entry.arm,
                index: entry.replica,
                rounds: entry.rounds,
                last_row: entry.last_row.map(|row| row.values).unwrap_or_default(),
                digest: ResultDigest::parse(&entry.digest)?,
                exposed: entry.exposed.iter().map(|it| (it.identity.as_str().into(), it.round)).collect(),
                to_recompute: Vec::new(),
            };
            let origin = origins.get(entry.origin as usize)?.clone();
            let (object, bytes) = (entry.object, entry.bytes);
            Some((object.clone(), SavedFinished { object, bytes, from_copy: false, indexed: true, origin, replica }))
        };
        message.replicas.into_iter().map(entry).collect::<Option<_>>().map(Self)
    }

    /// The bytes to store for this index.
    #[must_use]
    pub fn sealed(&self) -> Bytes {
        let mut origins: Vec<&Origin> = Vec::new();
        let mut replicas = Vec::with_capacity(self.0.len());
        for (object, SavedFinished { bytes, origin, replica, .. }) in &self.0 {
            let place = origins.iter().position(|known| *known == origin).unwrap_or(origins.len());
            if place == origins.len() {
                origins.push(origin);
            }
            let exposure =
                |(identity, round): &(Arc<str>, u64)| v1::Exposure { identity: identity.to_string(), round: *round };
            replicas.push(v1::IndexedReplica {
                object: object.clone(),
                bytes: *bytes,
                origin: place as u32,
                arm: replica.arm.clone(),
                replica: replica.index,
                rounds: replica.rounds,
                last_row: Some(v1::HistoryRow { values: replica.last_row.clone() }),
                digest: replica.digest.to_string(),
                exposed: replica.exposed.iter().map(exposure).collect(),
            });
        }
        let origins = origins.into_iter().map(Origin::message).collect();
        seal(Kind::Index, &v1::Index { origins, replicas }.encode_to_vec())
    }

    /// The entry of the object with this name, if the entry states this length in bytes.
    #[must_use]
    pub fn get(&self, object: &str, bytes: u64) -> Option<&SavedFinished> {
        self.0.get(object).filter(|entry| entry.bytes == bytes)
    }

    /// Adds an entry. It replaces an earlier entry of the same object.
    pub fn add(&mut self, entry: SavedFinished) {
        self.0.insert(entry.object.clone(), entry);
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the index has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Builds the index entry of a finished replica's object; `None` if the object is damaged.
#[must_use]
pub fn entry(object: &str, bytes: &Bytes) -> Option<SavedFinished> {
    let body = open(Kind::Finished, bytes).ok()?;
    let v1::Finished { config_hash, signature, replica } = v1::Finished::decode(body).ok()?;
    let (origin, replica) = (Origin::apart(&config_hash, &signature), ReplicaSummary::of(&replica?));
    let (object, bytes) = (object.to_owned(), bytes.len() as u64);
    Some(SavedFinished { object, bytes, from_copy: false, indexed: false, origin, replica })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved::seal_replica;

    fn replica(index: u32) -> (String, Bytes) {
        let origin = Origin::apart(&Bytes::from_static(b"config"), &Bytes::from_static(b"build"));
        let row = |value| v1::HistoryRow { values: vec![value, f64::INFINITY] };
        let state = v1::ReplicaState {
            arm: "main".into(),
            replica: index,
            rounds: 2,
            state: Bytes::from(vec![index as u8; 1000]),
            history: vec![row(0.5), row(-0.0)],
            exposed: vec![v1::Exposure { identity: "somebody".into(), round: 1 }],
            ..v1::ReplicaState::default()
        };
        (format!("finished/{index:013}-000001-0123456789abcdef"), seal_replica(&origin, state))
    }

    #[test]
    fn an_index_agrees_with_its_objects() {
        let mut index = Index::default();
        for (object, bytes) in [replica(1), replica(0)] {
            index.add(entry(&object, &bytes).unwrap());
        }
        let sealed = index.sealed();
        let read = Index::read(&sealed).unwrap();
        assert_eq!((read.len(), read.sealed()), (2, sealed.clone()));
        for (object, bytes) in [replica(0), replica(1)] {
            let found = read.get(&object, bytes.len() as u64).unwrap();
            let told = entry(&object, &bytes).unwrap();
            assert_eq!((&found.replica, &found.origin, found.indexed), (&told.replica, &told.origin, true));
            assert_eq!(found.replica.last_row[1], f64::INFINITY);
            // An object whose length differs from its entry is damaged.
            assert!(read.get(&object, bytes.len() as u64 - 1).is_none());
        }
        for place in 0..sealed.len() {
            let mut damaged = sealed.to_vec();
            damaged[place] ^= 1;
            assert!(Index::read(&damaged.into()).is_err(), "byte {place}");
            assert!(Index::read(&sealed.slice(..place)).is_err(), "{place} bytes");
        }
    }

    #[test]
    fn an_entry_keeps_no_object_bytes_in_memory() {
        let (object, bytes) = replica(7);
        let found = entry(&object, &bytes).unwrap();
        let inside = bytes.as_ptr_range();
        for kept in [&found.origin.config_hash, &found.origin.signature] {
            assert!(!inside.contains(&kept.as_ptr()));
        }
    }
}
