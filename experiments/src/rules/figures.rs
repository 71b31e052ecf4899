//! The figures of a cycle that the report shows. A column of the history needs only an entry here to appear in `result.json`,
//! in the tables and in a plot.

use evoxo_common::experiment::Row as _;

use super::Row;

/// A column of the history as the report shows it: as a curve, and optionally with its means at both ends. In `result.json`
/// it has the column's name.
pub(super) struct Figure {
    /// The index of the column in a row.
    pub(super) column: usize,
    /// Whether the means over the first and the last tenth of the cycles are reported.
    pub(super) ends: bool,
    /// The heading of these means in the table of what was learned, if they are in it.
    pub(super) learnt: Option<&'static str>,
    /// The name of the plot.
    pub(super) plot: &'static str,
    /// The title of the plot.
    pub(super) title: &'static str,
    /// The vertical axis of the plot.
    pub(super) axis: &'static str,
    /// The value for random play, with its name in the plot.
    pub(super) random: Option<(&'static str, f64)>,
}

/// A figure that has only a curve.
const CURVE: Figure = Figure { column: 0, ends: false, learnt: None, plot: "", title: "", axis: "", random: None };

/// All figures, in the order in which `result.json` has their ends.
pub(super) static FIGURES: [Figure; 6] = [
    Figure {
        column: Row::rule_share,
        ends: true,
        learnt: Some("by rule %"),
        plot: "rule-share",
        title: "Moves made by a rule",
        axis: "of all moves (%)",
        ..CURVE
    },
    Figure {
        column: Row::strength,
        ends: true,
        learnt: Some("strength %"),
        plot: "strength",
        title: "Strength of the best agent against a random mover",
        axis: "points (%, draws half)",
        random: Some(("random play, 50", 50.0)),
    },
    Figure {
        column: Row::draws,
        ends: true,
        learnt: Some("draws %"),
        plot: "draws",
        title: "Games that nobody won",
        axis: "of all games (%)",
        ..CURVE
    },
    Figure {
        column: Row::found,
        plot: "sought-found",
        title: "Sought rules found so far, of 48",
        axis: "rules",
        ..CURVE
    },
    Figure { column: Row::alive, plot: "sought-alive", title: "Sought rules alive, of 48", axis: "rules", ..CURVE },
    Figure {
        column: Row::good,
        ends: true,
        plot: "good",
        title: "Rules that complete or block but are not sought",
        axis: "rules of all agents",
        ..CURVE
    },
];

impl Figure {
    /// All figures in the order of tables and plots: the primary metric first.
    pub(super) fn shown() -> [&'static Self; 6] {
        let mut all = FIGURES.each_ref();
        all.sort_by_key(|figure| figure.column != Row::PRIMARY);
        all
    }

    /// The figure's name in `result.json`.
    pub(super) fn name(&self) -> &'static str {
        Row::name(self.column)
    }
}
