//! Leadership: the store belongs to the coordinator that created its highest epoch, the object `leader/000007`.
//!
//! That the creation succeeded does not make a leader: older epochs are removed, and a removed name can be created again. Whoever
//! leads is the highest in a listing that was made afterwards.

use std::{collections::BTreeSet, fmt};

use bytes::Bytes;
use evoxo_access::Pin;
use evoxo_common::envelope::{Kind, open, seal};
use evoxo_process::host_name;
use evoxo_proto::v1;
use object_store::{ObjectMeta, ObjectStoreExt as _, path::Path};
use prost::Message as _;

use super::{Reader, Store, answer::cause};
use crate::{core::StoreFault, names::object_named};

/// The directory of the epochs.
const DIRECTORY: &str = "leader";
/// The most attempts to become the leader against others who try at the same moment.
const RIVALS_MAX: usize = 64;
/// By so much the epochs of a restored store go on above those in the copy: nobody has led that often since the copy was made.
const RESTORED_STEP: u64 = 1_000_000;
/// The most bytes of the object of an epoch.
const LEADER_BYTES_MAX: u64 = 4096;

/// An epoch as the store lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// From 1.
    pub number: u64,
    /// The store's tag of the object: somebody may have emptied the store, and another coordinator begun again with 1.
    pub(crate) tag: Option<String>,
}

/// Which cluster this is: drawn when the store was first used.
pub type Cluster = [u8; 16];

/// How a coordinator speaks with all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// In plain text.
    PlainText,
    /// With TLS, and certificates of the authority that has this pin.
    Authority(Pin),
}

impl Security {
    /// As the object of an epoch says it; `None` if that makes no sense.
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

/// Who leads, as its object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Its epoch.
    pub epoch: Epoch,
    /// Its process and host, for people.
    pub who: String,
    /// Where it listens, as `HOST:PORT`; empty if it serves nobody or its object is damaged.
    pub address: String,
    /// Its host's name; empty if its object is damaged.
    pub host: String,
    /// `None` if its object is damaged.
    pub cluster: Option<Cluster>,
    /// `None` if it serves nobody or its object is damaged.
    pub security: Option<Security>,
}

impl Leader {
    /// Whether nobody can tell who leads, how, and in which cluster.
    pub(crate) fn is_damaged(&self) -> bool {
        self.cluster.is_none()
    }
}

