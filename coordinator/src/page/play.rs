//! Playing against champions. The program supplies the rules and players ([`Play`]); the champions are those of the runs
//! here, read from the store.
//!
//! Everything is computed on one separate thread, one answer after the other, and few requests may wait. However many people
//! play, a run loses at most one thread of this host, and the core only names an object.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::Duration,
};

use bytes::Bytes;
use evoxo_common::{
    candidates::Quantity,
    card::Card,
    digest::Digest,
    envelope,
    experiment::{Arm, Replica},
    play::{Play, Question, Wanted, Who},
    plot,
};
use evoxo_proto::v1;
use prost::Message as _;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, oneshot};

use crate::{
    core::{Rejection, Request, Response},
    prepared::Prepared,
    replicas::ReplicaKey,
    shell::Handle,
};

/// The most answers that may wait for their turn.
const WAITING_MAX: usize = 16;
/// How long a request waits for its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The most champions that are kept in memory.
const CARDS_MAX: usize = 16;
/// The most bytes of an object in the store from which a champion is read.
const OBJECT_BYTES_MAX: usize = 256 << 20;

/// The parts of a champion that are shown (rules, boards, layers) if the request does not say how many, and the most; the most
/// characters of its description, and the most bytes of its card.
const PARTS: usize = 120;
const PARTS_MAX: usize = 400;
const CARD_BYTES_MAX: usize = 64 << 10;
const TEXT_MAX: usize = 64 << 10;

/// A computation for the thread.
type Job = Box<dyn FnOnce() + Send>;

/// The players of this coordinator.
pub(super) struct Players {
    core: Handle,
    jobs: mpsc::SyncSender<Job>,
    /// Cards in memory, the most recently used last.
    cards: Mutex<Vec<(CardKey, Arc<Card>)>>,
    /// Only one object is in memory at a time.
    reading: Semaphore,
}

/// What identifies a champion: the configuration, its object, and the replica.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CardKey {
    run: String,
    hash: Digest,
    object: String,
    replica: ReplicaKey,
}

/// A question from a request's address.
#[derive(Clone, Debug)]
pub(super) struct PlayRequest {
    pub(super) game: String,
    /// Moves, separated by points.
    pub(super) moves: String,
    /// A player's name, or RUN/ARM/REPLICA with the numbers of the arm and of the replica; empty for no player.
    pub(super) player: String,
    pub(super) plies: Option<u32>,
    pub(super) wanted: Wanted,
}

impl Players {
    /// Starts the thread, which ends when this is dropped.
    pub(super) fn start(core: Handle) -> Self {
        let (jobs, received) = mpsc::sync_channel::<Job>(WAITING_MAX);
        let thread = std::thread::Builder::new().name("play".into()).spawn(move || {
            while let Ok(job) = received.recv() {
                // After a panic the caller gets no answer and reports that. The thread owns nothing that could be left
                // inconsistent.
                drop(catch_unwind(AssertUnwindSafe(job)));
            }
        });
        drop(thread.expect("the system has a thread for the coordinator"));
        Self { core, jobs, cards: Mutex::default(), reading: Semaphore::new(1) }
    }

    /// The games and the players without a card; `None` if the program knows no game.
    pub(super) fn offers(&self) -> Option<Value> {
        self.play().map(|play| (play.offers)())
    }

