//! The settings of `league`: a game, its players, and how many games they play.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use evoxo_common::{
    choice, settings,
    settings::{FromValue, Value},
    text::quoted,
};
use evoxo_games::board::{Geometry, connect_four, qubic, score_four, tic_tac_toe};

use super::{
    messages,
    roster::{self, Missing},
};

choice! {
    /// A game.
    pub enum Game {
        /// 3x3, three in a row; no games are played, all odds are computed exactly
        TicTacToe = "tic-tac-toe",
        /// 7 columns, 6 rows, four in a row; stones fall
        ConnectFour = "connect-four",
        /// 4x4x4, four in a row
        Qubic = "qubic",
        /// 4x4x4, four in a row; stones fall
        ScoreFour = "score-four",
    }
}

impl Game {
    /// The geometry of the game's board.
    #[must_use]
    pub fn geometry(self) -> &'static Geometry {
        match self {
            Self::TicTacToe => tic_tac_toe(),
            Self::ConnectFour => connect_four(),
            Self::Qubic => qubic(),
            Self::ScoreFour => score_four(),
        }
    }
}

impl From<Game> for messages::Game {
    fn from(game: Game) -> Self {
        match game {
            Game::TicTacToe => Self::TicTacToe,
            Game::ConnectFour => Self::ConnectFour,
            Game::Qubic => Self::Qubic,
            Game::ScoreFour => Self::ScoreFour,
        }
    }
}

impl From<messages::Game> for Game {
    fn from(game: messages::Game) -> Self {
        match game {
            messages::Game::TicTacToe => Self::TicTacToe,
            messages::Game::ConnectFour => Self::ConnectFour,
            messages::Game::Qubic => Self::Qubic,
            messages::Game::ScoreFour => Self::ScoreFour,
        }
    }
}

/// The most players of a league.
pub const PLAYERS_MAX: usize = 64;
/// The most files of champions.
pub const FILES_MAX: usize = 256;
/// The most bytes of a file. As a setting, together with the rest of a configuration, the file then fits in 1 MiB.
pub const FILE_BYTES_MAX: usize = 700 << 10;
/// The most plies of openings in tic-tac-toe, where all openings count.
pub const PLIES_EXACT_MAX: u32 = 4;
/// The most plies of openings in other games.
pub const PLIES_MAX: u32 = 8;
/// The most openings in a task.
pub const OPENINGS_A_ROUND_MAX: u32 = 1000;
/// The most games of a league.
pub const GAMES_MAX: u64 = 4_000_000;

settings! {
    /// A player of a league.
    pub struct PlayerSettings, names PlayerName, schema PLAYER {
        /// The player's name in the tables. If empty, it is `who`.
        name: String = text(40, ""),
        /// Which player it is: random, filtered, benchmark, alpha-beta, perfect or teacher, or the file of a champion,
        /// relative to the directory of this file. For a player that looks ahead, the number of plies may follow, as in
        /// "alpha-beta:6".
        who: String = text(200, "random"),
        /// The file of another champion that plays O, if `who` plays only X. If empty, `who` plays both sides.
        as_o: String = text(200, ""),
    }
    check(|_| Vec::new())
}

impl PlayerSettings {
    /// The player's name in the tables.
    #[must_use]
    pub fn title(&self) -> &str {
        if self.name.is_empty() { &self.who } else { &self.name }
    }
}

settings! {
    /// A file of a champion.
    pub struct FileSettings, names FileName, schema FILE {
        /// The path as the players name it.
        path: String = text(200, ""),
        /// The content, in base64.
        data: String = text(FILE_BYTES_MAX.div_ceil(3) * 4, ""),
    }
    check(|_| Vec::new())
}

impl FileSettings {
    /// A file with this content.
    #[must_use]
    pub fn new(path: String, content: &[u8]) -> Self {
        Self { path, data: BASE64_STANDARD.encode(content) }
    }
}

/// The players of an experiment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Players(pub Vec<PlayerSettings>);

impl FromValue for Players {
    fn from_value(value: &Value) -> Self {
        let Value::List(entries) = value else { panic!("a list was declared, not {value:?}") };
        Self(entries.iter().map(PlayerSettings::of).collect())
    }
}

/// The files of an experiment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files(pub Vec<FileSettings>);

impl FromValue for Files {
    fn from_value(value: &Value) -> Self {
        let Value::List(entries) = value else { panic!("a list was declared, not {value:?}") };
        Self(entries.iter().map(FileSettings::of).collect())
    }
}

/// The players if the experiment file names none.
const DEFAULT: &str = "{ who = \"random\" }, { who = \"filtered\" }, { who = \"teacher\" }, { who = \"perfect\" }";

settings! {
    /// A league: all players, built-in ones and champions of other runs, play each other. A table with intervals shows which
    /// players are stronger. docs/league.md explains it.
    pub struct Settings, names Name, schema SCHEMA {
        /// The game that is played.
        game: Game = choice("tic-tac-toe"),
        /// Plies of the openings, which the players do not choose. In tic-tac-toe (0 to 4 plies) all openings count. In
        /// other games each opening is drawn at random.
        openings: u32 = whole(0, PLIES_MAX as u64, "2"),
        /// In games other than tic-tac-toe: number of openings. From each opening, any two players play two games, with sides
        /// exchanged.
        pairs: u32 = length whole(1, 100_000, "100") when game not ["tic-tac-toe"],
        /// In games other than tic-tac-toe: openings per round. The games of two players from these openings are one task.
        pairs_a_round: u32 = whole(1, OPENINGS_A_ROUND_MAX as u64, "4") when game not ["tic-tac-toe"],
        /// The name of the player whose rating is 0. If empty, it is the first player.
        anchor: String = text(40, ""),
        /// The players. Each has a table of its own.
        players: Players = list(PLAYER, PLAYERS_MAX, DEFAULT),
        /// The files that players name. `evoxo run` and `evoxo submit` read them, so leave this setting out.
        files: Files = list(FILE, FILES_MAX, ""),
    }
    check(|settings| settings.problem().into_iter().collect())
}

