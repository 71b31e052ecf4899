//! The command line, and the settings that it stands for.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    num::NonZero,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{CommandFactory as _, Parser, Subcommand};
use evoxo_access::Id;
use evoxo_common::text::quoted;
use evoxo_process::{Address, Format, Log, build, bytes, duration, memory_bytes, whole};
use evoxo_proto::long_version;

use crate::{
    core::{self, Across, Batch, WEIGHT},
    daemon::Settings,
    recall,
};

/// Memory for runs, in bytes, if the system does not report how much it has.
const MEMORY_BYTES_UNKNOWN: u64 = 1 << 30;
/// The least and the longest silence after which a worker is lost.
const SILENCE_MIN: Duration = Duration::from_secs(5);
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// The least memory that is useful, in bytes.
const MEMORY_BYTES_MIN: u64 = 16 << 20;

/// Owns the runs: gives tasks to workers, combines their results and keeps checkpoints.
#[derive(Debug, Parser)]
#[command(
    name = "evoxo-coordinator",
    version = &*build().text().leak(),
    long_version = &*long_version(&build().text()).leak(),
    after_help = "Examples:
  evoxo-coordinator
      Listens on 127.0.0.1:7600 and keeps its runs below ./runs.
  evoxo-coordinator init
      Creates the directory ./access for a cluster of several hosts.
  evoxo-coordinator --listen 0.0.0.0:7600 --access access --store /var/lib/evoxo
      For workers on other hosts: only invited workers and people can join.
  evoxo-coordinator --listen 0.0.0.0:7600 --access access --page 0.0.0.0:7602
      The same with a page at https://NAME:7602, with logins by token.
  evoxo-coordinator --listen 10.0.0.5:7600 --insecure --store /var/lib/evoxo
      The same without protection, for a network where every host is trusted.
  evoxo-coordinator --standby --listen 10.0.0.6:7600 --insecure --store /shared
      On a second host with the same store: takes over when the first is gone.

Unfinished runs continue automatically.

