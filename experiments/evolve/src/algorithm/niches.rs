//! How a map of elites divides behaviours: into the cells of a grid, or into the regions nearest to given centroids.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Wrong, within};

/// The most cells of a grid.
const CELLS_MAX: usize = 100_000;
/// The most centroids. Finding the nearest centroid takes time proportional to their number.
const CENTROIDS_MAX: usize = 4096;
/// Sample points for each centroid: a centroid moves to the mean of the sample points nearest to it.
const POINTS: usize = 10;
/// How often all centroids move.
const MOVES: usize = 10;

/// A value below a border by less than this share of the axis counts as on it, because rounding in a program's arithmetic
/// makes such differences: in floats -1 + 0.02 * 9 is less than -0.82. A cell is at least 10 million times as wide.
const ROUNDING: f64 = 1.0 / (1_u64 << 40) as f64;

/// One measure: its bounds, and its cells in the grid. A cell includes its lower border (see `ROUNDING`), and the last cell
/// its upper border too. Values outside the bounds count as if they were at the bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// The lower bound.
    pub low: f64,
    /// The upper bound, greater than the lower one.
    pub high: f64,
    /// Cells, 1 to 100,000. Not used with centroids.
    pub cells: usize,
}

impl Axis {
    /// The cell that a measure falls into.
    #[must_use]
    pub fn cell(&self, measure: f64) -> usize {
        let last = self.cells - 1;
        let measure = measure + self.slack();
        let share = (measure - self.low) / (self.high - self.low);
        let mut cell = ((share * self.cells as f64) as usize).min(last);
        // Rounding can be one cell off.
        while cell > 0 && measure < self.border(cell) {
            cell -= 1;
        }
        while cell < last && measure >= self.border(cell + 1) {
            cell += 1;
        }
        cell
    }

    /// Whether a measure lies within the bounds.
    #[must_use]
    pub fn contains(&self, measure: f64) -> bool {
        (self.low - self.slack()..=self.high + self.slack()).contains(&measure)
    }

    fn slack(&self) -> f64 {
        (self.high - self.low) * ROUNDING
    }

    /// The lower border of a cell. If the bounds are decimals of at most six digits after the point, the border is the float
    /// nearest to the exact number. So the 0.29 that a person types is border 29 of a hundred cells from 0 to 1.
    fn border(&self, cell: usize) -> f64 {
        let (cells, cell) = (self.cells as i128, cell as i128);
        if let [Some(low), Some(high)] = [self.low, self.high].map(millionths) {
            let (above, below) = (low * (cells - cell) + high * cell, cells * MILLION as i128);
            let common = gcd(above, below);
            let [above, below] = [above / common, below / common];
            // Floats represent both whole numbers exactly, so the one division rounds once.
            if above.abs() < EXACT && below < EXACT {
                return above as f64 / below as f64;
            }
        }
        self.low + (self.high - self.low) * (cell as f64 / cells as f64)
    }
}

/// One over a unit of decimals.
const MILLION: f64 = 1e6;
/// Whole numbers below this are exact as floats.
const EXACT: i128 = 1 << 53;

/// The number in millionths, if it is a decimal with at most six digits after the point.
fn millionths(number: f64) -> Option<i128> {
    let whole = (number * MILLION).round();
    (whole.abs() < EXACT as f64 && whole / MILLION == number).then_some(whole as i128)
}

fn gcd(one: i128, other: i128) -> i128 {
    if other == 0 { one.abs().max(1) } else { gcd(other, one % other) }
}

/// Checks that the axes make sense; `centroids` is 0 for a grid.
pub(super) fn check(axes: &[Axis], centroids: usize) -> Result<(), Wrong> {
    if axes.is_empty() {
        let sentence = "a map of elites needs a problem with behaviour measures, and a grid over them";
        return Err(Wrong::new("algorithm", sentence));
    }
    for Axis { low, high, cells } in axes {
        within("grid", "the number of cells of a measure", *cells, 1..=CELLS_MAX)?;
        if !(low < high && (high - low).is_finite()) {
            let sentence = format!("a measure's bounds are {low:?} and {high:?}, but the lower must be less");
            return Err(Wrong::new("grid", sentence));
        }
    }
    if centroids > 0 {
        return within("centroids", "the number of centroids", centroids, 2..=CENTROIDS_MAX);
    }
    let cells = axes.iter().try_fold(1_usize, |product, axis| product.checked_mul(axis.cells));
    within("grid", "the number of cells", cells.unwrap_or(usize::MAX), 1..=CELLS_MAX)
}

/// The number of cells or regions.
pub(super) fn count(axes: &[Axis], centroids: usize) -> usize {
    if centroids > 0 { centroids } else { axes.iter().map(|axis| axis.cells).product() }
}

/// A way to divide behaviours.
#[derive(Clone, Debug)]
pub(super) struct Niches {
    axes: Vec<Axis>,
    /// The centroids, one after another, in the box of the bounds scaled to 0 to 1; empty for a grid.
    centroids: Arc<[f64]>,
}

