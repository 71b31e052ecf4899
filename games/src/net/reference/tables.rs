//! The reference implementation of networks of tables. It reads each image of the board line by line.

use super::Reference;
use crate::{
    board::{Board, Geometry, Side, Symmetry, cells},
    net::{Architecture, Engine, First},
};

/// The reference implementation of networks of tables.
#[derive(Clone, Debug)]
pub struct Tables {
    architecture: Architecture,
    geometry: Geometry,
    states: usize,
    /// For each configuration (line, then state): the index of its row in the tables.
    rows: Vec<usize>,
    tables: Vec<f64>,
    second: Vec<f64>,
    output: Vec<f64>,
    bias: f64,
    board: Board,
}

impl Tables {
    /// A network with these weights, in canonical order, before the first move.
    ///
    /// # Panics
    /// If [`Architecture::check`] rejects the architecture, if its first layer is not one of tables, or if the number of
    /// weights is not the architecture's.
    #[must_use]
    pub fn new(architecture: &Architecture, weights: &[f32]) -> Self {
        let First::Tuples { states } = architecture.first else { panic!("a network without tables") };
        assert_eq!(weights.len(), architecture.parameters(), "weights of another network");
        let geometry = Geometry::new(architecture.shape).expect("the architecture was checked");
        let tensor = |name: &str| {
            let tensor = architecture.tensors().into_iter().find(|tensor| tensor.name == name);
            let range = tensor.map_or(0..0, |tensor| tensor.range);
            weights[range].iter().map(|weight| f64::from(*weight)).collect::<Vec<f64>>()
        };
        let tied = architecture.shared && architecture.second == 0;
        let bias = tensor("output.bias").first().copied().unwrap_or(0.0);
        let (tables, output) = (tensor("tables.weight"), tensor("output.weight"));
        let mut second = tensor("second.bias");
        second.resize(architecture.second, 0.0);
        let (rows, board) = (rows(&geometry, states, tied), Board::EMPTY);
        Self { architecture: *architecture, geometry, states, rows, tables, second, output, bias, board }
    }

    /// The rows that are read in each orientation.
    fn read(&self, board: Board, side: Side) -> Vec<Vec<usize>> {
        let symmetries = self.geometry.symmetries();
        // Linear tables with shared weights read each line once, because their weights belong to all images.
        let once = !self.architecture.shared || self.architecture.second == 0;
        let read = |symmetry: &Symmetry| self.configurations(symmetry.board(board), side);
        symmetries[..if once { 1 } else { symmetries.len() }].iter().map(read).collect()
    }

    /// The rows of all lines of a board.
    fn configurations(&self, board: Board, side: Side) -> Vec<usize> {
        let digit = |cell: u8| match (board.stones(side) >> cell & 1, board.stones(side.other()) >> cell & 1) {
            (1, _) => 1,
            (_, 1) => 2,
            _ if self.states == 4 && self.geometry.legal(board) >> cell & 1 == 1 => 3,
            _ => 0,
        };
        let lines = self.geometry.lines().iter().enumerate();
        lines
            .map(|(line, mask)| self.rows[number(self.states, line, &cells(*mask).map(digit).collect::<Vec<usize>>())])
            .collect()
    }

    /// The rows that are read, the second layer's values in each orientation, and the output unit's weighted sum.
    fn forward(&self, board: Board, side: Side) -> (Vec<Vec<usize>>, Vec<Vec<f64>>, f64) {
        let read = self.read(board, side);
        if self.architecture.second == 0 {
            let sum = read[0].iter().map(|row| self.tables[*row]).sum::<f64>();
            return (read, Vec::new(), sum + self.bias);
        }
        let filters = self.architecture.second;
        let entry = |row: usize, filter: usize| self.tables[row * filters + filter];
        let value = |rows: &Vec<usize>, filter: usize| {
            let sum = self.second[filter] + rows.iter().map(|row| entry(*row, filter)).sum::<f64>();
            self.architecture.activation.apply_f64(sum)
        };
        let values = read.iter().map(|rows| (0..filters).map(|filter| value(rows, filter)).collect::<Vec<f64>>());
        let values: Vec<_> = values.collect();
        let weigh =
            |values: &Vec<f64>| values.iter().zip(&self.output).map(|(value, weight)| value * weight).sum::<f64>();
        let sum = values.iter().map(weigh).sum::<f64>() + self.bias;
        (read, values, sum)
    }
}

