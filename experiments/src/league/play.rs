//! The tasks of `league`: two players' games from some openings, and their exact odds in tic-tac-toe.
//!
//! The random stream of a game is named after its players, so a game does not depend on the other players of the league.

use std::collections::BTreeMap;

use bytes::Bytes;
use evoxo_common::{
    rng::Stream,
    task::{Compute, Refusal},
};
use evoxo_games::{
    board::{Board, Geometry, Outcome, Position, Side, tic_tac_toe},
    net::{Activation, Architecture, First, Network},
    player::{
        Player,
        duel::{game, openings},
        random::random,
    },
};
use prost::Message as _;

use super::{
    NAME, messages,
    messages::{File, GamesOutput, GamesTask, OddsOutput, OddsTask, Roster},
    rating::outcome,
    roster::{self, Missing},
    settings::{FILES_MAX, Game, OPENINGS_A_ROUND_MAX, PLAYERS_MAX, PLIES_EXACT_MAX, PLIES_MAX},
};

/// Plays games from some openings.
pub enum Games {}

/// Computes exact odds in tic-tac-toe.
pub enum ComputeOdds {}

/// The number of games of two players from one opening.
pub(super) const GAMES_EACH: usize = 2;
/// The outcomes for X: win, draw and loss.
const OUTCOMES: usize = 3;
/// The length of an output of odds.
pub(super) const ODDS_EACH: usize = GAMES_EACH * OUTCOMES;

/// Two players. Each has one player for X and one for O.
type Seats = [[Option<Player>; 2]; 2];

/// Two players of the roster in the shared bytes, and their names.
fn players(shared: &Bytes, numbers: [u32; 2], geometry: &'static Geometry) -> Result<(Seats, [String; 2]), Refusal> {
    let roster =
        Roster::decode(shared.clone()).map_err(|error| Refusal(format!("the roster cannot be read: {error}")))?;
    let (players, files) = (roster.players.len(), roster.files.len());
    if players > PLAYERS_MAX || files > FILES_MAX {
        return Err(Refusal(format!(
            "a roster of {players} players and {files} files: at most {PLAYERS_MAX} and {FILES_MAX}"
        )));
    }
    let [one, two] = numbers.map(|number| number as usize);
    if one.max(two) >= players || one == two {
        return Err(Refusal(format!("players {one} and {two} of {players} do not play each other")));
    }
    let of = |number: usize| match roster::sides(&roster, number, geometry) {
        Ok(sides) => Ok(sides),
        Err(Missing::File(path)) => Err(Refusal(format!("the file {path:?} is not in the roster"))),
        Err(Missing::Wrong(why)) => Err(Refusal(why)),
    };
    Ok(([of(one)?, of(two)?], [one, two].map(|number| roster.players[number].name.clone())))
}

/// The two opponents of a game in which the player with index `x` plays X; `None` if one of them does not play its side.
fn seats(players: &mut Seats, x: usize) -> Option<(&mut Player, &mut Player)> {
    let [one, two] = players;
    let (x, o) = if x == 0 { (one, two) } else { (two, one) };
    Some((x[0].as_mut()?, o[1].as_mut()?))
}

/// A position after `plies` random moves in which nobody has won and a cell is empty.
fn opening(geometry: &'static Geometry, plies: u32, stream: Stream) -> Position {
    let mut rng = stream.rng();
    loop {
        let mut position = Position::START;
        for _ in 0..plies {
            if geometry.outcome(position.board()).is_none() {
                position = position.play(geometry, random(position, geometry, &mut rng));
            }
        }
        if geometry.outcome(position.board()).is_none() {
            return position;
        }
    }
}

impl Compute for Games {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "games";
    type Task = GamesTask;
    type Output = GamesOutput;