impl Niches {
    /// A grid, or regions around this many centroids. The same arguments give the same centroids in every run, so archives
    /// can be compared.
    pub(super) fn new(axes: &[Axis], centroids: usize) -> Self {
        Self { axes: axes.to_vec(), centroids: shared(centroids, axes.len()) }
    }

    /// The cell or region of these measures; in a grid, cells are counted with the last measure fastest. `None` if a measure
    /// is missing or not a number.
    pub(super) fn of(&self, measures: &[f64]) -> Option<usize> {
        let shares =
            self.axes.iter().zip(measures).map(|(axis, measure)| (measure - axis.low) / (axis.high - axis.low));
        let shares: Vec<f64> = shares.collect();
        if measures.len() != self.axes.len() || shares.iter().any(|share| share.is_nan()) {
            return None;
        }
        if !self.centroids.is_empty() {
            let inside: Vec<f64> = shares.iter().map(|share| share.clamp(0.0, 1.0)).collect();
            return Some(nearest(&self.centroids, &inside));
        }
        let place = |cell: usize, (axis, measure): (&Axis, &f64)| cell * axis.cells + axis.cell(*measure);
        Some(self.axes.iter().zip(measures).fold(0, place))
    }
}

/// The index of the point nearest to this one; the first of several.
fn nearest(points: &[f64], to: &[f64]) -> usize {
    let distance = |point: &[f64]| point.iter().zip(to).map(|(one, other)| (one - other) * (one - other)).sum::<f64>();
    let distances = points.chunks_exact(to.len()).map(distance).enumerate();
    distances.fold((0, f64::INFINITY), |best, one| if one.1 < best.1 { one } else { best }).0
}

/// The most sets of centroids that are cached.
const SETS_MAX: usize = 8;

/// The points of [`spread`], from a cache. They take seconds to compute, so each set is computed once for all replicas and
/// all restores.
fn shared(count: usize, measures: usize) -> Arc<[f64]> {
    /// Sets of points with their counts and measures, the latest last.
    type Sets = Vec<((usize, usize), Arc<[f64]>)>;
    static SETS: Mutex<Sets> = Mutex::new(Vec::new());
    // Other threads wait here, because most of them need the same points.
    let mut sets = SETS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, known)) = sets.iter().find(|(of, _)| *of == (count, measures)) {
        return Arc::clone(known);
    }
    let points: Arc<[f64]> = spread(count, measures).into();
    if sets.len() == SETS_MAX {
        sets.remove(0);
    }
    sets.push(((count, measures), Arc::clone(&points)));
    points
}

/// Points spread evenly over the unit cube: a centroidal Voronoi tessellation.
///
/// V. Vassiliades, K. Chatzilygeroudis and J.-B. Mouret, "Using Centroidal Voronoi Tessellations to Scale Up the
/// Multidimensional Archive of Phenotypic Elites Algorithm", IEEE Transactions on Evolutionary Computation 22(4), 2018:
/// Lloyd's algorithm over a sample. Here the first centroids and the sample are a Halton sequence instead of random points.
/// With few measures that sequence alone spreads points nearly as well (J.-B. Mouret, "Fast Generation of Centroids for
/// MAP-Elites", GECCO Companion 2023).
fn spread(count: usize, measures: usize) -> Vec<f64> {
    let points = |range: std::ops::Range<usize>| -> Vec<f64> {
        range.flat_map(|number| (0..measures).map(move |measure| halton(number as u64 + 1, measure))).collect()
    };
    let (mut centroids, sample) = (points(0..count), points(count..count * (POINTS + 1)));
    for _ in 0..if count > 0 { MOVES } else { 0 } {
        let (mut sums, mut counts) = (vec![0.0; centroids.len()], vec![0_u32; count]);
        for point in sample.chunks_exact(measures) {
            let region = nearest(&centroids, point);
            counts[region] += 1;
            sums[region * measures..].iter_mut().zip(point).for_each(|(sum, share)| *sum += share);
        }
        for (region, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let own = region * measures..(region + 1) * measures;
            centroids[own.clone()].iter_mut().zip(&sums[own]).for_each(|(one, sum)| *one = sum / f64::from(*count));
        }
    }
    centroids
}

/// The bases of the Halton sequence, one prime for each measure; there are at most ten measures.
const PRIMES: [u64; 10] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29];

