//! Experiment `evolve`: anybody's fitness function, built in, a WebAssembly module, or a program beside the workers, searched
//! by an algorithm of the field.
//!
//! One replica is one search. A round is one batch of candidates, which the algorithm asks for and whose evaluations it is
//! told: a task evaluates a slice of the batch. The whole search is a function of the configuration, which has the module or
//! the signature of the program in it.

pub mod algorithm;
mod baseline;
mod card;
mod check;
mod confirm;
mod contests;
mod curves;
pub mod evaluation;
pub mod genome;
mod headline;
mod known_front;
mod limits;
mod longer;
mod optimism;
pub mod pareto;
mod pictures;
pub mod problem;
mod program;
mod report;
mod rows;
mod search;
pub mod settings;
#[cfg(test)]
mod table_tests;
pub mod tables;
mod targets;
pub mod task;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod told_tests;
pub mod variation;
mod wasm;
pub mod wrong;

/// The messages of `evolve.proto`.
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod messages;

use evoxo_common::{
    digest::Digest,
    experiment::{Asks, Kind, Reads},
    settings::Values,
    task::{ProgramId, Refusal},
};

use program::Asked;
use search::Replica;
use settings::Settings;

/// The kind.
pub const KIND: Kind = Kind::of::<Replica>();

/// How its tasks ask programs.
const ASKS: Asks = Asks {
    program: asked,
    signature: |name, programs| Asked { name, programs }.signature(),
    settings: |values, programs| {
        let settings = Settings::of(values);
        let name = settings.program().unwrap_or_default();
        Asked { name, programs }.settings(&settings)
    },
    arm: check::arm,
    answers: check::answers,
};

/// How its settings take in a module.
const READS: Reads = Reads {
    file: |settings| {
        let settings = Settings::of(settings);
        settings.module_file().filter(|_| settings.module.is_empty()).map(str::to_owned)
    },
    bytes_max: wasm::MODULE_BYTES_MAX,
    runs: |settings| Settings::of(settings).module_file().is_some(),
    settings: |settings, bytes| {
        wasm::Module::new(bytes).map_err(Refusal)?;
        task::try_out(settings, bytes)?;
        Ok(vec![("module", wasm::encode(bytes))])
    },
};

/// The program that an arm asks.
fn asked(values: &Values) -> Option<ProgramId> {
    let settings = Settings::of(values);
    let name = settings.program()?.to_owned();
    Some(ProgramId { name, signature: Digest::from_hex(&settings.signature) })
}
