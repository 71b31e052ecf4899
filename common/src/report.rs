//! Reports: what is made from a run's replicas at the end. Tables next to the figures of the source, curves, and numbers for
//! programs.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

use crate::text::wrapped;

/// Everything that is made from a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The tables, in the order in which they are printed.
    pub tables: Vec<Table>,
    /// Sentences below the tables.
    pub notes: Vec<String>,
    /// The run's part of `result.json`: `summary` and further entries of the kind, after `arms` with their `replicas`.
    pub json: Value,
    /// Curves over generations.
    pub figures: Vec<Figure>,
    /// Maps of what the replicas keep.
    pub maps: Vec<Map>,
}

impl Report {
    /// Adds a note for each replica that ended early.
    pub(crate) fn add_failures(&mut self) {
        let arms = self.json["arms"].as_array().into_iter().flatten();
        let replicas =
            arms.flat_map(|arm| arm["replicas"].as_array().into_iter().flatten().map(move |replica| (arm, replica)));
        let note = |(arm, replica): (&Value, &Value)| {
            let (name, why) = (arm["name"].as_str()?, replica["failure"].as_str()?);
            Some(format!("Replica {} of {name} {why}.", replica["replica"]))
        };
        self.notes.extend(replicas.filter_map(note).collect::<Vec<String>>());
    }
}

/// A table for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The title, on one line.
    pub title: String,
    /// One entry for each column.
    pub header: Vec<String>,
    /// Rows with as many entries as the header.
    pub rows: Vec<Vec<String>>,
}

/// A table for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// The name of the file, without directory and extension.
    pub name: &'static str,
    /// The name of each column.
    pub header: Vec<String>,
    /// Rows with as many entries as the header.
    pub rows: Vec<Vec<String>>,
}

/// A picture with curves.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The name of the file, without directory and extension.
    pub name: String,
    /// The title, on one line.
    pub title: String,
    /// The label of the horizontal axis, with its unit.
    pub x_label: String,
    /// The label of the vertical axis, with its unit.
    pub y_label: String,
    /// The range from the bottom to the top; by default it follows from the values.
    pub y_range: Option<(f64, f64)>,
    /// How the points are drawn.
    pub drawn: Drawn,
    /// Horizontal lines.
    pub references: Vec<Reference>,
    /// The curves; there is at least one.
    pub series: Vec<Series>,
}

/// A known value to compare with, such as the source's value or the optimum.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The name next to its line.
    pub name: String,
    /// The height of its line.
    pub value: f64,
    /// The name of the only series to which it applies, and whose colour it has.
    pub of: Option<String>,
}

impl Reference {
    /// A value to compare all series with.
    #[must_use]
    pub fn new(name: impl Into<String>, value: f64) -> Self {
        Self { name: name.into(), value, of: None }
    }
}

impl Figure {
    /// The index of the series to which a reference applies.
    #[must_use]
    pub fn number_of(&self, known: &Reference) -> Option<usize> {
        self.series.iter().position(|series| Some(&series.name) == known.of.as_ref())
    }

    /// The same figure with at most `most` points for each curve, including the first and the last.
    #[must_use]
    pub fn thinned(&self, most: usize) -> Self {
        match self.drawn {
            Drawn::Dots => self.clone(),
            _ => Self { series: self.series.iter().map(|series| series.thinned(most)).collect(), ..self.clone() },
        }
    }
}

/// At most `most` of the indices below `count`, evenly spread, including the first and the last.
pub fn spread(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let shown = count.min(most);
    (0..shown).map(move |index| index * (count - 1) / (shown - 1).max(1))
}

/// How the points of a figure are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawn {
    /// Means over replicas as lines, with their bands.
    Means,
    /// Like `Means`, with a logarithmic vertical axis: all values must be positive.
    Powers,
    /// Medians over replicas with their quartiles, on a logarithmic axis.
    Medians,
    /// Medians over replicas with their quartiles, on a linear axis.
    PlainMedians,
    /// Means with a panel for each series, even if there are few: the panels share one axis, so the series can be compared.
    Panels,
    /// Functions: lines without bands, at any x.
    Lines,
    /// Points apart from each other, at any x.
    Dots,
}

impl Drawn {
    /// Whether the vertical axis is logarithmic.
    #[must_use]
    pub fn is_logarithmic(self) -> bool {
        matches!(self, Self::Powers | Self::Medians)
    }

    /// What lines and bands are, in words.
    #[must_use]
    pub fn line_and_band(self) -> [&'static str; 2] {
        if matches!(self, Self::Medians | Self::PlainMedians) {
            ["median", "quartiles"]
        } else {
            ["mean", "10th to 90th percentile"]
        }
    }

    /// Whether points are means or medians over replicas, with bands around them.
    #[must_use]
    pub fn has_bands(self) -> bool {
        !matches!(self, Self::Lines | Self::Dots)
    }
}

