//! The settings of `td3d` that are a choice between words.

use evoxo_common::choice;

choice! {
    /// The network. The paper's are small-structured, deep-structured, small, deep and wide.
    pub enum NetworkKind {
        /// 4 units for each line, connected only to its cells
        SmallStructured = "small-structured",
        /// the same, with a second layer of 32 units
        DeepStructured = "deep-structured",
        /// 4 units for each line, and above them 13 for each plane, connected to the units of the plane's lines
        Planes = "planes",
        /// 50 units, connected to all cells
        Small = "small",
        /// 95 units, connected to all cells, and a second layer of 51
        Deep = "deep",
        /// 169 units, connected to all cells
        Wide = "wide",
        /// a table for each line, with an entry for each combination of its cells' states, and a second layer of 8 units
        Tuples = "tuples",
        /// only the tables: the value is the sum of their entries
        LinearTuples = "linear-tuples",
    }
}

choice! {
    /// The opponent in training.
    pub enum TrainingOpponent {
        /// itself; both sides learn
        Itself = "self",
        /// the player that the network is tested against; only the learner's own afterstates learn
        Benchmark = "benchmark",
    }
}

choice! {
    /// The reading of what the paper leaves open. It applies to the settings that are "by-reading": biases,
    /// output_derivative, exploring, first_move and last_step.
    pub enum Reading {
        /// the one nearest to the paper's figures: yes, out, skip, learner, bootstrapped
        Nearest = "nearest",
        /// the paper's Algorithm 1 step by step, without the finished boards that its section III mentions: no, in, learn,
        /// alternating, direct
        Literal = "literal",
    }
}

choice! {
    /// Whether units have biases. The paper's numbers of weights include none.
    pub enum Biases {
        /// as the setting `reading` says
        ByReading = "by-reading",
        /// no biases
        No = "no",
        /// all units but the inputs have one
        Yes = "yes",
    }
}

choice! {
    /// Whether the derivative of the output unit's activation is a factor of the error that is propagated back.
    pub enum OutputDerivative {
        /// as the setting `reading` says
        ByReading = "by-reading",
        /// it is, as in backpropagation
        In = "in",
        /// it is not
        Out = "out",
    }
}

choice! {
    /// What the afterstate before an exploring move learns from.
    pub enum Exploring {
        /// as the setting `reading` says
        ByReading = "by-reading",
        /// the afterstate after the exploring move
        Learn = "learn",
        /// the afterstate after the best move, which was not played
        Best = "best",
        /// nothing
        Skip = "skip",
    }
}

choice! {
    /// Which side moves first against the benchmark player, in tests and in training.
    pub enum FirstMove {
        /// as the setting `reading` says
        ByReading = "by-reading",
        /// the learner in every other game
        Alternating = "alternating",
        /// the learner in every game
        Learner = "learner",
    }
}

choice! {
    /// Which side moves first in tests.
    pub enum TestFirstMove {
        /// as in training
        AsInTraining = "as-in-training",
        /// the learner in every other game
        Alternating = "alternating",
        /// the learner in every game
        Learner = "learner",
    }
}

choice! {
    /// Which moves exploration chooses from.
    pub enum ExploringMoves {
        /// any legal move, each equally likely
        Any = "any",
        /// any legal move except the best one, if there is another
        Others = "others",
    }
}

choice! {
    /// The initial biases.
    pub enum InitialBiases {
        /// uniform in [-0.5, 0.5), like the weights
        Uniform = "uniform",
        /// 0
        Zero = "zero",
    }
}

choice! {
    /// Which afterstate an afterstate learns from.
    pub enum LearnsFrom {
        /// the one after the next move of the same side
        OwnMove = "own-move",
        /// the one after the next move, which is the opponent's: its value, negated
        EachPly = "each-ply",
    }
}

choice! {
    /// Whose afterstates learn against the benchmark player.
    pub enum OpponentsMoves {
        /// only the learner's
        Skip = "skip",
        /// the benchmark player's as well
        Learn = "learn",
    }
}

choice! {
    /// How the side that makes the last move learns.
    pub enum LastStep {
        /// as the setting `reading` says
        ByReading = "by-reading",
        /// its previous afterstate learns the reward
        Direct = "direct",
        /// its previous afterstate learns the value of the final one, and the final one learns the reward
        Bootstrapped = "bootstrapped",
        /// its previous afterstate and the final one both learn the reward
        Both = "both",
    }
}

choice! {
    /// What the side that did not make the last move learns at its last afterstate.
    pub enum Loser {
        /// its reward, in both readings: -1, or 0 for a draw
        Learn = "learn",
        /// the value of the finished board, as that side sees it
        Bootstrapped = "bootstrapped",
        /// nothing
        Skip = "skip",
    }
}

choice! {
    /// Whether the finished board, as seen by the side that did not make the last move, learns that side's reward: -1, or 0
    /// for a draw.
    pub enum FinishedBoard {
        /// no, in both readings
        Skip = "skip",
        /// yes, after that side's last afterstate
        After = "after",
        /// yes, before that side's last afterstate
        Before = "before",
    }
}

choice! {
    /// The paper's "logistic function scaled to [-1, 1]".
    pub enum Activation {
        /// tanh(x / 2), in both readings
        Logistic = "logistic",
        /// tanh(x / 2), learned as if its slope were that of tanh(x): 1 - v^2 for a value v, not half of that
        LogisticUnhalved = "logistic-unhalved",
        /// tanh(x)
        Tanh = "tanh",
    }
}

choice! {
    /// How moves that win at once are treated. This is not in the paper.
    pub enum Wins {
        /// their values are learned like all others
        Learned = "learned",
        /// a winning move is always chosen if there is one, and its value is the reward
        Exact = "exact",
    }
}

choice! {
    /// Whether weights are shared over the symmetries of the board; not for dense networks. The paper names this as future
    /// work.
    pub enum Shared {
        /// no
        No = "no",
        /// yes: units of the second layer see the board in all its orientations
        Yes = "yes",
    }
}

choice! {
    /// The game. The paper's is score-four, which it calls tic-tac-toe 3D.
    pub enum Game {
        /// 4x4x4, four in a row, stones fall
        ScoreFour = "score-four",
        /// 4x4x4, four in a row
        Qubic = "qubic",
        /// 7 columns, 6 rows, four in a row, stones fall
        ConnectFour = "connect-four",
        /// 3x3, three in a row
        TicTacToe = "tic-tac-toe",
    }
}

choice! {
    /// How the learning rate changes over a trial.
    pub enum Schedule {
        /// it stays the same
        Constant = "constant",
        /// it falls linearly to alpha_end after the last game
        Linear = "linear",
    }
}

choice! {
    /// Which learners count in the mean of a weight.
    pub enum Join {
        /// those that changed it
        Touched = "touched",
        /// all of them
        All = "all",
    }
}
