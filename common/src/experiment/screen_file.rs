//! The table `[screen]` of an experiment file: reads it, and reports every mistake with its place.

use toml::de::{DeTable, DeValue};

use super::{
    At, Factor, Goal, Kind, SCREEN_ARMS_MAX, Screen,
    written::{Lines, Mistake, Raw, Table, WrittenAt, column, raw, read, unknown_keys, word},
};
use crate::{
    screen::{Design, Word},
    settings::{Scope, Value},
    text::{hint, quoted},
};

/// The keys of the table.
const KEYS: [&str; 5] = ["generators", "response", "at", "goal", "factors"];

/// The table as written.
#[derive(Clone, Debug, Default)]
pub(super) struct ScreenTable {
    line: usize,
    /// `response`, `at`, `goal`, and keys that should not exist.
    keys: Table,
    /// The generators, each with its line.
    generators: Vec<(String, usize)>,
    /// In alphabetical order of the letters.
    factors: Vec<WrittenFactor>,
    mistakes: Vec<Mistake>,
}

/// A factor as written.
#[derive(Clone, Debug)]
struct WrittenFactor {
    letter: char,
    /// The settings, each with its low and its high level.
    settings: Vec<(String, [Raw; 2])>,
}

impl ScreenTable {
    /// Reads the table, which begins on this line.
    pub(super) fn read(lines: &Lines, line: usize, table: &DeTable<'_>) -> Self {
        let mut found = Self { line, ..Self::default() };
        for (key, value) in table {
            let line = lines.at(key.span().start);
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("factors", DeValue::Table(factors)) => found.read_factors(lines, factors),
                ("factors", _) => found.wrong(
                    line,
                    "factors must be a table: write [screen.factors], and below it A.SETTING = [LOW, HIGH]".into(),
                ),
                ("generators", DeValue::Array(list)) => {
                    for generator in list.iter() {
                        let line = lines.at(generator.span().start);
                        match generator.get_ref() {
                            DeValue::String(text) => found.generators.push((text.to_string(), line)),
                            _ => found.wrong(line, "a generator must be a text like \"F = ABC\"".into()),
                        }
                    }
                }
                ("generators", _) => found.wrong(line, "generators must be a list of texts like [\"F = ABC\"]".into()),
                (name, value) => drop(found.keys.insert(name.into(), raw(value, line))),
            }
        }
        found.factors.sort_by_key(|factor| factor.letter);
        found
    }

    fn wrong(&mut self, line: usize, sentence: String) {
        self.mistakes.push((WrittenAt::Line(line), sentence));
    }

    fn read_factors(&mut self, lines: &Lines, factors: &DeTable<'_>) {
        for (name, settings) in factors {
            let line = lines.at(name.span().start);
            let mut letters = name.get_ref().chars();
            let letter = letters.next().filter(|letter| Word::factor(*letter).is_some() && letters.next().is_none());
            match (letter, settings.get_ref()) {
                (None, _) => {
                    let sentence = format!(
                        "a factor's name must be one letter from A to Z, and not I, which is the identity; it is {}",
                        quoted(name.get_ref())
                    );
                    self.wrong(line, sentence);
                }
                (Some(letter), DeValue::Table(table)) if !table.is_empty() => {
                    let settings = table.iter().filter_map(|(setting, levels)| {
                        let line = lines.at(setting.span().start);
                        match levels.get_ref() {
                            DeValue::Array(list) if list.len() == 2 => {
                                let level = |place: usize| raw(list[place].get_ref(), line);
                                Some((setting.get_ref().to_string(), [level(0), level(1)]))
                            }
                            _ => {
                                let setting = quoted(setting.get_ref());
                                self.wrong(
                                    line,
                                    format!(
                                        "factor {letter}: give {setting} two levels, [LOW, HIGH]; to compare more \
                                     values of a setting write arms"
                                    ),
                                );
                                None
                            }
                        }
                    });
                    let settings = settings.collect();
                    self.factors.push(WrittenFactor { letter, settings });
                }
                (Some(letter), _) => {
                    self.wrong(line, format!("factor {letter} must name a setting: {letter}.SETTING = [LOW, HIGH]"));
                }
            }
        }
    }

    /// The screen of a file with these arms, for experiments of this kind. `usual` is the goal for a column if the file does
    /// not state a goal.
    ///
    /// # Errors
    /// All mistakes.
    pub(super) fn resolve(
        &self,
        kind: &'static Kind,
        arms: Vec<String>,
        usual: impl Fn(usize) -> Goal,
    ) -> Result<Screen, Vec<Mistake>> {
        let mut mistakes = self.mistakes.clone();
        mistakes.extend(unknown_keys(&self.keys, "[screen]", &KEYS));
        let response = column(&self.keys, "response", kind.columns, kind.primary_metric, &mut mistakes);
        let at = word(&self.keys, "at", At::WORDS, At::End, &mut mistakes);
        let goal = word(&self.keys, "goal", Goal::WORDS, response.map_or(Goal::Maximize, usual), &mut mistakes);
        let factors = self.factors(kind, &mut mistakes);
        let design = self.design(arms.len(), &mut mistakes);
        match (response, at, goal, design) {
            (Some(response), Some(at), Some(goal), Some(design)) if mistakes.is_empty() => {
                Ok(Screen { design, factors, arms, response, at, goal })
            }
            _ => Err(mistakes),
        }
    }

    fn factors(&self, kind: &'static Kind, mistakes: &mut Vec<Mistake>) -> Vec<Factor> {
        let mut taken: Vec<(&str, char)> = Vec::new();
        let mut factors = Vec::new();
        for WrittenFactor { letter, settings } in &self.factors {
            let mut of_factor = Vec::new();
            for (name, levels) in settings {
                let mut wrong =
                    |sentence: String| mistakes.push((levels[0].place.clone(), format!("factor {letter}: {sentence}")));
                let Some(field) = kind.schema.fields().iter().find(|field| field.name == name) else {
                    let hint = hint(name, kind.schema.fields().iter().map(|field| field.name));
                    wrong(format!("unknown setting {}{hint}", quoted(name)));
                    continue;
                };
                if field.scope == Scope::Execution {
                    wrong(format!("{name} only divides the work, and results do not depend on it: leave it out"));
                }
                if let Some((_, other)) = taken.iter().find(|(other, _)| other == name) {
                    wrong(format!("{name} is set by factor {other} already: a setting belongs to one factor"));
                }
                taken.push((field.name, *letter));
                let values: Result<Vec<Value>, String> = levels.iter().map(|raw| read(field, raw)).collect();
                match values.as_deref() {
                    Ok([low, high]) if low == high => {
                        wrong(format!("both levels of {name} are {low}: give two different ones"));
                    }
                    Ok([low, high]) => of_factor.push((field.name, [low.clone(), high.clone()])),
                    Ok(_) => {}
                    Err(sentence) => wrong(sentence.clone()),
                }
            }
            factors.extend(Word::factor(*letter).map(|letter| Factor { letter, settings: of_factor }));
        }
        factors
    }

    fn design(&self, arms: usize, mistakes: &mut Vec<Mistake>) -> Option<Design> {
        let mut wrong = |line: usize, sentence: String| mistakes.push((WrittenAt::Line(line), sentence));
        if self.factors.is_empty() {
            // If something else stands in place of the factors, that has been reported already.
            if self.mistakes.is_empty() {
                let sentence = "[screen] has no factors: write [screen.factors], and below it A.SETTING = [LOW, HIGH]";
                wrong(self.line, sentence.into());
            }
            return None;
        }
        let letters: Vec<char> = self.factors.iter().map(|factor| factor.letter).collect();
        let generators: Vec<String> = self.generators.iter().map(|(text, _)| text.clone()).collect();
        match Design::new(&letters, &generators) {
            Err((place, sentence)) => {
                wrong(place.map_or(self.line, |place| self.generators[place].1), sentence);
                None
            }
            Ok(design) if arms * design.treatments() > SCREEN_ARMS_MAX => {
                let treatments = design.treatments();
                let all = arms * treatments;
                wrong(
                    self.line,
                    format!(
                        "{treatments} treatments of {arms} arms make {all} arms, more than {SCREEN_ARMS_MAX}: add \
                     generators, or take fewer arms"
                    ),
                );
                None
            }
            Ok(design) => Some(design),
        }
    }

    /// The settings that the factors set in a treatment.
    pub(super) fn settings(&self, design: &Design, treatment: usize) -> impl Iterator<Item = (String, Raw)> {
        let level =
            move |letter: char| Word::factor(letter).map_or(0, |factor| usize::from(design.is_high(factor, treatment)));
        self.factors.iter().flat_map(move |factor| {
            let level = level(factor.letter);
            factor.settings.iter().map(move |(name, levels)| (name.clone(), levels[level].clone()))
        })
    }
}
