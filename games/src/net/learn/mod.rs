//! Learning a value function by playing: Algorithm 1 ("Learn-From-Game") of van de Steeg, Drugan and Wiering, Temporal
//! Difference Learning for the Game Tic-Tac-Toe 3D (2015). Wherever its text can be read in several ways, the reading is a
//! field of [`Learning`].
//!
//! A player values *afterstates*: boards right after its own move, as it sees them itself. On each of its turns it chooses
//! the move with the highest value (or, exploring, any move), and its previous afterstate immediately learns towards the
//! value of the new one. At the end of a game its last afterstates learn the reward: 1 for a win, 0 for a draw, -1 for a
//! loss. One turn has these steps, in this order:
//!
//! 1. compute the values of all legal moves with the current weights;
//! 2. choose a move (of equal values the lowest cell) and play it;
//! 3. update the mover's previous afterstate: towards gamma times the value chosen in step 2, or towards the reward (with
//!    [`Learning::each_ply`], the opponent's previous afterstate, towards the negative of that);
//! 4. after the last move, with [`Learning::bootstrapped_end`], update the final afterstate towards the reward;
//! 5. after the last move, with [`Learning::learns_opponents_end`], update the opponent's last afterstate towards its reward;
//! 6. after the last move, with [`Learning::finished_board`], update the finished board, as that opponent sees it, towards
//!    the same reward (before or after step 5).
//!
//! The states of section III are boards with the learner to move, and "if s_t is a terminal state the target output is the
//! final reward". A terminal state is a board with a complete line or without an empty cell. The side that made the last move
//! sees it as its final afterstate (step 4). The other side sees the same board on a turn that it no longer has (step 6).
//!
//! Games do not allocate.

use std::ops::Range;

use rand_core::Rng as _;

use super::{Activation, Engine};
use crate::{
    board::{Board, Geometry, Position, Side},
    player::{benchmark::benchmark, random::any_of},
};
use evoxo_common::{
    math,
    rng::{Generator, Stream},
};

/// The opponent of a learner in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opponent {
    /// Itself: both sides learn, with the same weights.
    Itself,
    /// The benchmark player. Only the learner's own afterstates learn, unless [`Learning::learns_opponents_moves`].
    Benchmark,
}

/// The settings of learning. Each field affects exactly one step of the loop, so readings can be compared one by one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learning {
    /// The opponent in training.
    pub opponent: Opponent,
    /// The learning rate.
    pub rate: Rate,
    /// The share of moves that explore, 0 to 1. An exploring move is any legal move with equal probability. It counts as
    /// exploring even if it is the best move.
    pub epsilon: f64,
    /// Whether an exploring move is any legal move except the best one, if there is another.
    pub explores_others: bool,
    /// The share of the learner's moves in tests that are random legal moves instead of the best one, 0 to 1.
    pub test_epsilon: f64,
    /// The discount factor, 0 to 1: the factor of the next afterstate's value.
    pub gamma: f32,
    /// Whether the learner always moves first in training against another player. Otherwise it moves first in games with an
    /// even number.
    pub learner_first: bool,
    /// The same in tests.
    pub learner_first_in_tests: bool,
    /// Whether the derivative of the output unit's activation is a factor of the error that is propagated back.
    pub output_derivative: bool,
    /// Whether the previous afterstate also learns if the move after it explored.
    pub learns_explorations: bool,
    /// With [`Learning::learns_explorations`]: whether it then learns the value of the best move instead of the value of the
    /// move that was made.
    pub learns_best: bool,
    /// Whether an afterstate learns from the afterstate after the opponent's next move (as the opponent sees it, so its value
    /// is negated), instead of from the one after the same side's next move. The opponent's last afterstate then learns from
    /// the last move like all others, and [`Learning::learns_opponents_end`] changes nothing.
    pub each_ply: bool,
    /// Whether the benchmark player's afterstates learn as well when it is the opponent.
    pub learns_opponents_moves: bool,
    /// How the side that makes the last move learns. If true, its previous afterstate learns the value of the final one, and
    /// the final one learns the reward. Otherwise the previous one learns the reward, and the final one does not learn.
    pub bootstrapped_end: bool,
    /// With [`Learning::bootstrapped_end`]: whether the previous afterstate learns the reward nevertheless, like the final
    /// one.
    pub rewards_both: bool,
    /// Whether the last afterstate of the side that did *not* make the last move learns its reward: -1, or 0 for a draw.
    pub learns_opponents_end: bool,
    /// With [`Learning::learns_opponents_end`]: whether it instead learns gamma times the value of the finished board, as its
    /// side sees it.
    pub bootstraps_opponents_end: bool,
    /// Whether the finished board, as seen by the side that did *not* make the last move, learns that side's reward.
    pub finished_board: FinishedBoard,
    /// Whether a winning move is always chosen if there is one (the lowest cell of several). Such a move never counts as
    /// exploring, and its value is the reward, 1.
    pub exact_wins: bool,
    /// The time constant, in games, of the averaged weights that are tested (see [`Average`]). With 0, the weights themselves
    /// are tested.
    pub averaging_games: u64,
}

