//! The games that can be played, by name.

use crate::board::{Geometry, Shape, connect_four, qubic, score_four, tic_tac_toe};

/// A game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Game {
    /// 3x3, three in a row.
    TicTacToe,
    /// 7 columns, 6 rows, four in a row; stones fall.
    ConnectFour,
    /// 4x4x4, four in a row.
    Qubic,
    /// 4x4x4, four in a row; stones fall.
    ScoreFour,
}

impl Game {
    /// All games.
    pub const ALL: [Self; 4] = [Self::TicTacToe, Self::ConnectFour, Self::Qubic, Self::ScoreFour];

    /// The game's board and its lines.
    #[must_use]
    pub fn geometry(self) -> &'static Geometry {
        match self {
            Self::TicTacToe => tic_tac_toe(),
            Self::ConnectFour => connect_four(),
            Self::Qubic => qubic(),
            Self::ScoreFour => score_four(),
        }
    }

    /// The name that people type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TicTacToe => "tic-tac-toe",
            Self::ConnectFour => "connect-four",
            Self::Qubic => "qubic",
            Self::ScoreFour => "score-four",
        }
    }

    /// A short description.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::TicTacToe => "3x3, three in a row",
            Self::ConnectFour => "7 columns of 6, four in a row; stones fall",
            Self::Qubic => "4x4x4, four in a row",
            Self::ScoreFour => "4x4x4, four in a row; stones fall",
        }
    }

    /// The game with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|game| game.name() == name)
    }

    /// The game with this shape.
    #[must_use]
    pub fn of_shape(shape: Shape) -> Option<Self> {
        Self::ALL.into_iter().find(|game| game.geometry().shape() == shape)
    }
}