    fn run(task: &GamesTask, shared: &Bytes) -> Result<GamesOutput, Refusal> {
        check_games(task)?;
        let geometry = Game::from(task.game()).geometry();
        let (mut players, names) = players(shared, [task.one, task.two], geometry)?;
        let stream = Stream::from_words(task.stream_high, task.stream_low);
        let mut games = Vec::with_capacity(GAMES_EACH * task.openings as usize);
        for number in task.first_opening..task.first_opening + task.openings {
            let number = u64::from(number);
            let start = opening(geometry, task.plies, stream.text("openings").word(number));
            for x in [0, 1] {
                let Some((x_player, o_player)) = seats(&mut players, x) else {
                    games.push(outcome::NONE);
                    continue;
                };
                let mut rng = stream.text("games").word(number).text(&names[x]).text(&names[1 - x]).rng();
                let mut first = |position, rng: &mut _| x_player.choose(position, rng);
                let mut second = |position, rng: &mut _| o_player.choose(position, rng);
                games.push(match game(geometry, start, Side::X, &mut rng, &mut first, &mut second) {
                    Outcome::Win(Side::X) => outcome::FIRST,
                    Outcome::Draw => outcome::DRAW,
                    Outcome::Win(Side::O) => outcome::SECOND,
                });
            }
        }
        Ok(GamesOutput { games: games.into() })
    }

    fn check(task: &GamesTask, _: &Bytes, output: &GamesOutput) -> Result<(), Refusal> {
        let wanted = GAMES_EACH * task.openings as usize;
        match output.games.len() == wanted && output.games.iter().all(|game| *game <= outcome::SECOND) {
            true => Ok(()),
            false => Err(Refusal(format!("the output must have {wanted} bytes from 0 to {}", outcome::SECOND))),
        }
    }

    fn workload() -> Vec<(GamesTask, Bytes)> {
        let shared: Bytes = workload_roster().encode_to_vec().into();
        let task = |game: messages::Game, one, two| GamesTask {
            game: game.into(),
            plies: 2,
            one,
            two,
            first_opening: 7,
            openings: 2,
            stream_high: 3,
            stream_low: 4,
        };
        let all = [
            task(messages::Game::ConnectFour, 0, 1),
            task(messages::Game::Qubic, 2, 3),
            task(messages::Game::ScoreFour, 3, 1),
            task(messages::Game::ScoreFour, 4, 3),
            GamesTask { openings: 0, ..task(messages::Game::Qubic, 0, 1) },
            task(messages::Game::Qubic, 1, 1),
        ];
        all.into_iter().map(|task| (task, shared.clone())).collect()
    }
}

fn check_games(task: &GamesTask) -> Result<(), Refusal> {
    let &GamesTask { plies, first_opening, openings, .. } = task;
    let good = plies <= PLIES_MAX
        && (1..=OPENINGS_A_ROUND_MAX).contains(&openings)
        && first_opening.checked_add(openings).is_some();
    match good {
        true => Ok(()),
        false => Err(Refusal(format!(
            "games from {openings} openings of {plies} plies: 1 to {OPENINGS_A_ROUND_MAX} openings of at most {PLIES_MAX}"
        ))),
    }
}

/// The roster of the fixed workloads: built-in players and two champions.
fn workload_roster() -> Roster {
    let player = |name: &str| messages::Player { name: name.into(), x: name.into(), o: String::new() };
    let architecture = |geometry: &Geometry| Architecture {
        shape: geometry.shape(),
        first: First::Dense { units: 6 },
        second: 0,
        biases: false,
        activation: Activation::Logistic,
        shared: false,
    };
    let network = |geometry: &Geometry| {
        let architecture = architecture(geometry);
        Bytes::from(Network { architecture, weights: architecture.initial(Stream::root(5)) }.to_file())
    };
    let card =
        r#"{"kind": "rules", "weight": 0, "rules": ["VVVVVVVVV5", "V********1 weight 1", "**V*****V3 weight 1"]}"#;
    let file = |path: &str, content: Bytes| File { path: path.into(), content };
    let names = ["random", "filtered", "benchmark", "alpha-beta:2", "four.safetensors:1"];
    let small = ["perfect", "teacher", "three.safetensors", "rules.json"];
    Roster {
        players: names.into_iter().chain(small).map(player).collect(),
        files: vec![
            file("four.safetensors", network(Game::ScoreFour.geometry())),
            file("three.safetensors", network(tic_tac_toe())),
            file("rules.json", Bytes::from_static(card.as_bytes())),
        ],
    }
}

