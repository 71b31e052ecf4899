//! Who may use this coordinator: its access directory. Only this process writes there as long as it runs, `init` apart.
//!
//! The [records](records) of tokens and identities are in the directory, not in the store: the store may be a bucket
//! that others read, and everybody who can write it could let himself in.

mod audit;
mod init;
mod join;
mod journal;
mod log;
mod records;
mod revoke;
mod writer;

use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard},
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, bail};
use evoxo_access::{
    AccessFile, Authority, Certificate, Dialer, Id, Identity, Pin, Revocations, Role, Secret, Token, browsers_config,
    now_s, read_private, server_config, server_names, write_private,
};
use tokio::sync::oneshot;
use tokio_rustls::rustls::{ServerConfig, pki_types::CertificateDer, pki_types::pem::PemObject as _};
use tracing::{info, warn};

use audit::Audit;
pub(crate) use audit::{Asker, Outcome, merge, says_done};
pub(crate) use init::init;
use journal::Journal;
use records::{Known, Record, Records};
pub(crate) use writer::{Written, lock};

/// The coordinator's own certificate and key.
const SERVER_FILE: &str = "server.pem";
/// How long the certificate of a person is valid, in seconds: 90 days. `evoxo` renews it when it is used.
const PERSON_LIFE_S: u64 = 90 * 24 * 3600;
/// The name in lists of whoever came with a browser.
const BROWSER: &str = "browser";
/// How often the files are looked at, for a new certificate.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The longest life and the most uses of a token.
const TOKEN_LIFE_S_MAX: u64 = 365 * 24 * 3600;
const TOKEN_USES_MAX: u32 = 100_000;

/// Why a request about access is refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The token is not good.
    Token(&'static str),
    /// The request makes no sense.
    Invalid(String),
    /// There are too many tokens.
    Exhausted,
    /// The directory cannot be written, or another thing that the operator must repair.
    Failed(anyhow::Error),
}

/// A certificate, and that of its authority, DER.
pub(crate) type Issued = (Vec<u8>, Vec<u8>);

/// Tokens, and identities with the number of their connections.
pub(crate) type Listed = (Vec<(Id, records::Token)>, Vec<(Id, Known, u32)>);

/// What a revocation did.
#[derive(Debug)]
pub(crate) struct Revoked {
    /// Whether there was such an identity or token.
    pub(crate) known: bool,
    /// The connections that were ended.
    pub(crate) connections: u32,
    /// The token with which it joined, if that can still be used.
    pub(crate) token: Option<Id>,
}

/// The access directory of this coordinator. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Access(Arc<Inner>);

struct Inner {
    directory: PathBuf,
    worker_life_s: u64,
    records: Arc<Shared>,
    /// Locked before the records are changed, so that they and the file agree.
    journal: Mutex<Journal>,
    audit: Mutex<Audit>,
    /// Made from the files; replaced as a whole when one of them changes.
    current: RwLock<Current>,
    /// Open connections: a message to each ends it.
    connections: Mutex<BTreeMap<Id, Vec<oneshot::Sender<()>>>>,
}

struct Current {
    authority: Arc<Authority>,
    pin: Pin,
    config: Arc<ServerConfig>,
    /// For browsers, which have no certificate.
    browsers: Arc<ServerConfig>,
    /// The names in the coordinator's certificate.
    names: Vec<String>,
    stamp: Stamp,
    /// When the coordinator's certificate need not be replaced, in seconds since 1970. If the clock was set back since it was
    /// made, it may not be good yet.
    good_s: Range<u64>,
}

/// By what a change of the files is noticed: when each was written, and its length.
type Stamp = Vec<Option<(SystemTime, u64)>>;

/// The records, as handshakes see them.
#[derive(Debug, Default)]
struct Shared(RwLock<Records>);

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, Records> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, record: Record, now_s: u64) {
        let mut records = self.0.write().unwrap_or_else(PoisonError::into_inner);
        records.apply(record);
        records.prune(now_s);
    }
}

impl Revocations for Shared {
    fn is_revoked(&self, id: &Id) -> bool {
        self.read().is_revoked(id)
    }
}