    fn play(&self) -> Option<&'static Play> {
        self.core.registry.play()
    }

    /// Answers a question, as JSON.
    pub(super) async fn ask(&self, asked: PlayRequest) -> Result<Bytes, Rejection> {
        let asks_whether = asked.wanted == Wanted::Introduction;
        match self.answer(asked).await {
            // The question is whether the player plays, so "no" is an answer.
            Err(Rejection::NotFound(why) | Rejection::Invalid(why)) if asks_whether => {
                Ok(json!({"game": null, "why": why}).to_string().into())
            }
            other => other,
        }
    }

    async fn answer(&self, asked: PlayRequest) -> Result<Bytes, Rejection> {
        let play = self.play().ok_or_else(|| Rejection::NotFound("this program knows no game".into()))?;
        let card = match champion_of(&asked.player) {
            Some((run, replica)) => Some(self.card(run, replica).await?),
            None => None,
        };
        let answered = self.compute(move || {
            let who = match (&card, asked.player.as_str()) {
                (Some(card), _) => Who::Champion(card),
                (None, "") => Who::Nobody,
                (None, name) => Who::Named(name),
            };
            let PlayRequest { game, moves, plies, wanted, .. } = &asked;
            let answer = (play.answer)(&Question { game, moves, who, plies: *plies, wanted: *wanted });
            answer.map(|json| Bytes::from(json.to_string()))
        });
        answered.await?.map_err(Rejection::Invalid)
    }

    /// The description of a champion as JSON: the text and parts of [`evoxo_common::card::Champion::show`], and its pictures
    /// as SVG; and its card, unless that is long. `parts` is the most parts.
    pub(super) async fn show(&self, run: &str, replica: ReplicaKey, parts: Option<usize>) -> Result<Bytes, Rejection> {
        let card = self.card(run, replica).await?;
        let most = parts.unwrap_or(PARTS).min(PARTS_MAX);
        let prepared = self.core.views.get(run).and_then(|view| view.borrow().prepared.clone());
        let shown = self.compute(move || {
            let showing = card.champion.show(most + 1);
            let mut parts = showing.json;
            let more = parts.as_array().is_some_and(|parts| parts.len() > most);
            if let Some(parts) = parts.as_array_mut() {
                parts.truncate(most);
            }
            let arm = prepared.as_ref().and_then(|prepared| {
                let config = &prepared.config;
                Some((config.kind.quantities)(&config.arms.get(replica.arm as usize)?.settings))
            });
            let quantities: Value = arm.iter().flatten().map(Quantity::json).collect();
            let (written, beside) = card.write("champion");
            let written = (beside.is_none() && written.len() <= CARD_BYTES_MAX).then_some(written);
            let diagrams = card.champion.diagrams().iter().map(plot::diagram).collect::<Vec<String>>();
            let curves = card.champion.figures().iter().map(plot::svg).collect::<Vec<String>>();
            let (about, pictures) = (Value::Object(card.about.clone()), [diagrams, curves].concat());
            json!({
                "text": cut(showing.text), "parts": parts, "more": more, "about": about, "pictures": pictures,
                "card": written, "quantities": quantities,
            })
        });
        Ok(shown.await?.to_string().into())
    }

    /// Computes something on the thread, if not too many requests wait for it.
    async fn compute<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Rejection> {
        let (sender, receiver) = oneshot::channel();
        let job = Box::new(move || {
            // If the browser has disconnected, nobody waits for the answer.
            if !sender.is_closed() {
                drop(sender.send(work()));
            }
        });
        if self.jobs.try_send(job).is_err() {
            return Err(Rejection::Exhausted("too many people play here at once: try again later".into()));
        }
        match tokio::time::timeout(ANSWER_TIMEOUT, receiver).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(Rejection::Unavailable("this player failed: its card may be damaged".into())),
            Err(_) => Err(Rejection::Unavailable("the answer takes too long: ask for fewer plies".into())),
        }
    }

    /// The champion of a replica: its final one, or else that of the newest checkpoint.
    async fn card(&self, run: &str, replica: ReplicaKey) -> Result<Arc<Card>, Rejection> {
        let prepared = self.core.views.get(run).and_then(|view| view.borrow().prepared.clone());
        let prepared = prepared.ok_or_else(|| Rejection::NotFound("there is no run of this name here".into()))?;
        let config = &prepared.config;
        if replica.arm as usize >= config.arms.len() || replica.index >= config.replicas {
            let (arms, replicas) = (config.arms.len() - 1, config.replicas - 1);
            let sentence = format!("the run has arms 0 to {arms} and replicas 0 to {replicas}");
            return Err(Rejection::NotFound(sentence));
        }
        let asked = self.core.ask(Request::Objects { name: run.into() }).await?;
        let Response::Objects { finished, checkpoint } = asked else {
            return Err(Rejection::Unavailable("the coordinator gave a response of the wrong kind".into()));
        };
        let end = finished.into_iter().find(|(key, _)| *key == replica).map(|(_, place)| place);
        let is_end = end.is_some();
        let none_yet =
            || Rejection::NotFound("nothing of this replica is stored yet: try again in some seconds".into());
        let object = end.as_ref().map(|place| place.object.to_string()).or(checkpoint).ok_or_else(none_yet)?;
        let key = CardKey { run: run.to_owned(), hash: prepared.hash, object, replica };
        if let Some(card) = self.known(&key) {
            return Ok(card);
        }
        let _turn = self.reading.acquire().await;
        if let Some(card) = self.known(&key) {
            return Ok(card);
        }
        let read = match &end {
            Some(place) => self.core.reader.finished(run, place).await,
            None => self.core.reader.get(run, &key.object).await,
        };
        let bytes = read.map_err(Rejection::Unavailable)?;
        if bytes.len() > OBJECT_BYTES_MAX {
            let sentence = "the stored state of this run is too large to play from: use `evoxo fetch`, then `evoxo \
                            play`";
            return Err(Rejection::Exhausted(sentence.into()));
        }
        let found = self.compute(move || {
            let arm = &prepared.config.arms[replica.arm as usize];
            state(&bytes, is_end, arm, replica).map(|state| champion(&prepared, &state))
        });
        let missing = || match is_end {
            true => {
                Rejection::Unavailable("the stored state of this replica is damaged: see the coordinator's log".into())
            }
            false => none_yet(),
        };
        let champion = found.await?.ok_or_else(missing)?.map_err(Rejection::Unavailable)?;
        let none = || Rejection::NotFound("this replica has no champion yet".into());
        let card = Arc::new(champion.ok_or_else(none)?);
        let mut cards = self.cards.lock().unwrap_or_else(PoisonError::into_inner);
        if cards.len() >= CARDS_MAX {
            cards.remove(0);
        }
        cards.push((key, Arc::clone(&card)));
        Ok(card)
    }

    /// A champion that is in memory. It becomes the most recently used.
    fn known(&self, key: &CardKey) -> Option<Arc<Card>> {
        let mut cards = self.cards.lock().unwrap_or_else(PoisonError::into_inner);
        let place = cards.iter().position(|(known, _)| known == key)?;
        let found = cards.remove(place);
        let card = Arc::clone(&found.1);
        cards.push(found);
        Some(card)
    }
}

