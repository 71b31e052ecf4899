//! An agent's card, and the agent as a player.

use std::{any::Any, sync::Arc};

use evoxo_common::{
    card::{CardKind, Champion, Entries, Load, Showing, brief},
    rng::{Generator, below},
    text::quoted,
};
use evoxo_games::{
    board::{Geometry, Position, Side, pictures, tic_tac_toe},
    odds::{exact_json, proof_text},
    player::{Move, Play, Player, Thought, random::random, why},
};
use serde_json::{Map, Value, json};

use super::{
    agent::{Agent, RULES_MAX},
    rule::{self, PRIORITY_MAX, Rule},
    settings::WEIGHT_MAX,
    strength,
};

/// `{"kind": "rules", "weight": 3, "rules": ["PPV******3 priority 2 weight 5", ...]}`
///
/// `weight`, and the priority and the weight of a rule, are 0 if left out.
pub(super) const CARD: CardKind = CardKind { name: "rules", keys: &KEYS, about: &["cycles"], read, file: None };

const KEYS: [&str; 3] = ["kind", "weight", "rules"];

fn read(entries: &Entries, _: &str, _: &mut Load<'_>) -> Result<Arc<dyn Champion>, String> {
    Ok(Arc::new(read_agent(entries)?))
}

/// The agent that a card describes.
fn read_agent(entries: &Entries) -> Result<Agent, String> {
    let weight = match entries.get("weight") {
        None => 0,
        Some(weight) => {
            whole(weight).ok_or_else(|| format!("the card's weight is {}, not an integer weight", brief(weight)))?
        }
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

/// Reads "PPV******3 priority 2 weight 5". Priority and weight are 0 if left out.
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
fn to_map(agent: &Agent) -> Map<String, Value> {
    let rule = |(rule, weight): (&Rule, &i32)| format!("{rule} priority {} weight {weight}", rule.priority()).into();
    let rules: Vec<Value> = agent.rules.iter().zip(&agent.weights).map(rule).collect();
    let values = ["rules".into(), agent.weight.into(), rules.into()];
    KEYS.map(String::from).into_iter().zip(values).collect()
}

impl Champion for Agent {
    fn write(&self, _: &str) -> (Map<String, Value>, Option<(String, Vec<u8>)>) {
        (to_map(self), None)
    }

    fn show(&self, first: usize) -> Showing {
        let (rules, weight) = (self.rules.len(), self.weight);
        let text = format!(
            "An agent of {rules} rules, weight {weight}; the heaviest rules first. P is a stone of its own, C one\n\
             of its opponent's, V no stone, * anything; [ ] is where it moves.\n\n"
        );
        let picture = |(rule, weight): (Rule, i32)| {
            let mut lines = vec![format!("weight {weight}"), format!("priority {}", rule.priority())];
            lines.extend(pictures::rows(|cell| rule.need(cell).letter(), rule.to()));
            lines
        };
        let entry = |(rule, weight): (Rule, i32)| {
            let text = rule.to_string();
            let (when, to) = text.split_at(text.len() - 1);
            json!({"when": when, "move": to, "priority": rule.priority(), "weight": weight})
        };
        let rules = || self.heaviest_first().into_iter().take(first);
        Showing {
            text: text + &pictures::side_by_side(rules().map(picture).collect()),
            json: rules().map(entry).collect(),
        }
    }

    fn capability(&self, _: &Map<String, Value>) -> Result<Option<Box<dyn Any>>, String> {
        if let Some(rule) = self.rules.iter().find(|rule| !rule.is_valid()) {
            return Err(format!(
                "its rule {rule} moves to a stone, which loses a game at once: such an agent cannot be \
                 used as a player"
            ));
        }
        let play = Box::new(self.clone());
        Ok(Some(Box::new(Player { name: "rules".into(), geometry: tic_tac_toe(), side: None, play })))
    }
}

impl Play for Agent {
    /// The agent chooses at random between rules that rank equally, and if no rule matches.
    fn choose_move(&mut self, geometry: &'static Geometry, position: Position, rng: &mut Generator) -> Move {
        let (board, side) = (position.board(), position.to_move());
        let candidates = self.candidates(board.stones(side) as u32, board.stones(side.other()) as u32);
        if candidates.is_empty() {
            let cell = random(position, geometry, rng);
            return Move::new(cell, format!("{}, since none of its rules matches", why::BY_CHANCE));
        }
        let place = candidates[below(rng, candidates.len() as u64) as usize];
        let (rule, weight) = (self.rules[place], self.weights[place]);
        let why = format!("its rule {rule} decides (priority {}, weight {weight})", rule.priority());
        Move::new(rule.to(), why)
    }

    /// For each cell, the highest-ranking matching rule that moves there. The value is the rule's place among the matching
    /// rules, so the rules that decide have the greatest values.
    fn thoughts(&mut self, _: &'static Geometry, position: Position, rng: &mut Generator) -> Vec<Thought> {
        let (board, side) = (position.board(), position.to_move());
        let (own, other) = (board.stones(side) as u32, board.stones(side.other()) as u32);
        let rank = |rule: usize| (self.rules[rule].priority(), self.weights[rule]);
        let mut highest: [Option<usize>; 9] = [None; 9];
        for rule in (0..self.rules.len()).filter(|rule| self.rules[*rule].matches(own, other)) {
            let there = &mut highest[usize::from(self.rules[rule].to())];
            if there.is_none_or(|there| rank(rule) > rank(there)) {
                *there = Some(rule);
            }
        }
        let mut ranks: Vec<(u32, i32)> = highest.iter().flatten().map(|rule| rank(*rule)).collect();
        if ranks.is_empty() {
            let Move { cell, why } = self.choose_move(tic_tac_toe(), position, rng);
            return vec![Thought { cell, value: None, says: why }];
        }
        ranks.sort_unstable();
        ranks.dedup();
        let of = |rule: &usize| {
            let (priority, weight) = rank(*rule);
            let place = ranks.partition_point(|other| *other < (priority, weight));
            let says = format!("its rule {} says so (priority {priority}, weight {weight})", self.rules[*rule]);
            Thought { cell: self.rules[*rule].to(), value: Some(place as f64), says }
        };
        highest.iter().flatten().map(of).collect()
    }

    fn is_random(&self) -> bool {
        true
    }

    fn shares(&mut self, _: &'static Geometry, position: Position) -> Option<Vec<(u8, u32)>> {
        let (board, side) = (position.board(), position.to_move());
        let (shares, _) = self.odds(board.stones(side) as u32, board.stones(side.other()) as u32);
        Some((0..).zip(shares).filter(|(_, share)| *share > 0).collect())
    }

    /// The agent plays both sides without the filter, and partly at random. Its odds are exact except for rounding, and the
    /// proof considers every random choice.
    fn exact(&self) -> Result<Showing, String> {
        let (rules, share) = (self.rules.len(), 100.0 * strength::strength(self));
        let mut text = format!(
            "An agent of {rules} rules; it chooses at random between rules that rank equally, and if none matches.\n\
             Against a random mover it scores {share:.3} % on average, a draw being half a win.\n"
        );
        let mut json = Map::new();
        let odds = strength::odds(self).into_iter().zip(strength::odds_filtered(self));
        for (side, (unfiltered, filtered)) in Side::BOTH.into_iter().zip(odds) {
            let (side, exact) = (side.letter(), Agent::exact(self, side));
            text += &format!("\nAs {side}, against a random mover, exactly:\n");
            for (what, share) in [("wins", unfiltered.win), ("draws", unfiltered.draw), ("loses", unfiltered.loss)] {
                text += &format!("  {what:<6} {:>9.5} %\n", 100.0 * share);
            }
            let [win, draw, loss] = [filtered.win, filtered.draw, filtered.loss].map(|share| 100.0 * share);
            text += &format!(
                "Against one that completes a line or blocks one first: {win:.5} %, {draw:.5} % and {loss:.5} %.\n"
            );
            text += &proof_text(&exact, "it can lose");
            let mut entry = exact_json(&exact);
            (entry["win"], entry["draw"], entry["loss"]) =
                (filtered.win.into(), filtered.draw.into(), filtered.loss.into());
            entry["unfiltered"] = json!({"win": unfiltered.win, "draw": unfiltered.draw, "loss": unfiltered.loss});
            json.insert(side.to_string(), entry);
        }
        Ok(Showing { text, json: json.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::{card::Card, rng::Stream};
    use proptest::prelude::*;

    fn read_card(text: &str) -> Result<Card, String> {
        Card::read(&[&CARD], text, &mut |name| Err(format!("{name} is not there")))
    }

    proptest! {
        #[test]
        fn writing_and_reading_are_inverse(seed: u64, count in 1..=RULES_MAX) {
            let rng = &mut Stream::root(seed).rng();
            let rules: Vec<Rule> = (0..count).map(|_| Rule::random(rng)).collect();
            let weights = rules.iter().map(|_| below(rng, 100) as i32 - 50).collect();
            let card = Card::new(Agent { weight: below(rng, 9) as i32 - 4, weights, rules });
            prop_assert_eq!(read_card(&card.write("t").0), Ok(card));
        }
    }

    #[test]
    fn a_card_made_by_hand() {
        let card =
            read_card(r#"{"kind": "rules", "rules": ["PPV******3", "V********1 weight -3 priority 2"]}"#).unwrap();
        let agent: &Agent = card.champion_as().unwrap();
        assert_eq!((agent.weight, agent.weights.as_slice()), (0, [0, -3].as_slice()));
        assert_eq!(agent.rules.iter().map(|rule| rule.priority()).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn each_mistake_is_reported() {
        let cases = [
            (r#"{"kind": "rules"}"#, "the card has no list \"rules\""),
            (r#"{"kind": "rules", "rules": {}}"#, "the card has no list \"rules\""),
            (r#"{"kind": "rules", "rules": [7]}"#, "number 1 of the card's rules: 7 is not a text"),
            (r#"{"kind": "rules", "rules": [""]}"#, "\"\" is not a rule"),
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
            let sentence = read_card(text).unwrap_err();
            assert!(sentence.contains(part) && !sentence.contains('\n'), "{sentence}");
        }
        let many = vec!["\"V********1\""; 1025].join(", ");
        for (list, count) in [(many.as_str(), 1025), ("", 0)] {
            let sentence = read_card(&format!("{{\"kind\": \"rules\", \"rules\": [{list}]}}")).unwrap_err();
            assert_eq!(sentence, format!("the card has {count} rules: give 1 to 1024"));
        }
    }

    #[test]
    fn an_agent_that_loses_at_once_plays_no_games() {
        let card = read_card(r#"{"kind": "rules", "rules": ["V********1", "C********1"]}"#).unwrap();
        assert_eq!(
            card.capability::<Player>().map(drop).unwrap_err(),
            "its rule C********1 moves to a stone, which loses a game at once: such an agent cannot be \
             used as a player"
        );
    }

    #[test]
    fn an_agent_is_drawn_as_boards() {
        let rules = [("PPV******3", 2), ("C***V***C5", 3), ("*********9", 0), ("VVVVPVVVV1", 1), ("PCPCPC**V9", 1)];
        let rules = rules.iter().map(|(text, priority)| rule::read(text, *priority).unwrap()).collect();
        let mut agent = Agent::newborn(rules);
        (agent.weight, agent.weights) = (7, vec![12, -100, 0, 12, 3]);
        agent.rules.extend([agent.rules[0]; 2]);
        agent.weights.extend([-1, -2]);
        insta::assert_snapshot!(format!("{}{:#}\n", agent.show(100).text, agent.show(2).json));
        assert_eq!(agent.show(1).text.matches("priority ").count(), 1);
    }

    #[test]
    fn an_agent_names_the_rule_it_follows() {
        let rules = ["PPV******3", "V********1"].map(|text| rule::read(text, 1).unwrap());
        let mut agent = Agent::newborn(rules.to_vec());
        agent.weights = vec![4, -1];
        let rng = &mut Stream::root(1).rng();
        let mut chosen = |board| {
            let position = Position::of(tic_tac_toe(), tic_tac_toe().board_of(board).unwrap());
            agent.choose_move(tic_tac_toe(), position, rng)
        };
        let (wins, begins) = (chosen("XX./OO./..."), chosen("OO./XX./X.."));
        assert_eq!((wins.cell, wins.why.as_str()), (2, "its rule PPV******3 decides (priority 1, weight 4)"));
        assert_eq!(begins.cell, 2, "O sees the board with the sides swapped");
        assert_eq!(chosen(".../.X./...").cell, 0);
        let lots: Vec<Move> = (0..30).map(|_| chosen("X../.../...")).collect();
        assert!(lots.iter().all(|lot| lot.cell > 0 && lot.why.starts_with("by chance")), "{lots:?}");
        assert!(lots.windows(2).any(|two| two[0] != two[1]));
    }

    /// The agent values the cells among which it chooses most, and names one rule per cell.
    #[test]
    fn an_agent_plays_what_it_thinks() {
        let rng = &mut Stream::root(3).rng();
        let mut compared = 0;
        for _ in 0..50 {
            let rules: Vec<Rule> = (0..300).map(|_| Rule::random(rng)).collect();
            let weights = rules.iter().map(|_| below(rng, 5) as i32 - 2).collect();
            let mut agent = Agent { weight: 0, weights, rules };
            let mut position = Position::START;
            while tic_tac_toe().outcome(position.board()).is_none() {
                let (board, side) = (position.board(), position.to_move());
                let thoughts = agent.thoughts(tic_tac_toe(), position, rng);
                let candidates = agent.candidates(board.stones(side) as u32, board.stones(side.other()) as u32);
                let most = thoughts.iter().filter_map(|thought| thought.value).fold(-1.0, f64::max);
                let best = thoughts.iter().filter(|thought| thought.value == Some(most));
                let best: u64 = best.map(|thought| 1 << thought.cell).sum();
                let right = candidates.iter().fold(0, |all, rule| all | 1_u64 << agent.rules[*rule].to());
                assert_eq!(best, right, "{board:?}");
                compared += candidates.len();
                position = position.play(tic_tac_toe(), random(position, tic_tac_toe(), rng));
            }
        }
        assert!(compared > 100, "{compared}");
    }

    /// The odds of an agent include its random choices, also against a mover with the filter.
    #[test]
    fn agents_are_analysed_exactly() {
        let exact = Play::exact(&Agent::default()).unwrap();
        insta::assert_snapshot!(exact.text);
        assert_eq!(exact.json["X"]["unbeatable"], false);
    }
}
