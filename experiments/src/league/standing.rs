//! Conclusions from the results of a league: ratings with intervals, which players are tied for first, which never met, where
//! strength goes in a circle, and how well a single number describes a player.

use evoxo_common::{
    rng::Stream,
    stats::{BOOTSTRAP_MIN, quantile, wilson_points},
};

use super::{
    nash::nash,
    rating::{Blocks, Meeting, Ratings, rate},
};

/// Results of a league.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Results {
    /// The players' names.
    pub names: Vec<String>,
    /// The player whose rating is 0.
    pub anchor: usize,
    /// The first and the second mover of each pair, in both orders.
    pub pairs: Vec<(usize, usize)>,
    /// The games of these pairs from each opening, in the form of [`Blocks`]. Empty if odds are known.
    pub games: Vec<u8>,
    /// The results of these pairs.
    pub meetings: Vec<Meeting>,
    /// Whether the meetings are exact odds, without any chance.
    pub exact: bool,
}

/// Conclusions from the results.
pub(super) struct Standing {
    pub ratings: Ratings,
    /// The players, strongest first.
    pub order: Vec<usize>,
    /// The 95 % interval of each player's points above the anchor. `None` if there are too few samples, or if the player or
    /// the anchor won or lost every point: every resample does so too, and only the virtual game makes the rating finite.
    pub intervals: Option<Vec<Option<(f64, f64)>>>,
    /// For each ordered pair of players: in which share of the resamples of the openings the first is the stronger one.
    pub stronger: Option<Vec<Vec<f64>>>,
    /// The strongest player and all players that are not shown to be weaker, in order.
    pub first: Vec<usize>,
    /// Groups of players that are connected by games, in the order of the file. There is one group unless some never met.
    pub groups: Vec<Vec<usize>>,
    pub circles: Circles,
    /// The share of each player in the mixture with the greatest entropy, of all mixtures that no player beats.
    pub nash: Vec<f64>,
    pub misfit: Option<Misfit>,
}

/// Triples of players in which each beats the next.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Circles {
    /// The number of triples.
    pub count: usize,
    /// The triple whose weakest score is greatest, with its three scores.
    pub largest: Option<([usize; 3], [f64; 3])>,
    /// Whether each of these three scores is above a half beyond its 95 % interval.
    pub certain: bool,
}

/// The deviation of the results from those that the ratings expect.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Misfit {
    /// The sum of squared deviations of scores, in standard deviations, per degree of freedom. It is about 1 if the model
    /// holds.
    pub ratio: Option<f64>,
    /// The pair that deviates most, the score of its first mover, and the score that the ratings expect.
    pub worst: ((usize, usize), f64, f64),
}

/// The number of resamples of the openings.
pub(super) const RESAMPLES: usize = 1000;
/// With fewer openings, there are too few different resamples for any conclusion.
pub(super) const OPENINGS_MIN: usize = BOOTSTRAP_MIN;

/// The probability that the strongest player is above an equally strong one in a resample by chance. It is divided among all
/// players, because each is compared with the strongest (Bonferroni).
pub(super) const DOUBT: f64 = 0.025;

impl Results {
    /// The points of one player against another, moving first and second, and the number of games.
    pub(super) fn score(&self, one: usize, two: usize) -> (f64, f64) {
        let mut sum = (0.0, 0.0);
        for meeting in &self.meetings {
            let points = match (meeting.first, meeting.second) {
                pair if pair == (one, two) => meeting.points(),
                pair if pair == (two, one) => meeting.games() - meeting.points(),
                _ => continue,
            };
            sum = (sum.0 + points, sum.1 + meeting.games());
        }
        sum
    }

    /// A player's share of the points in all its games, or in those in which it moved first or second.
    pub(super) fn share(&self, player: usize, moves: Option<bool>) -> Option<f64> {
        let mut sums = (0.0, 0.0);
        for meeting in &self.meetings {
            let of =
                [(meeting.first, true, meeting.points()), (meeting.second, false, meeting.games() - meeting.points())];
            for (_, _, points) in
                of.into_iter().filter(|(who, first, _)| *who == player && moves.is_none_or(|it| it == *first))
            {
                sums = (sums.0 + points, sums.1 + meeting.games());
            }
        }
        (sums.1 > 0.0).then(|| sums.0 / sums.1)
    }

    /// Whether a player has won some points, but not all.
    fn is_measured(&self, player: usize) -> bool {
        self.share(player, None).is_some_and(|share| share > 0.0 && share < 1.0)
    }

    /// For each ordered pair of players that met: the first one's share of the points.
    pub(super) fn scores(&self) -> Vec<Vec<Option<f64>>> {
        let players = self.names.len();
        let mut sums = vec![vec![(0.0, 0.0); players]; players];
        for meeting in &self.meetings {
            let (points, games) = (meeting.points(), meeting.games());
            for (one, two, points) in
                [(meeting.first, meeting.second, points), (meeting.second, meeting.first, games - points)]
            {
                sums[one][two].0 += points;
                sums[one][two].1 += games;
            }
        }
        let share = |(points, games): (f64, f64)| (games > 0.0).then(|| points / games);
        sums.into_iter().map(|row| row.into_iter().map(share).collect()).collect()
    }

