//! Runs as they are stored, and how their objects are read back. Pure: the caller passes the function that reads.
//!
//! [`crate::names`] defines the names of the objects. If there are several checkpoints, the one with the highest epoch
//! counts, then the one with the highest number. If several objects have the same finished replica, the same rule says which of
//! them counts, so a replica that is void and was computed again stays in the store and does no harm. Objects left by an earlier
//! run of the same name are not used.

use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    envelope::{Damage, Kind, open, seal},
    experiment::{Registry, Replica, ResultDigest},
};
use evoxo_proto::v1;
use prost::Message;

use crate::{
    index::Index,
    names::{
        CHECKPOINT, CHECKPOINT_COPY, DELETED, FINISHED, FINISHED_COPY, INDEX, KEPT, Named, ORDER, ORDER_COPY,
        object_named,
    },
    pack::{PackPlace, places, split},
    prepared::Prepared,
};

/// The contents of a run in the store.
#[derive(Debug)]
pub struct SavedRun {
    /// The run's name.
    pub name: String,
    /// The epoch in which the run was submitted.
    pub born: u64,
    /// The highest number of an order, valid or damaged.
    pub order_number: u64,
    /// The newest valid order.
    pub order: v1::Order,
    /// The configuration of that order, or why this build cannot read it.
    pub prepared: Result<Arc<Prepared>, String>,
    /// The highest number of a checkpoint, valid, damaged or kept from the middle of the run; 0 if there is none.
    pub checkpoint_number: u64,
    /// The newest valid checkpoint.
    pub checkpoint: Option<SavedCheckpoint>,
    /// The valid finished replicas, by arm and number.
    pub finished: Vec<SavedFinished>,
    /// Valid finished replicas that do not count, because a later object has them too.
    pub superseded: Vec<SavedFinished>,
    /// The newest valid index: its name below `runs/RUN/`, and its size in bytes.
    pub index: Option<(String, u64)>,
    /// The highest number of an index, valid or damaged.
    pub index_number: u64,
    /// The highest number of a doubt, valid or damaged.
    pub doubt_number: u64,
    /// The valid doubts.
    pub doubts: Vec<v1::Doubt>,
    /// The bytes of all objects of the run.
    pub bytes: u64,
    /// The bytes of those in `kept/`.
    pub kept_bytes: u64,
    /// How long ago the last replica was finished or, if none is, the last order given, in milliseconds, as far as the store
    /// knows it.
    pub ended_ago_ms: Option<u64>,
    /// One message for each rejected object, with the object's name.
    pub notices: Vec<String>,
}

/// The configuration and the build from which a state was computed: two SHA-256 hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The hash of the configuration.
    pub config_hash: Bytes,
    /// The behaviour signature of the build, for the run's kind.
    pub signature: Bytes,
}

impl Origin {
    /// An origin that owns its bytes. Decoded fields are slices of the whole object and would keep that object in memory.
    #[must_use]
    pub fn apart(config_hash: &Bytes, signature: &Bytes) -> Self {
        Self { config_hash: Bytes::copy_from_slice(config_hash), signature: Bytes::copy_from_slice(signature) }
    }

    pub(crate) fn of_message(v1::Origin { config_hash, signature }: v1::Origin) -> Self {
        Self { config_hash, signature }
    }

    pub(crate) fn message(&self) -> v1::Origin {
        v1::Origin { config_hash: self.config_hash.clone(), signature: self.signature.clone() }
    }
}

/// A checkpoint.
#[derive(Debug)]
pub struct SavedCheckpoint {
    /// The checkpoint's name below `runs/RUN/`. If it was read from the copy, this is still the name of the original. `None` if
    /// the states are those of the run from which this one forks.
    pub object: Option<String>,
    /// Whether the original is damaged or missing, and the checkpoint was read from the copy.
    pub from_copy: bool,
    /// The configuration and the build that computed the states.
    pub origin: Origin,
    /// Summaries of the checkpoint's replicas.
    pub replicas: Vec<ReplicaSummary>,
    /// The complete states, if the caller requested them; otherwise empty.
    pub states: Vec<v1::ReplicaState>,
}

