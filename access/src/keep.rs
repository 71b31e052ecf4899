//! How a machine keeps its access: it joins once, keeps its file, and renews its certificate at two thirds of its life.

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use evoxo_process::Addresses;
use tracing::{info, warn};

use crate::{
    certificate::Certificate,
    dial::Dialer,
    file::AccessFile,
    join::{Newcomer, at_any, renew},
    now_s,
    private::create_directory,
    tls::Refusal,
    token::Token,
};

/// The pause before the next attempt to get a certificate while no coordinator answers.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// The maximum time between two looks at the clock. The machine may sleep in between.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// The minimum pause between two attempts to renew.
const RENEW_PAUSE: Duration = Duration::from_secs(1);

/// The source of a machine's access.
#[derive(Clone, Debug)]
pub enum Source {
    /// This access file.
    File(PathBuf),
    /// This token. The access is stored in the given file, by default in the worker's state directory.
    Token(Token, Option<PathBuf>),
}

/// The directory in which a service keeps its files: the one that systemd sets, or that of the user.
///
/// # Errors
/// If there is none.
fn default_directory() -> anyhow::Result<PathBuf> {
    let given = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    given("STATE_DIRECTORY")
        .or_else(|| given("XDG_STATE_HOME").map(|state| state.join("evoxo")))
        .or_else(|| given("HOME").map(|home| home.join(".local/state/evoxo")))
        .context("there is no directory for the certificate: give --access FILE, or set HOME")
}

/// A machine's access: its file, and how it connects.
pub struct Keeper {
    path: PathBuf,
    file: AccessFile,
    coordinators: Addresses,
    dialer: Dialer,
}

impl Keeper {
    /// Reads the file, or joins. It waits while no coordinator can be reached.
    ///
    /// # Errors
    /// [`Refusal::Final`] if the coordinator refuses, [`Refusal::Other`] if a file cannot be used.
    pub async fn open(source: Source, coordinators: &Addresses, name: &str) -> Result<Self, Refusal> {
        let own = |error: anyhow::Error| Refusal::Other(format!("{error:#}"));
        let (path, file) = match source {
            Source::File(path) => {
                let file = AccessFile::load(&path).map_err(own)?;
                (path, file)
            }
            Source::Token(token, path) => {
                // Do not replace a person's file. EVOXO_ACCESS may point to one even where a worker joins.
                let path = match path.filter(|path| !is_a_persons(path)) {
                    Some(path) => path,
                    None => {
                        let directory = default_directory().map_err(own)?;
                        create_directory(&directory).map_err(own)?;
                        directory.join(format!("worker-{}.access", token.pin.short()))
                    }
                };
                let file = match kept(&path, &token).map_err(own)? {
                    Some(file) => file,
                    None => {
                        let newcomer = Newcomer::new(token, path.clone()).map_err(own)?;
                        let file = when_reached(async || newcomer.join(coordinators.all(), name).await).await?;
                        match newcomer.keep(&file) {
                            Ok(()) => info!("joined the cluster; the certificate is in {}", path.display()),
                            Err(error) => warn!(
                                "joined the cluster, but the certificate cannot be stored for the next start: {error:#}"
                            ),
                        }
                        file
                    }
                };
                (path, file)
            }
        };
        let dialer = Dialer::with(&file).map_err(own)?;
        let mut keeper = Self { path, file, coordinators: coordinators.clone(), dialer };
        if keeper.file.certificate().is_ok_and(|facts| facts.expires_s <= now_s()) {
            when_reached(async || keeper.renew().await).await?;
        }
        Ok(keeper)
    }

    /// How to connect.
    #[must_use]
    pub fn dialer(&self) -> Dialer {
        self.dialer.clone()
    }

    /// The number in its certificate, for display.
    #[must_use]
    pub fn identity(&self) -> Option<String> {
        self.file.certificate().ok().map(|facts| facts.identity.id.to_string())
    }

    /// Renews the certificate whenever it is due, for as long as this runs.
    pub async fn keep(mut self) {
        let mut told = false;
        loop {
            let Ok(facts) = self.file.certificate() else { return };
            let now_s = now_s();
            if now_s < facts.renew_at_s() {
                tokio::time::sleep(LOOK_INTERVAL.min(Duration::from_secs(facts.renew_at_s() - now_s))).await;
                continue;
            }
            match self.renew().await {
                Ok(()) => {
                    told = false;
                    tokio::time::sleep(renewed_pause(&facts)).await;
                }
                Err(refusal) => {
                    if !told {
                        warn!("the certificate could not be renewed; trying again: {}", refusal.sentence());
                    }
                    told = true;
                    // Make about ten attempts in the remaining time. After expiry, retry like a newcomer.
                    let left_s = facts.expires_s.saturating_sub(now_s);
                    let pause = if left_s == 0 { RETRY_PAUSE } else { Duration::from_secs(left_s / 10) };
                    tokio::time::sleep(pause.clamp(RENEW_PAUSE, LOOK_INTERVAL)).await;
                }
            }
        }
    }

