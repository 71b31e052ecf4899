//! Tests of pictures of curves.

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
        references: vec![Reference::new("optimum", 0.1)],
        series: vec![Series { name: "best".into(), points: (1..=20).map(point).collect() }],
    }
}

#[test]
fn the_picture_is_pinned() {
    insta::assert_snapshot!(svg(&figure()));
}

#[test]
fn a_curve_of_one_point_is_visible() {
    let dot = |text: &str| text.contains("a3.2 3.2");
    let one = vec![Series { points: figure().series[0].points[..1].to_vec(), ..figure().series[0].clone() }];
    assert_eq!((dot(&svg(&Figure { series: one, ..figure() })), dot(&svg(&figure()))), (true, false));
}

/// Functions have values at negative x too, and no note mentions means or bands.
#[test]
fn a_graph_has_negative_values_and_no_bands() {
    let point = |index: i32| {
        let (x, mean) = (f64::from(index) / 10.0, f64::from(index * index));
        Point { x, mean, low: mean, high: mean }
    };
    let series = vec![Series { name: "square".into(), points: (-10..=10).map(point).collect() }];
    let text = svg(&Figure { series, drawn: Drawn::Lines, ..figure() });
    assert!(text.contains(">-0.8<") && text.contains(">0.8<") && !text.contains("band"), "{text}");
    let steps = text.lines().find(|line| line.starts_with("<path d=\"M76 ")).unwrap();
    assert!(steps.contains("l31 "), "20 steps of 31 pixels: {steps}");
}

/// Dots may be anywhere, and no line joins them.
#[test]
fn dots_do_not_overlap() {
    let point = |x: f64| Point { x, mean: 2.0 * x, low: 2.0 * x, high: 2.0 * x };
    let series = vec![Series { name: "front".into(), points: vec![point(100.25), point(100.5), point(101.0)] }];
    let text = svg(&Figure { series, drawn: Drawn::Dots, references: Vec::new(), ..figure() });
    assert_eq!(
        (text.matches("m-3.2 0a").count(), text.matches("fill=\"none\"").count()),
        (4, 0),
        "three, and one at the name: {text}"
    );
    assert!(text.contains(">100.2<") && !text.contains(">0<"), "{text}");
}

#[test]
fn few_curves_have_labels_and_many_have_panels() {
    let points = figure().series.remove(0).points;
    let series = |index: u32| Series { name: format!("curve {index}"), points: points.clone() };
    let drawn = |count: u32| svg(&Figure { series: (0..count).map(series).collect(), ..figure() });
    let counts = |text: &str| ["<clipPath", ">curve ", "fill-opacity"].map(|part| text.matches(part).count());
    let (few, some, many) = (drawn(4), drawn(8), drawn(22));
    assert_eq!([&few, &some, &many].map(|text| counts(text)), [[1, 4, 4], [1, 8, 0], [22, 22, 22]]);
    assert!(some.contains("bar at its end") && !few.contains("bar at its end"), "{some}");
    // The other curves are drawn once, and used in each panel.
    assert_eq!((many.matches("<use href=\"#axes-t-all\"").count(), many.matches("id=\"axes-t-all\"").count()), (22, 1));
    // Only a few curves, which are to be compared.
    let apart = |count: u32| Figure { series: (0..count).map(series).collect(), drawn: Drawn::Panels, ..figure() };
    assert_eq!((counts(&svg(&apart(4))), points_max(&apart(4))), ([4, 4, 4], panels::POINTS_MAX));
    // So many curves that each panel has several.
    assert_eq!(counts(&drawn(60)), [20, 60, 60]);
}

/// A bar next to the axes is completely visible, even if it is longer than the range of all means.
#[test]
fn bars_at_the_ends_of_curves_are_inside_the_axes() {
    let series = |index: u32| {
        let mean = 10.0 + f64::from(index);
        Series { name: index.to_string(), points: vec![Point { x: 1.0, mean, low: mean - 9.0, high: mean + 30.0 }] }
    };
    let many = Figure { series: (0..6).map(series).collect(), references: Vec::new(), ..figure() };
    let (_, y) = frame::axes(&many, frame::Bands::AtTheEnd, (10.0, 6.0));
    assert!(y.low <= 1.0 && y.high >= 45.0, "{} to {}", y.low, y.high);
}

#[test]
fn a_curve_outside_the_range_is_noted() {
    let series = |name: &str, mean: f64| {
        let points = vec![Point { x: 1.0, mean, low: mean, high: mean }];
        Series { name: name.into(), points }
    };
    let series = vec![series("mean", 5.0), series("best", 95.0), series("most", 200.0)];
    let text = svg(&Figure { series, y_range: Some((90.0, 100.0)), ..figure() });
    for name in ["mean, below the axis", "best", "most, above the axis"] {
        assert!(text.contains(&format!(">{name}<")), "{text}");
    }
    let name = text.lines().find(|line| line.contains(">best<")).unwrap();
    assert!(name.contains(look::COLOURS[1]), "{name}");
}

/// A known value of one curve has that curve's colour; a known value of all curves has none.
#[test]
fn a_reference_line_has_the_colour_of_its_curve() {
    let of = |of: Option<&str>| {
        let known = Reference { of: of.map(str::to_owned), ..Reference::new("the paper's", -0.5) };
        let text = svg(&Figure { references: vec![known], ..figure() });
        text.lines().find(|line| line.contains(">the paper's<")).unwrap().to_owned()
    };
    assert!(of(Some("best")).contains(look::COLOURS[0]) && of(None).contains("#555"));
}

/// Zero is not a power of ten: if a value is 0, the picture says where it is drawn.
#[test]
fn zero_is_drawn_on_a_logarithmic_axis() {
    let points = [100.0, 1.0, 0.0].into_iter().enumerate();
    let points = points.map(|(x, mean)| Point { x: x as f64, mean, low: mean / 2.0, high: mean }).collect();
    let figure = Figure { series: vec![Series { name: "repairs".into(), points }], drawn: Drawn::Powers, ..figure() };
    let text = svg(&figure);
    assert!(text.contains("; 0 is drawn at 0.5<") && !text.contains("NaN") && !text.contains("inf"), "{text}");
    assert!(text.contains(">100<") && text.contains("repairs: from 100 at 0 to 0 at 2"), "{text}");
}

#[test]
fn descriptions_have_few_digits() {
    let points = vec![Point { x: 1.0, mean: 14.0 / 15.0, low: 0.0, high: 1.0 }];
    let text = svg(&Figure { series: vec![Series { name: "best".into(), points }], ..figure() });
    assert!(text.contains("best: from 0.93333 at 1 to 0.93333 at 1"), "{text}");
}