/// A finished replica.
#[derive(Clone, Debug)]
pub struct SavedFinished {
    /// Where it is stored.
    pub place: PackPlace,
    /// Whether the original is damaged or missing, and the replica was read from the copy.
    pub from_copy: bool,
    /// Whether this comes from the run's index, without reading the object itself.
    pub indexed: bool,
    /// The configuration and the build that computed the replica.
    pub origin: Origin,
    /// The replica.
    pub replica: ReplicaSummary,
}

/// A replica without its state.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSummary {
    /// The arm's name.
    pub arm: String,
    /// The replica's number within the arm, from 0.
    pub index: u32,
    /// Rounds absorbed.
    pub rounds: u64,
    /// The newest row of the replica's history.
    pub last_row: Vec<f64>,
    /// See [`Replica::digest`].
    pub digest: ResultDigest,
    /// The identities on whose word the state rests.
    pub exposed: Exposed,
    /// The identities of workers whose outputs of this replica are still to be recomputed.
    pub to_recompute: Vec<Arc<str>>,
}

/// The state of a replica before its first round, with these outputs still to be recomputed.
#[must_use]
pub fn beginning(arm: &str, replica: u32, recomputations: Vec<v1::Recomputation>) -> v1::ReplicaState {
    v1::ReplicaState { arm: arm.to_owned(), replica, recomputations, ..v1::ReplicaState::default() }
}

/// The identities whose outputs a state has absorbed on their own word. Each comes with the number of rounds that were
/// absorbed before its first output.
pub type Exposed = Vec<(Arc<str>, u64)>;

impl ReplicaSummary {
    /// The summary of a saved state.
    #[must_use]
    pub fn of(state: &v1::ReplicaState) -> Self {
        Self {
            arm: state.arm.clone(),
            index: state.replica,
            rounds: state.rounds,
            last_row: state.history.last().map(|row| row.values.clone()).unwrap_or_default(),
            digest: ResultDigest::of_state(state),
            exposed: state.exposed.iter().map(|it| (it.identity.as_str().into(), it.round)).collect(),
            to_recompute: state
                .recomputations
                .iter()
                .map(|recomputation| recomputation.identity.as_str().into())
                .collect(),
        }
    }
}

/// The bytes to store for an order.
#[must_use]
pub fn seal_order(order: &v1::Order) -> Bytes {
    seal(Kind::Order, &order.encode_to_vec())
}

/// The bytes to store for a doubt.
#[must_use]
pub fn seal_doubt(doubt: &v1::Doubt) -> Bytes {
    seal(Kind::Doubt, &doubt.encode_to_vec())
}

/// The bytes to store for a conviction.
#[must_use]
pub fn seal_conviction(identity: &str, what: &str) -> Bytes {
    let conviction = v1::Conviction { identity: identity.to_owned(), what: what.to_owned() };
    seal(Kind::Conviction, &conviction.encode_to_vec())
}

/// The bytes to store for a revocation.
#[must_use]
pub fn seal_revocation(id: &str, by: &str) -> Bytes {
    seal(Kind::Revocation, &v1::Revocation { id: id.to_owned(), by: by.to_owned() }.encode_to_vec())
}

/// The bytes to store for a list of cordons.
#[must_use]
pub fn seal_cordons(cordons: &[v1::Cordon]) -> Bytes {
    seal(Kind::Cordons, &v1::Cordons { cordons: cordons.to_vec() }.encode_to_vec())
}

/// The bytes to store for a checkpoint.
#[must_use]
pub fn seal_checkpoint(origin: &Origin, replicas: Vec<v1::ReplicaState>) -> Bytes {
    let Origin { config_hash, signature } = origin.clone();
    seal(Kind::Checkpoint, &v1::Checkpoint { config_hash, signature, replicas }.encode_to_vec())
}

/// A sealed replica. It is stored when the replica is finished, and `fetch` sends it.
#[must_use]
pub fn seal_replica(origin: &Origin, replica: v1::ReplicaState) -> Bytes {
    let Origin { config_hash, signature } = origin.clone();
    seal(Kind::Finished, &v1::Finished { config_hash, signature, replica: Some(replica) }.encode_to_vec())
}

