//! What `invincible` says at the end, beside the page's figures.
//!
//! Every champion's odds are exact; what is said of an arm is a mean over its replicas with a 95 % interval. A replica has
//! reached its peak in the first generation whose best player is worth, exactly, as much as the best of any generation
//! within one hundredth of a point.

use serde_json::{Value, json};

use super::{
    facts::{BoardCounts, board_counts, games, random_play},
    optimum::{Optimum, never_losing, optimum},
};
use crate::{
    audit::{Audit, Odds},
    board::Side,
    card::Player,
    config::{Config, Values},
    finale::{Figure, Finale, Table, curve, file_name, replica_json, settings_json},
    ratio::Ratio,
    replica::Replica,
    rng::Stream,
    stats::{Estimate, estimate, odds_interval, wilson},
};

/// An arm with everything that is known of its champions.
struct Arm<'a> {
    name: &'a str,
    side: Side,
    penalty: Ratio,
    replicas: &'a [&'a Replica],
    /// One entry a replica; `None` before its first generation.
    champions: Vec<Option<Champion>>,
    optimum: Optimum,
    /// Of the resamples of its intervals.
    stream: Stream,
}

struct Champion {
    audit: Audit,
    peak: usize,
    optimal: bool,
}

/// Makes tables, notes, numbers and figures of all arms with their replicas.
#[must_use]
pub fn finale(config: &Config, arms: &[(usize, Vec<&Replica>)]) -> Finale {
    let judged: Vec<Arm<'_>> = arms.iter().map(|(index, replicas)| judge(config, *index, replicas)).collect();
    Finale {
        tables: vec![champions_table(&judged), optimum_table(&judged), page_table(&judged)],
        notes: notes(&judged),
        json: json!({
            "arms": arms.iter().zip(&judged).map(|((index, _), arm)| arm_json(config, *index, arm)).collect::<Vec<_>>(),
            "summary": judged.iter().map(|arm| (arm.name.to_owned(), summary_json(arm))).collect::<serde_json::Map<_, _>>(),
        }),
        figures: arms.iter().zip(&judged).filter_map(|((index, _), arm)| figure(config, *index, arm)).collect(),
    }
}

fn side_of(settings: &Values) -> Side {
    if settings.choice("side") == "X" { Side::X } else { Side::O }
}

fn judge<'a>(config: &'a Config, index: usize, replicas: &'a [&'a Replica]) -> Arm<'a> {
    let arm = &config.arms[index];
    let (side, penalty) = (side_of(&arm.settings), arm.settings.decimal("penalty"));
    let optimum = optimum(side, penalty);
    let champions = replicas.iter().map(|replica| {
        let Player::Table(player) = replica.champion()?.player else { return None };
        let audit = player.audit();
        let optimal = worth(audit.odds, penalty) == optimum.fitness;
        Some(Champion { peak: peak(replica, penalty), optimal, audit })
    });
    let stream = Stream::root(config.seed).text("finale").text(&arm.name);
    Arm { name: &arm.name, side, penalty, replicas, champions: champions.collect(), optimum, stream }
}

fn worth(odds: Odds, penalty: Ratio) -> Ratio {
    odds.win - penalty * odds.loss
}

/// The first generation that is as good as any, within a hundredth of a point.
fn peak(replica: &Replica, penalty: Ratio) -> usize {
    let worth = |row: &Vec<f64>| row[3] - penalty.to_f64() * row[5];
    let best = replica.history().iter().map(worth).fold(f64::MIN, f64::max);
    1 + replica.history().iter().position(|row| worth(row) >= best - 0.01).unwrap_or(0)
}

