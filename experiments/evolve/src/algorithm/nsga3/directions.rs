//! Reference directions: points that are spread evenly over the simplex, one for each part of a front.
//!
//! I. Das and J. E. Dennis, "Normal-Boundary Intersection: A New Method for Generating the Pareto Surface in Nonlinear
//! Multicriteria Optimization Problems", SIAM Journal on Optimization 8(3), 1998.

/// The number of points on a simplex with this many corners whose edges are cut into `divisions` parts.
fn count(objectives: usize, divisions: usize) -> usize {
    // The binomial coefficient of objectives + divisions - 1 over divisions. Each product is divisible.
    (1..=divisions).fold(1, |count: usize, step| count.saturating_mul(objectives + step - 1) / step)
}

/// The most divisions, up to `limit`, with which at most `most` points are on the simplex.
fn divisions(objectives: usize, most: usize, limit: usize) -> usize {
    (1..=limit).take_while(|divisions| count(objectives, *divisions) <= most).last().unwrap_or(0)
}

/// The divisions of the outer layer and of the inner one, which may have none, with which there are at most `most` directions.
/// With fewer divisions than objectives, all points are at the edges of the simplex. Then a second layer of half the size lies
/// within it (Deb and Jain 2014, section IV.B).
fn layers(objectives: usize, most: usize) -> [usize; 2] {
    let outer = divisions(objectives, most, most);
    let is_hollow = outer < objectives;
    let left = most - count(objectives, outer).min(most);
    [outer, if is_hollow { divisions(objectives, left, outer) } else { 0 }]
}

/// As many directions of length 1 for two or more objectives as can be spread evenly, at most `most`. None if not even the
/// directions of the axes are so few.
pub(super) fn directions(objectives: usize, most: usize) -> Vec<Vec<f64>> {
    assert!(objectives > 1, "a front has two objectives or more");
    let [outer, inner] = layers(objectives, most);
    let mut all = layer(objectives, outer);
    let center = 1.0 / objectives as f64;
    let inner = layer(objectives, inner).into_iter().map(|point| point.iter().map(|it| (it + center) / 2.0).collect());
    all.extend(inner);
    all.into_iter().map(of_length_one).collect()
}

fn of_length_one(point: Vec<f64>) -> Vec<f64> {
    let length = point.iter().map(|number| number * number).sum::<f64>().sqrt();
    point.into_iter().map(|number| number / length).collect()
}

/// All points whose numbers are multiples of 1 / `divisions` with the sum 1.
fn layer(objectives: usize, divisions: usize) -> Vec<Vec<f64>> {
    let mut all = Vec::new();
    if divisions > 0 {
        extend(&mut all, &mut Vec::new(), objectives, divisions, divisions);
    }
    all
}

/// Adds all points that begin with `begun` and share `left` of the parts among the other numbers.
fn extend(all: &mut Vec<Vec<f64>>, begun: &mut Vec<f64>, objectives: usize, divisions: usize, left: usize) {
    let share = |parts: usize| parts as f64 / divisions as f64;
    if begun.len() + 1 == objectives {
        all.push([begun, &[share(left)][..]].concat());
        return;
    }
    for parts in 0..=left {
        begun.push(share(parts));
        extend(all, begun, objectives, divisions, left - parts);
        begun.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables I of part I of the paper, and the population sizes there.
    #[test]
    fn there_are_as_many_directions_as_in_the_paper() {
        let of = |objectives: usize, population: usize| {
            (layers(objectives, population), directions(objectives, population).len())
        };
        assert_eq!(of(3, 92), ([12, 0], 91));
        assert_eq!(of(5, 212), ([6, 0], 210));
        assert_eq!(of(8, 156), ([3, 2], 156));
        assert_eq!(of(10, 276), ([3, 2], 275));
        assert_eq!(of(15, 136), ([2, 1], 135));
    }

    #[test]
    fn directions_are_different_and_fit_into_the_population() {
        for objectives in 2..12 {
            for most in [objectives, 50, 100, 212] {
                let all = directions(objectives, most);
                assert!(all.len() <= most && all.len() >= objectives, "{objectives} {most}: {}", all.len());
                let length = |one: &Vec<f64>| one.iter().map(|it| it * it).sum::<f64>();
                assert!(all.iter().all(|one| one.len() == objectives && (length(one) - 1.0).abs() < 1e-12));
                let apart = |one: &[f64], other: &[f64]| one.iter().zip(other).any(|(a, b)| (a - b).abs() > 1e-3);
                let twice = (0..all.len()).any(|one| (0..one).any(|other| !apart(&all[one], &all[other])));
                assert!(!twice, "{objectives} {most}");
            }
            assert!(directions(objectives, objectives - 1).is_empty());
        }
    }
}