/// The finished replicas in the bytes of this object, each with its state.
///
/// # Errors
/// How the bytes are damaged.
pub fn finished_in(object: &str, pack: &Bytes) -> Result<Vec<(SavedFinished, v1::ReplicaState)>, Damage> {
    let sealed = split(pack)?;
    let read = |(place, sealed): (PackPlace, &Bytes)| {
        let found = v1::Finished::decode(open(Kind::Finished, sealed)?).map_err(|_| Damage::Body)?;
        let v1::Finished { config_hash, signature, replica } = found;
        let (origin, state) = (Origin::apart(&config_hash, &signature), replica.ok_or(Damage::Body)?);
        let replica = ReplicaSummary::of(&state);
        Ok((SavedFinished { place, from_copy: false, indexed: false, origin, replica }, state))
    };
    places(object, &sealed).into_iter().zip(&sealed).map(read).collect()
}

/// One replica of a stored checkpoint, sealed like the result of [`seal_replica`].
///
/// # Errors
/// A message if the bytes are not a valid checkpoint, or if the replica is not in it.
pub fn replica_of_checkpoint(bytes: &Bytes, arm: &str, index: u32) -> Result<Bytes, String> {
    let body = open(Kind::Checkpoint, bytes).map_err(|damage| damage.to_string())?;
    let v1::Checkpoint { config_hash, signature, replicas } =
        v1::Checkpoint::decode(body).map_err(|_| Damage::Body.to_string())?;
    let found = replicas.into_iter().find(|state| state.arm == arm && state.replica == index);
    let state = found.ok_or_else(|| format!("has no replica {index} of arm {arm:?}"))?;
    // Do not reveal which outputs are to be recomputed.
    Ok(seal_replica(&Origin { config_hash, signature }, v1::ReplicaState { recomputations: Vec::new(), ..state }))
}

/// The objects of a run, and a function that reads an object.
pub struct Objects<'a> {
    /// The run's name.
    pub run: &'a str,
    /// The names of the objects below `runs/RUN/`.
    pub names: &'a [String],
    /// The size of an object in bytes.
    pub size: &'a dyn Fn(&str) -> Option<u64>,
    /// Reads an object, or says why it cannot be read.
    pub read: &'a mut dyn FnMut(&str) -> Result<Bytes, String>,
}

