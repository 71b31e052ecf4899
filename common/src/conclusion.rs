//! What came of a run, in a sentence. It is made of the last rows of the replicas; what `result.json` says of the run's
//! state and of replicas that ended early is in it too.

use serde_json::Value;

use crate::{
    experiment::{Config, Replica},
    stats::{Estimate, Sample, estimate, t_test},
    text::{probability, thousands},
};

/// An arm with the [`last_values`] of its replicas.
struct Reached<'a> {
    arm: &'a str,
    values: Vec<f64>,
    estimate: Estimate,
}

/// The most letters of a sentence that somebody else has made.
const LETTERS_MAX: usize = 2000;

/// The conclusion of a run whose `result.json` says this: made of [`last_values`], or the same of a history, if they are known; otherwise the one that was written down when it was; otherwise no more than the extent of the run.
#[must_use]
pub fn of_result(config: &Config, result: &Value, values: Option<&[Vec<f64>]>) -> String {
    let stored = result["conclusion"].as_str().filter(|stored| !stored.is_empty());
    match (values, stored) {
        (Some(values), _) => sentence(config, result, values),
        // A stranger's text must not write to the terminal anything but letters.
        (None, Some(stored)) => stored.chars().filter(|letter| !letter.is_control()).take(LETTERS_MAX).collect(),
        (None, None) => sentence(config, result, &[]),
    }
}

/// What says how good each arm's replicas are ([`Config::deciding_column`]), in their last rows; a replica without a row, or without a solution,
/// has none.
#[must_use]
pub fn last_values(config: &Config, replicas: &[Replica]) -> Vec<Vec<f64>> {
    let column = config.deciding_column();
    let last = |replica: &Replica| config.kind.value(replica.history().last()?, column);
    let of_arm = |arm: &str| replicas.iter().filter(|it| it.arm() == arm).filter_map(last).collect();
    config.arms.iter().map(|arm| of_arm(&arm.name)).collect()
}

/// The conclusion, with the [`last_values`], as far as they are known.
#[must_use]
pub fn sentence(config: &Config, result: &Value, values: &[Vec<f64>]) -> String {
    let reached = config.arms.iter().zip(values).filter_map(|(arm, values)| {
        estimate(values).map(|estimate| Reached { arm: &arm.name, values: values.clone(), estimate })
    });
    let mut reached: Vec<Reached<'_>> = reached.collect();
    let column = &config.kind.columns[config.deciding_column()];
    let metric = format!("{} ({})", column.name, column.doc);
    let (state, own) = (state(result), own_words(config, result));
    let when = if state == UNFINISHED { "So far" } else { "At the end" };
    let said = match reached.as_slice() {
        _ if own.is_some() => own.unwrap_or_default(),
        [] => extent_alone(config, result),
        [only] => {
            let of_arm = if config.arms.len() == 1 { String::new() } else { format!(" in {:?}", only.arm) };
            format!("{when} {metric} is {}{of_arm}{}.", only.estimate.short(), over(only))
        }
        // What is best may differ from arm to arm: the problem, or whether less is better. And before the end some arms
        // are further than others.
        _ if config.kind.ranking.is_some() || state == UNFINISHED => {
            let each = reached.iter().take(ARMS_MAX).map(|arm| format!("{} in {:?}", arm.estimate.short(), arm.arm));
            let more = if reached.len() > ARMS_MAX { ", and so on" } else { "" };
            let each: Vec<String> = each.collect();
            let single = reached.iter().all(|arm| arm.values.len() == 1);
            let what = if single { "of one replica each" } else { "mean over replicas ± 95 % interval" };
            let means = format!("{when} {metric} is {}{more} ({what}).", each.join(", "));
            means + &contests(result)
        }
        _ => {
            // Of equals the first comes first.
            reached.sort_by(|one, other| other.estimate.mean.total_cmp(&one.estimate.mean));
            compared(&metric, &reached)
        }
    };
    format!("{}{said}{}{}", caution(config, result), without_solution(config, result), ended_early(result))
}

/// The sentence if nothing is known of what came of the run.
#[must_use]
pub fn extent_alone(config: &Config, result: &Value) -> String {
    format!("{}, {}.", extent(config), state(result))
}

/// What must be known before the sentence is read.
fn caution(config: &Config, result: &Value) -> String {
    match state(result) {
        UNFINISHED => {
            let (all, done) = (config.arms.len() as u64 * u64::from(config.replicas), replicas(result));
            let done = done.filter(|replica| replica["finished"] == true).count();
            match done as u64 == all {
                true => "The run is not finished: its last rounds are still checked, or not stored yet. ".into(),
                false => format!("The run is not finished: {done} of {} replicas are. ", thousands(all)),
            }
        }
        IN_DOUBT => "The results are in doubt: a worker computed wrongly. ".into(),
        _ => String::new(),
    }
}

