//! The lines of a grid: k cells in a row along any of the thirteen directions of space.

use super::Shape;

/// All lines as masks, in ascending order.
pub(super) fn lines(shape: Shape) -> Vec<u64> {
    let cells = shape.sizes().iter().product::<i32>() as u8;
    let mut lines: Vec<u64> = directions()
        .flat_map(|step| (0..cells).filter_map(move |start| line(shape, shape.position(start), step)))
        .collect();
    lines.sort_unstable();
    lines
}

/// One direction of each opposite pair: the one whose last non-zero step is positive.
fn directions() -> impl Iterator<Item = [i32; 3]> {
    let steps = (0..27).map(|code| [code % 3 - 1, code / 3 % 3 - 1, code / 9 - 1]);
    steps.filter(|step| step.iter().rev().find(|part| **part != 0) == Some(&1))
}

/// The line of k cells from `start`, or `None` if it leaves the grid.
fn line(shape: Shape, start: [i32; 3], step: [i32; 3]) -> Option<u64> {
    (0..i32::from(shape.k)).try_fold(0, |line, count| {
        let position = std::array::from_fn(|axis| start[axis] + count * step[axis]);
        shape.cell_at(position).map(|cell| line | 1 << cell)
    })
}
