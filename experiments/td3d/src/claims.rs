//! Tests the paper's claims about differences between networks on our trials.
//!
//! A claim of a difference is tested against no difference. A claim of equality is tested against a difference of [`MARGIN`]
//! or more, because failing to see a difference supports no claim. A claim that no test decides is undecided.

use serde_json::{Value, json};

use super::{
    arm::Arm,
    facts::{CLAIMS, Claim, MARGIN, Measure, Regime, network},
};
use evoxo_common::{
    report::Table,
    stats::{
        Difference, RankTest, Sample, equivalence_test, holm, rank_equivalence_test, rank_test, rank_test_least,
        rank_test_values, t_test,
    },
    text::probability,
};

/// A claim and the corresponding result of our trials.
pub(super) struct Comparison {
    claim: Claim,
    /// By the t-test: the difference in our trials, and in the paper's figures.
    ours: Difference,
    paper: Difference,
    /// The probability of the paper's figures under what the claim denies, not corrected.
    paper_p: f64,
    ranks: RankTest,
    /// The number of trials of each network.
    trials: [usize; 2],
    /// The probability of our trials under what the claim denies, by the t-test and by ranks. `None` for ranks if that test
    /// can show nothing with so few trials.
    by_t: Tested,
    by_ranks: Option<Tested>,
    /// For a claim of equality: whether the difference is shown to be greater than the margin.
    beyond: bool,
}

/// A probability, uncorrected and after Holm's correction for all comparisons made.
#[derive(Clone, Copy)]
struct Tested {
    p: f64,
    corrected: f64,
}

/// Probabilities up to this level are significant.
const LEVEL: f64 = 0.05;

/// The difference of two samples, and its probability by the t-test under what the claim denies.
fn by_t(claim: &Claim, one: Sample, two: Sample) -> Option<(Difference, f64)> {
    let difference = t_test(one, two)?;
    let p = if claim.differs { difference.p } else { equivalence_test(MARGIN, one, two)? };
    Some((difference, p))
}

/// All claims for which both sides have at least two trials, among arms of this reading.
pub(super) fn comparisons(arms: &[Arm<'_>], reading: &str) -> Vec<Comparison> {
    let values = |name: &str, regime: Regime, measure: Measure| {
        let ours = |arm: &&Arm<'_>| {
            arm.reading == reading && arm.paper.is_some_and(|(network, other)| network.name == name && other == regime)
        };
        arms.iter().find(ours).map(|arm| arm.values(measure))
    };
    let compare = |claim: &Claim| {
        let Claim { regime, better, worse, measure, differs } = *claim;
        let (one, two) = (values(better, regime, measure)?, values(worse, regime, measure)?);
        let reported = |name: &str| Some(network(name)?.reported(regime, measure));
        let (paper, paper_p) = by_t(claim, reported(better)?, reported(worse)?)?;
        let (ours, p) = by_t(claim, Sample::of(&one)?, Sample::of(&two)?)?;
        let ranks = rank_test(&one, &two)?;
        let by_ranks = if differs { ranks.p } else { rank_equivalence_test(MARGIN, &one, &two)? };
        let [by_t, by_ranks] = [p, by_ranks].map(|p| Tested { p, corrected: p });
        let trials = [one.len(), two.len()];
        let by_ranks = Some(by_ranks);
        Some(Comparison { claim: *claim, ours, paper, paper_p, ranks, trials, by_t, by_ranks, beyond: false })
    };
    let mut all: Vec<Comparison> = CLAIMS.iter().filter_map(compare).collect();
    correct(&mut all);
    all
}

/// Corrects the probabilities for the number of comparisons, and drops the rank tests if none can show anything.
fn correct(all: &mut [Comparison]) {
    let tests = all.len() as f64;
    let ranks = all.iter().any(|one| rank_test_least(one.trials[0], one.trials[1]) * tests <= LEVEL);
    let by_t = holm(&all.iter().map(|one| one.by_t.p).collect::<Vec<f64>>());
    let by_ranks = holm(&all.iter().filter_map(|one| Some(one.by_ranks?.p)).collect::<Vec<f64>>());
    for (one, (by_t, by_ranks)) in all.iter_mut().zip(by_t.into_iter().zip(by_ranks)) {
        one.by_t.corrected = by_t;
        one.by_ranks = one.by_ranks.filter(|_| ranks).map(|tested| Tested { corrected: by_ranks, ..tested });
        // The probability under a difference within the margin is one minus the probability under a difference beyond it.
        one.beyond = !one.claim.differs && tests * (1.0 - one.by_t.p) <= LEVEL;
    }
}

