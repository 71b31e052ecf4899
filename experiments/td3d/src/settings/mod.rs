//! The settings of `td3d`.

use evoxo_common::{ratio::Ratio, settings, settings::Choice as _};
use evoxo_games::{
    board::Shape,
    net::{
        self, Architecture, First,
        learn::{self, Learning, Opponent, Rate},
    },
};

pub use choices::{
    Activation, Biases, Exploring, ExploringMoves, FinishedBoard, FirstMove, Game, InitialBiases, Join, LastStep,
    LearnsFrom, Loser, NetworkKind, OpponentsMoves, OutputDerivative, Reading, Schedule, Shared, TestFirstMove,
    TrainingOpponent, Wins,
};

mod choices;

/// The most games of one task.
pub const GAMES_MAX: u64 = 1_000_000;
/// The most tests in one task.
pub const TESTS_MAX: u64 = 10_000;
/// The most games of a trial.
pub const TRIAL_GAMES_MAX: u64 = 1_000_000_000;
/// The most games of a test.
pub const TEST_GAMES_MAX: u64 = 100_000;
/// The most weights of a network. Together with their averages, they fit in a task.
pub const WEIGHTS_MAX: usize = 1_000_000;

settings! {
    /// Neural networks learn a game by temporal differences, against themselves or a fixed benchmark player, and are tested
    /// against that player: van de Steeg, Drugan and Wiering, Temporal Difference Learning for the Game Tic-Tac-Toe 3D
    /// (2015), with extensions. Settings select a reading where the paper leaves something open.
    pub struct Settings, names Name, schema SCHEMA {
        /// The network. The paper's are small-structured, deep-structured, small, deep and wide. It names several structured
        /// layers (planes) as future work.
        network: NetworkKind = choice("deep-structured"),
        /// The opponent in training.
        opponent: TrainingOpponent = choice("self"),
        /// The reading of what the paper leaves open. It applies to the settings that are "by-reading": biases,
        /// output_derivative, exploring, first_move and last_step.
        reading: Reading = choice("nearest"),
        /// Whether units have biases. The paper's numbers of weights include none.
        biases: Biases = choice("by-reading"),
        /// Whether the derivative of the output unit's activation is a factor of the error that is propagated back.
        output_derivative: OutputDerivative = choice("by-reading"),
        /// What the afterstate before an exploring move learns from.
        exploring: Exploring = choice("by-reading"),
        /// Which side moves first against the benchmark player, in tests and in training.
        first_move: FirstMove = choice("by-reading"),
        /// Which side moves first in tests.
        test_first_move: TestFirstMove = addition choice("as-in-training"),
        /// Which moves exploration chooses from.
        exploring_moves: ExploringMoves = addition choice("any"),
        /// The initial biases.
        initial_biases: InitialBiases = addition choice("uniform") when biases not ["no"],
        /// The range of initial weights: uniform between minus this number and this number, and in proportion for tables. The
        /// paper: 0.5.
        initial_weights: Ratio = addition real(0, 100, "0.5"),
        /// Which afterstate an afterstate learns from. The paper: own-move.
        learns_from: LearnsFrom = addition choice("own-move"),
        /// Whose afterstates learn against the benchmark player. The paper: skip.
        opponents_moves: OpponentsMoves = addition choice("skip") when opponent is ["benchmark"],
        /// How the side that makes the last move learns.
        last_step: LastStep = choice("by-reading"),
        /// What the side that did not make the last move learns at its last afterstate.
        loser: Loser = choice("learn"),
        /// Whether the finished board, as seen by the side that did not make the last move, learns that side's reward: -1, or
        /// 0 for a draw. The paper: "if s_t is a terminal state the target output is the final reward".
        finished_board: FinishedBoard = addition choice("skip"),
        /// The paper's "logistic function scaled to [-1, 1]".
        activation: Activation = choice("logistic"),
        /// How moves that win at once are treated. This is not in the paper.
        wins: Wins = choice("learned"),
        /// Whether weights are shared over the symmetries of the board; not for dense networks. The paper names this as
        /// future work.
        shared: Shared = choice("no"),
        /// Units of a dense first layer. With 0, the network's usual number.
        units: usize = whole(0, 1024, "0"),
        /// Units for each line of a structured network. With 0, the usual number, 4. The paper says that more did not improve
        /// performance.
        detectors: usize = whole(0, 16, "0"),
        /// States of a cell in a network of tuples: 3 (empty, own, opponent's) or 4 (empty cells that can be played now are a
        /// separate state). With 0, the usual number, 4.
        states: usize = whole(0, 4, "0"),
        /// Units of the second layer: with shared weights, each in all orientations; with planes, for each plane. With 0, the
        /// network's usual number.
        second: usize = whole(0, 64, "0"),
        /// The game. The paper's is score-four, which it calls tic-tac-toe 3D.
        game: Game = choice("score-four"),
        /// The learning rate. The paper: 0.005.
        alpha: Ratio = real(0, 999_999_999_999, "0.005"),
        /// How the learning rate changes over a trial.
        schedule: Schedule = choice("constant"),
        /// The learning rate at the end of a linear schedule. Our choice.
        alpha_end: Ratio = real(0, 999_999_999_999, "0.001") when schedule is ["linear"],
        /// The share of moves that explore. The paper: 0.1.
        epsilon: Ratio = real(0, 1, "0.1"),
        /// The share of moves in tests that explore. The paper has no such moves.
        test_epsilon: Ratio = addition real(0, 1, "0"),
        /// The discount factor: the factor of the next afterstate's value. The paper: 1.
        gamma: Ratio = real(0, 1, "1"),
        /// The time constant, in games, of the running average of weights that is tested. With 0, the weights themselves are
        /// tested. Our choice.
        averaging_games: u64 = whole(0, TRIAL_GAMES_MAX, "0"),
        /// Games of a trial. The paper: 1,000,000.
        games: u64 = length whole(1, TRIAL_GAMES_MAX, "1000000"),
        /// Games between two tests; a divisor of `games`. The paper: 10,000.
        test_every: u64 = whole(1, TRIAL_GAMES_MAX, "10000"),
        /// Games of a test against the benchmark player. The paper: 1,000.
        test_games: u32 = whole(1, TEST_GAMES_MAX, "1000"),
        /// Workers that learn at once from the same weights before their changes are joined. With 1, the learner is serial.
        /// This is not in the paper.
        learners: u64 = whole(1, 256, "1"),
        /// Games of each learner before the learners are joined, if there are several.
        episodes: u64 = whole(1, 100_000, "4"),
        /// Which learners count in the mean of a weight.
        join: Join = choice("touched"),
        /// The outer learning rate, above 0: the share of the way from the old weights to the joined ones. DiLoCo (2023):
        /// 0.7. With join = "all", a rate equal to the number of learners adds up their changes.
        outer_rate: Ratio = real(0, 256, "1"),
        /// The Nesterov momentum of the outer learning rate from round to round, below 1. DiLoCo (2023): 0.9.
        momentum: Ratio = real(0, 1, "0"),
        /// Games per task. With 0, a task has 10,000.
        segment_games: u64 = execution whole(0, GAMES_MAX, "0"),
    }
    check(check)
}

