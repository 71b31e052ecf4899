//! The conclusion of a run, in a few sentences: the answers to the questions that its kind asks (see [`crate::headline`]).
//! The state of the run comes before them, and replicas that ended early after them, both as `result.json` states them.

use serde_json::Value;

use crate::{
    experiment::{Config, screen_sentences},
    headline::Answer,
    text::thousands,
};
use answer::{ARMS_MAX, LEVEL};

mod answer;

/// The most letters of a sentence that this program did not make itself.
const LETTERS_MAX: usize = 2000;

/// The conclusion of the run with this `result.json`: made again from its figures, else the stored conclusion, else only the
/// extent of the run.
#[must_use]
pub fn of_result(config: &Config, result: &Value) -> String {
    let stored = result["conclusion"].as_str().filter(|stored| !stored.is_empty());
    match (answered(config, result), stored) {
        (Some(answered), _) => framed(config, result, &answered),
        // A stranger's text must not write anything but letters to the terminal.
        (None, Some(stored)) => stored.chars().filter(|letter| !letter.is_control()).take(LETTERS_MAX).collect(),
        (None, None) => framed(config, result, &extent_alone(config, result)),
    }
}

/// The conclusion that follows from the figures of a `result.json`.
#[must_use]
pub fn sentence(config: &Config, result: &Value) -> String {
    let answered = answered(config, result).unwrap_or_else(|| extent_alone(config, result));
    framed(config, result, &answered)
}

