//! Each reading changes exactly what its documentation says. The tests follow games by hand, on a board of five cells in a
//! row where two in a row win.

use super::*;
use crate::board::Shape;

/// An engine that follows a script and records its calls. At ply p (from 1) the scripted move has the sum p / 10, and all
/// others have -1. With [`Activation::Tanh`] the values are therefore tanh(0.1) = 0.100, 0.197, 0.291, 0.380, 0.462.
struct Recorder {
    geometry: Geometry,
    script: Vec<u8>,
    board: Board,
    moves: String,
    steps: Vec<String>,
    asked: Vec<u32>,
    resets: u64,
}

impl Recorder {
    fn new(script: &[u8]) -> Self {
        let shape = Shape { width: 5, height: 1, depth: 1, k: 2, gravity: false };
        let geometry = Geometry::new(shape).unwrap();
        let (moves, steps, asked) = (String::new(), Vec::new(), Vec::new());
        Self { geometry, script: script.to_vec(), board: Board::EMPTY, moves, steps, asked, resets: 0 }
    }
}

impl Engine for Recorder {
    fn reset(&mut self) {
        self.board = Board::EMPTY;
        self.resets += 1;
    }

    fn values(&mut self, legal: u64, out: &mut [f32; 64]) {
        assert_eq!(legal & !self.geometry.legal(self.board), 0, "only legal moves have values");
        self.asked.push(legal.count_ones());
        let ply = self.board.pieces() as usize;
        for cell in 0..5_u8 {
            let scripted = self.script.get(ply) == Some(&cell);
            out[usize::from(cell)] = if scripted { (ply + 1) as f32 / 10.0 } else { -1.0 };
        }
    }

    /// -0.5 for X and -0.25 for O: tanh gives -0.462 and -0.245.
    fn value(&mut self, side: Side) -> f32 {
        self.steps.push(format!("{}: asked by {}", self.board.pieces(), side.letter()));
        if side == Side::X { -0.5 } else { -0.25 }
    }

    fn play(&mut self, cell: u8) {
        self.board = self.board.play(cell);
        self.moves += &cell.to_string();
    }

    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        let factor = if derivative { " f'" } else { "" };
        let (ply, text) = (self.board.pieces(), self.geometry.board_text(board));
        self.steps.push(format!("{ply}: {text} {} {target:.3} x{rate}{factor}", side.letter()));
    }

    fn weights(&self) -> Vec<f32> {
        vec![self.resets as f32, -1.0]
    }
}

/// The settings that add no step.
const BARE: Learning = Learning {
    rate: Rate { start: 0.5, end: 0.5, games: 1 },
    epsilon: 0.0,
    learner_first: true,
    learner_first_in_tests: true,
    learns_explorations: true,
    ..Learning::PLAIN
};

fn train(learning: Learning, script: &[u8], seed: u64, games: Range<u64>) -> Recorder {
    let mut recorder = Recorder::new(script);
    let geometry = recorder.geometry.clone();
    let mut learner = Learner::new(&mut recorder, &geometry, Activation::Tanh, learning);
    learner.train(Stream::root(seed), games, None);
    recorder
}

/// The steps of one game that follows the script.
fn steps(learning: Learning, script: &[u8]) -> Vec<String> {
    let recorder = train(learning, script, 1, 0..1);
    let script: String = script.iter().map(u8::to_string).collect();
    assert_eq!(recorder.moves, script, "the game follows the script");
    recorder.steps
}

/// X plays 0, O 2, X 4, and O wins with 3.
const WON: &[u8] = &[0, 2, 4, 3];
/// Both sides take the lowest empty cell, which leads to a draw.
const DRAWN: &[u8] = &[0, 1, 2, 3, 4];

#[test]
fn the_previous_afterstate_of_the_same_side_learns_the_value_of_the_next() {
    assert_eq!(steps(BARE, WON), ["3: X.... X 0.291 x0.5", "4: X.O.. O 1.000 x0.5"]);
    assert_eq!(
        steps(BARE, DRAWN),
        ["3: X.... X 0.291 x0.5", "4: XO... O 0.380 x0.5", "5: XOX.. X 0.000 x0.5"],
        "a draw's reward is 0"
    );
}

#[test]
fn gamma_discounts_values_but_no_reward() {
    let half = Learning { gamma: 0.5, ..BARE };
    assert_eq!(steps(half, WON), ["3: X.... X 0.146 x0.5", "4: X.O.. O 1.000 x0.5"]);
    let both = Learning { bootstrapped_end: true, ..half };
    assert_eq!(steps(both, WON)[1..], ["4: X.O.. O 0.190 x0.5", "4: X.OOX O 1.000 x0.5"]);
}

