//! An agent of rules as part of its card.

use serde_json::{Map, Value};

use super::{Entries, brief};
use crate::{
    board::quoted,
    experiment::rules::{
        agent::{Agent, RULES_MAX},
        rule::{self, PRIORITY_MAX, Rule},
        settings::WEIGHT_MAX,
    },
};

/// The keys that belong to the player.
pub(super) const KEYS: [&str; 3] = ["kind", "weight", "rules"];

/// The agent of a card.
pub(super) fn read(entries: &Entries) -> Result<Agent, String> {
    let weight = match entries.get("weight") {
        None => 0,
        Some(weight) => whole(weight).ok_or_else(|| format!("the card's weight is {}, not a weight", brief(weight)))?,
    };
    let Some(Value::Array(rules)) = entries.get("rules") else {
        return Err("the card has no list \"rules\", as in [\"PPV******3 priority 2 weight 5\"]".into());
    };
    if !(1..=RULES_MAX).contains(&rules.len()) {
        return Err(format!("the card has {} rules: give 1 to {RULES_MAX}", rules.len()));
    }
    let read = |(index, rule): (usize, &Value)| {
        read_rule(rule).map_err(|why| format!("number {} of the card's rules: {why}", index + 1))
    };
    let rules: Vec<(Rule, i32)> = rules.iter().enumerate().map(read).collect::<Result<_, String>>()?;
    let (rules, weights) = rules.into_iter().unzip();
    Ok(Agent { weight, rules, weights })
}

fn whole(value: &Value) -> Option<i32> {
    let weight = i32::try_from(value.as_i64()?).ok()?;
    (weight.unsigned_abs() <= WEIGHT_MAX as u32).then_some(weight)
}

/// "PPV******3 priority 2 weight 5"; either part may be left out, which means 0.
fn read_rule(value: &Value) -> Result<(Rule, i32), String> {
    let text = value.as_str().ok_or_else(|| format!("{} is not a text", brief(value)))?;
    let mut words = text.split_whitespace();
    let letters = words.next().unwrap_or_default();
    let (mut priority, mut weight) = (0, 0);
    let out_of_range = |what: &str, least: i32, most: i32, given: &str| {
        format!("the {what} of {} is {given}, but must be {least} to {most}", quoted(letters))
    };
    while let Some(word) = words.next() {
        let given = words.next().unwrap_or_default();
        match (word, given.parse::<i64>()) {
            ("priority", Ok(number)) => {
                let range = 0..=i64::from(PRIORITY_MAX);
                let most = PRIORITY_MAX as i32;
                let good = range.contains(&number).then_some(number as u32);
                priority = good.ok_or_else(|| out_of_range(word, 0, most, given))?;
            }
            ("weight", Ok(number)) => {
                let good = (number.unsigned_abs() <= WEIGHT_MAX as u64).then_some(number as i32);
                weight = good.ok_or_else(|| out_of_range(word, -WEIGHT_MAX, WEIGHT_MAX, given))?;
            }
            _ => {
                return Err(format!(
                    "after {} comes \"priority\" with 0 to {PRIORITY_MAX} or \"weight\" with a weight, not as in {}",
                    quoted(letters),
                    quoted(text)
                ));
            }
        }
    }
    Ok((rule::read(letters, priority)?, weight))
}

/// `kind`, `weight` and `rules`, in the agent's order.
pub(super) fn to_map(agent: &Agent) -> Map<String, Value> {
    let rule = |(rule, weight): (&Rule, &i32)| format!("{rule} priority {} weight {weight}", rule.priority()).into();
    let rules: Vec<Value> = agent.rules.iter().zip(&agent.weights).map(rule).collect();
    let values = ["rules".into(), agent.weight.into(), rules.into()];
    KEYS.map(String::from).into_iter().zip(values).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Card, Player};
    use crate::{
        experiment::rules::{agent::Agent, rule::Rule},
        rng::{Stream, below},
    };
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Card, String> {
        Card::read(text, |name| Err(format!("{name} is not there")))
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(seed: u64, count in 1..=128_usize) {
            let rng = &mut Stream::root(seed).rng();
            let rules: Vec<Rule> = (0..count).map(|_| Rule::random(rng)).collect();
            let weights = rules.iter().map(|_| below(rng, 100) as i32 - 50).collect();
            let card = Card::from(Player::Rules(Agent { weight: below(rng, 9) as i32 - 4, weights, rules }));
            prop_assert_eq!(read(&card.write("t").0), Ok(card));
        }
    }

    #[test]
    fn a_card_made_by_hand() {
        let card = read(r#"{"kind": "rules", "rules": ["PPV******3", "V********1 weight -3 priority 2"]}"#).unwrap();
        let Player::Rules(agent) = card.player else { panic!("rules") };
        assert_eq!((agent.weight, agent.weights.as_slice()), (0, [0, -3].as_slice()));
        assert_eq!(agent.rules.iter().map(|rule| rule.priority()).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases = [
            (r#"{"kind": "rules"}"#, "the card has no list \"rules\""),
            (r#"{"kind": "rules", "rules": {}}"#, "the card has no list \"rules\""),
            (r#"{"kind": "rules", "rules": [7]}"#, "number 1 of the card's rules: 7 is not a text"),
            (r#"{"kind": "rules", "rules": [""]}"#, "\"\" is not a rule"),
            (
                r#"{"kind": "rules", "rules": ["V********1", "C********1"]}"#,
                "number 2 of the card's rules: the rule C********1 moves to a cell that it wants to be taken",
            ),
            (
                r#"{"kind": "rules", "rules": ["V********1 priority 4"]}"#,
                "the priority of \"V********1\" is 4, but must be 0 to 3",
            ),
            (r#"{"kind": "rules", "rules": ["V********1 prioritty 2"]}"#, "\"priority\" with 0 to 3"),
            (r#"{"kind": "rules", "rules": ["V********1 weight"]}"#, "\"weight\" with a weight"),
            (
                r#"{"kind": "rules", "rules": ["V********1 weight 1073741824"]}"#,
                "1073741824, but must be -1073741823 to",
            ),
            (
                r#"{"kind": "rules", "rules": ["V********1 weight -9223372036854775808"]}"#,
                "is -9223372036854775808, but",
            ),
            (r#"{"kind": "rules", "rules": [], "weight": 0.5}"#, "the card's weight is 0.5"),
            (r#"{"kind": "rules", "rules": [], "weight": 9999999999}"#, "the card's weight is 9999999999"),
        ];
        for (text, part) in cases {
            let sentence = read(text).unwrap_err();
            assert!(sentence.contains(part) && !sentence.contains('\n'), "{sentence}");
        }
        let many = vec!["\"V********1\""; 129].join(", ");
        for (list, count) in [(many.as_str(), 129), ("", 0)] {
            let sentence = read(&format!("{{\"kind\": \"rules\", \"rules\": [{list}]}}")).unwrap_err();
            assert_eq!(sentence, format!("the card has {count} rules: give 1 to 128"));
        }
    }
}
