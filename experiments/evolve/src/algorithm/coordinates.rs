//! The coordinates in which evolution strategies search: genes divided by the width of their bounds. So the box of the bounds
//! has width 1 in each coordinate, and a coordinate is as precise as its gene: 0 is 0, however wide the box is. If the bounds
//! are kept, coordinates beyond them are folded into the box. Fixed genes have no coordinates. Coordinates of whole genes are
//! rounded, and those beyond the bounds give the nearest bound.

use super::Wrong;
use crate::genome::{Candidate, Genes, Genome, Part, Type};

/// How far coordinates reach beyond a bound before they are mirrored, as a share of the box. pycma takes a twentieth of 1
/// plus the bound: 0.03 of a box from -5 to 5. Where the map bends, it also bends the lines along which genes depend on each
/// other, and a strategy learns such lines slowly: with 0.05, a rotated discus took more than half as long again as with
/// 0.01. Both values find an optimum on a bound equally fast.
const MARGIN: f64 = 0.01;

/// The map from coordinates to genes.
#[derive(Clone, Debug)]
pub(super) struct Coordinates {
    parts: Vec<Place>,
    /// Whether genes stay within their bounds.
    pub(super) bounded: bool,
}

/// The coordinates of one part of a genome.
#[derive(Clone, Debug)]
enum Place {
    /// A part of real genes: its length and bounds.
    Real(usize, f64, f64),
    /// A part of whole genes: its length and bounds.
    Whole(usize, Whole),
    /// A part of bits, each a whole gene from 0 to 1.
    Bits(usize),
    /// A fixed part: its genes.
    Fixed(Genes),
}

/// The bounds of a whole gene.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Whole {
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The bounds of a bit.
const BIT: Whole = Whole { low: 0.0, high: 1.0 };

impl Coordinates {
    /// The coordinates of a genome of real numbers, or an error if a part is neither real nor fixed, or all parts are fixed.
    pub(super) fn of_reals(genome: &Genome) -> Result<Self, Wrong> {
        Self::of(genome, false)
    }

    /// The coordinates of a genome of real and whole numbers and bits, or an error if a part has another type and is not fixed,
    /// or all parts are fixed.
    pub(super) fn of_numbers(genome: &Genome) -> Result<Self, Wrong> {
        Self::of(genome, true)
    }

    fn of(genome: &Genome, with_whole: bool) -> Result<Self, Wrong> {
        let place = |part: &Part| match (part.fixed(), part.of) {
            (Some(genes), _) => Ok(Place::Fixed(genes)),
            (None, Type::Real { low, high }) => Ok(Place::Real(part.length, low, high)),
            (None, Type::Integer { low, high }) if with_whole => {
                Ok(Place::Whole(part.length, Whole { low: low as f64, high: high as f64 }))
            }
            (None, Type::Bits) if with_whole => Ok(Place::Bits(part.length)),
            (None, of) => {
                let (name, of) = (&part.name, of.name());
                let numbers = if with_whole { "numbers" } else { "real numbers" };
                let sentence = format!("this algorithm searches {numbers}, but part \"{name}\" has type {of}");
                Err(Wrong::new("algorithm", sentence))
            }
        };
        let parts = genome.parts.iter().map(place).collect::<Result<Vec<Place>, Wrong>>()?;
        let coordinates = Self { parts, bounded: genome.bounded };
        match coordinates.count() {
            0 => Err(Wrong::new("algorithm", "this algorithm needs a gene that is not fixed")),
            _ => Ok(coordinates),
        }
    }

    /// The length and the bounds of each part that is not fixed, and whether its genes are whole.
    fn free(&self) -> impl Iterator<Item = (usize, f64, f64, bool)> {
        self.parts.iter().filter_map(|part| match part {
            Place::Real(length, low, high) => Some((*length, *low, *high, false)),
            Place::Whole(length, Whole { low, high }) => Some((*length, *low, *high, true)),
            Place::Bits(length) => Some((*length, BIT.low, BIT.high, true)),
            Place::Fixed(_) => None,
        })
    }