    /// All conclusions. Resamples are drawn from `stream`.
    pub(super) fn standing(&self, stream: Stream) -> Standing {
        let players = self.names.len();
        let ratings = rate(players, &self.meetings);
        let mut order: Vec<usize> = (0..players).collect();
        order.sort_by(|one, two| ratings.strengths[*two].total_cmp(&ratings.strengths[*one]));
        let blocks = Blocks { players, pairs: &self.pairs, games: &self.games };
        let resampled = (!self.exact && blocks.count() >= OPENINGS_MIN).then(|| blocks.resampled(RESAMPLES, stream));
        let above = |of: &[Ratings], player: usize, other: usize| -> Vec<f64> {
            of.iter().map(|ratings| ratings.points_above(player, other)).collect()
        };
        let intervals = resampled.as_ref().map(|of| {
            let ends = |player: usize| {
                let points = above(of, player, self.anchor);
                let known = self.is_measured(player) && self.is_measured(self.anchor);
                known.then(|| (quantile(&points, 0.025), quantile(&points, 0.975)))
            };
            (0..players).map(ends).collect::<Vec<Option<(f64, f64)>>>()
        });
        let stronger = resampled.as_ref().map(|of| {
            let share = |player: usize, other: usize| {
                let count = |it: &&Ratings| it.strengths[player] > it.strengths[other];
                of.iter().filter(count).count() as f64 / of.len() as f64
            };
            (0..players).map(|player| (0..players).map(|other| share(player, other)).collect()).collect::<Vec<Vec<_>>>()
        });
        let sure = 1.0 - DOUBT / (players.max(2) - 1) as f64;
        let tied = |player: &usize| {
            let best = order[0];
            *player == best
                || match &stronger {
                    Some(stronger) => stronger[best][*player] < sure,
                    None => !self.exact || ratings.points_above(best, *player) < 1e-6,
                }
        };
        let first = order.iter().copied().filter(tied).collect();
        let scores = self.scores();
        let payoff = |row: &Vec<Option<f64>>| row.iter().map(|score| score.unwrap_or(0.5) - 0.5).collect();
        Standing {
            first,
            groups: groups(&scores),
            circles: self.circles(&scores),
            nash: nash(&scores.iter().map(payoff).collect::<Vec<Vec<f64>>>()),
            misfit: self.misfit(&ratings),
            ratings,
            order,
            intervals,
            stronger,
        }
    }

    fn circles(&self, scores: &[Vec<Option<f64>>]) -> Circles {
        let players = scores.len();
        let beats = |one: usize, two: usize| scores[one][two].filter(|score| *score > 0.5 + 1e-9);
        let (mut count, mut largest) = (0, None::<([usize; 3], [f64; 3])>);
        for one in 0..players {
            // Each circle is found once, starting from its lowest number.
            for two in one + 1..players {
                for three in (one + 1..players).filter(|three| *three != two) {
                    let found = (beats(one, two), beats(two, three), beats(three, one));
                    let (Some(a), Some(b), Some(c)) = found else { continue };
                    count += 1;
                    let least = |scores: &[f64; 3]| scores.iter().copied().fold(1.0, f64::min);
                    if largest.as_ref().is_none_or(|(_, old)| least(&[a, b, c]) > least(old)) {
                        largest = Some(([one, two, three], [a, b, c]));
                    }
                }
            }
        }
        let sure = |one: usize, two: usize| {
            let (points, games) = self.score(one, two);
            self.exact || wilson_points(points, games as usize).0 > 0.5
        };
        let certain =
            largest.is_some_and(|([one, two, three], _)| sure(one, two) && sure(two, three) && sure(three, one));
        Circles { count, largest, certain }
    }

    fn misfit(&self, ratings: &Ratings) -> Option<Misfit> {
        let (mut squares, mut terms, mut worst) = (0.0, 0, None::<((usize, usize), f64, f64)>);
        for meeting in self.meetings.iter().filter(|meeting| meeting.games() > 0.0) {
            let [win, draw, _] = ratings.odds(meeting.first, meeting.second);
            let expected = win + 0.5 * draw;
            let variance = win + 0.25 * draw - expected * expected;
            let score = meeting.points() / meeting.games();
            squares += (score - expected) * (score - expected) * meeting.games() / variance.max(1e-12);
            terms += 1;
            let farther =
                |(_, other, there): ((usize, usize), f64, f64)| (other - there).abs() < (score - expected).abs();
            if worst.is_none_or(farther) {
                worst = Some(((meeting.first, meeting.second), score, expected));
            }
        }
        // One strength can be chosen freely, but the term for the first move cannot.
        let freedom = terms - self.names.len() as i64;
        let ratio = (!self.exact && freedom > 0).then(|| squares / freedom as f64);
        worst.map(|worst| Misfit { ratio, worst })
    }
}

