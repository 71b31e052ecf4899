//! A grid and its rules as data: which moves are legal, which cells form a line, and which images are the same game.

use super::lines::lines;
use super::symmetry::{Symmetry, symmetries};
use super::{Board, Outcome, Side};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// The numbers that define a game of k in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Shape {
    /// Columns, 1 to 26.
    pub width: u8,
    /// Rows, 1 to 9.
    pub height: u8,
    /// Layers, 1 to 9. There are at most 64 cells in all.
    pub depth: u8,
    /// The number of stones in a row that wins, 2 or more.
    pub k: u8,
    /// Whether a stone falls to the lowest free cell: of its column on a flat board, otherwise of its pile of layers.
    pub gravity: bool,
}

impl Shape {
    /// 3x3, three in a row.
    pub const TIC_TAC_TOE: Self = Self { width: 3, height: 3, depth: 1, k: 3, gravity: false };
    /// 7 columns, 6 rows, four in a row; stones fall.
    pub const CONNECT_FOUR: Self = Self { width: 7, height: 6, depth: 1, k: 4, gravity: true };
    /// 4x4x4, four in a row.
    pub const QUBIC: Self = Self { width: 4, height: 4, depth: 4, k: 4, gravity: false };
    /// 4x4x4, four in a row; stones fall.
    pub const SCORE_FOUR: Self = Self { gravity: true, ..Self::QUBIC };

    /// Sizes along the axes: column, row, layer.
    pub(super) fn sizes(self) -> [i32; 3] {
        [self.width, self.height, self.depth].map(i32::from)
    }

    /// The axis along which stones fall: the rows of a flat board, the layers of any other. `None` without gravity.
    pub(super) fn fall_axis(self) -> Option<usize> {
        self.gravity.then_some(if self.depth == 1 { 1 } else { 2 })
    }

    /// The cell at [column, row, layer], each counted from the top left; `None` outside the grid.
    pub(super) fn cell_at(self, position: [i32; 3]) -> Option<u8> {
        let [width, height, depth] = self.sizes();
        let [column, row, layer] = position;
        let inside = (0..width).contains(&column) && (0..height).contains(&row) && (0..depth).contains(&layer);
        inside.then_some(((layer * height + row) * width + column) as u8)
    }

    /// [column, row, layer] of a cell: the inverse of [`Shape::cell_at`].
    pub(crate) fn position(self, cell: u8) -> [i32; 3] {
        let [width, height, _] = self.sizes();
        let cell = i32::from(cell);
        [cell % width, cell / width % height, cell / (width * height)]
    }
}

/// A [`Shape`] with everything derived from it.
#[derive(Clone, Debug)]
pub struct Geometry {
    shape: Shape,
    cells: u64,
    lines: Vec<u64>,
    /// The lines through each cell, one cell after another, and their indices. Those of cell c are from `starts[c]` to
    /// `starts[c + 1]`.
    through: Vec<u64>,
    through_indices: Vec<u16>,
    starts: [u16; 65],
    symmetries: Vec<Symmetry>,
    /// The difference in cell number to the cell below, and the cells with no cell below. `None` without gravity.
    fall: Option<(u32, u64)>,
}

impl Geometry {
    /// Derives lines and symmetries.
    ///
    /// # Errors
    /// A message if a number is out of range.
    pub fn new(shape: Shape) -> Result<Self, String> {
        let Shape { width, height, depth, k, .. } = shape;
        let count = u32::from(width) * u32::from(height) * u32::from(depth);
        if !(1..=26).contains(&width) || !(1..=9).contains(&height) || !(1..=9).contains(&depth) || count > 64 {
            return Err(format!(
                "a board of {width}x{height}x{depth} cells is not possible: at most 26 columns, 9 rows, 9 layers and \
                 64 cells, and at least one of each"
            ));
        }
        if k < 2 {
            return Err(format!("{k} in a row is not a game: give at least 2"));
        }
        let cells = u64::MAX >> (64 - count);
        let fall = shape.fall_axis().map(|axis| {
            let stride = if axis == 1 { u32::from(width) } else { u32::from(width) * u32::from(height) };
            (stride, cells & !(cells >> stride))
        });
        let lines = lines(shape);
        let (mut through, mut through_indices, mut starts) = (Vec::new(), Vec::new(), [0; 65]);
        for cell in 0..64 {
            for (index, line) in lines.iter().enumerate().filter(|(_, line)| *line >> cell & 1 == 1) {
                through.push(*line);
                through_indices.push(index as u16);
            }
            starts[cell + 1] = through.len() as u16;
        }
        let symmetries = symmetries(shape);
        Ok(Self { shape, cells, lines, through, through_indices, starts, symmetries, fall })
    }