impl Compute for ComputeOdds {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "odds";
    type Task = OddsTask;
    type Output = OddsOutput;

    fn run(task: &OddsTask, shared: &Bytes) -> Result<OddsOutput, Refusal> {
        if task.plies > PLIES_EXACT_MAX {
            return Err(Refusal(format!("openings of {} plies: at most {PLIES_EXACT_MAX}", task.plies)));
        }
        let (mut players, _) = players(shared, [task.one, task.two], tic_tac_toe())?;
        let openings = openings(tic_tac_toe(), task.plies);
        let mut odds = Vec::with_capacity(ODDS_EACH);
        for x in [0, 1] {
            let mut sums = [0.0; OUTCOMES];
            if let Some((x, o)) = seats(&mut players, x) {
                let mut tree = Tree { x, o, known: BTreeMap::new() };
                for opening in &openings {
                    let odds = tree.odds(*opening)?;
                    sums.iter_mut().zip(odds).for_each(|(sum, odds)| *sum += odds);
                }
            }
            odds.extend(sums);
        }
        Ok(OddsOutput { odds })
    }

    fn check(_: &OddsTask, _: &Bytes, output: &OddsOutput) -> Result<(), Refusal> {
        let most = openings_max();
        match output.odds.len() == ODDS_EACH && output.odds.iter().all(|sum| (0.0..=most).contains(sum)) {
            true => Ok(()),
            false => Err(Refusal(format!("the output must have {ODDS_EACH} sums from 0 to {most}"))),
        }
    }

    fn workload() -> Vec<(OddsTask, Bytes)> {
        let shared: Bytes = workload_roster().encode_to_vec().into();
        let task = |plies, one, two| (OddsTask { plies, one, two }, shared.clone());
        vec![task(2, 0, 5), task(1, 6, 7), task(0, 8, 3), task(3, 2, 1), task(5, 0, 1), task(0, 0, 99)]
    }
}

/// More than the number of openings with any number of plies, with room for rounding.
fn openings_max() -> f64 {
    1000.0
}

/// All games of two players in tic-tac-toe.
struct Tree<'a> {
    x: &'a mut Player,
    o: &'a mut Player,
    /// The odds of boards on which the game is not over.
    known: BTreeMap<Board, [f64; OUTCOMES]>,
}

impl Tree<'_> {
    /// The probabilities that X wins, that the game is drawn, and that O wins.
    fn odds(&mut self, position: Position) -> Result<[f64; OUTCOMES], Refusal> {
        let (geometry, board) = (tic_tac_toe(), position.board());
        match geometry.outcome(board) {
            Some(Outcome::Win(Side::X)) => return Ok([1.0, 0.0, 0.0]),
            Some(Outcome::Draw) => return Ok([0.0, 1.0, 0.0]),
            Some(Outcome::Win(Side::O)) => return Ok([0.0, 0.0, 1.0]),
            None => {}
        }
        if let Some(odds) = self.known.get(&board) {
            return Ok(*odds);
        }
        let player = if position.to_move() == Side::X { &mut *self.x } else { &mut *self.o };
        let shares = player.play.shares(geometry, position);
        let shares = shares.ok_or_else(|| Refusal(format!("{} does not know its odds", player.name)))?;
        let whole: u32 = shares.iter().map(|(_, share)| share).sum();
        let mut sums = [0.0; OUTCOMES];
        for (cell, share) in shares {
            let odds = self.odds(position.play(geometry, cell))?;
            sums.iter_mut().zip(odds).for_each(|(sum, odds)| *sum += f64::from(share) * odds);
        }
        let odds = sums.map(|sum| sum / f64::from(whole));
        self.known.insert(board, odds);
        Ok(odds)
    }
}
