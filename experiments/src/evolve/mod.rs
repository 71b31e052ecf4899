//! Experiment `evolve`: searches any fitness function with a standard algorithm. The function is built in, a WebAssembly
//! module, or a program that runs beside the workers.
//!
//! One replica is one search. A round is one batch of candidates: the algorithm proposes them, tasks evaluate slices of them,
//! and the algorithm gets their evaluations. The whole search is a function of the configuration, which contains the module
//! or the signature of the program.

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
mod lineage;
mod longer;
pub mod notation;
mod optimism;
pub mod pareto;
mod pictures;
pub mod problem;
mod program;
mod recall;
mod report;
mod rows;
mod search;
pub mod settings;
mod start;
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

/// The kind of experiment.
pub const KIND: Kind = Kind::of::<Replica>();

/// How the tasks of `evolve` use programs.
const ASKS: Asks = Asks {
    program: asked,
    is_default: true,
    signature: |name, programs| Asked { name, programs }.signature(),
    settings: |values, programs| {
        let settings = Settings::of(values);
        let name = settings.program().unwrap_or_default();
        Asked { name, programs }.settings(&settings)
    },
    arm: check::arm,
    answers: check::answers,
};

/// How the settings of `evolve` take in a module and the candidates with which a search begins.
const READS: Reads = Reads {
    file: |settings| {
        let settings = Settings::of(settings);
        missing_module(&settings).or_else(|| start::file(&settings.start)).map(str::to_owned)
    },
    bytes_max: wasm::MODULE_BYTES_MAX,
    runs: |settings| Settings::of(settings).module_file().is_some(),
    settings: |settings, bytes| {
        if missing_module(&Settings::of(settings)).is_none() {
            return Ok(vec![("start", start::of_file(bytes).map_err(Refusal)?)]);
        }
        wasm::Module::new(bytes).map_err(Refusal)?;
        task::try_out(settings, bytes)?;
        Ok(vec![("module", wasm::encode(bytes))])
    },
};

/// The file of a module that the settings do not have yet.
fn missing_module(settings: &Settings) -> Option<&str> {
    settings.module_file().filter(|_| settings.module.is_empty())
}

/// The program that an arm uses, if any.
fn asked(values: &Values) -> Option<ProgramId> {
    let settings = Settings::of(values);
    let name = settings.program()?.to_owned();
    Some(ProgramId { name, signature: Digest::from_hex(&settings.signature) })
}
