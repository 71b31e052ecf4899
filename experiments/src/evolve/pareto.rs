//! Several objectives: domination, fronts, crowding, hypervolume.

use super::evaluation::Evaluation;

/// Whether the first dominates the second: no objective is greater, and one is less. With constraints (K. Deb, A.
/// Pratap, S. Agarwal and T. Meyarivan, "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II", IEEE
/// Transactions on Evolutionary Computation 6(2), 2002, definition 1): of two of which one or both break any, the one
/// that breaks them less. A failed candidate is dominated by every other.
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

/// The front of each, from 0: fast non-dominated sort (Deb et al. 2002, section III.A). Takes time and memory of the
/// order of the square of the number.
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

/// The crowding distance of each member of a front (Deb et al. 2002, section III.B): how far its neighbours lie from
/// each other, summed over the objectives, each as a share of its range in the front; infinite for the extreme ones. An
/// objective that is the same for all, or infinite for any, does not count.
#[must_use]
pub fn crowding(front: &[&Evaluation]) -> Vec<f64> {
    let mut distance = vec![0.0; front.len()];
    let objectives = front.iter().map(|member| member.objectives.len()).max().unwrap_or(0);
    for objective in 0..objectives {
        let value = |index: usize| front[index].objective(objective);
        let mut order: Vec<usize> = (0..front.len()).collect();
        order.sort_by(|one, two| value(*one).total_cmp(&value(*two)).then(one.cmp(two)));
        let (Some(first), Some(last)) = (order.first(), order.last()) else { continue };
        let range = value(*last) - value(*first);
        if !(range > 0.0 && range.is_finite()) {
            continue;
        }
        distance[*first] = f64::INFINITY;
        distance[*last] = f64::INFINITY;
        for around in order.windows(3) {
            distance[around[1]] += (value(around[2]) - value(around[0])) / range;
        }
    }
    distance
}

/// The hypervolume that points dominate up to a reference point, all objectives minimised (E. Zitzler and L. Thiele,
/// "Multiobjective Optimization Using Evolutionary Algorithms", PPSN V, 1998); points that do not dominate the
/// reference point add nothing. By slices along the last objective (L. While et al. 2006): with two objectives n log n
/// steps, with three about n^2 log n. A point with fewer numbers than the reference point adds nothing. A volume beyond all
/// numbers is the greatest number.
#[must_use]
pub fn hypervolume(points: &[&[f64]], reference: &[f64]) -> f64 {
    let inside = |point: &&&[f64]| {
        point.len() >= reference.len() && point.iter().zip(reference).all(|(value, limit)| value < limit)
    };
    let mut inside: Vec<&[f64]> = points.iter().filter(inside).map(|point| &point[..reference.len()]).collect();
    volume(&mut inside, reference).min(f64::MAX)
}

/// The same for points that all dominate the reference point.
fn volume(points: &mut [&[f64]], reference: &[f64]) -> f64 {
    let Some((limit, rest)) = reference.split_last() else { return 0.0 };
    let depth = rest.len();
    if depth == 0 {
        return points.iter().map(|point| limit - point[0]).fold(0.0, f64::max);
    }
    points.sort_by(|one, two| one[depth].total_cmp(&two[depth]));
    if depth == 1 {
        // A staircase: each step adds the rectangle that those before left free.
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
        /// By the definition: a front is what nothing dominates when the fronts before are taken away.
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

        /// Points on a grid: count its cells.
        #[test]
        fn the_hypervolume_is_that_of_the_cells(seed: u64, count in 0..12_usize) {
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

    #[test]
    fn constraints_come_before_objectives() {
        let broken = |by: f64| Evaluation { constraints: vec![by], ..of(&[0.0, 0.0]) };
        assert!(dominates(&of(&[1.0, 1.0]), &broken(0.1)));
        assert!(dominates(&broken(0.1), &broken(0.2)) && !dominates(&broken(0.1), &broken(0.1)));
        assert!(!dominates(&of(&[1.0, 2.0]), &of(&[2.0, 1.0])) && dominates(&of(&[1.0, 1.0]), &of(&[1.0, 2.0])));
    }

    #[test]
    fn crowding_is_the_papers_cuboid() {
        let front = [of(&[0.0, 4.0]), of(&[1.0, 2.0]), of(&[4.0, 0.0]), of(&[2.0, 1.0])];
        let distance = crowding(&front.iter().collect::<Vec<_>>());
        assert_eq!(distance, [f64::INFINITY, 2.0 / 4.0 + 3.0 / 4.0, f64::INFINITY, 3.0 / 4.0 + 2.0 / 4.0]);
        let failed = [Evaluation { failed: true, ..of(&[]) }, of(&[f64::INFINITY]), of(&[1.0])];
        assert_eq!(crowding(&failed.iter().collect::<Vec<_>>()), [0.0; 3]);
    }

    #[test]
    fn many_points_of_a_known_front() {
        let mut rng = Stream::root(1).rng();
        let points: Vec<[f64; 2]> = (0..20_000).map(|_| unit(&mut rng)).map(|x| [x, 1.0 - x.sqrt()]).collect();
        let points: Vec<&[f64]> = points.iter().map(|point| &point[..]).collect();
        let area = hypervolume(&points, &[1.1, 1.1]);
        // 0.1 1.1 + 0.1 + 2/3, less what lies between neighbours.
        assert!((area - 0.876_666).abs() < 2e-4, "{area}");
    }
}
