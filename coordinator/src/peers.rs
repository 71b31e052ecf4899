//! Each peer's use of the coordinator: connections, calls, and bytes of large messages. A peer is an address, and an identity
//! at whatever addresses: none gets more than three quarters of any of them, so that one cannot lock out all others. Of calls an
//! identity gets three quarters of what an address gets.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use evoxo_access::Id;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Calls at once, of all peers together, without the sessions of workers.
const CALLS_MAX: usize = 2048;
/// Bytes of large messages that are being received or handled.
const BYTES_MAX: usize = 128 << 20;

/// Three quarters.
fn share(of: usize) -> usize {
    (of - of / 4).max(1)
}

/// Who has a share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Peer {
    Address(IpAddr),
    Identity(Id),
}

/// What a peer uses.
#[derive(Debug)]
struct Use {
    connections: usize,
    calls: usize,
    /// Sessions of workers without their first message.
    beginnings: usize,
    /// Large messages that have room, or wait for it.
    messages: usize,
    bytes: Arc<Semaphore>,
}

impl Default for Use {
    fn default() -> Self {
        Self { connections: 0, calls: 0, beginnings: 0, messages: 0, bytes: Arc::new(Semaphore::new(share(BYTES_MAX))) }
    }
}

/// All peers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Peers(Arc<Inner>);

struct Inner {
    connections_max: usize,
    by_peer: Mutex<BTreeMap<Peer, Use>>,
    /// Calls at once, each counted once.
    calls: Arc<Semaphore>,
    /// As many as connections: a worker begins one session on each.
    beginnings: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
}