    /// The coordinates of whole genes, with their bounds.
    pub(super) fn whole(&self) -> impl Iterator<Item = (usize, Whole)> {
        let each = |(length, low, high, is_whole): (usize, f64, f64, bool)| {
            std::iter::repeat_n(is_whole.then_some(Whole { low, high }), length)
        };
        self.free().flat_map(each).enumerate().filter_map(|(index, whole)| Some((index, whole?)))
    }

    /// The number of coordinates.
    pub(super) fn count(&self) -> usize {
        self.free().map(|(length, ..)| length).sum()
    }

    /// The lower end of the box in each coordinate.
    fn starts(&self) -> impl Iterator<Item = f64> {
        self.free().flat_map(|(length, low, high, _)| std::iter::repeat_n(low / (high - low), length))
    }

    /// The point at these shares of the box, one for each coordinate: 0 for the lower bound, 1 for the upper one.
    pub(super) fn point(&self, shares: impl IntoIterator<Item = f64>) -> Vec<f64> {
        self.starts().zip(shares).map(|(start, share)| start + share).collect()
    }

    /// The coordinates of real genes in a point that are mirror images of others in the box, each with the one that it mirrors. The latter
    /// is nearer to 0, so it has more digits.
    pub(super) fn outside(&self, point: &[f64]) -> Vec<(usize, f64)> {
        let image = |(index, (place, start)): (usize, (&f64, f64))| {
            let share = place - start;
            let inside = if share > 1.0 + MARGIN { 2.0 * (1.0 + MARGIN) - share } else { -2.0 * MARGIN - share };
            let box_and_margin = -MARGIN..=1.0 + MARGIN;
            let is_image = !box_and_margin.contains(&share) && box_and_margin.contains(&inside);
            is_image.then_some((index, start + inside))
        };
        point.iter().zip(self.starts()).enumerate().filter_map(image).collect()
    }

    /// The coordinates of a candidate without the bend near the bounds: a quadratic function of genes is one of these, too.
    pub(super) fn straight(&self, candidate: &Candidate) -> Vec<f64> {
        self.places(candidate, &|gene, low, high| gene / (high - low))
    }

    /// The point whose candidate is nearest to these coordinates without the bend.
    pub(super) fn bent(&self, straight: &[f64]) -> Vec<f64> {
        let each = |(length, low, high, is_whole): (usize, f64, f64, bool)| {
            std::iter::repeat_n((low / (high - low), is_whole), length)
        };
        let bend = |(place, (start, is_whole)): (&f64, (f64, bool))| match place - start {
            share if !self.bounded || (MARGIN..=1.0 - MARGIN).contains(&share) => *place,
            share if is_whole => start + share.clamp(0.0, 1.0),
            share => start + unfold(share.clamp(0.0, 1.0)),
        };
        straight.iter().zip(self.free().flat_map(each)).map(bend).collect()
    }

    /// The largest distance between bounds.
    pub(super) fn widest(&self) -> f64 {
        self.free().fold(0.0, |widest, (_, low, high, _)| (high - low).max(widest))
    }

    /// A point that has this candidate.
    pub(super) fn of_candidate(&self, candidate: &Candidate) -> Vec<f64> {
        let place = |gene: f64, low: f64, high: f64| match (gene - low) / (high - low) {
            share if self.bounded && !(MARGIN..=1.0 - MARGIN).contains(&share) => low / (high - low) + unfold(share),
            _ => gene / (high - low),
        };
        self.places(candidate, &place)
    }

