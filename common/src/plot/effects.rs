//! Pictures of a screen's effects as SVG: the half-normal plot (Daniel 1959) and the plot of main effects. Effects that are
//! found have a colour; the rest is grey.

use super::{
    axis::{Axis, STEP_MIN},
    look::COLOURS,
    sheet::{BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, escape, head, text_width},
};

/// The colours of effects that are found, and of the others.
const FOUND: &str = COLOURS[1];
const REST: &str = "#888888";
/// The number of greatest effects that have their names even if they are not found.
const NAMED_MIN: usize = 3;
/// The height of a name, in pixels.
const NAME_HEIGHT: f64 = 12.0;
/// The minimum width of a factor's panel, and the space next to its texts, in pixels.
const PANEL: f64 = 74.0;
const GAP: f64 = 12.0;
/// How much wider bold letters are than regular ones.
const BOLD: f64 = 1.25;

/// A half-normal plot: effects that are 0 lie along a line through the origin, and other effects lie above it.
#[derive(Clone, Debug, PartialEq)]
pub struct HalfNormal {
    /// The title, on one line.
    pub title: String,
    /// For each effect its name, its half-normal quantile, its size, and whether it is found. Sizes ascend.
    pub points: Vec<(String, f64, f64, bool)>,
    /// The standard error: the slope of the line on which effects lie that are 0. If the slope is 0, no line is drawn.
    pub slope: f64,
    /// The source of the slope.
    pub slope_source: String,
    /// The size beyond which an effect is found.
    pub margin: Option<f64>,
}

impl HalfNormal {
    /// The picture.
    #[must_use]
    pub fn svg(&self) -> String {
        let right = self.points.last().map_or(1.0, |point| point.1 * 1.04);
        let greatest = self.points.iter().map(|point| point.2).fold(self.margin.unwrap_or(0.0), f64::max);
        let (x, y) = (Axis::new(0.0, right, 8.0, 0.1).ending(right), Axis::new(0.0, greatest, 6.0, STEP_MIN));
        let named = self.points.len().saturating_sub(NAMED_MIN);
        let is_named = |index: usize| index >= named || self.points[index].3;
        // To the right of the axes, there is room for the longest name.
        let longest =
            (0..self.points.len()).filter(|index| is_named(*index)).map(|index| text_width(&self.points[index].0));
        let (end, width) = (WIDTH - RIGHT, WIDTH + longest.fold(0.0, f64::max));
        let place = |quantile: f64, size: f64| {
            (LEFT + x.share(quantile) * (end - LEFT), HEIGHT - BOTTOM - y.share(size) * (HEIGHT - TOP - BOTTOM))
        };
        let found = self.points.iter().filter(|point| point.3).count();
        let described = format!("Sizes of {} effects, of which {found} are found.", self.points.len());
        let mut text = head(&self.title, &described, width, HEIGHT);
        let mut add = |line: String| text.push_str(&(line + "\n"));
        add(y.grid(LEFT, end, true, |size| place(0.0, size).1));
        for tick in x.ticks().filter(|tick| *tick <= x.high) {
            let (right, down) = place(tick, 0.0);
            add(format!("<path d=\"M{right:.1} {down:.1}v5\" stroke=\"#999\"/>"));
            let label = x.label(tick);
            add(format!("<text x=\"{right:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>", down + 20.0));
        }
        let ((left, base), up) = (place(0.0, 0.0), TOP);
        add(format!("<path d=\"M{left:.1} {base:.1}H{end:.1}\" stroke=\"#999\"/>"));
        if self.slope > 0.0 {
            // The line ends where it leaves the axes, on whichever side that is.
            let last = right.min(y.high / self.slope);
            let (to, height) = place(last, last * self.slope);
            add(format!(
                "<path d=\"M{left:.1} {base:.1}L{to:.1} {height:.1}\" stroke=\"{}\" stroke-width=\"1.6\"/>",
                COLOURS[0]
            ));
        }
        if let Some(margin) = self.margin {
            let height = place(0.0, margin).1;
            add(format!("<path d=\"M{left:.1} {height:.1}H{end:.1}\" stroke=\"{FOUND}\" stroke-dasharray=\"6 4\"/>"));
        }
        let mut taken = Vec::new();
        for (index, (name, quantile, size, found)) in self.points.iter().enumerate() {
            let ((right, down), colour) = (place(*quantile, *size), if *found { FOUND } else { REST });
            add(format!("<circle cx=\"{right:.1}\" cy=\"{down:.1}\" r=\"4\" fill=\"{colour}\"/>"));
            if is_named(index) {
                let (x, y) = spot(&mut taken, (right, down), name);
                add(format!(
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"12\" fill=\"{colour}\">{}</text>",
                    escape(name)
                ));
            }
        }
        let note = |row: f64, colour: &str, dashes: &str, note: &str| {
            let y = up + 4.0 + 17.0 * row;
            format!(
                "<path d=\"M{:.1} {y:.1}h22\" stroke=\"{colour}\" stroke-width=\"1.6\"{dashes}/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"11\" fill=\"#777\">{note}</text>",
                left + 12.0,
                left + 40.0,
                y + 4.0
            )
        };
        if self.slope > 0.0 {
            add(note(
                0.0,
                COLOURS[0],
                "",
                &format!("expected of effects that are 0, by {}", escape(&self.slope_source)),
            ));
        }
        if self.margin.is_some() {
            add(note(1.0, FOUND, " stroke-dasharray=\"6 4\"", "margin of all effects together (95 %)"));
        }
        let (middle, across) = ((LEFT + end) / 2.0, (TOP + HEIGHT - BOTTOM) / 2.0);
        add(format!(
            "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">half-normal quantile</text>\n\
             <text transform=\"translate(20 {across}) rotate(-90)\" text-anchor=\"middle\">size of the effect</text>",
            HEIGHT - 14.0
        ));
        text + "</svg>\n"
    }
}