/// The index of a configuration: lines one after the other, with the first cell of a line as the lowest digit.
fn number(states: usize, line: usize, digits: &[usize]) -> usize {
    digits.iter().rev().fold(line, |number, digit| number * states + digit)
}

/// For each configuration: the index of its row. The row is its own, or, if tied, that of the image with the lowest index.
fn rows(geometry: &Geometry, states: usize, tied: bool) -> Vec<usize> {
    let k = usize::from(geometry.shape().k);
    let entries = (0..k).fold(1, |entries, _| entries * states);
    let count = geometry.lines().len() * entries;
    if !tied {
        return (0..count).collect();
    }
    let mut rows: Vec<usize> = Vec::with_capacity(count);
    let mut next = 0;
    for (line, mask) in geometry.lines().iter().enumerate() {
        for entry in 0..entries {
            let mut rest = entry;
            let stones: Vec<(u8, usize)> = cells(*mask)
                .map(|cell| {
                    let digit = rest % states;
                    rest /= states;
                    (cell, digit)
                })
                .collect();
            let first = geometry.symmetries().iter().map(|symmetry| image(geometry, states, symmetry, &stones)).min();
            match first.filter(|first| *first < line * entries + entry) {
                Some(first) => rows.push(rows[first]),
                None => {
                    rows.push(next);
                    next += 1;
                }
            }
        }
    }
    rows
}

/// The index of the image of a line with these digits on its cells.
fn image(geometry: &Geometry, states: usize, symmetry: &Symmetry, stones: &[(u8, usize)]) -> usize {
    let mut turned: Vec<(u8, usize)> = stones.iter().map(|(cell, digit)| (symmetry.cell(*cell), *digit)).collect();
    turned.sort_unstable();
    let mask = turned.iter().fold(0, |mask, (cell, _)| mask | 1 << cell);
    let line = geometry.lines().iter().position(|line| *line == mask).expect("the image of a line is a line");
    number(states, line, &turned.iter().map(|(_, digit)| *digit).collect::<Vec<usize>>())
}

impl Reference for Tables {
    fn sum(&self, board: Board, side: Side) -> f64 {
        self.forward(board, side).2
    }
}

impl Engine for Tables {
    fn reset(&mut self) {
        self.board = Board::EMPTY;
    }

    fn values(&mut self, legal: u64, out: &mut [f32; 64]) {
        for cell in cells(legal) {
            out[usize::from(cell)] = self.sum(self.board.play(cell), self.board.to_move()) as f32;
        }
    }

    fn value(&mut self, side: Side) -> f32 {
        self.sum(self.board, side) as f32
    }

    fn play(&mut self, cell: u8) {
        self.board = self.board.play(cell);
    }

    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        let activation = self.architecture.activation;
        let slope = |value: f64| f64::from(activation.slope()) * (1.0 - value * value);
        let (read, values, sum) = self.forward(board, side);
        let value = activation.apply_f64(sum);
        let error = f64::from(target) - value;
        let step = f64::from(rate) * if derivative { error * slope(value) } else { error };
        let filters = self.architecture.second;
        let biased = self.architecture.biases;
        let output = self.output.clone();
        for (orientation, rows) in read.iter().enumerate() {
            if filters == 0 {
                rows.iter().for_each(|row| self.tables[*row] += step);
            }
            for filter in 0..filters {
                let value = values[orientation][filter];
                let back = step * output[filter] * slope(value);
                rows.iter().for_each(|row| self.tables[row * filters + filter] += back);
                self.output[filter] += step * value;
                self.second[filter] += if biased { back } else { 0.0 };
            }
        }
        self.bias += if biased { step } else { 0.0 };
    }

    fn weights(&self) -> Vec<f32> {
        let second = if self.architecture.biases { &self.second[..] } else { &[] };
        let bias = self.architecture.biases.then_some(self.bias);
        let all = self.tables.iter().chain(second).chain(&self.output).copied().chain(bias);
        all.map(|weight| weight as f32).collect()
    }
}
