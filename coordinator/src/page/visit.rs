//! A connection of a browser, counted until it ends.

use std::{
    net::IpAddr,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use evoxo_access::Id;

use crate::{
    access::lock,
    limits::places::{Notice, Owner, Place},
};

/// How many requests without a session each connection may make, however many its address has made: enough for the page with
/// its files, and a login. Each connection costs a handshake.
const OWN_REQUESTS: u32 = 40;

/// A connection of a browser.
pub(crate) struct Visit {
    /// The address that the connection comes from.
    pub(super) peer: IpAddr,
    number: u64,
    place: Mutex<Place>,
    /// Ends the connection when it must make room for others.
    leave: Notice,
    /// Counts the connection among the strangers until its identity is known.
    stranger: Mutex<Option<Place>>,
    /// How many of its own requests without a session are left.
    requests: AtomicU32,
}

impl Visit {
    pub(super) fn new(peer: IpAddr, number: u64, place: Place, stranger: Option<Place>) -> Self {
        let (leave, requests) = (place.notice().clone(), AtomicU32::new(OWN_REQUESTS));
        Self { peer, number, place: Mutex::new(place), leave, stranger: Mutex::new(stranger), requests }
    }

    /// Notes that the connection belongs to this identity, or that nobody must log in. Returns false if the identity may have
    /// no more connections.
    pub(super) fn is_known(&self, id: Option<&Id>) -> bool {
        drop(lock(&self.stranger).take());
        id.is_none_or(|id| lock(&self.place).belongs_to(Owner::Identity(id.clone())))
    }

    /// Whose places the connection's streams take.
    pub(super) fn owner(&self, id: Option<&Id>) -> Owner {
        id.map_or(Owner::Connection(self.number), |id| Owner::Identity(id.clone()))
    }

    /// The notice that ends the connection.
    pub(super) fn leave(&self) -> &Notice {
        &self.leave
    }

    /// Whether a request without a session is allowed.
    pub(super) fn may_ask(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Completes when the connection must make room for others, as a connection or as a stranger.
    pub(super) fn left(&self) -> impl Future<Output = ()> + Send + use<> {
        let stranger = lock(&self.stranger).as_ref().map(|place| place.notice().given());
        let left = self.leave.given();
        async move {
            let stranger = async {
                match stranger {
                    Some(stranger) => stranger.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = left => {}
                () = stranger => {}
            }
        }
    }
}
