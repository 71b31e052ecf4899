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
        /// 3x3, three in a row: no game is played, all odds are computed exactly
        TicTacToe = "tic-tac-toe",
        /// 7 columns of 6, four in a row; stones fall
        ConnectFour = "connect-four",
        /// 4x4x4, four in a row
        Qubic = "qubic",
        /// 4x4x4, four in a row; stones fall
        ScoreFour = "score-four",
    }
}

impl Game {
    /// Its board.
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
/// The most files of their champions.
pub const FILES_MAX: usize = 256;
/// The most bytes of one of them: as a setting, with the rest of a configuration, it fits a file of 1 MiB.
pub const FILE_BYTES_MAX: usize = 700 << 10;
/// The most plies of openings in tic-tac-toe, where all openings count.
pub const PLIES_EXACT_MAX: u32 = 4;
/// The most plies of openings in other games.
pub const PLIES_MAX: u32 = 8;
/// The most openings of a task.
pub const OPENINGS_A_ROUND_MAX: u32 = 1000;
/// The most games of a league.
pub const GAMES_MAX: u64 = 4_000_000;

settings! {
    /// A player of a league.
    pub struct PlayerSettings, names PlayerName, schema PLAYER {
        /// Its name in the tables. Empty: as `who`.
        name: String = text(40, ""),
        /// Who plays: random, filtered, benchmark, alpha-beta, perfect or teacher, or the file of a champion, from the directory of
        /// this file. Of one that looks ahead, its plies may follow, as in "alpha-beta:6".
        who: String = text(200, "random"),
        /// Who plays O for it, if `who` plays only X: another champion's file. Empty: the same.
        as_o: String = text(200, ""),
    }
    check(|_| Vec::new())
}

impl PlayerSettings {
    /// The name in the tables.
    #[must_use]
    pub fn title(&self) -> &str {
        if self.name.is_empty() { &self.who } else { &self.name }
    }
}

settings! {
    /// A file of a champion.
    pub struct FileSettings, names FileName, schema FILE {
        /// As the players name it.
        path: String = text(200, ""),
        /// What it has, in base64.
        data: String = text(FILE_BYTES_MAX.div_ceil(3) * 4, ""),
    }
    check(|_| Vec::new())
}

impl FileSettings {
    /// A file that has these bytes.
    #[must_use]
    pub fn new(path: String, content: &[u8]) -> Self {
        Self { path, data: BASE64_STANDARD.encode(content) }
    }
}

/// The players as a file has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Players(pub Vec<PlayerSettings>);

impl FromValue for Players {
    fn from_value(value: &Value) -> Self {
        let Value::List(entries) = value else { panic!("a list was declared, not {value:?}") };
        Self(entries.iter().map(PlayerSettings::of).collect())
    }
}

/// The files as a file has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files(pub Vec<FileSettings>);

impl FromValue for Files {
    fn from_value(value: &Value) -> Self {
        let Value::List(entries) = value else { panic!("a list was declared, not {value:?}") };
        Self(entries.iter().map(FileSettings::of).collect())
    }
}

/// The players of a file that names none.
const DEFAULT: &str = "{ who = \"random\" }, { who = \"filtered\" }, { who = \"teacher\" }, { who = \"perfect\" }";

settings! {
    /// A league: everybody plays everybody, built-in players and champions of other runs, and the table says with intervals who is
    /// stronger. docs/league.md explains it.
    pub struct Settings, names Name, schema SCHEMA {
        /// The game that all play.
        game: Game = choice("tic-tac-toe"),
        /// Plies of the openings, which the players do not choose. In tic-tac-toe all openings count, 0 to 4 plies; in other games
        /// each is drawn at random.
        openings: u32 = whole(0, PLIES_MAX as u64, "2"),
        /// In other games than tic-tac-toe: openings. From each, any two players play two games, with sides exchanged.
        pairs: u32 = length whole(1, 100_000, "100") when game not ["tic-tac-toe"],
        /// In other games than tic-tac-toe: openings of a round; each two players' games from them are one task.
        pairs_a_round: u32 = whole(1, OPENINGS_A_ROUND_MAX as u64, "4") when game not ["tic-tac-toe"],
        /// The player whose rating is 0: its name. Empty: the first.
        anchor: String = text(40, ""),
        /// The players, one table for each.
        players: Players = list(PLAYER, PLAYERS_MAX, DEFAULT),
        /// The files that players name; `evoxo run` and `evoxo submit` read them, so leave this out.
        files: Files = list(FILE, FILES_MAX, ""),
    }
    check(|settings| settings.problem().into_iter().collect())
}

impl Settings {
    /// Whether the odds are computed instead of games played.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.game == Game::TicTacToe
    }

    /// The rounds of a replica.
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

    /// The place of the player whose rating is 0.
    #[must_use]
    pub fn anchor(&self) -> usize {
        self.titles().iter().position(|title| *title == self.anchor).unwrap_or(0)
    }

    /// Who plays, with the files; a file that is no base64 has nothing in it.
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

    /// The next file that is to be read.
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
        // JSON writes printable ASCII as TOML does.
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
        if let Some((number, title)) =
            titles.iter().enumerate().find(|(number, title)| titles[..*number].contains(title))
        {
            let sentence = format!("players {} and later have the name {}: give each its own", number, quoted(title));
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
                return Some(format!("the file {} is there twice: leave out one", quoted(&file.path)));
            }
            let good = BASE64_STANDARD.decode(&file.data).is_ok_and(|bytes| !bytes.is_empty());
            (!good).then(|| format!("the file {} is empty or not in base64: leave out files", quoted(&file.path)))
        };
        files.iter().enumerate().find_map(wrong)
    }

    /// What is wrong with a player, as far as its files are there.
    pub(super) fn bad_player(&self) -> Option<String> {
        let (roster, geometry) = (self.roster(), self.game.geometry());
        let wrong = |number: usize| match roster::sides(&roster, number, geometry) {
            Err(Missing::Wrong(why)) => Some(format!("player {}: {why}", quoted(self.titles()[number]))),
            _ => None,
        };
        (0..roster.players.len()).find_map(wrong)
    }
}
