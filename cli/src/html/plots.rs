//! The pictures of a report. Each comes with its figures, as a table and as data for pointing at a curve.

use evoxo_common::{
    experiment::{Config, screen_files},
    plot,
    report::{Drawn, Figure, Point, Report, Series, Table, spread},
    text::number,
};
use serde_json::{Value, json};

use super::{
    Told,
    element::Html,
    ratings,
    recipe::details,
    tables::{scrolling, table},
};

/// The most points of a curve, if its picture can show that many. More points would make the file larger and show little.
const POINTS_MAX: usize = 150;
/// The most points of a curve in a small picture.
const POINTS_SMALL: usize = 60;
/// The figure with the fronts of several objectives.
const FRONT: &str = "front";
/// The number of rows of the table behind a picture.
const ROWS: usize = 11;

/// The section of all pictures, first the one that shows the result best: ratings, a map or a front. `None` if there are no
/// pictures.
pub(super) fn section(told: &Told<'_>) -> Option<Html> {
    let report = told.report;
    let ratings = ratings::pictures(&report.json).into_iter();
    let mut parts: Vec<Html> =
        ratings.map(|(title, svg)| Html::classed("figure", "card", scrolling("plot", &title, svg))).collect();
    parts.extend(report.maps.iter().map(|map| plain(&map.title, &plot::map(map))));
    let mut figures: Vec<(usize, &Figure)> = report.figures.iter().enumerate().collect();
    figures.sort_by_key(|(_, figure)| figure.name != FRONT);
    for (number, figure) in figures {
        parts.push(curves(number, &figure.thinned(POINTS_MAX.min(plot::points_max(figure)))));
    }
    let of_screen = screen_files(told.config, &report.json).pictures;
    parts.extend(of_screen.iter().map(|(name, svg)| plain(name, svg)));
    (!parts.is_empty()).then(|| Html::classed("div", "plots", parts))
}

fn plain(title: &str, svg: &str) -> Html {
    let picture = scrolling("plot", title, Html::of_markup(svg));
    Html::classed("figure", "card", picture)
}

fn curves(number: usize, figure: &Figure) -> Html {
    let svg = plot::svg_with_id(figure, &format!("axes-{number}"));
    let picture = scrolling("plot", &figure.title, Html::of_markup(svg));
    let mut parts = vec![picture];
    if figure.drawn != Drawn::Dots {
        // Inside a script element, only this character could end the element.
        let data = data(figure).to_string().replace('<', "\\u003c");
        let data = Html::of("script", &[("type", "application/json")], Html::of_markup(data));
        parts.extend([data, details("The figures as a table", table(&table_of(figure)))]);
    }
    Html::of("figure", &[("class", "card"), ("data-curves", "")], parts)
}

/// The picture that represents a run in a gallery, if the run has a picture. It has fewer points and no data for the script.
pub(super) fn small(config: &Config, report: &Report, id: &str) -> Option<Html> {
    let figure = || {
        report
            .figures
            .first()
            .map(|figure| plot::svg_with_id(&figure.thinned(POINTS_SMALL.min(plot::points_max(figure) / 3)), id))
    };
    let map = || report.maps.first().map(plot::map);
    let screen = || screen_files(config, &report.json).pictures.into_iter().next().map(|(_, svg)| svg);
    let svg = figure().or_else(map).or_else(screen)?;
    Some(Html::of("div", &[("class", "plot"), ("aria-hidden", "true")], Html::of_markup(svg)))
}

/// The data that the script reads: each curve's name and points, and the x values. The x values are shared by all curves that
/// do not have their own.
fn data(figure: &Figure) -> Value {
    let bands = figure.drawn.has_bands();
    let point = |point: &Point| match bands {
        true => [point.mean, point.low, point.high].into_iter().map(brief).collect::<Value>(),
        false => [point.mean].into_iter().map(brief).collect(),
    };
    let across = |series: &Series| series.points.iter().map(|point| brief(point.x)).collect::<Value>();
    let most = figure.series.iter().max_by_key(|series| series.points.len()).map(across).unwrap_or_default();
    let series = figure.series.iter().map(|series| {
        let mut json = json!({"name": series.name, "points": series.points.iter().map(point).collect::<Value>()});
        let own = across(series);
        if own != most {
            json["at"] = own;
        }
        json
    });
    json!({"x": figure.x_label, "at": most, "series": series.collect::<Value>()})
}

/// A number with the four digits that the script shows.
fn brief(value: f64) -> Value {
    // The largest numbers round to infinity, which JSON cannot express.
    let value = format!("{value:.3e}").parse().ok().filter(|rounded: &f64| rounded.is_finite()).unwrap_or(value);
    if value.fract() == 0.0 && value.abs() < 1e15 { (value as i64).into() } else { value.into() }
}

/// The table behind a picture, with some of the points.
fn table_of(figure: &Figure) -> Table {
    let longest = figure.series.iter().max_by_key(|series| series.points.len());
    let xs: Vec<f64> = longest
        .map_or(Vec::new(), |series| spread(series.points.len(), ROWS).map(|index| series.points[index].x).collect());
    // Curves of other lengths have points at other x values: take the last point up to x.
    let at = |series: &Series, x: f64| {
        let points = &series.points;
        let over = points.last().is_none_or(|last| last.x < x);
        points.iter().rfind(|point| point.x <= x).copied().filter(|_| !over)
    };
    let cell = |series: &Series, x: f64| match at(series, x) {
        None => "–".to_owned(),
        Some(point) if figure.drawn.has_bands() && point.low != point.high => {
            format!("{} ({} to {})", number(point.mean), number(point.low), number(point.high))
        }
        Some(point) => number(point.mean),
    };
    let row =
        |x: &f64| std::iter::once(number(*x)).chain(figure.series.iter().map(|series| cell(series, *x))).collect();
    let about = if figure.drawn.has_bands() { ": mean (10th to 90th percentile of the replicas)" } else { "" };
    Table {
        title: format!("{}{about}", figure.title),
        header: std::iter::once(figure.x_label.clone())
            .chain(figure.series.iter().map(|series| series.name.clone()))
            .collect(),
        rows: xs.iter().map(row).collect(),
    }
}
