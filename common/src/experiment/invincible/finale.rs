//! What `invincible` says at the end, beside the page's figures.
//!
//! Every champion's odds are exact; what is said of an arm is a mean over its replicas with a 95 % interval. A replica has
//! reached its peak in the first generation whose best player is worth, exactly, as much as the best of any generation
//! within one hundredth of a point.

use serde_json::{Value, json};

use super::{
    facts::{BoardCounts, board_counts, random_play},
    optimum::{Optimum, never_losing, optimum},
};
use crate::{
    audit::{Audit, Odds},
    board::Side,
    card::{Card, Player},
    config::{Config, Values},
    finale::{Figure, Finale, Table, curve, file_name, replica_json, settings_json},
    ratio::Ratio,
    replica::Replica,
    stats::{Estimate, estimate, wilson},
};

/// An arm with everything that is known of its champions.
struct Arm<'a> {
    name: &'a str,
    side: Side,
    penalty: Ratio,
    champions: Vec<Champion>,
    replicas: &'a [&'a Replica],
    optimum: Optimum,
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
    let mut tables = vec![champions_table(&judged)];
    tables.push(page_table(&judged));
    Finale {
        tables,
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
    let champions = replicas.iter().filter_map(|replica| {
        let card = Card::read(&Value::Object(replica.champion()?).to_string()).ok()?;
        let Player::Table(player) = card.player;
        let audit = player.audit();
        let optimal = worth(audit.odds, penalty) == optimum.fitness;
        Some(Champion { peak: peak(replica, penalty), optimal, audit })
    });
    Arm { name: &arm.name, side, penalty, champions: champions.collect(), replicas, optimum }
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

fn percent(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(|| "-".into(), |e| format!("{:.2} ± {:.2}", 100.0 * e.mean, 100.0 * e.half_width))
}

impl Arm<'_> {
    fn estimate(&self, value: impl Fn(&Champion) -> f64) -> Option<Estimate> {
        estimate(&self.champions.iter().map(value).collect::<Vec<f64>>())
    }

    fn unbeatable(&self) -> usize {
        self.champions.iter().filter(|champion| champion.audit.unbeatable()).count()
    }

    fn optimal(&self) -> usize {
        self.champions.iter().filter(|champion| champion.optimal).count()
    }
}

