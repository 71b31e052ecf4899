//! The answer to a question of a [`Headline`](crate::headline::Headline), as sentences.

use crate::{
    headline::{Answer, Entry, Question},
    math,
    stats::{Difference, Estimate, holm, is_plain},
    text::{probability, thousands},
};

/// A sentence names at most this many arms, or pairs of arms.
pub(super) const ARMS_MAX: usize = 4;
/// A list of arms in their order has at most this many names.
const ORDER_MAX: usize = 6;
/// At or below this probability, a difference is called hardly chance.
pub(super) const LEVEL: f64 = 0.05;

/// The figures of a question, without a test: for a run that goes on, or for arms that the kind itself has tested.
pub(super) fn figures(question: &Question, when: &str) -> Option<String> {
    let known: Vec<(&Entry, Estimate)> = question.arms.iter().filter_map(|arm| Some((arm, arm.estimate()?))).collect();
    let figure = &question.figure;
    match known.as_slice() {
        [] => None,
        [(only, estimate)] => {
            let of_arm = if question.arms.len() == 1 { String::new() } else { format!(" in {:?}", only.arm) };
            Some(format!("{when} {figure} is {}{of_arm} ({}).", text(question, estimate), what([*only].into_iter())))
        }
        several => {
            let each =
                several.iter().take(ARMS_MAX).map(|(arm, it)| format!("{} in {:?}", text(question, it), arm.arm));
            let each: Vec<String> = each.collect();
            let more = if several.len() > ARMS_MAX { ", and so on" } else { "" };
            let what = what(several.iter().map(|(arm, _)| *arm));
            Some(format!("{when} {figure} is {}{more} ({what}).", each.join(", ")))
        }
    }
}

/// The answer at the end of a run.
pub(super) fn answer(question: &Question, alone: bool) -> Option<String> {
    let arms = question.arms.iter().filter(|arm| !arm.values.is_empty()).count();
    match &question.by {
        Answer::Sentences => alone.then(|| figures(question, "At the end")).flatten(),
        Answer::Contests if arms > 1 => Some(format!("{} {}", question.asks, figures(question, "At the end")?)),
        Answer::Contests => figures(question, "At the end"),
        // A single arm says nothing about others.
        Answer::Order | Answer::Pairs(_) if arms < 2 => figures(question, "At the end"),
        Answer::Order => Some(format!("{} {}", question.asks, order(question))),
        Answer::Pairs(pairs) => Some(format!("{} {}", question.asks, differences(question, pairs))),
    }
}

/// An estimate of the question's figure, which may be a share in percent.
fn text(question: &Question, estimate: &Estimate) -> String {
    match estimate.half_width {
        Some(half_width) if half_width >= 50.0 && question.figure.contains('%') => {
            estimate.percent(estimate.decimals())
        }
        _ => estimate.short(),
    }
}

/// "mean over 20 replicas ± 95 % interval".
fn what<'a>(arms: impl Iterator<Item = &'a Entry>) -> String {
    let counts: Vec<usize> = arms.map(|arm| arm.values.len()).collect();
    let (least, most) = (counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0));
    match (least, most) {
        (1, 1) if counts.len() == 1 => "one replica".into(),
        (1, 1) => "one replica each".into(),
        (least, most) if least == most => {
            format!("mean over {} replicas ± 95 % interval", thousands(most as u64))
        }
        (least, most) => format!("mean over {least} to {} replicas ± 95 % interval", thousands(most as u64)),
    }
}