impl Settings {
    /// Whether odds are computed instead of playing games.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.game == Game::TicTacToe
    }

    /// The number of rounds of a replica.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        if self.is_exact() { 1 } else { self.pairs.div_ceil(self.pairs_a_round) }
    }

    /// All pairs of players, the lower number first.
    #[must_use]
    pub fn pairings(&self) -> Vec<(usize, usize)> {
        let players = self.players.0.len();
        (0..players).flat_map(|one| (one + 1..players).map(move |two| (one, two))).collect()
    }

    /// The names of the players.
    #[must_use]
    pub fn titles(&self) -> Vec<&str> {
        self.players.0.iter().map(PlayerSettings::title).collect()
    }

    /// The index of the player whose rating is 0.
    #[must_use]
    pub fn anchor(&self) -> usize {
        self.titles().iter().position(|title| *title == self.anchor).unwrap_or(0)
    }

    /// The players, with their files. A file that is not valid base64 becomes empty.
    #[must_use]
    pub fn roster(&self) -> messages::Roster {
        let player = |player: &PlayerSettings| messages::Player {
            name: player.title().into(),
            x: player.who.clone(),
            o: player.as_o.clone(),
        };
        let file = |file: &FileSettings| messages::File {
            path: file.path.clone(),
            content: BASE64_STANDARD.decode(&file.data).unwrap_or_default().into(),
        };
        messages::Roster {
            players: self.players.0.iter().map(player).collect(),
            files: self.files.0.iter().map(file).collect(),
        }
    }

    /// The next file that has to be read.
    #[must_use]
    pub fn missing_file(&self) -> Option<String> {
        let (roster, geometry) = (self.roster(), self.game.geometry());
        let missing = |number: usize| match roster::sides(&roster, number, geometry) {
            Err(Missing::File(path)) => Some(path),
            _ => None,
        };
        (0..roster.players.len()).find_map(missing)
    }

    /// The setting `files` as a text.
    #[must_use]
    pub fn files_text(&self) -> String {
        // JSON writes printable ASCII in the same way as TOML.
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let entry = |path: &str, data: &str| format!("{{ path = {}, data = {} }}", text(path), text(data));
        let all: Vec<String> = self.files.0.iter().map(|file| entry(&file.path, &file.data)).collect();
        format!("[{}]", all.join(", "))
    }

    fn problem(&self) -> Option<(Name, String)> {
        let titles = self.titles();
        if titles.len() < 2 {
            return Some((Name::players, "a league needs at least two players: write [[players]] for each".into()));
        }
        if let Some((_, title)) = titles.iter().enumerate().find(|(number, title)| titles[..*number].contains(title)) {
            let sentence = format!("two players have the name {}: give each its own name", quoted(title));
            return Some((Name::players, sentence));
        }
        if !self.anchor.is_empty() && !titles.contains(&self.anchor.as_str()) {
            let sentence = format!("no player is called {}: give one of {}", quoted(&self.anchor), titles.join(", "));
            return Some((Name::anchor, sentence));
        }
        if self.is_exact() && self.openings > PLIES_EXACT_MAX {
            let sentence = format!("tic-tac-toe has openings of 0 to {PLIES_EXACT_MAX} plies, not {}", self.openings);
            return Some((Name::openings, sentence));
        }
        let games = 2 * self.pairings().len() as u64 * u64::from(self.pairs);
        if !self.is_exact() && games > GAMES_MAX {
            let sentence = format!("that would be {games} games: the maximum is {GAMES_MAX}");
            return Some((Name::pairs, sentence));
        }
        self.bad_file().map(|why| (Name::files, why)).or_else(|| self.bad_player().map(|why| (Name::players, why)))
    }

    fn bad_file(&self) -> Option<String> {
        let files = &self.files.0;
        let wrong = |(number, file): (usize, &FileSettings)| {
            if files[..number].iter().any(|other| other.path == file.path) {
                return Some(format!("the file {} is listed twice: remove one", quoted(&file.path)));
            }
            let good = BASE64_STANDARD.decode(&file.data).is_ok_and(|bytes| !bytes.is_empty());
            (!good).then(|| format!("the file {} is empty or not in base64: leave out files", quoted(&file.path)))
        };
        files.iter().enumerate().find_map(wrong)
    }

    /// The first problem with a player, as far as its files have been read.
    pub(super) fn bad_player(&self) -> Option<String> {
        let (roster, geometry) = (self.roster(), self.game.geometry());
        let wrong = |number: usize| match roster::sides(&roster, number, geometry) {
            Err(Missing::Wrong(why)) => Some(format!("player {}: {why}", quoted(self.titles()[number]))),
            _ => None,
        };
        (0..roster.players.len()).find_map(wrong)
    }
}