SIGTERM saves everything and stops. kill -9 loses the work since the last checkpoint; no result changes."
)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// What to do instead of running a coordinator
    #[command(subcommand)]
    pub verb: Option<Verb>,

    /// Address and port to listen on; port 0 lets the system choose
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7600", value_parser = socket)]
    pub listen: SocketAddr,

    /// Access directory, made by `evoxo-coordinator init`: speak TLS, and serve only clients with a certificate
    #[arg(long, value_name = "DIRECTORY")]
    pub access: Option<PathBuf>,

    /// How long a worker's certificate is valid; the worker renews it after two thirds of that time
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = duration, requires = "access")]
    pub worker_certificate_life: Duration,

    /// Allow --listen to be an address that other hosts can reach, without encryption and for everybody
    #[arg(long)]
    pub insecure: bool,

    /// Directory for the runs, or a bucket as s3://BUCKET/PREFIX
    #[arg(long, value_name = "DIRECTORY", default_value = "runs")]
    pub store: String,

    /// Minimum time between two checkpoints of a run: 3s, 500ms, 2m
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = duration)]
    pub checkpoint_interval: Duration,

    /// Memory for the runs' states and tasks: 512MiB, 8GiB; one run gets at most half of it
    /// [default: a quarter of what this process may use]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub memory: Option<u64>,

    /// What runs recall.
    #[command(flatten)]
    pub recall: recall::Options,

    /// Which runs recall each other's evaluations: all of them, those of one submitter, or each run only its own
    #[arg(long, value_name = "RUNS", default_value = "all", value_parser = across)]
    pub recall_across: Across,

    /// Tasks sent to a worker at once: a number, or "auto" for as many as take about 20 ms
    #[arg(long, value_name = "TASKS", default_value = "auto", value_parser = batch)]
    pub batch: Batch,

    /// How many ended runs (finished, in doubt or cancelled) to keep; older ones are deleted [default: all]
    #[arg(long, value_name = "RUNS", value_parser = whole::<u32>(0, u32::MAX.into()))]
    pub keep_finished: Option<u32>,

    /// Delete ended runs so long after their end, except those with the term keep=yes: 90d, 12h [default: never]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub retain: Option<Duration>,

    /// Delete the oldest ended runs of each submitter, except those with the term keep=yes, when they take more than this:
    /// 20GiB [default: never]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub retain_bytes: Option<u64>,

    /// Give the runs of this submitter, an identity or an address as `evoxo runs` shows it, N times the share of others, from
    /// 0.01 to 100; can be repeated
    #[arg(long, value_name = "SUBMITTER=N", value_parser = weight)]
    pub weight: Vec<(String, u64)>,

    /// Keep so many slots free of tasks that take more than a second, so that short runs begin at once beside long ones
    #[arg(long, value_name = "SLOTS", default_value = "0", value_parser = whole::<u32>(0, 1_000_000))]
    pub keep_slots: u32,

    /// How long a worker may be silent before it counts as lost; a cut of the network that is shorter costs nothing
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = silence)]
    pub silence: Duration,

    /// Show no page; with --access there is a page only if --page gives its address
    #[arg(long, conflicts_with = "page_host")]
    pub no_page: bool,

    /// With --access: show the page at this address, over TLS, to people who log in with a token
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket, requires = "access", conflicts_with = "no_page")]
    pub page: Option<SocketAddr>,

    /// How long a login on that page lasts
    #[arg(long, value_name = "TIME", default_value = "12h", value_parser = duration, requires = "page")]
    pub session_life: Duration,

    /// Also show the page to other hosts that use this name or address; can be repeated [default: only to this host, as
    /// localhost, and under the names given to `init --name`]
    #[arg(long, value_name = "HOST")]
    pub page_host: Vec<String>,

    /// Wait until nobody leads in the store, then take over; a coordinator that is superseded becomes a standby again
    #[arg(long)]
    pub standby: bool,

    /// How long the leader may fail to answer before a standby takes over
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub takeover_after: Duration,

    /// Address at which standbys reach this coordinator [default: the address of --listen, or this host's name]
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<Address>,

    /// Serve figures for Prometheus at /metrics: on this port of this host, or on an address that others can reach [default:
    /// none]
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = metrics)]
    pub metrics: Option<SocketAddr>,

    /// Which messages to write to standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    pub log: Log,

    /// Format of these messages
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    pub log_format: Format,

    /// Print the address as the first line on standard output
    #[arg(long, hide = true)]
    pub announce: bool,

    /// Stop when standard input ends
    #[arg(long, hide = true)]
    pub exit_with_stdin: bool,
}

/// The program's other tasks.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Create the access directory of a new cluster; if there is one already, only a new operator's access file
    Init {
        /// The directory to create
        #[arg(long, value_name = "DIRECTORY", default_value = "access")]
        access: PathBuf,
        /// An additional name or address for the coordinator's certificate, for programs that check it (evoxo's own do not
        /// need it); can be repeated
        #[arg(long = "name", value_name = "HOST")]
        names: Vec<String>,
    },
    /// Record that a store was restored from an older copy, before a coordinator is started on it: workers and clients have
    /// seen later epochs than the copy has, and would refuse the next leader
    Restored {
        /// The directory or bucket, as for --store
        #[arg(value_name = "STORE", default_value = "runs")]
        store: String,
    },
    /// Say what this build would do with the runs of a store: which go on, and which must end under the present build first.
    /// Nothing is written, so a coordinator may be running; the status is 0 if all go on
    CheckUpgrade {
        /// The directory or bucket, as for --store
        #[arg(value_name = "STORE", default_value = "runs")]
        store: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check whether a store can be shared with a standby: if many create the same name, exactly one must succeed
    CheckStore {
        /// The directory or bucket, as for --store
        #[arg(value_name = "STORE", default_value = "runs")]
        store: String,
        /// How many names to create, each by 16 creators at once
        #[arg(long, value_name = "N", default_value = "200", value_parser = whole::<u32>(1, 1_000_000))]
        races: u32,
    },
}

