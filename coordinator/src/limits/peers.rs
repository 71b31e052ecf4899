//! What each peer uses of the coordinator: connections, calls, streams, and bytes of large messages. A peer is an address, or
//! an identity at any addresses. No address gets more than three quarters of any of these, and no identity more than three
//! quarters of that, so one peer cannot lock out all others. Within an address, an identity [makes
//! room](crate::limits::places) for others.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use evoxo_access::Id;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::places::{Place, Places, share};

/// The most calls at once, of all peers together, without streams and without the sessions of workers.
const CALLS_MAX: usize = 2048;
/// The most calls at once whose answer is a stream, which may last for days.
const STREAMS_MAX: usize = 2048;
/// The most bytes of large messages that are being received or handled.
const BYTES_MAX: usize = 128 << 20;

/// A peer with a share of the bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Peer {
    Address(IpAddr),
    Identity(Id),
}

/// The large messages of a peer.
#[derive(Debug)]
struct Use {
    /// How many messages have room or wait for it.
    messages: usize,
    bytes: Arc<Semaphore>,
}

/// All peers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Peers(Arc<Inner>);

struct Inner {
    connections: Places,
    calls: Places,
    streams: Places,
    /// Sessions of workers before their first message: as many as connections, since a worker starts one session on each.
    beginnings: Places,
    numbers: AtomicU64,
    by_peer: Mutex<BTreeMap<Peer, Use>>,
    bytes: Arc<Semaphore>,
}

impl Peers {
    /// If peers show certificates, a connection whose peer is not known yet makes room for a newer one.
    pub(crate) fn new(connections_max: usize, certificates: bool) -> Self {
        Self(Arc::new(Inner {
            connections: Places::new(connections_max, certificates),
            calls: Places::new(CALLS_MAX, true),
            streams: Places::new(STREAMS_MAX, true),
            beginnings: Places::new(connections_max, true),
            numbers: AtomicU64::new(0),
            by_peer: Mutex::default(),
            bytes: Arc::new(Semaphore::new(BYTES_MAX)),
        }))
    }

    pub(crate) fn connections(&self) -> &Places {
        &self.0.connections
    }

    pub(crate) fn calls(&self) -> &Places {
        &self.0.calls
    }

    pub(crate) fn streams(&self) -> &Places {
        &self.0.streams
    }

    pub(crate) fn beginnings(&self) -> &Places {
        &self.0.beginnings
    }

    /// A number for the next connection.
    pub(crate) fn number(&self) -> u64 {
        self.0.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Peer, Use>> {
        self.0.by_peer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for a message of this many bytes, in the share of each of these peers and in total.
    pub(crate) async fn room(&self, peers: Vec<Peer>, bytes: u32) -> Option<Room> {
        let counted: Vec<Counted> = peers.into_iter().map(|peer| self.count(peer)).collect();
        let mut shares: Vec<Arc<Semaphore>> = {
            let peers = self.lock();
            counted.iter().filter_map(|one| peers.get(&one.peer)).map(|used| Arc::clone(&used.bytes)).collect()
        };
        shares.push(Arc::clone(&self.0.bytes));
        let mut permits = Vec::new();
        for share in shares {
            permits.push(share.acquire_many_owned(bytes).await.ok()?);
        }
        Some(Room::Message { _permits: permits, _counted: counted })
    }

    /// Counts a large message.
    fn count(&self, peer: Peer) -> Counted {
        let of_address = share(BYTES_MAX);
        let most = if matches!(peer, Peer::Identity(_)) { share(of_address) } else { of_address };
        let new = || Use { messages: 0, bytes: Arc::new(Semaphore::new(most)) };
        self.lock().entry(peer.clone()).or_insert_with(new).messages += 1;
        Counted { peers: self.clone(), peer }
    }
}

/// Room for a message, or for a session before its first message, until it is dropped.
pub(crate) enum Room {
    Message { _permits: Vec<OwnedSemaphorePermit>, _counted: Vec<Counted> },
    Session(#[expect(dead_code, reason = "it counts until it is dropped")] Place),
}

/// A message that is counted until this is dropped.
pub(crate) struct Counted {
    peers: Peers,
    peer: Peer,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut peers = self.peers.lock();
        let Some(used) = peers.get_mut(&self.peer) else { return };
        used.messages -= 1;
        if used.messages == 0 {
            peers.remove(&self.peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One identity at many addresses: all of them together, and each address alone, leave room for others.
    #[tokio::test]
    async fn an_identity_has_one_share_of_bytes_across_all_its_addresses() {
        let peers = Peers::new(100, true);
        let identity = Peer::Identity(Id::draw());
        let at = |last: u8| Peer::Address(IpAddr::from([10, 0, 0, last]));
        let bytes = share(share(BYTES_MAX)) as u32;
        let room = peers.room(vec![at(0), identity.clone()], bytes).await.unwrap();
        let more = peers.room(vec![at(1), identity.clone()], 1);
        assert!(tokio::time::timeout(std::time::Duration::ZERO, more).await.is_err());
        assert!(peers.room(vec![at(0), Peer::Identity(Id::draw())], 1).await.is_some());
        drop(room);
        assert!(peers.lock().is_empty());
        assert!(peers.room(vec![at(1), identity], bytes).await.is_some());
        let room = peers.room(vec![at(0)], share(BYTES_MAX) as u32).await;
        let more = peers.room(vec![at(0)], 1);
        assert!(tokio::time::timeout(std::time::Duration::ZERO, more).await.is_err() && room.is_some());
        assert!(peers.room(vec![at(1)], 1).await.is_some());
    }
}
