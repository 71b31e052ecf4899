//! The ways to turn and mirror a grid onto itself.

use super::{Board, Shape, cells};

/// A permutation of cells under which a game is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symmetry {
    to: Vec<u8>,
}

impl Symmetry {
    /// The cell to which a cell moves.
    #[must_use]
    pub fn cell(&self, cell: u8) -> u8 {
        self.to[usize::from(cell)]
    }

    /// The cells to which the cells of a mask move.
    #[must_use]
    pub fn mask(&self, mask: u64) -> u64 {
        cells(mask).fold(0, |image, cell| image | 1 << self.cell(cell))
    }

    /// A board's image.
    #[must_use]
    pub fn board(&self, board: Board) -> Board {
        Board { x: self.mask(board.x), o: self.mask(board.o) }
    }
}

/// All symmetries of a shape, the identity first: the ways to exchange axes of equal size and to mirror axes. The axis along
/// which stones fall does not change.
pub(super) fn symmetries(shape: Shape) -> Vec<Symmetry> {
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0], [2, 0, 1]];
    let sizes = shape.sizes();
    let mut found: Vec<Symmetry> = Vec::new();
    for order in ORDERS {
        for mirrored in 0..8 {
            let falls_alike = shape.fall_axis().is_none_or(|axis| order[axis] == axis && mirrored >> axis & 1 == 0);
            let fits = (0..3).all(|axis| sizes[order[axis]] == sizes[axis]);
            if fits && falls_alike {
                let symmetry = symmetry(shape, order, mirrored);
                // Mirroring an axis of size 1 changes nothing, so the same symmetry is found twice.
                if !found.contains(&symmetry) {
                    found.push(symmetry);
                }
            }
        }
    }
    found
}

/// The symmetry that moves axis `order[a]` to axis `a` and then mirrors the axes in the mask `mirrored`.
fn symmetry(shape: Shape, order: [usize; 3], mirrored: u32) -> Symmetry {
    let sizes = shape.sizes();
    let count = sizes.iter().product::<i32>() as u8;
    let image = |cell: u8| {
        let from = shape.position(cell);
        let to = std::array::from_fn(|axis| match mirrored >> axis & 1 {
            0 => from[order[axis]],
            _ => sizes[axis] - 1 - from[order[axis]],
        });
        shape.cell_at(to).expect("axes of equal size were exchanged, so the image is inside")
    };
    Symmetry { to: (0..count).map(image).collect() }
}