impl Access {
    /// Opens an access directory. Certificates of workers are valid for `worker_life`.
    ///
    /// # Errors
    /// If it is none, or cannot be written.
    pub(crate) fn open(directory: &Path, worker_life: Duration) -> anyhow::Result<Self> {
        let shown = directory.display();
        let server = directory.join(SERVER_FILE);
        match server.metadata() {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                bail!("{shown} is no access directory: `evoxo-coordinator init --access {shown}` makes one")
            }
            found => found.with_context(|| format!("cannot read {}", server.display()))?,
        };
        let (journal, mut records) = Journal::open(directory, now_s())?;
        // Who was logged in with a browser must log in again.
        records.identities.retain(|_, known| known.name != BROWSER);
        let records = Arc::new(Shared(RwLock::new(records)));
        let unusable = || format!("the access directory {shown} cannot be used");
        let current = Current::load(directory, &records).with_context(unusable)?;
        Ok(Self(Arc::new(Inner {
            directory: directory.to_owned(),
            worker_life_s: worker_life.as_secs().max(1),
            records,
            journal: Mutex::new(journal),
            audit: Mutex::new(Audit::open(directory)?),
            current: RwLock::new(current),
            connections: Mutex::default(),
        })))
    }

    fn current(&self) -> RwLockReadGuard<'_, Current> {
        self.0.current.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pin of its authority.
    pub(crate) fn pin(&self) -> Pin {
        self.current().pin
    }

    /// The configuration for the next handshake.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current().config)
    }

    /// The configuration for the next handshake with a browser.
    pub(crate) fn browsers(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current().browsers)
    }

    /// The names by which the coordinator's certificate can be checked.
    pub(crate) fn names(&self) -> Vec<String> {
        self.current().names.clone()
    }

    /// How a standby of this cluster asks the leader for its health: as a viewer of its own making.
    ///
    /// # Errors
    /// If the directory's authority cannot sign.
    pub(crate) fn dialer(&self) -> anyhow::Result<Dialer> {
        let authority = Arc::clone(&self.current().authority);
        let identity = Identity { id: Id::draw(), role: Role::Viewer };
        Dialer::with(&AccessFile::made_by(&authority, &identity, now_s(), PERSON_LIFE_S)?)
    }

    /// Takes up new certificates in the directory, and renews the coordinator's own, for as long as this runs.
    pub(crate) async fn keep_up(self) {
        let mut broken = None;
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let access = self.clone();
            // Files are read, and perhaps a key is made, on another thread.
            let looked = tokio::task::spawn_blocking(move || access.look()).await;
            let why = match looked {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{error:#}")),
                Err(_) => Some("a thread panicked".into()),
            };
            if let Some(why) = why.as_ref().filter(|_| why != broken) {
                warn!("the access directory cannot be taken up, and what was valid before goes on: {why}");
            }
            broken = why;
        }
    }

    fn look(&self) -> anyhow::Result<()> {
        lock(&self.0.connections).retain(|_, ends| {
            ends.retain(|end| !end.is_closed());
            !ends.is_empty()
        });
        let (stamp, good_s, authority) = {
            let current = self.current();
            (current.stamp.clone(), current.good_s.clone(), Arc::clone(&current.authority))
        };
        let path = self.0.directory.join(SERVER_FILE);
        if !good_s.contains(&now_s()) {
            let names = names_in(&path)?.0;
            write_private(&path, authority.server(&names, now_s())?.as_bytes())?;
        }
        if stamp_of(&self.0.directory) != stamp {
            let current = Current::load(&self.0.directory, &self.0.records)?;
            let (before, now) = (self.pin(), current.pin);
            *self.0.current.write().unwrap_or_else(PoisonError::into_inner) = current;
            let shown = self.0.directory.display();
            info!("the certificates in {shown} are taken up");
            if now != before {
                let ended = self.disconnect_all();
                warn!(
                    "the authority in {shown} is another one: the open connections of those whom the one before let in ({ended}) were \
                     ended. If there are standbys, start this coordinator again, so that the store says it"
                );
            }
        }
        Ok(())
    }

    /// Notes a connection of somebody whom this authority let in. The receiver gets a message if it must end.
    pub(crate) fn connected(&self, certificate: &Certificate, authority: Pin, address: &str) -> oneshot::Receiver<()> {
        let id = &certificate.identity.id;
        let ended = self.until_revoked(id);
        // It may have been replaced before there was anything to end.
        if authority != self.pin() {
            self.disconnect(id);
            return ended;
        }
        if !self.is_revoked(id) && !self.0.records.read().identities.contains_key(id) {
            // An operator made by init, or somebody from before the records were lost.
            let Certificate { identity: Identity { id, role }, expires_s, .. } = certificate.clone();
            let address = address.to_owned();
            let [name, token, key] = Default::default();
            let granted = None;
            self.0.records.apply(Record::Joined { id, role, name, token, key, address, expires_s, granted }, now_s());
        }
        ended
    }

    /// Notes something of an identity that goes on. The receiver gets a message if it must end.
    pub(crate) fn until_revoked(&self, id: &Id) -> oneshot::Receiver<()> {
        let (end, ended) = oneshot::channel();
        {
            let mut connections = lock(&self.0.connections);
            let of_id = connections.entry(id.clone()).or_default();
            of_id.retain(|end| !end.is_closed());
            of_id.push(end);
        }
        // It may have been revoked before there was anything to end.
        if self.is_revoked(id) {
            self.disconnect(id);
        }
        ended
    }

    /// Whether this identity was revoked.
    pub(crate) fn is_revoked(&self, id: &Id) -> bool {
        self.0.records.is_revoked(id)
    }

    /// Ends the connections of an identity; returns how many there were.
    fn disconnect(&self, id: &Id) -> u32 {
        let ends = lock(&self.0.connections).remove(id).unwrap_or_default();
        ends.into_iter().filter_map(|end| end.send(()).ok()).count() as u32
    }

    /// Ends the connections of all; returns how many there were.
    fn disconnect_all(&self) -> u32 {
        let ends = std::mem::take(&mut *lock(&self.0.connections));
        ends.into_values().flatten().filter_map(|end| end.send(()).ok()).count() as u32
    }

    /// The open connections of an identity.
    fn connections(&self, id: &Id) -> u32 {
        lock(&self.0.connections).get(id).map_or(0, |ends| ends.iter().filter(|end| !end.is_closed()).count() as u32)
    }

    fn append(&self, journal: &mut Journal, record: Record, now_s: u64) -> Result<(), Refused> {
        journal.append(&record).map_err(Refused::Failed)?;
        self.0.records.apply(record, now_s);
        if let Err(error) = journal.shorten(&self.0.records.read()) {
            // The record is on disk, so it holds.
            warn!("{error:#}; the file grows until that is possible");
        }
        Ok(())
    }

    /// Creates a token. Blocks.
    ///
    /// # Errors
    /// See [`Refused`].
    pub(crate) fn create_token(&self, role: Role, lifetime_s: u64, uses: u32, by: String) -> Result<Token, Refused> {
        if !(1..=TOKEN_LIFE_S_MAX).contains(&lifetime_s) || !(1..=TOKEN_USES_MAX).contains(&uses) {
            let days = TOKEN_LIFE_S_MAX / (24 * 3600);
            let sentence = format!("a token lives from one second to {days} days and has 1 to {TOKEN_USES_MAX} uses");
            return Err(Refused::Invalid(sentence));
        }
        let mut journal = lock(&self.0.journal);
        let now_s = now_s();
        if !self.0.records.read().has_room_for_token() {
            return Err(Refused::Exhausted);
        }
        let token = Token { id: Id::draw(), secret: Secret::draw(), pin: self.pin() };
        let (id, secret, expires_s) = (token.id.clone(), token.secret.hash(), now_s + lifetime_s);
        self.append(&mut journal, Record::Token { id, secret, role, uses, expires_s, by }, now_s)?;
        Ok(token)
    }

    /// Tokens that can still be used, and identities that are or may come back with their open connections.
    pub(crate) fn list(&self) -> Listed {
        let now_s = now_s();
        let records = self.0.records.read();
        let tokens = records.tokens.iter().filter(|(_, token)| token.is_usable(now_s));
        let identities = records.identities.iter().filter(|(_, known)| known.may_come_back(now_s));
        (
            tokens.map(|(id, token)| (id.clone(), token.clone())).collect(),
            identities.map(|(id, known)| (id.clone(), known.clone(), self.connections(id))).collect(),
        )
    }
}

