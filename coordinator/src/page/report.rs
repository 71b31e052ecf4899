//! A run's report, as far as the run has come: its conclusion, tables and plots. Like curves, reports are made from the
//! store, and one report serves all viewers.
//!
//! One report is made at a time, on a thread for such work. A run's reports take at most a twentieth of the time: a report
//! that takes long is made less often, and the older one is shown meanwhile.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use evoxo_common::{comparison::compare, digest::Digest};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    files,
    told::{self, Part, Stored, Told},
};
use crate::{
    core::{Rejection, Request, Response},
    pack::PackPlace,
    prepared::Prepared,
    replicas::ReplicaKey,
    shell::Handle,
    store::Reader,
};

/// The least pause between two reports of a run, and how many times longer than making the report it is.
const PAUSE: Duration = Duration::from_secs(2);
const PAUSE_TIMES: u32 = 20;
/// The most runs whose reports are in memory at once, and how long a report stays without a request.
const RUNS_MAX: usize = 8;
const UNUSED_MAX: Duration = Duration::from_secs(60);
/// The most conclusions that are kept. They are short, and a list of runs shows many.
const CONCLUSIONS_MAX: usize = 1000;
/// The most replicas of a run that has a report here, and the most bytes stored for them.
const REPLICAS_MAX: usize = 1000;
const BYTES_MAX: usize = 64 << 20;
/// How long a request waits for an answer. The report is made all the same, and kept for the next request.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many times the store is read again if an object is gone that was there a moment ago.
const TRIES: usize = 3;

/// What the store has of a run.
struct Seen {
    prepared: Arc<Prepared>,
    finished: Vec<(ReplicaKey, PackPlace)>,
    checkpoint: Option<String>,
    /// Whether outputs differed.
    in_doubt: bool,
    /// A tag that changes whenever any of the above changes.
    tag: String,
}

/// A report, or the reason why there is none.
struct Made {
    run: String,
    /// The configuration's hash. If a run is deleted and another is created under the same name, the hash may differ.
    hash: Digest,
    tag: String,
    told: Result<Arc<Told>, Rejection>,
    used: Instant,
    at: Instant,
    took: Duration,
}

/// The reports of the runs that were requested.
pub(super) struct Reports {
    core: Handle,
    made: Arc<Mutex<Vec<Made>>>,
    /// The tag and the conclusion of the latest report of each run.
    conclusions: Mutex<BTreeMap<String, (String, String)>>,
    /// Only one report is made at a time, and only one run's objects are in memory.
    making: Arc<Semaphore>,
}

impl Reports {
    pub(super) fn new(core: Handle) -> Self {
        Self { core, made: Arc::default(), conclusions: Mutex::default(), making: Arc::new(Semaphore::new(1)) }
    }

    /// A part of the report as JSON, and a tag that changes with it.
    pub(super) async fn ask(&self, run: &str, part: Part) -> Result<(String, Bytes), Rejection> {
        let told = self.in_time(run).await?;
        Ok((told.tag.clone(), told.part(part)))
    }

