//! The index of a run: one object that lists the run's finished replicas without their states, by the objects that have them. A
//! coordinator that starts reads the index instead of these objects, whose total size may far exceed its memory.
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

use crate::{
    pack::PackPlace,
    saved::{Origin, ReplicaSummary, SavedFinished, finished_in},
};

/// The approximate size of one entry, in bytes.
pub const ENTRY_BYTES: u64 = 200;

/// An object with its finished replicas, in their order.
#[derive(Clone, Debug)]
pub struct PackEntry {
    /// The object's bytes.
    pub bytes: u64,
    /// The replicas, without their states.
    pub replicas: Vec<SavedFinished>,
}

/// Objects of finished replicas, keyed by their names.
#[derive(Debug, Default)]
pub struct Index(BTreeMap<Arc<str>, PackEntry>);

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
        let object = |v1::IndexedObject { object, bytes, replicas }: v1::IndexedObject| {
            let (object, mut offset) = (Arc::<str>::from(object), 0_u64);
            let replica = |entry: v1::IndexedReplica| {
                let place = PackPlace { object: Arc::clone(&object), offset, bytes: entry.bytes, mark: entry.mark };
                offset = offset.checked_add(entry.bytes)?;
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
                Some(SavedFinished { place, from_copy: false, indexed: true, origin, replica })
            };
            let replicas = replicas.into_iter().map(replica).collect::<Option<_>>()?;
            Some((offset == bytes).then_some((object, PackEntry { bytes, replicas })))
        };
        // Places follow from the lengths of the replicas. If one of an object is missing, because its build could not use it, the
        // others have wrong ones: such an object is read instead.
        let objects: Vec<Option<(Arc<str>, PackEntry)>> =
            message.objects.into_iter().map(object).collect::<Option<_>>()?;
        Some(Self(objects.into_iter().flatten().collect()))
    }

    /// The bytes to store for this index.
    #[must_use]
    pub fn sealed(&self) -> Bytes {
        let mut origins: Vec<&Origin> = Vec::new();
        let mut objects = Vec::with_capacity(self.0.len());
        for (object, PackEntry { bytes, replicas: listed }) in &self.0 {
            let mut replicas = Vec::with_capacity(listed.len());
            for SavedFinished { place, origin, replica, .. } in listed {
                let number = origins.iter().position(|known| *known == origin).unwrap_or(origins.len());
                if number == origins.len() {
                    origins.push(origin);
                }
                let exposure = |(identity, round): &(Arc<str>, u64)| v1::Exposure {
                    identity: identity.to_string(),
                    round: *round,
                };
                replicas.push(v1::IndexedReplica {
                    bytes: place.bytes,
                    mark: place.mark,
                    origin: number as u32,
                    arm: replica.arm.clone(),
                    replica: replica.index,
                    rounds: replica.rounds,
                    last_row: Some(v1::HistoryRow { values: replica.last_row.clone() }),
                    digest: replica.digest.to_string(),
                    exposed: replica.exposed.iter().map(exposure).collect(),
                });
            }
            objects.push(v1::IndexedObject { object: object.to_string(), bytes: *bytes, replicas });
        }
        let origins = origins.into_iter().map(Origin::message).collect();
        seal(Kind::Index, &v1::Index { origins, objects }.encode_to_vec())
    }

    /// The replicas in the object with this name, if the index states this length of the object in bytes.
    #[must_use]
    pub fn get(&self, object: &str, bytes: u64) -> Option<&[SavedFinished]> {
        self.0.get(object).filter(|entry| entry.bytes == bytes).map(|entry| &*entry.replicas)
    }

    /// Adds an object. It replaces an earlier entry of the same object.
    pub fn add(&mut self, object: Arc<str>, entry: PackEntry) {
        self.0.insert(object, entry);
    }

    /// The number of replicas.
    #[must_use]
    pub fn replicas(&self) -> usize {
        self.0.values().map(|entry| entry.replicas.len()).sum()
    }
}

/// Builds the index entry of an object of finished replicas; `None` if the object is damaged.
#[must_use]
pub fn entry(object: &str, pack: &Bytes) -> Option<PackEntry> {
    let replicas = finished_in(object, pack).ok()?.into_iter().map(|(finished, _)| finished).collect();
    Some(PackEntry { bytes: pack.len() as u64, replicas })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{names::finished_name, pack::pack, saved::seal_replica};

    fn replica(index: u32) -> Bytes {
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
        seal_replica(&origin, state)
    }

    /// An object with one replica, and one with two.
    fn objects() -> [(String, Bytes); 2] {
        [vec![replica(1)], vec![replica(2), replica(0)]].map(|replicas| {
            let bytes = pack(&replicas);
            (finished_name(1, replicas.len() as u64, replicas.len(), &bytes), bytes)
        })
    }

    #[test]
    fn an_index_agrees_with_its_objects() {
        let mut index = Index::default();
        for (object, bytes) in objects() {
            index.add(object.as_str().into(), entry(&object, &bytes).unwrap());
        }
        let sealed = index.sealed();
        let read = Index::read(&sealed).unwrap();
        assert_eq!((read.replicas(), read.sealed()), (3, sealed.clone()));
        for (object, bytes) in objects() {
            let found = read.get(&object, bytes.len() as u64).unwrap();
            let told = entry(&object, &bytes).unwrap().replicas;
            assert_eq!(found.len(), told.len());
            for (found, told) in found.iter().zip(&told) {
                assert_eq!((&found.replica, &found.origin, &found.place), (&told.replica, &told.origin, &told.place));
                assert!(found.indexed && found.replica.last_row[1] == f64::INFINITY);
            }
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

    /// Without one of its replicas, an object is not in the index.
    #[test]
    fn an_object_with_a_gap_is_left_out() {
        let mut index = Index::default();
        for (object, bytes) in objects() {
            let mut entry = entry(&object, &bytes).unwrap();
            if entry.replicas.len() > 1 {
                entry.replicas.remove(0);
            }
            index.add(object.as_str().into(), entry);
        }
        assert_eq!((index.replicas(), Index::read(&index.sealed()).unwrap().replicas()), (2, 1));
    }

    #[test]
    fn an_entry_keeps_no_object_bytes_in_memory() {
        let bytes = replica(7);
        let found = entry("finished/x", &bytes).unwrap().replicas.remove(0);
        let inside = bytes.as_ptr_range();
        for kept in [&found.origin.config_hash, &found.origin.signature] {
            assert!(!inside.contains(&kept.as_ptr()));
        }
    }
}
