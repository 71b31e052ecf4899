//! The report of a screen: tables of each arm's effects, effects across arms, favoured levels, and the same as JSON and as
//! pictures. Everything is made from the responses that `result.json` keeps.

use serde_json::{Map, Value, json};

use super::{
    Config, Screen,
    file_names::plain_name,
    screen_levels::{favoured, favoured_elsewhere},
    screen_responses::{Responses, Screened, response_text, responses_of_result, screened},
};
use crate::{
    plot::{HalfNormal, MainEffect, MainEffects},
    report::{Report, Table},
    screen::{Alias, Basis, Effect, Effects, Word},
    stats::{Estimate, is_plain},
    text::probability,
};

/// Replaces the kind's tables, which compare arms one by one, with the screen's tables, and adds the findings to the JSON.
pub(super) fn add_screen(config: &Config, screen: &Screen, responses: Responses, report: &mut Report) {
    let arms = screened(screen, responses);
    let mut tables = vec![design_table(screen, config.replicas)];
    tables.extend(arms.iter().filter_map(|arm| effects_table(config, screen, arm)));
    tables.extend(across_table(screen, &arms));
    // The kind's own notes explain tables that are replaced.
    report.notes = notes(screen, &arms);
    if arms.len() > 1 {
        tables.extend(favoured_elsewhere(screen, &arms));
    } else if let Some(table) = favoured(config, screen, &arms[0]) {
        tables.push(table);
        report.notes.push(
            "The levels are chosen from the same results as the prediction, so the prediction looks better than it is: \
             compute these levels again, with another seed."
                .into(),
        );
    }
    (report.tables, report.figures) = (tables, Vec::new());
    report.json["screen"] = to_json(config, screen, &arms);
}

