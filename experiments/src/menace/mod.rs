//! Experiment `menace`: matchboxes with beads that learn 3x3 tic-tac-toe.
//!
//! Sources: D. Michie, *Trial and error*, Science Survey part 2, Penguin 1961, pages 129 to 145, and *Experiments on the
//! mechanization of game-learning*, The Computer Journal 6 (1963), pages 232 to 236. A machine has a matchbox for each board
//! on which it can choose, up to symmetry, and in it beads for the moves. It draws one. After the game each move that it made
//! gets beads if the game was won or drawn, and loses one if it was lost. What the sources at hand leave open are settings.

pub mod boxes;
mod card;
mod headline;
pub mod learn;
pub mod machine;
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod messages;
pub mod odds;
pub mod reference;
mod report;
pub mod settings;
mod speed;
#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::Bytes;
use evoxo_common::{
    card::Card,
    experiment::{Column, Demand, Experiment, Identity, Kind},
    rng::Stream,
    task::{Task, checked},
};
use evoxo_games::board;
use prost::Message as _;

use boxes::{Boxes, CELLS};
use learn::{LEARN, Learn, NAME, players, total};
use machine::Machine;
use messages::{LearnTask, Row, State};
use settings::{Opponent, Settings};

/// The kind.
pub const KIND: Kind = Kind {
    name: NAME,
    schema: &settings::SCHEMA,
    columns: COLUMNS,
    primary_metric: column::PERFECT_DRAW,
    tail: |_| 1,
    is_solution: None,
    ranking: None,
    rounds: |settings| {
        let settings = Settings::of(settings);
        settings.games.div_ceil(settings.slice()).into()
    },
    demand: |settings| demand(&Settings::of(settings)),
    start: |identity| Box::new(Menace::start(identity)),
    restore: |identity, state| Ok(Box::new(Menace::restore(identity, state)?)),
    tasks: &[&LEARN],
    asks: None,
    reads: None,
    complete: None,
    cards: &[card::CARD],
    plays: &[],
    report: report::report,
    report_of_result: report::of_result,
    headline: headline::headline,
    kernels: speed::KERNELS,
};

/// Odds are those of the machine if it draws beads but learns no more; an empty box stands for any empty cell.
const COLUMNS: &[Column] = &[
    Column { name: "games", doc: "games played" },
    Column { name: "won", doc: "share of the games since the last row that it won" },
    Column { name: "drawn", doc: "share of the games since the last row that nobody won" },
    Column { name: "lost", doc: "share of the games since the last row that it lost" },
    Column { name: "resigned", doc: "share of the games since the last row that it gave up" },
    Column { name: "win", doc: "its computed probability to win against a random mover" },
    Column { name: "draw", doc: "its computed probability to draw against a random mover" },
    Column { name: "loss", doc: "its computed probability to lose against a random mover" },
    Column { name: "perfect_draw", doc: "its computed probability to draw against a perfect player" },
];

/// Places of columns.
mod column {
    pub(super) const LOST: usize = 3;
    pub(super) const RESIGNED: usize = 4;
    pub(super) const WIN: usize = 5;
    pub(super) const LOSS: usize = 7;
    pub(super) const PERFECT_DRAW: usize = 8;
}

/// One replica.
struct Menace {
    /// Game n has the stream of this one and n.
    games: Stream,
    settings: Settings,
    side: board::Side,
    state: State,
    /// The rows of the last round.
    rows: Vec<Vec<f64>>,
}

fn demand(settings: &Settings) -> Demand {
    let boxes: usize = board::Side::BOTH.map(|side| Boxes::get().boards(side).len()).into_iter().sum();
    // A number of beads has at most three bytes.
    let state_bytes = 3 * (CELLS * boxes) as u64 + 64;
    let rows = u64::from(settings.slice()) / u64::from(settings.every) + 1;
    Demand {
        tasks: 1,
        task_bytes: state_bytes + 128,
        shared_bytes: 0,
        output_bytes: state_bytes + 96 * rows + 64,
        state_bytes,
        rows: (settings.games / settings.every).into(),
        ..Demand::default()
    }
}

impl Menace {
    /// The replica before its first game.
    fn start(identity: Identity<'_>) -> Self {
        let settings = Settings::of(identity.settings);
        let stream = Stream::root(identity.seed).text(NAME).text(identity.arm).word(u64::from(identity.replica));
        let (side, rules) = (board::Side::from(settings.side), settings.rules());
        let fresh = |side| Machine::fresh(side, &rules).beads;
        let other_beads = if settings.opponent == Opponent::Itself { fresh(side.other()) } else { Vec::new() };
        let state = State { games: 0, beads: fresh(side), other_beads, tally: None };
        Self { games: stream.text("games"), settings, side, state, rows: Vec::new() }
    }

    /// Restores a saved state, or says why these settings cannot lead to it.
    fn restore(identity: Identity<'_>, state: &[u8]) -> Result<Self, String> {
        let state = State::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        let fresh = Self::start(identity);
        let Settings { games, every, opponent, .. } = fresh.settings;
        players(fresh.side, opponent.into(), &state).map_err(|why| format!("the state does not fit: {}", why.0))?;
        match state.games <= games && total(state.tally.unwrap_or_default()) == u64::from(state.games % every) {
            true => Ok(Self { state, ..fresh }),
            false => Err("the state does not fit the settings".into()),
        }
    }

    fn row(&self, games: u32, row: &Row) -> Vec<f64> {
        let tally = row.tally.unwrap_or_default();
        let share = |count: u32| f64::from(count) / f64::from(self.settings.every);
        let counts = [tally.wins, tally.draws, tally.losses, tally.resigned].map(share);
        let mut values = vec![f64::from(games)];
        values.extend(counts);
        values.extend(&row.random);
        values.push(row.perfect[1]);
        values
    }
}

impl Experiment for Menace {
    fn tasks(&self) -> usize {
        usize::from(self.state.games < self.settings.games)
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        let task = |_| {
            LEARN.task::<Learn>(&LearnTask {
                side: messages::Side::from(self.side).into(),
                opponent: messages::Opponent::from(self.settings.opponent).into(),
                rules: Some(self.settings.rules()),
                state: Some(self.state.clone()),
                games: self.settings.slice().min(self.settings.games - self.state.games),
                every: self.settings.every,
                stream_high: self.games.high(),
                stream_low: self.games.low(),
            })
        };
        tasks.map(task).collect()
    }

    fn absorb(&mut self, outputs: &[Bytes]) -> Result<(), String> {
        let output = checked::<Learn>(&outputs[0]);
        let every = self.settings.every;
        let first = self.state.games / every;
        self.rows = (first + 1..).zip(&output.rows).map(|(number, row)| self.row(number * every, row)).collect();
        self.state = output.state.expect("a checked output has a state");
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        self.state.encode_to_vec()
    }

    fn rows(&self) -> Vec<Vec<f64>> {
        self.rows.clone()
    }

    fn champion(&self) -> Option<Card> {
        let machine = Machine::new(self.side, self.state.beads.clone()).ok()?;
        (self.state.games > 0).then(|| Card::new(machine))
    }
}
