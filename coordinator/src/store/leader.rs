//! Leadership: the store belongs to the coordinator that created its highest epoch, the object `leader/000007`.
//!
//! Creating the object is not enough to lead: older epochs are removed, and a removed name can be created again. The leader
//! is the coordinator whose epoch is the highest in a listing made after the creation.

use std::{collections::BTreeSet, fmt};

use bytes::Bytes;
use evoxo_access::Pin;
use evoxo_common::envelope::{Kind, open, seal};
use evoxo_process::host_name;
use evoxo_proto::{STORE_FORMAT, v1};
use object_store::{ObjectMeta, ObjectStoreExt as _, path::Path};
use prost::Message as _;

use super::{Reader, Store, StoreError, answer::cause};
use crate::{core::StoreFault, names::object_named};

/// The directory of epochs.
const DIRECTORY: &str = "leader";
/// At most so many attempts to become the leader while rivals try at the same moment.
const RIVALS_MAX: usize = 64;
/// How far above the epochs in the copy a restored store continues. No cluster changes its leader that often after a copy was
/// made.
const RESTORED_STEP: u64 = 1_000_000;
/// The most bytes that the object of an epoch may have.
const LEADER_BYTES_MAX: u64 = 4096;

/// An epoch as the store lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// The epoch's number, from 1.
    pub number: u64,
    /// The store's tag of the object. The store may have been emptied, and another coordinator may have started again at 1.
    pub(crate) tag: Option<String>,
}

/// The identity of a cluster, drawn at random when its store is first used.
pub type Cluster = [u8; 16];

/// How a coordinator's connections are secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// In plain text.
    PlainText,
    /// With TLS, and with certificates of the authority that has this pin.
    Authority(Pin),
}

impl Security {
    /// Reads the field of an epoch's object; `None` if it makes no sense.
    fn read(said: &[u8]) -> Option<Self> {
        if said.is_empty() { Some(Self::PlainText) } else { said.try_into().ok().map(Self::Authority) }
    }

    fn written(self) -> Bytes {
        match self {
            Self::PlainText => Bytes::new(),
            Self::Authority(pin) => Bytes::copy_from_slice(pin.bytes()),
        }
    }
}

impl fmt::Display for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PlainText => f.write_str("in plain text"),
            Self::Authority(pin) => write!(f, "under the authority {}", pin.short()),
        }
    }
}

/// The leader, as the object of its epoch describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The leader's epoch.
    pub epoch: Epoch,
    /// The leader's process and host, for people.
    pub who: String,
    /// The address where the leader listens, as `HOST:PORT`; empty if it serves nobody or its object is damaged.
    pub address: String,
    /// The name of the leader's host; empty if its object is damaged.
    pub host: String,
    /// The leader's cluster; `None` if its object is damaged.
    pub cluster: Option<Cluster>,
    /// How the leader's connections are secured; `None` if it serves nobody or its object is damaged.
    pub security: Option<Security>,
    /// The number of the store's format; 1 if its object is damaged or does not say it.
    pub format: u32,
}

impl Leader {
    /// Whether the object is damaged, so that nobody can tell who leads, with which security, and in which cluster.
    pub(crate) fn is_damaged(&self) -> bool {
        self.cluster.is_none()
    }
}