/// The place where the name of a point begins. To the right and below the point there is no other point, because sizes
/// ascend. If another name is in the way, the name goes to the left and above, where there is no point either. `taken` lists
/// the left ends, right ends and base lines of names.
fn spot(taken: &mut Vec<(f64, f64, f64)>, (right, down): (f64, f64), name: &str) -> (f64, f64) {
    let width = text_width(name);
    let spots = [(right + 7.0, down + 12.0), (right - 7.0 - width, down - 6.0)];
    let is_free = |(x, y): &(f64, f64)| {
        taken.iter().all(|(left, end, base)| x + width < *left || end < x || (y - base).abs() >= NAME_HEIGHT)
    };
    let (x, y) = spots.into_iter().find(is_free).unwrap_or(spots[0]);
    taken.push((x, x + width, y));
    (x, y)
}

/// A factor in a plot of main effects.
#[derive(Clone, Debug, PartialEq)]
pub struct MainEffect {
    /// The factor's letter, and what it sets.
    pub name: String,
    /// The low and the high level.
    pub levels: [String; 2],
    /// The mean at the high level minus that at the low level.
    pub effect: f64,
    /// Half the width of the effect's interval.
    pub half_width: Option<f64>,
    /// Whether the interval excludes 0.
    pub found: bool,
}

/// A plot of main effects: for each factor the mean response at its low and its high level.
#[derive(Clone, Debug, PartialEq)]
pub struct MainEffects {
    /// The title, on one line.
    pub title: String,
    /// The response, with its unit.
    pub y_label: String,
    /// The mean of all responses.
    pub mean: f64,
    /// The panels, in the order of the letters.
    pub panels: Vec<MainEffect>,
}