impl Arguments {
    /// Ends the process with status 2 and a message if the arguments are not valid.
    pub(crate) fn check_usage(&self) {
        if let Err(why) = self.settings().check() {
            Self::command().error(clap::error::ErrorKind::ValueValidation, why).exit();
        }
    }

    /// The settings that these arguments stand for.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let core = core::Settings {
            checkpoint_interval_ms: self.checkpoint_interval.as_millis() as u64,
            batch: self.batch,
            finished_runs_kept: self.keep_finished,
            retain_ms: self.retain.map(|time| time.as_millis() as u64),
            retain_bytes: self.retain_bytes,
            weights: self.weight.clone().leak(),
            slots_kept: self.keep_slots,
            lanes_max: std::thread::available_parallelism().map_or(1, NonZero::get),
            silence_ms_max: self.silence.as_millis() as u64,
            memory_bytes_max: self.memory.unwrap_or_else(memory_by_default),
            recall_across: self.recall_across,
            ..core::Settings::default()
        };
        Settings {
            listen: self.listen,
            access: self.access.clone(),
            worker_certificate_life: self.worker_certificate_life,
            insecure: self.insecure,
            store: self.store.clone(),
            core,
            recall: self.recall.clone(),
            page_hosts: (!self.no_page).then(|| self.page_host.clone()),
            page: self.page,
            session_life: self.session_life,
            metrics: self.metrics,
            announce: self.announce,
            exit_with_stdin: self.exit_with_stdin,
            standby: self.standby,
            takeover_after: self.takeover_after,
            advertise: self.advertise.clone(),
        }
    }
}

fn across(text: &str) -> Result<Across, String> {
    match text {
        "all" => Ok(Across::Runs),
        "submitter" => Ok(Across::Submitter),
        "run" => Ok(Across::Run),
        _ => Err("give all, submitter or run".into()),
    }
}

/// The default memory for runs, in bytes: a quarter of what this process may use.
#[must_use]
pub fn memory_by_default() -> u64 {
    memory_bytes().map_or(MEMORY_BYTES_UNKNOWN, |bytes| bytes / 4).max(MEMORY_BYTES_MIN)
}

/// Reads the value of `--memory`.
///
/// # Errors
/// A sentence that says which values are possible.
pub fn memory(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        MEMORY_BYTES_MIN.. => Ok(bytes(text)?),
        _ => Err("give at least 16MiB".into()),
    }
}

/// Reads a numeric address of this host. Names are not allowed, because a name may have several addresses, or none.
fn socket(text: &str) -> Result<SocketAddr, String> {
    numbered(text)?
        .parse()
        .map_err(|_| "give a numeric address and a port from 0 to 65535, like 127.0.0.1:7600, not a name".into())
}

/// Replaces the name of a network interface by its number: `[fe80::1%eth0]:7600` means only that interface.
fn numbered(text: &str) -> Result<String, String> {
    let zone = text.split_once('%').and_then(|(address, rest)| Some((address, rest.split_once(']')?)));
    let Some((address, (zone, port))) = zone else { return Ok(text.into()) };
    if zone.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(text.into());
    }
    let plain =
        zone.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:@".contains(&byte)) && !zone.starts_with('.');
    let file = Path::new("/sys/class/net").join(zone).join("ifindex");
    let number = if plain { std::fs::read_to_string(file).ok() } else { None };
    let number = number.ok_or_else(|| format!("this host has no network interface {}", quoted(zone)))?;
    Ok(format!("{address}%{}]{port}", number.trim()))
}

