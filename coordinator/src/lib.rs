//! The coordinator: owns populations and states, assigns tasks, absorbs their outputs and keeps checkpoints. It does not know
//! the experiments: its program passes a registry of kinds.
//!
//! [`evoxo_coordinator_core`] makes all decisions and holds the state, without I/O; [`daemon`] connects it with time,
//! threads, sockets and a [`store`].

mod access;
pub mod cli;
pub mod daemon;
#[cfg(fuzzing)]
pub mod fuzzing;
mod grpc;
mod limits;
mod metrics;
mod page;
pub mod recall;
mod shell;
pub mod standby;
pub mod store;

use evoxo_common::experiment::Registry;
use evoxo_proto::{PROTOCOL, STORE_FORMAT};

pub use evoxo_coordinator_core as core;
pub use evoxo_coordinator_core::{id, index, kept, names, pack, prepared, replicas, saved, trust, write};
pub use grpc::accept::files_for;

/// Runs the daemon with these arguments. Logs go to standard error.
///
/// # Errors
/// A sentence that says what failed, and what to do.
pub fn run(arguments: &cli::Arguments, registry: Registry) -> anyhow::Result<()> {
    match &arguments.verb {
        Some(cli::Verb::Init { access, names }) => return init(access, names),
        Some(cli::Verb::Restored { store }) => return restored(store, registry),
        Some(cli::Verb::CheckUpgrade { store, json }) => return check_upgrade(store, *json, registry),
        Some(cli::Verb::CheckStore { store, races }) => return check_store(store, *races),
        None => {}
    }
    arguments.check_usage();
    evoxo_process::log_to_stderr(arguments.log, arguments.log_format);
    daemon::daemon(&arguments.settings(), registry)
}

/// Raises the epochs of a restored store above all earlier ones.
fn restored(place: &str, registry: Registry) -> anyhow::Result<()> {
    use std::io::Write as _;
    let (before, now) = store::restored(place, registry).map_err(anyhow::Error::msg)?;
    let told = format!(
        "{place} continues after epoch {now} (the copy has {before}): start the coordinator on it, then its standbys; \
         workers and clients need no change"
    );
    writeln!(evoxo_process::stdout(), "{told}").map_err(Into::into)
}

/// Prints what this build would do with the runs of a store.
fn check_upgrade(place: &str, json: bool, registry: Registry) -> anyhow::Result<()> {
    let upgrade = store::check_upgrade(place, registry).map_err(anyhow::Error::msg)?;
    print_upgrade(&upgrade, place, json)
}

/// Prints what a build would do with the runs of a store or of a coordinator.
///
/// # Errors
/// If not all of them go on.
pub fn print_upgrade(upgrade: &store::Upgrade, place: &str, json: bool) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut out = evoxo_process::stdout();
    match json {
        true => writeln!(out, "{:#}", upgrade.json())?,
        false => upgrade.lines().iter().try_for_each(|line| writeln!(out, "{line}"))?,
    }
    let (all, stopped) = (upgrade.runs.len(), upgrade.stopped());
    if !json {
        writeln!(out, "this build has wire format {PROTOCOL} and store format {STORE_FORMAT}")?;
    }
    if stopped > 0 {
        anyhow::bail!(
            "{stopped} of {all} runs in {place} do not go on under this build: let them end under the present build, and \
             fetch the results of those that have ended, before you replace it"
        );
    }
    if !json {
        writeln!(out, "all {all} runs in {place} go on under this build")?;
    }
    Ok(())
}

/// Checks a store, and prints the outcome.
fn check_store(store: &str, races: u32) -> anyhow::Result<()> {
    use std::io::Write as _;
    let store::Checked { races, creators } = store::check(store, races).map_err(anyhow::Error::msg)?;
    let told = format!(
        "{store} can be used: {creators} creators competed for each of {races} names, exactly one succeeded each time, \
         and listings were up to date"
    );
    writeln!(evoxo_process::stdout(), "{told}").map_err(Into::into)
}

/// Creates an access directory, and prints what to do next.
fn init(directory: &std::path::Path, names: &[String]) -> anyhow::Result<()> {
    use std::io::Write as _;
    let told = access::init(directory, names)?;
    writeln!(evoxo_process::stdout(), "{told}").map_err(Into::into)
}