impl MainEffects {
    /// The picture. A bar reaches half of the effect's interval to either side of each mean. So the two bars of a factor
    /// overlap unless its effect is found.
    #[must_use]
    pub fn svg(&self) -> String {
        const NOTE: &str = "bars: half of the effect's interval; where they do not overlap, the effect is found";
        let reach = |panel: &MainEffect| (panel.effect.abs() + panel.half_width.unwrap_or(0.0)) / 2.0;
        let reach = self.panels.iter().map(reach).fold(0.0, f64::max);
        let y = Axis::new(self.mean - reach, self.mean + reach, 6.0, STEP_MIN);
        let wide = |panel: &MainEffect| {
            let levels = panel.levels.iter().map(|text| text_width(text));
            levels.fold((PANEL - GAP).max(BOLD * text_width(&panel.name)), f64::max) + GAP
        };
        let widths: Vec<f64> = self.panels.iter().map(wide).collect();
        let (least, height) = (LEFT + RIGHT + text_width(&self.title) * 1.4, HEIGHT + 40.0);
        let end = (LEFT + widths.iter().sum::<f64>()).max(least - RIGHT).max(WIDTH - RIGHT);
        let (top, bottom) = (TOP + 12.0, height - BOTTOM - 26.0);
        let down = |value: f64| bottom - y.share(value) * (bottom - top);
        let effect = |panel: &MainEffect| format!("{} {}", panel.name, panel.effect);
        let described = format!("Effects: {}.", self.panels.iter().map(effect).collect::<Vec<String>>().join("; "));
        let mut text = head(&self.title, &described, end + RIGHT, height);
        let mut add = |line: String| text.push_str(&(line + "\n"));
        if self.panels.iter().any(|panel| panel.half_width.is_some()) {
            add(format!("<text x=\"{LEFT}\" y=\"48\" font-size=\"11\" fill=\"#777\">{NOTE}</text>"));
        }
        add(y.grid(LEFT, end, true, down));
        let mean = down(self.mean);
        add(format!("<path d=\"M{LEFT} {mean:.1}H{end:.1}\" stroke=\"#999\" stroke-dasharray=\"2 3\"/>"));
        let mut left = LEFT;
        for (panel, width) in self.panels.iter().zip(widths) {
            let colour = if panel.found { FOUND } else { REST };
            let ends = [left + width * 0.28, left + width * 0.72];
            let means = [self.mean - panel.effect / 2.0, self.mean + panel.effect / 2.0];
            let [(x1, y1), (x2, y2)] = [0, 1].map(|level| (ends[level], down(means[level])));
            add(format!("<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{colour}\" stroke-width=\"2\"/>"));
            for (level, mean) in means.into_iter().enumerate() {
                let x = ends[level];
                if let Some(half_width) = panel.half_width {
                    let (low, high) = (down(mean - half_width / 2.0), down(mean + half_width / 2.0));
                    add(format!(
                        "<path d=\"M{x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h8M{:.1} {high:.1}h8\" stroke=\"{colour}\"/>",
                        x - 4.0,
                        x - 4.0
                    ));
                }
                add(format!("<circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"/>", down(mean)));
                // In two rows, so that there is room for long levels.
                let (row, label) = (bottom + 18.0 + 16.0 * level as f64, escape(&panel.levels[level]));
                let anchor = ["start", "end"][level];
                let at = [left + GAP / 2.0, left + width - GAP / 2.0][level];
                add(format!(
                    "<text x=\"{at:.1}\" y=\"{row:.1}\" font-size=\"12\" text-anchor=\"{anchor}\">{label}</text>"
                ));
            }
            let (middle, name) = (left + width / 2.0, escape(&panel.name));
            let row = bottom + 56.0;
            add(format!(
                "<text x=\"{middle:.1}\" y=\"{row:.1}\" text-anchor=\"middle\" fill=\"{colour}\" font-weight=\"bold\">{name}</text>"
            ));
            left += width;
            add(format!("<path d=\"M{left:.1} {top:.1}V{bottom:.1}\" stroke=\"#e3e3e3\"/>"));
        }
        let across = (top + bottom) / 2.0;
        let label = escape(&self.y_label);
        add(format!("<text transform=\"translate(20 {across}) rotate(-90)\" text-anchor=\"middle\">{label}</text>"));
        text + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half_normal() -> HalfNormal {
        let point = |index: u8| {
            let size = f64::from(index) * f64::from(index) / 10.0;
            (format!("effect <{index}>"), f64::from(index) / 4.0, size, index > 6)
        };
        HalfNormal {
            title: "a & b".into(),
            points: (1..=8).map(point).collect(),
            slope: 0.8,
            slope_source: "replicas".into(),
            margin: Some(4.0),
        }
    }

    fn main_effects() -> MainEffects {
        let panel = |letter: &str, effect: f64| MainEffect {
            name: format!("{letter} setting"),
            levels: ["low".into(), "a rather long level".into()],
            effect,
            half_width: Some(1.0),
            found: effect.abs() > 1.0,
        };
        MainEffects {
            title: "Main effects".into(),
            y_label: "percent".into(),
            mean: 50.0,
            panels: vec![panel("A", 3.0), panel("B", -0.5)],
        }
    }

    #[test]
    fn the_pictures_are_pinned() {
        insta::assert_snapshot!("half_normal", half_normal().svg());
        insta::assert_snapshot!("main_effects", main_effects().svg());
    }

    /// The heights of the circles and the ends of bars, from the top.
    fn numbers(svg: &str, mark: &str, end: char) -> Vec<f64> {
        svg.split(mark).skip(1).map(|rest| rest.split(end).next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn labels_do_not_overlap() {
        let mut taken = Vec::new();
        let mut place = |right: f64, down: f64| spot(&mut taken, (right, down), "L test_first_move");
        assert_eq!(place(100.0, 50.0), (107.0, 62.0));
        let (x, y) = place(120.0, 45.0);
        assert!(x < 20.0 && y == 39.0, "left of its point and above: {x} {y}");
        assert_eq!(place(140.0, 30.0), (147.0, 42.0), "the label is high enough above the first one");
    }

    #[test]
    fn intervals_overlap_unless_the_effect_is_significant() {
        let svg = main_effects().svg();
        // Of a bar "Mx lowVhigh": the low end and the high end.
        let bars: Vec<&str> = svg.lines().filter(|line| line.contains("h8M")).collect();
        let ends: Vec<(f64, f64)> = bars
            .iter()
            .map(|bar| {
                let low = bar.split(' ').nth(2).unwrap().split('V').next().unwrap().parse().unwrap();
                (low, numbers(bar, "V", 'M')[0])
            })
            .collect();
        let [a_low, a_high, b_low, b_high] = ends[..] else { panic!("{ends:?}") };
        // Greater values are higher up, so their numbers in the SVG are smaller.
        assert!(a_high.0 < a_low.1, "A's bars are apart: {ends:?}");
        assert!(b_low.0 > b_high.1 && b_high.0 > b_low.1, "B's bars overlap: {ends:?}");
    }

    #[test]
    fn a_plot_without_error_has_no_lines() {
        let plain = HalfNormal { slope: 0.0, margin: None, ..half_normal() };
        assert!(!plain.svg().contains("together") && !plain.svg().contains("expected"));
        let named = plain.svg().matches("effect &lt;").count();
        assert_eq!(named, 3, "the three largest effects have labels");
    }
}
