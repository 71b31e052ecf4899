//! Which arm is better than which, as far as a test can tell. Arms that solve the same problem are compared in pairs, replica
//! by replica.

use std::cmp::Ordering;

use evoxo_common::{
    math::order,
    report::Table,
    stats::{holm, rank_test, rank_test_least, rank_test_values, signed_rank_least, signed_rank_test},
    text::probability,
};
use serde_json::{Value, json};

use super::{algorithm::BASELINE, settings::Settings};

/// With more arms there are more pairs than anyone reads.
const ARMS_MAX: usize = 12;
/// A difference with a P value below this is hardly chance.
const LEVEL: f64 = 0.05;

/// The outcome of a replica; the lesser is better.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// The replica reached the target, after this number of evaluations.
    Reached(f64),
    /// The replica missed the target, or there is none. The number is the best objective or the hypervolume, with its sign
    /// turned if it is to be maximised.
    Ended(f64),
    /// The replica has no feasible candidate. The number is the constraint violation of the best one; infinity if no
    /// candidate has a value.
    Broken(f64),
}

/// An arm whose replicas are all finished.
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) settings: &'a Settings,
    pub(super) outcomes: Vec<Outcome>,
    /// What `outcomes` measure; empty for the best values. If it differs between two arms, their best values are compared
    /// instead.
    pub(super) of: &'static str,
    /// The best values; empty with several objectives.
    pub(super) bests: Vec<Outcome>,
}

/// The comparison of two arms that solve one problem.
pub(super) struct Contest<'a> {
    better: &'a str,
    worse: &'a str,
    /// The share of all pairs of replicas in which the better arm's replica is better; ties count half.
    share: f64,
    p: f64,
    /// Corrected for all contests by Holm's method.
    corrected: f64,
    /// The number of replicas of each arm.
    replicas: [usize; 2],
    /// Whether only replicas of the same number are compared, instead of all with all.
    paired: bool,
    /// Whether both arms may evaluate equally many candidates.
    equal_effort: bool,
    /// What is compared.
    of: &'static str,
}

impl Outcome {
    /// Reaching the target sooner comes before later, reaching it before missing it, and feasible before infeasible, as Deb
    /// (2000) orders candidates. BBOB tests searches in this order (N. Hansen, A. Auger, R. Ros, S. Finck and P. Pošík,
    /// "Comparing Results of 31 Algorithms from the Black-Box Optimization Benchmarking BBOB-2009", GECCO 2010).
    fn compare(self, other: Self) -> Ordering {
        let [(class, one), (other, two)] = [self, other].map(|outcome| match outcome {
            Self::Reached(evaluations) => (0, evaluations),
            Self::Ended(value) => (1, value),
            Self::Broken(violation) => (2, violation),
        });
        class.cmp(&other).then(order(one, two))
    }
}

/// All pairs of arms that solve the same problem; with many arms, only the pairs of an arm and random search.
pub(super) fn contests<'a>(entries: &[Entry<'a>]) -> Vec<Contest<'a>> {
    let many = entries.len() > ARMS_MAX;
    let pairs =
        entries.iter().enumerate().flat_map(|(place, one)| entries[place + 1..].iter().map(move |two| (one, two)));
    let pairs = pairs.filter(|(one, two)| !many || is_baseline(one) != is_baseline(two));
    let mut all: Vec<Contest<'a>> = pairs.filter_map(|(one, two)| contest(one, two)).collect();
    let corrected = holm(&all.iter().map(|contest| contest.p).collect::<Vec<f64>>());
    all.iter_mut().zip(corrected).for_each(|(contest, p)| contest.corrected = p);
    all
}

fn is_baseline(entry: &Entry<'_>) -> bool {
    entry.settings.algorithm == BASELINE
}