    /// The coordinates of a candidate, where `place` gives that of a real gene with these bounds.
    fn places(&self, candidate: &Candidate, place: &dyn Fn(f64, f64, f64) -> f64) -> Vec<f64> {
        let of_part = |(part, genes): (&Place, &Genes)| match (part, genes) {
            (Place::Real(_, low, high), Genes::Real(genes)) => {
                genes.iter().map(|gene| place(*gene, *low, *high)).collect()
            }
            (Place::Whole(_, Whole { low, high }), Genes::Integer(genes)) => {
                genes.iter().map(|gene| *gene as f64 / (high - low)).collect()
            }
            (Place::Bits(_), Genes::Bits(genes)) => genes.iter().map(|bit| f64::from(u8::from(*bit))).collect(),
            (Place::Fixed(_), _) => Vec::new(),
            _ => panic!("the candidate has genes of another type"),
        };
        self.parts.iter().zip(&candidate.parts).flat_map(of_part).collect()
    }

    /// The candidate at a point. If a coordinate is not finite, its gene is in the middle of its bounds.
    pub(super) fn candidate(&self, point: &[f64]) -> Candidate {
        let mut rest = point;
        let gene = |place: f64, low: f64, high: f64| match self.bounded {
            true => match place - low / (high - low) {
                share if (MARGIN..=1.0 - MARGIN).contains(&share) => place * (high - low),
                share => low + fold(share) * (high - low),
            }
            .clamp(low, high),
            false if place.is_finite() => (place * (high - low)).clamp(f64::MIN, f64::MAX),
            false => low + 0.5 * (high - low),
        };
        let whole = |place: f64, Whole { low, high }: Whole| match (place * (high - low)).round() {
            number if number.is_nan() => (low + 0.5 * (high - low)).round(),
            number => number.clamp(low, high),
        };
        let mut next = |length: &usize| {
            let (own, others) = rest.split_at(*length);
            rest = others;
            own.iter().copied()
        };
        let mut part = |part: &Place| match part {
            Place::Real(length, low, high) => Genes::Real(next(length).map(|place| gene(place, *low, *high)).collect()),
            Place::Whole(length, bounds) => {
                Genes::Integer(next(length).map(|place| whole(place, *bounds) as i64).collect())
            }
            Place::Bits(length) => Genes::Bits(next(length).map(|place| whole(place, BIT) == 1.0).collect()),
            Place::Fixed(genes) => genes.clone(),
        };
        Candidate { parts: self.parts.iter().map(&mut part).collect() }
    }
}

/// Folds a share of the box into 0 to 1, as pycma's `BoxConstraintsLinQuadTransformation` does. A share well inside does not
/// change. Near a bound the map is a parabola that ends at the bound itself, and coordinates beyond the margin are mirrored.
/// So the map is smooth, and a minimum on the bound is the minimum of an inner point.
fn fold(place: f64) -> f64 {
    if !place.is_finite() {
        return 0.5;
    }
    let (start, period) = (-2.0 * MARGIN - 0.5, 2.0 + 4.0 * MARGIN);
    let mut place = place - period * ((place - start) / period).floor();
    if place > 1.0 + MARGIN {
        place = 2.0 * (1.0 + MARGIN) - place;
    }
    if place < -MARGIN {
        place = -2.0 * MARGIN - place;
    }
    if place < MARGIN {
        (place + MARGIN) * (place + MARGIN) / (4.0 * MARGIN)
    } else if place <= 1.0 - MARGIN {
        place
    } else {
        1.0 - (1.0 + MARGIN - place) * (1.0 + MARGIN - place) / (4.0 * MARGIN)
    }
}

