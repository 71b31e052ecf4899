//! The coordinator's access directory, which says who may use this coordinator. While the process runs, nothing else writes
//! there, except `init`.
//!
//! The [records](records) of tokens and identities are in this directory and not in the store. The store may be a bucket that
//! others read, and anyone who can write it could otherwise grant themselves access.

mod audit;
mod expiry;
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
    expires_s, now_s, read_private, server_config, server_names, write_private,
};
use tokio::sync::oneshot;
use tokio_rustls::rustls::{ServerConfig, pki_types::CertificateDer, pki_types::pem::PemObject as _};
use tracing::{info, warn};

use audit::Audit;
pub(crate) use audit::{Asker, Outcome, merge, says_done};
pub(crate) use expiry::Expiries;
pub(crate) use init::init;
use journal::Journal;
use records::{Known, Record, Records};
pub(crate) use writer::{Written, lock};

/// The coordinator's own certificate and key.
const SERVER_FILE: &str = "server.pem";
/// How long the certificate of a person is valid, in seconds: 90 days. `evoxo` renews it whenever it is used.
const PERSON_LIFE_S: u64 = 90 * 24 * 3600;
/// The name that lists show for somebody who logged in with a browser.
const BROWSER: &str = "browser";
/// How often the files are checked for a new certificate.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The longest life and the most uses of a token.
const TOKEN_LIFE_S_MAX: u64 = 365 * 24 * 3600;
const TOKEN_USES_MAX: u32 = 100_000;

/// Why a request about access is refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The token is not valid.
    Token(&'static str),
    /// The request makes no sense.
    Invalid(String),
    /// There are too many tokens.
    Exhausted,
    /// The directory cannot be written, or something else went wrong that the operator must repair.
    Failed(anyhow::Error),
}

/// A certificate and its authority's certificate, DER.
pub(crate) type Issued = (Vec<u8>, Vec<u8>);

/// Tokens, and identities with the number of their connections.
pub(crate) type Listed = (Vec<(Id, records::Token)>, Vec<(Id, Known, u32)>);

/// The effects of a revocation.
#[derive(Debug)]
pub(crate) struct Revoked {
    /// Whether such an identity or token existed.
    pub(crate) known: bool,
    /// The number of connections that were ended.
    pub(crate) connections: u32,
    /// The token with which the identity joined, if it can still be used.
    pub(crate) token: Option<Id>,
}

/// The access directory of this coordinator. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Access(Arc<Inner>);

struct Inner {
    directory: PathBuf,
    worker_life_s: u64,
    records: Arc<Shared>,
    /// Locked before the records are changed, so that they always agree with the file.
    journal: Mutex<Journal>,
    audit: Mutex<Audit>,
    /// Made from the files, and replaced as a whole when one of them changes.
    current: RwLock<Current>,
    /// Open connections. A message to a sender ends its connection.
    connections: Mutex<BTreeMap<Id, Vec<oneshot::Sender<()>>>>,
}

struct Current {
    authority: Arc<Authority>,
    pin: Pin,
    config: Arc<ServerConfig>,
    /// The TLS configuration for browsers, which have no certificate.
    browsers: Arc<ServerConfig>,
    /// The names in the coordinator's certificate.
    names: Vec<String>,
    stamp: Stamp,
    /// When the certificates of the authority and of the coordinator expire, in seconds since 1970.
    expire_s: [u64; 2],
    /// The time, in seconds since 1970, during which the coordinator's certificate need not be replaced. If the clock was set
    /// back, the certificate may not be valid yet.
    good_s: Range<u64>,
}

/// Reveals changes of the files: the time each was written, and its length.
type Stamp = Vec<Option<(SystemTime, u64)>>;