impl Current {
    fn load(directory: &Path, records: &Arc<Shared>) -> anyhow::Result<Self> {
        // The stamp comes first: what changes while the files are read is read again.
        let stamp = stamp_of(directory);
        let authority = Authority::load(directory)?;
        let pin = authority.pin().map_err(anyhow::Error::msg)?;
        let path = directory.join(SERVER_FILE);
        let revocations: Arc<dyn Revocations> = Arc::<Shared>::clone(records);
        let config = Arc::new(server_config(authority.certificate(), &path, revocations)?);
        let browsers = Arc::new(browsers_config(authority.certificate(), &path)?);
        let (names, good_s) = names_in(&path)?;
        Ok(Self { authority: Arc::new(authority), pin, config, browsers, names, stamp, good_s })
    }
}

/// The names in the coordinator's certificate, and when it need not be replaced.
fn names_in(path: &Path) -> anyhow::Result<(Vec<String>, Range<u64>)> {
    let none = || format!("{} has no certificate", path.display());
    let der = CertificateDer::from_pem_slice(&read_private(path)?).with_context(none)?;
    server_names(&der).map_err(anyhow::Error::msg).with_context(none)
}

fn stamp_of(directory: &Path) -> Stamp {
    let files = Authority::FILES.into_iter().chain([SERVER_FILE]);
    let stamp = |name: &str| {
        let data = fs::metadata(directory.join(name)).ok()?;
        Some((data.modified().ok()?, data.len()))
    };
    files.map(stamp).collect()
}