/// Reads the value of `--metrics`. A port alone means this host.
fn metrics(text: &str) -> Result<SocketAddr, String> {
    let here = text.parse().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok();
    here.or_else(|| socket(text).ok()).ok_or_else(|| "give a port like 7601, or an address like 10.0.0.5:7601".into())
}

/// Reads the value of `--weight`: a submitter, and its weight in hundredths.
fn weight(text: &str) -> Result<(String, u64), String> {
    let (submitter, number) = text.rsplit_once('=').ok_or("give SUBMITTER=N, for example 1a2b3c4d5e6f=2")?;
    let known = submitter.parse::<Id>().map(|id| id.to_string()).ok();
    // An address is written as the runs of its clients show it.
    let known = known.or_else(|| submitter.parse::<IpAddr>().ok().map(|address| address.to_canonical().to_string()));
    let submitter = known.ok_or_else(|| {
        format!("{} is neither an identity, 12 digits of 0-9 and a-f, nor an address", quoted(submitter))
    })?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str, most| (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let weight = (digits(whole, 3) && digits(part, 2)).then(|| format!("{whole}{part:0<2}"));
    let weight = weight.and_then(|hundredths| hundredths.parse().ok()).filter(|it| (1..=100 * WEIGHT).contains(it));
    Ok((submitter, weight.ok_or("the weight must be from 0.01 to 100, with at most two digits after the point")?))
}

/// Reads the value of `--silence`. Heartbeats come every 2 s, and a lost packet delays one of them by some seconds.
fn silence(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    match (SILENCE_MIN..=SILENCE_MAX).contains(&time) {
        true => Ok(time),
        false => Err("give a time from 5s to 1m".into()),
    }
}

/// Reads the value of `--batch`.
///
/// # Errors
/// A sentence that says which values are possible.
pub fn batch(text: &str) -> Result<Batch, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(Batch::Auto),
        (_, Ok(tasks @ 1..)) => Ok(Batch::Tasks(tasks)),
        _ => Err("give \"auto\" or a number from 1".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_have_a_submitter_and_hundredths() {
        let id = "0123456789ab";
        for (number, hundredths) in [("2", 200), ("0.5", 50), ("0.01", 1), ("1.25", 125), ("100", 10_000)] {
            assert_eq!(weight(&format!("{id}={number}")), Ok((id.to_owned(), hundredths)), "{number}");
        }
        assert_eq!(weight("::ffff:10.0.0.7=2"), Ok(("10.0.0.7".into(), 200)));
        for number in ["", "0", "0.0", "-1", "100.01", "1.234", "1.", ".5", "x", "1e2", "+2"] {
            assert!(weight(&format!("{id}={number}")).is_err(), "{number}");
        }
        assert!(["ann=2", "=2", id, "0123456789AB=2"].iter().all(|text| weight(text).is_err()));
    }

    #[test]
    fn a_silence_is_longer_than_two_heartbeats() {
        assert!(["5s", "30s", "1m"].iter().all(|text| silence(text).is_ok()));
        assert!(["0s", "4s", "61s", "x"].iter().all(|text| silence(text).is_err()));
    }

    #[test]
    fn a_zone_is_a_number_or_an_interface() {
        let seven = socket("[fe80::1%7]:7600").unwrap();
        assert!(matches!(seven, SocketAddr::V6(address) if address.scope_id() == 7 && address.port() == 7600));
        // Every Linux host has this interface, with number 1.
        assert_eq!(socket("[fe80::1%lo]:80"), socket("[fe80::1%1]:80"));
        assert_eq!(metrics("[::1%lo]:9"), socket("[::1%1]:9"));
        for (text, said) in [
            ("[fe80::1%no]:1", "interface \"no\""),
            ("[fe80::1%../lo]:1", "no network interface"),
            ("lab%7", "numeric"),
        ] {
            assert!(socket(text).is_err_and(|why| why.contains(said)), "{text}");
        }
    }
}