impl Reader {
    /// The highest epoch; `None` if no coordinator has ever led.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub async fn highest_epoch(&self) -> object_store::Result<Option<Epoch>> {
        Ok(self.epochs().await?.into_iter().max_by_key(|epoch| epoch.number))
    }

    /// The current leader.
    ///
    /// # Errors
    /// A sentence if the store cannot be read.
    pub async fn leader(&self) -> Result<Option<Leader>, String> {
        let failed = |error| format!("the store {} cannot be read: {}", self.shown, cause(&error));
        let mut attempts = 0;
        let (epoch, said) = loop {
            let Some(epoch) = self.highest_epoch().await.map_err(failed)? else { return Ok(None) };
            attempts += 1;
            match self.said(&epoch_name(epoch.number)).await {
                Ok(said) => break (epoch, said.unwrap_or_default()),
                // A newer leader has removed the object.
                Err(object_store::Error::NotFound { .. }) if attempts < RIVALS_MAX => {}
                // The content of the object is unknown, so it must not be treated as empty.
                Err(error) => return Err(failed(error)),
            }
        };
        let cluster = Cluster::try_from(said.cluster.as_ref()).ok();
        let who = if said.who.is_empty() { "unknown".to_owned() } else { said.who };
        // Builds before this field wrote the first format.
        let format = said.format.max(1);
        let security = said.authority.as_deref().and_then(Security::read);
        Ok(Some(Leader { epoch, who, address: said.address, host: said.host, cluster, security, format }))
    }

    /// The content of an epoch's object; `None` if the object is damaged.
    async fn said(&self, name: &str) -> object_store::Result<Option<v1::Leader>> {
        let found = self.objects.get(&Path::from(name)).await?;
        if found.meta.size > LEADER_BYTES_MAX {
            return Ok(None);
        }
        let bytes = found.bytes().await?;
        Ok(open(Kind::Epoch, &bytes).ok().and_then(|body| v1::Leader::decode(body).ok()))
    }

    async fn epochs(&self) -> object_store::Result<Vec<Epoch>> {
        Ok(self.epochs_and_foreign().await?.0)
    }

    /// The epochs, and the numbers of epochs whose names are taken by directories. Nobody leads in the latter.
    async fn epochs_and_foreign(&self) -> object_store::Result<(Vec<Epoch>, BTreeSet<u64>)> {
        let list = self.objects.list_with_delimiter(Some(&Path::from(DIRECTORY))).await?;
        let epoch = |meta: ObjectMeta| {
            Some(Epoch { number: epoch_number(meta.location.filename()?)?, tag: meta.e_tag.clone() })
        };
        let foreign = list.common_prefixes.iter().filter_map(|path| epoch_number(path.filename()?)).collect();
        Ok((list.objects.into_iter().filter_map(epoch).collect(), foreign))
    }

    /// Whether this is still the store in which a coordinator led in this epoch, although the record of the epoch is gone:
    /// the store has runs, or a directory has the record's name. An empty store may be a mount point without its share.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) async fn has_traces(&self, epoch: u64) -> object_store::Result<bool> {
        if self.epochs_and_foreign().await?.1.contains(&epoch) {
            return Ok(true);
        }
        let runs = self.objects.list_with_delimiter(Some(&Path::from("runs"))).await?;
        Ok(!runs.common_prefixes.is_empty())
    }
}

impl Store {
    /// Sets the address where this coordinator listens, for everyone who watches it. The epochs that it creates from now on
    /// announce the address.
    pub fn advertise(&mut self, address: String) {
        self.address = address;
    }

    /// Sets how this coordinator's connections are secured, announced in the same way as the address.
    pub fn speak(&mut self, security: Security) {
        self.security = Some(security);
    }

    /// The epoch in which this store leads, if it leads.
    #[must_use]
    pub fn epoch(&self) -> Option<&Epoch> {
        self.epoch.as_ref()
    }

    /// The identity of this cluster, if this store leads or has led.
    #[must_use]
    pub fn cluster(&self) -> Option<Cluster> {
        self.cluster
    }

    /// Becomes the leader, whoever led before.
    ///
    /// # Errors
    /// [`StoreFault::Failed`] if the epoch cannot be created.
    pub fn lead(&mut self) -> Result<(), StoreFault> {
        for _ in 0..RIVALS_MAX {
            let highest = self.leader()?;
            if self.lead_after(highest.as_ref())? {
                return Ok(());
            }
        }
        Err(self.not_led("other coordinators take it over at the same time: let one of them run"))
    }

    /// Raises the epochs of a store that was restored from an older copy above all earlier epochs, so that workers and
    /// clients accept the next leader as the newest. Returns the highest epoch before, and the epoch created here, in which
    /// nobody serves.
    ///
    /// # Errors
    /// [`StoreFault::Failed`] if the store cannot be read or the epoch cannot be created.
    pub fn restored(&mut self) -> Result<(u64, u64), StoreFault> {
        let before = self.leader()?;
        self.check_format(before.as_ref()).map_err(|error| StoreFault::Failed(error.to_string()))?;
        let last = match &before {
            Some(leader) => leader.epoch.number,
            None => self.highest_named().map_err(|error| self.not_led(&cause(&error)))?,
        };
        let cluster = before.as_ref().and_then(|leader| leader.cluster).unwrap_or_else(evoxo_access::random);
        // This keeps a standby of another authority from taking over.
        self.security = before.and_then(|leader| leader.security);
        let number = last.saturating_add(RESTORED_STEP);
        let (name, said) = (epoch_name(number), self.introduction(cluster));
        match self.put(&name, &said).map_err(|error| self.not_led(&cause(&error)))? {
            true => Ok((last, number)),
            false => Err(self.not_led(&format!("{name} exists already"))),
        }
    }

