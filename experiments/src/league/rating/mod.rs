//! Ratings of players from games: the model of Bradley and Terry (1952) with Davidson's draws (1970) and a term for the first
//! move (Davidson and Beaver 1977), by maximum likelihood.
//!
//! Let s = strength of the first player - strength of the second + first-move term, and let d be the draw term. Then a win of
//! the first player, a draw, and a win of the second are in the proportions e^(s/2) : e^d : e^(-s/2). The logarithm of the
//! likelihood is concave, so Newton's method with halved steps finds its only maximum. All sums are taken in the order of the
//! meetings, so the same meetings give the same bits everywhere.
//!
//! Only differences of strengths matter, and a player that won or lost everything would be infinitely far from the others. So
//! each player also has one weak virtual game: [`VIRTUAL_GAMES`] against a virtual player of strength 0, of which a third
//! each is won, drawn and lost, half with each side. This keeps every term finite and is all that fixes the origin.

use evoxo_common::{
    math::{exp, ln},
    rng::{Stream, below},
};

/// The weight of each player's virtual game; a game that was played has weight 1.
pub const VIRTUAL_GAMES: f64 = 0.1;

/// Points on the usual scale for one unit of strength: 400 points are odds of 10 to 1 between a win and a loss.
pub const ELO: f64 = 400.0 / std::f64::consts::LN_10;

/// Results of games between two players, in all of which the same player moves first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Meeting {
    /// The player that moves first, from 0.
    pub first: usize,
    /// The player that moves second.
    pub second: usize,
    /// How often the first player won, the game was drawn, and the second player won. The numbers need not be whole: a game
    /// whose odds are known counts with its odds.
    pub results: [f64; 3],
}

impl Meeting {
    /// The number of games.
    #[must_use]
    pub fn games(&self) -> f64 {
        self.results.iter().sum()
    }

    /// The points of the first player: 1 for a win, 1/2 for a draw.
    #[must_use]
    pub fn points(&self) -> f64 {
        self.results[0] + 0.5 * self.results[1]
    }
}

/// Strengths of players, and the terms that all games share, as natural logarithms of odds.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratings {
    /// The strength of each player; the virtual player has strength 0.
    pub strengths: Vec<f64>,
    /// The value of the first move.
    pub first_move: f64,
    /// The draw term; see [`Ratings::draws_of_equals`].
    pub draw: f64,
}

impl Ratings {
    /// The probabilities that the first player wins, that the game is drawn, and that the second player wins.
    #[must_use]
    pub fn odds(&self, first: usize, second: usize) -> [f64; 3] {
        odds(self.strengths[first] - self.strengths[second] + self.first_move, self.draw)
    }

    /// The share of drawn games between two equally strong players, if the first move had no value.
    #[must_use]
    pub fn draws_of_equals(&self) -> f64 {
        odds(0.0, self.draw)[1]
    }

    /// How much stronger one player is than another, in points on the usual scale; see [`ELO`].
    #[must_use]
    pub fn points_above(&self, player: usize, other: usize) -> f64 {
        ELO * (self.strengths[player] - self.strengths[other])
    }
}

/// The shares of e^(s/2), e^d and e^(-s/2) in their sum.
fn odds(s: f64, d: f64) -> [f64; 3] {
    let most = (s.abs() / 2.0).max(d);
    let parts = [exp(s / 2.0 - most), exp(d - most), exp(-s / 2.0 - most)];
    let sum: f64 = parts.iter().sum();
    parts.map(|part| part / sum)
}

/// The most likely ratings of `players` players, given these meetings and the virtual games.
///
/// # Panics
/// If a meeting names a player that does not exist, or the same player twice, or has a result that is negative or not finite.
#[must_use]
pub fn rate(players: usize, meetings: &[Meeting]) -> Ratings {
    for meeting in meetings {
        let Meeting { first, second, results } = meeting;
        let known = first.max(second) < &players && first != second;
        let good = results.iter().all(|result| (0.0..f64::INFINITY).contains(result));
        assert!(known && good, "{meeting:?} of {players} players");
    }
    Fit { players, meetings }.maximum(vec![0.0; players + 2])
}

