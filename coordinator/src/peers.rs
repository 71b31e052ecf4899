//! Each address's use of the coordinator: connections, calls, and bytes of large messages. No address gets more than
//! three quarters of any of them, so that one peer cannot lock out all others.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Calls at once, of all peers together, without the sessions of workers.
const CALLS_MAX: usize = 2048;
/// Bytes of large messages that are being received or handled.
const BYTES_MAX: usize = 128 << 20;

/// Three quarters.
fn share(of: usize) -> usize {
    (of - of / 4).max(1)
}

/// The use of one address.
#[derive(Debug)]
struct Peer {
    connections: usize,
    calls: usize,
    bytes: Arc<Semaphore>,
}

impl Default for Peer {
    fn default() -> Self {
        Self { connections: 0, calls: 0, bytes: Arc::new(Semaphore::new(share(BYTES_MAX))) }
    }
}

/// All addresses. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Peers(Arc<Inner>);

struct Inner {
    connections_max: usize,
    by_address: Mutex<BTreeMap<IpAddr, Peer>>,
    bytes: Arc<Semaphore>,
}

impl Peers {
    pub(crate) fn new(connections_max: usize) -> Self {
        let bytes = Arc::new(Semaphore::new(BYTES_MAX));
        Self(Arc::new(Inner { connections_max, by_address: Mutex::default(), bytes }))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Peer>> {
        self.0.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection, unless the address has used up its share.
    pub(crate) fn connect(&self, address: IpAddr) -> Option<Counted> {
        let mut peers = self.lock();
        let peer = peers.entry(address).or_default();
        if peer.connections >= share(self.0.connections_max) {
            return None;
        }
        peer.connections += 1;
        Some(Counted { peers: self.clone(), address, what: What::Connection })
    }

    /// Whether an address has more than half of the connections that it may have.
    pub(crate) fn has_many_connections(&self, address: IpAddr) -> bool {
        self.lock().get(&address).is_some_and(|peer| 2 * peer.connections >= share(self.0.connections_max))
    }

    /// Counts a call, unless there are too many in total or from the address.
    pub(crate) fn call(&self, address: IpAddr) -> Option<Counted> {
        let mut peers = self.lock();
        let all: usize = peers.values().map(|peer| peer.calls).sum();
        let peer = peers.entry(address).or_default();
        if all >= CALLS_MAX || peer.calls >= share(CALLS_MAX) {
            return None;
        }
        peer.calls += 1;
        Some(Counted { peers: self.clone(), address, what: What::Call })
    }

    /// Waits until there is room for a message of this many bytes.
    pub(crate) async fn room(&self, address: IpAddr, bytes: u32) -> Option<[OwnedSemaphorePermit; 2]> {
        let of_peer = Arc::clone(&self.lock().entry(address).or_default().bytes);
        let own = of_peer.acquire_many_owned(bytes).await.ok()?;
        let all = Arc::clone(&self.0.bytes).acquire_many_owned(bytes).await.ok()?;
        Some([own, all])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Connection,
    Call,
}

/// A use that counts until it is dropped.
pub(crate) struct Counted {
    peers: Peers,
    address: IpAddr,
    what: What,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut peers = self.peers.lock();
        let Some(peer) = peers.get_mut(&self.address) else { return };
        match self.what {
            What::Connection => peer.connections -= 1,
            What::Call => peer.calls -= 1,
        }
        let untouched = peer.bytes.available_permits() == share(BYTES_MAX);
        if (peer.connections, peer.calls) == (0, 0) && untouched {
            peers.remove(&self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_at_most_three_quarters_and_gives_them_back() {
        let peers = Peers::new(100);
        let [one, other] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let counted: Vec<Option<Counted>> = (0..80).map(|_| peers.connect(one)).collect();
        assert_eq!(counted.iter().flatten().count(), 75);
        assert!(
            peers.connect(other).is_some() && peers.has_many_connections(one) && !peers.has_many_connections(other)
        );
        let calls: Vec<Option<Counted>> = (0..CALLS_MAX).map(|_| peers.call(one)).collect();
        assert_eq!(calls.iter().flatten().count(), CALLS_MAX * 3 / 4);
        assert!(peers.call(other).is_some());
        drop((counted, calls));
        assert!(peers.lock().is_empty());
    }
}