/// A picture with a value for each cell of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// The name of the file, without directory and extension.
    pub name: String,
    /// The title, on one line.
    pub title: String,
    /// The label of the horizontal axis, with its unit.
    pub x_label: String,
    /// The label of the vertical axis, with its unit.
    pub y_label: String,
    /// The range from the left to the right.
    pub x: (f64, f64),
    /// The range from the bottom to the top.
    pub y: (f64, f64),
    /// The number of cells from the left to the right, at least one.
    pub columns: usize,
    /// The number of cells from the bottom to the top, at least one.
    pub rows: usize,
    /// For each cell that has a value: its column and its row, from 0, and the value.
    pub cells: Vec<(usize, usize, f64)>,
    /// The label of the values.
    pub value_label: String,
    /// Whether greater values are better.
    pub greater_is_better: bool,
}

/// The most points of a curve in `result.json` if the exact figures are available next to it.
pub const CURVE_POINTS_MAX: usize = 200;

/// A curve with a band around it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The points, from left to right.
    pub points: Vec<Point>,
}

impl Series {
    /// The same series with at most `most` points, including the first and the last.
    #[must_use]
    pub fn thinned(&self, most: usize) -> Self {
        let points = spread(self.points.len(), most).map(|index| self.points[index]).collect();
        Self { name: self.name.clone(), points }
    }

    /// The same series with another unit on the horizontal axis; one new unit is `unit` old ones.
    #[must_use]
    pub fn per(mut self, unit: f64) -> Self {
        self.points.iter_mut().for_each(|point| point.x /= unit);
        self
    }

    /// The same series rounded to five decimals, which is what a result keeps.
    #[must_use]
    pub fn rounded(self) -> Self {
        let round = |value: f64| (value * 1e5).round() / 1e5;
        let point =
            |point: Point| Point { mean: round(point.mean), low: round(point.low), high: round(point.high), ..point };
        Self { points: self.points.into_iter().map(point).collect(), ..self }
    }

    /// The same series under another name; `None` without points, as for a curve that a small result leaves out.
    #[must_use]
    pub fn shown(&self, name: &str) -> Option<Self> {
        (!self.points.is_empty()).then(|| Self { name: name.into(), points: self.points.clone() })
    }
}

/// The values of a [`Series`] in a result, one entry for each point. If the points are rounds, starting at 1, there is no
/// `x`.
#[derive(Serialize, Deserialize)]
struct Lists {
    mean: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<Vec<f64>>,
}

impl Serialize for Series {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let list = |value: fn(&Point) -> f64| self.points.iter().map(value).collect::<Vec<f64>>();
        let are_rounds = self.points.iter().enumerate().all(|(round, point)| point.x == (round + 1) as f64);
        Lists {
            mean: list(|point| point.mean),
            low: list(|point| point.low),
            high: list(|point| point.high),
            x: (!are_rounds).then(|| list(|point| point.x)),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Series {
    /// Reads a series without its name, which a result has elsewhere.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Lists { mean, low, high, x } = Lists::deserialize(deserializer)?;
        let x = x.unwrap_or_else(|| (1..=mean.len()).map(|round| round as f64).collect());
        if [&low, &high, &x].iter().any(|other| other.len() != mean.len()) {
            return Err(D::Error::custom("the lists of a curve differ in length"));
        }
        let point = |round: usize| Point { x: x[round], mean: mean[round], low: low[round], high: high[round] };
        Ok(Self { name: String::new(), points: (0..mean.len()).map(point).collect() })
    }
}

/// The curves in a result, by name. A small result may leave out some or all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves(pub Vec<Series>);

impl Curves {
    /// The curve with this name, shown under another name; `None` without points.
    #[must_use]
    pub fn shown(&self, curve: &str, name: &str) -> Option<Series> {
        self.0.iter().find(|series| series.name == curve)?.shown(name)
    }
}

impl Serialize for Curves {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|curve| (&curve.name, curve)))
    }
}

impl<'de> Deserialize<'de> for Curves {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let curves = serde_json::Map::deserialize(deserializer)?;
        let read = |(name, lists): (String, Value)| match Series::deserialize(lists) {
            Ok(curve) => Ok(Series { name, ..curve }),
            Err(why) => Err(D::Error::custom(format!("the curve {name:?}: {why}"))),
        };
        curves.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }
}

/// A point of a curve: the mean over replicas, and the band in which four of five of them lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The position on the horizontal axis.
    pub x: f64,
    /// The mean over replicas.
    pub mean: f64,
    /// The 10th percentile of the replicas.
    pub low: f64,
    /// The 90th percentile of the replicas.
    pub high: f64,
}

/// The narrowest first column, in letters, whose texts are wrapped to keep a table in one piece.
const FIRST_MIN: usize = 24;