#[test]
fn a_bootstrapped_end_learns_the_final_afterstate_too() {
    let learning = Learning { bootstrapped_end: true, ..BARE };
    assert_eq!(steps(learning, WON)[1..], ["4: X.O.. O 0.380 x0.5", "4: X.OOX O 1.000 x0.5"]);
    assert_eq!(steps(learning, DRAWN)[2..], ["5: XOX.. X 0.462 x0.5", "5: XOXOX X 0.000 x0.5"]);
}

#[test]
fn the_opponents_end_comes_last() {
    let learning = Learning { learns_opponents_end: true, ..BARE };
    assert_eq!(steps(learning, WON)[1..], ["4: X.O.. O 1.000 x0.5", "4: X.O.X X -1.000 x0.5"]);
    assert_eq!(steps(learning, DRAWN)[2..], ["5: XOX.. X 0.000 x0.5", "5: XOXO. O -0.000 x0.5"]);
}

/// "If s_t is a terminal state the target output is the final reward": for the side that lost, or that drew by the other
/// side's last stone, the terminal state is the board after the other side's last move.
#[test]
fn the_finished_board_learns_the_reward_of_the_side_that_did_not_make_the_last_move() {
    let after = Learning { finished_board: FinishedBoard::After, ..BARE };
    assert_eq!(steps(after, WON)[1..], ["4: X.O.. O 1.000 x0.5", "4: X.OOX X -1.000 x0.5"]);
    assert_eq!(steps(after, DRAWN)[2..], ["5: XOX.. X 0.000 x0.5", "5: XOXOX O -0.000 x0.5"]);
    let alone = Learning { finished_board: FinishedBoard::Before, ..BARE };
    assert_eq!(steps(alone, WON), steps(after, WON), "the order is that of two steps");
    let both = Learning { learns_opponents_end: true, ..after };
    let (last, finished) = ("4: X.O.X X -1.000 x0.5", "4: X.OOX X -1.000 x0.5");
    assert_eq!(steps(both, WON)[2..], [last, finished]);
    assert_eq!(steps(both, DRAWN)[3..], ["5: XOXO. O -0.000 x0.5", "5: XOXOX O -0.000 x0.5"]);
    let before = Learning { finished_board: FinishedBoard::Before, ..both };
    assert_eq!(steps(before, WON)[2..], [finished, last]);
    let bootstrapped = Learning { bootstrapped_end: true, ..both };
    assert_eq!(steps(bootstrapped, WON)[2..], ["4: X.OOX O 1.000 x0.5", last, finished], "both sides' finished board");
}

#[test]
fn the_losers_last_afterstate_can_learn_the_value_of_the_finished_board() {
    let after = Learning {
        learns_opponents_end: true,
        bootstraps_opponents_end: true,
        finished_board: FinishedBoard::After,
        gamma: 0.5,
        ..BARE
    };
    let (asked, last, finished) = ("4: asked by X", "4: X.O.X X -0.231 x0.5", "4: X.OOX X -1.000 x0.5");
    assert_eq!(steps(after, WON)[2..], [asked, last, finished], "gamma discounts the value and not the reward");
    let before = Learning { finished_board: FinishedBoard::Before, ..after };
    assert_eq!(steps(before, WON)[2..], [finished, asked, last]);
    let neither = Learning { learns_opponents_end: false, ..after };
    assert_eq!(steps(neither, WON)[2..], [finished]);
    assert_eq!(steps(Learning { gamma: 1.0, ..after }, DRAWN)[3..4], ["5: asked by O"]);
}

#[test]
fn the_winners_last_two_afterstates_can_both_learn_the_reward() {
    let learning = Learning { bootstrapped_end: true, rewards_both: true, gamma: 0.5, ..BARE };
    let won = ["3: X.... X 0.146 x0.5", "4: X.O.. O 1.000 x0.5", "4: X.OOX O 1.000 x0.5"];
    assert_eq!(steps(learning, WON), won, "the same as without a bootstrapped end, plus the final afterstate");
    assert_eq!(steps(learning, DRAWN)[2..], ["5: XOX.. X 0.000 x0.5", "5: XOXOX X 0.000 x0.5"]);
}