/// The arms in their order, with the neighbours that differ.
fn order(question: &Question) -> String {
    let known = question.arms.iter().enumerate().filter_map(|(place, arm)| Some((place, arm.estimate()?)));
    let mut known: Vec<(usize, Estimate)> = known.collect();
    // Among equal arms, the first one in the file comes first.
    known.sort_by(|(_, one), (_, other)| math::order(other.mean, one.mean));
    let name = |place: usize| format!("{:?}", question.arms[place].arm);
    let shown: Vec<String> =
        known.iter().take(ORDER_MAX).map(|(place, it)| format!("{} {}", name(*place), text(question, it))).collect();
    let more = known.len().saturating_sub(ORDER_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let listed = format!(
        "By {}: {}{more} ({}).",
        question.figure,
        shown.join(", "),
        what(question.arms.iter().filter(|arm| !arm.values.is_empty()))
    );
    let neighbours: Vec<[usize; 2]> = known.windows(2).map(|pair| [pair[0].0, pair[1].0]).collect();
    // The order follows from the values, so any two arms could have become neighbours.
    let pairs = known.len() * (known.len() - 1) / 2;
    let tested = neighbours.iter().filter_map(|pair| {
        let difference = question.difference(*pair)?;
        Some((*pair, Difference { p: (difference.p * pairs as f64).min(1.0), ..difference }))
    });
    let tested: Vec<([usize; 2], Difference)> = tested.collect();
    let corrected =
        if pairs > 1 { format!(", corrected for {} pairs", thousands(pairs as u64)) } else { String::new() };
    let equal = |(_, difference): &([usize; 2], Difference)| difference.mean == 0.0 && difference.half_width == 0.0;
    if tested.is_empty() {
        return format!("{listed} {NO_TEST}");
    }
    if tested.iter().all(equal) {
        return format!("{listed} All are the same.");
    }
    let test = test(question, tested.iter().map(|(_, difference)| difference));
    if let ([_], [(_, difference)]) = (neighbours.as_slice(), tested.as_slice()) {
        let difference = signed(difference, false);
        return format!(
            "{listed} The difference, {difference}, {} ({test}, {}).",
            verdict(tested[0].1.p),
            p_text(tested[0].1.p)
        );
    }
    let sure: Vec<String> = tested
        .iter()
        .filter(|(_, difference)| difference.p <= LEVEL)
        .map(|([one, two], _)| format!("{} over {}", name(*one), name(*two)))
        .collect();
    match sure.len() {
        0 => format!("{listed} Between neighbours in this order the difference may be chance ({test}{corrected})."),
        all => {
            let rest = if all < neighbours.len() { "; other neighbours may differ by chance" } else { "" };
            format!("{listed} Hardly chance ({test}, P ≤ {LEVEL}{corrected}): {}{rest}.", sure.join(", "))
        }
    }
}

/// Used instead of a test if there are only single replicas.
const NO_TEST: &str = "One replica says nothing about chance.";

/// The differences that the kind asks about.
fn differences(question: &Question, pairs: &[[usize; 2]]) -> String {
    let found = pairs.iter().filter_map(|pair| Some((*pair, question.difference(*pair)?)));
    let mut found: Vec<([usize; 2], Difference)> = found.collect();
    if found.is_empty() {
        return format!("{} {NO_TEST}", figures(question, "At the end").unwrap_or_default());
    }
    let corrected = holm(&found.iter().map(|(_, difference)| difference.p).collect::<Vec<f64>>());
    found.iter_mut().zip(corrected).for_each(|((_, difference), p)| difference.p = p);
    let test = test(question, found.iter().map(|(_, difference)| difference));
    let count = found.len();
    let corrected = if count > 1 { format!(", corrected by Holm's method for {count} pairs") } else { String::new() };
    let how = format!("Differences are means over replicas ± 95 % interval; {test}{corrected}.");
    let figure = &question.figure;
    if count <= ARMS_MAX {
        let each = |(pair, difference): &([usize; 2], Difference)| {
            let verdict = if difference.p <= LEVEL { "hardly chance" } else { "may be chance" };
            format!("{} ({verdict}, {})", between(question, *pair, difference), p_text(difference.p))
        };
        let each: Vec<String> = found.iter().map(each).collect();
        return format!("By {figure}: {}. {how}", each.join("; "));
    }
    let mut sure: Vec<&([usize; 2], Difference)> = found.iter().filter(|(_, it)| it.p <= LEVEL).collect();
    sure.sort_by(|(_, one), (_, other)| other.mean.abs().total_cmp(&one.mean.abs()));
    let named: Vec<String> =
        sure.iter().take(ARMS_MAX).map(|(pair, difference)| between(question, *pair, difference)).collect();
    let more = sure.len().saturating_sub(ARMS_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    match sure.len() {
        0 => format!("By {figure} each of {count} differences may be chance. {how}"),
        all => format!(
            "By {figure} {all} of {count} differences are hardly chance (P ≤ {LEVEL}): {}{more}. {how}",
            named.join("; ")
        ),
    }
}

/// "\"short\" over \"long\" by 3.1 ± 0.4": the arm with the greater value comes first.
fn between(question: &Question, [one, two]: [usize; 2], difference: &Difference) -> String {
    let (more, less) = if difference.mean < 0.0 { (two, one) } else { (one, two) };
    let [more, less] = [more, less].map(|place| &question.arms[place].arm);
    format!("{more:?} over {less:?} by {}", signed(difference, true))
}

/// A difference with its interval. Without the sign if `size` is set, because the text already states the direction.
fn signed(difference: &Difference, size: bool) -> String {
    let mean = if size { difference.mean.abs() } else { difference.mean };
    let estimate = Estimate { mean, half_width: Some(difference.half_width) };
    let greatest = mean.abs().max(difference.half_width);
    if is_plain(greatest) { estimate.text(estimate.decimals()) } else { estimate.powers() }
}

/// The name of the test, and what it relies on.
fn test<'a>(question: &Question, mut tested: impl Iterator<Item = &'a Difference>) -> String {
    match question.shared {
        Some(shared) => format!("t-test paired by replica: same {shared}"),
        None => tested.next().map_or("", Difference::name).to_owned(),
    }
}

fn verdict(p: f64) -> &'static str {
    if p <= LEVEL { "is hardly chance" } else { "may be chance" }
}

