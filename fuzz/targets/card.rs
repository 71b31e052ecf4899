//! Champions' cards with the files that they name, and files that are champions without a card. A card that is accepted stays
//! the same when it is written and read again, can be shown, and moves if it plays.

#![no_main]

use evoxo_common::{card::Card, rng::Stream};
use evoxo_fuzz::registry;
use evoxo_games::{
    board::{Board, Position, Side},
    player::find::player_of_card,
};
use serde_json::Map;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [what, low, high, rest @ ..] = input else { return };
    if what % 4 == 0 {
        // A file without a card.
        for read in registry().cards().filter_map(|card| card.file).map(|(_, read)| read) {
            if let Ok(champion) = read(rest) {
                check(&Card { champion, about: Map::new() });
            }
        }
        return;
    }
    let (text, beside) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes([*low, *high]))));
    let Ok(text) = std::str::from_utf8(text) else { return };
    match registry().read_card(text, &mut |_| Ok(beside.to_vec())) {
        Ok(card) => check(&card),
        Err(why) => assert!(!why.is_empty()),
    }
});

fn check(card: &Card) {
    let (text, file) = card.write("champion");
    let bytes = file.map(|(_, bytes)| bytes).unwrap_or_default();
    let again = registry().read_card(&text, &mut |_| Ok(bytes.clone()));
    let again = again.unwrap_or_else(|why| panic!("{why}\n{text}"));
    assert_eq!(again.write("champion").0, text);
    drop((card.champion.show(3), card.champion.figures(), card.champion.diagrams()));
    let Ok(Some((_, mut player))) = player_of_card(card) else { return };
    player.play.look_ahead(1);
    let mut rng = Stream::root(1).text("fuzz").rng();
    let mut board = Board::EMPTY;
    if player.side == Some(Side::O) {
        board = board.play(0);
    }
    let chosen = player.play.choose_move(player.geometry, Position::of(player.geometry, board), &mut rng);
    assert!(board.occupied() & (1 << chosen.cell) == 0, "it moves where a stone is");
}