impl Learning {
    /// The settings that add nothing to Algorithm 1: self-play with the paper's epsilon, gamma and (for a million games)
    /// learning rate.
    pub const PLAIN: Self = Self {
        opponent: Opponent::Itself,
        rate: Rate { start: 0.005, end: 0.005, games: 1_000_000 },
        epsilon: 0.1,
        explores_others: false,
        test_epsilon: 0.0,
        gamma: 1.0,
        learner_first: false,
        learner_first_in_tests: false,
        output_derivative: false,
        learns_explorations: false,
        learns_best: false,
        each_ply: false,
        learns_opponents_moves: false,
        bootstrapped_end: false,
        rewards_both: false,
        learns_opponents_end: false,
        bootstraps_opponents_end: false,
        finished_board: FinishedBoard::Skip,
        exact_wins: false,
        averaging_games: 0,
    };
}

/// When the finished board learns, as seen by the side that did not make the last move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FinishedBoard {
    /// Never.
    #[default]
    Skip,
    /// After that side's last afterstate.
    After,
    /// Before that side's last afterstate.
    Before,
}

/// A learning rate that changes linearly over a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// The rate in the first game.
    pub start: f32,
    /// The rate after the last game.
    pub end: f32,
    /// The number of games from the start to the end.
    pub games: u64,
}

impl Rate {
    /// The rate in a game, counted from 0 over the whole trial.
    #[must_use]
    pub fn at(self, game: u64) -> f32 {
        let part = (game as f64 / self.games.max(1) as f64).min(1.0);
        (f64::from(self.start) + (f64::from(self.end) - f64::from(self.start)) * part) as f32
    }
}

/// Games between two updates of an [`Average`]. Updates are at multiples of it, counted over the whole trial, so they do not
/// depend on how the trial is divided into tasks.
pub const AVERAGING_STEP_GAMES: u64 = 100;

/// An exponential moving average of the weights over a trial. Every hundred games (with several learners: whenever these are
/// joined), it moves towards the current weights by a share of the distance. After n more games of g in total, the share is 1
/// - exp(-n / averaging_games), but at least n / g, so the average is a plain mean at first.
#[derive(Debug)]
pub struct Average<'a> {
    /// See [`Learning::averaging_games`]. It must not be 0.
    pub games: u64,
    /// The averages, one per weight.
    pub weights: &'a mut [f32],
}

impl Average<'_> {
    /// Adds the weights after `games` games of the trial, `since` games after the last update.
    pub fn update(&mut self, weights: &[f32], games: u64, since: u64) {
        let share = 1.0 - math::exp(-(since as f64) / self.games as f64);
        let share = share.max(since as f64 / games as f64) as f32;
        for (average, weight) in self.weights.iter_mut().zip(weights) {
            *average += (weight - *average) * share;
        }
    }
}

/// Results of the learner's games.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Games that the learner won.
    pub wins: u32,
    /// Games that ended in a draw.
    pub draws: u32,
    /// Games that the learner lost.
    pub losses: u32,
}

/// A network that plays and learns.
pub struct Learner<'a> {
    engine: &'a mut dyn Engine,
    geometry: &'a Geometry,
    activation: Activation,
    learning: Learning,
    /// [`Learning::epsilon`] times 2^63.
    exploring_below: u64,
    /// [`Learning::test_epsilon`] times 2^63.
    test_exploring_below: u64,
    values: [f32; 64],
}

