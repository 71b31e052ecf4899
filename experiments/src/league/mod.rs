//! Experiment `league`: all players, built-in ones and champions of other runs, play each other. A table with intervals shows
//! which players are stronger.
//!
//! In tic-tac-toe nothing is sampled: the odds of any two players are computed over all games from all openings. In other
//! games, any two players play from the same random openings, with sides exchanged. The ratings are those of
//! [`rating`].

mod headline;
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod messages;
mod nash;
pub mod play;
pub mod rating;
mod report;
mod roster;
pub mod settings;
mod standing;
#[cfg(test)]
mod tests;
mod told;

use std::ops::Range;

use bytes::Bytes;
use evoxo_common::{
    experiment::{Demand, Experiment, Identity, Kind, Reads, Saved, fits},
    rng::Stream,
    row,
    stats::wilson_points,
    task::{Refusal, Task, TaskKind, checked},
};
use prost::Message as _;

use messages::{GamesTask, OddsTask, State};
use play::{ComputeOdds, GAMES_EACH, Games, ODDS_EACH};
use rating::outcome;
use settings::{FILE_BYTES_MAX, FileSettings, Settings};

/// The kind's name in experiment files.
const NAME: &str = "league";

/// The kind.
pub const KIND: Kind = Kind::of::<League>();

row! {
    /// A row is a round.
    struct Row, primary decided {
        /// openings from which all games were played
        openings: u32,
        /// games played (in tic-tac-toe, computed)
        games: f64,
        /// share of the points won by the players that moved first
        first: f64,
        /// share of drawn games
        draws: f64,
        /// share of pairs of players whose score differs from a half beyond its 95 % interval
        decided: f64,
    }
}

/// The columns that are shares.
const SHARES: [usize; 3] = [Row::first, Row::draws, Row::decided];

/// One replica.
struct League {
    stream: Stream,
    settings: Settings,
    pairings: Vec<(usize, usize)>,
    roster: Bytes,
    state: State,
}

impl League {
    /// The number of openings in the next round: either the rest of a round in which a shorter run ended, or a whole round.
    fn openings(&self) -> u32 {
        let each = self.settings.pairs_a_round;
        let whole = if self.settings.is_exact() { 1 } else { self.settings.pairs };
        (whole - self.state.openings).min(each - self.state.openings % each)
    }

    fn row(&self) -> Row {
        let mut totals = [0.0; 3];
        let mut decided = 0;
        for place in 0..self.pairings.len() {
            let [one, two] = results(&self.settings, &self.state, place);
            totals.iter_mut().zip(one).zip(two).for_each(|((total, one), two)| *total += one + two);
            let games: f64 = one.iter().chain(&two).sum();
            let points = one[0] + two[2] + 0.5 * (one[1] + two[1]);
            let (low, high) = match self.settings.is_exact() {
                // Nothing was sampled, so only rounding is allowed for.
                true => (points / games - 1e-9, points / games + 1e-9),
                false => wilson_points(points, games as usize),
            };
            decided += usize::from(games > 0.0 && (low > 0.5 || high < 0.5));
        }
        let games: f64 = totals.iter().sum();
        let share = |part: f64| if games > 0.0 { part / games } else { 0.0 };
        Row {
            openings: self.state.openings,
            games: games.round(),
            first: share(totals[0] + 0.5 * totals[1]),
            draws: share(totals[1]),
            decided: decided as f64 / self.pairings.len() as f64,
        }
    }
}

/// Whether these settings can lead to this state.
fn leads_to(settings: &Settings, state: &State) -> bool {
    let (pairings, openings) = (settings.pairings().len(), state.openings as usize);
    match settings.is_exact() {
        true => {
            let good = state.odds.iter().all(|sum| sum.is_finite() && *sum >= 0.0);
            openings <= 1 && state.games.is_empty() && state.odds.len() == openings * pairings * ODDS_EACH && good
        }
        false => {
            let good = state.games.iter().all(|game| *game <= outcome::SECOND);
            let length = state.games.len() == openings * pairings * GAMES_EACH;
            state.openings <= settings.pairs && length && state.odds.is_empty() && good
        }
    }
}

/// How often X won, the game was drawn and O won between the two players of a pairing: first with the lower number as X, then
/// with the other.
fn results(settings: &Settings, state: &State, place: usize) -> [[f64; 3]; 2] {
    let mut found = [[0.0; 3]; 2];
    if settings.is_exact() {
        let odds = state.odds.get(place * ODDS_EACH..(place + 1) * ODDS_EACH).unwrap_or(&[0.0; ODDS_EACH]);
        found.as_flattened_mut().copy_from_slice(odds);
        return found;
    }
    let block = settings.pairings().len() * GAMES_EACH;
    for games in state.games.chunks_exact(block) {
        for (side, result) in found.iter_mut().enumerate() {
            match games[place * GAMES_EACH + side] {
                outcome::FIRST => result[0] += 1.0,
                outcome::DRAW => result[1] += 1.0,
                outcome::SECOND => result[2] += 1.0,
                _ => {}
            }
        }
    }
    found
}