/// Moves are drawn as usual, but all values are computed, and the value of the best move is learned: the one in the script.
#[test]
fn before_an_exploring_move_the_best_moves_value_can_be_learnt() {
    for explores_others in [false, true] {
        let made = Learning { epsilon: 1.0, bootstrapped_end: true, explores_others, ..BARE };
        let best = Learning { learns_best: true, ..made };
        for seed in 0..40 {
            let (made, best) = (train(made, DRAWN, seed, 0..1), train(best, DRAWN, seed, 0..1));
            assert_eq!(made.moves, best.moves, "the same random numbers");
            assert_eq!(made.steps.len(), best.steps.len());
            let targets = ["3: X.... X 0.291 x0.5", "3: .X... X 0.291 x0.5"];
            if best.moves.starts_with("01") || best.moves.starts_with("10") {
                let scripted = best.moves.as_bytes()[2] == b'2';
                assert!(targets.contains(&&*best.steps[0]), "{:?}", best.steps);
                assert_eq!(made.steps[0] == best.steps[0], scripted, "{:?}", made.steps);
                assert_eq!(best.asked[usize::from(explores_others) * 2], 3, "all moves are valued");
            }
        }
    }
    let skips = Learning { epsilon: 1.0, learns_explorations: false, learns_best: true, ..BARE };
    assert!(train(skips, WON, 1, 0..1).asked.is_empty(), "nothing learns from this move");
}

#[test]
fn the_output_derivative_is_passed_on() {
    let learning = Learning { output_derivative: true, ..BARE };
    assert!(steps(learning, WON).iter().all(|step| step.ends_with(" f'")));
}

/// In the script X loses, but it could win with 1 after 0 and 3. With exact wins it does so, without computing values or
/// exploring.
#[test]
fn an_exact_win_is_chosen_whatever_its_value_and_counts_as_the_reward() {
    let script = &[0, 3, 4];
    assert_eq!(train(BARE, script, 1, 0..1).moves[..3], *"034");
    for (epsilon, bootstrapped_end) in [(0.0, false), (0.0, true), (1.0, true)] {
        let learning = Learning { exact_wins: true, epsilon, bootstrapped_end, learns_explorations: false, ..BARE };
        let seed = (0..).find(|seed| train(learning, script, *seed, 0..1).moves == "031").unwrap();
        let recorder = train(learning, script, seed, 0..1);
        assert_eq!(recorder.asked.len(), if epsilon == 0.0 { 2 } else { 0 });
        let mut expected = vec!["3: X.... X 1.000 x0.5"];
        expected.extend(bootstrapped_end.then_some("3: XX.O. X 1.000 x0.5"));
        assert_eq!(recorder.steps, expected);
    }
}

#[test]
fn exploring_moves_can_be_left_out() {
    let learns = Learning { epsilon: 1.0, learns_opponents_end: true, bootstrapped_end: true, ..BARE };
    let skips = Learning { learns_explorations: false, ..learns };
    let seed = (0..).find(|seed| train(learns, WON, *seed, 0..1).moves == "0243").unwrap();
    let (learnt, skipped) = (train(learns, WON, seed, 0..1), train(skips, WON, seed, 0..1));
    let ends = ["4: X.OOX O 1.000 x0.5", "4: X.O.X X -1.000 x0.5"];
    assert_eq!(skipped.steps, ends, "the ends are learnt whichever side explored");
    assert_eq!(learnt.steps[..2], ["3: X.... X 0.291 x0.5", "4: X.O.. O 0.380 x0.5"]);
    assert_eq!(learnt.steps[2..], ends);
    assert_eq!(
        (learnt.moves, learnt.asked),
        ("0243".into(), vec![1, 1]),
        "one value is computed if something learns it"
    );
    assert_eq!((skipped.moves, skipped.asked), ("0243".into(), vec![]));
}

/// First moves: a greedy move computes five values, an exploring move computes none. The limits are six standard deviations.
#[test]
fn epsilon_is_the_share_of_moves_that_explore() {
    for epsilon in [0.0, 0.1, 0.75, 1.0] {
        let games = 4000.0;
        let recorder = train(Learning { epsilon, ..BARE }, WON, 3, 0..4000);
        let explored = games - recorder.asked.iter().filter(|count| **count == 5).count() as f64;
        let deviation: f64 = (epsilon * (1.0 - epsilon) * games).sqrt();
        assert!((explored - epsilon * games).abs() <= 6.0 * deviation, "{epsilon} {explored}");
    }
}

