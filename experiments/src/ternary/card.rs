//! A string's card, and the string as a player.

use std::{any::Any, sync::Arc};

use evoxo_common::{
    card::{CardKind, Champion, Entries, Load, Showing, brief},
    rng::Generator,
    settings::Choice as _,
    text::quoted,
};
use evoxo_games::{
    board::{Board, Geometry, Position, cells, pictures, tic_tac_toe},
    odds::{exact_json, exact_text},
    player::{Move, Play, Player, Thought, equal_shares, line_move, line_thoughts, random::any_of, side_of_card},
};
use serde_json::{Map, Value, json};

use super::player::{Alphabet, Code, Ternary};
use evoxo_games::index::{Classes, PLACEMENT, Strings, board_of, code_of};

/// `{"kind": "ternary", "side": "X", "strings": "short", "alphabet": 3, "genome": "120011..."}`
///
/// `genome` has the letters of the string, in the order of its index table. If mirror images share a place of the string, the
/// card also has `"classes": "symmetries"`.
pub(super) const CARD: CardKind = CardKind { name: "ternary", keys: &KEYS, about: &[], read, file: None };

const KEYS: [&str; 6] = ["kind", "side", "strings", "alphabet", "genome", "classes"];

fn read(entries: &Entries, _: &str, _: &mut Load<'_>) -> Result<Arc<dyn Champion>, String> {
    let side = side_of_card(entries)?;
    let wrong = |key: &str, give: &str| match entries.get(key) {
        Some(value) => format!("the card's {key} is {}, not {give}", brief(value)),
        None => format!("the card has no {key:?}: give {give}"),
    };
    let strings = match entries.get("strings").and_then(Value::as_str) {
        Some("long") => Strings::Long,
        Some("short") => Strings::Short,
        _ => return Err(wrong("strings", "\"long\" or \"short\"")),
    };
    let alphabet = match entries.get("alphabet").and_then(Value::as_u64) {
        Some(9) => Alphabet::Nine,
        Some(3) => Alphabet::Three,
        _ => return Err(wrong("alphabet", "3 or 9")),
    };
    let classes = match entries.get("classes").map(Value::as_str) {
        None | Some(Some("rotations")) => Classes::Rotations,
        Some(Some("symmetries")) => Classes::Symmetries,
        _ => return Err(wrong("classes", "\"rotations\" or \"symmetries\"")),
    };
    let code = Code { side, strings, classes, alphabet };
    let text = entries.get("genome").and_then(Value::as_str).ok_or_else(|| wrong("genome", "a text of digits"))?;
    if let Some((place, letter)) = text.chars().enumerate().find(|(_, letter)| !letter.is_ascii_digit()) {
        return Err(format!("the card's genome: letter {place} is {}, not a digit", quoted(&letter.to_string())));
    }
    let genome: Vec<u8> = text.bytes().map(|digit| digit - b'0').collect();
    code.check(&genome).map_err(|why| format!("the card's genome: {why}"))?;
    Ok(Arc::new(Ternary { code, genome }))
}

/// `kind`, `side`, `strings`, `alphabet` and `genome`, and also `classes` if it is not rotations.
fn to_map(player: &Ternary) -> Map<String, Value> {
    let genome: String = player.genome.iter().map(|letter| char::from(b'0' + letter)).collect();
    let values = [
        "ternary".into(),
        player.code.side.letter().to_string().into(),
        player.code.strings.word().into(),
        player.code.alphabet.letters().into(),
        genome.into(),
    ];
    let classes = (player.code.classes == Classes::Symmetries).then(|| player.code.classes.word().into());
    KEYS.map(String::from).into_iter().zip(values.into_iter().chain(classes)).collect()
}

impl Champion for Ternary {
    fn write(&self, _: &str) -> (Map<String, Value>, Option<(String, Vec<u8>)>) {
        (to_map(self), None)
    }