/// A chosen move.
#[derive(Clone, Copy)]
struct Choice {
    cell: u8,
    /// The value of the move's afterstate; 0 if nothing learns towards it.
    value: f32,
    explored: bool,
}

impl<'a> Learner<'a> {
    /// A learner with this engine, which holds the initial weights; `activation` is that of the output unit.
    #[must_use]
    pub fn new(engine: &'a mut dyn Engine, geometry: &'a Geometry, activation: Activation, learning: Learning) -> Self {
        let [exploring_below, test_exploring_below] =
            [learning.epsilon, learning.test_epsilon].map(|share| (share * (1_u64 << 63) as f64) as u64);
        Self { engine, geometry, activation, learning, exploring_below, test_exploring_below, values: [0.0; 64] }
    }

    /// Plays these games, counted over the whole trial, and learns from them. Game g draws from `stream`, "game", g.
    pub fn train(&mut self, stream: Stream, games: Range<u64>, mut average: Option<Average<'_>>) {
        let stream = stream.text("game");
        for game in games {
            let mut rng = stream.word(game).rng();
            let players = match self.learning.opponent {
                Opponent::Itself => [true, true],
                Opponent::Benchmark => Side::BOTH.map(|side| side == side_in(game, self.learning.learner_first)),
            };
            self.game(players, self.learning.rate.at(game), &mut rng);
            let played = game + 1;
            if let Some(average) = &mut average
                && played.is_multiple_of(AVERAGING_STEP_GAMES)
            {
                average.update(&self.engine.weights(), played, AVERAGING_STEP_GAMES);
            }
        }
    }

    /// Plays these games of a test against the benchmark player, without exploring or learning. Game i draws from `stream`, i.
    pub fn test(&mut self, stream: Stream, games: Range<u32>) -> Tally {
        let mut tally = Tally::default();
        for game in games.map(u64::from) {
            let mut rng = stream.word(game).rng();
            let side = side_in(game, self.learning.learner_first_in_tests);
            match self.match_game(side, &mut rng) {
                None => tally.draws += 1,
                Some(winner) if winner == side => tally.wins += 1,
                Some(_) => tally.losses += 1,
            }
        }
        tally
    }

    /// Plays one game and learns from it; `players` says which sides the network plays.
    fn game(&mut self, players: [bool; 2], rate: f32, rng: &mut Generator) {
        let learners = players.map(|plays| plays || self.learning.learns_opponents_moves);
        let mut position = Position::START;
        let mut previous: [Option<Board>; 2] = [None; 2];
        self.engine.reset();
        loop {
            let side = position.to_move();
            // The side whose previous afterstate learns from this move, and this move's result as that side sees it.
            let (from, sign) = if self.learning.each_ply { (side.other(), -1.0) } else { (side, 1.0) };
            let before = previous[from as usize];
            let choice = self.choose(position, players[side as usize], before.is_some(), rng);
            let won = position.wins(self.geometry, side) >> choice.cell & 1 != 0;
            self.engine.play(choice.cell);
            position = position.play(self.geometry, choice.cell);
            let board = position.board();
            let over = won || board.occupied() == self.geometry.cells();
            let reward = if won { 1.0 } else { 0.0 };
            let mut learn = |board, side, target| {
                self.engine.learn(board, side, target, rate, self.learning.output_derivative);
            };
            let final_learns = over && self.learning.bootstrapped_end;
            let bootstraps = !over || (final_learns && !self.learning.rewards_both);
            if let Some(before) = before
                && (self.learning.learns_explorations || !choice.explored)
            {
                let target = if bootstraps { self.learning.gamma * choice.value } else { reward };
                learn(before, from, sign * target);
            }
            if learners[side as usize] {
                if final_learns {
                    learn(board, side, reward);
                }
                previous[side as usize] = Some(board);
            }
            if over {
                if let Some(last) = previous[side.other() as usize] {
                    self.opponents_end(last, board, side.other(), -reward, rate);
                }
                return;
            }
        }
    }

