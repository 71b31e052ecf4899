//! Several objectives: domination, fronts, crowding and hypervolume.

use evoxo_common::{
    math::order,
    rng::{Stream, unit},
};

use super::evaluation::Evaluation;

/// Whether the first dominates the second: no objective is greater, and at least one is less. With constraints (K. Deb, A.
/// Pratap, S. Agarwal and T. Meyarivan, "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II", IEEE Transactions on
/// Evolutionary Computation 6(2), 2002, definition 1): if one or both break constraints, the one with less violation
/// dominates. Every other candidate dominates a failed one.
#[must_use]
pub fn dominates(one: &Evaluation, two: &Evaluation) -> bool {
    if one.failed || two.failed {
        return !one.failed && two.failed;
    }
    let broken = (one.violation(), two.violation());
    if broken != (0.0, 0.0) {
        return broken.0 < broken.1;
    }
    let objectives = one.objectives.len().max(two.objectives.len());
    let mut less = false;
    for index in 0..objectives {
        let (first, second) = (one.objective(index), two.objective(index));
        if first > second {
            return false;
        }
        less |= first < second;
    }
    less
}

/// The front of each, counted from 0: fast non-dominated sort (Deb et al. 2002, section III.A). Takes quadratic time and
/// memory.
#[must_use]
pub fn fronts(all: &[Evaluation]) -> Vec<usize> {
    let mut dominated: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    let mut dominators = vec![0_usize; all.len()];
    for one in 0..all.len() {
        for two in 0..one {
            let (better, worse) = match (dominates(&all[one], &all[two]), dominates(&all[two], &all[one])) {
                (true, _) => (one, two),
                (_, true) => (two, one),
                _ => continue,
            };
            dominated[better].push(worse);
            dominators[worse] += 1;
        }
    }
    let mut rank = vec![0; all.len()];
    let mut front: Vec<usize> = (0..all.len()).filter(|index| dominators[*index] == 0).collect();
    for number in 0.. {
        let mut next = Vec::new();
        for index in &front {
            rank[*index] = number;
            for worse in &dominated[*index] {
                dominators[*worse] -= 1;
                if dominators[*worse] == 0 {
                    next.push(*worse);
                }
            }
        }
        if next.is_empty() {
            break;
        }
        front = next;
    }
    rank
}

/// The crowding distance of each member of a front (Deb et al. 2002, section III.B): the distance between its neighbours,
/// summed over the objectives, each as a share of its range in the front. Infinite for the extreme members. An objective that
/// is equal for all, or infinite for any, does not count.
#[must_use]
pub fn crowding(front: &[&Evaluation]) -> Vec<f64> {
    let mut distance = vec![0.0; front.len()];
    let objectives = front.iter().map(|member| member.objectives.len()).max().unwrap_or(0);
    for objective in 0..objectives {
        let value = |index: usize| front[index].objective(objective);
        let mut places: Vec<usize> = (0..front.len()).collect();
        places.sort_by(|one, two| order(value(*one), value(*two)).then(one.cmp(two)));
        let (Some(first), Some(last)) = (places.first(), places.last()) else { continue };
        let range = value(*last) - value(*first);
        if !(range > 0.0 && range.is_finite()) {
            continue;
        }
        distance[*first] = f64::INFINITY;
        distance[*last] = f64::INFINITY;
        for around in places.windows(3) {
            distance[around[1]] += (value(around[2]) - value(around[0])) / range;
        }
    }
    distance
}

/// The most points whose hypervolume is computed exactly with more than three objectives.
const EXACT_POINTS: usize = 256;
/// The most objectives with which a hypervolume is computed exactly.
const EXACT_OBJECTIVES: usize = 5;
/// The number of sample points of an estimate: the first, or fewer with many candidates, but at least the second.
const SAMPLES: [usize; 2] = [1 << 16, 1 << 12];

/// Whether the hypervolume of this many points is computed exactly. Otherwise it is estimated.
#[must_use]
pub const fn is_exact(points: usize, objectives: usize) -> bool {
    objectives <= 3 || objectives <= EXACT_OBJECTIVES && points <= EXACT_POINTS
}

