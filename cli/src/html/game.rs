//! A champion that people can play against in the file. For a 3x3 champion, the file holds its answer on every board that
//! play can reach, so the script needs the rules of the game but no player. For a network on a larger board, the file holds
//! its weights.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use evoxo_common::{card::Card, rng::Stream};
use evoxo_games::{
    board::{Board, Geometry, Position, Side, cells},
    game::Game,
    net::{First, Network},
    player::{Player, find::player_of_card},
};
use serde_json::{Value, json};

use super::element::Html;

/// The most weights, after weights are unshared, of a network that can be played in the file: 128 KiB.
const WEIGHTS_MAX: usize = 1 << 15;

/// An element for a game, which the script fills in, or a sentence that says why there is no game. `None` if the champion
/// does not play a game.
pub(super) fn place(card: &Card) -> Option<Html> {
    let (game, mut player) = player_of_card(card).ok().flatten()?;
    let shape = json!(game.geometry().shape()).to_string();
    if game == Game::TicTacToe {
        let side = player.side.map(|side| side.letter().to_string()).unwrap_or_default();
        let answers = answers(&mut player);
        let data = [("class", "game"), ("data-shape", &shape), ("data-side", &side), ("data-answers", &answers)];
        return Some(Html::of("div", &data, ""));
    }
    let network = match card.champion_as::<Network>().ok_or("it is no network").and_then(playable) {
        Ok(network) => network,
        Err(why) => {
            let sentence =
                format!("You cannot play against this champion in this file: {why}. Use evoxo play instead.");
            return Some(Html::classed("p", "soft", sentence));
        }
    };
    let bytes: Vec<u8> = network.weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
    let (architecture, weights) = (json!(network.architecture).to_string(), STANDARD.encode(bytes));
    let wins = card.about.get("wins").and_then(Value::as_str).unwrap_or("learned");
    let data = [
        ("class", "game"),
        ("data-shape", &shape),
        ("data-network", &architecture),
        ("data-weights", &weights),
        ("data-wins", wins),
    ];
    Some(Html::of("div", &data, ""))
}

/// The network without shared weights, as the script computes it; or the reason why the script cannot compute it.
fn playable(network: &Network) -> Result<Network, &'static str> {
    let plain = match network.architecture.first {
        First::Tuples { .. } if network.architecture.second > 0 => {
            return Err("its filters read tables in every orientation of the board");
        }
        First::Planes { .. } => return Err("its second layer follows the planes of the board"),
        _ => network.without_sharing().ok_or("its filters share weights")?,
    };
    if plain.weights.len() > WEIGHTS_MAX { Err("its network is too large") } else { Ok(plain) }
}

/// The answers on all boards on which the game is not over, in the order of the boards' numbers. An answer is the digit of a
/// cell, counted from the top left, or a dash if the other side is to move. Random choices are made once for each board.
fn answers(player: &mut Player) -> String {
    let side = player.side;
    let answer = |(number, position): (u32, Position)| {
        if side.is_some_and(|side| side != position.to_move()) {
            return '-';
        }
        let mut rng = Stream::root(0).text("report").word(number.into()).rng();
        char::from(b'0' + player.choose(position, &mut rng))
    };
    positions(Game::TicTacToe.geometry()).into_iter().map(answer).collect()
}

/// All positions that play can reach and in which the game is not over, by the number of their boards.
fn positions(geometry: &Geometry) -> BTreeMap<u32, Position> {
    let (mut found, mut open) = (BTreeMap::new(), vec![Position::START]);
    while let Some(position) = open.pop() {
        let board = position.board();
        if geometry.outcome(board).is_none() && found.insert(number(board), position).is_none() {
            open.extend(cells(position.legal(geometry)).map(|cell| position.play(geometry, cell)));
        }
    }
    found
}

/// The number of a board in base 3: the first cell is the least significant digit, X is 1 and O is 2.
fn number(board: Board) -> u32 {
    let digit = |cell: u32| {
        let of = |side: Side| (board.stones(side) >> cell & 1) as u32;
        of(Side::X) + 2 * of(Side::O)
    };
    (0..9).map(|cell| digit(cell) * 3_u32.pow(cell)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::ratio::Ratio;
    use evoxo_games::{
        board::Shape,
        net::{Activation, Architecture},
        table::optimum::optimum,
    };

    /// A network without shared weights is embedded completely. A network of filters over tables is not embedded.
    #[test]
    fn a_network_is_included_or_its_absence_explained() {
        let network = |first: First, second: usize, shape: Shape| {
            let architecture =
                Architecture { shape, first, second, biases: true, activation: Activation::Logistic, shared: true };
            let weights = architecture.initial(Stream::root(1));
            let mut card = Card::new(Network { architecture, weights });
            card.about.insert("wins".into(), "exact".into());
            place(&card).expect("it plays a game").into_string()
        };
        let html = network(First::Lines { detectors: 2 }, 3, Shape::SCORE_FOUR);
        let data = |name: &str| html.split(&format!("data-{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        let architecture: Value = serde_json::from_str(&data("network").unwrap().replace("&quot;", "\"")).unwrap();
        assert_eq!((&architecture["second"], &architecture["shared"]), (&json!(24), &json!(false)));
        // Weights and biases of 152 detectors (3 filters in 8 orientations), and of the output.
        let bytes = STANDARD.decode(data("weights").unwrap()).unwrap();
        assert_eq!(bytes.len(), 4 * (152 * 4 + 152 + 152 * 24 + 24 + 24 + 1));
        assert_eq!((data("wins"), data("side")), (Some("exact"), None));
        let flat = network(First::Tuples { states: 4 }, 0, Shape::CONNECT_FOUR);
        assert!(flat.contains("data-weights"), "{}", &flat[..200]);
        for (first, second) in [(First::Tuples { states: 4 }, 2), (First::Lines { detectors: 4 }, 16)] {
            let html = network(first, second, Shape::QUBIC);
            assert!(
                html.contains("You cannot play against this champion in this file: its ") && !html.contains("data-")
            );
        }
    }

    /// The script reads the answers in this order, so there is one for each position, and each is a legal move of the player.
    #[test]
    fn every_answer_is_the_players() {
        let card = Card::new(optimum(Side::O, Ratio::from(100)).player);
        let mut player = player_of_card(&card).unwrap().unwrap().1;
        let (answers, positions) = (answers(&mut player), positions(Game::TicTacToe.geometry()));
        // There are 5,478 positions in all; in 958 of them the game is over.
        assert_eq!((answers.len(), positions.len()), (4520, 4520));
        let mut asked = 0;
        for (answer, position) in answers.chars().zip(positions.into_values()) {
            assert_eq!(answer == '-', position.to_move() == Side::X);
            if let Some(cell) = answer.to_digit(10) {
                asked += 1;
                let rng = &mut Stream::root(1).rng();
                assert_eq!(cell, u32::from(player.choose(position, rng)), "a table leaves nothing to chance");
                assert!(position.legal(Game::TicTacToe.geometry()) >> cell & 1 == 1);
            }
        }
        assert!(asked > 2000, "{asked}");
    }
}