fn check(settings: &Settings) -> Vec<(Name, String)> {
    let mut problems = Vec::new();
    let (architecture, network) = (settings.architecture(), settings.network.word());
    let first = architecture.first;
    let on_lines = matches!(first, First::Lines { .. } | First::Planes { .. });
    let fits = [
        (Name::units, settings.units, matches!(first, First::Dense { .. }), "units connected to all cells"),
        (Name::detectors, settings.detectors, on_lines, "detectors on lines"),
        (Name::states, settings.states, matches!(first, First::Tuples { .. }), "tables with states"),
    ];
    for (name, value, fits, what) in fits {
        if value > 0 && !fits {
            let sentence = format!("{} is {value}, but network {network:?} has no {what}: give 0", name.text());
            problems.push((name, sentence));
        }
    }
    if let Err(why) = check_network(&architecture) {
        let name = if architecture.shared { Name::shared } else { Name::network };
        problems.push((name, format!("network {network:?}: {why}")));
    }
    if settings.momentum.to_f64() >= 1.0 {
        problems.push((Name::momentum, "momentum is 1, so weights would never stop moving: give less than 1".into()));
    }
    if settings.outer_rate.to_f64() <= 0.0 {
        problems.push((Name::outer_rate, "outer_rate is 0, so nothing would be learnt: give more than 0".into()));
    }
    if settings.loser == Loser::Bootstrapped && settings.finished_board == FinishedBoard::Skip {
        let sentence = "loser is \"bootstrapped\", but finished boards do not learn, so it has nothing to learn from: \
            give finished_board = \"after\" or \"before\"";
        problems.push((Name::loser, sentence.into()));
    }
    let Settings { games, test_every: every, .. } = *settings;
    if !games.is_multiple_of(every) {
        let sentence = format!("test_every is {every}, which does not divide the {games} games of a trial");
        problems.push((Name::test_every, sentence));
    } else if games / every > TESTS_MAX {
        let sentence = format!("test_every is {every}: {games} games would have more than {TESTS_MAX} tests");
        problems.push((Name::test_every, sentence));
    }
    problems
}