impl Experiment for League {
    const NAME: &'static str = NAME;
    const TASKS: &'static [TaskKind] = &[TaskKind::of::<Games>(), TaskKind::of::<ComputeOdds>()];
    const PLAYS: &'static [&'static Kind] = &roster::KINDS;
    const READS: Option<Reads> = Some(Reads {
        file: |settings| Settings::of(settings).missing_file(),
        bytes_max: FILE_BYTES_MAX,
        runs: |_| false,
        settings: |settings, bytes| {
            let mut settings = Settings::of(settings);
            let path = settings.missing_file().ok_or_else(|| Refusal("no file is missing".into()))?;
            settings.files.0.push(FileSettings::new(path, bytes));
            match settings.bad_player() {
                None => Ok(vec![("files", settings.files_text())]),
                Some(why) => Err(Refusal(why)),
            }
        },
    });
    type Settings = Settings;
    type State = State;
    type Row = Row;
    type Told = told::Arm;

    fn demand(settings: &Settings) -> Demand {
        let pairings = settings.pairings().len() as u64;
        let roster = settings.roster().encoded_len() as u64;
        let (output_bytes, state_bytes) = match settings.is_exact() {
            true => (8 * ODDS_EACH as u64 + 16, 8 * ODDS_EACH as u64 * pairings + 32),
            false => {
                let each = GAMES_EACH as u64;
                let openings = settings.pairs.min(settings.pairs_a_round);
                (each * u64::from(openings) + 16, each * u64::from(settings.pairs) * pairings + 32)
            }
        };
        Demand {
            tasks: pairings,
            task_bytes: 80,
            shared_bytes: roster,
            output_bytes,
            state_bytes,
            rows: settings.rounds().into(),
            ..Demand::default()
        }
    }

    fn restore(Identity { settings, stream, .. }: Identity<'_, Self>, state: State) -> Result<Self, String> {
        fits(leads_to(&settings, &state))?;
        let (pairings, roster) = (settings.pairings(), settings.roster().encode_to_vec().into());
        Ok(Self { stream, pairings, roster, settings, state })
    }

    fn save(&self) -> State {
        self.state.clone()
    }

    fn tasks(&self) -> usize {
        if self.openings() == 0 { 0 } else { self.pairings.len() }
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        let plies = self.settings.openings;
        let task = |place: usize| {
            let (one, two) = (self.pairings[place].0 as u32, self.pairings[place].1 as u32);
            let task = match self.settings.is_exact() {
                true => Task::of::<ComputeOdds>(&OddsTask { plies, one, two }),
                false => Task::of::<Games>(&GamesTask {
                    game: messages::Game::from(self.settings.game).into(),
                    plies,
                    one,
                    two,
                    first_opening: self.state.openings,
                    openings: self.openings(),
                    stream_high: self.stream.high(),
                    stream_low: self.stream.low(),
                }),
            };
            task.sharing(self.roster.clone())
        };
        tasks.map(task).collect()
    }

    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Row>) -> Result<(), String> {
        let openings = self.openings();
        if self.settings.is_exact() {
            self.state.odds = outputs.iter().flat_map(|output| checked::<ComputeOdds>(output).odds).collect();
        } else {
            let outputs: Vec<Bytes> = outputs.iter().map(|output| checked::<Games>(output).games).collect();
            let mut games = self.state.games.to_vec();
            for opening in 0..openings as usize {
                let of = |output: &Bytes| output.slice(opening * GAMES_EACH..(opening + 1) * GAMES_EACH);
                outputs.iter().for_each(|output| games.extend(of(output)));
            }
            self.state.games = games.into();
        }
        self.state.openings += openings;
        history.push(self.row());
        Ok(())
    }

    /// A round that the end of a shorter run cut off is completed.
    fn lengthen(identity: Identity<'_, Self>, saved: &mut Saved<State>) -> Result<(), String> {
        let replica = Self::restore(identity, saved.state.clone())?;
        if replica.openings() > 0 && !replica.state.openings.is_multiple_of(replica.settings.pairs_a_round) {
            saved.rounds = saved.rounds.saturating_sub(1);
            saved.history.pop();
            saved.is_amid_round = true;
        }
        Ok(())
    }
}
