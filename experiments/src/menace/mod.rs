//! Experiment `menace`: matchboxes with beads learn 3x3 tic-tac-toe.
//!
//! Sources: D. Michie, *Trial and error*, Science Survey part 2, Penguin 1961, pages 129 to 145, and *Experiments on the
//! mechanization of game-learning*, The Computer Journal 6 (1963), pages 232 to 236. A machine has a matchbox for each board
//! on which it has a choice, up to symmetry. The box has beads for the moves, and the machine draws one. After the game, each
//! move that the machine made gets beads if the game was won or drawn, and loses one if it was lost. What the available
//! sources leave open are settings.

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
    card::{Card, CardKind},
    experiment::{Demand, Experiment, Identity, Kernel, Kind, Publication, fits},
    rng::Stream,
    row,
    task::{Task, TaskKind, checked},
};
use evoxo_games::board;

use boxes::{Boxes, CELLS};
use learn::{Learn, NAME, players, total};
use machine::Machine;
use messages::{LearnTask, State};
use settings::{Opponent, Settings};

/// The kind.
pub const KIND: Kind = Kind::of::<Menace>();

row! {
    /// Odds are those of the machine if it draws beads but does not learn. At an empty box it takes any empty cell.
    struct Row, primary perfect_draw {
        /// games played
        games: u32,
        /// share of the games since the last row that the machine won
        won: f64,
        /// share of the games since the last row that were drawn
        drawn: f64,
        /// share of the games since the last row that the machine lost
        lost: f64,
        /// share of the games since the last row in which the machine resigned
        resigned: f64,
        /// the machine's computed probability to win against a random mover
        win: f64,
        /// the machine's computed probability to draw against a random mover
        draw: f64,
        /// the machine's computed probability to lose against a random mover
        loss: f64,
        /// the machine's computed probability to draw against a perfect player
        perfect_draw: f64,
    }
}

/// One replica.
struct Menace {
    /// The stream of the games. Game n uses this stream followed by n.
    games: Stream,
    settings: Settings,
    side: board::Side,
    state: State,
}

impl Menace {
    fn row(&self, games: u32, row: &messages::Row) -> Row {
        let tally = row.tally.unwrap_or_default();
        let share = |count: u32| f64::from(count) / f64::from(self.settings.every);
        let [win, draw, loss] = row.random[..] else { panic!("a row was checked to have three odds") };
        Row {
            games,
            won: share(tally.wins),
            drawn: share(tally.draws),
            lost: share(tally.losses),
            resigned: share(tally.resigned),
            win,
            draw,
            loss,
            perfect_draw: row.perfect[1],
        }
    }
}

impl Experiment for Menace {
    const NAME: &'static str = NAME;
    const TASKS: &'static [TaskKind] = &[TaskKind::of::<Learn>()];
    const SOURCES: &'static [Publication] = &[
        Publication {
            key: "michie1961",
            entry: "incollection",
            fields: &[
                ("author", "Michie, Donald"),
                ("title", "Trial and error"),
                ("booktitle", "Science Survey, part 2"),
                ("publisher", "Penguin"),
                ("pages", "129--145"),
                ("year", "1961"),
            ],
        },
        Publication {
            key: "michie1963",
            entry: "article",
            fields: &[
                ("author", "Michie, Donald"),
                ("title", "Experiments on the mechanization of game-learning"),
                ("journal", "The Computer Journal"),
                ("volume", "6"),
                ("pages", "232--236"),
                ("year", "1963"),
            ],
        },
    ];
    const CARDS: &'static [CardKind] = &[card::CARD];
    const KERNELS: &'static [Kernel] = speed::KERNELS;
    const MAY_CHANGE: &'static [&'static str] = &["win", "draw", "loss", "empty"];
    type Settings = Settings;
    type State = State;
    type Row = Row;
    type Told = report::Arm;

    fn rounds(settings: &Settings) -> u64 {
        settings.games.div_ceil(settings.slice()).into()
    }

    fn demand(settings: &Settings) -> Demand {
        let boxes: usize = board::Side::BOTH.map(|side| Boxes::get().boards(side).len()).into_iter().sum();
        // A number of beads takes at most three bytes.
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

    fn first(Identity { settings, .. }: &Identity<'_, Self>) -> State {
        let (side, rules) = (board::Side::from(settings.side), settings.rules());
        let fresh = |side| Machine::fresh(side, &rules).beads;
        let other_beads = if settings.opponent == Opponent::Itself { fresh(side.other()) } else { Vec::new() };
        State { games: 0, beads: fresh(side), other_beads, tally: None }
    }

    fn restore(Identity { settings, stream, .. }: Identity<'_, Self>, state: State) -> Result<Self, String> {
        let side = board::Side::from(settings.side);
        let Settings { games, every, opponent, .. } = settings;
        players(side, opponent.into(), &state).map_err(|why| format!("the state does not fit: {}", why.0))?;
        fits(state.games <= games && total(state.tally.unwrap_or_default()) == u64::from(state.games % every))?;
        Ok(Self { games: stream.text("games"), settings, side, state })
    }

    fn save(&self) -> State {
        self.state.clone()
    }

    fn tasks(&self) -> usize {
        usize::from(self.state.games < self.settings.games)
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        let task = |_| {
            Task::of::<Learn>(&LearnTask {
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

    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Row>) -> Result<(), String> {
        let output = checked::<Learn>(&outputs[0]);
        let every = self.settings.every;
        let first = self.state.games / every;
        history.extend((first + 1..).zip(&output.rows).map(|(number, row)| self.row(number * every, row)));
        self.state = output.state.expect("a checked output has a state");
        Ok(())
    }

    fn champion(&self) -> Option<Card> {
        let machine = Machine::new(self.side, self.state.beads.clone()).ok()?;
        (self.state.games > 0).then(|| Card::new(machine))
    }
}
