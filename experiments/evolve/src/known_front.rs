//! How far a front is from the best one, if that is known: IGD+ (H. Ishibuchi, H. Masuda, Y. Tanigaki and Y. Nojima,
//! "Modified Distance Calculation in Generational Distance and Inverted Generational Distance", EMO 2015).

use super::{evaluation::Evaluation, settings::Settings};

/// The points of the best front for these settings, with all objectives to be minimised. `None` if it is not known.
pub(super) fn known_front(settings: &Settings) -> Option<Vec<Vec<f64>>> {
    let objectives = settings.objectives();
    let points = match settings.known_front.trim() {
        "" => settings.built_in().map(|problem| (problem.front)(settings.genome().genes()))?,
        text => points(text, objectives.len()).ok()?,
    };
    let turned = |point: Vec<f64>| {
        let numbers = point.into_iter().zip(&objectives);
        numbers.map(|(number, (maximised, _))| if *maximised { -number } else { number }).collect()
    };
    let points: Vec<Vec<f64>> = points.into_iter().map(turned).collect();
    (!points.is_empty()).then_some(points)
}

/// Reads points from a text such as "0 1; 0.5 0.3; 1 0". Each must have this many numbers.
///
/// # Errors
/// A sentence about the first point that is wrong.
pub(super) fn points(text: &str, objectives: usize) -> Result<Vec<Vec<f64>>, String> {
    let point = |(number, text): (usize, &str)| {
        let numbers: Option<Vec<f64>> = text.split_whitespace().map(|text| text.parse().ok()).collect();
        let numbers = numbers.filter(|all| all.len() == objectives && all.iter().all(|number| number.is_finite()));
        let expected = if objectives == 1 { "number" } else { "numbers" };
        numbers.ok_or_else(|| {
            let (text, number) = (text.trim(), number + 1);
            format!("point {number} of known_front is {text:?}, but must have {objectives} {expected}, as in \"0 1; 0.5 0.3; 1 0\"")
        })
    };
    text.split(';').enumerate().filter(|(_, text)| !text.trim().is_empty()).map(point).collect()
}

/// The mean distance from the points of a known front to the nearest candidate, counting only objectives in which the
/// candidate is worse. `None` if there are no candidates.
pub(super) fn igd_plus(front: &[&Evaluation], known: &[Vec<f64>]) -> Option<f64> {
    let missing = |point: &[f64], candidate: &Evaluation| {
        let worse = point.iter().enumerate().map(|(index, value)| (candidate.objective(index) - value).max(0.0));
        worse.map(|worse| worse * worse).sum::<f64>()
    };
    let nearest = |point: &Vec<f64>| front.iter().map(|it| missing(point, it)).fold(f64::INFINITY, f64::min).sqrt();
    (!front.is_empty() && !known.is_empty())
        .then(|| (known.iter().map(nearest).sum::<f64>() / known.len() as f64).min(f64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        genome::{Candidate, Genes},
        problem::find,
        testing::{parse, problems},
    };

    /// Candidates of the best front, as the papers describe them: all genes but the first are optimal.
    #[test]
    fn known_fronts_match_their_problems() {
        let real = |genes: Vec<f64>| Genes::Real(genes);
        let of = |name: &str, first: f64| match name {
            "zdt4" => vec![real(vec![first]), real(vec![0.0; 9])],
            "zdt5" => {
                let ones = (30.0 * first) as usize;
                vec![Genes::Bits((0..80).map(|bit| bit >= 30 || bit < ones).collect())]
            }
            "dtlz2" => vec![real([[first, 1.0 - first].to_vec(), vec![0.5; 10]].concat())],
            name => vec![real([vec![first], vec![0.0; find(name).unwrap().length - 1]].concat())],
        };
        for name in ["zdt1", "zdt2", "zdt3", "zdt4", "zdt5", "zdt6", "dtlz2"] {
            let problem = find(name).unwrap();
            let known = (problem.front)(problem.length);
            assert!(known.len() == 31 || known.len() > 200, "{name}: {}", known.len());
            let all: Vec<Evaluation> = (0..=2000)
                .map(|at| problem.minimised(&Candidate { parts: of(name, f64::from(at) / 2000.0) }))
                .collect();
            let distance = igd_plus(&all.iter().collect::<Vec<_>>(), &known).unwrap();
            // These candidates lie on a single curve of dtlz2's surface, far from most points of the front.
            assert!(distance < if name == "dtlz2" { 0.25 } else { 2e-3 }, "{name}: {distance}");
            // No candidate is better than the known points by more than the gap between neighbouring points.
            for candidate in &all {
                let gain = |point: &Vec<f64>| {
                    let gains = point.iter().enumerate().map(|(index, value)| value - candidate.objective(index));
                    gains.fold(f64::INFINITY, f64::min)
                };
                let gain = known.iter().map(gain).fold(f64::NEG_INFINITY, f64::max);
                assert!(gain < 0.02, "{name}: {candidate:?} gains {gain}");
            }
        }
    }

    #[test]
    fn only_worse_values_increase_the_distance() {
        let one = |objectives: [f64; 2]| Evaluation { objectives: objectives.to_vec(), ..Default::default() };
        let known = [vec![0.0, 1.0], vec![1.0, 0.0]];
        let far = |front: &[[f64; 2]]| {
            let front: Vec<Evaluation> = front.iter().map(|point| one(*point)).collect();
            igd_plus(&front.iter().collect::<Vec<_>>(), &known)
        };
        assert_eq!(far(&[[0.0, 1.0], [1.0, 0.0]]), Some(0.0));
        assert_eq!(far(&[[-1.0, -1.0]]), Some(0.0), "a candidate better than the front has distance 0");
        // The first point is 0.5 short in one objective; the second is 3 and 4 short.
        assert_eq!(far(&[[0.5, 1.0], [4.0, 4.0]]), Some(f64::midpoint(0.5, 1.0)));
        assert_eq!(far(&[[3.0, 5.0]]), Some(f64::midpoint(5.0, 29.0_f64.sqrt())));
        assert_eq!(far(&[]), None);
    }

    #[test]
    fn a_given_front_uses_the_problems_own_units() {
        let text = |front: &str| {
            format!(
                "experiment = \"evolve\"\n[settings]\nproblem = \"wasm:x.wasm\"\nobjectives = \"max a, min b\"\nalgorithm = \"nsga2\"\n\
                 known_front = {front:?}\n[[genome]]\n"
            )
        };
        let settings = Settings::of(&parse(&text("5 1; 6 2.5 ;")).arms[0].settings);
        assert_eq!(known_front(&settings), Some(vec![vec![-5.0, 1.0], vec![-6.0, 2.5]]));
        let wrong = problems(&text("5 1; 6")).to_string();
        assert!(wrong.contains("point 2 of known_front is \"6\", but must have 2 numbers"), "{wrong}");
    }
}