    /// Becomes the leader after `before`. Returns false if another coordinator was faster.
    ///
    /// # Errors
    /// [`StoreFault::Failed`] if the epoch cannot be created.
    pub fn lead_after(&mut self, before: Option<&Leader>) -> Result<bool, StoreFault> {
        self.check_format(before).map_err(|error| StoreFault::Failed(error.to_string()))?;
        let number = self.next_epoch(before)?;
        let cluster = before.and_then(|leader| leader.cluster).or(self.cluster).unwrap_or_else(evoxo_access::random);
        let (name, ours) = (epoch_name(number), self.introduction(cluster));
        if !self.put(&name, &ours).map_err(|error| self.not_led(&cause(&error)))? {
            return Ok(false);
        }
        let reader = self.reader();
        let epochs = self.runtime.block_on(reader.epochs()).map_err(|error| self.not_led(&cause(&error)))?;
        let highest = epochs.iter().max_by_key(|epoch| epoch.number);
        let Some(own) = highest.filter(|epoch| epoch.number == number).cloned() else { return Ok(false) };
        // Older epochs are not needed, and frequent restarts would pile them up.
        let older = epochs.iter().filter(|epoch| epoch.number < number).map(|epoch| epoch_name(epoch.number)).collect();
        if let Err(error) = self.remove(older) {
            tracing::warn!("old epochs cannot be removed from the store {}: {}", self.shown, cause(&error));
        }
        (self.epoch, self.cluster) = (Some(own), Some(cluster));
        Ok(true)
    }

    /// The number of the epoch after this leader's. If the store does not say who led, the number is higher than the epoch of
    /// every object, because objects of a lower epoch would be taken for leftovers of earlier runs. Numbers whose names are
    /// taken by directories are skipped.
    fn next_epoch(&self, before: Option<&Leader>) -> Result<u64, StoreFault> {
        let failed = |error: object_store::Error| self.not_led(&cause(&error));
        let (_, foreign) = self.runtime.block_on(self.reader().epochs_and_foreign()).map_err(failed)?;
        let last = match before {
            Some(leader) => leader.epoch.number,
            None => self.highest_named().map_err(failed)?,
        };
        let free = (last..u64::MAX).map(|last| last + 1).find(|number| !foreign.contains(number));
        let number = free.ok_or_else(|| {
            self.not_led(&format!("no epoch is left after {last}: remove the objects with this number in their names"))
        })?;
        for number in foreign {
            let (name, shown) = (epoch_name(number), &self.shown);
            tracing::warn!(
                "{name} in the store {shown} is a directory, but its name belongs to a record of the leader: remove \
                 the directory"
            );
        }
        Ok(number)
    }

    /// The highest epoch in the object names of all runs; 0 if there is no such object.
    fn highest_named(&self) -> object_store::Result<u64> {
        let mut highest = 0;
        for run in self.list("runs")?.1 {
            for name in self.find_objects(&run)?.ours {
                let named = name.split_once('/').and_then(|(directory, _)| object_named(&name, directory));
                highest = highest.max(named.map_or(0, |named| named.epoch));
            }
        }
        Ok(highest)
    }

    /// Refuses a store in which a build with a later format has led.
    pub(super) fn check_format(&self, leader: Option<&Leader>) -> Result<(), StoreError> {
        match leader.map(|leader| leader.format) {
            Some(format) if format > STORE_FORMAT => Err(StoreError::Newer { place: self.shown.clone(), format }),
            _ => Ok(()),
        }
    }

    /// Remembers this cluster's identity, in case the store has lost its record of it.
    pub(crate) fn remember(&mut self, cluster: Cluster) {
        self.cluster = Some(cluster);
    }