/// The answers to the questions of the run; `None` if the result has no figure that answers one.
fn answered(config: &Config, result: &Value) -> Option<String> {
    let finished = state(result) != UNFINISHED;
    if config.screen.is_some() && finished {
        return screen_sentences(config, result);
    }
    let arms = result["arms"].as_array().filter(|arms| arms.len() == config.arms.len())?;
    let headline = (config.kind.headline)(config, arms);
    let mut sentences = headline.sentences;
    let alone = sentences.is_empty() && headline.questions.len() == 1 || config.arms.len() == 1;
    for question in &headline.questions {
        let said = match finished {
            true => answer::answer(question, alone),
            // Before the end, some arms are further along than others.
            false => answer::figures(question, "So far"),
        };
        sentences.extend(said);
        if question.by == Answer::Contests {
            sentences.extend(contests(result));
        }
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// A conclusion, preceded by what must be known before it is read and followed by what remains to be said.
fn framed(config: &Config, result: &Value, said: &str) -> String {
    format!("{}{said}{}{}", caution(config, result), without_solution(config, result), ended_early(result))
}

/// The sentence for a run whose results say nothing more.
#[must_use]
pub fn extent_alone(config: &Config, result: &Value) -> String {
    match state(result) {
        // The caution before it has said so.
        UNFINISHED => format!("{}.", extent(config)),
        state => format!("{}, {state}.", extent(config)),
    }
}

/// What must be known before the sentence is read: that the run is unfinished or in doubt.
fn caution(config: &Config, result: &Value) -> String {
    match state(result) {
        UNFINISHED => {
            let (all, done) = (config.arms.len() as u64 * u64::from(config.replicas), replicas(result));
            let done = done.filter(|replica| replica["finished"] == true).count();
            match done as u64 {
                0 => "No replica is finished yet. ".into(),
                done if done == all => {
                    "The run is not finished: its last rounds are still checked, or not stored yet. ".into()
                }
                done => format!("The run is not finished: {done} of {} replicas are. ", thousands(all)),
            }
        }
        IN_DOUBT => "The results are in doubt: a worker computed wrongly. ".into(),
        _ => String::new(),
    }
}

/// Replicas that are not part of the means, as the kind reports them in the summary of the result.
fn without_solution(config: &Config, result: &Value) -> String {
    let said = |arm: &str| {
        let sentence = result["summary"][arm]["without_solution"].as_str()?;
        Some(if config.arms.len() == 1 { format!(" {sentence}.") } else { format!(" In {arm:?}: {sentence}.") })
    };
    let all: Vec<String> = config.arms.iter().filter_map(|arm| said(&arm.name)).collect();
    let more = if all.len() > ARMS_MAX { " And so on." } else { "" };
    all.into_iter().take(ARMS_MAX).collect::<String>() + more
}

/// Replicas that ended before their last round. They are part of the means all the same.
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

/// For kinds that have tested arms in pairs: which arms are better than which, from `contests` in the result.
fn contests(result: &Value) -> Option<String> {
    let all = result["contests"].as_array().map_or(&[][..], Vec::as_slice);
    let sure = all.iter().filter(|contest| contest["p_holm"].as_f64().is_some_and(|p| p < LEVEL));
    let sure: Vec<String> = sure
        .filter_map(|it| Some(format!("{:?} is better than {:?}", it["better"].as_str()?, it["worse"].as_str()?)))
        .collect();
    let pairs = thousands(all.len() as u64);
    let corrected = if all.len() > 1 { format!(", corrected for {pairs} pairs") } else { String::new() };
    let of_all = |key: &str| all.first()?[key].as_str();
    let (test, of) = (of_all("test")?, of_all("of")?);
    match sure.len() {
        _ if all.is_empty() => None,
        0 => Some(format!("Which arm is better may be chance ({test} of {of}{corrected}).")),
        count => {
            let more = if count > ARMS_MAX { format!(", and {} more", count - ARMS_MAX) } else { String::new() };
            let named = sure[..count.min(ARMS_MAX)].join(", ");
            Some(format!("Hardly chance ({test} of {of}, P < {LEVEL}{corrected}): {named}{more}."))
        }
    }
}

/// The extent of a run: "7 arms of 20 replicas each".
#[must_use]
pub fn extent(config: &Config) -> String {
    let s = |count: u64| if count == 1 { "" } else { "s" };
    let (arms, replicas) = (config.arms.len() as u64, u64::from(config.replicas));
    let each = if arms > 1 && replicas > 1 { " each" } else { "" };
    format!("{} arm{} of {} replica{}{each}", thousands(arms), s(arms), thousands(replicas), s(replicas))
}

const UNFINISHED: &str = "unfinished";
const IN_DOUBT: &str = "in doubt";

/// The state of a run according to its result: "unfinished", "finished" or "in doubt".
#[must_use]
pub fn state(result: &Value) -> &str {
    match result["digest"].is_null() {
        true => UNFINISHED,
        // Committed results of the first builds do not state it.
        false => result["state"].as_str().unwrap_or("finished"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kinds_tests_of_pairs_are_summarised() {
        let contest = |better: &str, p: f64| json!({"better": better, "worse": "z", "p_holm": p, "test": "Mann and Whitney's test", "of": "ends"});
        let said = |contests: &[Value]| super::contests(&json!({"contests": contests})).unwrap_or_default();
        assert_eq!(super::contests(&json!({})), None, "most kinds have none");
        assert_eq!(said(&[contest("a", 0.3)]), "Which arm is better may be chance (Mann and Whitney's test of ends).");
        assert_eq!(
            said(&[contest("a", 0.01), contest("b", 0.05)]),
            "Hardly chance (Mann and Whitney's test of ends, P < 0.05, corrected for 2 pairs): \"a\" is better than \"z\"."
        );
        let many = said(&vec![contest("a", 0.0); 6]);
        assert!(many.ends_with("\"a\" is better than \"z\", and 2 more."), "{many}");
    }

    /// A result of the small experiment in these tests, whose arms ended with these values.
    fn result(ends: &[(&str, &[f64])]) -> (Config, Value) {
        let names: String = ends.iter().map(|(name, _)| format!("[arms.{name:?}]\n")).collect();
        let config = crate::testing::config(&names);
        let curve = json!({"mean": [], "low": [], "high": []});
        let replicas = json!([{"replica": 0, "rows": 1, "finished": true}]);
        let arm =
            |(name, ends): &(&str, &[f64])| json!({"name": name, "ends": ends, "curve": curve, "replicas": replicas});
        (config, json!({"digest": "r1:0", "arms": ends.iter().map(arm).collect::<Vec<Value>>()}))
    }

    #[test]
    fn figures_take_precedence_over_the_stored_conclusion() {
        let (config, mut result) = result(&[("a", &[5.0, 5.1, 5.2]), ("b", &[1.0, 1.1, 1.2])]);
        result["conclusion"] = "\u{1b}[2Jas it was".into();
        let sentence = of_result(&config, &result);
        assert!(
            sentence.starts_with("Which arm ends with the most sum? By sum (the sum so far): \"a\" 5.10 ± 0.25, \"b\"")
        );
        result["arms"] = json!([]);
        assert_eq!(of_result(&config, &result), "[2Jas it was");
        result["conclusion"] = Value::Null;
        assert_eq!(of_result(&config, &result), "2 arms of 2 replicas each, finished.");
    }

    #[test]
    fn unfinished_runs_are_not_tested() {
        let (config, mut result) = result(&[("a", &[5.0, 5.1]), ("b", &[1.0, 1.1])]);
        result["digest"] = Value::Null;
        let sentence = of_result(&config, &result);
        assert!(sentence.starts_with("The run is not finished: 2 of 4 replicas are. So far sum"), "{sentence}");
        assert!(sentence.ends_with("(mean over 2 replicas ± 95 % interval)."), "{sentence}");
    }
}
