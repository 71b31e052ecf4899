//! Experiment `evolve`: searches any fitness function with a standard algorithm. The function is built in, a WebAssembly
//! module, or a program that runs beside the workers.
//!
//! One replica is one search. A round is one batch of candidates: the algorithm proposes them, tasks evaluate slices of them,
//! and the algorithm gets their evaluations. The whole search is a function of the configuration, which contains the module
//! or the signature of the program.

mod activity;
pub mod algorithm;
mod ask;
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
#[path = "../../src/testing.rs"]
mod testing;
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
    experiment::{Asks, Kind, Reads, Said},
    settings::Values,
    task::{ProgramId, Programs, Refusal},
};

use program::Asked;
use search::Replica;
use settings::Settings;

/// The kind of experiment.
pub const KIND: Kind = Kind::of::<Replica>();

#[cfg(test)]
fn registry() -> evoxo_common::experiment::Registry {
    evoxo_common::experiment::Registry::new(&[KIND])
}

/// Adds algorithms of another crate to those that an experiment file can choose.
///
/// # Panics
/// If a name or a setting of an algorithm is taken, or if this kind has been used before.
pub fn add(more: &'static [algorithm::AlgorithmKind]) {
    algorithm::add(more, |name| settings::Name::named(name).is_some());
}

/// How the tasks of `evolve` use programs.
const ASKS: Asks = Asks {
    program: asked,
    is_default: true,
    signature: |name, programs| Asked { name, programs }.signature(),
    settings: said,
    arm: check::arm,
    questions: check::questions,
    answers: check::answers,
};

/// The settings of an arm that follow from its program.
fn said(values: &Values, programs: &mut dyn Programs) -> Result<Vec<Said>, Refusal> {
    let settings = Settings::of(values);
    let name = settings.asked().unwrap_or_default();
    let mut asked = Asked { name: &name, programs };
    let mut said = if settings.program().is_some() { asked.settings(&settings)? } else { Vec::new() };
    if settings.algorithm.asks {
        // The algorithm is tried with the genome, which may follow from the program.
        let complete = said.iter().fold(values.clone(), |values, (name, text)| values.with(name, text));
        said.extend(asked.settings_of_own(&Settings::of(&complete))?);
    }
    Ok(said)
}

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
    let name = settings.asked()?;
    let signature = match settings.program() {
        Some(_) => settings.signature,
        None => algorithm::own(&settings.own).own_signature,
    };
    Some(ProgramId { name, signature: Digest::from_hex(&signature) })
}