    /// Refuses to write if another coordinator leads. If nobody has taken the lead since the store was loaded, this
    /// coordinator leads from now on.
    ///
    /// # Errors
    /// [`StoreFault::Superseded`] if another coordinator leads, [`StoreFault::Failed`] if nobody can tell who leads or the
    /// lead cannot be taken.
    pub(crate) fn check_leadership(&mut self) -> Result<(), StoreFault> {
        let highest = self.runtime.block_on(self.reader().highest_epoch());
        let highest = highest.map_err(|error| {
            let (shown, cause) = (&self.shown, cause(&error));
            StoreFault::Failed(format!("cannot find out which coordinator leads in the store {shown}: {cause}"))
        })?;
        if self.epoch.is_some() && highest == self.epoch {
            return Ok(());
        }
        if self.epoch.is_none() && highest == self.seen {
            let before = self.leader()?;
            if before.as_ref().map(|leader| &leader.epoch) == self.seen.as_ref() && self.lead_after(before.as_ref())? {
                return Ok(());
            }
        }
        Err(StoreFault::Superseded(self.superseded_sentence()))
    }

    /// Remembers who leads, for [`Store::check_leadership`].
    pub(super) fn look_who_leads(&mut self) -> object_store::Result<()> {
        self.seen = self.runtime.block_on(self.reader().highest_epoch())?;
        Ok(())
    }

    /// The current leader.
    ///
    /// # Errors
    /// [`StoreFault::Failed`] if the store cannot be read.
    pub fn leader(&self) -> Result<Option<Leader>, StoreFault> {
        self.runtime.block_on(self.reader().leader()).map_err(StoreFault::Failed)
    }

    fn superseded_sentence(&self) -> String {
        match self.leader() {
            Ok(Some(leader)) => superseded_by(&leader, &self.shown),
            Err(_) => superseded_by_somebody(&self.shown),
            Ok(None) => record_lost(&self.shown),
        }
    }

    fn introduction(&self, cluster: Cluster) -> Bytes {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        // The time makes `who` unique.
        let host = host_name();
        let who = format!("process {} on {host}, Unix time {:.9}", std::process::id(), since.as_secs_f64());
        let cluster = Bytes::copy_from_slice(&cluster);
        let authority = self.security.map(Security::written);
        let (address, format) = (self.address.clone(), STORE_FORMAT);
        let said = v1::Leader { who, address, cluster, host, authority, format };
        seal(Kind::Epoch, &said.encode_to_vec())
    }

    fn not_led(&self, cause: &str) -> StoreFault {
        StoreFault::Failed(format!("the store {} cannot be taken over: {cause}", self.shown))
    }
}

/// The sentence for a coordinator that must stop because another one leads.
#[must_use]
pub fn superseded_by(leader: &Leader, store: &str) -> String {
    let (who, number) = (&leader.who, leader.epoch.number);
    if leader.is_damaged() {
        let name = epoch_name(number);
        return format!(
            "the object {name} in the store {store} is damaged and does not say who leads, so this coordinator no \
             longer writes to the store"
        );
    }
    let address = if leader.address.is_empty() { "no address" } else { &leader.address };
    format!(
        "another coordinator leads in the store {store} now ({who}, at {address}, epoch {number}), so this one no \
         longer writes to it"
    )
}

/// The sentence for a coordinator that led and must stop writing because the store no longer says who leads.
#[must_use]
pub fn record_lost(store: &str) -> String {
    format!(
        "the store {store} was emptied, or the record of the leader in `{DIRECTORY}/` was removed, so this coordinator \
         no longer writes to it"
    )
}

/// The sentence for a coordinator that must stop because another one leads, but the store does not say which.
#[must_use]
pub fn superseded_by_somebody(store: &str) -> String {
    format!("another coordinator leads in the store {store} now, so this one no longer writes to it")
}

/// The number in an epoch's name.
pub(super) fn epoch_number(name: &str) -> Option<u64> {
    let plain = name.len() >= 6 && name.bytes().all(|byte| byte.is_ascii_digit());
    if plain { name.parse().ok() } else { None }
}

fn epoch_name(number: u64) -> String {
    format!("{DIRECTORY}/{number:06}")
}