/// The hypervolume that points dominate up to a reference point, with all objectives to be minimised (E. Zitzler and L.
/// Thiele, "Multiobjective Optimization Using Evolutionary Algorithms", PPSN V, 1998). Points that do not dominate the
/// reference point add nothing, and neither do points with too few numbers. A volume too large for a number is the greatest
/// finite number.
///
/// The result is exact with two objectives (n log n steps) and with three (by slices, about n^2 log n). With four and five it
/// is exact for up to 256 points, by the algorithm of L. While, L. Bradstreet and L. Barone, "A Fast Way of Calculating Exact
/// Hypervolumes", IEEE Transactions on Evolutionary Computation 16(1), 2012. Otherwise it is estimated from 65,536 random
/// points (4,096 with that many candidates or more) in the box from the least of each objective to the reference point: the
/// share that any candidate dominates. Its standard error is at most 0.2 % (0.8 %) of that box. The random points are always
/// the same.
#[must_use]
pub fn hypervolume(points: &[&[f64]], reference: &[f64]) -> f64 {
    let inside = |point: &&&[f64]| {
        point.len() >= reference.len() && point.iter().zip(reference).all(|(value, limit)| value < limit)
    };
    let mut inside: Vec<&[f64]> = points.iter().filter(inside).map(|point| &point[..reference.len()]).collect();
    let volume = match is_exact(inside.len(), reference.len()) {
        true if reference.len() > 3 => exclusive(&inside, reference),
        true => volume(&mut inside, reference),
        false => estimate(&inside, reference),
    };
    volume.min(f64::MAX)
}

/// What each point of a front adds to the [hypervolume] of all: what only it dominates, up to a reference point that all of them
/// dominate. There are two or three objectives. Of equal points each adds nothing. It takes n^2 steps for each corner that a point
/// sees of the others.
#[must_use]
pub fn contributions(front: &[&[f64]], reference: &[f64]) -> Vec<f64> {
    // Two objectives are three of which the last is 0, up to 1.
    let third = |numbers: &[f64], usual: f64| [numbers[0], numbers[1], numbers.get(2).copied().unwrap_or(usual)];
    let points: Vec<[f64; 3]> = front.iter().map(|point| third(point, 0.0)).collect();
    let limit = third(reference, 1.0);
    let mut upwards: Vec<usize> = (0..points.len()).collect();
    upwards.sort_by(|one, two| order(points[*one][2], points[*two][2]));
    let added = |own: usize| {
        let point = points[own];
        let base = (limit[0] - point[0]) * (limit[1] - point[1]);
        // From below, the others cover more and more of the point's box: the area behind a staircase.
        let mut stairs: Vec<[f64; 2]> = Vec::new();
        let (mut sum, mut covered, mut height) = (0.0, 0.0, point[2]);
        for other in upwards.iter().filter(|other| **other != own) {
            let [x, y, z]: [f64; 3] = std::array::from_fn(|index| points[*other][index].max(point[index]));
            if stairs.iter().any(|step| step[0] <= x && step[1] <= y) {
                continue;
            }
            sum += (base - covered) * (z - height);
            height = z;
            stairs.retain(|step| step[0] < x || step[1] < y);
            stairs.insert(stairs.partition_point(|step| step[0] < x), [x, y]);
            let ends = stairs.iter().skip(1).map(|step| step[0]).chain([limit[0]]);
            covered = stairs.iter().zip(ends).map(|(step, end)| (end - step[0]) * (limit[1] - step[1])).sum();
            if [x, y] == point[..2] {
                return sum;
            }
        }
        sum + (base - covered) * (limit[2] - height)
    };
    (0..points.len()).map(added).collect()
}

/// The volume between a point and the reference point.
fn inclusive(point: &[f64], reference: &[f64]) -> f64 {
    point.iter().zip(reference).map(|(value, limit)| limit - value).product()
}