    /// The numbers from which this geometry was derived.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// All cells.
    #[must_use]
    pub const fn cells(&self) -> u64 {
        self.cells
    }

    /// All lines, as masks of k cells each, in ascending order.
    #[must_use]
    pub fn lines(&self) -> &[u64] {
        &self.lines
    }

    /// The lines through a cell, in the order of [`Geometry::lines`].
    #[must_use]
    #[inline(always)]
    pub fn through(&self, cell: u8) -> &[u64] {
        &self.through[self.range(cell)]
    }

    /// The indices, in [`Geometry::lines`], of the lines through a cell, ascending.
    #[must_use]
    #[inline(always)]
    pub fn line_indices_through(&self, cell: u8) -> &[u16] {
        &self.through_indices[self.range(cell)]
    }

    #[inline(always)]
    fn range(&self, cell: u8) -> std::ops::Range<usize> {
        usize::from(self.starts[usize::from(cell)])..usize::from(self.starts[usize::from(cell) + 1])
    }

    /// The images under which the game is the same: all ways to turn and mirror the grid onto itself that keep the direction
    /// of fall. The identity comes first.
    #[must_use]
    pub fn symmetries(&self) -> &[Symmetry] {
        &self.symmetries
    }

    /// The cells on which a stone can be placed, whether or not the game is over.
    #[must_use]
    #[inline(always)]
    pub const fn legal(&self, board: Board) -> u64 {
        let empty = self.cells & !board.occupied();
        match self.fall {
            None => empty,
            Some((stride, lowest)) => empty & (board.occupied() >> stride | lowest),
        }
    }

    /// The cells right below these cells, in the direction of fall. None without gravity.
    #[must_use]
    #[inline(always)]
    pub const fn below(&self, mask: u64) -> u64 {
        match self.fall {
            None => 0,
            Some((stride, _)) => mask << stride & self.cells,
        }
    }

    /// Whether these cells contain a line.
    #[must_use]
    pub fn has_line(&self, stones: u64) -> bool {
        self.lines.iter().any(|line| stones & line == *line)
    }

    /// The legal cells on which this side would complete a line.
    #[must_use]
    pub fn completing(&self, board: Board, side: Side) -> u64 {
        let missing = self.lines.iter().map(|line| line & !board.stones(side));
        missing.filter(|rest| rest.count_ones() == 1).fold(0, |all, rest| all | rest) & self.legal(board)
    }

    /// The cells among which the filter lets the side to move choose: those that complete its line, or else those that block
    /// the opponent's. 0 if neither exists and the player decides.
    #[must_use]
    pub fn forced(&self, board: Board) -> u64 {
        let side = board.to_move();
        match self.completing(board, side) {
            0 => self.completing(board, side.other()),
            own => own,
        }
    }

    /// How the game ended; `None` if it is not over.
    #[must_use]
    pub fn outcome(&self, board: Board) -> Option<Outcome> {
        match Side::BOTH.into_iter().find(|side| self.has_line(board.stones(*side))) {
            Some(side) => Some(Outcome::Win(side)),
            None => (board.occupied() == self.cells).then_some(Outcome::Draw),
        }
    }

    /// The greatest of a board's images (boards are ordered like their texts), and the first symmetry that leads to it.
    #[must_use]
    pub fn canonical(&self, board: Board) -> (Board, &Symmetry) {
        let identity = &self.symmetries[0];
        self.symmetries[1..].iter().fold((board, identity), |best, symmetry| {
            let image = symmetry.board(board);
            if image > best.0 { (image, symmetry) } else { best }
        })
    }
}

/// Defines a function that derives a geometry once.
macro_rules! geometry {
    ($(#[$meta:meta])* $name:ident, $shape:expr) => {
        $(#[$meta])*
        pub fn $name() -> &'static Geometry {
            static GEOMETRY: LazyLock<Geometry> =
                LazyLock::new(|| Geometry::new($shape).expect("the figures of a known game are in range"));
            &GEOMETRY
        }
    };
}

geometry! {
    /// The 3x3 board.
    tic_tac_toe, Shape::TIC_TAC_TOE
}
geometry! {
    /// Connect Four: 7 columns, 6 rows, four in a row; stones fall.
    connect_four, Shape::CONNECT_FOUR
}
geometry! {
    /// Qubic: 4x4x4, four in a row; a stone can be placed on any empty cell.
    qubic, Shape::QUBIC
}
geometry! {
    /// Score Four, the paper's Tic-Tac-Toe 3D: 4x4x4, four in a row; stones fall.
    score_four, Shape::SCORE_FOUR
}