impl Peers {
    pub(crate) fn new(connections_max: usize) -> Self {
        let all = |most| Arc::new(Semaphore::new(most));
        let (calls, beginnings, bytes) = (all(CALLS_MAX), all(connections_max), all(BYTES_MAX));
        Self(Arc::new(Inner { connections_max, by_peer: Mutex::default(), calls, beginnings, bytes }))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Peer, Use>> {
        self.0.by_peer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection, unless the peer has used up its share.
    pub(crate) fn connect(&self, peer: Peer) -> Option<Counted> {
        self.count(peer, What::Connection)
    }

    fn count(&self, peer: Peer, what: What) -> Option<Counted> {
        let most = share(match what {
            What::Connection | What::Beginning => self.0.connections_max,
            // Several identities may come from one address, and one of them must leave calls of that address to the others.
            What::Call if matches!(peer, Peer::Identity(_)) => share(CALLS_MAX),
            What::Call => CALLS_MAX,
            // Their bytes are limited.
            What::Message => usize::MAX,
        });
        let mut peers = self.lock();
        let used = what.of(peers.entry(peer.clone()).or_default());
        if *used >= most {
            return None;
        }
        *used += 1;
        Some(Counted { peers: self.clone(), peer, what })
    }

    /// Whether a peer has more than half of the connections that it may have.
    pub(crate) fn has_many_connections(&self, peer: &Peer) -> bool {
        self.lock().get(peer).is_some_and(|used| 2 * used.connections >= share(self.0.connections_max))
    }

    /// Counts a call for each of these, unless there are too many in total or of one of them.
    pub(crate) fn call(&self, peers: impl IntoIterator<Item = Peer>) -> Option<Call> {
        let of_all = Arc::clone(&self.0.calls).try_acquire_owned().ok()?;
        let of_peers = peers.into_iter().map(|peer| self.count(peer, What::Call)).collect::<Option<_>>()?;
        Some(Call { _of_peers: of_peers, _of_all: of_all })
    }

    /// Room for a session of a worker until its first message has come, unless there are too many in total or of one of these.
    pub(crate) fn begin(&self, peers: impl IntoIterator<Item = Peer>) -> Option<Room> {
        let of_all = Arc::clone(&self.0.beginnings).try_acquire_owned().ok()?;
        let counted = peers.into_iter().map(|peer| self.count(peer, What::Beginning)).collect::<Option<_>>()?;
        Some(Room { _permits: vec![of_all], _counted: counted })
    }

    /// Waits until there is room for a message of this many bytes, for each of these and in total.
    pub(crate) async fn room(&self, peers: Vec<Peer>, bytes: u32) -> Option<Room> {
        let counted: Vec<Counted> =
            peers.into_iter().map(|peer| self.count(peer, What::Message)).collect::<Option<_>>()?;
        let mut shares: Vec<Arc<Semaphore>> = {
            let peers = self.lock();
            counted.iter().filter_map(|one| peers.get(&one.peer)).map(|used| Arc::clone(&used.bytes)).collect()
        };
        shares.push(Arc::clone(&self.0.bytes));
        let mut permits = Vec::new();
        for share in shares {
            permits.push(share.acquire_many_owned(bytes).await.ok()?);
        }
        Some(Room { _permits: permits, _counted: counted })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Connection,
    Call,
    Beginning,
    Message,
}

impl What {
    fn of(self, used: &mut Use) -> &mut usize {
        match self {
            Self::Connection => &mut used.connections,
            Self::Call => &mut used.calls,
            Self::Beginning => &mut used.beginnings,
            Self::Message => &mut used.messages,
        }
    }
}

/// A call that counts until it is dropped.
pub(crate) struct Call {
    _of_peers: Vec<Counted>,
    _of_all: OwnedSemaphorePermit,
}

/// Room for a message, or for a session that waits for its first, until it is dropped.
pub(crate) struct Room {
    _permits: Vec<OwnedSemaphorePermit>,
    _counted: Vec<Counted>,
}

/// A use that counts until it is dropped.
pub(crate) struct Counted {
    peers: Peers,
    peer: Peer,
    what: What,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut peers = self.peers.lock();
        let Some(used) = peers.get_mut(&self.peer) else { return };
        *self.what.of(used) -= 1;
        if [used.connections, used.calls, used.beginnings, used.messages] == [0; 4] {
            peers.remove(&self.peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_gets_at_most_three_quarters_and_gives_them_back() {
        let peers = Peers::new(100);
        let [one, other] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(|address| Peer::Address(IpAddr::from(address)));
        let counted: Vec<Option<Counted>> = (0..80).map(|_| peers.connect(one.clone())).collect();
        assert_eq!(counted.iter().flatten().count(), 75);
        assert!(
            peers.connect(other.clone()).is_some()
                && peers.has_many_connections(&one)
                && !peers.has_many_connections(&other)
        );
        let calls: Vec<Option<Call>> = (0..CALLS_MAX).map(|_| peers.call([one.clone()])).collect();
        assert_eq!(calls.iter().flatten().count(), CALLS_MAX * 3 / 4);
        assert!(peers.call([other.clone()]).is_some());
        let begun: Vec<Option<Room>> = (0..100).map(|_| peers.begin([one.clone()])).collect();
        assert_eq!(begun.iter().flatten().count(), 75);
        assert!(peers.begin([other]).is_some());
        drop((counted, calls, begun));
        assert!(peers.lock().is_empty());
    }

    /// One identity from a hundred addresses; all of them together leave room for others.
    #[tokio::test]
    async fn an_identity_has_one_share_at_all_its_addresses() {
        let peers = Peers::new(100);
        let identity = Peer::Identity(Id::draw());
        let at = |last: usize| Peer::Address(IpAddr::from([10, 0, 0, (last % 100) as u8]));
        let calls: Vec<Option<Call>> = (0..CALLS_MAX).map(|last| peers.call([at(last), identity.clone()])).collect();
        assert_eq!(calls.iter().flatten().count(), CALLS_MAX * 9 / 16);
        assert!(peers.call([at(0), Peer::Identity(Id::draw())]).is_some());
        let bytes = share(BYTES_MAX) as u32;
        let room = peers.room(vec![at(0), identity.clone()], bytes).await.unwrap();
        let more = peers.room(vec![at(1), identity.clone()], 1);
        assert!(tokio::time::timeout(std::time::Duration::ZERO, more).await.is_err());
        assert!(peers.room(vec![at(1), Peer::Identity(Id::draw())], 1).await.is_some());
        drop(calls);
        assert_eq!(peers.lock().keys().collect::<Vec<_>>(), [&at(0), &identity], "only the message is left");
        drop(room);
        assert!(peers.lock().is_empty());
        assert!(peers.call([at(1), identity.clone()]).is_some());
        assert!(peers.room(vec![at(1), identity], bytes).await.is_some());
    }

    /// All watch from behind one router.
    #[test]
    fn an_identity_leaves_calls_of_its_address_to_others() {
        let peers = Peers::new(100);
        let address = Peer::Address(IpAddr::from([10, 0, 0, 1]));
        let [one, other] = [Id::draw(), Id::draw()].map(Peer::Identity);
        let calls: Vec<Call> = (0..CALLS_MAX).filter_map(|_| peers.call([one.clone(), address.clone()])).collect();
        assert_eq!(calls.len(), CALLS_MAX * 9 / 16);
        assert!(peers.call([other, address.clone()]).is_some(), "another identity");
        assert!(peers.call([address]).is_some(), "somebody without a certificate");
    }

    /// Those that one peer may not have are not lost for all.
    #[test]
    fn a_refused_call_does_not_count() {
        let peers = Peers::new(100);
        let [one, two] = [1, 2].map(|last| Peer::Address(IpAddr::from([10, 0, 0, last])));
        let mut calls: Vec<Call> = (0..share(CALLS_MAX)).filter_map(|_| peers.call([one.clone()])).collect();
        (0..CALLS_MAX).for_each(|_| assert!(peers.call([two.clone(), one.clone()]).is_none()));
        calls.extend((0..CALLS_MAX).filter_map(|_| peers.call([two.clone()])));
        assert_eq!(calls.len(), CALLS_MAX);
    }
}
