//! Players are found by name or file, with their games, or refused with a sentence.

use super::*;
use evoxo_common::card::Card;
use evoxo_experiments::{
    registry,
    rules::{agent::Agent, rule::read},
};
use evoxo_games::{
    board::{Board, Geometry, connect_four, qubic, tic_tac_toe},
    net::{Activation, Architecture, First, Network},
};

fn spec(name: &str) -> PlayerSpec {
    PlayerSpec { name: name.into(), game: None, depth: None, behind_name: false, seed: Some(1) }
}

fn games(names: [&str; 2], game: Option<Game>) -> Result<[Game; 2], String> {
    let pair = pair(&registry(), names, game).map_err(|error| error.to_string())?;
    Ok(pair.map(|player| player.game))
}

#[test]
fn a_pair_plays_one_game() {
    assert_eq!(games(["random", "benchmark"], None), Ok([Game::ScoreFour; 2]));
    assert_eq!(games(["random", "alpha-beta:2"], Some(Game::Qubic)), Ok([Game::Qubic; 2]));
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, geometry: &Geometry| {
        let (shape, first) = (geometry.shape(), First::Dense { units: 50 });
        let activation = Activation::Logistic;
        let architecture = Architecture { shape, first, second: 0, biases: false, activation, shared: false };
        let network = Network { architecture, weights: architecture.initial(Stream::root(1)) };
        let path = directory.path().join(name);
        std::fs::write(&path, network.to_file()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let [four, solid] = [file("four.safetensors", connect_four()), file("solid.safetensors", qubic())];
    assert_eq!(games(["random", &four], None), Ok([Game::ConnectFour; 2]));
    assert_eq!(games([&format!("{solid}:1"), "filtered"], None), Ok([Game::Qubic; 2]));
    let sentence = games([&four, &solid], None).unwrap_err();
    assert!(
        sentence.contains("plays connect-four, but") && sentence.contains("plays qubic: name players of one game"),
        "{sentence}"
    );
    assert_eq!(games(["perfect", "random"], None), Ok([Game::TicTacToe; 2]));
    assert!(games(["perfect", &four], None).unwrap_err().contains("but "));
}

#[test]
fn unknown_players_are_rejected() {
    let sentence = |spec: PlayerSpec| spec.find(&registry()).map(drop).unwrap_err().to_string();
    assert!(sentence(spec("bencmark")).contains("no player \"bencmark\""));
    assert!(sentence(spec("nowhere/card.json")).contains("no player \"nowhere/card.json\" and no file"));
    assert_eq!(
        sentence(PlayerSpec { depth: Some(2), ..spec("random") }),
        "random does not look ahead: leave out --depth"
    );
    let behind = |one: &str, two: &str| games([one, two], None).unwrap_err();
    assert_eq!(behind("random:3", "random"), "random does not look ahead: leave out :3");
    assert_eq!(behind("alpha-beta:9", "random"), "alpha-beta:9 looks 9 plies ahead: give 1 to 6 plies");
    let large = sentence(PlayerSpec { game: Some(Game::Qubic), ..spec("perfect") });
    assert!(large.starts_with("perfect plays only tic-tac-toe: give alpha-beta"), "{large}");
}

/// A player found by its file plays both sides of its own game, with some random moves.
#[test]
fn a_champion_is_found_by_its_card() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.json");
    let agent = Agent::newborn(vec![read("V********1", 1).unwrap()]);
    std::fs::write(&path, Card::new(agent).write("agent").0).unwrap();
    let name = path.to_str().unwrap();
    let mut opponent = spec(name).find(&registry()).unwrap();
    assert_eq!((opponent.game, opponent.player.side, opponent.player.name.as_str()), (Game::TicTacToe, None, "rules"));
    assert!(opponent.player.play.is_random());
    assert_eq!(opponent.choose_move(Position::of(tic_tac_toe(), Board::EMPTY)).cell, 0);
    assert_eq!(games([name, "random"], None), Ok([Game::TicTacToe; 2]));
    let refused = |spec: PlayerSpec, why: &str| {
        assert!(spec.find(&registry()).is_err_and(|error| error.to_string().contains(why)), "{why}");
    };
    refused(PlayerSpec { depth: Some(2), ..spec(name) }, "does not look ahead");
    refused(PlayerSpec { game: Some(Game::Qubic), ..spec(name) }, "plays tic-tac-toe, not qubic");
}
