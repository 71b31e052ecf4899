//! Python together with the real programs: ordinary packages read champions' networks, and docs/networks.md describes the
//! values correctly; a user's own problem has the same result on a cluster and on one thread.

use std::{
    fs,
    io::Write as _,
    process::{Command, Stdio},
};

use evoxo_common::rng::{Stream, below};
use evoxo_games::{
    board::{Board, Geometry, Shape, cells},
    net::{Activation, Architecture, Engine as _, First, Network, reference::Plain},
};
use evoxo_tests::programs::{program, workspace};

/// Evaluates each board, given as a line of 64 numbers.
const ASK: &str = "
import sys
for line in sys.stdin:
    print(float(value(np.array([float(number) for number in line.split()]))))
";

#[test]
fn a_champion_has_the_same_values_in_python() {
    let python = |code: &str| {
        let mut command = Command::new("python3");
        command.args(["-c", code]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    };
    if !python("import numpy, safetensors").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        println!("left out: there is no python3 with numpy and safetensors");
        return;
    }
    let page = fs::read_to_string(workspace().join("docs/networks.md")).expect("the page");
    let code = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).expect("its program");

    let first = First::Lines { detectors: 4 };
    let (shape, activation) = (Shape::SCORE_FOUR, Activation::Logistic);
    let architecture = Architecture { shape, first, second: 32, biases: true, activation, shared: false };
    let weights = architecture.initial(Stream::root(1));
    let desk = tempfile::tempdir().expect("a temporary directory");
    let file = Network { architecture, weights: weights.clone() }.to_file();
    fs::write(desk.path().join("deep-structured-3.safetensors"), file).expect("a file");

    // All boards after each possible move of a game, as the mover sees them.
    let (geometry, mut network) = (Geometry::new(shape).expect("a geometry"), Plain::new(&architecture, &weights));
    let (mut board, mut rng) = (Board::EMPTY, Stream::root(2).rng());
    let (mut asked, mut expected) = (String::new(), Vec::new());
    for _ in 0..20 {
        let (side, legal, mut sums) = (board.to_move(), geometry.legal(board), [0.0; 64]);
        network.values(legal, &mut sums);
        for cell in cells(legal) {
            let after = board.play(cell);
            let (own, other) = (after.stones(side), after.stones(side.other()));
            let stone = |cell: u64| (own >> cell & 1) as i64 - (other >> cell & 1) as i64;
            asked += &((0..64).map(|cell| stone(cell).to_string()).collect::<Vec<_>>().join(" ") + "\n");
            expected.push(activation.apply(sums[usize::from(cell)]));
        }
        let moves: Vec<u8> = cells(legal).collect();
        let cell = moves[below(&mut rng, moves.len() as u64) as usize];
        network.play(cell);
        board = board.play(cell);
    }

    let mut python = python(&(code.to_owned() + ASK)).current_dir(desk.path()).spawn().expect("python3 starts");
    python.stdin.take().expect("a pipe").write_all(asked.as_bytes()).expect("python3 reads");
    let output = python.wait_with_output().expect("python3 ends");
    assert!(output.status.success(), "python3 cannot run the example in docs/networks.md");
    let values = String::from_utf8(output.stdout).expect("text");
    let values: Vec<f32> = values.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(values.len(), expected.len());
    for (value, expected) in values.iter().zip(&expected) {
        assert!((value - expected).abs() < 1e-6, "{value} in Python, {expected} here");
    }
    assert!(expected.iter().any(|value| value.abs() > 0.1), "all values are small: {expected:?}");
}

#[test]
fn a_problem_in_python_has_the_same_digest_on_a_cluster() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|version| version.status.success()) {
        println!("left out: there is no python3");
        return;
    }
    let desk = tempfile::tempdir().expect("a temporary directory");
    let digest = |workers: &str| {
        let mut command = Command::new("python3");
        command
            .arg(workspace().join("examples/programs/rosen.py"))
            .args(["run", "--evaluations", "1500", "--replicas", "2", "--workers", workers, "--out"])
            .arg(desk.path().join(workers))
            .current_dir(desk.path())
            .env("PYTHONPATH", workspace().join("python"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("EVOXO", program("evoxo"));
        let output = command.output().expect("python3");
        let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let digest = out.lines().find_map(|line| line.strip_prefix("digest ")).map(str::to_owned);
        digest.unwrap_or_else(|| panic!("no digest in: {out}{errors}"))
    };
    assert_eq!(digest("2"), digest("0"));
    // A changed comment does not make another program, but a changed statement does.
    let (file, out) = (desk.path().join("rosen.py"), desk.path().join("0"));
    let text = fs::read_to_string(workspace().join("examples/programs/rosen.py")).expect("the program");
    let edited = |old: &str, new: &str| {
        fs::write(&file, text.replace(old, new)).expect("a file");
        let mut edited = Command::new("python3");
        edited
            .arg(&file)
            .args(["run", "--evaluations", "1500", "--replicas", "2", "--workers", "0", "--out"])
            .arg(&out);
        edited.current_dir(desk.path()).env("PYTHONPATH", workspace().join("python")).env("EVOXO", program("evoxo"));
        let output = edited.output().expect("python3");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (good, errors) = edited("cost = 0.0\n", "cost = 0.0  # nothing is lost yet\n");
    assert!(good, "{errors}");
    let (good, errors) = edited("100 *", "99 *");
    assert!(!good && errors.contains("contains a run with another version of the program rosen"), "{errors}");
}
