//! The best possible table for any points, exactly.
//!
//! Every board's value depends only on the boards that follow, so the best cell of each board is found from the last board
//! backwards (dynamic programming; Bellman, 1957). Scores are whole numbers of the ways in which the opponent can continue,
//! as in [`super::exact`]. The options of a board are compared without the points that a draw in every game would give: see
//! `points.rs`.

use super::genome::TableGenome;
use super::graph::{Graph, Target, options_product};
use super::{Points, Score};
use crate::board::{Board, Outcome, Side, tic_tac_toe};
use crate::odds::Odds;
use evoxo_common::ratio::Ratio;
use std::collections::BTreeSet;

/// The best table for a side and points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Optimum {
    /// Of all tables with the highest fitness: one that loses least, and of those one that wins most.
    pub player: TableGenome,
    /// The table's odds against the random mover, both with the filter.
    pub odds: Odds,
    /// The table's worth, in points per game.
    pub fitness: Ratio,
    /// The boards on which several cells give the same fitness, among the boards that tables of this fitness can meet. Cells
    /// that are images of each other count as one. If there are such boards, several different tables are optimal.
    pub ties: Vec<Tie>,
}

/// Cells that are equally good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tie {
    /// A canonical decision board.
    pub board: Board,
    /// The equally good cells, at least two.
    pub cells: Vec<u8>,
}

/// The best table for a side and these points. A plain number is the penalty of a loss, with 1 for a win and 0 for a draw.
#[must_use]
pub fn optimum(side: Side, points: impl Into<Points>) -> Optimum {
    let points = points.into();
    let plan = Plan::new(Graph::of(side), |score| aim(score, points));
    let odds = plan.odds();
    Optimum { fitness: points.worth(odds), odds, ties: plan.ties(), player: plan.player() }
}

/// The table that wins most among those that never lose, and the smallest penalty at which it is optimal, with 1 for a win
/// and 0 for a draw. `None` if every table of the side can lose. (On 3x3 both sides have such a table.)
///
/// Never losing, with W0 wins, is optimal if W - penalty x L <= W0 for every table, so if the penalty is at least the
/// greatest (W - W0) / L of all tables that can lose. Dinkelbach's iteration (1967) finds this ratio: take the best table for
/// the current penalty, use its ratio as the next penalty, and repeat until no table is better than W0. Each step is exact
/// and there are finitely many tables, so the iteration ends at the true ratio.
#[must_use]
pub fn never_losing(side: Side) -> Option<(TableGenome, Odds, Ratio)> {
    let graph = Graph::of(side);
    let safest = Plan::new(graph, |score| (-i128::from(score.losses), i128::from(score.wins), 0));
    let safe = safest.score();
    if safe.losses > 0 {
        return None;
    }
    let mut penalty = Ratio::ZERO;
    loop {
        let best = Plan::new(graph, |score| aim(score, penalty.into())).score();
        if best.losses == 0 || aim(best, penalty.into()).0 == aim(safe, penalty.into()).0 {
            return Some((safest.player(), safest.odds(), penalty));
        }
        penalty = Ratio::new(i128::from(best.wins) - i128::from(safe.wins), best.losses.into());
    }
}

/// The aim of a score: first its points, up to a factor and a term that is the same for all scores of equally many games;
/// then fewest losses; then most wins.
fn aim(score: Score, points: Points) -> Value {
    let ((gain, cost), wins, losses) = (points.gain_and_cost(), i128::from(score.wins), i128::from(score.losses));
    (gain * wins - cost * losses, -losses, wins)
}

/// The first number to maximise, the second for ties, and the third. All are linear in the score.
type Value = (i128, i128, i128);

/// The best cell of every decision board, for some aim.
struct Plan {
    graph: &'static Graph,
    /// For each class: its best cell, the score that follows, and all cells whose first number equals the best.
    best: Vec<Best>,
}

#[derive(Clone, Default)]
struct Best {
    cell: u8,
    score: Score,
    equals: Vec<u8>,
}

impl Plan {
    fn new(graph: &'static Graph, value: impl Fn(Score) -> Value) -> Self {
        let mut plan = Self { graph, best: vec![Best::default(); graph.len()] };
        for (class, board) in graph.boards().iter().enumerate().rev() {
            let ways = options_product(8 - board.pieces());
            let options = graph.legal_cells(class).iter().filter_map(|cell| Some((*cell, graph.after(class, *cell)?)));
            let scores: Vec<(u8, Score)> = options.map(|(cell, after)| (cell, plan.follow(after, ways))).collect();
            // The last maximum of the reversed list is the first best cell.
            let best = scores.iter().rev().max_by_key(|(_, score)| value(*score));
            let (cell, score) = *best.expect("a decision board has an empty cell");
            let equals = scores.iter().filter(|(_, other)| value(*other).0 == value(score).0);
            plan.best[class] = Best { cell, score, equals: equals.map(|(cell, _)| *cell).collect() };
        }
        plan
    }

    /// The score of a target, if the opponent has `ways` ways to continue.
    fn follow(&self, target: Target, ways: u32) -> Score {
        match target {
            Target::End(Outcome::Draw) => Score::default(),
            Target::End(Outcome::Win(side)) if side == self.graph.side() => Score { wins: ways, losses: 0 },
            Target::End(Outcome::Win(_)) => Score { wins: 0, losses: ways },
            Target::Decide(class) => {
                let (score, own) = (self.best[class].score, options_product(8 - self.graph.boards()[class].pieces()));
                Score { wins: score.wins * (ways / own), losses: score.losses * (ways / own) }
            }
            Target::Choose(choice) => {
                let targets = &self.graph.choices()[choice].targets;
                let parts = targets.iter().map(|target| self.follow(*target, ways / targets.len() as u32));
                parts.fold(Score::default(), |sum, part| Score {
                    wins: sum.wins + part.wins,
                    losses: sum.losses + part.losses,
                })
            }
        }
    }