impl Arm<'_> {
    fn champions(&self) -> impl Iterator<Item = &Champion> {
        self.champions.iter().flatten()
    }

    fn estimate(&self, value: impl Fn(&Champion) -> f64) -> Option<Estimate> {
        estimate(&self.champions().map(value).collect::<Vec<f64>>())
    }

    /// An estimate in a table.
    fn text(&self, decimals: usize, value: impl Fn(&Champion) -> f64) -> String {
        self.estimate(value).map_or_else(|| "-".into(), |estimate| estimate.text(decimals))
    }

    fn unbeatable(&self) -> usize {
        self.champions().filter(|champion| champion.audit.unbeatable()).count()
    }

    fn optimal(&self) -> usize {
        self.champions().filter(|champion| champion.optimal).count()
    }

    /// Mean wins to mean losses, with its interval; infinite if no champion loses.
    fn wins_per_loss(&self) -> (f64, Option<(f64, f64)>) {
        let odds = |champion: &Champion| (champion.audit.odds.win.to_f64(), champion.audit.odds.loss.to_f64());
        let pairs: Vec<(f64, f64)> = self.champions().map(odds).collect();
        let (wins, losses) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        (wins / losses, odds_interval(&pairs, self.stream))
    }

    /// The boards that its champions can meet: mean, least and most.
    fn boards_met(&self) -> String {
        let boards = || self.champions().map(|champion| champion.audit.boards_asked);
        match (self.estimate(|champion| champion.audit.boards_asked as f64), boards().min(), boards().max()) {
            (Some(mean), Some(least), Some(most)) => format!("{:.1} ({least} to {most})", mean.mean),
            _ => "-".into(),
        }
    }
}