    fn show(&self, first: usize) -> Showing {
        let (side, total) = (self.code.side.letter(), decisions(self).count());
        let images = match self.code.classes {
            Classes::Rotations => "turns",
            Classes::Symmetries => "turns and mirror images",
        };
        let text = format!(
            "A string that plays {side}: its move on each of {total} boards and, turned, on their {images};\n\
             brackets around a stone mean any empty cell.\n\n"
        );
        let game = tic_tac_toe();
        let json = decisions(self)
            .take(first)
            .map(|(board, cell)| json!({"board": game.board_text(board), "move": game.cell_name(cell)}));
        let drawn = decisions(self).take(first).map(|(board, cell)| pictures::decision(board, cell)).collect();
        Showing { text: text + &pictures::side_by_side(drawn), json: json.collect() }
    }

    fn capability(&self, _: &Map<String, Value>) -> Result<Option<Box<dyn Any>>, String> {
        let (side, name) = (self.code.side, format!("string {}", self.code.side.letter()));
        let play = Box::new(self.clone());
        Ok(Some(Box::new(Player { name, geometry: tic_tac_toe(), side: Some(side), play })))
    }
}

/// The boards of a string's table. Each has the cell that the string names, whether it is taken or empty.
fn decisions(string: &Ternary) -> impl Iterator<Item = (Board, u8)> + '_ {
    let decision = |code: &u16| {
        let decision = string.code.decision(&string.genome, *code)?;
        Some((board_of(*code), PLACEMENT[usize::from(decision.cell)]))
    };
    string.code.index().representatives().iter().filter_map(decision)
}

/// Describes a string and how it moves.
fn about(string: &Ternary) -> String {
    let Ternary { code, genome } = string;
    let (side, letters, alphabet) = (code.side.letter(), code.len(), code.alphabet.letters());
    let rules = match code.strings {
        Strings::Long => "for every board.",
        Strings::Short => "for the boards on which no line can be completed or blocked: its rules do that first.",
    };
    let chance = match code.broken(genome) {
        0 => String::new(),
        broken => format!(
            "\nOn {broken} of {} boards it names a taken cell; there it plays any empty cell.",
            code.index().len()
        ),
    };
    format!(
        "A string that plays {side}: {letters} letters of {alphabet}, {rules}{chance}\n\
         The filter completes or blocks a line before a random move.\n\n"
    )
}

impl Play for Ternary {
    /// A short string's rules move first. If the string names a taken cell, any empty cell is played, as in evolution.
    fn choose_move(&mut self, _: &'static Geometry, position: Position, rng: &mut Generator) -> Move {
        let Self { code, genome } = self;
        let (geometry, board) = (tic_tac_toe(), position.board());
        let chosen = code.choose(genome, board);
        let cell = any_of(chosen, rng);
        if code.strings == Strings::Short && geometry.forced(board) != 0 {
            return line_move(position, geometry, cell);
        }
        let named_taken = chosen.count_ones() > 1;
        Move::new(
            cell,
            if named_taken { "by chance, since its string names a taken cell" } else { "its string names this cell" },
        )
    }

    /// Each empty cell, with what the rules say about it, or with the string's place and letters for this board. The value is
    /// the probability that the player takes the cell.
    fn thoughts(&mut self, geometry: &'static Geometry, position: Position, rng: &mut Generator) -> Vec<Thought> {
        let ruled = self.code.strings == Strings::Short && geometry.forced(position.board()) != 0;
        let decision = self.code.decision(&self.genome, code_of(position.board()));
        let (false, Some(decision)) = (ruled, decision) else {
            return line_thoughts(position, &self.choose_move(geometry, position, rng));
        };
        let (place, letters) = self.code.place(&self.genome, decision);
        let named = PLACEMENT[usize::from(decision.cell)];
        let chosen = self.code.choose(&self.genome, position.board());
        let from = format!("place {place} of {} of its string, {letters}, names", self.code.index().len());
        let thought = |cell: u8| {
            let share = f64::from(u8::from(chosen >> cell & 1 == 1)) / f64::from(chosen.count_ones());
            let says = match (cell == named, chosen.count_ones() > 1) {
                (true, _) => format!("{from} this cell"),
                (_, true) => format!("by chance: {from} {}, which is taken", geometry.cell_name(named)),
                _ => format!("{from} {}", geometry.cell_name(named)),
            };
            Thought { cell, value: Some(share), says }
        };
        cells(position.legal(geometry)).map(thought).collect()
    }