/// A note that too many arms are not all tested against each other.
pub(super) fn note_of_many(entries: &[Entry<'_>]) -> Option<String> {
    let with = match entries.iter().any(is_baseline) {
        true => "each is tested only against random search",
        false => "they are not tested: add an arm with algorithm = \"random\", and each is tested against it",
    };
    (entries.len() > ARMS_MAX).then(|| {
        format!("There are {} arms, but at most {ARMS_MAX} are tested against each other. So {with}.", entries.len())
    })
}

/// The comparison of two arms. `None` unless they solve the same problem.
fn contest<'a>(one: &Entry<'a>, two: &Entry<'a>) -> Option<Contest<'a>> {
    let same = one.settings.same_problem(two.settings)
        && one.settings.target_number() == two.settings.target_number()
        && one.settings.reference_point() == two.settings.reference_point();
    let same_grid = || one.settings.axes() == two.settings.axes() && one.settings.regions() == two.settings.regions();
    if !same {
        return None;
    }
    let same =
        one.of == two.of && one.settings.worthless() == two.settings.worthless() && (one.of.is_empty() || same_grid());
    let [first, second] = [one, two].map(|entry| if same { &entry.outcomes[..] } else { &entry.bests[..] });
    let replicas = [first.len(), second.len()];
    // The fresh seeds of a noisy problem depend only on the replica's number, so replicas of the same number are paired.
    let in_pairs = if one.settings.is_noisy() && replicas[0] == replicas[1] { pairs(first, second) } else { None };
    let (paired, (share, p)) = (in_pairs.is_some(), in_pairs.or_else(|| all_pairs(first, second))?);
    let (better, worse, share) =
        if share < 0.5 { (two.name, one.name, 1.0 - share) } else { (one.name, two.name, share) };
    let of = match one.settings.target_number() {
        _ if same && !one.of.is_empty() => one.of,
        _ if paired => "the confirmed value",
        Some(_) => "the evaluations to the target, then the best value",
        None => "the best value",
    };
    let equal_effort = one.settings.evaluations == two.settings.evaluations;
    Some(Contest { better, worse, share, p, corrected: 1.0, replicas, paired, equal_effort, of })
}

/// The share of all pairs of one replica of each arm in which the first is better, and the P value of the rank test.
fn all_pairs(one: &[Outcome], two: &[Outcome]) -> Option<(f64, f64)> {
    // The test depends on a value only by its rank.
    let mut sorted: Vec<Outcome> = one.iter().chain(two).copied().collect();
    sorted.sort_by(|one, two| one.compare(*two));
    let rank = |outcome: &Outcome| sorted.partition_point(|other| other.compare(*outcome) == Ordering::Less) as f64;
    let [first, second] = [one, two].map(|outcomes| outcomes.iter().map(rank).collect::<Vec<f64>>());
    // A greater rank is worse.
    let found = rank_test(&second, &first)?;
    Some((found.u / (first.len() * second.len()) as f64, found.p))
}

/// The share of the pairs of replicas of the same number in which the first is better, and the P value of their differences
/// by the signed-rank test. `None` unless every replica has a value.
fn pairs(one: &[Outcome], two: &[Outcome]) -> Option<(f64, f64)> {
    // A noisy search always uses all its evaluations, so it never ends at the target.
    let value = |outcome: &Outcome| if let Outcome::Ended(value) = outcome { Some(*value) } else { None };
    let values = |all: &[Outcome]| all.iter().map(value).collect::<Option<Vec<f64>>>();
    let (one, two) = (values(one)?, values(two)?);
    let both = || one.iter().copied().zip(two.iter().copied());
    let point =
        |(first, second): (f64, f64)| if first < second { 1.0 } else { f64::from(u8::from(first == second)) / 2.0 };
    let differences: Vec<f64> = both().map(|(first, second)| second - first).collect();
    (!differences.is_empty())
        .then(|| (both().map(point).sum::<f64>() / differences.len() as f64, signed_rank_test(&differences)))
}

impl Contest<'_> {
    /// The contest in `result.json`.
    pub(super) fn to_json(&self) -> Value {
        let Self { better, worse, share, p, corrected, .. } = self;
        let test = if self.paired { "Wilcoxon's signed-rank test" } else { "Mann and Whitney's test" };
        // Without `differs`, a program that reads the result might take the name of the better arm for a verdict.
        let differs = *corrected < LEVEL;
        json!({
            "better": better, "worse": worse, "differs": differs, "share": share, "p": p, "p_holm": corrected, "of": self.of,
            "test": test,
        })
    }
}

