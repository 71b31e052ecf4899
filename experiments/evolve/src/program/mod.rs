//! The protocol with programs: one line of JSON in each direction. docs/own-problem.md describes it for people who write a
//! program.

mod own;

use evoxo_common::{
    digest::Digest,
    experiment::Said,
    rng::Stream,
    settings::Field,
    task::{Programs, Refusal},
    text::{beginning, counted},
};
use prost::Message as _;
use rand_core::Rng as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    activity::Activity,
    genome::{Candidate, Genome},
    messages::Evaluation,
    notation::Notation,
    settings::{FAILURE_BYTES_MAX, GENES_MAX, NAMES_MAX, NoiseName, SCHEMA, Settings, objective, twice},
    tables::{PartSettings, Parts},
};
pub(super) use own::refusal;

/// The version of the protocol.
const PROTOCOL: u64 = 1;
/// The default number of candidates in a program's signature. They should not take long to evaluate.
const CANNED: u64 = 3;
/// The most candidates in a signature.
const CANNED_MAX: u64 = 20;
/// The batches for which a person's own algorithm is tried. The second and third need what was saved.
const CANNED_TURNS: u64 = 3;
/// The time limit for all candidates of the signature together, in milliseconds.
const CANNED_WITHIN_MS: u64 = 600_000;
/// The most bytes of a line to a program, including the line break.
const LINE_BYTES_MAX: usize = 16 << 20;
/// The most bytes of a line that do not belong to its candidates.
const FRAME_BYTES: usize = 64;
/// How many characters before and after a JSON syntax error are shown in a message.
const NEAR: usize = 20;
/// The most characters of an answer that are shown in a message.
const SHOWN_MAX: usize = 120;
/// What both a program and the settings declare. The limits of these settings also apply to programs.
const DECLARED: [&str; 3] = ["objectives", "constraints", "measures"];

/// A program's description of itself.
#[derive(Debug, Deserialize)]
pub(super) struct Introduction {
    evoxo: u64,
    name: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    objectives: Vec<String>,
    #[serde(default)]
    constraints: Vec<String>,
    #[serde(default)]
    measures: Vec<String>,
    #[serde(default)]
    genome: Vec<Map<String, Value>>,
    /// Whether a candidate's value depends on its seed.
    #[serde(default)]
    noisy: bool,
    /// Algorithms of the person, each with a version that changes whenever it returns other batches.
    #[serde(default)]
    algorithms: own::Algorithms,
    /// The number of candidates in the program's signature.
    canned: Option<u64>,
}

/// A candidate to be evaluated.
pub(super) struct Question<'a> {
    pub(super) id: &'a str,
    /// The only source of random numbers that the program may use.
    pub(super) seed: u64,
    pub(super) candidate: &'a Candidate,
}

/// The shape that the numbers of an answer must have.
pub(super) struct Form<'a> {
    pub(super) genome: &'a Genome,
    /// What the genes of each part stand for.
    pub(super) notations: &'a [Notation],
    pub(super) activity: Activity,
    pub(super) objectives: usize,
    pub(super) constraints: usize,
    pub(super) measures: usize,
}

/// A program of this name, among the programs of a worker.
pub(super) struct Asked<'a> {
    pub(super) name: &'a str,
    pub(super) programs: &'a mut dyn Programs,
}

