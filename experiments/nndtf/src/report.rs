//! The report of `nndtf`, compared with the paper's figures.
//!
//! At the end of a run every champion is judged again on all boards, plays the paper's match against the first arm's champion
//! of the same replica, and has its exact odds computed. `result.json` keeps these figures, and the report is computed from them. Each
//! figure of an arm is a mean over its replicas with a 95 % interval.

use serde_json::{Map, Value, json};

use evoxo_common::{
    experiment::Config,
    math::mean,
    report::{Drawn, Figure, Reference, Report, Series, Table},
    stats::{Sample, estimate, share_text, wilson},
};
use evoxo_games::{
    board::{Board, Side, cells, tic_tac_toe},
    odds::Odds,
    player::{
        duel::Duel,
        teacher::{self, BOARDS, boards},
    },
};

use super::{
    arm::{Arm, Champion, FIRM_MARGIN, PAPER_FITNESS, Shown, odds_json, seen_from_the_other},
    measure::Measure,
    network::{Kind, Network},
};

/// An arm with its champions after they were judged again.
struct Class<'a> {
    arm: Shown<'a>,
    told: &'a Arm,
    champions: Vec<(u32, &'a Champion)>,
}

/// Results of a match over all replicas, from the point of view of the player that moves first.
struct Match {
    first: usize,
    second: usize,
    duels: Vec<Duel>,
}

/// Tables, notes, numbers and figures of all arms.
pub(super) fn report(config: &Config, arms: &[Arm]) -> Report {
    let classes: Vec<Class<'_>> = arms
        .iter()
        .enumerate()
        .map(|(index, told)| Class { arm: Shown::new(config, index), told, champions: told.champions().collect() })
        .collect();
    let matches = matches(&classes);
    let summaries = classes.iter().map(|class| (class.arm.name.to_owned(), summary_json(class)));
    let mut summary: Map<String, Value> = Map::new();
    summary.insert("arms".into(), Value::Object(summaries.collect()));
    summary.insert("matches".into(), matches.iter().map(|one| match_json(&classes, one)).collect());
    summary.insert("baselines".into(), baselines_json());
    let mut tables = vec![fitness_table(&classes)];
    if classes.len() > 1 {
        tables.extend([differences_table(&classes), match_table(&classes, &matches)]);
    }
    tables.push(odds_table(&classes));
    Report {
        tables,
        notes: notes(&classes),
        json: json!({"summary": summary}),
        figures: figure(&classes).into_iter().collect(),
        maps: Vec::new(),
    }
}

impl Class<'_> {
    fn values(&self, value: impl Fn(&Champion) -> f64) -> Vec<f64> {
        self.champions.iter().map(|(_, champion)| value(champion)).collect()
    }
}

/// "0.784 ± 0.012", or a dash if there are no values.
fn text(values: &[f64], decimals: usize) -> String {
    estimate(values).map_or_else(|| "-".into(), |estimate| estimate.text(decimals))
}

/// The matches of each other arm against the first, with each of the two moving first.
fn matches(arms: &[Class<'_>]) -> Vec<Match> {
    let duels = |other: usize| arms[other].champions.iter().filter_map(|(_, champion)| champion.duels());
    let pair = |other: usize| {
        let first_arm_first = duels(other).map(|[_, moving_second]| seen_from_the_other(moving_second)).collect();
        let other_first = duels(other).map(|[moving_first, _]| moving_first).collect();
        [
            Match { first: 0, second: other, duels: first_arm_first },
            Match { first: other, second: 0, duels: other_first },
        ]
    };
    (1..arms.len()).flat_map(pair).filter(|one| !one.duels.is_empty()).collect()
}

/// The mean worth of a random legal cell on a board.
fn random_worth(measure: Measure, index: u32) -> f64 {
    let board = boards()[index as usize];
    let free: Vec<f64> = cells(tic_tac_toe().legal(board)).map(|cell| f64::from(measure.worth(index, cell))).collect();
    mean(&free).unwrap_or(0.0)
}

/// The fitness of two players that learn nothing: a random one, and one that takes the cell nearest to 5.
fn baselines(network: Network, measure: Measure, indices: &[u32]) -> [f64; 2] {
    let over = |worth: &dyn Fn(u32) -> f64| {
        indices.iter().map(|index| worth(*index)).sum::<f64>() / measure.whole(indices) as f64
    };
    let nearest = |index| f64::from(measure.worth_of_number(network, index, 5.0));
    [over(&|index| random_worth(measure, index)), over(&nearest)]
}

fn every_board() -> Vec<u32> {
    (0..BOARDS as u32).collect()
}

/// The first arm of each group with the same training boards and the same measure. Players that learn nothing have the same
/// fitness within a group. (The other numbering mirrors boards, and the set of all boards is its own mirror image.)
fn alike<'a, 'b>(arms: &'b [Class<'a>]) -> Vec<&'b Class<'a>> {
    let task = |class: &Class<'_>| {
        let settings = &class.arm.settings;
        (settings.source(), settings.boards, settings.measure())
    };
    let mut firsts: Vec<&Class<'_>> = Vec::new();
    for class in arms {
        if firsts.iter().all(|first| task(first) != task(class)) {
            firsts.push(class);
        }
    }
    firsts
}