/// The table of contests, if there are any.
pub(super) fn table(contests: &[Contest<'_>]) -> Option<Table> {
    let row = |it: &Contest<'_>| {
        let equal = if it.share == 0.5 { ", equal" } else { "" };
        let share = format!("{:.0} %{equal}", 100.0 * it.share);
        vec![it.better.to_owned(), it.worse.to_owned(), share, probability(it.p), probability(it.corrected)]
    };
    (!contests.is_empty()).then(|| Table {
        title: "Arms against each other: which is better, and whether that may be chance".into(),
        header: ["arm", "better than", "in pairs of replicas", "P", "P, corrected"].map(String::from).to_vec(),
        rows: contests.iter().map(row).collect(),
    })
}

/// Notes on how the arms were tested, and on whether there are enough replicas.
pub(super) fn notes(contests: &[Contest<'_>]) -> Vec<String> {
    if contests.is_empty() {
        return Vec::new();
    }
    let pairs = contests.len();
    let corrected = if pairs > 1 { format!(", corrected by Holm's method for {pairs} pairs") } else { String::new() };
    let mut notes = Vec::new();
    if contests.iter().any(|it| it.paired) {
        notes.push(format!(
            "Arms of a noisy problem have the same fresh seeds in replicas of the same number, so these replicas are compared. In \
             pairs of replicas: the share in which the first arm is better; ties count half. P: Wilcoxon's signed-rank test of \
             the confirmed values{corrected}."
        ));
    }
    if contests.iter().any(|it| !it.paired) {
        notes.push(format!(
            "In pairs of replicas: the share of all pairs, one replica from each arm, in which the first is better; ties count half. \
             P: Mann and Whitney's test of what ranks replicas: the best value, the hypervolume, the QD score or the number of \
             cells filled{corrected}. A replica that reaches a target is better than one that does not, and sooner is better \
             than later."
        ));
    }
    if contests.iter().any(|it| !it.equal_effort) {
        notes.push(
            "Arms with different numbers of evaluations are compared too: an arm with more may be better only for that reason."
                .into(),
        );
    }
    let of_signs = |contest: &Contest<'_>| signed_rank_least(contest.replicas[0]);
    let of_ranks = |contest: &Contest<'_>| rank_test_least(contest.replicas[0], contest.replicas[1]);
    let least = contests.iter().map(|it| if it.paired { of_signs(it) } else { of_ranks(it) }).fold(1.0, f64::min);
    if least * pairs as f64 > LEVEL {
        let signs = || (1..).find(|count| signed_rank_least(*count) * pairs as f64 <= LEVEL).unwrap_or(0);
        let replicas = if contests.iter().all(|it| it.paired) { signs() } else { rank_test_values(pairs, LEVEL) };
        notes.push(format!(
            "With so few replicas no difference can reach P = {LEVEL}; that takes {replicas} of each arm."
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use evoxo_common::stats::rank_test;

    use super::*;
    use crate::testing::parse;

    fn settings(text: &str) -> Settings {
        Settings::of(&parse(&format!("experiment = \"evolve\"\n[settings]\n{text}\n")).arms[0].settings)
    }

    fn told(contests: &[Contest<'_>]) -> Vec<(String, String, f64)> {
        contests.iter().map(|it| (it.better.to_owned(), it.worse.to_owned(), it.share)).collect()
    }

    #[test]
    fn arms_of_one_problem_are_tested_in_pairs_with_correction() {
        let (sphere, other) = (settings("problem = \"sphere\""), settings("problem = \"sphere\"\nlength = 7"));
        let ended = |values: &[f64]| values.iter().map(|value| Outcome::Ended(*value)).collect::<Vec<_>>();
        let entry = |name, settings, values: &[f64]| Entry {
            name,
            settings,
            outcomes: ended(values),
            of: "",
            bests: Vec::new(),
        };
        let entries = [
            entry("a", &sphere, &[5.0, 6.0, 7.0, 8.0]),
            entry("b", &sphere, &[1.0, 2.0, 3.0, 4.0]),
            entry("c", &sphere, &[3.5, 4.5, 5.5, 6.5]),
            entry("longer", &other, &[0.0; 4]),
        ];
        let found = contests(&entries);
        let name = |text: &str| text.to_owned();
        let expected =
            [(name("b"), name("a"), 1.0), (name("c"), name("a"), 13.0 / 16.0), (name("b"), name("c"), 15.0 / 16.0)];
        assert_eq!(told(&found), expected, "longer has another genome");
        let p = rank_test(&[5.0, 6.0, 7.0, 8.0], &[1.0, 2.0, 3.0, 4.0]).unwrap().p;
        assert_eq!((found[0].p, found[0].corrected), (p, 3.0 * p));
        assert!(notes(&found)[1].ends_with("that takes 5 of each arm."), "{:?}", notes(&found));
        let longer = settings("problem = \"sphere\"\nevaluations = 90000");
        let found = contests(&[entry("a", &sphere, &[5.0, 6.0]), entry("b", &longer, &[1.0, 2.0])]);
        assert!(notes(&found)[1].starts_with("Arms with different numbers of evaluations"), "{:?}", notes(&found));
    }

    #[test]
    fn many_arms_are_tested_against_random_search() {
        let (sphere, random) =
            (settings("problem = \"sphere\""), settings("problem = \"sphere\"\nalgorithm = \"random\""));
        let entry = |settings, value: f64| Entry {
            name: "a",
            settings,
            outcomes: vec![Outcome::Ended(value); 6],
            of: "",
            bests: Vec::new(),
        };
        let many: Vec<Entry<'_>> = (0..=ARMS_MAX).map(|_| entry(&sphere, 1.0)).collect();
        assert!(contests(&many).is_empty() && contests(&many[1..]).len() == 66);
        assert!(note_of_many(&many).unwrap().contains("they are not tested: add an arm"));
        assert_eq!(note_of_many(&many[1..]), None);
        let beside: Vec<Entry<'_>> = many.into_iter().chain([entry(&random, 2.0)]).collect();
        let found = contests(&beside);
        // 13 pairs, each with the least possible P value of six and six replicas.
        let least = rank_test(&[2.0; 6], &[1.0; 6]).unwrap().p;
        assert!(found.len() == ARMS_MAX + 1 && found.iter().all(|it| it.share == 1.0 && it.corrected == 13.0 * least));
        assert!(note_of_many(&beside).unwrap().ends_with("So each is tested only against random search."));
    }

    /// Values are compared as numbers, and replicas that broke constraints come last.
    #[test]
    fn both_zeros_are_equal_and_infeasible_ends_rank_last() {
        let settings = settings("problem = \"sphere\"");
        let entry = |name, outcomes: [Outcome; 6]| Entry {
            name,
            settings: &settings,
            outcomes: outcomes.to_vec(),
            of: "",
            bests: Vec::new(),
        };
        let found = contests(&[entry("below", [Outcome::Ended(-0.0); 6]), entry("above", [Outcome::Ended(0.0); 6])]);
        assert_eq!((found[0].p, found[0].share), (1.0, 0.5));
        let ends = [1.0, 2.0, 3.0, 4.0, 5.0].map(Outcome::Ended);
        let broken = [ends[0], ends[1], ends[2], ends[3], ends[4], Outcome::Broken(0.1)];
        let worse = [ends[0], ends[1], ends[2], ends[3], ends[4], Outcome::Broken(f64::INFINITY)];
        assert_eq!(told(&contests(&[entry("worse", worse), entry("broken", broken)]))[0].0, "broken");
    }

    #[test]
    fn runs_that_reach_the_target_rank_by_time_and_before_others() {
        let settings = settings("problem = \"sphere\"\ntarget = \"0.1\"");
        let entry = |name, outcomes: &[Outcome]| Entry {
            name,
            settings: &settings,
            outcomes: outcomes.to_vec(),
            of: "",
            bests: Vec::new(),
        };
        let slow = entry("slow", &[Outcome::Reached(900.0), Outcome::Reached(800.0), Outcome::Ended(0.2)]);
        let fast = entry("fast", &[Outcome::Reached(100.0), Outcome::Reached(800.0), Outcome::Ended(0.3)]);
        // fast: 100 beats all three, 800 beats 900 and 0.2 and ties with 800, and 0.3 beats none.
        assert_eq!(told(&contests(&[slow, fast])), [("fast".to_owned(), "slow".to_owned(), 5.5 / 9.0)]);
    }
}