/// The records as handshakes see them.
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
    /// If `directory` is not an access directory, or cannot be written.
    pub(crate) fn open(directory: &Path, worker_life: Duration) -> anyhow::Result<Self> {
        let shown = directory.display();
        let server = directory.join(SERVER_FILE);
        match server.metadata() {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                bail!("{shown} is not an access directory: create one with `evoxo-coordinator init --access {shown}`")
            }
            found => found.with_context(|| format!("cannot read {}", server.display()))?,
        };
        let (journal, mut records) = Journal::open(directory, now_s())?;
        // People who were logged in with a browser must log in again.
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

    /// The pin of the directory's authority.
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

    /// The names for which the coordinator's certificate is valid.
    pub(crate) fn names(&self) -> Vec<String> {
        self.current().names.clone()
    }

    /// The dialer with which a standby of this cluster asks the leader for its health. The standby issues itself a
    /// certificate of a viewer.
    ///
    /// # Errors
    /// If the directory's authority cannot sign.
    pub(crate) fn dialer(&self) -> anyhow::Result<Dialer> {
        let authority = Arc::clone(&self.current().authority);
        let identity = Identity { id: Id::draw(), role: Role::Viewer };
        Dialer::with(&AccessFile::made_by(&authority, &identity, now_s(), PERSON_LIFE_S)?)
    }

    /// Loads new certificates from the directory, and renews the coordinator's own, for as long as this future runs.
    pub(crate) async fn keep_up(self) {
        let mut broken = None;
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let access = self.clone();
            // Reading files, and perhaps making a key, takes another thread.
            let looked = tokio::task::spawn_blocking(move || access.look()).await;
            let why = match looked {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{error:#}")),
                Err(_) => Some("a thread panicked".into()),
            };
            if let Some(why) = why.as_ref().filter(|_| why != broken) {
                warn!("the access directory cannot be reloaded, so the previous certificates stay in use: {why}");
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
            info!("new certificates were loaded from {shown}");
            if now != before {
                let ended = self.disconnect_all();
                warn!(
                    "the authority in {shown} has changed, so the connections that the previous authority had admitted \
                     ({ended}) were ended. If there are standbys, restart this coordinator so that the store names the \
                     new authority"
                );
            }
        }
        Ok(())
    }

    /// Notes a connection of an identity that this authority admitted. The receiver gets a message when the connection must
    /// end.
    pub(crate) fn connected(&self, certificate: &Certificate, authority: Pin, address: &str) -> oneshot::Receiver<()> {
        let id = &certificate.identity.id;
        let ended = self.until_revoked(id);
        // The authority may have been replaced before this connection was noted.
        if authority != self.pin() {
            self.disconnect(id);
            return ended;
        }
        if !self.is_revoked(id) && !self.0.records.read().identities.contains_key(id) {
            // An operator made by `init`, or an identity from before the records were lost.
            let Certificate { identity: Identity { id, role }, expires_s, .. } = certificate.clone();
            let address = address.to_owned();
            let [name, token, key] = Default::default();
            let granted = None;
            self.0.records.apply(Record::Joined { id, role, name, token, key, address, expires_s, granted }, now_s());
        }
        ended
    }

    /// Notes something of an identity that must end when the identity is revoked. The receiver then gets a message.
    pub(crate) fn until_revoked(&self, id: &Id) -> oneshot::Receiver<()> {
        let (end, ended) = oneshot::channel();
        {
            let mut connections = lock(&self.0.connections);
            let of_id = connections.entry(id.clone()).or_default();
            of_id.retain(|end| !end.is_closed());
            of_id.push(end);
        }
        // The identity may have been revoked before this was noted.
        if self.is_revoked(id) {
            self.disconnect(id);
        }
        ended
    }

    /// Whether this identity was revoked.
    pub(crate) fn is_revoked(&self, id: &Id) -> bool {
        self.0.records.is_revoked(id)
    }

    /// Ends the connections of an identity. Returns how many there were.
    fn disconnect(&self, id: &Id) -> u32 {
        let ends = lock(&self.0.connections).remove(id).unwrap_or_default();
        ends.into_iter().filter_map(|end| end.send(()).ok()).count() as u32
    }

    /// Ends all connections. Returns how many there were.
    fn disconnect_all(&self) -> u32 {
        let ends = std::mem::take(&mut *lock(&self.0.connections));
        ends.into_values().flatten().filter_map(|end| end.send(()).ok()).count() as u32
    }

    /// The number of open connections of an identity.
    fn connections(&self, id: &Id) -> u32 {
        lock(&self.0.connections).get(id).map_or(0, |ends| ends.iter().filter(|end| !end.is_closed()).count() as u32)
    }

    fn append(&self, journal: &mut Journal, record: Record, now_s: u64) -> Result<(), Refused> {
        journal.append(&record).map_err(Refused::Failed)?;
        self.0.records.apply(record, now_s);
        if let Err(error) = journal.shorten(&self.0.records.read()) {
            // The record is on disk, so it is valid.
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
            let sentence = format!(
                "a token must live from one second to {days} days and have from 1 to \
                                    {TOKEN_USES_MAX} uses"
            );
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

    /// Tokens that can still be used, and identities that are connected or may come back, with their open connections.
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
        // The stamp is taken first, so files that change while they are read are read again.
        let stamp = stamp_of(directory);
        let authority = Authority::load(directory)?;
        let pin = authority.pin().map_err(anyhow::Error::msg)?;
        let path = directory.join(SERVER_FILE);
        let revocations: Arc<dyn Revocations> = Arc::<Shared>::clone(records);
        let config = Arc::new(server_config(authority.certificate(), &path, revocations)?);
        let browsers = Arc::new(browsers_config(authority.certificate(), &path)?);
        let (names, good_s) = names_in(&path)?;
        let server = CertificateDer::from_pem_slice(&read_private(&path)?).context("there is no certificate")?;
        let expire_s = [expires_s(authority.certificate()), expires_s(&server)];
        let [of_authority, of_server] = expire_s.map(|expires| expires.map_err(anyhow::Error::msg));
        let expire_s = [of_authority?, of_server?];
        Ok(Self { authority: Arc::new(authority), pin, config, browsers, names, stamp, expire_s, good_s })
    }
}

/// The names in the coordinator's certificate, and the time during which it need not be replaced.
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
