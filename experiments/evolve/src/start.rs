//! Candidates with which a search begins: known solutions, or the champions of another run.
//!
//! The setting `start` has them as JSON, with the genes that a problem gets: `[{"x": [0.5, 2.0]}]`, `[[0.5, 2.0]]` if the genome
//! has one part, or one of either without the outer brackets. `start` may also name a file with such JSON, or a card; the
//! file's candidates then take its place before the run begins.

use serde_json::{Map, Value};

use super::{
    activity::Activity,
    genome::{Candidate, Genome, Part},
    notation::Notation,
};

/// The most characters of the setting.
pub(super) const START_MAX: usize = 200_000;

/// The file that the setting names; `None` if it has the candidates themselves, or none.
pub(super) fn file(text: &str) -> Option<&str> {
    let text = text.trim();
    (!text.is_empty() && !text.starts_with(['[', '{'])).then_some(text)
}

/// The candidates of a file, as the setting has them.
pub(super) fn of_file(bytes: &[u8]) -> Result<String, String> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|why| format!("it must be a card or candidates in JSON, such as [{{\"x\": [0.5, 2]}}]: {why}"))?;
    let text = Value::from_iter(each(value)?).to_string();
    match text.len() <= START_MAX {
        true => Ok(text),
        false => Err(format!("its candidates have {} characters; at most {START_MAX} are possible", text.len())),
    }
}

/// The candidates of the setting, for this genome.
pub(super) fn candidates(
    text: &str,
    genome: &Genome,
    notations: &[Notation],
    activity: &Activity,
) -> Result<Vec<Candidate>, String> {
    if text.trim().is_empty() || file(text).is_some() {
        return Ok(Vec::new());
    }
    let value: Value = serde_json::from_str(text).map_err(|why| format!("start is not JSON: {why}"))?;
    let numbered = |(number, value): (usize, Value)| {
        candidate(value, genome, notations, activity).map_err(|why| format!("candidate {} of start: {why}", number + 1))
    };
    each(value)?.into_iter().enumerate().map(numbered).collect()
}

/// Each candidate of a JSON value, which may be a single one. Of a card only the genes are left.
fn each(value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Object(_) => Ok(vec![genes_of(value)]),
        Value::Array(list) if list.iter().all(|one| one.is_object() || one.is_array()) => {
            Ok(list.into_iter().map(genes_of).collect())
        }
        Value::Array(_) => Ok(vec![value]),
        _ => Err("candidates are objects or lists, for example [{\"x\": [0.5, 2]}]".into()),
    }
}

fn genes_of(value: Value) -> Value {
    match value.get("genes") {
        Some(genes @ Value::Object(_)) if value.get("kind").is_some() => genes.clone(),
        _ => value,
    }
}