impl Asked<'_> {
    fn refuse<T>(&mut self, why: &str) -> Result<T, Refusal> {
        self.programs.stop(self.name);
        Err(Refusal(format!("the program {} {why}", self.name)))
    }

    /// The program's description of itself.
    pub(super) fn introduction(&mut self) -> Result<Introduction, Refusal> {
        let line = self.programs.introduction(self.name)?;
        let introduction: Introduction = match serde_json::from_str(&line) {
            Ok(introduction) => introduction,
            Err(error) => {
                return self.refuse(&format!(
                    "does not introduce itself: its first line must be {{\"evoxo\":1,\"name\":...,\"objectives\":[...]}}, and \
                     is {} ({error})",
                    shown(&line)
                ));
            }
        };
        if introduction.evoxo != PROTOCOL {
            return self.refuse(&format!("uses protocol {}, but this build uses {PROTOCOL}", introduction.evoxo));
        }
        if introduction.name != self.name {
            return self.refuse(&format!(
                "calls itself {:?}: give it as --program {}=COMMAND",
                introduction.name, introduction.name
            ));
        }
        if introduction.objectives.is_empty() && introduction.algorithms.is_empty() {
            return self.refuse("declares no objectives: it needs at least one, for example \"min cost\"");
        }
        if let Some(wrong) = introduction.objectives.iter().find(|text| objective(text).is_none()) {
            return self
                .refuse(&format!("has the objective {}: it must be \"min NAME\" or \"max NAME\"", shown(wrong)));
        }
        let said = [
            introduction.objectives.join(", "),
            introduction.constraints.len().to_string(),
            introduction.measures.len().to_string(),
        ];
        for (name, said) in DECLARED.iter().zip(said) {
            if let Err(why) = field(name).read(&said) {
                return self.refuse(&format!("declares more than a run can have: {why}"));
            }
        }
        let objectives: Vec<String> =
            introduction.objectives.iter().filter_map(|text| Some(objective(text)?.1)).collect();
        for (what, names) in [
            ("objectives", &objectives),
            ("constraints", &introduction.constraints),
            ("measures", &introduction.measures),
        ] {
            if let Some(name) = twice(names) {
                return self.refuse(&format!("has two {what} called {}: give each its own name", shown(name)));
            }
        }
        Ok(introduction)
    }

    /// The genome that the program declares, and the same as the text of the setting `genome`.
    fn genome(&mut self, declared: &[Map<String, Value>]) -> Result<(Parts, String), Refusal> {
        match genome_text(declared).and_then(|text| Ok((read_genome(&text)?, text))) {
            Ok(genome) => Ok(genome),
            Err(why) => self.refuse(&format!("declares a genome that is not valid: {why}")),
        }
    }

    /// Evaluates candidates: in one request, or in several if its line would be too long. Each request gets its share of the
    /// time.
    pub(super) fn evaluate(
        &mut self,
        form: &Form<'_>,
        questions: &[Question<'_>],
        within_ms: u64,
    ) -> Result<Vec<Evaluation>, Refusal> {
        let items: Vec<String> = questions.iter().map(|question| question.json(form).to_string()).collect();
        let mut evaluations = Vec::with_capacity(questions.len());
        while let Some(rest @ [_, ..]) = items.get(evaluations.len()..) {
            let count = fitting(rest);
            let asked = &questions[evaluations.len()..][..count];
            let items = rest[..count].join(",");
            let line = |number| format!("{{\"batch\":{number},\"items\":[{items}]}}");
            let share_ms = (u128::from(within_ms) * count as u128 / questions.len() as u128) as u64;
            let (number, answer) = self.programs.ask(self.name, &line, share_ms)?;
            match read_answer(form, asked, number, &answer) {
                Ok(more) => evaluations.extend(more),
                Err(why) => return self.refuse(&format!("gave a wrong answer: {why}; it wrote {}", shown(&answer))),
            }
        }
        Ok(evaluations)
    }

    /// The hash of the program's description of itself and its answers to fixed candidates of its genome.
    pub(super) fn signature(&mut self) -> Result<Digest, Refusal> {
        let introduction = self.introduction()?;
        let Introduction { name, version, objectives, constraints, measures, genome, algorithms, .. } = &introduction;
        let said = match algorithms.is_empty() {
            true => json!([name, version, objectives, constraints, measures, genome]),
            false => json!([name, version, objectives, constraints, measures, genome, algorithms]),
        }
        .to_string();
        let (parts, _) = self.genome(genome)?;
        let answers = self.canned(&introduction, &parts)?;
        Ok(Digest::of_pieces(std::iter::once(said.as_bytes()).chain(answers.iter().map(Vec::as_slice))))
    }

    /// The program's answers to fixed candidates of this genome; empty if the genome has no parts.
    fn canned(&mut self, introduction: &Introduction, Parts(parts): &Parts) -> Result<Vec<Vec<u8>>, Refusal> {
        let count = introduction.canned.unwrap_or(CANNED).min(CANNED_MAX);
        if parts.is_empty() || count == 0 || introduction.objectives.is_empty() {
            return Ok(Vec::new());
        }
        let notations: Vec<Notation> = parts.iter().map(|part| part.notation(true)).collect();
        let genome = Genome { parts: parts.iter().map(PartSettings::part).collect(), bounded: true };
        let form = Form {
            genome: &genome,
            notations: &notations,
            activity: Activity::of(parts).unwrap_or_default(),
            objectives: introduction.objectives.len(),
            constraints: introduction.constraints.len(),
            measures: introduction.measures.len(),
        };
        let drawn = |number| {
            let mut rng = Stream::root(0).text("evolve").text("signature").word(number).rng();
            (format!("canned-{number}"), rng.next_u64(), genome.random(&mut rng))
        };
        let drawn: Vec<(String, u64, Candidate)> = (0..count).map(drawn).collect();
        let questions: Vec<Question<'_>> =
            drawn.iter().map(|(id, seed, candidate)| Question { id, seed: *seed, candidate }).collect();
        let answers = self.evaluate(&form, &questions, CANNED_WITHIN_MS)?;
        Ok(answers.iter().map(Evaluation::encode_to_vec).collect())
    }

    /// The setting `answers`: the hash of the program's answers to fixed candidates of the file's genome. Empty if the
    /// program declares a genome itself, because its signature covers the answers then, or if it is not to be tried.
    fn answers(&mut self, introduction: &Introduction, of_file: &Parts) -> Result<String, Refusal> {
        if !introduction.genome.is_empty() {
            return Ok(String::new());
        }
        let answers = self.canned(introduction, of_file)?;
        let hash = || Digest::of_pieces(answers.iter().map(Vec::as_slice)).to_string();
        Ok(if answers.is_empty() { String::new() } else { hash() })
    }

    /// Tries the program with fixed candidates of the file's genome, once after each start of the program.
    pub(super) fn try_out(&mut self, settings: &Settings) -> Result<(), Refusal> {
        if settings.answers.is_empty() || !self.programs.is_first(self.name, &settings.answers)? {
            return Ok(());
        }
        let introduction = self.introduction()?;
        if self.answers(&introduction, &settings.genome)? == settings.answers {
            return Ok(());
        }
        self.programs.disown();
        self.refuse(
            "of this worker gives different answers than the one with which the run was started: give the worker that program; \
             if it has it, `evoxo check` shows whether the program answers the same twice",
        )
    }

    /// The description of a program that has a problem.
    fn introduction_of_problem(&mut self) -> Result<Introduction, Refusal> {
        let introduction = self.introduction()?;
        if introduction.objectives.is_empty() {
            return Err(Refusal(format!(
                "the program {0} has only algorithms and is no problem: set algorithm = \"own\" and own = \"{0}\" in a file \
                 with another problem",
                self.name
            )));
        }
        Ok(introduction)
    }

    /// The settings that the file leaves empty and the program determines, or an error if the file and the program do not
    /// fit.
    pub(super) fn settings(&mut self, settings: &Settings) -> Result<Vec<Said>, Refusal> {
        let introduction = self.introduction_of_problem()?;
        let signature = self.signature()?.to_string();
        let answers = self.answers(&introduction, &settings.genome)?;
        let name = self.name;
        let mut follow = Vec::new();
        for (key, what, own, of_run) in [
            ("signature", "its signature is", signature, &settings.signature),
            ("answers", "the hash of its answers is", answers, &settings.answers),
        ] {
            if of_run.is_empty() {
                // A run that started before the setting `answers` existed continues without it.
                if settings.signature.is_empty() && !own.is_empty() {
                    follow.push((key, own));
                }
            } else if *of_run != own {
                let short = |hash: &str| hash.chars().take(16).collect::<String>();
                return Err(Refusal(format!(
                    "the program {name} is not the one with which this run was started: {what} {}, but the run has {}; start a \
                     new run, or use the old program",
                    short(&own),
                    short(of_run)
                )));
            }
        }
        let differ = |what: &str| {
            Err(Refusal(format!(
                "the file and the program {name} do not have the same {what}: leave them out of the file"
            )))
        };
        let objectives = introduction.objectives.join(", ");
        if settings.objectives.is_empty() {
            follow.push(("objectives", objectives));
        } else if settings.objectives.split(',').map(str::trim).ne(introduction.objectives.iter().map(|it| it.trim())) {
            return differ("objectives");
        }
        let counts = [
            ("constraints", settings.constraints, introduction.constraints.len()),
            ("measures", settings.measures, introduction.measures.len()),
        ];
        for (what, said, own) in counts {
            match said {
                0 if own > 0 => follow.push((what, own.to_string())),
                said if said != own => return differ(what),
                _ => {}
            }
        }
        if introduction.noisy && settings.noise == NoiseName::Declared {
            follow.push(("noise", "yes".into()));
        }
        // Names are only for people. If a file cannot contain one of them, the names are not copied.
        for (setting, said, own) in [
            ("constraint_names", &settings.constraint_names, &introduction.constraints),
            ("measure_names", &settings.measure_names, &introduction.measures),
        ] {
            let names = own.join(", ");
            let plain = own.iter().all(|name| name.chars().all(|c| (' '..='~').contains(&c) && !"\"\\,".contains(c)));
            if said.is_empty() && !names.is_empty() && names.len() <= NAMES_MAX && plain {
                follow.push((setting, names));
            }
        }
        if !introduction.genome.is_empty() {
            let (own, text) = self.genome(&introduction.genome)?;
            if settings.genome.0.is_empty() {
                follow.push(("genome", text));
            } else if settings.genome != own {
                return differ("genome");
            }
        } else if settings.genome.0.is_empty() {
            return Err(Refusal(format!(
                "neither the file nor the program {} describes the genome: add [[genome]]",
                self.name
            )));
        }
        Ok(follow)
    }
}

