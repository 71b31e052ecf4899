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
mod limits;
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
    experiment::{Asks, Column, Kind, Ranking, Reads},
    settings::Values,
    task::{ProgramId, Refusal},
};

use program::Asked;
use search::Replica;
use settings::Settings;

/// The kind.
pub const KIND: Kind = Kind {
    name: task::NAME,
    schema: &settings::SCHEMA,
    columns: &COLUMNS,
    primary_metric: 1,
    tail: |_| 1,
    is_solution: Some(|row| row.get(rows::VIOLATION) == Some(&0.0)),
    ranking: Some(Ranking { compare: report::compare, column: report::deciding_column }),
    rounds: |settings| limits::rounds_most(&Settings::of(settings)),
    demand: |settings| search::demand(&Settings::of(settings), settings.to_text().len() as u64 + 16),
    start: |identity| Box::new(Replica::start(identity)),
    restore: |identity, state| Ok(Box::new(Replica::restore(identity, state)?)),
    tasks: &[&task::EVALUATE],
    asks: Some(Asks {
        program: asked,
        signature: |name, programs| Asked { name, programs }.signature(),
        settings: |values, programs| {
            let settings = Settings::of(values);
            let name = settings.program().unwrap_or_default();
            Asked { name, programs }.settings(&settings)
        },
        arm: check::arm,
        answers: check::answers,
    }),
    reads: Some(Reads {
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
    }),
    complete: Some(baseline::completed),
    cards: &[card::CARD],
    plays: &[],
    report: report::report,
    report_of_result: report::report_of_result,
    headline: headline::headline,
    kernels: &[],
};

const COLUMNS: [Column; rows::COLUMNS] = [
    Column { name: "evaluations", doc: "candidates evaluated so far" },
    Column {
        name: "best",
        doc: "first objective of the best candidate so far, or of the confirmed answer of a noisy search",
    },
    Column {
        name: "median",
        doc: "first objective, median of the feasible candidates of the last batch; with a window, of what is kept",
    },
    Column { name: "violation", doc: "of the best candidate: sum of the constraints that it breaks" },
    Column { name: "failures", doc: "candidates without a value so far" },
    Column { name: "hypervolume", doc: "of the front that is kept, up to the reference point; else 0" },
    Column { name: "kept", doc: "candidates that the algorithm keeps: its population, or the elites of map-elites" },
    Column {
        name: "qd_score",
        doc: "of map-elites: by how much all elites together are better than what is worth nothing; else 0",
    },
    Column { name: "outside", doc: "of map-elites: candidates so far whose measures lay outside the grid" },
    Column { name: "reached", doc: "the evaluation that was first as good as the target, counted from 1; 0 before" },
    Column { name: "seen", doc: "first objective of the best candidate as the search saw it" },
    Column {
        name: "confirmed",
        doc: "of a noisy search's answer, in the last row: evaluations with fresh seeds; else 0",
    },
    Column { name: "error", doc: "half the width of the 95 % interval of best where it is confirmed; else 0" },
];

/// The program that an arm asks.
fn asked(values: &Values) -> Option<ProgramId> {
    let settings = Settings::of(values);
    let name = settings.program()?.to_owned();
    Some(ProgramId { name, signature: Digest::from_hex(&settings.signature) })
}
