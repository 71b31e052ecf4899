//! The paper's claims about differences between networks, tested on our trials.

use serde_json::{Value, json};

use super::{
    arm::Arm,
    facts::{CLAIMS, Claim, Measure, Regime, network},
};
use evoxo_common::{
    report::Table,
    stats::{Difference, RankTest, Sample, holm, rank_test, t_test},
    text::probability,
};

/// A claim and the corresponding result of our trials.
pub(super) struct Comparison {
    claim: Claim,
    /// By the t-test: of our trials, and of the paper's figures.
    ours: Difference,
    paper: Difference,
    ranks: RankTest,
    /// The expected U if neither sample tends to be greater: half the pairs.
    even: f64,
    /// Both probabilities after Holm's correction for all comparisons: the t-test's and the rank test's.
    corrected: [f64; 2],
}

/// Probabilities up to this are significant.
const LEVEL: f64 = 0.05;

/// All claims with at least two trials on either side, among arms of this reading.
pub(super) fn comparisons(arms: &[Arm<'_>], reading: &str) -> Vec<Comparison> {
    let values = |name: &str, regime: Regime, measure: Measure| {
        let ours = |arm: &&Arm<'_>| {
            arm.reading == reading && arm.paper.is_some_and(|(network, other)| network.name == name && other == regime)
        };
        arms.iter().find(ours).map(|arm| arm.values(measure))
    };
    let compare = |claim: &Claim| {
        let Claim { regime, better, worse, measure, .. } = *claim;
        let (one, two) = (values(better, regime, measure)?, values(worse, regime, measure)?);
        let reported = |name: &str| Some(network(name)?.reported(regime, measure));
        Some(Comparison {
            claim: *claim,
            ours: t_test(Sample::of(&one)?, Sample::of(&two)?)?,
            paper: t_test(reported(better)?, reported(worse)?)?,
            ranks: rank_test(&one, &two)?,
            even: (one.len() * two.len()) as f64 / 2.0,
            corrected: [1.0; 2],
        })
    };
    let mut all: Vec<Comparison> = CLAIMS.iter().filter_map(compare).collect();
    let by_t = holm(&all.iter().map(|comparison| comparison.ours.p).collect::<Vec<f64>>());
    let by_ranks = holm(&all.iter().map(|comparison| comparison.ranks.p).collect::<Vec<f64>>());
    for (comparison, corrected) in all.iter_mut().zip(by_t.into_iter().zip(by_ranks)) {
        comparison.corrected = corrected.into();
    }
    all
}

impl Comparison {
    /// Whether our trials confirm the claim.
    fn verdict(&self) -> &'static str {
        let [by_t, by_ranks] = self.corrected.map(|p| p <= LEVEL);
        let reversed = if by_t { self.ours.mean < 0.0 } else { self.ranks.u < self.even };
        match (self.claim.differs, by_t, by_ranks, reversed) {
            (false, false, false, _) => "yes",
            (false, ..) => "no: they differ",
            (true, false, false, _) => "not seen",
            (true, true, true, false) => "yes",
            (true, true, false, false) => "by t only",
            (true, false, true, false) => "by U only",
            (true, true, true, true) => "no: the other way",
            (true, true, false, true) => "other way by t only",
            (true, false, true, true) => "other way by U only",
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let Claim { regime, better, worse, measure, differs } = self.claim;
        json!({
            "claim": {
                "regime": match regime { Regime::SelfPlay => "self", Regime::Benchmark => "benchmark" },
                "better": better,
                "worse": worse,
                "measure": measure_name(measure),
                "differs": differs,
            },
            "difference": self.ours.mean,
            "half_width": self.ours.half_width,
            "t_test": {"t": self.ours.t, "freedom": self.ours.freedom, "p": self.ours.p, "p_holm": self.corrected[0]},
            "rank_test": {"u": self.ranks.u, "p": self.ranks.p, "p_holm": self.corrected[1]},
            "paper": {"difference": self.paper.mean, "p": self.paper.p},
            "verdict": self.verdict(),
        })
    }
}

fn measure_name(measure: Measure) -> &'static str {
    match measure {
        Measure::Peak => "peak",
        Measure::End => "end",
    }
}

/// "+14.8 ± 7.5"
pub(super) fn signed(difference: &Difference) -> String {
    format!("{:+.1} ± {:.1}", difference.mean, difference.half_width)
}

/// A row for each comparison.
pub(super) fn claims_table(all: &[Comparison], reading: &str) -> Table {
    let header = ["the paper's claim", "of", "paper", "P", "ours", "P by t", "P by U", "holds"];
    let row = |comparison: &Comparison| {
        let Claim { regime, better, worse, measure, differs } = comparison.claim;
        let regime = match regime {
            Regime::SelfPlay => "self-play",
            Regime::Benchmark => "benchmark",
        };
        let sign = if differs { ">" } else { "=" };
        let [by_t, by_ranks] = comparison.corrected.map(probability);
        vec![
            format!("{regime}: {better} {sign} {worse}"),
            measure_name(measure).into(),
            format!("{:+.1}", comparison.paper.mean),
            probability(comparison.paper.p),
            signed(&comparison.ours),
            by_t,
            by_ranks,
            comparison.verdict().into(),
        ]
    };
    Table {
        title: format!(
            "Reading {reading:?}: what the paper claims of differences (points of percent; ours ± 95 % interval)"
        ),
        header: header.map(String::from).to_vec(),
        rows: all.iter().map(row).collect(),
    }
}
