//! The page without sockets, to try requests of any bytes. Only in builds of `cargo fuzz`.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use evoxo_common::experiment::Registry;
use object_store::memory::InMemory;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    runtime::Runtime,
    time::timeout,
};

use crate::{
    core::{Coordinator, Request, Settings},
    page::{Hosts, Page},
    prepared::Prepared,
    shell,
    store::Store,
    trust::Level,
};

/// The most bytes on their way in one direction.
const PIPE_BYTES: usize = 64 << 10;
/// How long an answer may take before the request counts as unfinished.
const ANSWER_WITHIN: Duration = Duration::from_millis(3);

/// A page of a coordinator that has one run and no workers.
pub struct Pages {
    runtime: Runtime,
    page: Page,
}

impl Pages {
    /// Starts the coordinator's threads and submits the run `r`.
    ///
    /// # Panics
    /// If the system has no threads or file descriptors left.
    #[must_use]
    pub fn start(registry: Registry, run: Arc<Prepared>) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut store = Store::over(Arc::new(InMemory::new()), "memory", registry.clone());
        store.lead().expect("memory can be written");
        let core = Coordinator::recover(Settings::default(), registry.clone(), Vec::new());
        let (core, _) = shell::start(core, store, registry, None);
        let page = runtime.block_on(async {
            let submitter = "127.0.0.1".into();
            let submitted =
                Request::Submit { name: "r".into(), prepared: run, level: Level::Plain, submitter, terms: Vec::new() };
            core.ask(submitted).await.expect("the first run fits");
            Page::start(core, Hosts::new(&["page.example".into()]), None, false)
        });
        Self { runtime, page }
    }

    /// The page's answer to a connection that sends these bytes and then ends, from this host or from another one.
    #[must_use]
    pub fn answer(&self, here: bool, bytes: &[u8]) -> Vec<u8> {
        let peer = IpAddr::V4(if here { Ipv4Addr::LOCALHOST } else { Ipv4Addr::new(192, 0, 2, 1) });
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        self.runtime.block_on(async {
            let mut answer = Vec::new();
            let visit = self.page.visit(peer).expect("there is one connection at once");
            tokio::select! {
                () = self.page.serve(far, visit, false) => {}
                () = talk(near, bytes, &mut answer) => {}
            }
            answer
        })
    }
}

async fn talk(mut near: DuplexStream, bytes: &[u8], answer: &mut Vec<u8>) {
    // The page may end the connection before it has read everything.
    drop(timeout(ANSWER_WITHIN, near.write_all(bytes)).await);
    let mut piece = vec![0; PIPE_BYTES];
    while let Ok(Ok(length @ 1..)) = timeout(ANSWER_WITHIN, near.read(&mut piece)).await {
        answer.extend_from_slice(&piece[..length]);
    }
}
