//! The worth of choosing a cell in training, board by board. It defines the fitness (equation 31 of the paper), for each
//! reading that the paper's text allows. [`super::judge`] adds up the worth over boards.

use std::sync::LazyLock;

use evoxo_common::choice;
use evoxo_games::{
    board::Board,
    player::teacher::{boards, scores},
};

use super::network::{Network, NetworkPlayer};

/// The number that represents a share of 1.
pub const WHOLE: u32 = 1 << 24;

/// The teacher's scores of all cells on the board with this index. A judge asks for them sixteen times for each board.
fn scores_of(index: u32) -> [u32; 9] {
    static ALL: LazyLock<Vec<[u32; 9]>> = LazyLock::new(|| boards().iter().map(|board| scores(*board)).collect());
    ALL[index as usize]
}

choice! {
    /// A reading: how the scores of the chosen cells give the fitness. The printed formula can be read both ways.
    pub enum Formula {
        /// the mean over boards of the score divided by the board's best score, so that all boards weigh the same
        MeanOfRatios = "mean-of-ratios",
        /// the sum of scores divided by the sum of best scores, so that boards with an immediate win weigh most
        RatioOfSums = "ratio-of-sums",
    }
}

choice! {
    /// A reading: the worth in training of an output that names an occupied cell. In play the nearest empty cell is taken.
    pub enum Occupied {
        /// the worth of the nearest empty cell
        Nearest = "nearest",
        /// nothing
        Nothing = "nothing",
    }
}

/// How training boards are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// How scores give the fitness.
    pub formula: Formula,
    /// The worth of an output that names an occupied cell.
    pub occupied: Occupied,
}

impl Measure {
    /// The defaults.
    pub const USUAL: Self = Self { formula: Formula::MeanOfRatios, occupied: Occupied::Nearest };

    /// The worth of a cell, 0 if it is occupied: either the score, or the score divided by the best score, in units of 1 /
    /// [`WHOLE`].
    ///
    /// # Panics
    /// If the index has no board.
    #[must_use]
    pub fn worth(self, index: u32, cell: u8) -> u32 {
        let scores = scores_of(index);
        let score = scores[usize::from(cell)];
        match self.formula {
            Formula::MeanOfRatios => {
                let best = u64::from(scores.iter().max().copied().unwrap_or(1));
                ((u64::from(score) * u64::from(WHOLE) + best / 2) / best) as u32
            }
            Formula::RatioOfSums => score,
        }
    }

    /// The worth of an output with this cell number, which is from 1 to 9 and may be fractional.
    ///
    /// # Panics
    /// If the index has no board.
    #[must_use]
    pub fn worth_of_number(self, network: Network, index: u32, number: f64) -> u32 {
        let among = match self.occupied {
            Occupied::Nearest => boards()[index as usize],
            Occupied::Nothing => Board::EMPTY,
        };
        self.worth(index, network.nearest(among, number).expect("the game is not over, so a cell is empty"))
    }

    /// The total worth of the best cells of these boards, which is a fitness of 1.
    #[must_use]
    pub fn whole(self, indices: &[u32]) -> u64 {
        let best = |index: &u32| scores_of(*index).into_iter().max().map_or(0, u64::from);
        match self.formula {
            Formula::MeanOfRatios => indices.len() as u64 * u64::from(WHOLE),
            Formula::RatioOfSums => indices.iter().map(best).sum(),
        }
    }

    /// The fitness, 0 to 1, if the worse of two cells is taken whenever the output is within `margin` of the middle between
    /// them. The margin is in cell numbers and at most a quarter. This is the part of the fitness that does not depend on the
    /// last digits of outputs.
    ///
    /// # Panics
    /// If an index has no board.
    #[must_use]
    pub fn firm_fitness(self, player: &NetworkPlayer, indices: &[u32], margin: f64) -> f64 {
        let firm = |index: &u32| {
            let number = player.number(boards()[*index as usize]);
            let worth = |blur: f64| self.worth_of_number(player.network(), *index, number + blur);
            u64::from(worth(-margin).min(worth(margin)))
        };
        fitness(indices.iter().map(firm).sum(), self.whole(indices))
    }
}

/// The fitness, 0 to 1, that corresponds to a sum. `whole` is the sum of the best cells.
#[must_use]
pub fn fitness(sum: u64, whole: u64) -> f64 {
    sum as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Kind, Numbering};
    use evoxo_games::{board::tic_tac_toe, player::teacher::BOARDS};

    fn index_of(rows: &str) -> u32 {
        boards().binary_search(&tic_tac_toe().board_of(rows).unwrap()).unwrap() as u32
    }

    /// Figure 1 of the paper: the scores are 873,324 for the best cell, and 52,906 and 3,152 for the others.
    #[test]
    fn a_cell_scores_absolutely_or_relative_to_the_best() {
        let (index, formula) = (index_of("..X/OXX/OO."), Formula::RatioOfSums);
        let scores = Measure { formula, ..Measure::USUAL };
        assert_eq!([0, 1, 8, 2].map(|cell| scores.worth(index, cell)), [52_906, 3_152, 873_324, 0]);
        assert_eq!([0, 8, 2].map(|cell| Measure::USUAL.worth(index, cell)), [1_016_364, WHOLE, 0]);
        let other = index_of(".../.../...");
        assert_eq!(scores.whole(&[index, other]), 873_324 + 4 * 256);
        assert_eq!(Measure::USUAL.whole(&[index, other]), 2 << 24);
    }

    /// Number 3 is the upper right cell, which is occupied. The nearest empty cell is number 2.
    #[test]
    fn an_occupied_cell_scores_as_the_nearest_empty_one_or_zero() {
        let (index, network) = (index_of("..X/OXX/OO."), Network::paper(Kind::Double));
        let nothing = Measure { occupied: Occupied::Nothing, formula: Formula::RatioOfSums };
        let nearest = Measure { occupied: Occupied::Nearest, ..nothing };
        let worth = |measure: Measure, number: f64| measure.worth_of_number(network, index, number);
        assert_eq!([2.9, 2.4, 8.6, 5.0].map(|number| worth(nearest, number)), [3_152, 3_152, 873_324, 3_152]);
        assert_eq!([2.9, 2.4, 8.6, 5.0].map(|number| worth(nothing, number)), [0, 3_152, 873_324, 0]);
        let mirrored = Network { numbering: Numbering::RightToLeft, ..network };
        assert_eq!(nothing.worth_of_number(mirrored, index, 2.9), 52_906);
    }

    /// Every board has a best cell, and in either formula no cell is worth more.
    #[test]
    fn the_whole_is_the_maximum() {
        for formula in [Formula::MeanOfRatios, Formula::RatioOfSums] {
            let measure = Measure { formula, ..Measure::USUAL };
            for index in 0..BOARDS as u32 {
                let most = (0..9).map(|cell| measure.worth(index, cell)).max();
                assert_eq!(most.map(u64::from), Some(measure.whole(&[index])), "{index}");
            }
        }
    }
}