/// Replicas that are not part of the means, as the kind says it in the summary of the result.
fn without_solution(config: &Config, result: &Value) -> String {
    let said = |arm: &str| {
        let sentence = result["summary"][arm]["without_solution"].as_str()?;
        Some(if config.arms.len() == 1 { format!(" {sentence}.") } else { format!(" In {arm:?}: {sentence}.") })
    };
    let all: Vec<String> = config.arms.iter().filter_map(|arm| said(&arm.name)).collect();
    let more = if all.len() > ARMS_MAX { " And so on." } else { "" };
    all.into_iter().take(ARMS_MAX).collect::<String>() + more
}

/// Replicas that ended before their last round are part of the means all the same.
fn ended_early(result: &Value) -> String {
    match replicas(result).filter(|replica| replica["failure"].is_string()).count() {
        0 => String::new(),
        1 => " One replica ended early, with an error.".into(),
        count => format!(" {} replicas ended early, with errors.", thousands(count as u64)),
    }
}

/// The entries of all replicas in a result.
fn replicas(result: &Value) -> impl Iterator<Item = &Value> {
    let arms = result["arms"].as_array().into_iter().flatten();
    arms.flat_map(|arm| arm["replicas"].as_array().into_iter().flatten())
}

/// The sentences of a kind that says by itself what came of each arm, in the summary of the result.
#[must_use]
pub fn own_words(config: &Config, result: &Value) -> Option<String> {
    let said = |arm: &str| {
        let sentence = result["summary"][arm]["sentence"].as_str()?;
        Some(if config.arms.len() == 1 { format!("{sentence}.") } else { format!("In {arm:?}: {sentence}.") })
    };
    let all: Option<Vec<String>> = config.arms.iter().take(ARMS_MAX).map(|arm| said(&arm.name)).collect();
    let more = if config.arms.len() > ARMS_MAX { " And so on." } else { "" };
    Some(all?.join(" ") + more)
}

/// Which arms are better than which, of a kind that has tested them in pairs: `contests` of the result.
fn contests(result: &Value) -> String {
    let all = result["contests"].as_array().map_or(&[][..], Vec::as_slice);
    let sure = all.iter().filter(|contest| contest["p_holm"].as_f64().is_some_and(|p| p < LEVEL));
    let sure: Vec<String> = sure
        .filter_map(|it| Some(format!("{:?} is better than {:?}", it["better"].as_str()?, it["worse"].as_str()?)))
        .collect();
    let pairs = thousands(all.len() as u64);
    let corrected = if all.len() > 1 { format!(", corrected for {pairs} pairs") } else { String::new() };
    // Contests of early builds do not say what they are of.
    let of = all.first().and_then(|contest| contest["of"].as_str()).map(|of| format!(" of {of}")).unwrap_or_default();
    let test = all.first().and_then(|contest| contest["test"].as_str()).unwrap_or("Mann and Whitney's test");
    match sure.len() {
        _ if all.is_empty() => String::new(),
        0 => format!(" Which arm is better may be chance ({test}{of}{corrected})."),
        count => {
            let more = if count > ARMS_MAX { format!(", and {} more", count - ARMS_MAX) } else { String::new() };
            let named = sure[..count.min(ARMS_MAX)].join(", ");
            format!(" Hardly chance ({test}{of}, P < {LEVEL}{corrected}): {named}{more}.")
        }
    }
}

/// Arms that a sentence names.
const ARMS_MAX: usize = 4;

