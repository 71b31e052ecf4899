//! Experiment files: TOML with types. All mistakes are reported at once, with their places and the nearest valid names.

use std::cmp::Ordering;

use toml::de::{DeTable, DeValue};

use super::{
    ARMS_MAX, Arm, Config, Ends, FILE_BYTES_MAX, Fork, Goal, Kind, ONLY_ARM, Problem, Problems, REPLICAS_MAX, Registry,
    Screen,
    config::{arms_text, no_arm, screened_name},
    fork::FORKS_MAX,
    fork_file::{self, ForkTable},
    screen_file::ScreenTable,
    written::{Lines, Raw, Table, WrittenAt, raw, read},
};
use crate::{
    settings::{Follows, OPEN, Schema, Shape, Value, Values},
    text::{hint, quoted, size},
};

mod given;

/// At most this many problems are searched for: then the rest of the file is not read.
const FOUND_MAX: usize = 1000;
/// The most keys of a file, not counting the settings of its arms: more than any experiment needs.
const KEYS_MAX: usize = 10_000;

/// The most characters of an arm's name.
const NAME_BYTES_MAX: usize = 64;

/// An arm: its name, its first line and its settings.
type WrittenArm = (String, usize, Table);

/// A conflict between settings of an arm.
struct Mistake {
    place: WrittenAt,
    /// Whether several arms share the setting that has to change.
    shared: bool,
    arm: String,
    sentence: String,
}

struct File<'a> {
    registry: &'a Registry,
    lines: Lines,
    top: Table,
    settings: Table,
    /// In the order of the file.
    arms: Vec<WrittenArm>,
    /// The arms that are not selected.
    left_out: Vec<WrittenArm>,
    screen: Option<ScreenTable>,
    ends: Table,
    forks: Vec<ForkTable>,
    problems: Vec<Problem>,
}

const TOP: [&str; 9] = ["experiment", "seed", "replicas", "keep", "settings", "arms", "screen", "ends", "fork"];
/// The keys among them that are tables, or lists of tables.
const TABLES: [&str; 5] = ["settings", "arms", "screen", "ends", "fork"];

/// The most keys of a file. A configuration is written with all settings of each arm, and must be readable again.
fn keys_max(registry: &Registry) -> usize {
    // A setting in a fork has at most as many equals signs and brackets as a text.
    let of = |kind: &&'static Kind| kind.schema.keys_max() + FORKS_MAX * (3 + 3 * kind.may_change.len());
    KEYS_MAX + ARMS_MAX * registry.kinds().iter().map(of).max().unwrap_or(0)
}

/// An upper estimate of the number of keys in a text: a key has an equals sign after it, or brackets around it. Keys are
/// counted before parsing, because a parser may take long if there are many keys or many mistakes.
fn keys(text: &str) -> usize {
    text.bytes().filter(|byte| matches!(byte, b'=' | b'[')).count()
}

impl Config {
    /// Reads an experiment file. `overrides` are pairs of key and value that replace those in the file: `seed`, `replicas`,
    /// the name of a setting (for all arms), or `arms.NAME.SETTING`.
    ///
    /// # Errors
    /// All problems at once.
    pub fn parse(
        registry: &Registry,
        file: &str,
        text: &str,
        overrides: &[(String, String)],
    ) -> Result<Self, Problems> {
        parse(registry, file, text, overrides, &[])
    }

    /// Reads an experiment file with only the named arms; mistakes in other arms do not matter.
    ///
    /// # Errors
    /// All problems at once, including an arm that does not exist.
    pub fn parse_arms(
        registry: &Registry,
        file: &str,
        text: &str,
        overrides: &[(String, String)],
        arms: &[String],
    ) -> Result<Self, Problems> {
        parse(registry, file, text, overrides, arms)
    }

    /// Settings that are given but have no effect, one sentence for each. Text, overrides and arms must be ones that can be
    /// parsed.
    #[must_use]
    pub fn idle(registry: &Registry, text: &str, overrides: &[(String, String)], arms: &[String]) -> Vec<String> {
        given::idle(registry, text, overrides, arms)
    }

    /// The values that follow from other settings because the file leaves their settings open: one sentence for each, which says
    /// why. Text, overrides and arms must be ones that can be parsed.
    #[must_use]
    pub fn follows(registry: &Registry, text: &str, overrides: &[(String, String)], arms: &[String]) -> Vec<String> {
        given::follows(registry, text, overrides, arms)
    }