    fn is_random(&self) -> bool {
        self.code.broken(&self.genome) > 0
    }

    fn shares(&mut self, _: &'static Geometry, position: Position) -> Option<Vec<(u8, u32)>> {
        equal_shares(self.code.choose(&self.genome, position.board()))
    }

    fn exact(&self) -> Result<Showing, String> {
        let exact = self.code.subject(&self.genome).exact()?;
        Ok(Showing { text: about(self) + &exact_text(&exact), json: exact_json(&exact) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::{card::Card, rng::Stream};
    use evoxo_games::{board::Side, player::why};

    fn read_card(text: &str) -> Result<Card, String> {
        Card::read(&[&CARD], text, &mut |_| Err("no file".into()))
    }

    #[test]
    fn cards_of_strings_are_read_back() {
        for number in 0..16_usize {
            let code = Code {
                side: Side::BOTH[number & 1],
                strings: Strings::BOTH[number >> 1 & 1],
                alphabet: [Alphabet::Three, Alphabet::Nine][number >> 2 & 1],
                classes: Classes::BOTH[number >> 3],
            };
            let genome = code.random(&mut Stream::root(number as u64).rng());
            let mut card = Card::new(Ternary { code, genome });
            card.about.insert("arm".into(), "X".into());
            let (text, file) = card.write("stem");
            assert_eq!((read_card(&text), file), (Ok(card), None));
        }
    }

    #[test]
    fn invalid_strings_are_rejected() {
        let sentence = |strings: &str, alphabet: &str, genome: &str| {
            let text = format!(
                r#"{{"kind":"ternary","side":"X","strings":{strings},"alphabet":{alphabet},"genome":{genome}}}"#
            );
            read_card(&text).unwrap_err()
        };
        let letters = |count: usize, letter: &str| format!("\"{}\"", letter.repeat(count));
        assert_eq!(sentence("\"shrt\"", "3", "\"\""), "the card's strings is \"shrt\", not \"long\" or \"short\"");
        assert_eq!(sentence("\"short\"", "4", "\"\""), "the card's alphabet is 4, not 3 or 9");
        assert_eq!(sentence("\"short\"", "3", "[0]"), "the card's genome is [0], not a text of digits");
        assert_eq!(
            sentence("\"short\"", "3", &letters(104, "0")),
            "the card's genome: a string for X has 104 letters instead of 208"
        );
        assert_eq!(
            sentence("\"short\"", "3", &letters(208, "3")),
            "the card's genome: letter 0 of a string is 3, but the alphabet has only 0 to 2"
        );
        assert_eq!(sentence("\"short\"", "9", &letters(104, "x")), "the card's genome: letter 0 is \"x\", not a digit");
        let text = r#"{"kind":"ternary","side":"X","strings":"short","alphabet":3,"classes":"flips","genome":"0"}"#;
        let sentence = read_card(text).unwrap_err();
        assert_eq!(sentence, "the card's classes is \"flips\", not \"rotations\" or \"symmetries\"");
        let missing = read_card(r#"{"kind":"ternary","side":"X"}"#).unwrap_err();
        assert_eq!(missing, "the card has no \"strings\": give \"long\" or \"short\"");
    }

    /// The description says how long a string is and how often it names a taken cell. The odds have no filter.
    #[test]
    fn strings_are_described() {
        let text = |strings: Strings, genome: fn(usize) -> Vec<u8>| {
            let code = Code { side: Side::O, strings, classes: Classes::Rotations, alphabet: Alphabet::Three };
            Ternary { code, genome: genome(code.len()) }.exact().unwrap().text
        };
        insta::assert_snapshot!(text(Strings::Short, |letters| vec![0; letters]));
        assert!(text(Strings::Long, |letters| vec![2; letters]).contains("1052 letters of 3, for every board.\nOn "));
    }

    /// The player plays only its own side, turns its move with the board, and plays at random if its string names a taken
    /// cell.
    #[test]
    fn a_string_plays_by_its_letters() {
        let classes = Classes::Rotations;
        let code = Code { side: Side::O, strings: Strings::Short, classes, alphabet: Alphabet::Nine };
        let card = Card::new(Ternary { code, genome: vec![8; code.len()] });
        let mut player: Player = card.capability().unwrap().unwrap();
        assert_eq!((player.name.as_str(), player.side), ("string O", Some(Side::O)));
        assert!(player.play.is_random());
        let rng = &mut Stream::root(1).rng();
        let mut chosen = |board: &str| {
            let position = Position::of(tic_tac_toe(), tic_tac_toe().board_of(board).unwrap());
            player.play.choose_move(player.geometry, position, rng)
        };
        // The chapter's cell 8 is the lower left corner.
        assert_eq!(chosen(".../.X./..."), Move::new(6, "its string names this cell"));
        assert_eq!(chosen("XX./.O./..."), Move::new(2, why::BLOCKS));
        assert_eq!(chosen("XX./OO./X.."), Move::new(5, why::COMPLETES));
        let lots: Vec<Move> = (0..30).map(|_| chosen(".../.../X..")).collect();
        assert!(lots.iter().all(|lot| lot.cell != 6 && lot.why.starts_with("by chance")), "{lots:?}");
        assert!(lots.windows(2).any(|two| two[0] != two[1]));
    }

    /// Each thought says what the rules or the string say about the move.
    #[test]
    fn every_move_has_its_place_in_the_string() {
        let thoughts = |alphabet: Alphabet, letter: u8, board: &str| {
            let code = Code { side: Side::O, strings: Strings::Short, classes: Classes::Rotations, alphabet };
            let mut string = Ternary { code, genome: vec![letter; code.len()] };
            let position = Position::of(tic_tac_toe(), tic_tac_toe().board_of(board).unwrap());
            let all = string.thoughts(tic_tac_toe(), position, &mut Stream::root(1).rng());
            let total: f64 = all.iter().filter_map(|thought| thought.value).sum();
            assert!((total - 1.0).abs() < 1e-9, "they are shares of the chance: {all:?}");
            all
        };
        let of = |all: &[Thought], cell: u8| {
            let thought = all.iter().find(|thought| thought.cell == cell).unwrap();
            (thought.value, thought.says.clone())
        };
        let all = thoughts(Alphabet::Nine, 8, ".../.X./...");
        assert_eq!(all.len(), 8);
        let (value, says) = of(&all, 6);
        assert!(
            value == Some(1.0)
                && says.starts_with("place ")
                && says.ends_with(" of 68 of its string, 8, names this cell"),
            "{says}"
        );
        let (value, says) = of(&all, 0);
        assert!(value == Some(0.0) && says.ends_with(" of its string, 8, names a1"), "{says}");
        // With an alphabet of three, cell 8 is written 22.
        assert_eq!(of(&thoughts(Alphabet::Three, 2, ".../.X./..."), 6).1, of(&all, 6).1.replace(", 8,", ", 22,"));
        let all = thoughts(Alphabet::Nine, 8, ".../.../X..");
        assert!(all.iter().all(|thought| thought.says.starts_with("by chance: place ")), "{all:?}");
        let all = thoughts(Alphabet::Nine, 8, "XX./.O./...");
        assert_eq!(of(&all, 2), (Some(1.0), why::BLOCKS.into()));
        assert_eq!(of(&all, 6), (Some(0.0), "not while a line must be blocked".into()));
    }
}