/// An element of a Halton sequence (J. H. Halton, Numerische Mathematik 2, 1960): the digits of `number` to a prime base,
/// mirrored at the point.
fn halton(mut number: u64, measure: usize) -> f64 {
    let base = PRIMES[measure % PRIMES.len()];
    let (mut share, mut digit) = (0.0, 1.0);
    while number > 0 {
        digit /= base as f64;
        share += digit * (number % base) as f64;
        number /= base;
    }
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(cells: usize) -> Axis {
        Axis { low: -1.0, high: 1.0, cells }
    }

    #[test]
    fn cells_are_counted_row_by_row() {
        let niches = Niches::new(&[axis(2), axis(4)], 0);
        let cells = [[-1.0, -1.0], [-0.1, 0.99], [0.0, -1.0], [1.0, 1.0], [9.0, -9.0], [f64::INFINITY, 0.25]];
        assert_eq!(cells.map(|measures| niches.of(&measures)), [0, 3, 4, 7, 4, 6].map(Some));
        assert_eq!((niches.of(&[0.0, f64::NAN]), niches.of(&[0.0])), (None, None));
        assert_eq!((count(&niches.axes, 0), count(&niches.axes, 50)), (8, 50));
    }

    /// Every border that a person might type, or that arithmetic rounds a little down, belongs to the cell above it.
    #[test]
    fn borders_are_exact() {
        let typed = |text: String| text.parse::<f64>().unwrap();
        for (low, high, cells, decimals) in [
            (0.0, 49.0, 49_usize, 0),
            (0.0, 1.0, 100, 2),
            (-1.0, 1.0, 100, 2),
            (0.1, 0.7, 6, 1),
            (-0.3, 0.9, 120, 2),
            (0.0, 1.0, 100_000, 5),
            (-1e12, 1e12, 20, 0),
            (0.000001, 0.000011, 10, 6),
        ] {
            let axis = Axis { low, high, cells };
            let width = (high - low) / cells as f64;
            for cell in 0..cells {
                let border = typed(format!("{:.decimals$}", low + cell as f64 * width));
                assert_eq!(axis.cell(border), cell, "{border} of {axis:?}");
                let [rounded, below] = [1e-14, 1e-11].map(|share| border - (high - low) * share);
                assert_eq!(axis.cell(rounded), cell, "{rounded} of {axis:?}");
                assert_eq!(axis.cell(below), cell.saturating_sub(1), "{below} of {axis:?}");
            }
            assert_eq!(
                (axis.cell(high), axis.cell(f64::INFINITY), axis.cell(f64::NEG_INFINITY)),
                (cells - 1, cells - 1, 0)
            );
        }
        let computed: Vec<usize> = (0..100).map(|step| axis(100).cell(-1.0 + 0.02 * f64::from(step))).collect();
        assert_eq!(computed, (0..100).collect::<Vec<_>>());
        assert_eq!(
            [-1.0, 1.0 + 1e-14, 1.0 + 1e-11, f64::NAN].map(|measure| axis(100).contains(measure)),
            [true, true, false, false]
        );
        // Bounds that nobody types as decimals.
        let odd = Axis { low: 0.1 + 0.2, high: 2.0_f64.sqrt(), cells: 7 };
        assert_eq!([odd.cell(odd.low), odd.cell(odd.high), odd.cell(odd.border(3))], [0, 6, 3]);
    }

    /// The points are the same whether they come from the cache or are computed again, and while they are cached there is one
    /// copy of them.
    #[test]
    fn centroids_are_computed_once() {
        let [first, again] = [(); 2].map(|()| shared(40, 3));
        assert!(Arc::ptr_eq(&first, &again));
        (2..2 + SETS_MAX).for_each(|count| assert_eq!(shared(count, 1).len(), count));
        assert_eq!(*shared(40, 3), *spread(40, 3));
        assert_eq!(shared(40, 2).len(), 80);
    }

    #[test]
    fn the_halton_sequence_is_as_published() {
        let of = |measure| (1..6).map(|number| halton(number, measure)).collect::<Vec<f64>>();
        assert_eq!(of(0), [0.5, 0.25, 0.75, 0.125, 0.625]);
        let thirds = [1.0 / 3.0, 2.0 / 3.0, 1.0 / 9.0, 4.0 / 9.0, 7.0 / 9.0];
        assert!(of(1).iter().zip(thirds).all(|(one, other)| (one - other).abs() < 1e-15), "{:?}", of(1));
    }

    /// The regions are of about equal size: each gets between half and twice its share of a sample that was not used to place
    /// them. Without the moves, some get less than half.
    #[test]
    fn regions_are_about_equal() {
        for measures in [2, 4] {
            let niches = Niches::new(&vec![axis(1); measures], 64);
            let mut counts = [0_u32; 64];
            for number in 100_000..100_000 + 64 * 200 {
                let measures: Vec<f64> = (0..measures).map(|measure| 2.0 * halton(number, measure) - 1.0).collect();
                counts[niches.of(&measures).unwrap()] += 1;
            }
            assert!(counts.iter().all(|count| (100..400).contains(count)), "{measures}: {counts:?}");
        }
        let niches = Niches::new(&[axis(1), axis(1)], 64);
        let outside = [niches.of(&[5.0, f64::INFINITY]), niches.of(&[1.0, 1.0])];
        assert_eq!(outside[0], outside[1]);
        assert_eq!(niches.of(&[0.0, f64::NAN]), None);
    }
}