/// Newton's method on meetings. The terms are the strengths, the first move and the draw, in this order.
struct Fit<'a> {
    players: usize,
    meetings: &'a [Meeting],
}

/// A game in terms of [`Fit`]: the positions of its strengths; the virtual player has none.
struct Game {
    first: Option<usize>,
    second: Option<usize>,
    results: [f64; 3],
}

/// The most steps; 6 to 15 are usual.
const STEPS_MAX: usize = 200;

impl Fit<'_> {
    /// All games; the virtual ones come last.
    fn games(&self) -> impl Iterator<Item = Game> + '_ {
        let played = self.meetings.iter().map(|meeting| Game {
            first: Some(meeting.first),
            second: Some(meeting.second),
            results: meeting.results,
        });
        let results = [VIRTUAL_GAMES / 6.0; 3];
        let virtual_ones = (0..self.players).flat_map(move |player| {
            let player = Some(player);
            [Game { first: player, second: None, results }, Game { first: None, second: player, results }]
        });
        played.chain(virtual_ones)
    }

    fn s(&self, terms: &[f64], game: &Game) -> f64 {
        let strength = |player: Option<usize>| player.map_or(0.0, |player| terms[player]);
        strength(game.first) - strength(game.second) + terms[self.players]
    }

    /// The logarithm of the likelihood.
    fn likelihood(&self, terms: &[f64]) -> f64 {
        let of_game = |game: Game| -> f64 {
            let odds = odds(self.s(terms, &game), terms[self.players + 1]);
            let part = |(result, odds): (&f64, f64)| if *result > 0.0 { result * ln(odds.max(1e-300)) } else { 0.0 };
            game.results.iter().zip(odds).map(part).sum()
        };
        self.games().map(of_game).sum()
    }

    /// The gradient of the log-likelihood, and its negated matrix of second derivatives, row by row.
    fn slopes(&self, terms: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (size, draw) = (self.players + 2, self.players + 1);
        let (mut gradient, mut curvature) = (vec![0.0; size], vec![0.0; size * size]);
        for game in self.games() {
            let number: f64 = game.results.iter().sum();
            let [win, drawn, loss] = odds(self.s(terms, &game), terms[draw]);
            let by_s = 0.5 * (game.results[0] - game.results[2]) - 0.5 * number * (win - loss);
            let by_draw = game.results[1] - number * drawn;
            let s_s = 0.25 * number * (win + loss - (win - loss) * (win - loss));
            let s_draw = -0.5 * number * drawn * (win - loss);
            let signs = [(game.first, 1.0), (game.second, -1.0), (Some(self.players), 1.0)];
            let places = signs.into_iter().filter_map(|(place, sign)| Some((place?, sign)));
            for (row, sign) in places.clone() {
                gradient[row] += sign * by_s;
                for (column, other) in places.clone() {
                    curvature[row * size + column] += sign * other * s_s;
                }
                curvature[row * size + draw] += sign * s_draw;
                curvature[draw * size + row] += sign * s_draw;
            }
            gradient[draw] += by_draw;
            curvature[draw * size + draw] += number * drawn * (1.0 - drawn);
        }
        (gradient, curvature)
    }

    /// Climbs from these terms to the maximum.
    fn maximum(&self, mut terms: Vec<f64>) -> Ratings {
        let mut height = self.likelihood(&terms);
        for _ in 0..STEPS_MAX {
            let (gradient, curvature) = self.slopes(&terms);
            let step = solve(curvature, gradient.clone());
            // Twice the gain that the step promises.
            let promise: f64 = step.iter().zip(&gradient).map(|(step, slope)| step * slope).sum();
            let moved =
                |share: f64| terms.iter().zip(&step).map(|(term, step)| term + share * step).collect::<Vec<_>>();
            // This close to the maximum, rounding hides the gain, and a full step squares the distance.
            if promise < 1e-9 {
                terms = moved(1.0);
                break;
            }
            let mut share = 1.0;
            let mut next = moved(share);
            let mut found = self.likelihood(&next);
            while found < height + 1e-4 * share * promise && share > 1e-6 {
                share /= 2.0;
                next = moved(share);
                found = self.likelihood(&next);
            }
            (terms, height) = (next, found);
        }
        let (first_move, draw) = (terms[self.players], terms[self.players + 1]);
        terms.truncate(self.players);
        Ratings { strengths: terms, first_move, draw }
    }
}

