//! The content of the paper: van de Steeg, Drugan and Wiering, *Temporal Difference Learning for the Game Tic-Tac-Toe 3D:
//! Applying Structure to Neural Networks* (2015). These are its tables as printed, and its claims about differences.

use evoxo_common::stats::Sample;

/// Trials of each network in each regime.
const TRIALS: usize = 10;

/// Training games of a trial.
pub const GAMES: u64 = 1_000_000;

/// The opponent that a network learns against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Regime {
    /// The network itself.
    SelfPlay,
    /// The benchmark player.
    Benchmark,
}

impl Regime {
    /// Both regimes, in the paper's order.
    pub const BOTH: [Self; 2] = [Self::SelfPlay, Self::Benchmark];
}

/// The measure of a trial, in percent of games won against the benchmark player. Draws count half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The trial's best test.
    Peak,
    /// The mean of the last two fifths of the trial's tests (the paper's last 40 of 100).
    End,
}

/// A network of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Its name in the setting `network`.
    pub name: &'static str,
    /// "Layer sizes" in Table I.
    pub layers: &'static str,
    /// "Number of weights" in Table I.
    pub weights: usize,
    /// Tables II and III: mean and standard deviation of the peak and of the end, in percent, for each of [`Regime::BOTH`].
    results: [[(f64, f64); 2]; 2],
}

impl Network {
    /// The paper's result for its ten trials.
    #[must_use]
    pub fn reported(&self, regime: Regime, measure: Measure) -> Sample {
        let (mean, deviation) = self.results[regime as usize][measure as usize];
        Sample { count: TRIALS, mean, deviation }
    }
}

/// Tables I, II and III, in the paper's order.
pub const NETWORKS: [Network; 5] = [
    Network {
        name: "small-structured",
        layers: "64-304-1",
        weights: 1520,
        results: [[(50.6, 4.9), (29.4, 8.8)], [(94.3, 3.1), (90.7, 2.4)]],
    },
    Network {
        name: "deep-structured",
        layers: "64-304-32-1",
        weights: 10976,
        results: [[(65.9, 5.0), (52.7, 6.8)], [(98.7, 0.3), (97.3, 0.8)]],
    },
    Network {
        name: "small",
        layers: "64-50-1",
        weights: 3250,
        results: [[(31.2, 6.2), (20.2, 4.3)], [(93.3, 1.8), (90.4, 1.5)]],
    },
    Network {
        name: "deep",
        layers: "64-95-51-1",
        weights: 10976,
        results: [[(38.2, 5.4), (24.8, 4.9)], [(98.1, 0.5), (96.2, 1.0)]],
    },
    Network {
        name: "wide",
        layers: "64-169-1",
        weights: 10985,
        results: [[(54.1, 5.5), (36.1, 7.1)], [(96.8, 0.8), (94.4, 1.5)]],
    },
];

/// The paper's network with this name, if there is one.
#[must_use]
pub fn network(name: &str) -> Option<&'static Network> {
    NETWORKS.iter().find(|network| network.name == name)
}

/// A difference between two networks that the paper claims or denies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The regime of the claim.
    pub regime: Regime,
    /// The better network, as in [`Network::name`].
    pub better: &'static str,
    /// The other network.
    pub worse: &'static str,
    /// The measure of the claim.
    pub measure: Measure,
    /// Whether the paper claims a difference; otherwise it claims equality.
    pub differs: bool,
}

/// Networks whose means differ by less than this many percentage points count as equal. The paper gives no margin, so this is
/// our choice: two tests of 1,000 games of the same network that wins 90 %, about where the claims of equality are made,
/// differ by less in 97 of 100 cases.
pub const MARGIN: f64 = 3.0;

/// The paper's statements about differences between two networks, in its order (sections V.B, V.C and VI). Where the paper
/// does not say whether it means the peak or the end, both are listed. If it calls a network the poorest of all, that network
/// is compared with the next poorest.
pub const CLAIMS: [Claim; 26] = {
    use Measure::{End, Peak};
    use Regime::{Benchmark, SelfPlay};
    const fn claim(regime: Regime, better: &'static str, worse: &'static str, measure: Measure) -> Claim {
        Claim { regime, better, worse, measure, differs: true }
    }
    [
        claim(SelfPlay, "deep-structured", "wide", End),
        claim(SelfPlay, "deep-structured", "wide", Peak),
        claim(SelfPlay, "small-structured", "deep", End),
        claim(SelfPlay, "small-structured", "deep", Peak),
        claim(SelfPlay, "deep", "small", End),
        claim(SelfPlay, "deep", "small", Peak),
        claim(SelfPlay, "wide", "deep", End),
        claim(SelfPlay, "wide", "deep", Peak),
        claim(Benchmark, "deep-structured", "wide", Peak),
        claim(Benchmark, "deep-structured", "wide", End),
        claim(Benchmark, "deep-structured", "small", Peak),
        claim(Benchmark, "deep-structured", "small", End),
        claim(Benchmark, "deep", "small-structured", Peak),
        claim(Benchmark, "deep", "small-structured", End),
        claim(Benchmark, "deep", "small", Peak),
        claim(Benchmark, "deep", "small", End),
        claim(Benchmark, "deep-structured", "deep", Peak),
        claim(Benchmark, "deep-structured", "deep", End),
        claim(Benchmark, "deep", "wide", Peak),
        claim(Benchmark, "deep", "wide", End),
        Claim { differs: false, ..claim(Benchmark, "small-structured", "small", Peak) },
        Claim { differs: false, ..claim(Benchmark, "small-structured", "small", End) },
        claim(SelfPlay, "deep-structured", "small-structured", Peak),
        claim(SelfPlay, "deep-structured", "small-structured", End),
        claim(Benchmark, "deep-structured", "small-structured", Peak),
        claim(Benchmark, "deep-structured", "small-structured", End),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::stats::{equivalence_test, t_test};

    /// At their printed levels, the paper's own figures support its claims, so they are transcribed correctly. There is one
    /// exception: the small structured network may end above the deep one by chance.
    #[test]
    fn the_claims_follow_from_the_tables() {
        let samples = |claim: Claim| {
            [claim.better, claim.worse].map(|name| network(name).unwrap().reported(claim.regime, claim.measure))
        };
        let test = |claim: Claim| {
            let [better, worse] = samples(claim);
            t_test(better, worse).unwrap()
        };
        for claim in CLAIMS.iter().filter(|claim| !claim.differs) {
            let [better, worse] = samples(*claim);
            assert!(equivalence_test(MARGIN, better, worse).unwrap() < 0.05, "{claim:?}");
        }
        for claim in CLAIMS {
            let doubtful = claim.better == "small-structured" && claim.worse == "deep" && claim.measure == Measure::End;
            let found = test(claim);
            assert_eq!(found.p < 0.05, claim.differs && !doubtful, "{claim:?}: {found:?}");
            assert!(found.mean > 0.0, "{claim:?}: {found:?}");
        }
        let printed = |claim: &&Claim| claim.better == "deep-structured" && claim.worse == "deep";
        let p: Vec<f64> = CLAIMS.iter().filter(printed).map(|claim| test(*claim).p).collect();
        assert!(p[0] < 0.01 && (0.01..0.05).contains(&p[1]), "{p:?}");
    }
}
