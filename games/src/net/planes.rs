//! The planes of a cube and the lines in them, which wire a second structured layer.

use crate::board::{Geometry, Shape};

/// The number of planes of 4x4x4 cells: four across each axis, and two diagonal ones along each.
pub(super) const PLANES: usize = 18;
/// The number of lines in each plane.
pub(super) const LINES: usize = 10;
/// The most planes that contain a line.
pub(super) const OF_LINE: usize = 3;

/// Whether a board has planes: only boards of 4x4x4 cells with four in a row do.
pub(super) const fn has_planes(shape: Shape) -> bool {
    let Shape { width, height, depth, k, .. } = shape;
    matches!((width, height, depth, k), (4, 4, 4, 4))
}

/// The lines in each plane, ascending, as indices in [`Geometry::lines`]. The planes across an axis come first, axis by axis.
/// Then come the planes along an axis in which the two other coordinates are equal, and those in which they add up to 3.
pub(super) fn lines_by_plane(geometry: &Geometry) -> Vec<Vec<usize>> {
    let coordinates = |cell: usize| [cell % 4, cell / 4 % 4, cell / 16];
    let mask = |inside: &dyn Fn([usize; 3]) -> bool| {
        (0..64).filter(|cell| inside(coordinates(*cell))).fold(0_u64, |mask, cell| mask | 1 << cell)
    };
    let mut masks = Vec::new();
    for axis in 0..3 {
        masks.extend((0..4).map(|place| mask(&|at| at[axis] == place)));
    }
    for (first, second) in [(1, 2), (0, 2), (0, 1)] {
        masks.push(mask(&|at| at[first] == at[second]));
        masks.push(mask(&|at| at[first] + at[second] == 3));
    }
    let lines_in = |mask: u64| {
        let lines = geometry.lines().iter().enumerate();
        lines.filter(|(_, line)| **line & !mask == 0).map(|(index, _)| index).collect()
    };
    masks.into_iter().map(lines_in).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_plane_has_ten_lines_and_a_line_lies_in_two_or_three() {
        let geometry = Geometry::new(Shape::QUBIC).unwrap();
        let planes = lines_by_plane(&geometry);
        assert!(planes.len() == PLANES && planes.iter().all(|lines| lines.len() == LINES));
        let of_line = |line: usize| planes.iter().filter(|lines| lines.contains(&line)).count();
        let counts: Vec<usize> = (0..geometry.lines().len()).map(of_line).collect();
        // The 4 diagonals of the cube are in three planes each, and so are 24 of the 48 lines along an axis. The others are
        // in two.
        assert_eq!(counts.iter().filter(|count| **count == OF_LINE).count(), 4 + 24);
        assert!(counts.iter().all(|count| (2..=OF_LINE).contains(count)));
    }
}
