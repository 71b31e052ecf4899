//! The thread that reads all objects of finished replicas and their copies from time to time. A start does not read them, so
//! this thread finds damage before anybody needs the results. It reads one object at a time, and rests most of the time.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use super::{Inbox, threads::spawn, views::Views};
use crate::{
    core::{Event, Request, Response},
    metrics::meters::Meters,
    store::Reader,
};

/// The pause between two passes over all finished replicas.
const PAUSE: Duration = Duration::from_secs(7 * 24 * 3600);
/// The pause before the first pass, because a coordinator that has just started has other work.
const FIRST: Duration = Duration::from_secs(2);
/// How many times longer than it has read the thread rests, so it uses at most a tenth of a disk.
const REST_FACTOR: u32 = 9;

/// Starts the thread. Dropping the sender ends it.
pub(super) fn start(reader: Reader, views: Views, inbox: Inbox, meters: Arc<Meters>) -> Sender<()> {
    let (ends, ended) = channel();
    let verifier = Verifier { reader, views, inbox, meters, ended };
    spawn("verify", move || {
        let mut pause = FIRST;
        while verifier.rest(pause) && verifier.pass() {
            pause = PAUSE;
        }
    });
    ends
}

struct Verifier {
    reader: Reader,
    views: Views,
    inbox: Inbox,
    meters: Arc<Meters>,
    ended: Receiver<()>,
}

impl Verifier {
    /// Rests. Returns false when the thread should end.
    fn rest(&self, time: Duration) -> bool {
        self.ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
    }

    /// Reads everything once. Returns false when the thread should end.
    fn pass(&self) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
        // If the system cannot create a runtime now, it may for the next pass.
        let Ok(runtime) = runtime else { return true };
        for run in self.views.list() {
            let name = &run.run.name;
            // A run that is gone has nothing to read.
            let asked = self.inbox.ask_blocking(Request::Objects { name: name.clone() });
            let Ok(Response::Objects { finished, .. }) = asked else { continue };
            let objects: BTreeSet<Arc<str>> = finished.into_iter().map(|(_, place)| place.object).collect();
            for object in objects {
                let began = Instant::now();
                let good = runtime.block_on(self.reader.are_good(name, &object));
                // An object that cannot be read now is not damaged.
                if let Some(good) = good {
                    self.meters.verified(good);
                    let event = Event::Damaged { run: name.clone(), object: object.to_string() };
                    if !good && self.inbox.post_blocking(event).is_err() {
                        return false;
                    }
                }
                if !self.rest(began.elapsed() * REST_FACTOR) {
                    return false;
                }
            }
        }
        true
    }
}
