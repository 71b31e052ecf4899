//! `evoxo match A B --sprt`: plays pairs of games from openings in random order, until they decide whether A is stronger.

use std::io::Write;

use evoxo_common::{
    rng::{Stream, shuffle},
    stats::sequential::{ERROR, Pentanomial, Sprt, Verdict},
};
use evoxo_games::{
    board::{Outcome, Position, Side},
    player::{
        Player,
        duel::{Duel, game},
    },
};
use serde_json::{Value, json};

/// The result of a sequential match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SprtGames {
    pub(super) test: Sprt,
    /// The pairs of games, counted by the first player's points.
    pub(super) pairs: Pentanomial,
    /// The first player's games as X, and as O.
    pub(super) sides: [Duel; 2],
    /// The highest number of times that any opening was played.
    pub(super) passes: u32,
}

/// Parses "0,40".
pub(super) fn differences(text: &str) -> Result<Sprt, String> {
    let parts: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    match parts.as_deref() {
        Some([elo0, elo1]) => Sprt::new(*elo0, *elo1),
        _ => Err("give two differences in points, for example 0,40".into()),
    }
}

/// Plays until the match is decided, until `games_max` games, or until two players without random choices have played all
/// openings.
pub(super) fn play(
    test: Sprt,
    players: &mut [Player; 2],
    openings: &[Position],
    seed: u64,
    games_max: u64,
) -> SprtGames {
    let stream = Stream::root(seed).text("match");
    let mut order: Vec<usize> = (0..openings.len()).collect();
    shuffle(&mut stream.text("order").rng(), &mut order);
    let chance = players.iter().any(|player| player.play.is_random());
    let mut found = SprtGames { test, pairs: [0; 5], sides: [Duel::default(); 2], passes: 0 };
    while found.passes == 0 || chance {
        found.passes += 1;
        for index in &order {
            let stream = stream.word(u64::from(found.passes - 1)).word(*index as u64);
            let mut points = 0;
            for (side, duel) in Side::BOTH.into_iter().zip(&mut found.sides) {
                let outcome = one_game(players, openings[*index], side, stream);
                match outcome {
                    Outcome::Win(winner) if winner == side => duel.wins += 1,
                    Outcome::Win(_) => duel.losses += 1,
                    Outcome::Draw => duel.draws += 1,
                }
                points += match outcome {
                    Outcome::Win(winner) => 2 * usize::from(winner == side),
                    Outcome::Draw => 1,
                };
            }
            found.pairs[points] += 1;
            if test.verdict(&found.pairs) != Verdict::Open || 2 * found.count() >= games_max {
                return found;
            }
        }
    }
    found
}

/// Plays the game from an opening, with the first player on this side.
fn one_game(players: &mut [Player; 2], opening: Position, side: Side, stream: Stream) -> Outcome {
    let [one, two] = players;
    let (geometry, rng) = (one.geometry, &mut stream.word(side as u64).rng());
    let mut first = |position, rng: &mut _| one.choose(position, rng);
    let mut second = |position, rng: &mut _| two.choose(position, rng);
    game(geometry, opening, side, rng, &mut first, &mut second)
}

impl SprtGames {
    /// The number of pairs that were played.
    pub(super) fn count(&self) -> u64 {
        self.pairs.iter().sum()
    }

    fn sentence(&self) -> String {
        let [elo0, elo1] = self.test.elo();
        let percent = 100.0 * ERROR;
        match self.test.verdict(&self.pairs) {
            Verdict::Greater => format!(
                "The first is more than {elo0} points stronger. (If it is not, the test still says so in at most {percent:.0} % \
                of matches.)"
            ),
            Verdict::Lesser => format!(
                "The first is less than {elo1} points stronger. (If it is not, the test still says so in at most {percent:.0} % \
                of matches.)"
            ),
            Verdict::Open => {
                "Not decided: there are too few openings. Give a larger --openings, or differences further apart."
                    .into()
            }
        }
    }

    pub(super) fn print(&self, out: &mut impl Write) -> std::io::Result<()> {
        let ([low, high], [a, b, c, d, e]) = (Sprt::bounds(), self.pairs);
        writeln!(out, "{}\n", self.sentence())?;
        writeln!(
            out,
            "{} pairs of games; the first had 0 points in {a}, 1/2 in {b}, 1 in {c}, 3/2 in {d}, 2 in {e}.",
            self.count()
        )?;
        writeln!(
            out,
            "Logarithm of the likelihood ratio: {:.2}; the test ends at {low:.2} and {high:.2}.\n",
            self.test.ratio(&self.pairs)
        )
    }

    pub(super) fn to_json(self) -> Value {
        let verdict = match self.test.verdict(&self.pairs) {
            Verdict::Greater => "greater",
            Verdict::Lesser => "lesser",
            Verdict::Open => "open",
        };
        json!({
            "elo": self.test.elo(),
            "pairs": self.pairs,
            "ratio": self.test.ratio(&self.pairs),
            "bounds": Sprt::bounds(),
            "verdict": verdict,
        })
    }
}