    /// The conclusion of a run. It is kept longer than the report, so that each report of a long list is made once.
    pub(super) async fn conclusion(&self, run: &str) -> Result<String, Rejection> {
        let seen = self.look(run).await?;
        let kept = || self.conclusions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, sentence)) = kept().get(run).filter(|(tag, _)| *tag == seen.tag) {
            return Ok(sentence.clone());
        }
        let told = self.in_time(run).await?;
        let mut conclusions = kept();
        while conclusions.len() >= CONCLUSIONS_MAX {
            conclusions.pop_first();
        }
        conclusions.insert(run.to_owned(), (told.tag.clone(), told.conclusion.clone()));
        Ok(told.conclusion.clone())
    }

    /// Whether two runs differ, as JSON.
    pub(super) async fn compare(&self, one: &str, two: &str) -> Result<Value, Rejection> {
        let (one, two) = (self.in_time(one).await?, self.in_time(two).await?);
        Ok(compare(&one.measured, &two.measured))
    }

    async fn in_time(&self, run: &str) -> Result<Arc<Told>, Rejection> {
        let late = |_| {
            let sentence = "making the report of this run takes long: try again in a minute";
            Rejection::Unavailable(sentence.into())
        };
        tokio::time::timeout(PATIENCE, self.told(run)).await.map_err(late)?
    }

    /// Forgets reports that are no longer requested.
    pub(super) fn forget_unused(&self) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.retain(|made| made.used.elapsed() < UNUSED_MAX);
    }

    async fn told(&self, run: &str) -> Result<Arc<Told>, Rejection> {
        let seen = self.look(run).await?;
        if let Some(told) = self.kept(run, &seen, false) {
            return told;
        }
        let turn = match Arc::clone(&self.making).try_acquire_owned() {
            Ok(turn) => turn,
            // While another report is being made, an old one is better than none.
            Err(_) => match self.kept(run, &seen, true) {
                Some(told) => return told,
                None => Arc::clone(&self.making).acquire_owned().await.map_err(|_| stopping())?,
            },
        };
        let mut gone = String::new();
        for _ in 0..TRIES {
            let seen = self.look(run).await?;
            if let Some(told) = self.kept(run, &seen, false) {
                return told;
            }
            let began = Instant::now();
            match self.read(run, &seen).await {
                Ok(stored) => return self.make(run, seen, stored, (turn, began)).await,
                // If a checkpoint is gone, a newer one or the final states of all replicas have replaced it.
                Err(why) => gone = why,
            }
        }
        Err(Rejection::Unavailable(gone))
    }

    /// Asks the core for the names of objects. This is all that the core does for a report.
    async fn look(&self, run: &str) -> Result<Seen, Rejection> {
        let view = self.core.views.get(run).map(|view| Arc::clone(&view.borrow()));
        let known = view.and_then(|view| Some((view.prepared.clone()?, !view.run.doubts.is_empty())));
        let (prepared, in_doubt) =
            known.ok_or_else(|| Rejection::NotFound("there is no run of this name here".into()))?;
        let asked = self.core.ask(Request::Objects { name: run.into() }).await?;
        let Response::Objects { finished, checkpoint } = asked else {
            return Err(Rejection::Unavailable("the coordinator gave a response of the wrong kind".into()));
        };
        // When the last replica has finished, the checkpoint is removed.
        let all = prepared.config.arms.len() * prepared.config.replicas as usize;
        let checkpoint = checkpoint.filter(|_| finished.len() < all);
        let places = finished.iter().map(|(_, place)| format!("{} {}", place.object, place.offset));
        let objects: Vec<String> = places.chain(checkpoint.clone()).collect();
        let about = [prepared.hash.to_string(), in_doubt.to_string(), files::tag().to_owned()];
        let tag = Digest::of_pieces(about.iter().chain(&objects).map(String::as_bytes)).short();
        Ok(Seen { prepared, finished, checkpoint, in_doubt, tag })
    }

    /// A kept report, if it need not be made again: the store has nothing newer, or the report is recent enough, or any will
    /// do.
    fn kept(&self, run: &str, seen: &Seen, any: bool) -> Option<Result<Arc<Told>, Rejection>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let found = made.iter_mut().find(|made| made.run == run && made.hash == seen.prepared.hash)?;
        let pause = PAUSE.max(PAUSE_TIMES * found.took);
        if !any && found.tag != seen.tag && found.at.elapsed() >= pause {
            return None;
        }
        found.used = Instant::now();
        Some(found.told.clone())
    }

    /// The objects of the replicas; `None` if they are more than a page shows. After an error, another look at the store may
    /// help.
    async fn read(&self, run: &str, seen: &Seen) -> Result<Option<Vec<Stored>>, String> {
        let config = &seen.prepared.config;
        if config.arms.len() * config.replicas as usize > REPLICAS_MAX {
            return Ok(None);
        }
        objects(&self.core.reader, run, seen.checkpoint.as_ref(), &seen.finished, BYTES_MAX as u64).await
    }

    /// Makes a report and keeps it, even if nobody waits for it any more.
    async fn make(
        &self,
        run: &str,
        seen: Seen,
        stored: Option<Vec<Stored>>,
        (turn, began): (OwnedSemaphorePermit, Instant),
    ) -> Result<Arc<Told>, Rejection> {
        let (run, all) = (run.to_owned(), Arc::clone(&self.made));
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let Seen { prepared, in_doubt, tag, .. } = seen;
            let told = stored.ok_or_else(too_much).and_then(|stored| {
                // A kind from outside may have a bug in its report. The log has the panic.
                let told =
                    catch_unwind(AssertUnwindSafe(|| told::tell(&prepared.config, stored, in_doubt, tag.clone())));
                told.unwrap_or_else(|_| Err("the report of this run failed: see the coordinator's log".into()))
                    .map(Arc::new)
                    .map_err(Rejection::Unavailable)
            });
            let (used, at, took) = (Instant::now(), Instant::now(), began.elapsed());
            let made = Made { run, hash: prepared.hash, tag, told: told.clone(), used, at, took };
            keep(&mut all.lock().unwrap_or_else(PoisonError::into_inner), made);
            told
        });
        done.await.map_err(|_| stopping())?
    }
}