/// The champions of each arm, and below each the best table there can be.
fn champions_table(arms: &[Arm<'_>]) -> Table {
    let header =
        ["champions (exact odds)", "win %", "draw %", "loss %", "never lose", "optimal", "peak gen.", "boards met"];
    let mut rows = Vec::new();
    for arm in arms {
        let total = arm.champions.len();
        let mean = |value: &dyn Fn(&Champion) -> f64| {
            arm.estimate(value).map_or_else(|| "-".into(), |e| format!("{:.1} ± {:.1}", e.mean, e.half_width))
        };
        rows.push(vec![
            arm.name.to_owned(),
            percent(arm.estimate(|champion| champion.audit.odds.win.to_f64())),
            percent(arm.estimate(|champion| champion.audit.odds.draw.to_f64())),
            percent(arm.estimate(|champion| champion.audit.odds.loss.to_f64())),
            format!("{} of {total}", arm.unbeatable()),
            format!("{} of {total}", arm.optimal()),
            mean(&|champion| champion.peak as f64),
            mean(&|champion| champion.audit.boards_asked as f64),
        ]);
        let odds = arm.optimum.odds;
        let exact = |share: Ratio| format!("{:.2}", 100.0 * share.to_f64());
        let never = if odds.loss == Ratio::ZERO { "yes" } else { "no" };
        let best = format!("  best possible for {} at {}", arm.side.letter(), decimal(arm.penalty));
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

/// Ours beside the page's.
fn page_table(arms: &[Arm<'_>]) -> Table {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |what: String, ours: String, page: &str| rows.push(vec![what, ours, page.into()]);
    let [x, o]: [BoardCounts; 2] = Side::BOTH.map(board_counts);
    row("boards X must know (without the empty one)".into(), format!("{} ({})", x.exact, x.source), "57");
    row("boards O must know (without those with two empty cells)".into(), format!("{} ({})", o.exact, o.source), "38");
    let ratio = |odds: Odds| format!("{:.2} : 1", (odds.win / odds.loss).to_f64());
    row("random play, X wins : O wins, no filter".into(), ratio(random_play(false)), "about 2 : 1");
    row("random play, X wins : O wins, both with the filter".into(), ratio(random_play(true)), "about 2 : 1");
    for arm in arms.iter().filter(|arm| !arm.champions.is_empty()) {
        let total = arm.champions.len();
        let (low, high) = wilson(arm.unbeatable(), total);
        let never = format!("{} of {total} ({:.0} to {:.0} %)", arm.unbeatable(), 100.0 * low, 100.0 * high);
        let loss = decimal(arm.penalty);
        if arm.side == Side::O && arm.penalty == Ratio::ONE {
            let wins = arm.estimate(|champion| champion.audit.odds.win.to_f64()).map_or(0.0, |e| e.mean);
            let losses = arm.estimate(|champion| champion.audit.odds.loss.to_f64()).map_or(0.0, |e| e.mean);
            row(format!("{}: O wins : X wins", arm.name), format!("{:.1} : 1", wins / losses), "12 : 1");
            row("  the best possible".into(), ratio(arm.optimum.odds), "");
        }
        let page = match loss.as_str() {
            "1" => "",
            "100" => "nobody loses any more",
            "6" | "6.5" | "7" => "the very best",
            _ => "",
        };
        row(format!("{}: champions that never lose", arm.name), never, page);
        let peak = arm.estimate(|champion| champion.peak as f64);
        let peak = peak.map_or_else(|| "-".into(), |e| format!("{:.1} ± {:.1}", e.mean, e.half_width));
        row(format!("{}: generations to the peak", arm.name), peak, "6 to 10");
        let boards = arm.estimate(|champion| champion.audit.boards_asked as f64);
        let boards = boards.map_or_else(|| "-".into(), |e| format!("{:.1}", e.mean));
        row(format!("{}: boards a champion can meet", arm.name), boards, "as few as 17");
    }
    Table {
        title: "Ours beside the page's".into(),
        header: ["what", "ours", "the page"].map(String::from).to_vec(),
        rows,
    }
}

fn notes(arms: &[Arm<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    for side in Side::BOTH {
        if let Some((_, odds, penalty)) = never_losing(side) {
            let win = 100.0 * odds.win.to_f64();
            notes.push(format!(
                "For {}, never losing is the best policy from a penalty of {penalty}; the best that never loses wins {} ({win:.2} %).",
                side.letter(),
                odds.win
            ));
        }
    }
    let several: Vec<&str> = arms.iter().filter(|arm| !arm.optimum.ties.is_empty()).map(|arm| arm.name).collect();
    if !several.is_empty() {
        notes.push(format!(
            "Several tables are equally good for: {}. Shown as best possible is one that loses least.",
            several.join("; ")
        ));
    }
    notes.push(
        "The page's 3 x 7 x 5 x 3 x 1 = 315 games count only X's own choices, before symmetry: an upper bound of another \
         thing than the boards a champion can meet."
            .into(),
    );
    let unfinished = arms.iter().flat_map(|arm| arm.replicas).filter(|replica| !replica.plan().is_empty()).count();
    if unfinished > 0 {
        notes.push(format!("{unfinished} replicas are not finished: their champions are those so far."));
    }
    notes
}

fn odds_json(odds: Odds) -> Value {
    json!({"win": odds.win.to_string(), "draw": odds.draw.to_string(), "loss": odds.loss.to_string()})
}

fn arm_json(config: &Config, index: usize, arm: &Arm<'_>) -> Value {
    let with_champion = arm.replicas.iter().filter(|replica| replica.champion().is_some());
    let mut champions = with_champion.zip(&arm.champions);
    let replicas: Vec<Value> = arm
        .replicas
        .iter()
        .map(|replica| {
            let mut json = replica_json(config, index, replica);
            if replica.champion().is_some()
                && let Some((_, champion)) = champions.next()
                && let (Some(json), Some(odds)) = (json.as_object_mut(), odds_json(champion.audit.odds).as_object())
            {
                json.extend(odds.clone());
                json.insert("unbeatable".into(), champion.audit.unbeatable().into());
                json.insert("optimal".into(), champion.optimal.into());
                json.insert("peak_generation".into(), champion.peak.into());
                json.insert("boards_met".into(), champion.audit.boards_asked.into());
            }
            json
        })
        .collect();
    json!({"name": arm.name, "settings": settings_json(config, index), "replicas": replicas})
}

fn summary_json(arm: &Arm<'_>) -> Value {
    let estimate = |value: &dyn Fn(&Champion) -> f64| {
        arm.estimate(value)
            .map(|e| json!({"mean": e.mean, "low": e.mean - e.half_width, "high": e.mean + e.half_width}))
    };
    let (low, high) = wilson(arm.unbeatable(), arm.champions.len());
    let mut best = odds_json(arm.optimum.odds);
    best["fitness"] = arm.optimum.fitness.to_string().into();
    best["unbeatable"] = (arm.optimum.odds.loss == Ratio::ZERO).into();
    best["several"] = (!arm.optimum.ties.is_empty()).into();
    json!({
        "champions": arm.champions.len(),
        "win": estimate(&|champion| champion.audit.odds.win.to_f64()),
        "draw": estimate(&|champion| champion.audit.odds.draw.to_f64()),
        "loss": estimate(&|champion| champion.audit.odds.loss.to_f64()),
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
        assert!(finale.notes.iter().any(|note| note.contains("9 replicas are not finished")), "{:?}", finale.notes);
    }

    #[test]
    fn the_optimum_is_called_optimal() {
        let best = optimum(Side::O, Ratio::ONE);
        let score = super::super::exact::Scorer::of(Side::O).score(best.player.genes());
        assert_eq!(worth(Odds::of_score(score, 945), Ratio::ONE), best.fitness);
    }
}
