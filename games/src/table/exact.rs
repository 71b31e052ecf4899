//! The exact odds of a table player against a random mover, both with the filter.
//!
//! For a decision board with n empty cells, let u(n) = (n - 1)(n - 3)... be the greatest number of ways in which the opponent
//! can continue. The numbers of those ways in which the player wins and loses are whole, and linear in those of the boards
//! that follow: W(board) = c + sum of f W(next). Here c counts the games that end before the player decides again, and f
//! counts how often `next` occurs. c and f depend only on the cell played, so they are computed once for every board and
//! cell. A player's odds then take one pass over its boards, last board first. Wins and losses share one word.

use super::Score;
use super::graph::{Graph, Target, options_product};
use crate::board::{Outcome, Side};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// One f: how often `next` occurs.
#[derive(Clone, Copy, Debug, Default)]
struct Term {
    next: u32,
    factor: u32,
}

/// A c with its terms. The upper half of the word counts wins, the lower half losses.
#[derive(Clone, Debug, Default)]
struct Linear {
    constant: u32,
    factors: BTreeMap<usize, u32>,
}

/// The data that all players of a side share.
#[derive(Clone, Debug)]
pub struct Scorer {
    /// Each class, last first, and its number of terms. The number is the same for every cell, padded with terms of factor 0.
    classes: Vec<(usize, usize)>,
    /// By 9 x class + cell: the constant, and the index of the first term.
    rows: Vec<(u32, usize)>,
    terms: Vec<Term>,
    start: (u32, Vec<Term>),
}

impl Scorer {
    /// The scorer of a side.
    #[must_use]
    pub fn of(side: Side) -> &'static Self {
        static SCORERS: LazyLock<[Scorer; 2]> = LazyLock::new(|| Side::BOTH.map(|side| Scorer::build(Graph::of(side))));
        &SCORERS[side as usize]
    }

    /// The numerators of a player's probabilities to win and lose, over [`Graph::denominator`].
    ///
    /// # Panics
    /// If the genes are not those of a player of this side; [`super::genome::check`] checks them.
    #[must_use]
    pub fn score(&self, genes: &[u8]) -> Score {
        assert!(genes.len() == self.classes.len(), "{} genes for {} boards", genes.len(), self.classes.len());
        let mut values = [0_u32; 64];
        let sum = |constant: u32, terms: &[Term], values: &[u32; 64]| {
            terms.iter().fold(constant, |sum, term| sum + term.factor * values[term.next as usize % 64])
        };
        for (class, width) in &self.classes {
            let (constant, first) = self.rows[9 * class + usize::from(genes[*class])];
            values[class % 64] = sum(constant, &self.terms[first..first + width], &values);
        }
        let (constant, terms) = &self.start;
        let value = sum(*constant, terms, &values);
        Score { wins: value >> 16, losses: value & 0xffff }
    }

    fn build(graph: &Graph) -> Self {
        let mut scorer = Self { classes: Vec::new(), rows: Vec::new(), terms: Vec::new(), start: (0, Vec::new()) };
        for (class, board) in graph.boards().iter().enumerate() {
            let ways = options_product(8 - board.pieces());
            let row = |cell| graph.after(class, cell).map(|target| linear(graph, target, ways)).unwrap_or_default();
            let row = (0..9).map(row).collect::<Vec<_>>();
            let width = row.iter().map(|linear| linear.factors.len()).max().unwrap_or(0);
            scorer.classes.push((class, width));
            for linear in row {
                scorer.rows.push((linear.constant, scorer.terms.len()));
                scorer.terms.extend(terms(&linear).chain(std::iter::repeat(Term::default())).take(width));
            }
        }
        scorer.classes.reverse();
        let start = linear(graph, graph.start(), graph.denominator());
        scorer.start = (start.constant, terms(&start).collect());
        scorer
    }
}

fn terms(linear: &Linear) -> impl Iterator<Item = Term> {
    linear.factors.iter().map(|(next, factor)| Term { next: *next as u32, factor: *factor })
}

/// The odds of a target as a sum over decision boards, if the opponent has `ways` ways to continue.
fn linear(graph: &Graph, target: Target, ways: u32) -> Linear {
    match target {
        Target::End(Outcome::Draw) => Linear::default(),
        Target::End(Outcome::Win(side)) if side == graph.side() => Linear { constant: ways << 16, ..Linear::default() },
        Target::End(Outcome::Win(_)) => Linear { constant: ways, ..Linear::default() },
        Target::Decide(next) => {
            let own = options_product(8 - graph.boards()[next].pieces());
            Linear { constant: 0, factors: BTreeMap::from([(next, ways / own)]) }
        }
        Target::Choose(choice) => {
            let targets = &graph.choices()[choice].targets;
            let mut total = Linear::default();
            for part in targets.iter().map(|target| linear(graph, *target, ways / targets.len() as u32)) {
                total.constant += part.constant;
                part.factors.into_iter().for_each(|(next, factor)| *total.factors.entry(next).or_insert(0) += factor);
            }
            total
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TableGenome, reference};
    use super::*;
    use evoxo_common::rng::Stream;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn odds_match_the_reference(side in prop::sample::select(Side::BOTH.to_vec()), seed: u64) {
            let player = TableGenome::random(side, &mut Stream::root(seed).rng());
            let score = Scorer::of(side).score(player.genes());
            prop_assert_eq!(score.odds(Graph::of(side).denominator()), reference::exact(&player));
        }
    }
}