impl Question<'_> {
    fn json(&self, form: &Form<'_>) -> Value {
        let genes = form.activity.values(form.genome, form.notations, self.candidate);
        json!({"id": self.id, "seed": format!("{:016x}", self.seed), "genes": genes})
    }
}

/// A genome as a program declares it, as the text of the setting.
fn genome_text(genome: &[Map<String, Value>]) -> Result<String, String> {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let value = |value: &Value| match value {
        Value::String(text) => Ok(quoted(text)),
        // Without an exponent, because files have numbers without exponents.
        Value::Number(number) => Ok(match number.as_f64().filter(|_| number.is_f64()) {
            Some(number) => format!("{number}"),
            None => number.to_string(),
        }),
        // The setting has a list of words as one text.
        Value::Array(words) => match words.iter().map(Value::as_str).collect::<Option<Vec<&str>>>() {
            Some(words) if !words.iter().any(|word| word.contains(',')) => Ok(quoted(&words.join(", "))),
            _ => Err(format!("{} is not a list of texts without commas", Value::from(words.clone()))),
        },
        other => Err(format!("{other} is neither a text nor a number")),
    };
    let part = |part: &Map<String, Value>| {
        let entries = part.iter().map(|(key, said)| Ok(format!("{key:?} = {}", value(said)?)));
        Ok(format!("{{ {} }}", entries.collect::<Result<Vec<_>, String>>()?.join(", ")))
    };
    Ok(format!("[{}]", genome.iter().map(part).collect::<Result<Vec<_>, String>>()?.join(", ")))
}