/// Groups of players that are connected by games.
fn groups(scores: &[Vec<Option<f64>>]) -> Vec<Vec<usize>> {
    let mut group: Vec<usize> = (0..scores.len()).collect();
    // The lowest number of a group spreads to all its members.
    for _ in 0..scores.len() {
        for (one, row) in scores.iter().enumerate() {
            for (two, score) in row.iter().enumerate() {
                if score.is_some() {
                    group[two] = group[two].min(group[one]);
                }
            }
        }
    }
    let of = |number: usize| (0..scores.len()).filter(|player| group[*player] == number).collect::<Vec<usize>>();
    (0..scores.len()).map(of).filter(|group| !group.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meeting(first: usize, second: usize, results: [f64; 3]) -> Meeting {
        Meeting { first, second, results }
    }

    fn league(players: usize, meetings: Vec<Meeting>, exact: bool) -> Results {
        let names = (0..players).map(|player| format!("p{player}")).collect();
        let pairs = meetings.iter().map(|meeting| (meeting.first, meeting.second)).collect();
        Results { names, anchor: 0, pairs, games: Vec::new(), meetings, exact }
    }

    #[test]
    fn a_circle_is_found_with_its_scores() {
        let won = [6.0, 2.0, 2.0];
        let results = league(
            4,
            vec![
                meeting(0, 1, won),
                meeting(1, 2, won),
                meeting(2, 0, [7.0, 0.0, 3.0]),
                meeting(0, 3, won),
                meeting(3, 0, [2.0, 2.0, 6.0]),
            ],
            true,
        );
        let standing = results.standing(Stream::root(1));
        assert_eq!(standing.circles, Circles { count: 1, largest: Some(([0, 1, 2], [0.7, 0.7, 0.7])), certain: true });
        assert_eq!(standing.groups, [[0, 1, 2, 3]]);
        assert_eq!((results.score(0, 3), results.score(3, 0)), ((14.0, 20.0), (6.0, 20.0)));
        assert!(standing.intervals.is_none() && standing.first.len() == 1);
        let misfit = standing.misfit.unwrap();
        assert!(misfit.ratio.is_none() && (misfit.worst.1 - misfit.worst.2).abs() > 0.1, "{misfit:?}");
        let sampled = Results { exact: false, ..results }.standing(Stream::root(1));
        assert!(!sampled.circles.certain, "ten games tell little");
    }

    #[test]
    fn players_that_never_met_are_in_different_groups() {
        let results = league(5, vec![meeting(0, 2, [1.0; 3]), meeting(4, 1, [1.0; 3]), meeting(2, 3, [0.0; 3])], true);
        assert_eq!(results.standing(Stream::root(1)).groups, [vec![0, 2], vec![1, 4], vec![3]]);
    }

    /// Two equal players and a weaker one: the equal ones are tied for first, even if odds are exact.
    #[test]
    fn equal_players_are_tied_for_first() {
        let even = [3.0, 2.0, 3.0];
        let won = [6.0, 2.0, 2.0];
        let all = vec![meeting(0, 1, even), meeting(1, 0, even), meeting(0, 2, won), meeting(1, 2, won)];
        assert_eq!(league(3, all, true).standing(Stream::root(1)).first.len(), 2);
        // Games: from each of 40 openings, players 0 and 1 beat each other once, and both beat 2 in three of four games,
        // whoever moves first.
        let pairs = vec![(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)];
        let block = |number: usize| match number % 4 {
            0 => [1, 1, 3, 1, 1, 3],
            1 => [1, 1, 1, 3, 3, 1],
            _ => [1, 1, 1, 3, 1, 3],
        };
        let games: Vec<u8> = (0..40).flat_map(block).collect();
        let meetings = Blocks { players: 3, pairs: &pairs, games: &games }.meetings();
        let results = Results { pairs, games, ..league(3, meetings, false) };
        // A player that never scores has a rating, but no interval.
        let games: Vec<u8> = (0..40).flat_map(|number| [1, 1 + 2 * (number % 2), 1, 3, 1, 3]).collect();
        let meetings = Blocks { players: 3, pairs: &results.pairs, games: &games }.meetings();
        let beaten = Results { pairs: results.pairs.clone(), games, ..league(3, meetings, false) };
        let intervals = beaten.standing(Stream::root(1)).intervals.unwrap();
        assert!(intervals[1].is_some() && intervals[2].is_none(), "{intervals:?}");
        let standing = results.standing(Stream::root(1));
        let mut first = standing.first.clone();
        first.sort_unstable();
        assert_eq!((first, standing.order[2]), (vec![0, 1], 2));
        let (low, high) = standing.intervals.unwrap()[2].unwrap();
        assert!(low < high && high < 0.0, "{low} {high}");
        let stronger = standing.stronger.unwrap();
        assert!(stronger[0][2] > 1.0 - DOUBT && stronger[0][1] > 0.1 && stronger[0][1] < 0.9, "{stronger:?}");
    }
}