/// The hypervolume of points that all dominate the reference point, which has more than three numbers. It is the sum of what
/// each point adds to those that are better in the last objective. Behind the point, all of these share its last number, so
/// what they take away from its volume is a hypervolume with one objective less.
fn exclusive(points: &[&[f64]], reference: &[f64]) -> f64 {
    let Some((limit, rest)) = reference.split_last().filter(|_| reference.len() > 3) else {
        return volume(&mut points.to_vec(), reference);
    };
    let depth = rest.len();
    let mut points = points.to_vec();
    points.sort_by(|one, two| order(two[depth], one[depth]));
    let added = |(place, point): (usize, &&[f64])| {
        let point = *point;
        let behind = |other: &&[f64]| point.iter().zip(&other[..depth]).map(|(one, two)| one.max(*two)).collect();
        let mut limits: Vec<Vec<f64>> = points[place + 1..].iter().map(behind).collect();
        keep_front(&mut limits);
        let limits: Vec<&[f64]> = limits.iter().map(Vec::as_slice).collect();
        (limit - point[depth]) * (inclusive(&point[..depth], rest) - exclusive(&limits, rest))
    };
    points.iter().enumerate().map(added).sum()
}

/// Removes every point that another one equals or beats in each number. Of equal points the first stays.
pub fn keep_front(points: &mut Vec<Vec<f64>>) {
    let covers = |one: &[f64], two: &[f64]| one.iter().zip(two).all(|(one, two)| one <= two);
    let mut kept: Vec<Vec<f64>> = Vec::new();
    for point in points.drain(..) {
        if !kept.iter().any(|other| covers(other, &point)) {
            kept.retain(|other| !covers(&point, other));
            kept.push(point);
        }
    }
    *points = kept;
}

/// An estimate of the hypervolume of points that all dominate the reference point.
fn estimate(points: &[&[f64]], reference: &[f64]) -> f64 {
    let least = |objective: usize| points.iter().map(|point| point[objective]).fold(reference[objective], f64::min);
    let least: Vec<f64> = (0..reference.len()).map(least).collect();
    let samples = ((SAMPLES[0] * EXACT_POINTS) / points.len().max(1)).clamp(SAMPLES[1], SAMPLES[0]);
    let mut rng = Stream::root(0).text("hypervolume").rng();
    let mut place = vec![0.0; reference.len()];
    let mut dominated = 0_usize;
    for _ in 0..samples {
        for (place, (least, limit)) in place.iter_mut().zip(least.iter().zip(reference)) {
            *place = least + unit(&mut rng) * (limit - least);
        }
        dominated += usize::from(points.iter().any(|point| point.iter().zip(&place).all(|(value, at)| value <= at)));
    }
    inclusive(&least, reference) * dominated as f64 / samples as f64
}

