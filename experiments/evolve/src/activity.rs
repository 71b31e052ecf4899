//! Which parts of a candidate are there. A part may depend on another one: it is there only while that part has one of some
//! values. The genes of a part that is not there are neutral: the search keeps and changes them, and no problem gets them.

use std::iter::successors;

use serde_json::{Map, Value};

use super::{
    genome::{Candidate, Genome, Part, Type},
    notation::{Notation, chosen},
    tables::PartSettings,
};

/// The most values of a condition.
const VALUES_MAX: usize = 100;

/// A part is there only while another one is there and has one of these values.
#[derive(Clone, Debug, PartialEq)]
struct Condition {
    /// The index of the other part.
    on: usize,
    /// As [`Notation::json`] writes them.
    values: Vec<Value>,
}

/// The conditions of the parts of a genome.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Activity {
    /// One for each part. Empty if no part has one.
    conditions: Vec<Option<Condition>>,
}

impl Activity {
    /// The conditions of these parts.
    ///
    /// # Errors
    /// A sentence that says which condition is not valid.
    pub(super) fn of(parts: &[PartSettings]) -> Result<Self, String> {
        if parts.iter().all(|part| part.when.trim().is_empty()) {
            return Ok(Self::default());
        }
        let condition = |part: &PartSettings| {
            let read = (!part.when.trim().is_empty()).then(|| condition(&part.when, parts)).transpose();
            read.map_err(|why| format!("when of the part {:?}: {why}", part.name))
        };
        let activity = Self { conditions: parts.iter().map(condition).collect::<Result<_, String>>()? };
        match (0..parts.len()).find(|part| activity.chain(*part).nth(parts.len()).is_some()) {
            Some(part) => Err(format!(
                "when of the part {:?}: the part depends on itself, by way of {:?}; remove one of these conditions",
                parts[part].name,
                activity.chain(part).nth(1).map(|other| &parts[other].name[..]).unwrap_or_default()
            )),
            None => Ok(activity),
        }
    }

    /// A part, the part on which it depends, the part on which that one depends, and so on.
    fn chain(&self, part: usize) -> impl Iterator<Item = usize> {
        successors(Some(part), |part| Some(self.conditions[*part].as_ref()?.on))
    }

    /// Whether every part is always there.
    pub(super) const fn is_total(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Whether each part of a candidate is there. `notations` are those of its genome.
    pub(super) fn parts(&self, candidate: &Candidate, notations: &[Notation]) -> Vec<bool> {
        if self.is_total() {
            return vec![true; candidate.parts.len()];
        }
        let holds = |condition: &Condition| {
            let value = single(notations[condition.on].json(&candidate.parts[condition.on]));
            condition.values.contains(&value)
        };
        let holds: Vec<bool> = self.conditions.iter().map(|it| it.as_ref().is_none_or(holds)).collect();
        (0..holds.len()).map(|part| self.chain(part).all(|other| holds[other])).collect()
    }

    /// The values of the parts that are there, by the names of the parts.
    pub(super) fn values(&self, genome: &Genome, notations: &[Notation], candidate: &Candidate) -> Map<String, Value> {
        let genes = genome.parts.iter().zip(notations).zip(&candidate.parts);
        let there = genes.zip(self.parts(candidate, notations)).filter(|(_, there)| *there);
        there.map(|(((part, notation), genes), _)| (part.name.clone(), notation.json(genes))).collect()
    }
}

/// Reads a condition such as "optimizer = adam, sgd".
fn condition(text: &str, parts: &[PartSettings]) -> Result<Condition, String> {
    let (name, words) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} must be a part and its values, for example \"optimizer = adam, sgd\""))?;
    let name = name.trim();
    let on = parts
        .iter()
        .position(|part| part.name == name)
        .ok_or_else(|| format!("the genome has no part {name:?}: write the name of another part before the ="))?;
    let (part, notation) = (parts[on].part(), parts[on].notation(true));
    if part.length != 1 || !is_countable(&part, &notation) {
        return Err(format!(
            "a part can depend on a choice, whole numbers, bits or symbols of length 1, and {name:?} is no such part"
        ));
    }
    let words: Vec<&str> = words.split(',').map(str::trim).collect();
    if words.len() > VALUES_MAX {
        return Err(format!("it has {} values, more than {VALUES_MAX}: write fewer", words.len()));
    }
    let genome = Genome { parts: vec![part], bounded: true };
    let value = |word: &&str| {
        let never = |why: String| format!("{name:?} is never {word:?} ({why}): write values of that part");
        // Reading a choice compares it with each word as a value, which takes too long for many words in many conditions.
        if let Notation::Words(words) = &notation {
            let is_word = words.iter().any(|own| own == word);
            return if is_word { Ok(chosen(word)) } else { Err(never(format!("{word:?} is none of its choices"))) };
        }
        let given = if notation.is_text() { (*word).into() } else { chosen(word) };
        let read = notation.read(&genome.parts[0], &given).map(|genes| Candidate { parts: vec![genes] });
        let read = read.and_then(|candidate| genome.check(&candidate).map(|()| candidate));
        Ok(single(notation.json(&read.map_err(never)?.parts[0])))
    };
    Ok(Condition { on, values: words.iter().map(value).collect::<Result<_, String>>()? })
}

