//! The best individual of each kind of behaviour: the archive of algorithms for quality diversity.

use super::{Axis, individual::Individual, niches::Niches};
use crate::evaluation::Evaluation;

/// An archive with at most one elite in each cell of a grid, or in each region around centroids.
#[derive(Clone, Debug)]
pub(super) struct Elites {
    niches: Niches,
    /// In ascending order of their cells.
    all: Vec<Individual>,
    /// The cell of each elite.
    cells: Vec<usize>,
}

impl Elites {
    /// An empty archive; `centroids` is 0 for a grid.
    pub(super) fn new(grid: &[Axis], centroids: usize) -> Self {
        Self { niches: Niches::new(grid, centroids), all: Vec::new(), cells: Vec::new() }
    }

    /// This archive with the elites of a saved state after `births` candidates.
    pub(super) fn restored(self, all: Vec<Individual>, births: u64) -> Result<Self, String> {
        let cells: Option<Vec<usize>> = all.iter().map(|elite| self.cell(&elite.evaluation)).collect();
        let cells = cells.ok_or("an elite of the state has no cell")?;
        if cells.len() as u64 > births || !cells.is_sorted_by(|one, two| one < two) {
            return Err("the state's elites are not in the order of their cells".into());
        }
        Ok(Self { all, cells, ..self })
    }

    /// The elites, in ascending order of their cells.
    pub(super) fn all(&self) -> &[Individual] {
        &self.all
    }

    /// The cell of each elite.
    pub(super) fn cells(&self) -> &[usize] {
        &self.cells
    }

    /// The cell of a candidate with this evaluation; `None` if the evaluation failed or lacks a measure.
    pub(super) fn cell(&self, evaluation: &Evaluation) -> Option<usize> {
        self.niches.of(&evaluation.measures).filter(|_| !evaluation.failed)
    }

    /// A candidate takes its cell if the cell is empty or its elite is not better.
    pub(super) fn place(&mut self, individual: Individual) {
        let Some(cell) = self.cell(&individual.evaluation) else { return };
        match self.cells.binary_search(&cell) {
            Ok(place) if self.all[place].evaluation.better(&individual.evaluation) => {}
            Ok(place) => self.all[place] = individual,
            Err(place) => {
                self.cells.insert(place, cell);
                self.all.insert(place, individual);
            }
        }
    }
}
