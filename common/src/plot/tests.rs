//! Pictures of curves.

use super::*;

fn figure() -> Figure {
    let point = |index: u8| {
        let x = f64::from(index);
        Point { x, mean: -1.0 / x, low: -1.3 / x, high: -0.8 / x }
    };
    Figure {
        name: "t".into(),
        title: "a <title>".into(),
        x_label: "generation".into(),
        y_label: "points".into(),
        y_range: None,
        drawn: Drawn::Means,
        references: vec![("optimum".into(), 0.1)],
        series: vec![Series { name: "best".into(), points: (1..=20).map(point).collect() }],
    }
}

#[test]
fn the_picture_is_pinned() {
    insta::assert_snapshot!(svg(&figure()));
}

/// Functions have values at negative x too, and nothing is said of means and bands.
#[test]
fn a_graph_has_negative_values_and_no_bands() {
    let point = |index: i32| {
        let (x, mean) = (f64::from(index) / 10.0, f64::from(index * index));
        Point { x, mean, low: mean, high: mean }
    };
    let series = vec![Series { name: "square".into(), points: (-10..=10).map(point).collect() }];
    let text = svg(&Figure { series, drawn: Drawn::Lines, ..figure() });
    assert!(text.contains(">-0.8<") && text.contains(">0.8<") && !text.contains("band"), "{text}");
    // The vertex is in the middle.
    let middle = format!("L{:.2} ", (LEFT + WIDTH - RIGHT) / 2.0);
    assert!(text.contains(&middle), "{text}");
}

/// Dots may lie anywhere, and nothing joins them.
#[test]
fn dots_are_apart() {
    let point = |x: f64| Point { x, mean: 2.0 * x, low: 2.0 * x, high: 2.0 * x };
    let series = vec![Series { name: "front".into(), points: vec![point(100.25), point(100.5), point(101.0)] }];
    let text = svg(&Figure { series, drawn: Drawn::Dots, references: Vec::new(), ..figure() });
    assert_eq!((text.matches("<circle").count(), text.matches(" L").count()), (3, 0), "{text}");
    assert!(text.contains(">100.2<") && !text.contains(">0<"), "{text}");
}

#[test]
fn two_dozen_curves_look_different() {
    let looks: std::collections::BTreeSet<String> = (0..24).map(stroke).collect();
    assert_eq!(looks.len(), 24);
}

#[test]
fn curves_have_names_at_their_ends_and_bands_where_they_do_not_hide_one_another() {
    let points = figure().series.remove(0).points;
    let series = |index: u32| Series { name: format!("curve {index}"), points: points.clone() };
    let crowd = Figure { series: (0..30).map(series).collect(), ..figure() };
    let text = svg(&crowd);
    assert_eq!((text.matches(">curve ").count(), text.matches("fill-opacity").count()), (30, 0));
    let some = svg(&Figure { series: (0..8).map(series).collect(), ..figure() });
    assert!(some.contains("bar at its end") && !some.contains("fill-opacity"), "{some}");
    let few = svg(&Figure { series: (0..4).map(series).collect(), ..figure() });
    assert_eq!((few.matches(">curve ").count(), few.matches("fill-opacity").count()), (4, 4));
}

#[test]
fn a_curve_beyond_the_range_has_no_name_and_others_keep_their_colours() {
    let series = |name: &str, mean: f64| {
        let points = vec![Point { x: 1.0, mean, low: mean, high: mean }];
        Series { name: name.into(), points }
    };
    let series = vec![series("below", 5.0), series("within", 95.0)];
    let text = svg(&Figure { series, y_range: Some((90.0, 100.0)), ..figure() });
    assert!(!text.contains(">below<") && text.contains(">within<"), "{text}");
    let name = text.lines().find(|line| line.contains(">within<")).unwrap();
    assert!(name.contains(COLOURS[1]), "{name}");
}

#[test]
fn names_are_apart_and_near_their_ends() {
    assert_eq!(apart(&[50.0, 90.0, 90.0, 90.0, 200.0], (0.0, 300.0)), [50.0, 74.0, 90.0, 106.0, 200.0]);
    assert_eq!(apart(&[5.0, 5.0, 100.0, 100.0], (0.0, 100.0)), [0.0, 16.0, 84.0, 100.0]);
    assert!(apart(&[], (0.0, 100.0)).is_empty());
}

#[test]
fn ticks_are_round_numbers_that_cover_the_values() {
    for (low, high) in [(-1.3, 0.2), (0.0, 0.0), (17.0, 17.3), (-650.0, 12.0)] {
        let axis = Axis::new(low, high, 6.0, 1e-9);
        assert!(axis.low <= low && axis.high >= high && axis.high > axis.low, "{low} to {high}");
        assert!((2..=12).contains(&axis.ticks().count()), "{low} to {high}: {:?}", axis.ticks().collect::<Vec<_>>());
    }
}
