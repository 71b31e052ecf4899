//! `evoxo diff A B`: what differs between two runs: their settings, their replicas, and the first round and number of the
//! first replica that differs.

use std::{
    collections::BTreeSet,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::bail;
use evoxo_common::{
    comparison::compare as tested,
    experiment::{Config, Differing, Registry, Replica, differing, listed},
    report::Table,
    text::{exact, probability, rounded},
};
use serde_json::{Value, json};

use crate::{
    json,
    parting::{Checked, Computed, OtherNumber, both_after, compute, first_other, last_round, state_before},
    recompute::Recomputing,
    say::{Usage, notice, printed, stdout, usage},
    side::{KeptRun, Match, Name},
};

/// The two runs.
#[derive(clap::Args)]
#[command(
    after_help = "Two replicas are equal if their digests are: then every number that is reported of them is. If they \
differ, the digests that both keep after some of their rounds show between which rounds they part, and the histories \
show the first number. If it takes a few seconds, or with --recompute, the replica is computed again with this build: \
that shows the round, and which run is not as computed. Without --recompute it begins with the last state before the \
difference if a run keeps some (`keep = \"64 MiB\"` in its file) and that is faster.

A run that goes on, or was killed, is compared as far as it is stored.

Examples:
  evoxo diff out/invincible out/invincible-2
  evoxo diff out/invincible colleague/result.json --json
  evoxo diff out/old-build out/new-build --recompute

Exit status: 0 if settings and results are equal, 1 if they differ, 2 if they cannot be compared."
)]
pub(crate) struct Arguments {
    /// The first run: its directory, or its result.json alone
    a: PathBuf,
    /// The second run
    b: PathBuf,
    /// Compute the first replica that differs again, however long that takes
    #[arg(long)]
    recompute: bool,
    /// Compare only what is kept, and compute nothing
    #[arg(long, conflicts_with = "recompute")]
    kept: bool,
    #[command(flatten)]
    with: Recomputing,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// A replica is computed again without being asked to, if one thread needs at most this many seconds for it.
const CHEAP_SECONDS: f64 = 10.0;
/// What the provenance of a result says about the computation, and does not change a result.
const EXECUTION: [&str; 5] = ["version", "commit", "rustc", "signature", "workers"];
/// The most characters of a value in a table, and the most numbers of replicas in a line.
const VALUE_CHARS_MAX: usize = 40;
const NUMBERS_MAX: usize = 12;

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    // Any error has the status 2, as in other programs that compare.
    let found = find(arguments, registry).map_err(|error| match error.is::<Usage>() {
        true => error,
        false => usage(format_args!("{error:#}")),
    })?;
    let text = match arguments.json {
        true => json::text(&found.to_json()),
        false => found.text(),
    };
    printed(stdout().write_all(text.as_bytes()))?;
    Ok(if found.is_equal() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A value that differs, with the values of the two sides.
struct Row {
    /// The arms whose setting it is, or what it belongs to.
    of: String,
    name: String,
    values: [String; 2],
}

/// Everything that differs.
struct Found {
    paths: [String; 2],
    /// What results depend on.
    settings: Vec<Row>,
    /// What they do not depend on.
    execution: Vec<Row>,
    /// Each replica that one of the sides has, with how far they agree; `None` if only one side has it.
    replicas: Vec<(Name, Option<Match>)>,
    first: Option<First>,
    /// Whether the final values differ by more than chance; see [`evoxo_common::comparison`]. Null if nothing differs.
    tested: Value,
    notes: Vec<String>,
}

/// The first replica that differs.
struct First {
    name: Name,
    found: Match,
    place: Option<OtherNumber>,
    /// Whether both sides have a history.
    has_histories: bool,
    computed: Option<Computed>,
}

fn find(arguments: &Arguments, registry: &Registry) -> anyhow::Result<Found> {
    let read = |path: &Path| KeptRun::read(registry, path);
    let sides = [read(&arguments.a)?, read(&arguments.b)?];
    let [a, b] = &sides;
    let mut found = Found {
        paths: sides.each_ref().map(|side| side.path.clone()),
        settings: Vec::new(),
        execution: execution(&sides),
        replicas: Vec::new(),
        first: None,
        tested: Value::Null,
        notes: Vec::new(),
    };
    if a.config().kind != b.config().kind {
        let kinds = sides.each_ref().map(|side| side.config().kind.name.to_owned());
        found.settings.push(Row { of: "run".into(), name: "experiment".into(), values: kinds });
        found.notes.push("These are runs of two kinds of experiments, so their replicas are not compared.".into());
        return Ok(found);
    }
    let differences = differing(a.config(), b.config());
    found.settings = head(&sides);
    for (name, side) in ["A", "B"].into_iter().zip(&sides).filter(|_| a.config().forks != b.config().forks) {
        found.notes.extend(side.config().forks_text().iter().map(|sentence| format!("{name}: {sentence}")));
    }
    found.settings.extend(grouped(&sides, &differences, true));
    found.execution.extend(grouped(&sides, &differences, false));
    let names: BTreeSet<&Name> = sides.iter().flat_map(|side| side.replicas.keys()).collect();
    let place =
        |name: &Name| sides.iter().find_map(|side| side.config().arms.iter().position(|arm| arm.name == name.0));
    let mut names: Vec<&Name> = names.into_iter().collect();
    names.sort_by_key(|name| (place(name), name.1));
    let alike = |name: &Name| !differences.iter().any(|it| it.arm == name.0 && !it.counts);
    for name in names {
        let both = a.replicas.get(name).zip(b.replicas.get(name));
        found.replicas.push((name.clone(), both.map(|(one, other)| one.compare(other, alike(name)))));
    }
    let is_other = |it: Option<Match>| matches!(it, Some(Match::Different { .. } | Match::Unknown));
    if let Some((name, Some(how))) = found.replicas.iter().find(|(_, how)| is_other(*how)) {
        let rows = [a.rows(name)?, b.rows(name)?];
        let has_histories = rows.iter().all(Option::is_some);
        let place = match &rows {
            [Some(one), Some(other)] => first_other(a.config(), [one, other], *how == Match::Unknown),
            _ => None,
        };
        let mut first = First { name: name.clone(), found: *how, place, has_histories, computed: None };
        first.computed = again(arguments, registry, &sides, &first, alike(name), &mut found.notes)?;
        found.first = Some(first);
        found.tested = tested(&a.measured()?, &b.measured()?);
    }
    Ok(found)
}

/// Computes the replica again, if that is asked for or cheap.
fn again(
    arguments: &Arguments,
    registry: &Registry,
    sides: &[KeptRun; 2],
    first: &First,
    alike: bool,
    notes: &mut Vec<String>,
) -> anyhow::Result<Option<Computed>> {
    let [a, b] = sides;
    let last = last_round(first.found, sides.each_ref().map(|side| &side.replicas[&first.name]));
    let asks = sides.iter().any(|side| !side.config().programs().is_empty());
    let is_cheap = |from: u64| {
        let seconds = |side: &KeptRun| Some(side.seconds_a_round()? * last?.saturating_sub(from) as f64);
        !asks && sides.iter().all(|side| seconds(side).is_some_and(|seconds| seconds <= CHEAP_SECONDS))
    };
    if arguments.kept {
        return Ok(None);
    }
    let threads = arguments.with.threads()?;
    let mut states = [None, None];
    if !(arguments.recompute || is_cheap(0)) {
        let stored = [a, b].into_iter().filter_map(|side| state_before(registry, side, &first.name, first.found));
        let stored = stored.max_by_key(Replica::rounds).filter(|replica| is_cheap(replica.rounds()));
        let both = match stored {
            Some(replica) => both_after(replica, [a, b], &first.name, first.found, threads)?,
            None => None,
        };
        let Some(both) = both else {
            notes.push("With --recompute this build computes the replica again, which can show more.".into());
            return Ok(None);
        };
        states = both;
    }
    let given = arguments.with.programs(registry, a.config())?;
    if b.config().programs() != a.config().programs() {
        bail!("the two runs ask different programs, so they cannot be computed again together: give --kept");
    }
    let (arm, number) = &first.name;
    notice(format_args!("replica {number} of arm {arm:?} is computed again"));
    compute([a, b], &first.name, alike, states, last, &given, threads).map(Some)
}

/// What differs of the whole run, and of which results depend.
fn head(sides: &[KeptRun; 2]) -> Vec<Row> {
    let [a, b] = sides.each_ref().map(|side| side.config());
    let mut rows = Vec::new();
    let mut add = |name: &str, values: [String; 2]| {
        if values[0] != values[1] {
            rows.push(Row { of: "run".into(), name: name.into(), values });
        }
    };
    add("seed", [a, b].map(|config| config.seed.to_string()));
    let ends = |side: &KeptRun| side.kept.result.get("ends").map_or_else(|| "none".into(), Value::to_string);
    add("[ends]", sides.each_ref().map(ends));
    let forks = |config: &Config| -> String {
        let rounds: Vec<String> = config.forks.iter().map(|fork| fork.at.to_string()).collect();
        if rounds.is_empty() { "none".into() } else { format!("after round {}", listed(&rounds)) }
    };
    add("[[fork]]", [a, b].map(forks));
    let names = |config: &Config| -> Vec<String> { config.arms.iter().map(|arm| arm.name.clone()).collect() };
    for (name, here) in [(a, b), (b, a)].into_iter().flat_map(|(one, other)| {
        let others = names(other);
        names(one).into_iter().filter(move |name| !others.contains(name)).map(move |name| (name, std::ptr::eq(one, a)))
    }) {
        add(&format!("arm {name:?}"), if here { ["there".into(), "-".into()] } else { ["-".into(), "there".into()] });
    }
    if rows.is_empty() && names(a) != names(b) {
        let order = [a, b].map(|config| names(config).join(", "));
        rows.push(Row { of: "run".into(), name: "order of arms".into(), values: order });
    }
    rows
}

/// What only belongs to the computation.
fn execution(sides: &[KeptRun; 2]) -> Vec<Row> {
    let mut rows = Vec::new();
    let one_kind = sides[0].config().kind == sides[1].config().kind;
    // Two kinds have two signatures in any build.
    for name in EXECUTION.into_iter().filter(|name| one_kind || *name != "signature") {
        if let [Some(one), Some(other)] = sides.each_ref().map(|side| side.provenance(name))
            && one != other
        {
            rows.push(Row { of: "run".into(), name: name.into(), values: [one, other] });
        }
    }
    let replicas = sides.each_ref().map(|side| side.config().replicas.to_string());
    if replicas[0] != replicas[1] {
        rows.push(Row { of: "run".into(), name: "replicas".into(), values: replicas });
    }
    rows
}

/// The settings on which results depend, or the others: one row for all arms with the same two values.
fn grouped(sides: &[KeptRun; 2], differences: &[Differing], counts: bool) -> Vec<Row> {
    let mut groups: Vec<(&Differing, Vec<String>)> = Vec::new();
    for it in differences.iter().filter(|it| it.counts == counts) {
        match groups.iter_mut().find(|(other, _)| (other.setting, &other.values) == (it.setting, &it.values)) {
            Some((_, arms)) => arms.push(it.arm.clone()),
            None => groups.push((it, vec![it.arm.clone()])),
        }
    }
    let all = sides[0].config().arms.len().max(sides[1].config().arms.len());
    let row = |(it, arms): (&Differing, Vec<String>)| Row {
        of: if arms.len() == all { "all arms".into() } else { listed(&arms) },
        name: it.setting.into(),
        values: it.values.clone(),
    };
    groups.into_iter().map(row).collect()
}

impl Found {
    fn is_equal(&self) -> bool {
        self.settings.is_empty() && self.replicas.iter().all(|(_, found)| *found == Some(Match::Equal))
    }

    fn count(&self, is: impl Fn(Option<Match>) -> bool) -> usize {
        self.replicas.iter().filter(|(_, found)| is(*found)).count()
    }

    fn to_json(&self) -> Value {
        let [a, b] = &self.paths;
        let rows = |rows: &[Row]| -> Value {
            let row = |it: &Row| json!({"of": it.of, "name": it.name, "a": it.values[0], "b": it.values[1]});
            rows.iter().map(row).collect()
        };
        let replica = |(name, found): &(Name, Option<Match>)| {
            let word = found.map_or("only in one", Match::word);
            let mut entry = json!({"arm": name.0, "replica": name.1, "is": word});
            match found {
                Some(Match::Different { after, by }) => {
                    (entry["equal_after_round"], entry["different_after_round"]) = (json!(after), json!(by));
                }
                Some(Match::Begins { rounds }) => entry["equal_after_round"] = json!(rounds),
                _ => {}
            }
            entry
        };
        let first = self.first.as_ref().map(|first| {
            json!({
                "arm": first.name.0,
                "replica": first.name.1,
                "number": first.place.as_ref().map(OtherNumber::to_json),
                "computed": first.computed.as_ref().map(|computed| json!({
                    "from_round": computed.from,
                    "rounds": computed.rounds,
                    "parted_in_round": computed.parted,
                    "a": computed.sides[0].to_json(),
                    "b": computed.sides[1].to_json(),
                })),
            })
        });
        json!({
            "equal": self.is_equal(),
            "a": a,
            "b": b,
            "settings": rows(&self.settings),
            "execution": rows(&self.execution),
            "replicas": self.replicas.iter().map(replica).collect::<Value>(),
            "first": first,
            "tested": self.tested,
            "notes": self.notes,
        })
    }

    fn text(&self) -> String {
        let [a, b] = &self.paths;
        let (all, equal) = (self.replicas.len(), self.count(|found| found == Some(Match::Equal)));
        let word = if self.is_equal() { "equal" } else { "different" };
        let of = if all == 0 { String::new() } else { format!(", {equal} of {all} replicas are equal") };
        let mut text = format!("{word}{of}; A is {a}, and B is {b}\n");
        for (title, rows) in [
            ("Settings on which results depend", &self.settings),
            ("Only how it was computed; no result depends on it", &self.execution),
        ] {
            if !rows.is_empty() {
                text += &format!("\n{}", table(title, rows));
            }
        }
        if !self.is_equal() && all > 0 {
            text += &format!("\n{}", self.arms());
        }
        if let Some(first) = &self.first {
            text += &format!("\n{}\n", first.sentences().join("\n"));
        }
        text += &tests(&self.tested);
        text += &self.first_longer().map(|sentence| format!("\n{sentence}\n")).unwrap_or_default();
        self.notes.iter().for_each(|note| text += &format!("\n{note}\n"));
        text
    }

    /// How far the first replica agrees that has more rounds in one run, if no replica differs before that.
    fn first_longer(&self) -> Option<String> {
        let begins = self.replicas.iter().find_map(|(name, found)| match found {
            Some(Match::Begins { rounds }) => Some((name, rounds)),
            _ => None,
        });
        let ((arm, number), rounds) = begins.filter(|_| self.first.is_none())?;
        Some(format!(
            "Where one is longer, they are equal as far as both keep digests: replica {number} of arm {arm:?} up to round {rounds}."
        ))
    }

    /// A table of the arms, with the numbers of their replicas.
    fn arms(&self) -> Table {
        let mut arms: Vec<&str> = self.replicas.iter().map(|(name, _)| name.0.as_str()).collect();
        arms.dedup();
        let of_arm = |arm: &str, is: &dyn Fn(Option<Match>) -> bool| -> String {
            let found = self.replicas.iter().filter(|(name, found)| name.0 == arm && is(*found));
            let numbers: Vec<String> = found.map(|(name, _)| name.1.to_string()).collect();
            match numbers.len() {
                0 => "-".into(),
                many if many > NUMBERS_MAX => format!("{many}: {}, ...", numbers[..NUMBERS_MAX].join(", ")),
                _ => numbers.join(", "),
            }
        };
        let row = |arm: &str| {
            let equal = of_arm(arm, &|it| it == Some(Match::Equal));
            let different = of_arm(arm, &|it| matches!(it, Some(Match::Different { .. })));
            let begins = of_arm(arm, &|it| matches!(it, Some(Match::Begins { .. } | Match::Unknown)));
            let alone = of_arm(arm, &|it| it.is_none());
            vec![arm.to_owned(), equal, different, begins, alone]
        };
        let header = ["arm", "equal", "different", "one is longer", "only in one"];
        Table {
            title: "Replicas, by their numbers".into(),
            header: header.map(String::from).to_vec(),
            rows: arms.into_iter().map(row).collect(),
        }
    }
}

impl First {
    /// What is known about the first replica that differs, in sentences.
    fn sentences(&self) -> Vec<String> {
        let (arm, number) = &self.name;
        let mut said = vec![format!("The first that differs is replica {number} of arm {arm:?}.")];
        said.extend(match self.found {
            Match::Different { after: Some(after), by: Some(by) } => Some(format!(
                "Their digests are equal after round {after}, and differ after round {by}; between them none are kept by both."
            )),
            Match::Different { after: None, by: Some(by) } => {
                Some(format!("Their digests differ after round {by}, the first for which both keep one."))
            }
            Match::Different { after: Some(after), by: None } => {
                Some(format!("Their digests are equal after round {after}, and at the end they differ."))
            }
            Match::Different { .. } => Some("Their last digests differ.".into()),
            Match::Unknown => Some("One has more rows, and they keep no digest after the same round.".into()),
            Match::Equal | Match::Begins { .. } => None,
        });
        said.push(match &self.place {
            Some(place) => of_histories(place, ["A", "B"]),
            None if self.has_histories => {
                "Their histories are equal as far as both go, so it is their states that differ.".into()
            }
            None => {
                "There is no history next to both, which would show the first number: give their directories.".into()
            }
        });
        if let Some(computed) = &self.computed {
            said.extend(recomputed(computed));
        }
        said
    }
}

/// The first number that differs in two histories, in a sentence.
fn of_histories(OtherNumber { row, column, values }: &OtherNumber, whose: [&str; 2]) -> String {
    let text = |value: Option<f64>| value.map_or_else(|| "no such row".to_owned(), exact);
    let [one, other] = values.map(text);
    format!(
        "The first number that differs in their histories is {column} in row {row}: {one} ({}), {other} ({}).",
        whose[0], whose[1]
    )
}

/// What came of computing the replica again, in sentences.
fn recomputed(computed: &Computed) -> Vec<String> {
    let until = match (computed.from, computed.rounds) {
        (0, rounds) => format!("Up to round {rounds}"),
        (from, rounds) => format!("From round {from}, after which both keep one digest, up to round {rounds}"),
    };
    let as_computed = computed.sides.each_ref().map(Checked::is_as_computed);
    let mut said = vec![match as_computed {
        [true, true] => format!("{until}, both are as this build computes them."),
        [true, false] => format!("{until}, A is as this build computes it, and B is not."),
        [false, true] => format!("{until}, B is as this build computes it, and A is not."),
        [false, false] => format!("{until}, neither is as this build computes it."),
    }];
    if let Some(parted) = computed.parted {
        said.push(format!("As this build computes them, they part in round {parted}."));
    }
    for (name, checked) in ["A", "B"].into_iter().zip(&computed.sides) {
        if let Some((round, place)) = &checked.place {
            let value = |place: usize| place_text(place, &checked.place);
            let (row, column) = (place.row, place.column);
            said.push(format!(
                "{name} goes wrong in round {round}: {column} in row {row} is {}, and {} is computed.",
                value(0),
                value(1)
            ));
        } else if let Some(round) = checked.round {
            said.push(format!(
                "{name} has another digest after round {round}; all kept numbers up to there are as computed."
            ));
        }
    }
    said
}

fn place_text(side: usize, place: &Option<(u64, OtherNumber)>) -> String {
    place.as_ref().and_then(|(_, place)| place.values[side]).map_or_else(|| "missing".into(), exact)
}

/// The tests of the final values of both runs, in a table; nothing if there is none.
fn tests(tested: &Value) -> String {
    let within = |it: &Value| {
        let number = |key: &str| it[key].as_f64().map_or_else(|| "-".into(), rounded);
        format!("{} ± {}", number("mean"), number("half_width"))
    };
    let row = |test: &Value| {
        let p = test["p"].as_f64().map_or_else(|| "-".into(), probability);
        let arm = test["arm"].as_str().unwrap_or_default();
        vec![arm.to_owned(), within(&test["one"]), within(&test["two"]), within(&test["difference"]), p]
    };
    let rows: Vec<Vec<String>> = tested["tests"].as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let text = |key: &str| tested[key].as_str().unwrap_or_default();
    let corrected = if rows.len() > 1 { "; it is corrected for the number of tests by Holm's method" } else { "" };
    let table = Table {
        title: format!("Is the difference due to chance? Final {} of each replica", text("metric")),
        header: ["arm", "A", "B", "B - A", "p"].map(String::from).to_vec(),
        rows,
    };
    format!("\n{table}± is the 95 % interval of the mean. p is by {}{corrected}.\n", text("test"))
}

/// A table of values that differ.
fn table(title: &str, rows: &[Row]) -> Table {
    let short = |text: &String| match text.chars().count() > VALUE_CHARS_MAX {
        true => text.chars().take(VALUE_CHARS_MAX - 3).collect::<String>() + "...",
        false => text.clone(),
    };
    let row = |it: &Row| [&it.of, &it.name, &it.values[0], &it.values[1]].map(short).to_vec();
    Table {
        title: title.into(),
        header: ["of", "what", "A", "B"].map(String::from).to_vec(),
        rows: rows.iter().map(row).collect(),
    }
}