    /// Overrides for all arms that change an own setting of one of these arms (of any arm, if none is named), one sentence
    /// for each.
    #[must_use]
    pub fn overruled(registry: &Registry, text: &str, overrides: &[(String, String)], arms: &[String]) -> Vec<String> {
        given::overruled(registry, text, overrides, arms)
    }
}

fn parse(
    registry: &Registry,
    file: &str,
    text: &str,
    overrides: &[(String, String)],
    only: &[String],
) -> Result<Config, Problems> {
    let fail = |mut list: Vec<Problem>| {
        list.sort();
        list.dedup();
        Problems { file: file.into(), list }
    };
    if text.len() > FILE_BYTES_MAX {
        let sentence = format!("the file has {} bytes, more than {FILE_BYTES_MAX}", text.len());
        return Err(fail(vec![Problem { line: None, sentence, typed: false }]));
    }
    if text.trim_start().starts_with('{') {
        let sentence = "this is JSON, not an experiment file: `evoxo new KIND` prints one to start from".into();
        return Err(fail(vec![Problem { line: None, sentence, typed: false }]));
    }
    let keys_max = keys_max(registry);
    if keys(text) > keys_max {
        let sentence = format!("the file has more than {keys_max} keys: no experiment has that many settings");
        return Err(fail(vec![Problem { line: None, sentence, typed: false }]));
    }
    let mut found = File::new(registry, text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let problem = |error: &toml::de::Error| Problem {
            line: error.span().map(|span| found.lines.at(span.start)),
            sentence: format!("not TOML: {}", error.message()),
            typed: false,
        };
        return Err(fail(errors.iter().take(FOUND_MAX).map(problem).collect()));
    }
    found.read_all(table.get_ref(), overrides, only);
    let config = found.resolve();
    match config {
        Some(config) if found.problems.is_empty() => Ok(config),
        _ => Err(fail(found.problems)),
    }
}

/// Which values are better in a column of a kind's history. The kind decides, by comparing two rows of an arm with these
/// settings that differ only in this column. If the kind does not say, greater values are better.
fn goal(kind: &Kind, settings: Option<&Values>, column: usize) -> Goal {
    let row = |value: f64| (0..kind.columns.len()).map(|other| if other == column { value } else { 0.0 }).collect();
    let (less, more): (Vec<f64>, Vec<f64>) = (row(0.0), row(1.0));
    match kind.ranking.zip(settings).map(|(ranking, settings)| (ranking.compare)(settings, &less, &more)) {
        Some(Ordering::Less) => Goal::Minimize,
        _ => Goal::Maximize,
    }
}

/// The arm and the setting in `arms.NAME.SETTING`.
fn of_arm(key: &str) -> Option<(&str, &str)> {
    let (arm, setting) = key.strip_prefix("arms.")?.rsplit_once('.')?;
    Some((arm.trim_matches('"'), setting))
}

impl<'a> File<'a> {
    fn new(registry: &'a Registry, text: &str) -> Self {
        Self {
            registry,
            lines: Lines::of(text),
            top: Table::new(),
            settings: Table::new(),
            arms: Vec::new(),
            left_out: Vec::new(),
            screen: None,
            ends: Table::new(),
            forks: Vec::new(),
            problems: Vec::new(),
        }
    }