impl Objects<'_> {
    /// Interprets the objects: the newest order with at least one valid object, the newest valid checkpoint, and all valid
    /// finished replicas and doubts. Returns no run if there is no valid order, because then no request was ever confirmed.
    /// `with_states` says whether to return the checkpoint's states.
    pub fn interpret(mut self, registry: &Registry, with_states: bool) -> (Option<SavedRun>, Vec<String>) {
        let mut notices = Vec::new();
        let Some((born, orders)) = self.orders(&mut notices) else { return (None, notices) };
        if self.deleted() == Some(born) {
            return (None, Vec::new());
        }
        let Some(order) = self.newest_order(&orders, &mut notices) else { return (None, notices) };
        let prepared = Prepared::read(registry, "the stored order", &order.config);
        let both = [self.numbered(CHECKPOINT), self.numbered(CHECKPOINT_COPY)].concat();
        let mut checkpoints = self.since(born, both, &mut notices);
        // Each original precedes its copy.
        checkpoints.sort_by_key(|named| (Reverse((named.epoch, named.number)), named.is_copy()));
        let checkpoint = self.first::<v1::Checkpoint>(&checkpoints, Kind::Checkpoint, &mut notices);
        let mut indices = self.since(born, self.numbered(INDEX), &mut notices);
        indices.reverse();
        let index = self.newest_index(&indices, &mut notices);
        let known = index.as_ref().map(|(_, index)| index);
        let both = [self.numbered(FINISHED), self.numbered(FINISHED_COPY)].concat();
        let both = self.since(born, both, &mut notices);
        let (finished, superseded) = self.finished(registry, prepared.as_deref().ok(), both, known, &mut notices);
        let numbers = self.since(born, self.numbered("doubt"), &mut notices);
        let mut doubts = Vec::new();
        for named in &numbers {
            doubts.extend(self.decode::<v1::Doubt>(named, Kind::Doubt, &mut notices));
        }
        let highest = |objects: &[Named]| objects.iter().map(|named| named.number).max().unwrap_or(0);
        let kept = self.numbered(KEPT);
        let bytes_of = |name: &String| (self.size)(name);
        let saved = SavedRun {
            name: self.run.into(),
            born,
            order_number: highest(&orders),
            order,
            prepared,
            checkpoint_number: highest(&checkpoints).max(highest(&kept)),
            checkpoint: checkpoint.map(|(named, checkpoint)| {
                let v1::Checkpoint { config_hash, signature, replicas: states } = checkpoint;
                SavedCheckpoint {
                    object: Some(named.original()),
                    from_copy: named.is_copy(),
                    origin: Origin::apart(&config_hash, &signature),
                    replicas: states.iter().map(ReplicaSummary::of).collect(),
                    states: if with_states { states } else { Vec::new() },
                }
            }),
            finished,
            superseded,
            index: index.map(|(object, _)| object),
            index_number: highest(&indices),
            doubt_number: highest(&numbers),
            doubts,
            bytes: self.names.iter().filter_map(bytes_of).sum(),
            kept_bytes: kept.iter().filter_map(|named| bytes_of(&named.object)).sum(),
            ended_ago_ms: None,
            notices: Vec::new(),
        };
        (Some(SavedRun { notices, ..saved }), Vec::new())
    }

    /// Whether a run of this name exists or existed. Remains of a deleted run do not count, because they do not prevent a new
    /// run of the same name.
    #[must_use]
    pub fn has_orders(&self) -> bool {
        self.orders(&mut Vec::new()).is_some_and(|(born, _)| self.deleted() != Some(born))
    }

    /// The epoch in which the last deleted run with remaining objects was submitted. A deletion does not count if an order
    /// was given after the deletion was decided.
    #[must_use]
    pub fn deleted(&self) -> Option<u64> {
        let orders = self.both_orders();
        let later = |said: &Named| orders.iter().any(|it| it.epoch == said.epoch && it.number > said.number);
        self.numbered(DELETED).into_iter().rev().find(|said| !later(said)).map(|said| said.epoch)
    }

    /// The orders of the run and their copies, and the epoch in which the run was submitted. An order without the first order
    /// of its run is ignored: a coordinator that no longer led wrote it after the run was deleted.
    fn orders(&self, notices: &mut Vec<String>) -> Option<(u64, Vec<Named>)> {
        let orders = self.both_orders();
        let has_first = |born| orders.iter().any(|named| (named.epoch, named.number) == (born, 1));
        let born = orders.iter().map(|named| named.epoch).filter(|born| has_first(*born)).max();
        let (ours, others): (Vec<_>, Vec<_>) = orders.iter().cloned().partition(|named| Some(named.epoch) == born);
        notices.extend(others.iter().map(|named| self.remains(named)));
        Some((born?, ours))
    }

    /// All orders and all copies of orders. An order exists if either of its two objects does.
    fn both_orders(&self) -> Vec<Named> {
        [self.numbered(ORDER), self.numbered(ORDER_COPY)].concat()
    }

    /// The newest of these orders, read from whichever of its two objects is valid.
    fn newest_order(&mut self, orders: &[Named], notices: &mut Vec<String>) -> Option<v1::Order> {
        let newest = orders.iter().map(|named| named.number).max()?;
        let mut numbers: Vec<u64> = orders.iter().map(|named| named.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers.into_iter().rev() {
            let of_number = || orders.iter().filter(|named| named.number == number);
            let copied = of_number().find(|named| named.is_copy()).and_then(|copy| copy.digest.clone());
            for named in of_number() {
                // An order's own name has no digest. The name of its copy has one, which distinguishes the order from another
                // run's order.
                let checked = Named { digest: named.digest.clone().or_else(|| copied.clone()), ..named.clone() };
                let Some(order) = self.decode::<v1::Order>(&checked, Kind::Order, notices) else { continue };
                if number < newest {
                    let (run, wanted) = (self.run, order.wanted().as_str_name());
                    notices.push(format!(
                        "order {newest} of run {run} and its copy are lost, so order {number} is in force, which \
                         wants {wanted}: check the run, and give the lost order again"
                    ));
                }
                return Some(order);
            }
        }
        None
    }

    /// The objects that were written since the run was submitted; each older one gets a notice.
    fn since(&self, born: u64, objects: Vec<Named>, notices: &mut Vec<String>) -> Vec<Named> {
        let (ours, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(|named| named.epoch >= born);
        notices.extend(others.iter().map(|named| self.remains(named)));
        ours
    }

    fn remains(&self, named: &Named) -> String {
        let (run, object) = (&self.run, &named.object);
        format!(
            "the object runs/{run}/{object} is of an earlier run of this name that was deleted or never confirmed: it \
             is not used"
        )
    }

    /// The valid finished replicas in these objects: those that count, and those that a later object has too. Each object is
    /// read from its copy if it is not valid.
    fn finished(
        &mut self,
        registry: &Registry,
        prepared: Option<&Prepared>,
        mut objects: Vec<Named>,
        index: Option<&Index>,
        notices: &mut Vec<String>,
    ) -> (Vec<SavedFinished>, Vec<SavedFinished>) {
        // Later objects first, and each before its copy.
        objects.sort_by_cached_key(|named| (Reverse((named.epoch, named.number)), named.original(), named.is_copy()));
        let (mut known, mut counted, mut superseded) = (BTreeSet::new(), Vec::new(), Vec::new());
        for both in objects.chunk_by(|one, other| one.original() == other.original()) {
            let found = both.iter().find_map(|named| self.finished_of(registry, prepared, named, index, notices));
            let Some(found) = found else {
                let (run, lost) = (self.run, &both[0]);
                let (object, then) = (lost.original(), lost.computed_again());
                notices.push(format!("neither runs/{run}/{object} nor its copy can be used: {then}"));
                continue;
            };
            // A replica that was void and computed again soon may be there twice. The later one counts.
            for it in found.into_iter().rev() {
                match known.insert((it.replica.arm.clone(), it.replica.index)) {
                    true => counted.push(it),
                    false => superseded.push(it),
                }
            }
        }
        counted.sort_by(|one, other| {
            let key = |it: &SavedFinished| it.replica.index;
            one.replica.arm.cmp(&other.replica.arm).then(key(one).cmp(&key(other)))
        });
        (counted, superseded)
    }

    /// The finished replicas in an object, by the index or by the object itself; `None` if the object is not valid.
    fn finished_of(
        &mut self,
        registry: &Registry,
        prepared: Option<&Prepared>,
        named: &Named,
        index: Option<&Index>,
        notices: &mut Vec<String>,
    ) -> Option<Vec<SavedFinished>> {
        let (object, from_copy) = (named.original(), named.is_copy());
        let bytes = (self.size)(&named.object).unwrap_or_default();
        if let Some(known) = index.and_then(|index| index.get(&object, bytes)) {
            return Some(known.iter().map(|it| SavedFinished { from_copy, ..it.clone() }).collect());
        }
        let read = (self.read)(&named.object).and_then(|bytes| {
            let of_name = if named.is_of(&bytes) { Ok(()) } else { Err(Damage::Checksum) };
            let found = finished_in(&object, &bytes).and_then(|found| of_name.map(|()| found));
            found.map_err(|damage| damage.to_string())
        });
        let run = self.run;
        let found = read.map_err(|why| {
            notices.push(format!("the object runs/{run}/{} {why}: it is not used", named.object));
        });
        let mut finished = Vec::new();
        for (it, state) in found.ok()? {
            match check_finished(registry, prepared, &it.origin, &state) {
                Ok(()) => finished.push(SavedFinished { from_copy, ..it }),
                // An earlier object may give the same message. Report it only once.
                Err(why) if notices.contains(&why) => {}
                Err(why) => notices.push(why),
            }
        }
        Some(finished)
    }

    /// The newest valid index of these, with its name and its size in bytes. A damaged index is no loss, because the objects
    /// contain the same information.
    fn newest_index(&mut self, newest_first: &[Named], notices: &mut Vec<String>) -> Option<((String, u64), Index)> {
        let run = self.run;
        newest_first.iter().find_map(|named| {
            let name = &named.object;
            let read = (self.read)(name).and_then(|bytes| match Index::read(&bytes) {
                Ok(index) if named.is_of(&bytes) => Ok(((name.clone(), bytes.len() as u64), index)),
                Ok(_) => Err(Damage::Checksum.to_string()),
                Err(damage) => Err(damage.to_string()),
            });
            read.map_err(|why| notices.push(format!("the object runs/{run}/{name} {why}: it is not used"))).ok()
        })
    }

    /// The objects in a directory, ordered by epoch, then by number.
    fn numbered(&self, directory: &str) -> Vec<Named> {
        let mut found: Vec<_> = self.names.iter().filter_map(|name| object_named(name, directory)).collect();
        found.sort_unstable();
        found
    }

    /// The first valid object of these, with its name.
    fn first<M: Message + Default>(
        &mut self,
        objects: &[Named],
        kind: Kind,
        notices: &mut Vec<String>,
    ) -> Option<(Named, M)> {
        objects.iter().find_map(|named| Some((named.clone(), self.decode(named, kind, notices)?)))
    }

    /// The message in an object, if the object is valid. A sealed body that is a different message was written by another
    /// program, and is ignored like a damaged object.
    fn decode<M: Message + Default>(&mut self, named: &Named, kind: Kind, notices: &mut Vec<String>) -> Option<M> {
        let name = &named.object;
        let checked = (self.read)(name).and_then(|bytes| match open(kind, &bytes) {
            Ok(_) if !named.is_of(&bytes) => Err(Damage::Checksum.to_string()),
            Ok(body) => M::decode(body).map_err(|_| Damage::Body.to_string()),
            Err(damage) => Err(damage.to_string()),
        });
        let run = self.run;
        checked.map_err(|why| notices.push(format!("the object runs/{run}/{name} {why}: it is not used"))).ok()
    }
}

/// Checks that a stored replica is finished, if this build can tell. States of other builds and other configurations are
/// checked later, by their origin.
fn check_finished(
    registry: &Registry,
    prepared: Option<&Prepared>,
    origin: &Origin,
    state: &v1::ReplicaState,
) -> Result<(), String> {
    let Some(prepared) = prepared.filter(|prepared| *origin == origin_of(registry, prepared)) else { return Ok(()) };
    match Replica::restore(&prepared.config, state) {
        Ok(replica) if replica.is_finished() => Ok(()),
        Ok(_) => Err(format!(
            "replica {} of arm {:?} is stored as finished but is not finished: it is computed again",
            state.replica, state.arm
        )),
        Err(why) => Err(format!("{why}; it is computed again")),
    }
}

/// The origin of the states that this build computes for a run.
#[must_use]
pub fn origin_of(registry: &Registry, prepared: &Prepared) -> Origin {
    Origin {
        config_hash: Bytes::copy_from_slice(&prepared.hash.0),
        signature: Bytes::copy_from_slice(&registry.signature(prepared.config.kind).0),
    }
}

/// Why this build cannot use the states of a run, if it cannot.
#[must_use]
pub fn unfit_because(registry: &Registry, saved: &SavedRun) -> Option<String> {
    let prepared = saved.prepared.as_ref().ok()?;
    let ours = origin_of(registry, prepared);
    let mut origins = saved.checkpoint.iter().map(|checkpoint| &checkpoint.origin);
    let finished = saved.finished.iter().map(|finished| &finished.origin);
    let theirs = origins.by_ref().chain(finished).find(|theirs| **theirs != ours)?;
    Some(unfit_between(&ours, theirs))
}

/// Why a build cannot use states with another origin than its own.
#[must_use]
pub fn unfit_between(ours: &Origin, theirs: &Origin) -> String {
    if theirs.signature == ours.signature {
        return (
            "the run's stored states belong to another configuration: start it again under another name or in another \
             directory"
        ).into();
    }
    let short = |signature: &Bytes| Digest::from_slice(signature).map_or_else(|| "unknown".into(), |it| it.short());
    format!(
        "the run was computed by a build that computes different results (behaviour {}, this build {}): continue with \
         that build, or start it again under another name or in another directory",
        short(&theirs.signature),
        short(&ours.signature)
    )
}

/// The behaviour signature of the build that computed the states of a run, if it is not this build's.
pub(crate) fn foreign_signature(registry: &Registry, saved: &SavedRun) -> Option<Digest> {
    let ours = registry.signature(saved.prepared.as_ref().ok()?.config.kind);
    let checkpoint = saved.checkpoint.iter().map(|checkpoint| &checkpoint.origin);
    let mut origins = checkpoint.chain(saved.finished.iter().map(|finished| &finished.origin));
    origins.find_map(|origin| Digest::from_slice(&origin.signature).filter(|theirs| *theirs != ours))
}