/// Cuts a text to the most characters allowed.
fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TEXT_MAX) {
        text.truncate(end);
    }
    text
}

/// The run and the replica of `RUN/ARM/REPLICA`.
fn champion_of(player: &str) -> Option<(&str, ReplicaKey)> {
    let mut parts = player.rsplitn(3, '/');
    let index = parts.next()?.parse().ok()?;
    let arm = parts.next()?.parse().ok()?;
    Some((parts.next()?, ReplicaKey { arm, index }))
}

/// The state of a replica in these bytes, which are the replica's final state or a checkpoint.
fn state(bytes: &Bytes, is_end: bool, arm: &Arm, replica: ReplicaKey) -> Option<v1::ReplicaState> {
    if is_end {
        let body = envelope::open(envelope::Kind::Finished, bytes).ok()?;
        return v1::Finished::decode(body).ok()?.replica;
    }
    let body = envelope::open(envelope::Kind::Checkpoint, bytes).ok()?;
    let states = v1::Checkpoint::decode(body).ok()?.replicas;
    states.into_iter().find(|state| state.arm == arm.name && state.replica == replica.index)
}

fn champion(prepared: &Prepared, state: &v1::ReplicaState) -> Result<Option<Card>, String> {
    Ok(Replica::restore(&prepared.config, state)?.champion())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn champions_are_named_by_run_arm_and_replica() {
        let key = |arm, index| ReplicaKey { arm, index };
        assert_eq!(champion_of("night-3/2/17"), Some(("night-3", key(2, 17))));
        for other in ["", "random", "alpha-beta", "a/b/c", "a/1", "a/-1/2", "a/1/99999999999"] {
            assert_eq!(champion_of(other), None, "{other}");
        }
    }
}