fn fitness_table(arms: &[Class<'_>]) -> Table {
    let mut rows = Vec::new();
    let mut row = |name: String, training: &[f64], firm: String, all: String, paper: &str| {
        let sample = Sample::of(training).filter(|sample| sample.count > 1);
        rows.push(vec![
            name,
            text(training, 4),
            sample.map_or_else(|| "-".into(), |sample| format!("{:.4}", sample.deviation)),
            training.iter().copied().reduce(f64::max).map_or_else(|| "-".into(), |best| format!("{best:.4}")),
            paper.into(),
            firm,
            all,
        ]);
    };
    for class in arms {
        let paper = class.arm.contestant().map(|index| format!("{:.4}", PAPER_FITNESS[index])).unwrap_or_default();
        let mean = |value: fn(&Champion) -> f64| text(&class.values(value), 4);
        let (firm, all) = (mean(|one| one.firm), mean(|one| one.all));
        row(class.arm.name.into(), &class.values(|one| one.training), firm, all, &paper);
    }
    let firsts = alike(arms);
    for Class { arm, told, .. } in firsts.iter().copied() {
        let (network, measure) = (arm.settings.architecture(), arm.settings.measure());
        let sets = told.replicas.iter().map(|replica| arm.training_boards(replica.replica));
        let trained: Vec<[f64; 2]> = sets.map(|set| baselines(network, measure, &set)).collect();
        let whole = baselines(network, measure, &every_board());
        let of = if firsts.len() > 1 { format!(", judged as {}", arm.name) } else { String::new() };
        for (index, name) in ["a random legal cell", "the cell nearest to 5"].into_iter().enumerate() {
            let values: Vec<f64> = trained.iter().map(|values| values[index]).collect();
            row(format!("{name}{of}"), &values, String::new(), format!("{:.4}", whole[index]), "");
        }
    }
    Table {
        title: "Fitness of champions: mean over replicas ± 95 % interval; a perfect pupil of the teacher has 1".into(),
        header: ["champions", "training boards", "s.d.", "best", "the paper", "near ties lost", "all 2423 boards"]
            .map(String::from)
            .into(),
        rows,
    }
}

/// The differences from the first arm, for the replicas that both arms have.
fn differences(arms: &[Class<'_>], other: usize, value: impl Fn(&Champion) -> f64) -> Vec<f64> {
    let pair = |(replica, one): &(u32, &Champion)| {
        let (_, first) = arms[0].champions.iter().find(|(other, _)| other == replica)?;
        Some(value(one) - value(first))
    };
    arms[other].champions.iter().filter_map(pair).collect()
}

fn differences_table(arms: &[Class<'_>]) -> Table {
    let row = |other: usize| {
        let training = differences(arms, other, |one| one.training);
        let better = training.iter().filter(|difference| **difference > 0.0).count();
        vec![
            arms[other].arm.name.to_owned(),
            text(&training, 4),
            share_text(better, training.len()),
            text(&differences(arms, other, |one| one.firm), 4),
            text(&differences(arms, other, |one| one.all), 4),
        ]
    };
    let less = format!("fitness less that of {}", arms[0].arm.name);
    Table {
        title: match alike(arms).len() {
            1 => "Differences, replica by replica on the same boards".into(),
            _ => "Differences, replica by replica, also where boards or fitness differ".into(),
        },
        header: [less.as_str(), "training boards", "fitter in", "near ties lost", "all 2423 boards"]
            .map(String::from)
            .into(),
        rows: (1..arms.len()).map(row).collect(),
    }
}

/// Wins, draws or losses of the player that moves first, one value per replica.
fn counts(one: &Match, which: usize) -> Vec<f64> {
    one.duels.iter().map(|duel| f64::from([duel.wins, duel.draws, duel.losses][which])).collect()
}

/// Table 1 of the paper. The heading of its second row says "proposed NN wins : draws : loses", but the paper's conclusion
/// reads the row's 13 as wins of the traditional network. The row is therefore shown from both points of view.
fn match_table(arms: &[Class<'_>], matches: &[Match]) -> Table {
    let mut rows = Vec::new();
    for one in matches {
        let (first, second) = (&arms[one.first].arm, &arms[one.second].arm);
        let paper = match (first.contestant(), second.contestant()) {
            (Some(0), Some(1)) => "18 : 3 : 4",
            (Some(1), Some(0)) => "13 : 4 : 8",
            _ => "",
        };
        let mut row = |seen: &str, order: [usize; 3], paper: &str| {
            let [wins, draws, losses] = order.map(|which| text(&counts(one, which), 1));
            rows.push(vec![
                format!("{} moves first, against {}", first.name, second.name),
                seen.into(),
                wins,
                draws,
                losses,
                paper.into(),
            ]);
        };
        if one.first == 0 {
            row(first.name, [0, 1, 2], paper);
        } else {
            row(second.name, [2, 1, 0], if paper.is_empty() { "" } else { "13 : 4 : 8 (heading)" });
            row(first.name, [0, 1, 2], if paper.is_empty() { "" } else { "13 : 4 : 8 (conclusion)" });
        }
    }
    Table {
        title: "Table 1: 25 games a replica from boards with two X and two O, without the training".into(),
        header: ["match", "seen from", "wins", "draws", "losses", "the paper"].map(String::from).into(),
        rows,
    }
}

/// The number of champions that never lose as this side.
fn never_losing(class: &Class<'_>, side: Side) -> usize {
    class.champions.iter().filter(|(_, one)| one.strength(side).unbeatable).count()
}

fn odds_table(arms: &[Class<'_>]) -> Table {
    let mut rows = Vec::new();
    let share = |part: f64| format!("{:.2}", 100.0 * part);
    for side in Side::BOTH {
        let Odds { win, draw, loss } = teacher::exact(side).odds;
        let never = if teacher::exact(side).unbeatable() { "yes" } else { "no" };
        let [win, draw, loss] = [win, draw, loss].map(|part| share(part.to_f64()));
        rows.push(vec![format!("the teacher as {}", side.letter()), win, draw, loss, never.into()]);
    }
    for (class, side) in arms.iter().flat_map(|class| Side::BOTH.map(|side| (class, side))) {
        let odds = |one: &Champion| one.strength(side).odds;
        rows.push(vec![
            format!("{} as {}", class.arm.name, side.letter()),
            text(&class.values(|one| 100.0 * odds(one).win.to_f64()), 2),
            text(&class.values(|one| 100.0 * odds(one).draw.to_f64()), 2),
            text(&class.values(|one| 100.0 * odds(one).loss.to_f64()), 2),
            share_text(never_losing(class, side), class.champions.len()),
        ]);
    }
    Table {
        title: "Exact odds against a random mover that completes and blocks lines; the players have no such filter"
            .into(),
        header: ["player", "win %", "draw %", "loss %", "never loses"].map(String::from).into(),
        rows,
    }
}

/// A game as its boards and its moves.
fn line_text(line: &[u8]) -> String {
    let game = tic_tac_toe();
    let names: Vec<String> = line.iter().map(|cell| game.cell_name(*cell)).collect();
    let end = line.iter().fold(Board::EMPTY, |board, cell| board.play(*cell));
    format!("{} ends in {}", names.join(" "), game.board_rows(end))
}

fn notes(arms: &[Class<'_>]) -> Vec<String> {
    let [x, o] = Side::BOTH.map(teacher::exact);
    let mut notes = vec![
        format!(
            "± and brackets are 95 % intervals over replicas. {} and play from the same boards.",
            match alike(arms).len() {
                1 => "All arms of a replica have the same training boards",
                _ => {
                    "Arms that draw training boards in the same way have the same ones in each replica; all are judged \
                     by their own fitness"
                }
            }
        ),
        format!(
            "Near ties lost: the fitness if every output within {FIRM_MARGIN} of the middle between two cells took the \
             worse of them. If it is lower, champions depend on the last digits of their outputs."
        ),
        format!(
            "The teacher never loses as X (proven over {} positions), and can be beaten as O: it loses {} games, the first \
             of them {}.",
            x.positions,
            o.losing_lines,
            o.examples.first().map(|line| line_text(line)).unwrap_or_default()
        ),
    ];
    for class in arms {
        if let Some(paper) = class.arm.contestant().map(|index| PAPER_FITNESS[index]) {
            let reached = class.champions.iter().filter(|(_, one)| one.training >= paper).count();
            let (name, count) = (class.arm.name, class.champions.len());
            let reached = share_text(reached, count);
            notes.push(format!("Champions of {name} that reach the paper's fitness of {paper}: {reached}."));
        }
    }
    if [0, 1].iter().all(|index| arms.iter().any(|class| class.arm.contestant() == Some(*index))) {
        notes.push(
            "The second row of the paper's Table 1 is headed with the proposed network's wins, but the conclusion \
             counts its 13 as the traditional network's. In that case, the network that moves first wins more in both \
             rows."
                .into(),
        );
    }
    let unfinished = arms.iter().flat_map(|class| &class.told.replicas).filter(|replica| !replica.finished).count();
    if unfinished > 0 {
        notes.push(format!("Not finished yet: {unfinished} of the replicas. Their champions are the best so far."));
    }
    notes
}

fn estimate_json(values: &[f64]) -> Value {
    estimate(values).map_or(Value::Null, |estimate| {
        let [low, high] = estimate.ends();
        let deviation = Sample::of(values).map(|sample| sample.deviation);
        json!({"mean": estimate.mean, "low": low, "high": high, "deviation": deviation})
    })
}

fn summary_json(class: &Class<'_>) -> Value {
    let total = class.champions.len();
    let never = |side: Side| {
        let count = never_losing(class, side);
        let (low, high) = wilson(count, total);
        json!({"count": count, "low": low, "high": high})
    };
    json!({
        "champions": total,
        "fitness": estimate_json(&class.values(|one| one.training)),
        "firm_fitness": estimate_json(&class.values(|one| one.firm)),
        "fitness_on_all_boards": estimate_json(&class.values(|one| one.all)),
        "paper": class.arm.contestant().map(|index| PAPER_FITNESS[index]),
        "unbeatable": {"X": never(Side::X), "O": never(Side::O)},
    })
}

fn match_json(arms: &[Class<'_>], one: &Match) -> Value {
    let [wins, draws, losses] = [0, 1, 2].map(|which| estimate_json(&counts(one, which)));
    json!({
        "first": arms[one.first].arm.name, "second": arms[one.second].arm.name, "replicas": one.duels.len(),
        "wins_of_first": wins, "draws": draws, "losses_of_first": losses,
    })
}

fn baselines_json() -> Value {
    let network = Network::paper(Kind::Double);
    let [random, centre] = baselines(network, Measure::USUAL, &every_board());
    let [x, o] = Side::BOTH.map(teacher::exact);
    json!({
        "random_legal_cell": random, "cell_nearest_to_5": centre,
        "teacher_as_x": odds_json(&x), "teacher_as_o": odds_json(&o),
    })
}

/// The figure of fitness, with one curve per arm.
fn figure(arms: &[Class<'_>]) -> Option<Figure> {
    let curve = |class: &Class<'_>| Some(class.told.curve(class.arm.name)?.per(1000.0));
    let series: Vec<Series> = arms.iter().filter_map(curve).collect();
    let paper = |(index, name): (usize, &str)| {
        let mut same = arms.iter().map(|class| &class.arm).filter(|arm| arm.contestant() == Some(index));
        let (first, value) = (same.next()?, PAPER_FITNESS[index]);
        let of = same.next().is_none().then(|| first.name.to_owned());
        Some(Reference { name: format!("the paper's {name}, {value:.4}"), value, of })
    };
    (!series.is_empty()).then(|| Figure {
        name: "fitness".into(),
        title: format!("Fitness on the training boards ({} replicas)", arms[0].told.replicas.len()),
        x_label: "evaluations (thousands)".into(),
        y_label: "fitness of the fittest chromosome (0 to 1)".into(),
        y_range: None,
        drawn: Drawn::Means,
        references: ["proposal", "rival"].into_iter().enumerate().filter_map(paper).collect(),
        series,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        registry,
        settings::Settings,
        testing::{parse, run},
    };
    use evoxo_common::{experiment::Replica, local};
    use evoxo_games::player::teacher::scores;

    const CONFIG: &str = "experiment = \"nndtf\"\nseed = 3\nreplicas = 3\n[settings]\niterations = 60\nevaluations = 400\n\
                          offspring = 20\n[arms.proposed]\n[arms.traditional]\nnetwork = \"traditional\"\n\
                          algorithm = \"traditional\"\n[arms.\"cma-es\"]\nalgorithm = \"cma-es\"\n";

    #[test]
    fn the_report_of_a_small_run_is_readable() {
        let config = parse(CONFIG);
        let report = config.report(&run(&config));
        let tables: Vec<String> = report.tables.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!("tables", format!("{}\n{}", tables.join("\n"), report.notes.join("\n")));
        insta::assert_snapshot!("json", format!("{:#}", report.json["summary"]));
        assert_eq!(report.figures.len(), 1);
    }

    /// The report computed from `result.json` is the one shown at the end of the run.
    #[test]
    fn a_report_from_a_result_equals_the_original() {
        let config = parse(CONFIG);
        let mut replicas = run(&config);
        // One replica has not begun.
        replicas[4] = Replica::start(&config, &config.arms[1], 1);
        let whole = config.report(&replicas);
        let mut result = json!({"experiment": "nndtf", "seed": config.seed, "replicas": config.replicas});
        result.as_object_mut().unwrap().extend(whole.json.as_object().unwrap().clone());
        let text = result.to_string();
        let again = registry().report_of_result(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(again, whole);
        for (old, new, says) in [
            ("\"low\":[", "\"low\":[0.5,", "the curve \"best\": "),
            ("\"firm_fitness\":", "\"firm\":", "missing field `firm_fitness`"),
            ("\"win\":\"", "\"win\":\"x", "is not a probability"),
            ("\"moving_second\":", "\"moving\":", "only one side"),
            ("\"replica\":0", "\"replica\":-1", "expected u32"),
        ] {
            let broken: Value = serde_json::from_str(&text.replacen(old, new, 1)).unwrap();
            let sentence = registry().report_of_result(&broken).unwrap_err();
            assert!(sentence.contains(says), "{new}: {sentence}");
        }
    }

    #[test]
    fn a_run_that_has_just_started_has_a_report() {
        let config = parse(CONFIG);
        let report = config.report(&local::start(&config).collect::<Vec<_>>());
        assert!(report.notes.iter().any(|note| note.contains("Not finished yet: 9")));
        assert!(report.figures.is_empty());
    }

    /// The figures come from an independent implementation of the baselines, which sums over all boards, cell by cell.
    #[test]
    fn baselines_are_means_over_all_boards() {
        let network = Settings::of(&parse("experiment = \"nndtf\"").arms[0].settings).architecture();
        let [random, centre] = baselines(network, Measure::USUAL, &every_board());
        let plain = |pick: &dyn Fn(Board, &[u8]) -> Vec<u8>| {
            let share = |board: &Board| {
                let free: Vec<u8> = cells(tic_tac_toe().legal(*board)).collect();
                let (scores, picked) = (scores(*board), pick(*board, &free));
                let best = f64::from(*scores.iter().max().unwrap());
                picked.iter().map(|cell| f64::from(scores[usize::from(*cell)]) / best).sum::<f64>()
                    / picked.len() as f64
            };
            boards().iter().map(share).sum::<f64>() / BOARDS as f64
        };
        assert!((random - plain(&|_, free| free.to_vec())).abs() < 1e-7);
        // Sorted by distance from number 5; of two equally near cells, the lower one comes first.
        let order = [4, 3, 5, 2, 6, 1, 7, 0, 8];
        let nearest = |_: Board, free: &[u8]| vec![*order.iter().find(|cell| free.contains(cell)).unwrap()];
        assert!((centre - plain(&nearest)).abs() < 1e-7);
        insta::assert_snapshot!(format!("{random:.4} {centre:.4}"));
    }
}