/// The exact hypervolume of points that all dominate the reference point.
fn volume(points: &mut [&[f64]], reference: &[f64]) -> f64 {
    let Some((limit, rest)) = reference.split_last() else { return 0.0 };
    let depth = rest.len();
    if depth == 0 {
        return points.iter().map(|point| limit - point[0]).fold(0.0, f64::max);
    }
    points.sort_by(|one, two| order(one[depth], two[depth]));
    if depth == 1 {
        // A staircase: each step adds the rectangle that earlier ones left free.
        let (mut sum, mut least) = (0.0, rest[0]);
        for point in points.iter() {
            if point[0] < least {
                sum += (least - point[0]) * (limit - point[1]);
                least = point[0];
            }
        }
        return sum;
    }
    let mut sum = 0.0;
    for count in 1..=points.len() {
        let height = points.get(count).map_or(*limit, |next| next[depth]) - points[count - 1][depth];
        if height > 0.0 {
            sum += height * volume(&mut points[..count].to_vec(), rest);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::rng::{Stream, below, unit};
    use proptest::prelude::*;

    fn of(objectives: &[f64]) -> Evaluation {
        Evaluation { objectives: objectives.to_vec(), ..Default::default() }
    }

    fn random(seed: u64, count: usize) -> Vec<Evaluation> {
        let mut rng = Stream::root(seed).rng();
        let mut draw = || below(&mut rng, 6) as f64;
        (0..count)
            .map(|_| Evaluation {
                objectives: vec![draw(), draw(), draw()],
                constraints: vec![draw() - 4.0],
                failed: draw() == 0.0,
                ..Default::default()
            })
            .collect()
    }

    proptest! {
        /// By definition, a front is what nothing dominates once the earlier fronts are removed.
        #[test]
        fn fronts_agree_with_their_definition(seed: u64, count in 0..40_usize) {
            let all = random(seed, count);
            let ranks = fronts(&all);
            let mut left: Vec<usize> = (0..count).collect();
            for rank in 0.. {
                let free = |index: &usize| !left.iter().any(|other| dominates(&all[*other], &all[*index]));
                let front: Vec<usize> = left.iter().copied().filter(free).collect();
                prop_assert!(front.iter().all(|index| ranks[*index] == rank));
                left.retain(|index| !front.contains(index));
                if left.is_empty() {
                    break;
                }
            }
        }

        /// For points on a grid, the hypervolume is a count of cells.
        #[test]
        fn the_hypervolume_equals_the_sum_of_cells(seed: u64, count in 0..12_usize) {
            let all = random(seed, count);
            let points: Vec<&[f64]> = all.iter().map(|evaluation| &evaluation.objectives[..]).collect();
            let covered = |cell: &[usize]| {
                points.iter().any(|point| point.iter().zip(cell).all(|(value, at)| *value <= *at as f64))
            };
            let cells = |depth: u32| (0..5_usize.pow(depth)).map(|index| [index % 5, index / 5 % 5, index / 25]);
            let expected = cells(3).filter(|cell| covered(cell)).count();
            prop_assert_eq!(hypervolume(&points, &[5.0, 5.0, 5.0]), expected as f64);
            let expected = cells(2).filter(|cell| covered(&cell[..2])).count();
            prop_assert_eq!(hypervolume(&points, &[5.0, 5.0]), expected as f64);
            let expected = cells(1).filter(|cell| covered(&cell[..1])).count();
            prop_assert_eq!(hypervolume(&points, &[5.0]), expected as f64);
        }
    }

    fn cloud(seed: u64, count: usize, objectives: usize) -> Vec<Vec<f64>> {
        let mut rng = Stream::root(seed).rng();
        (0..count).map(|_| (0..objectives).map(|_| unit(&mut rng)).collect()).collect()
    }

    fn of_cloud(points: &[Vec<f64>], how: fn(&[&[f64]], &[f64]) -> f64) -> f64 {
        let points: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
        how(&points, &vec![1.0; points[0].len()])
    }

    proptest! {
        /// By inclusion and exclusion: the volume of a union of boxes is the signed sum, over all sets of points, of the
        /// volumes that they share.
        #[test]
        fn hypervolumes_agree_with_inclusion_and_exclusion(seed: u64, count in 1..9_usize, objectives in 2..6_usize) {
            let points = cloud(seed, count, objectives);
            let shared = |set: usize| {
                let members = || (0..count).filter(|index| set >> index & 1 == 1);
                let side = |objective| members().map(|index| 1.0 - points[index][objective]).fold(1.0, f64::min);
                let sign = if members().count() % 2 == 1 { 1.0 } else { -1.0 };
                sign * (0..objectives).map(side).product::<f64>()
            };
            let expected: f64 = (1..1 << count).map(shared).sum();
            let found = of_cloud(&points, hypervolume);
            prop_assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }

        /// For points on a grid, with duplicates and cut coordinates, both exact algorithms agree wherever both can be used.
        #[test]
        fn ties_do_not_matter(seed: u64, count in 1..40_usize) {
            let all = random(seed, count);
            let points: Vec<Vec<f64>> = all.iter().map(|it| [it.objectives.as_slice(), &[0.0]].concat()).collect();
            let four: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
            let three: Vec<&[f64]> = all.iter().map(|it| it.objectives.as_slice()).collect();
            // The fourth number is the same for all points, so the volume is that of the other three.
            prop_assert_eq!(hypervolume(&four, &[5.0, 5.0, 5.0, 1.0]), hypervolume(&three, &[5.0, 5.0, 5.0]));
        }
    }

    #[test]
    fn an_estimate_is_near() {
        for (objectives, count) in [(4, 40), (5, 200), (3, 10_000)] {
            let points = cloud(7, count, objectives);
            let (exact, near) = (of_cloud(&points, exclusive), of_cloud(&points, estimate));
            // Four times the documented standard error of the estimate.
            assert!((exact - near).abs() < if count > 4096 { 0.032 } else { 0.008 }, "{objectives}: {exact} {near}");
        }
        // 300 points are too many for an exact result with five objectives, and with seven objectives no number of points is
        // exact.
        assert!(is_exact(100, 5) && !is_exact(300, 5) && is_exact(10_000, 3) && !is_exact(1, 7));
        let corner = vec![vec![0.5; 7]];
        assert_eq!(of_cloud(&corner, hypervolume), 1.0 / 128.0, "a single point fills its box");
    }

    #[test]
    fn contributions_are_what_is_lost_without_a_point() {
        for objectives in [2, 3] {
            let mut rng = Stream::root(objectives as u64).rng();
            let cloud = (0..200).map(|_| (0..objectives).map(|_| below(&mut rng, 60) as f64).collect());
            let mut points: Vec<Vec<f64>> = cloud.collect();
            keep_front(&mut points);
            assert!(points.len() > 2, "{points:?}");
            let reference = vec![60.0; objectives];
            let all: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
            let whole = hypervolume(&all, &reference);
            for (place, added) in contributions(&all, &reference).into_iter().enumerate() {
                let rest: Vec<&[f64]> = [&all[..place], &all[place + 1..]].concat();
                assert_eq!(added, whole - hypervolume(&rest, &reference));
            }
        }
        assert_eq!(contributions(&[&[1.0, 1.0], &[1.0, 1.0]], &[2.0, 2.0]), [0.0, 0.0]);
    }

    #[test]
    fn constraints_come_before_objectives() {
        let broken = |by: f64| Evaluation { constraints: vec![by], ..of(&[0.0, 0.0]) };
        assert!(dominates(&of(&[1.0, 1.0]), &broken(0.1)));
        assert!(dominates(&broken(0.1), &broken(0.2)) && !dominates(&broken(0.1), &broken(0.1)));
        assert!(!dominates(&of(&[1.0, 2.0]), &of(&[2.0, 1.0])) && dominates(&of(&[1.0, 1.0]), &of(&[1.0, 2.0])));
    }

    #[test]
    fn crowding_distances_follow_the_paper() {
        let front = [of(&[0.0, 4.0]), of(&[1.0, 2.0]), of(&[4.0, 0.0]), of(&[2.0, 1.0])];
        let distance = crowding(&front.iter().collect::<Vec<_>>());
        assert_eq!(distance, [f64::INFINITY, 2.0 / 4.0 + 3.0 / 4.0, f64::INFINITY, 3.0 / 4.0 + 2.0 / 4.0]);
        // -0.0 equals 0.0, so the first of the two comes first.
        let zeros = [of(&[-1.0, 0.0]), of(&[0.0, 0.0]), of(&[-0.0, 0.0]), of(&[1.0, 0.0])];
        let signs = [of(&[-1.0, 0.0]), of(&[-0.0, 0.0]), of(&[0.0, 0.0]), of(&[1.0, 0.0])];
        let [one, other] = [zeros, signs].map(|front| crowding(&front.iter().collect::<Vec<_>>()));
        assert_eq!(one, other);
        let failed = [Evaluation { failed: true, ..of(&[]) }, of(&[f64::INFINITY]), of(&[1.0])];
        assert_eq!(crowding(&failed.iter().collect::<Vec<_>>()), [0.0; 3]);
    }

    #[test]
    fn many_points_of_a_known_front() {
        let mut rng = Stream::root(1).rng();
        let points: Vec<[f64; 2]> = (0..20_000).map(|_| unit(&mut rng)).map(|x| [x, 1.0 - x.sqrt()]).collect();
        let points: Vec<&[f64]> = points.iter().map(|point| &point[..]).collect();
        let area = hypervolume(&points, &[1.1, 1.1]);
        // 0.1 1.1 + 0.1 + 2/3, less the gaps between neighbouring points.
        assert!((area - 0.876_666).abs() < 2e-4, "{area}");
    }
}