impl Reader {
    /// The highest epoch; `None` if nobody has ever led.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub async fn highest_epoch(&self) -> object_store::Result<Option<Epoch>> {
        Ok(self.epochs().await?.into_iter().max_by_key(|epoch| epoch.number))
    }

    /// Who leads.
    ///
    /// # Errors
    /// A sentence, if the store cannot be read.
    pub async fn leader(&self) -> Result<Option<Leader>, String> {
        let failed = |error| format!("the store {} cannot be read: {}", self.shown, cause(&error));
        let mut attempts = 0;
        let (epoch, said) = loop {
            let Some(epoch) = self.highest_epoch().await.map_err(failed)? else { return Ok(None) };
            attempts += 1;
            match self.said(&epoch_name(epoch.number)).await {
                Ok(said) => break (epoch, said.unwrap_or_default()),
                // Whoever leads since has removed it.
                Err(object_store::Error::NotFound { .. }) if attempts < RIVALS_MAX => {}
                // Nobody knows what it says, so nobody may act as if it said nothing.
                Err(error) => return Err(failed(error)),
            }
        };
        let cluster = Cluster::try_from(said.cluster.as_ref()).ok();
        let who = if said.who.is_empty() { "unknown".to_owned() } else { said.who };
        let security = said.authority.as_deref().and_then(Security::read);
        Ok(Some(Leader { epoch, who, address: said.address, host: said.host, cluster, security }))
    }

    /// What the object of an epoch says; `None` if it is damaged.
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

    /// The epochs, and the numbers of epochs whose names somebody has given to directories. Nobody leads in those.
    async fn epochs_and_foreign(&self) -> object_store::Result<(Vec<Epoch>, BTreeSet<u64>)> {
        let list = self.objects.list_with_delimiter(Some(&Path::from(DIRECTORY))).await?;
        let epoch = |meta: ObjectMeta| {
            Some(Epoch { number: epoch_number(meta.location.filename()?)?, tag: meta.e_tag.clone() })
        };
        let foreign = list.common_prefixes.iter().filter_map(|path| epoch_number(path.filename()?)).collect();
        Ok((list.objects.into_iter().filter_map(epoch).collect(), foreign))
    }

    /// Whether this is still the store in which somebody led in this epoch, although its record is gone: it has runs, or a directory
    /// has the record's name. An empty one may be a mount point without its share.
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
    /// Where this coordinator listens, for those that watch it: said in the epochs that it creates from now on.
    pub fn advertise(&mut self, address: String) {
        self.address = address;
    }

    /// How this coordinator speaks, for those that watch it: said like the address.
    pub fn speak(&mut self, security: Security) {
        self.security = Some(security);
    }

    /// The epoch in which this store leads, if it does.
    #[must_use]
    pub fn epoch(&self) -> Option<&Epoch> {
        self.epoch.as_ref()
    }

    /// Which cluster this is, if this store leads or has led.
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

    /// Lets the epochs of a store that was restored from an older copy go on above all that have been, so that workers and people's tools
    /// take whoever leads next for the newest leader. Returns the highest epoch before, and the one that it creates, in which nobody
    /// serves.
    ///
    /// # Errors
    /// [`StoreFault::Failed`] if the store cannot be read or the epoch cannot be created.
    pub fn restored(&mut self) -> Result<(u64, u64), StoreFault> {
        let before = self.leader()?;
        let last = match &before {
            Some(leader) => leader.epoch.number,
            None => self.highest_named().map_err(|error| self.not_led(&cause(&error)))?,
        };
        let cluster = before.as_ref().and_then(|leader| leader.cluster).unwrap_or_else(evoxo_access::random);
        // A standby of another authority must not take it over.
        self.security = before.and_then(|leader| leader.security);
        let number = last.saturating_add(RESTORED_STEP);
        let (name, said) = (epoch_name(number), self.introduction(cluster));
        match self.put(&name, &said).map_err(|error| self.not_led(&cause(&error)))? {
            true => Ok((last, number)),
            false => Err(self.not_led(&format!("{name} is there already"))),
        }
    }

    /// Becomes the leader after this one. False if another coordinator was faster.
    ///
    /// # Errors
    /// [`StoreFault::Failed`] if the epoch cannot be created.
    pub fn lead_after(&mut self, before: Option<&Leader>) -> Result<bool, StoreFault> {
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
        // Older epochs are not needed, and frequent restarts would accumulate them.
        let older = epochs.iter().filter(|epoch| epoch.number < number).map(|epoch| epoch_name(epoch.number)).collect();
        if let Err(error) = self.remove(older) {
            tracing::warn!("old epochs cannot be removed from the store {}: {}", self.shown, cause(&error));
        }
        (self.epoch, self.cluster) = (Some(own), Some(cluster));
        Ok(true)
    }

    /// The number of the epoch after this leader's. If the store does not say who led, it is higher than that of any object: what a
    /// lower epoch writes would be taken for remains of earlier runs. Names that somebody has given to directories are passed over.
    fn next_epoch(&self, before: Option<&Leader>) -> Result<u64, StoreFault> {
        let failed = |error: object_store::Error| self.not_led(&cause(&error));
        let (_, foreign) = self.runtime.block_on(self.reader().epochs_and_foreign()).map_err(failed)?;
        let last = match before {
            Some(leader) => leader.epoch.number,
            None => self.highest_named().map_err(failed)?,
        };
        let free = (last..u64::MAX).map(|last| last + 1).find(|number| !foreign.contains(number));
        let number = free.ok_or_else(|| {
            self.not_led(&format!("no epoch is left after {last}: remove what has this number in its name"))
        })?;
        for number in foreign {
            let (name, shown) = (epoch_name(number), &self.shown);
            tracing::warn!(
                "{name} in the store {shown} is a directory, where a record of who leads belongs: remove it"
            );
        }
        Ok(number)
    }

    /// The highest epoch in the names of the objects of runs; 0 if there is none.
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

    /// Remembers which cluster this is, in case that the store has lost its record of it.
    pub(crate) fn remember(&mut self, cluster: Cluster) {
        self.cluster = Some(cluster);
    }

    /// Refuses to write if another coordinator leads. If nobody has led since the store was loaded, this one leads from now
    /// on.
    ///
    /// # Errors
    /// [`StoreFault::Superseded`] if another one leads, [`StoreFault::Failed`] if nobody can tell or lead.
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

    /// Remembers who leads: see [`Store::check_leadership`].
    pub(super) fn look_who_leads(&mut self) -> object_store::Result<()> {
        self.seen = self.runtime.block_on(self.reader().highest_epoch())?;
        Ok(())
    }

    /// Who leads.
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
        // The time makes it unique.
        let host = host_name();
        let who = format!("process {} on {host}, Unix time {:.9}", std::process::id(), since.as_secs_f64());
        let cluster = Bytes::copy_from_slice(&cluster);
        let authority = self.security.map(Security::written);
        let said = v1::Leader { who, address: self.address.clone(), cluster, host, authority };
        seal(Kind::Epoch, &said.encode_to_vec())
    }

    fn not_led(&self, cause: &str) -> StoreFault {
        StoreFault::Failed(format!("the store {} cannot be taken over: {cause}", self.shown))
    }
}

/// Why a coordinator must stop: another one leads.
#[must_use]
pub fn superseded_by(leader: &Leader, store: &str) -> String {
    let (who, number) = (&leader.who, leader.epoch.number);
    if leader.is_damaged() {
        let name = epoch_name(number);
        return format!(
            "the object {name} in the store {store} is damaged and does not say who leads, so this coordinator does not write \
             the store any more"
        );
    }
    let address = if leader.address.is_empty() { "no address" } else { &leader.address };
    format!(
        "another coordinator leads in the store {store} now ({who}, at {address}, epoch {number}), so this one does not \
         write it"
    )
}

/// Why a coordinator that led does not write any more: nobody knows who leads.
#[must_use]
pub fn record_lost(store: &str) -> String {
    format!(
        "the store {store} was emptied, or what says in `{DIRECTORY}/` who leads was removed, so this coordinator does not \
         write it any more"
    )
}

/// The same if it cannot be read which one.
#[must_use]
pub fn superseded_by_somebody(store: &str) -> String {
    format!("another coordinator leads in the store {store} now, so this one does not write it")
}

/// The number in an epoch's name.
pub(super) fn epoch_number(name: &str) -> Option<u64> {
    let plain = name.len() >= 6 && name.bytes().all(|byte| byte.is_ascii_digit());
    if plain { name.parse().ok() } else { None }
}

fn epoch_name(number: u64) -> String {
    format!("{DIRECTORY}/{number:06}")
}
