//! A player made of a string as part of its card.
//!
//! ```json
//! {"kind": "ternary", "side": "X", "strings": "short", "alphabet": 3, "genome": "120011..."}
//! ```

use serde_json::{Map, Value};

use super::{Entries, brief, side_of};
use crate::{
    board::quoted,
    experiment::ternary::{
        index::Strings,
        player::{Alphabet, Code, Ternary},
    },
};

/// The keys that belong to the player.
pub(super) const KEYS: [&str; 5] = ["kind", "side", "strings", "alphabet", "genome"];

/// The player of a card.
pub(super) fn read(entries: &Entries) -> Result<Ternary, String> {
    let side = side_of(entries)?;
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
    let code = Code { side, strings, alphabet };
    let text = entries.get("genome").and_then(Value::as_str).ok_or_else(|| wrong("genome", "a text of digits"))?;
    if let Some((place, letter)) = text.chars().enumerate().find(|(_, letter)| !letter.is_ascii_digit()) {
        return Err(format!("the card's genome: letter {place} is {}, not a digit", quoted(&letter.to_string())));
    }
    let genome: Vec<u8> = text.bytes().map(|digit| digit - b'0').collect();
    code.check(&genome).map_err(|why| format!("the card's genome: {why}"))?;
    Ok(Ternary { code, genome })
}

/// `kind`, `side`, `strings`, `alphabet` and `genome`.
pub(super) fn to_map(player: &Ternary) -> Map<String, Value> {
    let strings = if player.code.strings == Strings::Long { "long" } else { "short" };
    let genome: String = player.genome.iter().map(|letter| char::from(b'0' + letter)).collect();
    let values = [
        "ternary".into(),
        player.code.side.letter().to_string().into(),
        strings.into(),
        player.code.alphabet.letters().into(),
        genome.into(),
    ];
    KEYS.map(String::from).into_iter().zip(values).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Card, Player};
    use super::*;
    use crate::{board::Side, rng::Stream};

    #[test]
    fn cards_of_strings_are_read_as_written() {
        for number in 0..8_usize {
            let code = Code {
                side: Side::BOTH[number & 1],
                strings: Strings::BOTH[number >> 1 & 1],
                alphabet: [Alphabet::Three, Alphabet::Nine][number >> 2],
            };
            let genome = code.random(&mut Stream::root(number as u64).rng());
            let mut card = Card::from(Player::Ternary(Ternary { code, genome }));
            card.about.insert("arm".into(), "X".into());
            let (text, file) = card.write("stem");
            assert_eq!((Card::read(&text, |_| Err("no file".into())), file), (Ok(card), None));
        }
    }

    #[test]
    fn what_is_no_string_is_refused() {
        let sentence = |strings: &str, alphabet: &str, genome: &str| {
            let text = format!(
                r#"{{"kind":"ternary","side":"X","strings":{strings},"alphabet":{alphabet},"genome":{genome}}}"#
            );
            Card::read(&text, |_| Err(String::new())).unwrap_err()
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
        let missing = Card::read(r#"{"kind":"ternary","side":"X"}"#, |_| Err(String::new())).unwrap_err();
        assert_eq!(missing, "the card has no \"strings\": give \"long\" or \"short\"");
    }
}