/// Checks that a network can be built and fits in a task.
fn check_network(architecture: &Architecture) -> Result<(), String> {
    architecture.check()?;
    match architecture.parameters() {
        0..=WEIGHTS_MAX => Ok(()),
        count => Err(format!("the network would have {count} weights: make it smaller, with at most {WEIGHTS_MAX}")),
    }
}

/// The values of the settings that may depend on `reading`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    biases: bool,
    output_derivative: bool,
    exploring: Exploring,
    learner_first: bool,
    last_step: LastStep,
}

/// See [`Reading::Nearest`].
const NEAREST: Open = Open {
    biases: true,
    output_derivative: false,
    exploring: Exploring::Skip,
    learner_first: true,
    last_step: LastStep::Bootstrapped,
};
/// See [`Reading::Literal`].
const LITERAL: Open = Open {
    biases: false,
    output_derivative: true,
    exploring: Exploring::Learn,
    learner_first: false,
    last_step: LastStep::Direct,
};

impl Settings {
    /// The network that these settings describe.
    #[must_use]
    pub fn architecture(&self) -> Architecture {
        let or = |value: usize, default: usize| if value == 0 { default } else { value };
        let detectors = or(self.detectors, 4);
        let lines = First::Lines { detectors };
        let tuples = First::Tuples { states: or(self.states, 4) };
        let dense = |units: usize| First::Dense { units: or(self.units, units) };
        let (first, second) = match self.network {
            NetworkKind::SmallStructured => (lines, 0),
            NetworkKind::DeepStructured => (lines, 32),
            NetworkKind::Planes => (First::Planes { detectors, units: or(self.second, 13) }, 0),
            NetworkKind::Small => (dense(50), 0),
            NetworkKind::Deep => (dense(95), 51),
            NetworkKind::Wide => (dense(169), 0),
            NetworkKind::Tuples => (tuples, 8),
            NetworkKind::LinearTuples => (tuples, 0),
        };
        Architecture {
            shape: match self.game {
                Game::ScoreFour => Shape::SCORE_FOUR,
                Game::Qubic => Shape::QUBIC,
                Game::ConnectFour => Shape::CONNECT_FOUR,
                Game::TicTacToe => Shape::TIC_TAC_TOE,
            },
            first,
            second: if self.network == NetworkKind::Planes { 0 } else { or(self.second, second) },
            biases: self.open().biases,
            activation: match self.activation {
                Activation::Logistic => net::Activation::Logistic,
                Activation::LogisticUnhalved => net::Activation::LogisticUnhalved,
                Activation::Tanh => net::Activation::Tanh,
            },
            shared: self.shared == Shared::Yes,
        }
    }

