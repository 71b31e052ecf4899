//! Ratings compared with those of other programs: tests/references/ratings.py asks evalica and scipy for them.

use std::process::Command;

use evoxo_experiments::league::rating::{Meeting, rate};
use evoxo_tests::programs::workspace;

/// The same formula as in the script: wins of the player that moves first, draws, losses.
fn results(i: usize, j: usize) -> [f64; 3] {
    [3 + (7 * i + 5 * j) % 11, 1 + (3 * i + j) % 5, 2 + (i + 2 * j) % 4].map(|count| count as f64)
}

/// Skipped, with a line that says so, if python3 has no evalica or scipy. The unit tests of `league::rating` have the numbers
/// that the script printed.
#[test]
fn ratings_match_those_of_evalica_and_scipy() {
    let ask = |arguments: &[&str]| Command::new("python3").current_dir(workspace()).args(arguments).output();
    if !ask(&["-c", "import evalica, scipy"]).is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: python3 has no evalica or scipy (pip install evalica scipy)");
        return;
    }
    let output = ask(&["tests/references/ratings.py"]).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<f64>> =
        text.lines().map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect()).collect();
    let ordered = (0..5).flat_map(|i| (0..5).filter(move |j| *j != i).map(move |j| (i, j)));
    let meeting = |(first, second): (usize, usize), results| Meeting { first, second, results };
    let both = ordered.clone().map(|(i, j)| {
        let mut mirrored = results(i.min(j), i.max(j));
        if i > j {
            mirrored.reverse();
        }
        meeting((i, j), mirrored)
    });
    let once = ordered.clone().map(|(i, j)| meeting((i, j), results(i, j)));
    for (meetings, expected) in [both.collect::<Vec<_>>(), once.collect()].into_iter().zip(&lines) {
        let found = rate(5, &meetings);
        let terms: Vec<f64> = found.strengths.into_iter().chain([found.first_move, found.draw]).collect();
        assert!(terms.len() == expected.len(), "{text}");
        assert!(terms.iter().zip(expected).all(|(one, two)| (one - two).abs() < 2e-6), "{terms:?}\n{expected:?}");
    }
}
