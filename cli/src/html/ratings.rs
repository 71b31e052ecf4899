//! The ratings of players with their intervals, as a picture: the first one of a league.

use std::fmt::Write as _;

use evoxo_common::text::number;
use serde_json::Value;

use super::element::Html;

/// Pixels: the picture's width, the height of a player's row, and the space above, below and on the right.
const WIDTH: f64 = 720.0;
const ROW: f64 = 28.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 54.0;
const RIGHT: f64 = 70.0;
/// The width of a letter, and the most letters of a name.
const LETTER: f64 = 7.2;
const LETTERS_MAX: usize = 34;
/// About so many ticks.
const TICKS: f64 = 6.0;

/// A player's name, rating and interval.
struct Rated<'a> {
    name: &'a str,
    rating: f64,
    interval: Option<(f64, f64)>,
}

/// A picture for each arm whose players have ratings, with its title.
pub(super) fn pictures(result: &Value) -> Vec<(String, Html)> {
    let arms: Vec<(&String, Vec<Rated<'_>>)> = result["summary"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(arm, summary)| (arm, rated(&summary["ratings"])))
        .collect();
    let several = arms.len() > 1;
    let title = |arm: &str| if several { format!("Ratings: {arm}") } else { "Ratings".to_owned() };
    let rated = arms.into_iter().filter(|(_, players)| !players.is_empty());
    rated.map(|(arm, players)| (title(arm), Html::of_markup(svg(&title(arm), &players)))).collect()
}

fn rated(ratings: &Value) -> Vec<Rated<'_>> {
    ratings.as_array().into_iter().flatten().filter_map(player).collect()
}

fn player(player: &Value) -> Option<Rated<'_>> {
    let interval = player["interval"].as_array().and_then(|of| Some((of.first()?.as_f64()?, of.get(1)?.as_f64()?)));
    Some(Rated { name: player["player"].as_str()?, rating: player["rating"].as_f64()?, interval })
}

/// Round numbers within a range.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / TICKS;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|nice| nice * power).into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|index| index as f64 * step).collect()
}

fn svg(title: &str, players: &[Rated<'_>]) -> String {
    let ends = players.iter().flat_map(|player| {
        let (low, high) = player.interval.unwrap_or((player.rating, player.rating));
        [player.rating, low, high]
    });
    let (least, most) = ends.fold((0.0_f64, 0.0_f64), |(least, most), end| (least.min(end), most.max(end)));
    let room = (most - least).max(1.0) * 0.04;
    let (low, high) = (least - room, most + room);
    let short = |name: &str| name.chars().take(LETTERS_MAX).collect::<String>();
    let longest = players.iter().map(|player| short(player.name).chars().count()).max().unwrap_or(0);
    let left = 28.0 + LETTER * longest as f64;
    let base = TOP + ROW * players.len() as f64;
    let height = base + BOTTOM;
    let x = |value: f64| left + (value - low) / (high - low) * (WIDTH - RIGHT - left);
    let title = Html::text(title).into_string();
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" font-size=\"14\" fill=\"#333\"><title>{title}</title>\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\
         <text x=\"20\" y=\"28\" font-size=\"17\" font-weight=\"bold\">{title}</text>"
    );
    // Writing to a string cannot fail.
    let mut add = |piece: std::fmt::Arguments<'_>| {
        let _ = text.write_fmt(piece);
    };
    for tick in ticks(low, high) {
        let (at, label) = (x(tick), number(tick));
        add(format_args!(
            "<path d=\"M{at:.1} {TOP}V{base}\" stroke=\"#e3e3e3\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            base + 20.0
        ));
    }
    for (player, row) in players.iter().zip(0..) {
        let y = TOP + ROW * (f64::from(row) + 0.5);
        let name = Html::text(&short(player.name)).into_string();
        add(format_args!("<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>", left - 12.0, y + 5.0));
        if let Some((low, high)) = player.interval {
            add(format_args!(
                "<path d=\"M{:.1} {y:.1}H{:.1}\" stroke=\"#0072b2\" stroke-width=\"2.5\"/>",
                x(low),
                x(high)
            ));
        }
        add(format_args!(
            "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"#0072b2\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            x(player.rating),
            WIDTH - 8.0,
            y + 5.0,
            number(player.rating.round())
        ));
    }
    let with = if players.iter().any(|player| player.interval.is_some()) { ", with 95 % interval" } else { "" };
    add(format_args!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">rating in Elo points{with}</text></svg>",
        (left + WIDTH - RIGHT) / 2.0,
        height - 12.0
    ));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn players_are_drawn_with_their_intervals() {
        let player =
            |name: &str, rating: f64, interval: Value| json!({"player": name, "rating": rating, "interval": interval});
        let ratings = json!([player("<strong>", 320.4, json!([250.0, 400.0])), player("random", 0.0, Value::Null)]);
        let one = pictures(&json!({"summary": {"all": {"ratings": ratings}}}));
        assert_eq!((one.len(), one[0].0.as_str()), (1, "Ratings"));
        let svg = one[0].1.clone().into_string();
        assert_eq!((svg.matches("<circle").count(), svg.matches("stroke-width").count()), (2, 1), "{svg}");
        assert!(svg.contains("&lt;strong&gt;") && svg.contains(">320<") && !svg.contains("NaN"), "{svg}");
        let two = json!({"summary": {"a": {"ratings": ratings}, "b": {"ratings": ratings}, "c": {"ratings": []}}});
        let titles: Vec<String> = pictures(&two).into_iter().map(|(title, _)| title).collect();
        assert_eq!(titles, ["Ratings: a", "Ratings: b"]);
        assert!(pictures(&json!({"summary": {"worth": 1}})).is_empty() && pictures(&json!({})).is_empty());
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(ticks(-20.0, 420.0), [0.0, 100.0, 200.0, 300.0, 400.0]);
        assert_eq!(ticks(-0.04, 1.04).len(), 6);
    }
}