/// The share near a bound, or on it, that [`fold`] takes to this one.
fn unfold(share: f64) -> f64 {
    match share < 0.5 {
        true => (4.0 * MARGIN * share).sqrt() - MARGIN,
        false => 1.0 + MARGIN - (4.0 * MARGIN * (1.0 - share)).sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_well_inside_the_bounds_are_unchanged() {
        for place in [MARGIN, 0.25, 0.5, 0.731, 1.0 - MARGIN] {
            assert_eq!(fold(place), place);
        }
        assert_eq!([fold(-MARGIN), fold(f64::NAN), fold(f64::INFINITY)], [0.0, 0.5, 0.5]);
        assert!((fold(1.0 + MARGIN) - 1.0).abs() < 1e-15);
    }

    /// Coordinates are as precise as genes, however wide the box is: a gene near 0 keeps all its digits, and a gene near a
    /// bound keeps those that the size of the bound leaves.
    #[test]
    fn the_box_does_not_limit_precision() {
        for (low, high) in [(-1e12, 1e12), (-1e300, 1.0), (-3.0, 1e9)] {
            let part = Part { name: "x".into(), length: 1, of: Type::Real { low, high } };
            let coordinates = Coordinates::of_reals(&Genome { parts: vec![part], bounded: true }).unwrap();
            for gene in [1.0 / 3.0, -1e-9, 0.0] {
                let share = gene / (high - low) - low / (high - low);
                let Genes::Real(genes) = &coordinates.candidate(&[gene / (high - low)]).parts[0] else {
                    unreachable!()
                };
                let near = if (MARGIN..1.0 - MARGIN).contains(&share) { gene * 4e-16 } else { (high - low) * 0.01 };
                assert!((genes[0] - gene).abs() <= near.abs(), "{gene} in {low} to {high}: {}", genes[0]);
                assert!((low..=high).contains(&genes[0]));
            }
        }
    }

    /// The point of a candidate has the candidate again, on the bounds, near them and far from them.
    #[test]
    fn candidates_have_points() {
        let part = |length, of| Part { name: "x".into(), length, of };
        let (real, whole) = (Type::Real { low: -2.0, high: 6.0 }, Type::Integer { low: -3, high: 9 });
        let parts =
            vec![part(6, real), part(3, whole), part(2, Type::Bits), part(1, Type::Integer { low: 7, high: 7 })];
        for bounded in [true, false] {
            let coordinates = Coordinates::of_numbers(&Genome { parts: parts.clone(), bounded }).unwrap();
            let reals = vec![-2.0, -1.99, 0.0, 1.234, 5.999, 6.0];
            let others = [Genes::Integer(vec![-3, 0, 9]), Genes::Bits(vec![false, true]), Genes::Integer(vec![7])];
            let candidate = Candidate { parts: [vec![Genes::Real(reals.clone())], others.to_vec()].concat() };
            let again = coordinates.candidate(&coordinates.of_candidate(&candidate));
            let Genes::Real(genes) = &again.parts[0] else { unreachable!("the part is real") };
            assert!(genes.iter().zip(&reals).all(|(one, two)| (one - two).abs() < 1e-14), "{genes:?}");
            assert_eq!(again.parts[1..], candidate.parts[1..]);
            let (straight, point) = (coordinates.straight(&candidate), coordinates.of_candidate(&candidate));
            assert_eq!(coordinates.bent(&straight), point);
            let far =
                coordinates.candidate(&coordinates.bent(&straight.iter().map(|place| place + 5.0).collect::<Vec<_>>()));
            let ends = [Genes::Integer(vec![9; 3]), Genes::Bits(vec![true; 2]), Genes::Integer(vec![7])];
            assert!(!bounded || far.parts == [vec![Genes::Real(vec![6.0; 6])], ends.to_vec()].concat(), "{far:?}");
        }
    }

    /// A coordinate beyond a bound gives the same gene as its mirror image in the box.
    #[test]
    fn mirror_images_are_the_same_genes() {
        let part = Part { name: "x".into(), length: 1, of: Type::Real { low: -2.0, high: 6.0 } };
        let coordinates = Coordinates::of_reals(&Genome { parts: vec![part], bounded: true }).unwrap();
        let gene = |place: f64| coordinates.candidate(&[place]).parts[0].clone();
        for share in [-1.0, -0.3, -0.02, 0.0, 0.4, 1.0, 1.005, 1.3, 2.0] {
            let place = coordinates.point([share])[0];
            let found = coordinates.outside(&[place]);
            assert_eq!(found.is_empty(), (-MARGIN..=1.0 + MARGIN).contains(&(place + 0.25)), "{share}");
            for (_, inside) in found {
                let (Genes::Real(one), Genes::Real(two)) = (gene(place), gene(inside)) else { unreachable!() };
                assert!((one[0] - two[0]).abs() < 1e-12 && coordinates.outside(&[inside]).is_empty(), "{share}");
            }
        }
    }

    /// Fixed genes do not change and have no coordinates.
    #[test]
    fn fixed_genes_have_no_coordinates() {
        let part = |length, of| Part { name: "x".into(), length, of };
        let (fixed, free) = (Type::Real { low: -2.5, high: -2.5 }, Type::Real { low: -1.0, high: 3.0 });
        let whole = part(1, Type::Integer { low: 7, high: 7 });
        for bounded in [true, false] {
            let parts = vec![part(2, fixed), part(1, free), whole.clone(), part(2, free)];
            let genome = Genome { parts, bounded };
            let coordinates = Coordinates::of_reals(&genome).unwrap();
            assert_eq!((coordinates.count(), genome.free_genes(), coordinates.widest()), (3, 3, 4.0));
            let candidate = coordinates.candidate(&coordinates.point([0.25, 0.5, 0.75]));
            let expected = [vec![-2.5; 2], vec![0.0], vec![1.0, 2.0]].map(Genes::Real);
            let [first, second, last] = expected;
            assert_eq!(candidate.parts, [first, second, Genes::Integer(vec![7]), last]);
        }
        let all = Genome { parts: vec![part(2, fixed), whole], bounded: true };
        assert_eq!(Coordinates::of_reals(&all).unwrap_err().sentence, "this algorithm needs a gene that is not fixed");
    }

    /// If nothing is folded, the map from coordinates to genes is linear, and every gene is finite.
    #[test]
    fn genes_may_leave_optional_bounds() {
        let part = Part { name: "x".into(), length: 6, of: Type::Real { low: -1.0, high: 3.0 } };
        let genome = Genome { parts: vec![part], bounded: false };
        let coordinates = Coordinates::of_reals(&genome).unwrap();
        let shares = [0.25, -2.0, 1.5, f64::NAN, f64::MAX, f64::NEG_INFINITY];
        let candidate = coordinates.candidate(&coordinates.point(shares));
        assert_eq!(candidate.parts, [Genes::Real(vec![0.0, -9.0, 5.0, 1.0, f64::MAX, 1.0])]);
        assert_eq!(genome.check(&candidate), Ok(()));
        assert_eq!(genome.candidate(&candidate.message()), Ok(candidate.clone()));
        assert!(Genome { bounded: true, ..genome.clone() }.check(&candidate).is_err());
        let infinite = Candidate { parts: vec![Genes::Real(vec![f64::INFINITY; 6])] };
        assert_eq!(genome.check(&infinite).unwrap_err(), "part \"x\": gene 1 is inf, but it must be finite");
    }

    /// A step of a thousandth moves the result by no more than that, and never out of the box. The way back is the mirror
    /// image.
    #[test]
    fn the_map_is_smooth_and_periodic() {
        let mut before = fold(-10.0);
        for step in -9_999..10_000 {
            let place = f64::from(step) / 1000.0;
            let now = fold(place);
            assert!((0.0..=1.0).contains(&now) && (now - before).abs() < 0.001_001, "{place}: {now}");
            let (later, mirrored) = (fold(place + 2.0 + 4.0 * MARGIN), fold(-2.0 * MARGIN - place));
            assert!((later - now).abs() < 1e-12 && (mirrored - now).abs() < 1e-12, "{place}");
            before = now;
        }
        assert!((0.0..=1.0).contains(&fold(1e300)) && (0.0..=1.0).contains(&fold(-1e300)));
    }
}