pub(super) fn p_text(p: f64) -> String {
    let p = probability(p);
    if p.starts_with('<') { format!("P {p}") } else { format!("P = {p}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(by: Answer, shared: Option<&'static str>, arms: &[(&str, &[f64])]) -> Question {
        let arm = |(name, values): &(&str, &[f64])| Entry {
            arm: (*name).to_owned(),
            values: (0..).zip(values.iter().copied()).collect(),
        };
        Question {
            asks: "Which wins?".into(),
            figure: "win %".into(),
            by,
            shared,
            arms: arms.iter().map(arm).collect(),
        }
    }

    fn order(arms: &[(&str, &[f64])]) -> String {
        answer(&question(Answer::Order, None, arms), true).unwrap()
    }

    #[test]
    fn a_ranking_says_which_neighbours_differ() {
        let clear = order(&[("b", &[1.0, 1.1, 1.2]), ("a", &[5.0, 5.1, 5.2])]);
        assert_eq!(
            clear,
            "Which wins? By win %: \"a\" 5.10 ± 0.25, \"b\" 1.10 ± 0.25 (mean over 3 replicas ± 95 % interval). \
             The difference, 4.00 ± 0.23, is hardly chance (Welch's test, P < 0.0001)."
        );
        let vague = order(&[("a", &[5.0, 9.0]), ("b", &[4.0, 7.0]), ("c", &[1.0])]);
        assert!(vague.contains("mean over 1 to 2 replicas") && vague.contains("may be chance"), "{vague}");
        // The same difference is more certain between the only two arms than between any two of many.
        let pair: [(&str, &[f64]); 2] = [("a", &[5.0, 5.4, 5.8]), ("b", &[4.0, 4.4, 4.8])];
        let others = ["c", "d", "e", "f", "g", "h"].map(|arm| (arm, &[4.4, 4.5][..]));
        let many: Vec<(&str, &[f64])> = pair.into_iter().chain(others).collect();
        assert!(order(&pair).contains("is hardly chance (Welch's test, P = 0.0"), "{}", order(&pair));
        let among = order(&many);
        assert!(among.contains("and 2 more (mean") && among.contains("corrected for 28 pairs)"), "{among}");
        assert!(order(&[("a", &[5.0]), ("b", &[4.0])]).ends_with("One replica says nothing about chance."));
        let constant = order(&[("a", &[1.0, 1.0]), ("b", &[0.0, 0.0])]);
        assert!(constant.contains("may be chance (by ranks, because no value varies, P = 0.33"), "{constant}");
        assert!(order(&[("a", &[1.0, 1.0]), ("b", &[1.0, 1.0])]).ends_with("All are the same."));
    }

    /// What replicas share is not chance: if a difference is the same in each of them, it is certain, however much the
    /// replicas vary.
    #[test]
    fn values_shared_by_replicas_are_subtracted() {
        let arms: [(&str, &[f64]); 2] = [("old", &[1.0, 5.0, 9.0, 3.0]), ("new", &[1.5, 5.6, 9.4, 3.5])];
        let say = |shared| answer(&question(Question::from_the_first(2), shared, &arms), true).unwrap();
        let (paired, unpaired) = (say(Some("boards")), say(None));
        assert_eq!(
            paired,
            "Which wins? By win %: \"new\" over \"old\" by 0.50 ± 0.13 (hardly chance, P = 0.0012). Differences are means over \
             replicas ± 95 % interval; t-test paired by replica: same boards."
        );
        assert!(unpaired.contains("\"new\" over \"old\" by 0.5 ± "), "{unpaired}");
        assert!(unpaired.ends_with("interval; Welch's test."), "{unpaired}");
        // A replica that only one arm has does not belong to a pair.
        let mut question = question(Question::from_the_first(2), Some("boards"), &arms);
        question.arms[0].values.remove(1);
        assert_eq!(question.difference([1, 0]).unwrap().freedom, 2.0);
    }

    #[test]
    fn only_significant_differences_of_many_are_named() {
        let high: Vec<(String, Vec<f64>)> = (1..=6)
            .map(|arm| (format!("h{arm}"), [0.0, 0.1, 0.2].map(|it| it + f64::from(arm) * 3.0).to_vec()))
            .collect();
        let mut arms: Vec<(&str, &[f64])> = vec![("base", &[0.0, 0.1, 0.2])];
        arms.extend(high.iter().map(|(name, values)| (name.as_str(), values.as_slice())));
        let said = answer(&question(Question::from_the_first(7), None, &arms), true).unwrap();
        assert!(
            said.contains("6 of 6 differences are hardly chance (P ≤ 0.05): \"h6\" over \"base\" by 18.00"),
            "{said}"
        );
        assert!(said.contains("; and 2 more. ") && said.ends_with("Holm's method for 6 pairs."), "{said}");
        let even: Vec<(&str, &[f64])> = vec![("a", &[0.0, 0.1]); 7];
        let said = answer(&question(Question::from_the_first(7), None, &even), true).unwrap();
        assert!(said.starts_with("Which wins? By win % each of 6 differences may be chance. "), "{said}");
    }

    #[test]
    fn a_kinds_own_conclusion_is_not_repeated() {
        let question = question(Answer::Sentences, None, &[("a", &[1.0, 2.0])]);
        assert_eq!(answer(&question, false), None);
        assert!(answer(&question, true).unwrap().starts_with("At the end win % is 1.5 ± 6.4 (mean over 2 "));
    }
}