impl Table {
    /// The table on lines of at most `width` letters. If it is wider, the texts of its first column are wrapped. If that is
    /// not enough, the columns are divided into blocks below each other, each of which begins with the first column. A block
    /// has at least one more column, however wide that is.
    #[must_use]
    pub fn within(&self, width: usize) -> String {
        let widths = self.widths();
        let others: usize = widths.iter().skip(1).map(|wide| 2 + wide).sum();
        let room = width.saturating_sub(others);
        if let ([head, ..], [first, ..]) = (self.header.as_slice(), widths.as_slice())
            && *first > room
            && room >= FIRST_MIN.max(head.chars().count())
        {
            let wrapped = self.wrapped(room);
            if wrapped.widths()[0] <= room {
                return wrapped.within(width);
            }
        }
        let (first, mut blocks) = (widths.first().copied().unwrap_or(0), Vec::<Vec<usize>>::new());
        let mut used = usize::MAX;
        for (column, wide) in widths.iter().enumerate().skip(1) {
            match blocks.last_mut() {
                Some(block) if used.saturating_add(2 + wide) <= width => block.push(column),
                _ => {
                    blocks.push(vec![column]);
                    used = first;
                }
            }
            used += 2 + wide;
        }
        if blocks.is_empty() {
            blocks.push(Vec::new());
        }
        let block = |columns: Vec<usize>| self.block(&widths, &columns);
        format!("{}\n{}", wrapped(&self.title, width, ""), blocks.into_iter().map(block).collect::<Vec<_>>().join("\n"))
    }

    /// The same table with the texts of the first column on lines of at most `wide` letters. A longer word is not broken.
    fn wrapped(&self, wide: usize) -> Self {
        let lines = |row: &Vec<String>| {
            let text = row[0].trim_start();
            let indent = row[0].chars().count() - text.chars().count();
            let text = wrapped(text, wide.saturating_sub(indent), "    ");
            let line = |(number, line): (usize, &str)| {
                let rest = row[1..].iter().map(|cell| if number == 0 { cell.clone() } else { String::new() });
                std::iter::once(format!("{}{line}", " ".repeat(indent))).chain(rest).collect()
            };
            text.split('\n').enumerate().map(line).collect::<Vec<Vec<String>>>()
        };
        Self { rows: self.rows.iter().flat_map(lines).collect(), ..self.clone() }
    }

    /// The width of each column, in letters.
    fn widths(&self) -> Vec<usize> {
        let all = || std::iter::once(&self.header).chain(&self.rows);
        let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
        (0..self.header.len()).map(width).collect()
    }

    /// The first column on the left and these columns to its right, with the header.
    fn block(&self, widths: &[usize], columns: &[usize]) -> String {
        let all = || std::iter::once(0).chain(columns.iter().copied());
        let line = |row: &Vec<String>| {
            let cells = all().map(|column| match (column, &row[column], widths[column]) {
                (0, cell, width) => format!("{cell:<width$}"),
                (_, cell, width) => format!("{cell:>width$}"),
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        let whole = all().map(|column| widths[column]).sum::<usize>() + 2 * columns.len();
        let rows: Vec<String> = self.rows.iter().map(line).collect();
        format!("{}{}\n{}", line(&self.header), "-".repeat(whole), rows.concat())
    }
}

impl std::fmt::Display for Table {
    /// Columns side by side, two spaces apart; the first is aligned to the left, the others to the right.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.within(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let row = |texts: [&str; 4]| texts.map(String::from).to_vec();
        Table {
            title: "What came of it".into(),
            header: row(["arm", "won", "drawn", "lost"]),
            rows: vec![row(["short", "1", "2", "3"]), row(["a longer arm", "100", "", "7"])],
        }
    }

    #[test]
    fn the_first_and_last_points_are_kept() {
        assert_eq!(spread(5, 300).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(spread(1001, 3).collect::<Vec<_>>(), [0, 500, 1000]);
        assert_eq!(spread(1, 3).collect::<Vec<_>>(), [0]);
        assert_eq!(spread(0, 3).count(), 0);
    }

    #[test]
    fn a_table_that_fits_is_not_split() {
        let whole = "What came of it\n\
                     arm           won  drawn  lost\n\
                     ------------------------------\n\
                     short           1      2     3\n\
                     a longer arm  100            7\n";
        assert_eq!(table().to_string(), whole);
        assert_eq!(table().within(30), whole);
    }

    #[test]
    fn long_texts_of_the_first_column_are_wrapped_to_avoid_a_split() {
        let mut table = table();
        table.rows[0][0] = "  something that is told of the arm".into();
        let whole = [
            "What came of it",
            "arm                          won  drawn  lost",
            "---------------------------------------------",
            "  something that is told of    1      2     3",
            "      the arm",
            "a longer arm                 100            7",
            "",
        ];
        assert_eq!(table.within(46), whole.join("\n"));
        // Too narrow for wrapping, or with a word that is too long.
        assert_eq!(table.within(41).matches("something that is told of the arm").count(), 3);
        table.rows[0][0] = "x".repeat(40);
        assert_eq!(table.within(46).matches(&table.rows[0][0]).count(), 3);
    }

    #[test]
    fn a_wide_table_is_split_and_repeats_its_first_column() {
        let blocks = "What came of it\n\
                      arm           won  drawn\n\
                      ------------------------\n\
                      short           1      2\n\
                      a longer arm  100\n\
                      \n\
                      arm           lost\n\
                      ------------------\n\
                      short            3\n\
                      a longer arm     7\n";
        assert_eq!(table().within(29), blocks);
        assert_eq!(table().within(15).matches("a longer arm").count(), 3);
    }
}
