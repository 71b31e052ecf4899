//! The page's own listener on a coordinator with an access directory. It speaks TLS with the coordinator's certificate.
//! Browsers are not asked for a certificate, because they have none of the cluster.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use tokio::{net::TcpListener, sync::Semaphore};
use tracing::{info, warn};

use super::Shown;
use crate::{
    access::Access,
    grpc::{
        accept::canonical,
        secure::{Caller, Handshakes, open},
    },
};

/// A connection that sends nothing is closed after so long.
const FIRST_TIMEOUT: Duration = Duration::from_secs(5);
/// The most connections at once while there is no page to serve.
const AWAY_MAX: usize = 64;
/// How long to wait when the system has no file descriptor for another connection.
const RETRY: Duration = Duration::from_millis(100);

/// The listener for browsers.
pub(crate) struct Endpoint(std::net::TcpListener);

impl Endpoint {
    /// Listens at this address.
    ///
    /// # Errors
    /// If the system does not allow listening there.
    pub(crate) fn listen(address: SocketAddr) -> anyhow::Result<Self> {
        let listener = std::net::TcpListener::bind(address)
            .with_context(|| format!("cannot listen on {address} for the page: choose another port with --page"))?;
        listener.set_nonblocking(true).context("cannot wait for connections")?;
        let address = listener.local_addr().context("the listener of the page has no address")?;
        info!("the page is at https://{address}/ for people who log in with a token");
        Ok(Self(listener))
    }

    /// Another handle of the same listener, for another runtime.
    ///
    /// # Errors
    /// If the system denies it.
    pub(crate) fn again(&self) -> anyhow::Result<Self> {
        self.0.try_clone().map(Self).context("cannot wait for connections")
    }

    /// Serves the page, or the reason why there is none, until the runtime ends.
    ///
    /// # Errors
    /// If the system denies it.
    pub(crate) fn serve(self, shown: Shown, access: Access) -> anyhow::Result<()> {
        let listener = TcpListener::from_std(self.0).context("cannot wait for connections")?;
        // These handshakes are separate from the workers', so browsers never take a worker's place.
        tokio::spawn(converse(listener, shown, Handshakes::start(access, Access::browsers)?));
        Ok(())
    }
}

/// Accepts connections forever.
async fn converse(listener: TcpListener, shown: Shown, handshakes: Handshakes) {
    let room = Arc::new(Semaphore::new(AWAY_MAX));
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let from = canonical(from);
                let handshakes = handshakes.clone();
                let page = match shown.clone() {
                    Shown::Nothing => continue,
                    Shown::Page(page) => page,
                    Shown::Away(away) => {
                        let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
                        tokio::spawn(async move {
                            let opened = open(stream, from.ip(), Some(&handshakes), FIRST_TIMEOUT).await;
                            if let Some((stream, _)) = opened {
                                away.serve(stream, from.ip()).await;
                            }
                            drop(place);
                        });
                        continue;
                    }
                };
                let Some(visit) = page.visit(from.ip()) else { continue };
                tokio::spawn(async move {
                    let opened = tokio::select! {
                        opened = open(stream, from.ip(), Some(&handshakes), FIRST_TIMEOUT) => opened,
                        () = visit.left() => None,
                    };
                    let Some((stream, caller)) = opened else { return };
                    page.serve(stream, visit, caller == Caller::PlainText).await;
                });
            }
            Err(error) => {
                warn!("a connection to the page could not be accepted: {error}");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}