    fn read(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            let line = self.lines.at(key.span().start);
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("settings", DeValue::Table(settings)) => self.settings = self.lines.table(settings),
                ("arms", DeValue::Table(arms)) => self.read_arms(arms),
                ("screen", DeValue::Table(screen)) => self.screen = Some(ScreenTable::read(&self.lines, line, screen)),
                ("ends", DeValue::Table(ends)) => self.ends = self.lines.table(ends),
                ("fork", DeValue::Array(list)) if list.iter().all(|entry| entry.get_ref().is_table()) => {
                    let entries =
                        list.iter().filter_map(|entry| Some((entry.span().start, entry.get_ref().as_table()?)));
                    self.forks =
                        entries.map(|(at, table)| ForkTable::read(&self.lines, self.lines.at(at), table)).collect();
                }
                ("fork", _) => self.problem(line, "fork must be a list of tables: write [[fork]]".into()),
                (name, _) if TABLES.contains(&name) => self.problem(line, format!("{name} must be a table")),
                (name, value) => drop(self.top.insert(name.into(), raw(value, line))),
            }
        }
    }

    /// Reads the file with only the named arms, and applies the overrides.
    fn read_all(&mut self, table: &DeTable<'_>, overrides: &[(String, String)], only: &[String]) {
        self.read(table);
        self.select(only);
        // An override for one arm takes precedence over one for all arms, in whatever order they were given.
        let (special, general): (Vec<_>, Vec<_>) = overrides.iter().partition(|(key, _)| key.starts_with("arms."));
        general.into_iter().chain(special).for_each(|(key, value)| self.override_with(key, value));
    }

    fn read_arms(&mut self, arms: &DeTable<'_>) {
        for (name, settings) in arms {
            let line = self.lines.at(name.span().start);
            let good = (1..=NAME_BYTES_MAX).contains(&name.get_ref().len())
                && name.get_ref().chars().all(|c| (' '..='~').contains(&c));
            match settings.get_ref() {
                _ if !good => self.problem(line, "an arm's name must be 1 to 64 printable ASCII characters".into()),
                DeValue::Table(table) => self.arms.push((name.get_ref().to_string(), line, self.lines.table(table))),
                _ => self.problem(line, format!("arm {:?} must be a table of settings", name.get_ref())),
            }
        }
        self.arms.sort_by_key(|(_, line, _)| *line);
        if self.arms.len() > ARMS_MAX {
            self.problem(self.arms[ARMS_MAX].1, format!("more than {ARMS_MAX} arms"));
            self.arms.truncate(ARMS_MAX);
        }
    }

    /// Removes all arms except these; without names, removes none.
    fn select(&mut self, only: &[String]) {
        if only.is_empty() {
            return;
        }
        let mut names: Vec<&str> = self.arms.iter().map(|(name, ..)| name.as_str()).collect();
        if names.is_empty() {
            names.push(ONLY_ARM);
        }
        for name in only.iter().filter(|name| !names.contains(&name.as_str())) {
            let sentence = no_arm(name, &names);
            self.problems.push(Problem { line: None, sentence, typed: true });
        }
        let chosen = |(name, ..): &WrittenArm| only.contains(name);
        let (arms, left_out) = std::mem::take(&mut self.arms).into_iter().partition(chosen);
        (self.arms, self.left_out) = (arms, left_out);
    }

    fn override_with(&mut self, key: &str, value: &str) {
        let raw = Raw { text: Ok(value.trim_matches('"').into()), place: WrittenAt::Override(key.into()) };
        if let Some((arm, setting)) = of_arm(key) {
            match self.arms.iter_mut().find(|(name, ..)| name == arm) {
                Some((.., table)) => drop(table.insert(setting.into(), raw)),
                None if self.left_out.iter().any(|(name, ..)| name == arm) => {
                    let sentence = format!("--set {key}: --arm leaves that arm out");
                    self.problems.push(Problem { line: None, sentence, typed: true });
                }
                None => {
                    let names: Vec<&str> = self.arms.iter().map(|(name, ..)| name.as_str()).collect();
                    let sentence = format!("--set {key}: {}", no_arm(arm, &names));
                    self.problems.push(Problem { line: None, sentence, typed: true });
                }
            }
        } else if let Some(condition) = key.strip_prefix("ends.") {
            self.ends.insert(condition.into(), raw);
        } else if TABLES.contains(&key) {
            let sentence = format!("--set {key}: it is a table; give SETTING=VALUE or arms.NAME.SETTING=VALUE");
            self.problems.push(Problem { line: None, sentence, typed: true });
        } else if TOP.contains(&key) {
            self.top.insert(key.into(), raw);
        } else {
            self.arms.iter_mut().for_each(|(.., table)| drop(table.remove(key)));
            self.settings.insert(key.into(), raw);
        }
    }

    fn problem(&mut self, line: usize, sentence: String) {
        self.problems.push(Problem { line: Some(line), sentence, typed: false });
    }

    fn problem_at(&mut self, place: &WrittenAt, sentence: &str) {
        self.problems.push(match place {
            WrittenAt::Line(line) => Problem { line: Some(*line), sentence: sentence.into(), typed: false },
            WrittenAt::Override(key) => {
                Problem { line: None, sentence: format!("--set {key}: {sentence}"), typed: true }
            }
        });
    }

    fn resolve(&mut self) -> Option<Config> {
        let kind = self.kind();
        self.take_lists(kind);
        for (name, raw) in self.top.clone() {
            if !TOP.contains(&name.as_str()) && self.problems.len() < FOUND_MAX {
                self.problem_at(&raw.place, &format!("unknown key {}{}", quoted(&name), hint(&name, TOP.into_iter())));
            }
        }
        let seed = self.top_integer("seed", u64::MAX >> 1, 1);
        let replicas = self.top_integer("replicas", u64::from(REPLICAS_MAX), 20);
        if replicas == Some(0) {
            self.problem_at(&self.top["replicas"].place.clone(), "replicas must be at least 1");
        }
        let keep = self.keep();
        let kind = kind?;
        let schema = kind.schema;
        self.check_names(schema);
        let arms = if self.arms.is_empty() { vec![(ONLY_ARM.into(), 1, Table::new())] } else { self.arms.clone() };
        let (screen, arms) = self.resolve_screen(kind, arms)?;
        self.check_bytes(&arms)?;
        let (count, mut mistakes) = (arms.len(), Vec::new());
        let arms = arms.into_iter().filter_map(|(name, line, own)| {
            let (settings, _) = self.resolve_arm(schema, &name, line, &own, &mut mistakes)?;
            Some(Arm { name, settings })
        });
        let arms: Vec<Arm> = arms.collect();
        self.report_once(count, mistakes);
        let ends = self.resolve_ends(kind, arms.first().map(|arm| &arm.settings))?;
        let forks = self.resolve_forks(kind, &arms, screen.is_some())?;
        let config = Config { kind, seed: seed?, replicas: replicas? as u32, arms, screen, ends, forks, keep: keep? };
        if !config.forks.is_empty() && config.to_toml().len() > FILE_BYTES_MAX {
            let sentence = format!("the arms and their forks have more than {FILE_BYTES_MAX} bytes: give fewer arms");
            self.problems.push(Problem { line: None, sentence, typed: false });
        }
        Some(config)
    }

    /// The changes of settings after some rounds.
    fn resolve_forks(&mut self, kind: &Kind, arms: &[Arm], is_screen: bool) -> Option<Vec<Fork>> {
        let tables = std::mem::take(&mut self.forks);
        if is_screen && !tables.is_empty() {
            let sentence = "a screen has no [[fork]]: its arms are treatments from the beginning".into();
            self.problems.push(Problem { line: None, sentence, typed: false });
            return None;
        }
        let left_out: Vec<&str> = self.left_out.iter().map(|(name, ..)| name.as_str()).collect();
        match fork_file::resolve(tables, kind, arms, &left_out) {
            Ok(forks) => Some(forks),
            Err(mistakes) => {
                mistakes.into_iter().for_each(|(place, sentence)| self.problem_at(&place, &sentence));
                None
            }
        }
    }

    /// The conditions that end replicas before their length, if the file has that table.
    fn resolve_ends(&mut self, kind: &'static Kind, settings: Option<&Values>) -> Option<Option<Ends>> {
        let table = std::mem::take(&mut self.ends);
        if table.is_empty() {
            return Some(None);
        }
        if let (Some(instead), Some(raw)) = (kind.own_end, table.values().next()) {
            self.problem_at(&raw.place.clone(), &format!("{} has no [ends]: {instead}", kind.name));
            return None;
        }
        let usual = |column| goal(kind, settings, column);
        match Ends::resolve(&table, kind.columns, kind.primary_metric, usual) {
            Ok(ends) => Some(Some(ends)),
            Err(mistakes) => {
                mistakes.into_iter().for_each(|(place, sentence)| self.problem_at(&place, &sentence));
                None
            }
        }
    }

    /// Checks that the configuration fits into a file when each arm has all its settings, because that is how it is stored.
    fn check_bytes(&mut self, arms: &[WrittenArm]) -> Option<()> {
        let of = |table: &Table| -> usize { table.values().flat_map(|raw| &raw.text).map(String::len).sum() };
        let common = of(&self.settings);
        let all: usize = arms.iter().map(|(.., own)| common + of(own)).sum();
        if all <= FILE_BYTES_MAX {
            return Some(());
        }
        let sentence = format!(
            "the {} arms have {all} bytes of settings, more than {FILE_BYTES_MAX}: each has its own copy of the settings for \
             all arms; give fewer arms",
            arms.len()
        );
        self.problems.push(Problem { line: None, sentence, typed: false });
        None
    }

    /// Moves lists of tables, such as `[[genome]]`, from the top of the file to the settings for all arms.
    fn take_lists(&mut self, kind: Option<&'static Kind>) {
        let fields = kind.map_or(&[][..], |kind| kind.schema.fields());
        for field in fields.iter().filter(|field| matches!(field.shape, Shape::List { .. })) {
            let Some(raw) = self.top.remove(field.name) else { continue };
            match self.settings.get(field.name) {
                // An override replaces the list in the file.
                Some(Raw { place: WrittenAt::Override(_), .. }) => {}
                Some(_) => self.problem_at(&raw.place, &format!("{} is in [settings] too: remove one", field.name)),
                None => drop(self.settings.insert(field.name.into(), raw)),
            }
        }
    }

    /// The screen, and the arms that it makes from these arms: each arm with every treatment.
    fn resolve_screen(
        &mut self,
        kind: &'static Kind,
        arms: Vec<WrittenArm>,
    ) -> Option<(Option<Screen>, Vec<WrittenArm>)> {
        let Some(table) = self.screen.clone() else { return Some((None, arms)) };
        let names = arms.iter().map(|(name, ..)| name.clone()).collect();
        let first = arms.first().and_then(|(name, line, own)| {
            // Mistakes in an arm are reported with its treatments.
            Some(self.resolve_arm(kind.schema, name, *line, own, &mut Vec::new())?.0)
        });
        let screen = match table.resolve(kind, names, |column| goal(kind, first.as_ref(), column)) {
            Ok(screen) => screen,
            Err(mistakes) => {
                mistakes.into_iter().for_each(|(place, sentence)| self.problem_at(&place, &sentence));
                return None;
            }
        };
        let all = std::iter::once(&self.settings).chain(self.arms.iter().map(|(.., own)| own)).flatten();
        let twice: Vec<(String, WrittenAt)> =
            all.filter(|(name, _)| screen.sets(name)).map(|(name, raw)| (name.clone(), raw.place.clone())).collect();
        for (name, place) in &twice {
            self.problem_at(
                place,
                &format!("{name} is a factor of the screen, which sets it: remove it here, or from [screen.factors]"),
            );
        }
        let mut crossed = Vec::new();
        for (arm, line, own) in arms {
            for treatment in 0..screen.design.treatments() {
                let name = screened_name(&arm, &screen.design.treatment(treatment));
                if name.len() > NAME_BYTES_MAX {
                    let sentence = format!(
                        "the name of arm {arm:?} is too long for a screen: with its treatments it \
                         has {} characters, more than {NAME_BYTES_MAX}",
                        name.len()
                    );
                    self.problem(line, sentence);
                    return None;
                }
                let own: Table = own.clone().into_iter().chain(table.settings(&screen.design, treatment)).collect();
                crossed.push((name, line, own));
            }
        }
        Some((Some(screen), crossed))
    }

    fn kind(&mut self) -> Option<&'static Kind> {
        let kinds = self.registry.kinds();
        let names = || kinds.iter().map(|kind| kind.name);
        let Some(raw) = self.top.get("experiment").cloned() else {
            let names: Vec<&str> = names().collect();
            let sentence = format!("the key \"experiment\" is missing: give one of {}", names.join(", "));
            self.problems.push(Problem { line: None, sentence, typed: false });
            return None;
        };
        let name = raw.text.clone().unwrap_or_default();
        let kind = self.registry.kind(&name);
        if kind.is_none() {
            let (all, name): (Vec<&str>, _) = (names().collect(), &name);
            // A hint is a question, so it must come at the end of the sentence.
            let sentence =
                format!("unknown experiment {} (known are {}){}", quoted(name), all.join(", "), hint(name, names()));
            self.problem_at(&raw.place, &sentence);
        }
        kind
    }

    fn top_integer(&mut self, name: &str, max: u64, default: u64) -> Option<u64> {
        let Some(raw) = self.top.get(name).cloned() else { return Some(default) };
        let value = raw.text.ok().and_then(|text| text.parse().ok()).filter(|value| *value <= max);
        if value.is_none() {
            self.problem_at(&raw.place, &format!("{name} must be a whole number from 0 to {max}"));
        }
        value
    }

    /// The bytes of states that stay in the store.
    fn keep(&mut self) -> Option<u64> {
        let Some(raw) = self.top.get("keep").cloned() else { return Some(0) };
        let value = raw.text.ok().and_then(|text| size(&text));
        if value.is_none() {
            self.problem_at(&raw.place, "keep must be a size like \"64 MiB\", or 0");
        }
        value
    }

    fn check_names(&mut self, schema: &'static Schema) {
        let base = self.settings.iter().map(|(name, raw)| (name.clone(), raw.place.clone(), "[settings]".to_owned()));
        let arms = self.arms.iter().flat_map(|(arm, _, table)| {
            table.iter().map(move |(name, raw)| (name.clone(), raw.place.clone(), format!("[arms.{arm:?}]")))
        });
        let all: Vec<(String, WrittenAt, String)> = base.chain(arms).collect();
        for (name, place, table) in all {
            if self.problems.len() >= FOUND_MAX {
                return;
            }
            if schema.fields().iter().all(|field| field.name != name) {
                let hint = hint(&name, schema.fields().iter().map(|field| field.name));
                self.problem_at(&place, &format!("unknown setting {} in {table}{hint}", quoted(&name)));
            }
        }
    }

    /// A value for every field: the arm's own value, else the common one, else what follows from others, else the default. Also
    /// what follows.
    fn resolve_arm(
        &mut self,
        schema: &'static Schema,
        arm: &str,
        line: usize,
        own: &Table,
        mistakes: &mut Vec<Mistake>,
    ) -> Option<(Values, Vec<Follows>)> {
        let mut values: Vec<Value> = Vec::new();
        for field in schema.fields() {
            let raw = own.get(field.name).or_else(|| self.settings.get(field.name)).cloned();
            let value = match raw {
                None => field.shape.read(field.default),
                Some(raw) => match read(field, &raw) {
                    Ok(value) => Ok(value),
                    Err(sentence) => {
                        self.problem_at(&raw.place, &sentence);
                        Err(sentence)
                    }
                },
            };
            values.extend(value);
        }
        if values.len() < schema.fields().len() {
            return None;
        }
        let (values, follows) = Values::new(schema, values).followed(|name| self.leaves_open(own, name));
        // The treatments of a screen differ in its factors alone, and a file has the other settings once for all of them.
        for Follows { setting, why, .. } in follows.iter().filter(|_| self.screen.is_some()) {
            let raw = own.get(*setting).or_else(|| self.settings.get(*setting));
            let value = values.value(setting);
            mistakes.push(Mistake {
                place: raw.map_or(WrittenAt::Line(line), |raw| raw.place.clone()),
                shared: true,
                arm: arm.into(),
                sentence: format!("a screen cannot leave {setting} open: set {setting} = {value}, because {why}"),
            });
        }
        for (name, sentence) in (schema.check)(&values) {
            let own = own.get(name).map(|raw| raw.place.clone());
            let common = || self.settings.get(name).map(|raw| raw.place.clone());
            mistakes.push(Mistake {
                shared: own.is_none(),
                place: own.or_else(common).unwrap_or(WrittenAt::Line(line)),
                arm: arm.into(),
                sentence,
            });
        }
        Some((values, follows))
    }

    /// Whether the value of a setting may follow from others: neither the arm with these settings nor the file gives it, or it
    /// is given as open.
    fn leaves_open(&self, own: &Table, name: &str) -> bool {
        let given = own.get(name).or_else(|| self.settings.get(name));
        given.is_none_or(|raw| raw.text.as_deref() == Ok(OPEN))
    }

    /// Reports a mistake that several of `count` arms share as one problem, at the place of the first arm.
    fn report_once(&mut self, count: usize, mistakes: Vec<Mistake>) {
        let same = |one: &Mistake, other: &Mistake| {
            one.sentence == other.sentence && (one.place == other.place || one.shared && other.shared)
        };
        for (index, first) in mistakes.iter().enumerate() {
            if mistakes[..index].iter().any(|before| same(first, before)) {
                continue;
            }
            let arms: Vec<&str> =
                mistakes[index..].iter().filter(|other| same(first, other)).map(|it| it.arm.as_str()).collect();
            self.problem_at(&first.place, &format!("{}: {}", arms_text(&arms, count), first.sentence));
        }
    }
}