impl Comparison {
    /// Whether our trials confirm the claim.
    fn verdict(&self) -> &'static str {
        let by_t = self.by_t.corrected <= LEVEL;
        let by_ranks = self.by_ranks.map_or(by_t, |tested| tested.corrected <= LEVEL);
        let even = (self.trials[0] * self.trials[1]) as f64 / 2.0;
        let above = if by_t { self.ours.mean >= 0.0 } else { self.ranks.u >= even };
        match (self.beyond, by_t, by_ranks, above || !self.claim.differs) {
            (true, ..) => "no: they differ",
            (_, false, false, _) => "undecided",
            (_, true, true, true) => "yes",
            (_, true, false, true) => "by t only",
            (_, false, true, true) => "by U only",
            (_, true, true, false) => "no: the other way",
            (_, true, false, false) => "other way by t only",
            (_, false, true, false) => "other way by U only",
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let Claim { regime, better, worse, measure, differs } = self.claim;
        let Difference { mean, half_width, t, freedom, .. } = self.ours;
        let Tested { p, corrected } = self.by_t;
        let ranks =
            self.by_ranks.map(|Tested { p, corrected }| json!({"u": self.ranks.u, "p": p, "p_holm": corrected}));
        json!({
            "claim": {
                "regime": match regime { Regime::SelfPlay => "self", Regime::Benchmark => "benchmark" },
                "better": better,
                "worse": worse,
                "measure": measure_name(measure),
                "differs": differs,
            },
            // For a claim of equality: the margin of its two one-sided tests, in percentage points.
            "margin": (!differs).then_some(MARGIN),
            "difference": mean,
            "half_width": half_width,
            "t_test": {"t": t, "freedom": freedom, "p": p, "p_holm": corrected},
            "rank_test": ranks,
            "paper": {"difference": self.paper.mean, "p": self.paper_p},
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

/// A table with one row per comparison.
pub(super) fn claims_table(all: &[Comparison], reading: &str) -> Table {
    let ranks = all.iter().any(|comparison| comparison.by_ranks.is_some());
    let mut header = vec!["the paper's claim", "of", "paper", "P", "ours", "P by t", "P by U", "holds"];
    header.retain(|name| ranks || *name != "P by U");
    let row = |comparison: &Comparison| {
        let Claim { regime, better, worse, measure, differs } = comparison.claim;
        let regime = match regime {
            Regime::SelfPlay => "self-play",
            Regime::Benchmark => "benchmark",
        };
        let sign = if differs { ">" } else { "=" };
        let mut row = vec![
            format!("{regime}: {better} {sign} {worse}"),
            measure_name(measure).into(),
            format!("{:+.1}", comparison.paper.mean),
            probability(comparison.paper_p),
            signed(&comparison.ours),
            probability(comparison.by_t.corrected),
        ];
        row.extend(comparison.by_ranks.map(|tested| probability(tested.corrected)));
        row.push(comparison.verdict().into());
        row
    };
    Table {
        title: format!(
            "Reading {reading:?}: the paper's claims about differences (percentage points; ours ± 95 % interval)"
        ),
        header: header.into_iter().map(String::from).collect(),
        rows: all.iter().map(row).collect(),
    }
}

/// How the comparisons were made, in sentences; empty if there were none.
pub(super) fn claims_notes(all: &[Comparison]) -> Vec<String> {
    if all.is_empty() {
        return Vec::new();
    }
    let ranks = if all.iter().any(|one| one.by_ranks.is_some()) { " and Mann and Whitney's U" } else { "" };
    let mut notes = vec![format!(
        "Claims (>): Welch's unpaired t-test{ranks}. P of ours is corrected by Holm's method for all comparisons in the \
         table; the paper's is computed from its figures and not corrected. Undecided: the tests \
         show neither the claim nor its opposite."
    )];
    if all.iter().any(|one| !one.claim.differs) {
        notes.push(format!(
            "Claims of equality (=): two one-sided tests with a margin of {MARGIN} points. P is the probability of \
             means this close to each other if the difference were {MARGIN} points or more. \"Yes\": the difference is \
             shown to be smaller; \"no\": greater."
        ));
    }
    if ranks.is_empty() {
        let most = all.iter().flat_map(|one| one.trials).max().unwrap_or(0);
        notes.push(format!(
            "Mann and Whitney's U is left out: with {most} trials it cannot reach P = {LEVEL} after the correction for \
             {} comparisons; that takes {} trials.",
            all.len(),
            rank_test_values(all.len(), LEVEL)
        ));
    }
    notes
}