/// Every move explores, and none is the best one. The best move is the script's, or the lowest cell after the end of the
/// script.
#[test]
fn exploring_moves_can_exclude_the_best() {
    let learning = Learning { epsilon: 1.0, explores_others: true, ..BARE };
    for seed in 0..50 {
        let recorder = train(learning, DRAWN, seed, 0..1);
        let moves: Vec<u8> = recorder.moves.bytes().map(|cell| cell - b'0').collect();
        let mut board = Board::EMPTY;
        for (ply, cell) in moves.iter().enumerate() {
            let legal = recorder.geometry.legal(board);
            let scripted = DRAWN.get(ply).filter(|cell| legal >> **cell & 1 == 1);
            let best = scripted.map_or(legal.trailing_zeros(), |cell| u32::from(*cell));
            assert!(u32::from(*cell) != best || legal.count_ones() == 1, "{moves:?}");
            board = board.play(*cell);
        }
        // The values of moves that are not in the script, or the reward.
        let targets = [" -0.762 ", " 1.000 "];
        let first = recorder.steps.first().filter(|step| step.starts_with("3: "));
        assert!(first.is_none_or(|step| targets.iter().any(|target| step.contains(target))), "{first:?}");
    }
}

#[test]
fn an_afterstate_can_learn_from_each_ply() {
    let learning = Learning { each_ply: true, learns_opponents_end: true, ..BARE };
    assert_eq!(
        steps(learning, WON),
        ["2: X.... X -0.197 x0.5", "3: X.O.. O -0.291 x0.5", "4: X.O.X X -1.000 x0.5"],
        "the end is learnt once"
    );
    let both = Learning { bootstrapped_end: true, gamma: 0.5, ..learning };
    assert_eq!(steps(both, WON)[2..], ["4: X.O.X X -0.190 x0.5", "4: X.OOX O 1.000 x0.5"]);
    let finished = Learning { finished_board: FinishedBoard::After, ..both };
    assert_eq!(steps(finished, WON)[3..], ["4: X.OOX O 1.000 x0.5", "4: X.OOX X -1.000 x0.5"]);
}

#[test]
fn the_opponents_moves_can_be_learnt_too() {
    let learning = Learning { opponent: Opponent::Benchmark, learns_opponents_moves: true, ..BARE };
    // As below: the benchmark player blocks at 1 and wins with 2.
    let recorder = train(learning, &[0, 1, 3, 9], 1, 0..1);
    assert_eq!(recorder.moves, "0132");
    assert_eq!(recorder.steps, ["3: X.... X 0.291 x0.5", "4: XO... O 1.000 x0.5"]);
    let bootstrapped = train(Learning { bootstrapped_end: true, ..learning }, &[0, 1, 3, 2], 1, 0..1);
    assert_eq!(bootstrapped.steps[1..], ["4: XO... O 0.380 x0.5", "4: XOOX. O 1.000 x0.5"]);
    assert_eq!(bootstrapped.asked, [5, 3, 1], "a move is valued only if something learns from it");
    let exact = train(Learning { exact_wins: true, bootstrapped_end: true, ..learning }, &[0, 1, 3, 2], 1, 0..1);
    assert_eq!(exact.steps[1..], ["4: XO... O 1.000 x0.5", "4: XOOX. O 1.000 x0.5"]);
    // With each_ply, only the learner learns: from the opponent's moves.
    let plies = Learning { learns_opponents_moves: false, each_ply: true, bootstrapped_end: true, ..learning };
    let recorder = train(plies, &[0, 1, 3, 2], 1, 0..1);
    assert_eq!(recorder.steps, ["2: X.... X -0.197 x0.5", "4: XO.X. X -0.380 x0.5"]);
}

#[test]
fn against_the_benchmark_player_only_the_learner_learns() {
    let learning = Learning { opponent: Opponent::Benchmark, learns_opponents_end: true, ..BARE };
    // The benchmark player must block at 1 and then wins with 2.
    let recorder = train(learning, &[0, 9, 3], 1, 0..1);
    assert_eq!(recorder.moves, "0132");
    assert_eq!(recorder.steps, ["3: X.... X 0.291 x0.5", "4: XO.X. X -1.000 x0.5"]);
    assert_eq!(recorder.asked.len(), 2);
    let finished = Learning { finished_board: FinishedBoard::After, ..learning };
    let recorder = train(finished, &[0, 9, 3], 1, 0..1);
    assert_eq!(
        recorder.steps[1..],
        ["4: XO.X. X -1.000 x0.5", "4: XOOX. X -1.000 x0.5"],
        "the reward is that of a loss"
    );
    // The learner wins with the middle. The benchmark player, which lost, learns nothing.
    let won = train(Learning { exact_wins: true, ..finished }, &[2], 1, 0..1);
    assert!(won.steps.iter().all(|step| step.ends_with(" X 1.000 x0.5")), "{:?}", won.steps);
    let sides = |learner_first| {
        let recorder = train(Learning { learner_first, ..learning }, &[0, 1, 3, 4], 1, 0..40);
        let side = |step: &String| step.as_bytes()[9];
        recorder.steps.iter().map(side).collect::<std::collections::BTreeSet<u8>>()
    };
    assert_eq!(sides(true), [b'X'].into());
    assert_eq!(sides(false), [b'O', b'X'].into());
}