/// The newest checkpoint and the final states of replicas; `None` if they have more than `room` bytes together.
async fn objects(
    reader: &Reader,
    run: &str,
    checkpoint: Option<&String>,
    finished: &[(ReplicaKey, PackPlace)],
    mut room: u64,
) -> Result<Option<Vec<Stored>>, String> {
    let mut stored = Vec::new();
    if let Some(object) = checkpoint {
        let Some(bytes) = reader.get_up_to(run, object, room).await? else { return Ok(None) };
        room -= bytes.len() as u64;
        stored.push(Stored::Checkpoint(bytes));
    }
    for (key, place) in finished {
        let Some(left) = room.checked_sub(place.bytes) else { return Ok(None) };
        room = left;
        stored.push(Stored::End(*key, reader.finished(run, place).await?));
    }
    Ok(Some(stored))
}

/// Replaces the run's older report, or the report that was requested longest ago.
fn keep(all: &mut Vec<Made>, made: Made) {
    all.retain(|other| other.run != made.run);
    while all.len() >= RUNS_MAX {
        let oldest = (0..all.len()).min_by_key(|place| all[*place].used);
        oldest.map(|place| all.remove(place));
    }
    all.push(made);
}

fn stopping() -> Rejection {
    Rejection::Unavailable("the coordinator is stopping: try again when another one leads".into())
}

fn too_much() -> Rejection {
    let sentence = format!(
        "this run has more than {REPLICAS_MAX} replicas, or more than {} MiB stored, which is too much for \
         the page: use `evoxo fetch`",
        BYTES_MAX >> 20
    );
    Rejection::Exhausted(sentence)
}

#[cfg(test)]
mod tests {
    use evoxo_common::envelope::{Kind, seal};
    use object_store::{ObjectStore, ObjectStoreExt as _, memory::InMemory, path::Path};

    use super::*;
    use crate::{
        pack::{pack, places},
        store::Store,
    };

    /// A run with more bytes than the limit has no report. All objects count together, and an object that is too large is not
    /// read.
    #[test]
    fn a_run_with_more_bytes_than_the_limit_has_no_report() {
        let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let reader = Store::over(Arc::clone(&memory), "memory", evoxo_experiments::registry()).reader();
        let wait = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let sealed = [vec![7; 20], vec![7; 50]].map(|body| seal(Kind::Finished, &body));
        let checkpoint = "checkpoint".to_owned();
        for (object, bytes) in [(&checkpoint, vec![7; 30].into()), (&"ends".to_owned(), pack(&sealed))] {
            wait.block_on(memory.put(&Path::from(format!("runs/large/{object}")), bytes.into())).unwrap();
        }
        let keys = (0..2).map(|index| ReplicaKey { arm: 0, index });
        let ends: Vec<(ReplicaKey, PackPlace)> = keys.zip(places("ends", &sealed)).collect();
        let read = |most| wait.block_on(objects(&reader, "large", Some(&checkpoint), &ends, most)).unwrap();
        let all = 30 + sealed.iter().map(|sealed| sealed.len() as u64).sum::<u64>();
        assert_eq!(read(all).map(|stored| stored.len()), Some(3));
        for most in [all - 1, 50, 29, 0] {
            assert!(read(most).is_none(), "{most}");
        }
        let gone = [(ends[0].0, places("gone", &sealed).remove(0))];
        assert!(wait.block_on(objects(&reader, "large", None, &gone, 1000)).is_err());
        let Rejection::Exhausted(sentence) = too_much() else { panic!("{:?}", too_much()) };
        assert!(sentence.contains("more than 64 MiB stored, which is too much"), "{sentence}");
    }

    #[test]
    fn the_least_recently_requested_report_makes_room() {
        let begun = Instant::now();
        let made = |number: u64| Made {
            run: format!("run-{number}"),
            hash: Digest::of(b""),
            tag: String::new(),
            told: Err(too_much()),
            used: begun + Duration::from_secs(number),
            at: begun,
            took: Duration::ZERO,
        };
        let mut all = Vec::new();
        (0..20).for_each(|number| keep(&mut all, made(number)));
        // The newest report of a run replaces the older one.
        (0..20).for_each(|_| keep(&mut all, made(19)));
        let names: Vec<&str> = all.iter().map(|made| made.run.as_str()).collect();
        let right: Vec<String> = (12..20).map(|number| format!("run-{number}")).collect();
        assert_eq!(names, right);
    }
}