    /// How the network learns.
    #[must_use]
    pub fn learning(&self) -> Learning {
        let start = self.alpha.to_f64() as f32;
        let end = if self.schedule == Schedule::Linear { self.alpha_end.to_f64() as f32 } else { start };
        let open = self.open();
        Learning {
            opponent: if self.opponent == TrainingOpponent::Itself { Opponent::Itself } else { Opponent::Benchmark },
            rate: Rate { start, end, games: self.games },
            epsilon: self.epsilon.to_f64(),
            explores_others: self.exploring_moves == ExploringMoves::Others,
            test_epsilon: self.test_epsilon.to_f64(),
            gamma: self.gamma.to_f64() as f32,
            learner_first: open.learner_first,
            learner_first_in_tests: match self.test_first_move {
                TestFirstMove::AsInTraining => open.learner_first,
                own => own == TestFirstMove::Learner,
            },
            output_derivative: open.output_derivative,
            learns_explorations: open.exploring != Exploring::Skip,
            learns_best: open.exploring == Exploring::Best,
            each_ply: self.learns_from == LearnsFrom::EachPly,
            learns_opponents_moves: self.opponents_moves == OpponentsMoves::Learn,
            bootstrapped_end: open.last_step != LastStep::Direct,
            rewards_both: open.last_step == LastStep::Both,
            learns_opponents_end: self.loser != Loser::Skip,
            bootstraps_opponents_end: self.loser == Loser::Bootstrapped,
            finished_board: match self.finished_board {
                FinishedBoard::Skip => learn::FinishedBoard::Skip,
                FinishedBoard::After => learn::FinishedBoard::After,
                FinishedBoard::Before => learn::FinishedBoard::Before,
            },
            exact_wins: self.wins == Wins::Exact,
            averaging_games: self.averaging_games,
        }
    }

    fn open(&self) -> Open {
        let preset = if self.reading == Reading::Nearest { NEAREST } else { LITERAL };
        Open {
            biases: match self.biases {
                Biases::ByReading => preset.biases,
                own => own == Biases::Yes,
            },
            output_derivative: match self.output_derivative {
                OutputDerivative::ByReading => preset.output_derivative,
                own => own == OutputDerivative::In,
            },
            exploring: match self.exploring {
                Exploring::ByReading => preset.exploring,
                own => own,
            },
            learner_first: match self.first_move {
                FirstMove::ByReading => preset.learner_first,
                own => own == FirstMove::Learner,
            },
            last_step: match self.last_step {
                LastStep::ByReading => preset.last_step,
                own => own,
            },
        }
    }

    /// The reading that these settings follow wherever the paper leaves something open: "nearest" or "literal", or "own" if
    /// they follow neither.
    #[must_use]
    pub fn reading_followed(&self) -> &'static str {
        let common = self.activation == Activation::Logistic
            && self.loser == Loser::Learn
            && self.finished_board == FinishedBoard::Skip
            && self.wins == Wins::Learned
            && self.learning().learner_first_in_tests == self.open().learner_first
            && self.exploring_moves == ExploringMoves::Any
            && (self.initial_biases == InitialBiases::Uniform || !self.open().biases)
            && self.initial_weights.to_f64() == 0.5
            && self.learns_from == LearnsFrom::OwnMove
            && (self.opponents_moves == OpponentsMoves::Skip || self.opponent == TrainingOpponent::Itself)
            && self.test_epsilon == Ratio::ZERO;
        match self.open() {
            NEAREST if common => "nearest",
            LITERAL if common => "literal",
            _ => "own",
        }
    }

    /// Games per task.
    #[must_use]
    pub fn games_of_task(&self) -> u64 {
        // This is a few tenths of a second of work.
        if self.segment_games == 0 { 10_000 } else { self.segment_games }
    }
}