/// The champions of each arm, and below each the best table there can be.
fn champions_table(arms: &[Arm<'_>]) -> Table {
    let header =
        ["champions (exact odds)", "win %", "draw %", "loss %", "never lose", "optimal", "peak gen.", "boards met"];
    let mut rows = Vec::new();
    for arm in arms {
        let total = arm.champions().count();
        rows.push(vec![
            arm.name.to_owned(),
            arm.text(2, |champion| 100.0 * champion.audit.odds.win.to_f64()),
            arm.text(2, |champion| 100.0 * champion.audit.odds.draw.to_f64()),
            arm.text(2, |champion| 100.0 * champion.audit.odds.loss.to_f64()),
            format!("{} of {total}", arm.unbeatable()),
            format!("{} of {total}", arm.optimal()),
            arm.text(1, |champion| champion.peak as f64),
            arm.text(1, |champion| champion.audit.boards_asked as f64),
        ]);
        let odds = arm.optimum.odds;
        let exact = |share: Ratio| format!("{:.2}", 100.0 * share.to_f64());
        let never = if odds.loss == Ratio::ZERO { "yes" } else { "no" };
        let best = format!("  optimum, {} at {}", arm.side.letter(), decimal(arm.penalty));
        let boards = arm.optimum.player.audit().boards_asked.to_string();
        rows.push(vec![
            best,
            exact(odds.win),
            exact(odds.draw),
            exact(odds.loss),
            never.into(),
            "".into(),
            "".into(),
            boards,
        ]);
    }
    Table {
        title: "Champions against a random mover, both with the filter: mean over replicas ± 95 % interval".into(),
        header: header.map(String::from).to_vec(),
        rows,
    }
}

fn decimal(value: Ratio) -> String {
    value.to_f64().to_string()
}

/// The best table for each side and penalty of the arms, as exact fractions.
fn optimum_table(arms: &[Arm<'_>]) -> Table {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for arm in arms {
        let Optimum { odds, fitness, ties, .. } = &arm.optimum;
        let row = vec![
            format!("{} at {}", arm.side.letter(), decimal(arm.penalty)),
            odds.win.to_string(),
            odds.draw.to_string(),
            odds.loss.to_string(),
            format!("{fitness} = {:.4}", fitness.to_f64()),
            if ties.is_empty() { "one" } else { "several" }.into(),
        ];
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    Table {
        title: "The optimum: the best table there can be for a side and what a loss costs, exactly".into(),
        header: ["optimum", "win", "draw", "loss", "points a game", "tables"].map(String::from).to_vec(),
        rows,
    }
}

/// Ours beside the page's.
fn page_table(arms: &[Arm<'_>]) -> Table {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |what: String, ours: String, page: &str| rows.push(vec![what, ours, page.into()]);
    let [x, o]: [BoardCounts; 2] = Side::BOTH.map(board_counts);
    row("boards X must know (without the empty one)".into(), format!("{} ({})", x.exact, x.source), "57");
    row("boards O must know (without those with two empty cells)".into(), format!("{} ({})", o.exact, o.source), "38");
    let ratio = |odds: Odds| to_one(2, odds.win.to_f64() / odds.loss.to_f64());
    row("random play, X wins : O wins, no filter".into(), ratio(random_play(false)), "about 2 : 1");
    row("random play, X wins : O wins, both with the filter".into(), ratio(random_play(true)), "about 2 : 1");
    for arm in arms.iter().filter(|arm| arm.champions().count() > 0) {
        let total = arm.champions().count();
        let (low, high) = wilson(arm.unbeatable(), total);
        let never = format!("{} of {total} ({:.0} to {:.0} %)", arm.unbeatable(), 100.0 * low, 100.0 * high);
        if arm.side == Side::O && arm.penalty == Ratio::ONE {
            let (odds, interval) = arm.wins_per_loss();
            let interval = interval.map(|(low, high)| format!(" ({low:.1} to {high:.1})")).unwrap_or_default();
            row(format!("{}: O wins : X wins", arm.name), to_one(1, odds) + &interval, "12 : 1");
            row("  the optimum".into(), ratio(arm.optimum.odds), "");
        }
        let page = match decimal(arm.penalty).as_str() {
            "100" => "nobody loses any more",
            "6" | "6.5" | "7" => "\"the very best\", no more",
            _ => "",
        };
        row(format!("{}: champions that never lose", arm.name), never, page);
        let peak = arm.text(1, |champion| champion.peak as f64);
        row(format!("{}: generations to the peak", arm.name), peak, "6 to 10");
        row(format!("{}: boards a champion can meet", arm.name), arm.boards_met(), "as few as 17");
    }
    Table {
        title: "Ours beside the page's".into(),
        header: ["what", "ours", "the page"].map(String::from).to_vec(),
        rows,
    }
}

/// "11.50 : 1"
fn to_one(decimals: usize, ratio: f64) -> String {
    if ratio.is_infinite() { "all : 0".into() } else { format!("{ratio:.decimals$} : 1") }
}

fn notes(arms: &[Arm<'_>]) -> Vec<String> {
    let mut notes = vec![
        "± and brackets are 95 % intervals over replicas; the brackets of boards are the least and the most.".into(),
        "Peak: the first generation whose best player is worth, exactly, as much as any's within 0.01 point a game."
            .into(),
    ];
    for side in Side::BOTH {
        if let Some((_, odds, penalty)) = never_losing(side) {
            let win = 100.0 * odds.win.to_f64();
            notes.push(format!(
                "For {}, never losing is optimal if a loss costs {penalty} or more; the best that never loses wins {} \
                 ({win:.2} %).",
                side.letter(),
                odds.win
            ));
        }
    }
    if arms.iter().any(|arm| !arm.optimum.ties.is_empty()) {
        notes.push("Where several tables are optimal, the one shown loses least and then wins most.".into());
    }
    notes.push(format!(
        "The page's upper limit of 3 x 7 x 5 x 3 x 1 = 315 games multiplies X's own choices. It leaves out O's replies, \
         which make more games, and forced moves, mirror images and early ends, which make fewer: exactly, {} different \
         games can be played.",
        games()
    ));
    let unfinished = arms.iter().flat_map(|arm| arm.replicas).filter(|replica| !replica.plan().is_empty()).count();
    if unfinished > 0 {
        notes.push(format!("Not finished yet: {unfinished} of the replicas; their champions are those so far."));
    }
    if arms.iter().any(|arm| arm.champions().count() == 1) {
        notes.push(
            "An arm with one champion has no interval: one says nothing about how much others would differ.".into(),
        );
    }
    notes
}

fn odds_json(odds: Odds) -> Value {
    json!({"win": odds.win.to_string(), "draw": odds.draw.to_string(), "loss": odds.loss.to_string()})
}

fn arm_json(config: &Config, index: usize, arm: &Arm<'_>) -> Value {
    let replica_json = |(replica, champion): (&&Replica, &Option<Champion>)| {
        let mut json = replica_json(config, index, replica);
        if let Some(champion) = champion
            && let (Some(json), Some(odds)) = (json.as_object_mut(), odds_json(champion.audit.odds).as_object())
        {
            json.extend(odds.clone());
            json.insert("unbeatable".into(), champion.audit.unbeatable().into());
            json.insert("optimal".into(), champion.optimal.into());
            json.insert("peak_generation".into(), champion.peak.into());
            json.insert("boards_met".into(), champion.audit.boards_asked.into());
        }
        json
    };
    let replicas: Vec<Value> = arm.replicas.iter().zip(&arm.champions).map(replica_json).collect();
    json!({"name": arm.name, "settings": settings_json(config, index), "replicas": replicas})
}

fn summary_json(arm: &Arm<'_>) -> Value {
    let estimate = |value: &dyn Fn(&Champion) -> f64| {
        arm.estimate(value).map(|estimate| {
            let end = |sign: f64| estimate.half_width.map(|half_width| estimate.mean + sign * half_width);
            json!({"mean": estimate.mean, "low": end(-1.0), "high": end(1.0)})
        })
    };
    let champions = arm.champions().count();
    let (low, high) = wilson(arm.unbeatable(), champions);
    let (odds, interval) = arm.wins_per_loss();
    let mut best = odds_json(arm.optimum.odds);
    best["fitness"] = arm.optimum.fitness.to_string().into();
    best["unbeatable"] = (arm.optimum.odds.loss == Ratio::ZERO).into();
    best["several"] = (!arm.optimum.ties.is_empty()).into();
    json!({
        "champions": champions,
        "win": estimate(&|champion| champion.audit.odds.win.to_f64()),
        "draw": estimate(&|champion| champion.audit.odds.draw.to_f64()),
        "loss": estimate(&|champion| champion.audit.odds.loss.to_f64()),
        // Null where it is infinite: JSON has no such number.
        "wins_per_loss": {"mean": odds, "low": interval.map(|ends| ends.0), "high": interval.map(|ends| ends.1)},
        "unbeatable": {"count": arm.unbeatable(), "low": low, "high": high},
        "optimal": arm.optimal(),
        "peak_generation": estimate(&|champion| champion.peak as f64),
        "boards_met": estimate(&|champion| champion.audit.boards_asked as f64),
        "optimum": best,
    })
}

fn figure(config: &Config, index: usize, arm: &Arm<'_>) -> Option<Figure> {
    let series = vec![curve("best player", arm.replicas, 1), curve("mean of the population", arm.replicas, 2)];
    (!series[0].points.is_empty()).then(|| Figure {
        name: file_name(config, index),
        title: format!("{} ({} replicas)", arm.name, arm.replicas.len()),
        x_label: "generation".into(),
        y_label: "fitness (points a game)".into(),
        y_range: None,
        series,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{finale::finale, local};

    const CONFIG: &str = "experiment = \"invincible\"\nreplicas = 3\n[settings]\npopulation = 60\nfathers = 5\n\
        generations = 6\nfitness = \"exact\"\n[arms.\"O, 1\"]\npenalty = 1\n[arms.\"O, 6.5\"]\n[arms.X]\nside = \"X\"\n";

    #[test]
    fn a_small_run_reads_well() {
        let config = Config::parse("t", CONFIG, &[]).unwrap();
        let replicas = local::run(&config).unwrap();
        let finale = finale(&config, &replicas);
        let tables: Vec<String> = finale.tables.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(format!("{}\n{}", tables.join("\n"), finale.notes.join("\n")));
        insta::assert_snapshot!("json", format!("{:#}", finale.json));
        assert_eq!(finale.figures.len(), 3);
        let last = finale.figures[0].series[0].points.last().unwrap();
        assert!(last.x == 6.0 && last.low <= last.mean && last.mean <= last.high, "{last:?}");
    }

    #[test]
    fn nothing_yet_is_no_reason_to_fail() {
        let config = Config::parse("t", CONFIG, &[]).unwrap();
        let replicas: Vec<Replica> = local::start(&config).collect();
        let finale = finale(&config, &replicas);
        assert!(finale.notes.iter().any(|note| note.contains("Not finished yet: 9 of")), "{:?}", finale.notes);
    }

    #[test]
    fn the_optimum_is_called_optimal() {
        let best = optimum(Side::O, Ratio::ONE);
        let score = super::super::exact::Scorer::of(Side::O).score(best.player.genes());
        assert_eq!(worth(Odds::of_score(score, 945), Ratio::ONE), best.fitness);
    }
}