/// A candidate in JSON. A part that is not there may be left out, or null; its genes are then those in the middle.
pub(super) fn candidate(
    value: Value,
    genome: &Genome,
    notations: &[Notation],
    activity: &Activity,
) -> Result<Candidate, String> {
    let named: Map<String, Value> = match (value, &genome.parts[..]) {
        (Value::Object(named), _) => named,
        (list, [only]) => Map::from_iter([(only.name.clone(), list)]),
        _ => return Err("the genome has several parts: give an object with a list for each".into()),
    };
    if let Some(name) = named.keys().find(|name| genome.parts.iter().all(|part| part.name != **name)) {
        return Err(format!("the genome has no part {name:?}"));
    }
    let given = |part: &Part| named.get(&part.name).filter(|values| activity.is_total() || !values.is_null());
    let genes = |(part, notation): (&Part, &Notation)| match given(part) {
        Some(values) => notation.read(part, values).map_err(|why| format!("part {:?}: {why}", part.name)),
        None => Ok(part.middle()),
    };
    let parts = genome.parts.iter().zip(notations).map(genes).collect::<Result<_, String>>()?;
    let candidate = Candidate { parts };
    let is_there = activity.parts(&candidate, notations);
    if let Some((part, _)) = genome.parts.iter().zip(is_there).find(|(part, there)| *there && given(part).is_none()) {
        return Err(format!("it has no {:?}", part.name));
    }
    genome.check(&candidate)?;
    Ok(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{settings::Settings, tables::PART, testing::parse};

    fn settings(start: &str, genome: &[&str]) -> Settings {
        let parts: String = genome.iter().map(|part| format!("[[genome]]\n{}\n", part.replace("; ", "\n"))).collect();
        let head = "experiment = \"evolve\"\n[settings]\nproblem = \"program:p\"\nobjectives = \"min f\"\n";
        Settings::of(&parse(&format!("{head}start = '{start}'\n{parts}")).arms[0].settings)
    }

    /// What a card says of a candidate reads as the same candidate.
    #[test]
    fn genes_are_read_as_cards_have_them() {
        let genome = [
            "name = \"r\"; length = 2; low = -1",
            "name = \"log\"; low = 0.001; high = 1; scale = \"log\"",
            "name = \"n\"; type = \"integer\"; low = 1; high = 1000; scale = \"log\"",
            "name = \"s\"; low = 0; high = 1; step = 0.1",
            "name = \"b\"; type = \"bits\"; length = 3",
            "name = \"o\"; type = \"permutation\"; length = 4",
            "name = \"t\"; type = \"symbols\"; length = 3; alphabet = \"ACGT\"",
            "name = \"c\"; type = \"choice\"; length = 2; choices = \"adam, 32, sgd\"",
        ];
        let settings = settings("", &genome);
        let (genome, notations) = (settings.genome(), settings.notations());
        for seed in 0..50 {
            let drawn = genome.random(&mut evoxo_common::rng::Stream::root(seed).rng());
            let said = |one: &Candidate| {
                let genes = one.parts.iter().zip(&notations).map(|(genes, notation)| notation.json(genes));
                Map::from_iter(genome.parts.iter().map(|part| part.name.clone()).zip(genes))
            };
            let card = serde_json::json!({"kind": "candidate", "objectives": {}, "genes": said(&drawn)});
            let text = of_file(card.to_string().as_bytes()).unwrap();
            let read = candidates(&text, &genome, &notations, &Activity::default()).unwrap();
            assert_eq!(read.len(), 1);
            assert_eq!(said(&read[0]), said(&drawn));
        }
    }

    #[test]
    fn candidates_may_be_lists_or_objects() {
        let settings = settings("", &["length = 2"]);
        let (genome, notations) = (settings.genome(), settings.notations());
        let count = |text: &str| candidates(text, &genome, &notations, &Activity::default()).map(|all| all.len());
        assert_eq!(count("[0.5, 1]"), Ok(1));
        assert_eq!(count("[[0.5, 1], {\"x\": [0, 0]}]"), Ok(2));
        assert_eq!(count("{\"x\": [0.25, \"0.5\"]}"), Ok(1));
        assert_eq!(count(""), Ok(0));
        assert_eq!(count("best.json"), Ok(0));
        for (text, why) in [
            ("[0.5]", "candidate 1 of start: part \"x\" has 1 gene, not 2"),
            ("[[0, 0], [0, 2]]", "candidate 2 of start: part \"x\": gene 2 is 2.0, but it must be from 0.0 to 1.0"),
            ("[[0, \"a\"]]", "candidate 1 of start: part \"x\": gene 2: \"a\" is no number"),
            ("{\"y\": [0, 0]}", "candidate 1 of start: the genome has no part \"y\""),
            ("{}", "candidate 1 of start: it has no \"x\""),
            ("[0.5", "start is not JSON: EOF while parsing a list at line 1 column 4"),
        ] {
            assert_eq!(count(text), Err(why.into()), "{text}");
        }
    }

    #[test]
    fn a_note_says_how_many_candidates_are_used() {
        let notes = |more: &str| {
            let text = "experiment = \"evolve\"\n[settings]\nlength = 2\nstart = '[[1, 1], [2, 2], [3, 3]]'\n";
            parse(&format!("{text}{more}")).notes()
        };
        assert_eq!(notes("algorithm = \"ga\""), [""; 0]);
        assert_eq!(notes("window = 2"), [""; 0]);
        assert_eq!(
            notes("algorithm = \"ga\"\npopulation = 2"),
            ["arm \"main\": start has 3 candidates, but ga begins with only 2 of them"]
        );
        let around = "arm \"main\": start has 3 candidates, but cma-es begins with only 1 of them";
        assert_eq!(notes("algorithm = \"cma-es\""), [around]);
        assert_eq!(notes("algorithm = \"cma-es\"\nnoise = \"yes\""), [around]);
    }

    #[test]
    fn values_that_a_part_does_not_have_are_refused() {
        let read = |part: &str, values: &str| {
            let settings = crate::tables::PartSettings::of(&PART.read(&part.replace("; ", "\n")).unwrap());
            let (genome, notation) = (Genome { parts: vec![settings.part()], bounded: true }, settings.notation(true));
            candidates(values, &genome, &[notation], &Activity::default()).map(|_| ())
        };
        let step = "low = 0; high = 1; step = 0.25";
        assert_eq!(read(step, "[0.75]"), Ok(()));
        assert_eq!(
            read(step, "[0.7]"),
            Err("candidate 1 of start: part \"x\": gene 1: 0.7 is between two steps".into())
        );
        let log = "low = 0.001; high = 1; scale = \"log\"";
        assert_eq!(read(log, "[1]"), Ok(()));
        assert_eq!(
            read(log, "[2]"),
            Err("candidate 1 of start: part \"x\": gene 1: 2.0 must be from 0.001 to 1.0".into())
        );
        let choice = "type = \"choice\"; choices = \"adam, 32\"";
        assert_eq!(read(choice, "[32]"), Ok(()));
        assert_eq!(
            read(choice, "[\"sgd\"]"),
            Err("candidate 1 of start: part \"x\": gene 1: \"sgd\" is none of its choices".into())
        );
        let letters = "type = \"symbols\"; length = 2; alphabet = \"AB\"";
        assert_eq!(read(letters, "{\"x\": \"BA\"}"), Ok(()));
        assert_eq!(
            read(letters, "{\"x\": \"BC\"}"),
            Err("candidate 1 of start: part \"x\": its alphabet has no 'C'".into())
        );
    }
}
