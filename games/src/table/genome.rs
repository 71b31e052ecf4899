//! Table players. They have one gene for each decision board: the cell to play there.

use super::graph::Graph;
use crate::board::{Board, Side, cells, tic_tac_toe};
use crate::odds::{Exact, Subject};
use evoxo_common::rng::{Generator, below};
use std::collections::BTreeSet;

/// A table player. For each decision board of its side, in the order of [`Graph::boards`], it has the cell that it plays on
/// the canonical board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableGenome {
    side: Side,
    genes: Vec<u8>,
}

impl TableGenome {
    /// The player with these genes.
    ///
    /// # Errors
    /// A message if the number of genes is not that of decision boards (58 for X, 43 for O), or if a gene is not an empty
    /// cell of its board.
    pub fn new(side: Side, genes: Vec<u8>) -> Result<Self, String> {
        check(Graph::of(side), &genes)?;
        Ok(Self { side, genes })
    }

    /// A random player. Each gene is drawn from the cells that may be played, with equal probability.
    pub fn random(side: Side, rng: &mut Generator) -> Self {
        let graph = Graph::of(side);
        let genes = (0..graph.len()).map(|class| {
            let legal = graph.legal_cells(class);
            legal[below(rng, legal.len() as u64) as usize]
        });
        Self { side, genes: genes.collect() }
    }

    /// The player's side.
    #[must_use]
    pub const fn side(&self) -> Side {
        self.side
    }

    /// The genes.
    #[must_use]
    pub fn genes(&self) -> &[u8] {
        &self.genes
    }

    /// The cell that this player takes. `None` if its side never decides on this board: the filter moves there, it is not the
    /// side's turn, or play with the filter cannot reach the board.
    #[must_use]
    pub fn choose(&self, board: Board) -> Option<u8> {
        let (class, symmetry) = Graph::of(self.side).class(board)?;
        cells(tic_tac_toe().cells()).find(|cell| symmetry.cell(*cell) == self.genes[class])
    }

    /// The classes of boards that this player can meet under its own moves.
    #[must_use]
    pub fn met(&self) -> BTreeSet<usize> {
        Graph::of(self.side).met(|class| vec![self.genes[class]])
    }

    /// Walks all games of this player, with the filter before it.
    #[must_use]
    pub fn exact(&self) -> Exact {
        let choose = Box::new(|board| self.choose(board).map_or(0, |cell| 1 << cell));
        let exact = Subject { side: self.side, filtered: true, choose }.exact();
        exact.expect("a table has a legal answer on every board that play with the filter leads to")
    }
}

/// Checks the genes of one player.
///
/// # Errors
/// See [`TableGenome::new`].
pub fn check(graph: &Graph, genes: &[u8]) -> Result<(), String> {
    let (side, count) = (graph.side().letter(), graph.len());
    if genes.len() != count {
        return Err(format!("a table for {side} has {} genes instead of {count}", genes.len()));
    }
    let bad = genes.iter().enumerate().find(|(class, gene)| !graph.is_legal(*class, **gene));
    match bad {
        None => Ok(()),
        Some((class, gene)) => Err(format!(
            "gene {class} of a table for {side} is {gene}, which is not an empty cell (0 to 8, from the top left) of its \
             board {}",
            tic_tac_toe().board_text(graph.boards()[class])
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::rng::Stream;
    use proptest::prelude::*;

    proptest! {
        /// A player's move on an image of a board is the image of its move.
        #[test]
        fn choices_turn_with_the_board(side in prop::sample::select(Side::BOTH.to_vec()), seed: u64) {
            let player = TableGenome::random(side, &mut Stream::root(seed).rng());
            prop_assert_eq!(TableGenome::new(side, player.genes().to_vec()), Ok(player.clone()));
            for (board, gene) in Graph::of(side).boards().iter().zip(player.genes()) {
                prop_assert_eq!(player.choose(*board), Some(*gene));
                for symmetry in tic_tac_toe().symmetries() {
                    let cell = player.choose(symmetry.board(*board)).unwrap();
                    let same = tic_tac_toe().canonical(symmetry.board(board.play(*gene))).0;
                    prop_assert_eq!(tic_tac_toe().canonical(symmetry.board(*board).play(cell)).0, same);
                }
            }
        }
    }

    #[test]
    fn invalid_genes_are_rejected() {
        let player = TableGenome::random(Side::O, &mut Stream::root(1).rng());
        assert!(player.choose(Board::EMPTY).is_none());
        assert!(TableGenome::new(Side::X, player.genes().to_vec()).unwrap_err().contains("43 genes instead of 58"));
        for bad in [0, 9, 255] {
            let mut genes = player.genes().to_vec();
            genes[0] = bad;
            let sentence = TableGenome::new(Side::O, genes).unwrap_err();
            assert!(sentence.contains(&format!("gene 0 of a table for O is {bad}")) && sentence.contains("X........"));
        }
    }
}