/// The best of several arms, and whether it differs from the next.
fn compared(metric: &str, reached: &[Reached<'_>]) -> String {
    let (best, next) = (&reached[0], &reached[1]);
    let arms = reached.len();
    let equal = reached.iter().take_while(|arm| arm.estimate.mean == best.estimate.mean).count();
    if equal > 1 {
        let which = if equal == arms { format!("all {arms} arms") } else { format!("{equal} of {arms} arms") };
        return format!("At the end {metric} is the highest, and the same, in {which}: {}.", best.estimate.short());
    }
    let samples = Sample::of(&best.values).zip(Sample::of(&next.values));
    // Of many arms that differ by chance alone some pair differs much: each pair could have been the one that is named.
    let pairs = arms * (arms - 1) / 2;
    let corrected = if pairs > 1 { format!(" corrected for {} pairs", thousands(pairs as u64)) } else { String::new() };
    let sure = match samples.and_then(|(best, next)| t_test(best, next)) {
        None => "one replica says nothing about chance".to_owned(),
        Some(test) => {
            let p = (test.p * pairs as f64).min(1.0);
            let what = if p < LEVEL { "is hardly chance" } else { "may be chance" };
            format!("the difference {what} ({}, {}{corrected})", test.name(), p_text(p))
        }
    };
    let among = if arms == 2 { "Of two arms" } else { &format!("Of {} arms", thousands(arms as u64)) };
    format!(
        "{among}, {:?} ends with the highest {metric}: {}{}. Next is {:?} with {}; {sure}.",
        best.arm,
        best.estimate.short(),
        over(best),
        next.arm,
        next.estimate.short()
    )
}

/// Below this probability a difference is hardly chance.
const LEVEL: f64 = 0.05;

fn p_text(p: f64) -> String {
    let p = probability(p);
    if p.starts_with('<') { format!("P {p}") } else { format!("P = {p}") }
}

fn over(arm: &Reached<'_>) -> String {
    match arm.values.len() {
        1 => " (one replica)".into(),
        count => format!(" (mean over {} replicas ± 95 % interval)", thousands(count as u64)),
    }
}

/// How large a run is: "7 arms of 20 replicas each".
#[must_use]
pub fn extent(config: &Config) -> String {
    let s = |count: u64| if count == 1 { "" } else { "s" };
    let (arms, replicas) = (config.arms.len() as u64, u64::from(config.replicas));
    let each = if arms > 1 && replicas > 1 { " each" } else { "" };
    format!("{} arm{} of {} replica{}{each}", thousands(arms), s(arms), thousands(replicas), s(replicas))
}

const UNFINISHED: &str = "unfinished";
const IN_DOUBT: &str = "in doubt";

/// The state of a run that its result tells: "unfinished", "finished" or "in doubt".
#[must_use]
pub fn state(result: &Value) -> &str {
    match result["digest"].is_null() {
        true => UNFINISHED,
        // Results of early builds do not say their state.
        false => result["state"].as_str().unwrap_or("finished"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reached(arm: &'static str, values: &[f64]) -> Reached<'static> {
        Reached { arm, values: values.to_vec(), estimate: estimate(values).unwrap() }
    }

    #[test]
    fn the_best_arm_and_the_next() {
        let clear = [reached("a", &[5.0, 5.1, 5.2]), reached("b", &[1.0, 1.1, 1.2])];
        let sentence = compared("win (share)", &clear);
        assert!(
            sentence.starts_with("Of two arms, \"a\" ends with the highest win (share): 5.10 ± 0.25 (mean"),
            "{sentence}"
        );
        assert!(sentence.ends_with("the difference is hardly chance (Welch's test, P < 0.0001)."), "{sentence}");
        let vague = [reached("a", &[5.0, 9.0]), reached("b", &[4.0, 7.0]), reached("c", &[1.0])];
        assert!(compared("win", &vague).contains("may be chance"));
        // The same difference is surer between the only two arms than between any two of many.
        let arms = ["c", "d", "e", "f", "g", "h"].map(|arm| reached(arm, &[1.0, 1.1]));
        let pair = || vec![reached("a", &[5.0, 5.4, 5.8]), reached("b", &[4.0, 4.4, 4.8])];
        let many: Vec<Reached<'_>> = pair().into_iter().chain(arms).collect();
        let (alone, among) = (compared("win", &pair()), compared("win", &many));
        assert!(alone.contains("is hardly chance (Welch's test, P = 0.0"), "{alone}");
        assert!(among.contains("may be chance (Welch's test, P = 1.0"), "{among}");
        assert!(among.contains(" corrected for 28 pairs)") && !alone.contains("corrected"), "{among}");
        let single = [reached("a", &[5.0]), reached("b", &[4.0])];
        assert!(compared("win", &single).contains("one replica says nothing"));
        let constant = compared("win", &[reached("a", &[1.0, 1.0]), reached("b", &[0.0, 0.0])]);
        assert!(constant.contains("may be chance (by ranks, as no value varies, P = 0.33"), "{constant}");
        let equal = [reached("a", &[1.0, 1.0]), reached("b", &[1.0]), reached("c", &[0.0])];
        assert!(compared("win", &equal).contains("in 2 of 3 arms: 1.00"), "{}", compared("win", &equal));
    }

    #[test]
    fn pairs_of_arms_that_a_kind_has_tested() {
        let contest = |better: &str, p: f64| json!({"better": better, "worse": "z", "p_holm": p});
        let said = |contests: &[Value]| super::contests(&json!({"contests": contests}));
        assert_eq!(super::contests(&json!({})), "", "most kinds have none");
        assert_eq!(said(&[contest("a", 0.3)]), " Which arm is better may be chance (Mann and Whitney's test).");
        assert_eq!(
            said(&[contest("a", 0.01), contest("b", 0.05)]),
            " Hardly chance (Mann and Whitney's test, P < 0.05, corrected for 2 pairs): \"a\" is better than \"z\"."
        );
        let many = said(&vec![contest("a", 0.0); 6]);
        assert!(many.ends_with("\"a\" is better than \"z\", and 2 more."), "{many}");
    }
}