    fn score(&self) -> Score {
        self.follow(self.graph.start(), self.graph.denominator())
    }

    fn odds(&self) -> Odds {
        self.score().odds(self.graph.denominator())
    }

    fn player(&self) -> TableGenome {
        let genes = self.best.iter().map(|best| best.cell).collect();
        TableGenome::new(self.graph.side(), genes).expect("the best cell of a board is one of its empty cells")
    }

    fn ties(&self) -> Vec<Tie> {
        let met = self.graph.met(|class| self.best[class].equals.clone());
        let ties = met.into_iter().map(|class| {
            let board = self.graph.boards()[class];
            let mut seen = BTreeSet::new();
            let differs = |cell: &u8| seen.insert(tic_tac_toe().canonical(board.play(*cell)).0);
            Tie { board, cells: self.best[class].equals.iter().copied().filter(differs).collect() }
        });
        ties.filter(|tie| tie.cells.len() > 1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::exact::Scorer;
    use super::*;
    use evoxo_common::rng::{Stream, below};
    use proptest::prelude::*;

    fn score(side: Side, genes: &[u8], points: impl Into<Points>) -> Value {
        aim(Scorer::of(side).score(genes), points.into())
    }

    /// Points of any order: wins may be worth less than draws.
    fn any_points() -> impl Strategy<Value = Points> {
        let part = |from: i128| (from..400).prop_map(|points| Ratio::new(points, 40));
        (part(-400), part(-400), part(0)).prop_map(|(win, draw, penalty)| Points { win, draw, penalty })
    }

    /// The expected values come from a separate program: football's points, and points only for not losing.
    #[test]
    fn other_points_have_other_optima() {
        let odds = |win: i64, draw: i64, penalty: i64| {
            let [win, draw, penalty] = [win, draw, penalty].map(Ratio::from);
            let best = optimum(Side::O, Points { win, draw, penalty });
            [best.odds.win, best.odds.draw, best.odds.loss, best.fitness].map(|part| part.to_string())
        };
        assert_eq!(odds(3, 1, 0), ["146/315", "149/315", "4/63", "587/315"]);
        assert_eq!(odds(2, 1, 0), ["46/105", "11/21", "4/105", "7/5"]);
        assert_eq!(odds(0, 0, 1), ["82/315", "233/315", "0", "0"]);
    }

    proptest! {
        #[test]
        fn no_table_is_better(side in prop::sample::select(Side::BOTH.to_vec()), points in any_points(), seed: u64) {
            let best = optimum(side, points);
            prop_assert_eq!(best.fitness, points.worth(best.odds));
            let mut rng = Stream::root(seed).rng();
            prop_assert_eq!(best.odds, super::super::reference::exact(&best.player));
            let top = score(side, best.player.genes(), points);
            prop_assert!(score(side, TableGenome::random(side, &mut rng).genes(), points) <= top);
            // Any choice among the tied cells keeps the fitness, and does not lower the number of losses.
            let mut genes = best.player.genes().to_vec();
            for tie in &best.ties {
                let class = Graph::of(side).class(tie.board).unwrap().0;
                prop_assert!(tie.cells.contains(&genes[class]));
                genes[class] = tie.cells[below(&mut rng, tie.cells.len() as u64) as usize];
            }
            prop_assert_eq!(score(side, &genes, points).0, top.0);
            prop_assert!(score(side, &genes, points) <= top);
        }

        /// If a win is worth more than a draw, points rank tables in the same way as a penalty.
        #[test]
        fn points_are_a_penalty(side in prop::sample::select(Side::BOTH.to_vec()), points in any_points()) {
            let best = optimum(side, points);
            match points.as_penalty() {
                Some(penalty) => {
                    let as_penalty = optimum(side, penalty);
                    prop_assert_eq!((best.player, best.odds, best.ties), (as_penalty.player, as_penalty.odds, as_penalty.ties));
                }
                None => prop_assert!(points.win <= points.draw),
            }
        }

        /// Another cell on a board that is met is either an image of the best cell, or tied, or it loses fitness.
        #[test]
        fn every_other_cell_is_worse(side in prop::sample::select(Side::BOTH.to_vec()), points in any_points()) {
            let best = optimum(side, points);
            let top = score(side, best.player.genes(), points);
            for class in best.player.met() {
                let board = Graph::of(side).boards()[class];
                let image = |cell: u8| tic_tac_toe().canonical(board.play(cell)).0;
                let tied = best.ties.iter().find(|tie| tie.board == board).map_or(vec![], |tie| tie.cells.clone());
                for cell in Graph::of(side).legal_cells(class) {
                    let mut genes = best.player.genes().to_vec();
                    let equal = image(genes[class]) == image(*cell) || tied.iter().any(|tie| image(*tie) == image(*cell));
                    genes[class] = *cell;
                    prop_assert_eq!(score(side, &genes, points).0 == top.0, equal);
                    prop_assert!(score(side, &genes, points) <= top);
                }
            }
        }
    }
}