/// Solves a x = b for a symmetric positive definite matrix a, given row by row (Cholesky).
pub(super) fn solve(mut a: Vec<f64>, mut b: Vec<f64>) -> Vec<f64> {
    let size = b.len();
    for column in 0..size {
        for row in column..size {
            let dot: f64 = (0..column).map(|k| a[row * size + k] * a[column * size + k]).sum();
            let rest = a[row * size + column] - dot;
            // Rounding may leave nothing for a term that hardly matters; such a term then hardly moves.
            a[row * size + column] =
                if row == column { rest.max(1e-12).sqrt() } else { rest / a[column * size + column] };
        }
    }
    for row in 0..size {
        let dot: f64 = (0..row).map(|k| a[row * size + k] * b[k]).sum();
        b[row] = (b[row] - dot) / a[row * size + row];
    }
    for row in (0..size).rev() {
        let dot: f64 = (row + 1..size).map(|k| a[k * size + row] * b[k]).sum();
        b[row] = (b[row] - dot) / a[row * size + row];
    }
    b
}

/// The result of one game, as a byte of [`Blocks`].
pub mod outcome {
    /// The game was not played.
    pub const NONE: u8 = 0;
    /// The player that moved first won.
    pub const FIRST: u8 = 1;
    /// Nobody won.
    pub const DRAW: u8 = 2;
    /// The player that moved second won.
    pub const SECOND: u8 = 3;
}

/// Games in blocks that were drawn independently, for example all games from one opening.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    /// The number of players.
    pub players: usize,
    /// The players that move first and second in each game of a block; they are the same in all blocks.
    pub pairs: &'a [(usize, usize)],
    /// The [`outcome`] of each game, block after block.
    pub games: &'a [u8],
}

impl Blocks<'_> {
    /// The number of blocks.
    #[must_use]
    pub fn count(&self) -> usize {
        self.games.len() / self.pairs.len().max(1)
    }

    /// All games, with one meeting for each pair.
    #[must_use]
    pub fn meetings(&self) -> Vec<Meeting> {
        self.weighted(&vec![1; self.count()])
    }

    /// The same, with each block repeated as often as its weight says.
    fn weighted(&self, weights: &[u32]) -> Vec<Meeting> {
        let mut counts = vec![[0_u32; 4]; self.pairs.len()];
        for (block, weight) in self.games.chunks_exact(self.pairs.len().max(1)).zip(weights) {
            if *weight > 0 {
                block.iter().zip(&mut counts).for_each(|(outcome, count)| count[usize::from(*outcome & 3)] += weight);
            }
        }
        let meeting = |(pair, [_, results @ ..]): (&(usize, usize), &[u32; 4])| Meeting {
            first: pair.0,
            second: pair.1,
            results: results.map(f64::from),
        };
        self.pairs.iter().zip(&counts).map(meeting).collect()
    }

    /// Ratings of `resamples` resamples of the blocks, with replacement (Efron 1979). Resample i is drawn from child i of
    /// `stream`.
    ///
    /// # Panics
    /// The same as [`rate`].
    #[must_use]
    pub fn resampled(&self, resamples: usize, stream: Stream) -> Vec<Ratings> {
        let whole = rate(self.players, &self.meetings());
        let start: Vec<f64> = whole.strengths.into_iter().chain([whole.first_move, whole.draw]).collect();
        let count = self.count();
        let resample = |index: usize| {
            let mut rng = stream.word(index as u64).rng();
            let mut weights = vec![0; count];
            (0..count).for_each(|_| weights[below(&mut rng, count as u64) as usize] += 1);
            Fit { players: self.players, meetings: &self.weighted(&weights) }.maximum(start.clone())
        };
        (0..resamples).map(resample).collect()
    }
}

#[cfg(test)]
mod tests;
