//! Upper bounds of what a search needs: its batches, the evaluations that confirm the answer of a noisy search, and bytes.

use evoxo_common::experiment::Demand;

use super::{algorithm::STATE_BYTES_MAX, rows, settings::Settings};

/// The most candidates of a front that are evaluated again after a noisy search.
const CONFIRMED_FRONT_MAX: u64 = 1000;

/// What a replica needs at most, if its tasks share this many bytes of settings.
pub(super) fn demand(settings: &Settings, shared_bytes: u64) -> Demand {
    let given = settings.given();
    let (genome, most) = (&given.genome, settings.algorithm.most(&given));
    let fresh = if settings.is_noisy() { confirmed_most(settings) } else { 0 };
    // Tasks have only the numbers of candidates that workers make from their numbers, and they share the mean.
    let (candidate, shared_mean) = match settings.algorithm.made {
        Some(_) => (if fresh > 0 { genome.bytes_max() } else { 0 }, 64 + 8 * genome.genes() as u64),
        None => (genome.bytes_max(), 0),
    };
    let candidates = most.candidates.max(fresh);
    let slice = (settings.task_candidates() as u64).min(candidates);
    let evaluation = settings.evaluation_bytes();
    // The best candidates of a noisy search, and later the finalists with their evaluations.
    let individuals = if fresh > 0 { settings.finalists as u64 + fresh / settings.confirmations as u64 } else { 0 };
    let kept = (1 + individuals) * (genome.bytes_max() + evaluation + 64) + fresh * evaluation;
    // The evaluations of a batch that is cut off at the end.
    let cut = if settings.window > 0 { 0 } else { most.candidates * (evaluation + 16) };
    // The program of an own algorithm gets the last batch and returns the next one, both with its state.
    let asked = match settings.algorithm.asks {
        true => 256 + STATE_BYTES_MAX as u64 + most.candidates * (genome.bytes_max() + evaluation + 64),
        false => 0,
    };
    let asks_program = settings.program().is_some() || settings.algorithm.asks;
    Demand {
        tasks: candidates.div_ceil(slice),
        task_bytes: 64 + slice * (candidate + 128),
        shared_bytes: shared_bytes + shared_mean,
        output_bytes: 16 + slice * evaluation,
        only_bytes: asked,
        state_bytes: 128 + most.state_bytes + kept + cut,
        rows: rows::most(settings.evaluations),
        // The time limit of a program covers all candidates of a task together.
        task_ms: if asks_program { settings.timeout.saturating_mul(1000 * slice) } else { 0 },
    }
}

/// The most rounds of a replica: its batches, and the two stages after a noisy search. With a window each candidate is a
/// round.
pub(super) fn rounds_most(settings: &Settings) -> u64 {
    let stages = match (settings.is_noisy(), settings.window) {
        (false, _) => 0,
        (true, 0) => 2,
        // With several objectives, all finalists may be chosen.
        (true, _) => 2 * confirmed_most(settings),
    };
    stages + settings.algorithm.most(&settings.given()).batches
}

/// The most evaluations in one stage after a noisy search.
fn confirmed_most(settings: &Settings) -> u64 {
    let finalists = match settings.objectives().len() {
        0 | 1 => 2 * settings.finalists as u64 + 1,
        _ => confirmed_front(settings),
    };
    finalists * settings.confirmations as u64
}

/// The most candidates of the front that are evaluated again after a search with these settings.
pub(super) fn confirmed_front(settings: &Settings) -> u64 {
    settings.algorithm.most(&settings.given()).kept.min(CONFIRMED_FRONT_MAX)
}
