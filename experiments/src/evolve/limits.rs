//! Upper bounds of what a search needs: its batches, and the evaluations that confirm the answer of a noisy search.

use super::settings::Settings;

/// The most candidates of a front that are evaluated again after a noisy search.
const CONFIRMED_FRONT_MAX: u64 = 1000;

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
pub(super) fn confirmed_most(settings: &Settings) -> u64 {
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