/// Whether a part has values that can be listed.
fn is_countable(part: &Part, notation: &Notation) -> bool {
    match (part.of, notation) {
        (Type::Real { .. }, Notation::Logarithm { whole, .. })
        | (Type::Integer { .. }, Notation::Steps { whole, .. }) => *whole,
        (Type::Integer { .. } | Type::Bits | Type::Symbols { .. }, _) => true,
        (Type::Real { .. } | Type::Permutation, _) => false,
    }
}

/// The value of a part with a single gene.
fn single(value: Value) -> Value {
    match value {
        Value::Array(mut list) if list.len() == 1 => list.remove(0),
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use evoxo_common::{experiment::Replica, rng::Stream};
    use proptest::prelude::*;

    use super::*;
    use crate::{card::Found, evaluation::Evaluation, messages::Item, recall::Names, settings::Settings, start};
    use crate::{tables::PART, testing::parse, wasm::written};

    fn parts(tables: &[String]) -> Vec<PartSettings> {
        let part = |text: &String| PartSettings::of(&PART.read(&text.replace("; ", "\n")).unwrap());
        tables.iter().map(part).collect()
    }

    /// A part of each type on which others may depend, with its values as a person writes them.
    const DECIDING: [(&str, &[&str]); 6] = [
        ("type = \"choice\"; choices = \"adam, 32, 1.5, true\"", &["adam", "32", "1.5", "true"]),
        ("type = \"integer\"; low = -1; high = 2", &["-1", "0", "1", "2"]),
        ("type = \"integer\"; low = 1; high = 4; scale = \"log\"", &["1", "2", "3", "4"]),
        ("type = \"integer\"; low = 10; high = 30; step = 10", &["10", "20", "30"]),
        ("type = \"bits\"", &["0", "1"]),
        ("type = \"symbols\"; alphabet = \"A=1\"", &["A", "=", "1"]),
    ];

    proptest! {
        /// The reference reads the conditions as texts and asks each part on which another one depends in turn.
        #[test]
        fn parts_are_there_as_the_reference_says(
            seed: u64,
            drawn in prop::collection::vec((0..DECIDING.len(), 0..8_usize, 1..15_usize, any::<bool>()), 1..8),
        ) {
            let said: Vec<Option<(usize, Vec<&str>)>> = drawn.iter().enumerate().map(|(index, (_, on, mask, depends))| {
                let on = on % index.max(1);
                let values = DECIDING[drawn[on].0].1;
                let chosen = values.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1).map(|(_, word)| *word);
                let chosen: Vec<&str> = chosen.collect();
                (index > 0 && *depends && !chosen.is_empty()).then_some((on, chosen))
            }).collect();
            let tables = drawn.iter().zip(&said).enumerate().map(|(index, ((of, ..), said))| {
                let when = said.as_ref().map(|(on, words)| format!("; when = \"p{on} = {}\"", words.join(" ,  ")));
                format!("name = \"p{index}\"; {}{}", DECIDING[*of].0, when.unwrap_or_default())
            });
            let parts = parts(&tables.collect::<Vec<_>>());
            let genome = Genome { parts: parts.iter().map(PartSettings::part).collect(), bounded: true };
            let notations: Vec<Notation> = parts.iter().map(|part| part.notation(true)).collect();
            let candidate = genome.random(&mut Stream::root(seed).rng());
            let text = |part: usize| match notations[part].json(&candidate.parts[part]) {
                Value::Array(list) => list[0].as_str().map_or_else(|| list[0].to_string(), str::to_owned),
                word => word.as_str().unwrap().to_owned(),
            };
            fn is_there(part: usize, said: &[Option<(usize, Vec<&str>)>], text: &dyn Fn(usize) -> String) -> bool {
                said[part].as_ref().is_none_or(|(on, words)| is_there(*on, said, text) && words.contains(&&text(*on)[..]))
            }
            let wanted: Vec<bool> = (0..parts.len()).map(|part| is_there(part, &said, &text)).collect();
            let activity = Activity::of(&parts).unwrap();
            prop_assert_eq!(activity.is_total(), said.iter().all(Option::is_none));
            prop_assert_eq!(activity.parts(&candidate, &notations), wanted);
        }
    }

    #[test]
    fn conditions_that_are_never_met_are_rejected_with_a_reason() {
        let (choice, real) = ("name = \"c\"; type = \"choice\"; choices = \"adam, sgd\"", "name = \"r\"");
        let others = [
            "name = \"two\"; type = \"bits\"; length = 2",
            "name = \"i\"; type = \"integer\"; high = 9",
            "name = \"s\"; type = \"symbols\"; alphabet = \"AB\"",
            "name = \"b\"; type = \"bits\"",
            "name = \"step\"; type = \"real\"; step = 0.5",
            "name = \"log\"; type = \"integer\"; low = 1; high = 4; scale = \"log\"",
        ];
        let many = format!("i = {}", vec!["1"; 101].join(","));
        let wrong: Vec<String> = [
            "adam",
            "x = 1",
            "= 1",
            "c =",
            "c = adam, lbfgs",
            "c = Adam",
            "r = 0.5",
            "two = 1",
            "i = 10",
            "i = 1.5",
            "s = C",
            "s = AB",
            "b = 2",
            "step = 0.5",
            "log = 5",
            "p = 1",
            &many,
        ]
        .map(|when| {
            let mut tables = vec![choice.to_owned(), real.to_owned()];
            tables.extend(others.map(str::to_owned));
            tables.push(format!("name = \"p\"; type = \"bits\"; when = \"{when}\""));
            Activity::of(&parts(&tables)).unwrap_err()
        })
        .to_vec();
        let circle = ["a", "b", "c"].iter().zip(["b", "c", "a"]);
        let circle: Vec<String> =
            circle.map(|(own, on)| format!("name = \"{own}\"; type = \"bits\"; when = \"{on} = 1\"")).collect();
        let circle = Activity::of(&parts(&circle)).unwrap_err();
        insta::assert_snapshot!([&wrong[..], &[circle]].concat().join("\n"));
        let file = "[settings]\nproblem = \"wasm:m.wasm\"\nobjectives = \"min f\"\n[[genome]]\nwhen = \"y = 1\"\n";
        let said = crate::testing::problems(&format!("experiment = \"evolve\"\n{file}")).to_string();
        assert!(said.contains("the genome has no part \"y\""), "{said}");
    }

    const SEARCH: &str =
        "experiment = \"evolve\"\n[settings]\nproblem = \"program:p\"\nobjectives = \"min f\"\nalgorithm = \"ga\"\n";
    const GENOME: &str = "[[genome]]\nname = \"optimizer\"\ntype = \"choice\"\nchoices = \"adam, sgd\"\n\
                          [[genome]]\nname = \"nesterov\"\ntype = \"bits\"\nwhen = \"optimizer = sgd\"\n\
                          [[genome]]\nname = \"momentum\"\nlength = 2\nwhen = \"nesterov = 1\"\n";

    /// Candidates that differ only in the genes of parts that are not there are the same to a problem, on cards, in tables and to
    /// recall, and different points of the search space.
    #[test]
    fn neutral_genes_are_seen_by_the_search_alone() {
        let settings = Settings::of(&parse(&format!("{SEARCH}{GENOME}")).arms[0].settings);
        let (genome, notations, activity) = (settings.genome(), settings.notations(), settings.activity());
        let read = |text: &str| start::candidates(text, &genome, &notations, &activity).unwrap().remove(0);
        let adam = read("{\"optimizer\": [\"adam\"], \"nesterov\": [1], \"momentum\": [0.25, 0.75]}");
        let other = read("{\"optimizer\": [\"adam\"], \"nesterov\": null}");
        let sgd = read("{\"optimizer\": [\"sgd\"], \"nesterov\": [0]}");
        let all = read("{\"optimizer\": [\"sgd\"], \"nesterov\": [1], \"momentum\": [0.25, 0.75]}");
        assert_eq!(
            [&adam, &other, &sgd, &all].map(|one| activity.parts(one, &notations)),
            [vec![true, false, false], vec![true, false, false], vec![true, true, false], vec![true; 3]]
        );
        assert!(adam.mark() != other.mark() && genome.distance(&adam, &other) > 0.0);
        let names = Names::of(&settings).unwrap();
        let item = |one: &Candidate| Item { id: "1".into(), seed: 1, candidate: Some(one.message()), number: 1 };
        let named = names.recallable(&[&adam, &other, &sgd, &all].map(item), &bytes::Bytes::new()).parts;
        assert!(named[0] == named[1] && named[1] != named[2] && named[2] != named[3]);
        let bytes = |one: &Candidate| written(one, &notations, &activity);
        assert_eq!(bytes(&adam), [0; 32]);
        assert_eq!(bytes(&adam), bytes(&other));
        assert_eq!(bytes(&sgd)[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(&all)[16..24], 0.25_f64.to_le_bytes());
        let value = Evaluation { objectives: vec![1.0], constraints: vec![], measures: vec![], failed: false };
        let found = [&adam, &other, &all].map(|one| Found::new(&settings, one, &value));
        assert_eq!(found[0], found[1]);
        let rows: Vec<String> =
            crate::card::sheet("front", &settings, &found).rows.iter().map(|row| row.join(";")).collect();
        assert_eq!(rows, ["1.0;adam;;;", "1.0;adam;;;", "1.0;sgd;1;0.25;0.75"]);
        // For the page, whose filters leave out missing values.
        let shown = crate::card::candidates(&settings, &found[..1]);
        assert_eq!(Value::from(shown), serde_json::json!([[1.0, "adam", null, null, null]]));
        let why = start::candidates("{\"optimizer\": [\"sgd\"]}", &genome, &notations, &activity).unwrap_err();
        assert_eq!(why, "candidate 1 of start: it has no \"nesterov\"");
    }

    /// A condition is part of the problem. A genome without conditions has the hashes of a build that knows none.
    #[test]
    fn conditions_are_part_of_the_problem() {
        let settings = |genome: &str| Settings::of(&parse(&format!("{SEARCH}{genome}")).arms[0].settings);
        let (with, without) = (settings(GENOME), settings(&GENOME.replace("when = ", "# ")));
        assert_ne!(with.problem_hash(), without.problem_hash());
        assert!(!with.same_problem(&without));
        insta::assert_snapshot!(without.problem_hash());
        let config = parse(&format!("{SEARCH}{}", GENOME.replace("when = ", "# ")));
        assert!(!config.to_toml().contains("when"));
        let replica = Replica::start(&config, &config.arms[0], 0);
        assert!(!String::from_utf8_lossy(&replica.plan(0..1)[0].shared).contains("when"));
    }
}