fn design_table(screen: &Screen, replicas: u32) -> Table {
    let (design, arms) = (&screen.design, screen.arms.len());
    let generators = design.generators();
    let row = |factor: &super::Factor| {
        let start = format!("{} =", factor.letter);
        let generator = generators.iter().find(|text| text.starts_with(&start)).cloned().unwrap_or_default();
        vec![format!("{} {}", factor.letter, factor.name()), factor.level(0), factor.level(1), generator]
    };
    let of_arms = if arms > 1 { format!(" x {arms} arms") } else { String::new() };
    let (treatments, s) = (design.treatments(), if replicas == 1 { "" } else { "s" });
    let mut table = Table {
        title: format!("A {}: {treatments} treatments{of_arms} x {replicas} replica{s}", design.name()),
        header: ["factor", "low", "high", "generator"].map(String::from).to_vec(),
        rows: screen.factors.iter().map(row).collect(),
    };
    if generators.is_empty() {
        table.header.pop();
        table.rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    table
}

/// " in arm \"small\"", or nothing if there is only one arm.
fn in_arm(screen: &Screen, arm: &str) -> String {
    if screen.arms.len() > 1 { format!(" in arm {arm:?}") } else { String::new() }
}

/// Whether a table shows an effect: all main effects and two-factor interactions are shown, and other effects only if they
/// are found.
fn is_shown(effect: &Effect) -> bool {
    effect.aliases[0].word.length() <= 2 || effect.is_found()
}

/// The effect's first alias. A main effect is followed by its settings.
pub(super) fn effect_name(screen: &Screen, word: Word) -> String {
    match screen.factors.iter().find(|factor| factor.letter == word) {
        Some(factor) => format!("{word} {}", factor.name()),
        None => word.to_string(),
    }
}

/// "+ CE - DF": all aliases but the first.
fn others(aliases: &[Alias]) -> String {
    let sign = |alias: &Alias| if alias.negative { '-' } else { '+' };
    let words = aliases.iter().skip(1).map(|alias| format!("{} {}", sign(alias), alias.word));
    words.collect::<Vec<_>>().join(" ")
}

/// The number of decimals with which all these effects are written: as many as their intervals need or, without intervals, as
/// the greatest effect needs. `None` for powers of ten, if the greatest effect is easier to read that way.
fn digits(effects: &mut dyn Iterator<Item = &Effect>) -> Option<usize> {
    let (mut greatest, mut digits) = (0.0_f64, None);
    for effect in effects {
        greatest = greatest.max(effect.estimate.abs());
        let own = effect.half_width.map(|_| estimate(effect).decimals());
        digits = digits.max(own);
    }
    let of_greatest = || Estimate { mean: greatest, half_width: None }.decimals();
    is_plain(greatest).then(|| digits.unwrap_or_else(of_greatest))
}

pub(super) fn estimate(effect: &Effect) -> Estimate {
    Estimate { mean: effect.estimate, half_width: effect.half_width }
}

fn text(estimate: Estimate, digits: Option<usize>) -> String {
    digits.map_or_else(|| estimate.powers(), |digits| estimate.text(digits))
}

fn effects_table(config: &Config, screen: &Screen, arm: &Screened<'_>) -> Option<Table> {
    let effects = arm.effects.as_ref()?;
    let digits = digits(&mut effects.effects.iter());
    let row = |effect: &Effect| {
        let factor = screen.factors.iter().find(|factor| factor.letter == effect.aliases[0].word);
        vec![
            effect_name(screen, effect.aliases[0].word),
            factor.map_or_else(String::new, |factor| format!("{} to {}", factor.level(0), factor.level(1))),
            others(&effect.aliases),
            text(estimate(effect), digits),
            effect.p.map_or_else(|| "-".into(), probability),
            if effect.is_found() { "yes" } else { "" }.into(),
        ]
    };
    // Main effects come in the order of their letters, the others follow by size.
    let (mut main, mut rest): (Vec<&Effect>, Vec<&Effect>) =
        effects.effects.iter().filter(|effect| is_shown(effect)).partition(|it| it.aliases[0].word.length() == 1);
    rest.sort_by(|one, other| other.estimate.abs().total_cmp(&one.estimate.abs()));
    main.extend(rest);
    let (response, all) = (response_text(config, screen), effects.effects.len());
    let method = match effects.basis {
        Basis::Replicas { .. } => format!("± 95 % interval of all {all} together (Bonferroni t)"),
        Basis::Lenth => format!("± Lenth's simultaneous margin of error (95 %) of {all}"),
        Basis::Unknown => "without intervals: one replica, and too few effects or most of them 0".into(),
    };
    let mut table = Table {
        title: format!("Effects on {response}{}, {method}", in_arm(screen, arm.arm)),
        header: ["effect", "levels", "aliased with", "estimate", "p (corrected)", "found"].map(String::from).to_vec(),
        rows: main.into_iter().map(row).collect(),
    };
    if table.rows.iter().all(|row| row[2].is_empty()) {
        table.header.remove(2);
        table.rows.iter_mut().for_each(|row| drop(row.remove(2)));
    }
    Some(table)
}

/// A table of the arms side by side, with all main effects and each effect that is found in any arm; `None` for a single arm.
fn across_table(screen: &Screen, arms: &[Screened<'_>]) -> Option<Table> {
    let all: Vec<&Effects> = arms.iter().filter_map(|arm| arm.effects.as_ref()).collect();
    if all.len() < 2 || all.len() < arms.len() {
        return None;
    }
    let of = |place: usize| all.iter().map(move |effects| &effects.effects[place]);
    let shown = |place: &usize| of(*place).any(|effect| effect.aliases[0].word.length() == 1 || effect.is_found());
    let digits = digits(&mut all.iter().flat_map(|effects| &effects.effects));
    let row = |place: usize| {
        let aliases = &all[0].effects[place].aliases;
        let name = format!("{} {}", effect_name(screen, aliases[0].word), others(aliases));
        let cell = |effect: &Effect| {
            let mark = if effect.is_found() { "*" } else { " " };
            text(Estimate { mean: effect.estimate, half_width: None }, digits) + mark
        };
        let found: Vec<f64> = of(place).filter(|it| it.is_found()).map(|effect| effect.estimate.signum()).collect();
        let verdict = match found.as_slice() {
            [] => "not found".to_owned(),
            [first, rest @ ..] if rest.iter().any(|sign| sign != first) => "found with both signs".into(),
            signs if signs.len() == all.len() => format!("found in all {}", all.len()),
            signs => {
                let alike = of(place).filter(|effect| effect.estimate * signs[0] > 0.0).count();
                format!("found in {} of {}, same sign in {alike}", signs.len(), all.len())
            }
        };
        let mut row = vec![name.trim_end().to_owned()];
        row.extend(of(place).map(cell));
        row.push(verdict);
        row
    };
    let names = arms.iter().map(|arm| arm.arm.to_owned());
    Some(Table {
        title: "The same effects side by side (* found in that arm)".into(),
        header: ["effect".to_owned()].into_iter().chain(names).chain(["verdict".to_owned()]).collect(),
        rows: (0..all[0].effects.len()).filter(shown).map(row).collect(),
    })
}

/// The reasons why a replica may have no response in a treatment.
const NO_RESPONSE: &str = "not finished, ended early, or without a solution";

fn notes(screen: &Screen, arms: &[Screened<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(relation) = screen.design.defining_relation() {
        notes.push(format!(
            "Defining relation {relation}. An effect and what it is aliased with are estimated together, and so are \
             interactions of three and more factors: assume that they are 0, or separate them with further treatments."
        ));
    }
    for arm in arms {
        let place = in_arm(screen, arm.arm);
        match arm.left_out() {
            0 => {}
            1 => notes.push(format!(
                "1 replica{place} is left out of the effects: not every treatment has a response of it ({NO_RESPONSE})."
            )),
            count => notes.push(format!(
                "{count} replicas{place} are left out of the effects: not every treatment has a response of them ({NO_RESPONSE})."
            )),
        }
        let Some(effects) = &arm.effects else { continue };
        match effects.basis {
            Basis::Replicas { .. } if effects.effects.iter().any(|effect| effect.half_width.is_none()) => notes.push(format!(
                "The {} replicas{place} agree, so effects have no interval: p is that of the sign test over replicas.",
                effects.replicas
            )),
            Basis::Replicas { freedom } => notes.push(format!(
                "The error{place} comes from {} replicas as blocks, with {freedom:.1} degrees of freedom.",
                effects.replicas
            )),
            Basis::Lenth => notes.push(format!(
                "There is one replica{place}: the error is Lenth's, which assumes that most effects are 0. With more replicas it \
                 would be measured."
            )),
            Basis::Unknown => {}
        }
        let own: Vec<String> = effects
            .effects
            .iter()
            .filter(|effect| effect.own_error && is_shown(effect))
            .map(|effect| effect.aliases[0].word.to_string())
            .collect();
        if !own.is_empty() {
            notes.push(format!(
                "The interval of {}{place} comes from the effect's own differences between replicas, which are greater than \
                 the common error explains.",
                own.join(", ")
            ));
        }
    }
    notes
}

fn to_json(config: &Config, screen: &Screen, arms: &[Screened<'_>]) -> Value {
    let levels =
        |levels: &[crate::settings::Value; 2]| Value::from_iter(levels.iter().map(crate::settings::Value::bare));
    let factor = |factor: &super::Factor| {
        let settings = factor.settings.iter().map(|(name, values)| ((*name).to_owned(), levels(values)));
        (factor.letter.to_string(), Value::Object(settings.collect()))
    };
    json!({
        "design": screen.design.name(),
        "generators": screen.design.generators(),
        "defining_relation": screen.design.defining_relation(),
        "response": config.kind.columns[screen.response].name,
        "at": screen.at.word(),
        "goal": screen.goal.word(),
        "factors": screen.factors.iter().map(factor).collect::<Map<String, Value>>(),
        "arms": arms.iter().map(arm_json).collect::<Vec<Value>>(),
    })
}

fn arm_json(arm: &Screened<'_>) -> Value {
    let effect = |effect: &Effect| {
        json!({
            "effect": effect.aliases[0].word.to_string(),
            "aliased_with": others(&effect.aliases),
            "estimate": effect.estimate,
            "half_width": effect.half_width,
            "p": effect.p,
            "found": effect.is_found(),
        })
    };
    let mut json = json!({"name": arm.arm, "responses": arm.responses});
    if let Some(effects) = &arm.effects {
        json["mean"] = effects.mean.into();
        json["replicas"] = effects.replicas.into();
        json["standard_error"] = effects.standard_error.into();
        json["effects"] = effects.effects.iter().map(effect).collect();
    }
    json
}

/// What results of a screen have in addition to those of other runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScreenFiles {
    /// For each arm of the file, a half-normal plot and a plot of main effects: file name without extension, and SVG.
    pub pictures: Vec<(String, String)>,
    /// `effects.csv`, the table of all effects: its rows, beginning with the header. Empty without a screen.
    pub effects: Vec<Vec<String>>,
}

/// Makes the files of a screen from the content of `result.json`. A run without a screen has none.
#[must_use]
pub fn screen_files(config: &Config, result: &Value) -> ScreenFiles {
    let Some(screen) = &config.screen else { return ScreenFiles::default() };
    let Some(responses) = responses_of_result(screen, &result["screen"]) else { return ScreenFiles::default() };
    let arms = screened(screen, responses);
    let mut rows =
        vec![["arm", "effect", "aliased_with", "estimate", "half_width", "p", "found"].map(String::from).to_vec()];
    let mut pictures = Vec::new();
    for (index, arm) in arms.iter().enumerate() {
        let Some(effects) = &arm.effects else { continue };
        let name = plain_name(&screen.arms, index);
        let suffix = if arms.len() > 1 { format!("-{name}") } else { String::new() };
        let title = if arms.len() > 1 { format!(", {}", arm.arm) } else { String::new() };
        let response = response_text(config, screen);
        let half_normal = half_normal(screen, effects, format!("Effects on {response}{title}"));
        pictures.push((format!("half-normal{suffix}"), half_normal.svg()));
        let main = main_effects(screen, effects, format!("Main effects on {response}{title}"), response.clone());
        pictures.push((format!("main-effects{suffix}"), main.svg()));
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        rows.extend(effects.effects.iter().map(|effect| {
            vec![
                arm.arm.to_owned(),
                effect.aliases[0].word.to_string(),
                others(&effect.aliases),
                effect.estimate.to_string(),
                number(effect.half_width),
                number(effect.p),
                effect.is_found().to_string(),
            ]
        }));
    }
    ScreenFiles { pictures, effects: rows }
}

fn half_normal(screen: &Screen, effects: &Effects, title: String) -> HalfNormal {
    let margin = effects.effects.iter().filter(|effect| !effect.own_error).find_map(|effect| effect.half_width);
    let point = |(place, quantile, size): (usize, f64, f64)| {
        let effect = &effects.effects[place];
        (effect_name(screen, effect.aliases[0].word), quantile, size, effect.is_found())
    };
    let source = match effects.basis {
        Basis::Replicas { .. } => "the standard error from replicas",
        Basis::Lenth => "Lenth's pseudo standard error",
        Basis::Unknown => "",
    };
    HalfNormal {
        title,
        points: effects.half_normal().into_iter().map(point).collect(),
        slope: effects.standard_error,
        slope_source: source.into(),
        margin,
    }
}

fn main_effects(screen: &Screen, effects: &Effects, title: String, y_label: String) -> MainEffects {
    let panel = |effect: &Effect| {
        let factor = screen.factors.iter().find(|factor| factor.letter == effect.aliases[0].word)?;
        Some(MainEffect {
            name: format!("{} {}", factor.letter, factor.name()),
            levels: [factor.level(0), factor.level(1)],
            effect: effect.estimate,
            half_width: effect.half_width,
            found: effect.is_found(),
        })
    };
    MainEffects { title, y_label, mean: effects.mean, panels: effects.effects.iter().filter_map(panel).collect() }
}