    /// The end of a game for a learning side that did not make the last move: updates its last afterstate and the finished
    /// board towards its reward.
    fn opponents_end(&mut self, last: Board, finished: Board, side: Side, reward: f32, rate: f32) {
        let Learning { finished_board, output_derivative, gamma, .. } = self.learning;
        if finished_board == FinishedBoard::Before {
            self.engine.learn(finished, side, reward, rate, output_derivative);
        }
        if self.learning.learns_opponents_end && !self.learning.each_ply {
            let target = match self.learning.bootstraps_opponents_end {
                true => gamma * self.activation.apply(self.engine.value(side)),
                false => reward,
            };
            self.engine.learn(last, side, target, rate, output_derivative);
        }
        if finished_board == FinishedBoard::After {
            self.engine.learn(finished, side, reward, rate, output_derivative);
        }
    }

    /// Plays one game without learning. Returns the winner, or `None` for a draw.
    fn match_game(&mut self, learner: Side, rng: &mut Generator) -> Option<Side> {
        let mut position = Position::START;
        self.engine.reset();
        loop {
            let side = position.to_move();
            let cell = if side == learner {
                let legal = position.legal(self.geometry);
                match self.exact_win(position) {
                    Some(cell) => cell,
                    None if self.explores_in_test(rng) => any_of(legal, rng),
                    None => self.best(legal).cell,
                }
            } else {
                benchmark(position, self.geometry, rng)
            };
            if position.wins(self.geometry, side) >> cell & 1 != 0 {
                return Some(side);
            }
            self.engine.play(cell);
            position = position.play(self.geometry, cell);
            if position.board().occupied() == self.geometry.cells() {
                return None;
            }
        }
    }

    /// A move: epsilon-greedy if the network `plays`, otherwise the benchmark player's. If the move was not chosen by its
    /// value, the value is computed only if something learns from it, as `valued` says.
    fn choose(&mut self, position: Position, plays: bool, valued: bool, rng: &mut Generator) -> Choice {
        let win = self.exact_win(position);
        if let (true, Some(cell)) = (plays, win) {
            return Choice { cell, value: 1.0, explored: false };
        }
        let mut legal = position.legal(self.geometry);
        let explored = plays && rng.next_u64() >> 1 < self.exploring_below;
        let chosen = !plays || (explored && !self.learning.explores_others);
        if chosen {
            let cell = if plays { any_of(legal, rng) } else { benchmark(position, self.geometry, rng) };
            // The benchmark player wins wherever it can.
            if !plays && win.is_some() {
                return Choice { cell, value: 1.0, explored };
            }
            if !valued || (explored && !self.learning.learns_explorations) {
                return Choice { cell, value: 0.0, explored };
            }
            if explored && self.learning.learns_best {
                return Choice { cell, explored, ..self.best(legal) };
            }
            legal = 1 << cell;
        }
        let best = self.best(legal);
        let others = legal & !(1 << best.cell);
        if explored && !chosen && others != 0 {
            let cell = any_of(others, rng);
            let value = match self.learning.learns_best {
                true => best.value,
                false => self.activation.apply(self.values[usize::from(cell) % 64]),
            };
            return Choice { cell, value, explored };
        }
        Choice { explored, ..best }
    }

    /// If tests do not explore, no random number is drawn.
    fn explores_in_test(&self, rng: &mut Generator) -> bool {
        self.test_exploring_below > 0 && rng.next_u64() >> 1 < self.test_exploring_below
    }

    fn exact_win(&self, position: Position) -> Option<u8> {
        if !self.learning.exact_wins {
            return None;
        }
        let wins = position.wins(self.geometry, position.to_move());
        (wins != 0).then(|| wins.trailing_zeros() as u8)
    }

    /// The legal move with the highest value. The activation is monotonic, so comparing weighted sums is enough.
    fn best(&mut self, mut legal: u64) -> Choice {
        self.engine.values(legal, &mut self.values);
        let mut cell = legal.trailing_zeros();
        let mut best = self.values[cell as usize % 64];
        legal &= legal.wrapping_sub(1);
        while legal != 0 {
            let other = legal.trailing_zeros();
            let sum = self.values[other as usize % 64];
            if sum > best {
                (cell, best) = (other, sum);
            }
            legal &= legal - 1;
        }
        Choice { cell: cell as u8, value: self.activation.apply(best), explored: false }
    }
}

/// The learner's side in a game against the benchmark player.
fn side_in(game: u64, learner_first: bool) -> Side {
    if learner_first || game.is_multiple_of(2) { Side::X } else { Side::O }
}

#[cfg(test)]
mod tests;