    async fn renew(&mut self) -> Result<(), Refusal> {
        let before = &self.file;
        let file = at_any(self.coordinators.all(), |address| async move { renew(before, &address).await }).await?;
        let own = |error: anyhow::Error| Refusal::Other(format!("{error:#}"));
        self.dialer.replace(&file).map_err(own)?;
        self.file = file;
        if let Err(error) = self.file.store(&self.path) {
            warn!("the renewed certificate is used, but cannot be stored for the next start: {error:#}");
        }
        Ok(())
    }
}

/// The minimum time that a renewed certificate is kept. On a host whose clock is far ahead, the certificate is due again at
/// once.
fn renewed_pause(facts: &Certificate) -> Duration {
    let life = Duration::from_secs(facts.expires_s.saturating_sub(facts.begins_s));
    (life / 10).clamp(RENEW_PAUSE, LOOK_INTERVAL)
}

/// The file that an earlier start got with this token, if its certificate is valid or can be renewed.
fn kept(path: &Path, token: &Token) -> anyhow::Result<Option<AccessFile>> {
    if !path.exists() {
        return Ok(None);
    }
    let file = AccessFile::load(path)?;
    let same = file.token.as_ref() == Some(&token.id) && file.pin() == Ok(token.pin);
    let good = file.certificate().is_ok_and(|facts| facts.renewable_until_s() > now_s());
    Ok((same && good).then_some(file))
}

/// Whether this is an access file that does not belong to a worker.
fn is_a_persons(path: &Path) -> bool {
    let facts = AccessFile::load(path).ok().and_then(|file| file.certificate().ok());
    facts.is_some_and(|facts| !facts.identity.role.is_worker())
}

/// Repeats a request until a coordinator answers.
async fn when_reached<T>(mut ask: impl AsyncFnMut() -> Result<T, Refusal>) -> Result<T, Refusal> {
    let mut told = false;
    loop {
        match ask().await {
            Err(Refusal::Other(why)) if !told => {
                warn!("{why}; trying again");
                told = true;
            }
            Err(Refusal::Other(_)) => {}
            done => return done,
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Authority, Id, Identity, Role, Secret};

    /// A worker with a new token joins again, and so does one that was away for more than a week.
    #[test]
    fn a_stored_file_is_used_only_with_its_token_and_while_valid() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine");
        let authority = Authority::create(directory.path(), now_s()).unwrap();
        let token = Token { id: Id::draw(), secret: Secret::draw(), pin: authority.pin().unwrap() };
        assert_eq!(kept(&path, &token).unwrap(), None);
        let keep = |begins_s: u64, token: &Token| {
            let identity = Identity { id: Id::draw(), role: Role::Worker };
            let mut file = AccessFile::made_by(&authority, &identity, begins_s, 3600).unwrap();
            file.token = Some(token.id.clone());
            file.store(&path).unwrap();
        };
        keep(now_s(), &token);
        assert!(kept(&path, &token).unwrap().is_some());
        let elsewhere = Authority::create(tempfile::tempdir().unwrap().path(), now_s()).unwrap().pin().unwrap();
        for other in [Token { id: Id::draw(), ..token.clone() }, Token { pin: elsewhere, ..token.clone() }] {
            assert_eq!(kept(&path, &other).unwrap(), None);
        }
        keep(now_s() - 7200, &token);
        assert!(kept(&path, &token).unwrap().is_some(), "it can be renewed");
        keep(now_s() - 8 * 24 * 3600, &token);
        assert_eq!(kept(&path, &token).unwrap(), None, "it expired too long ago");
    }

    /// On a host whose clock is ahead of all others, every certificate is due at once.
    #[test]
    fn certificates_are_not_renewed_without_a_pause() {
        let pause_s = |life_s: u64| {
            let identity = Identity { id: Id::draw(), role: Role::Worker };
            renewed_pause(&Certificate { identity, begins_s: 1000, expires_s: 1000 + life_s }).as_secs()
        };
        assert_eq!([1, 3, 100, 25 * 3600].map(pause_s), [1, 1, 10, 60]);
    }
}