fn read_genome(text: &str) -> Result<Parts, String> {
    let parts: Parts = evoxo_common::settings::FromValue::from_value(&field("genome").read(text)?);
    let names: Vec<String> = parts.0.iter().map(|part| part.name.clone()).collect();
    if let Some(name) = twice(&names) {
        return Err(format!("two parts are called {name}: give each its own name"));
    }
    Activity::of(&parts.0)?;
    match parts.0.iter().map(|part| part.length).sum::<usize>() {
        genes if genes > GENES_MAX => Err(format!("it has {genes} genes, more than {GENES_MAX}")),
        _ => Ok(parts),
    }
}

/// The field of the schema with this name.
fn field(name: &str) -> &'static Field {
    SCHEMA.fields().iter().find(|field| field.name == name).expect("the schema has what programs declare")
}

/// How many of these items fit into one line. At least one, because a single item always fits.
fn fitting(items: &[String]) -> usize {
    let mut bytes = FRAME_BYTES;
    let fits = |item: &&String| {
        bytes += item.len() + 1;
        bytes <= LINE_BYTES_MAX
    };
    items.iter().take_while(fits).count().max(1)
}

/// The evaluations in an answer, or a sentence that says what is wrong with it.
fn read_answer(
    form: &Form<'_>,
    questions: &[Question<'_>],
    number: u64,
    answer: &str,
) -> Result<Vec<Evaluation>, String> {
    let answer = number_of(number, answer)?;
    let items = answer["items"].as_array().ok_or("it has no \"items\"")?;
    if items.len() != questions.len() {
        return Err(format!("it has {} for {}", counted(items.len(), "item"), counted(questions.len(), "candidate")));
    }
    let item = |(question, item): (&Question<'_>, &Value)| {
        read_item(form, item).map_err(|why| format!("candidate {}: {why}", question.id))
    };
    questions.iter().zip(items).map(item).collect()
}

/// The answer to the question with this number as JSON, or a sentence that says what is wrong with it.
fn number_of(number: u64, answer: &str) -> Result<Value, String> {
    let answer: Value = serde_json::from_str(answer).map_err(|error| {
        let small = answer.to_lowercase();
        let numberless = ["nan", "inf"].iter().any(|word| small.contains(word));
        let hint = if numberless { "; a candidate without a number is answered with {\"fail\": \"why\"}" } else { "" };
        // The error may be far behind the part of the answer that is shown.
        let column = error.column().saturating_sub(1);
        let near: String = answer.chars().skip(column.saturating_sub(NEAR)).take(2 * NEAR).collect();
        let near = if column > NEAR { format!(", at {near:?}") } else { String::new() };
        format!("it is not JSON ({error}{near}){hint}")
    })?;
    if answer["batch"].as_u64() != Some(number) {
        return Err(format!("its \"batch\" is {}, but must be {number}", answer["batch"]));
    }
    Ok(answer)
}

fn read_item(form: &Form<'_>, item: &Value) -> Result<Evaluation, String> {
    if let Some(failure) = item.get("fail") {
        let failure = failure.as_str().filter(|text| !text.is_empty()).ok_or("\"fail\" must be a sentence")?;
        let failure: String = failure.chars().filter(|c| !c.is_control()).collect();
        // A failure without a reason is still a failure.
        let failure = if failure.is_empty() { "it did not say why" } else { beginning(&failure, FAILURE_BYTES_MAX) };
        let failure = failure.to_owned();
        return Ok(Evaluation { failure, ..Evaluation::default() });
    }
    let numbers = |key: &str, count: usize| -> Result<Vec<f64>, String> {
        let list = match item.get(key) {
            None if count == 0 => return Ok(Vec::new()),
            list => list.and_then(Value::as_array).ok_or_else(|| format!("it has no list {key:?}"))?,
        };
        let numbers: Option<Vec<f64>> = list.iter().map(Value::as_f64).collect();
        let numbers = numbers.ok_or_else(|| format!("{key:?} has an entry that is not a number"))?;
        match numbers.len() == count {
            true => Ok(numbers),
            false => Err(format!("{key:?} has {}, not {count}", counted(numbers.len(), "number"))),
        }
    };
    Ok(Evaluation {
        objectives: numbers("f", form.objectives)?,
        constraints: numbers("g", form.constraints)?,
        measures: numbers("m", form.measures)?,
        failure: String::new(),
    })
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod own_tests;
#[cfg(test)]
mod tests;