#[test]
fn the_rate_depends_on_the_game_of_the_trial_and_not_on_how_the_trial_is_divided() {
    let rate = Rate { start: 1.0, end: 0.0, games: 4 };
    let learning = Learning { rate, epsilon: 0.5, learns_opponents_end: true, ..BARE };
    let whole = train(learning, WON, 7, 0..6);
    let (first, rest) = (train(learning, WON, 7, 0..1), train(learning, WON, 7, 1..6));
    assert_eq!(whole.moves, first.moves + &rest.moves);
    assert_eq!(whole.steps, [first.steps, rest.steps].concat());
    let rates: Vec<f32> = (0..6).map(|game| rate.at(game)).collect();
    assert_eq!(rates, [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]);
    assert!(whole.steps.iter().any(|step| step.ends_with("x0.75")));
}

#[test]
fn the_average_is_updated_every_hundred_games_of_the_trial() {
    let averaged = |cuts: &[u64], games: u64| {
        let (mut recorder, mut weights) = (Recorder::new(WON), [7.0_f32, 7.0]);
        let geometry = recorder.geometry.clone();
        for cut in cuts.windows(2) {
            let mut learner = Learner::new(&mut recorder, &geometry, Activation::Tanh, BARE);
            learner.train(Stream::root(1), cut[0]..cut[1], Some(Average { games, weights: &mut weights }));
        }
        weights
    };
    assert_eq!(averaged(&[0, 99], 1000), [7.0, 7.0], "the average does not change before the first hundred games");
    assert_eq!(averaged(&[0, 100], 1000), [100.0, -1.0], "the first weights are taken unchanged");
    assert_eq!(averaged(&[0, 300], 1_000_000), [200.0, -1.0], "the average is a plain mean of 100, 200 and 300 games");
    // 1 - exp(-100 / 200) = 0.39347 is more than 1/3: (100 + 200) / 2 goes 0.39347 of the way to 300.
    let [mean, _] = averaged(&[0, 300], 200);
    assert!((mean - (150.0 + 0.393_47 * 150.0)).abs() < 0.01, "{mean}");
    assert_eq!(averaged(&[0, 37, 251, 300], 200), averaged(&[0, 300], 200));
}

#[test]
fn a_test_neither_explores_nor_learns() {
    let test = |learning: Learning, script: &[u8], games: u32| {
        let mut recorder = Recorder::new(script);
        let geometry = recorder.geometry.clone();
        let mut learner = Learner::new(&mut recorder, &geometry, Activation::Tanh, learning);
        let tally = learner.test(Stream::root(1).text("test").word(10), 0..games);
        assert_eq!(tally.wins + tally.draws + tally.losses, games);
        assert!(recorder.steps.is_empty());
        (tally, recorder)
    };
    let keen = Learning { epsilon: 1.0, learns_opponents_end: true, bootstrapped_end: true, ..BARE };
    // The learner takes 0, the benchmark player blocks with 1, the learner plays 3, and the benchmark player wins with 2.
    let (tally, recorder) = test(keen, &[0, 9, 3], 10);
    assert_eq!(tally, Tally { wins: 0, draws: 0, losses: 10 });
    assert!(recorder.asked.iter().all(|count| *count > 1), "boards are complete and no move explores");
    // The learner takes 0, both sides block with 1, 2 and 3, and the last cell makes a draw.
    let (tally, _) = test(keen, DRAWN, 10);
    assert_eq!(tally, Tally { wins: 0, draws: 10, losses: 0 });
    // The learner takes the middle. It then has two ways to win, and the other side can block only one. The script ignores
    // them.
    let (tally, _) = test(keen, &[2, 9, 0], 10);
    assert!(tally.wins < 10);
    let (tally, _) = test(Learning { exact_wins: true, ..keen }, &[2, 9, 0], 10);
    assert_eq!(tally, Tally { wins: 10, draws: 0, losses: 0 });
    // If it explores in tests, it computes no values.
    let (_, recorder) = test(Learning { test_epsilon: 1.0, epsilon: 0.0, ..keen }, &[0, 9, 3], 10);
    assert!(recorder.asked.is_empty(), "{:?}", recorder.asked);
    // As the second player it often loses, because its script takes no middle and blocks nothing.
    let (tally, recorder) = test(Learning { learner_first_in_tests: false, ..keen }, &[0, 4, 3], 10);
    assert_eq!(recorder.resets, 10);
    assert!(tally.losses >= 5, "{tally:?}");
}
