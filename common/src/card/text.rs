//! Champions that consist of one text: their cards have one entry in addition to the kind.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Card, CardKind, Champion, FileBeside, Showing};
use crate::experiment::Experiment;

/// An experiment whose champions consist of one text, such as a string of bits. Its cards carry its name: `{"kind": "onemax",
/// "bits": "1101"}`.
pub trait TextCard: Experiment {
    /// The key of the text.
    const KEY: &'static str;
    /// The letters that the text may contain.
    const LETTERS: &'static str;

    /// Whether a text contains only these letters.
    #[must_use]
    fn accepts(text: &str) -> bool {
        text.chars().all(|letter| Self::LETTERS.contains(letter))
    }

    /// The card of a champion.
    #[must_use]
    fn card(text: &str) -> Card {
        Card::new(Text { kind: Self::NAME, key: Self::KEY, text: text.to_owned() })
    }
}

impl CardKind {
    /// The kind of card that `T` describes.
    #[must_use]
    pub const fn of_text<T: TextCard>() -> Self {
        Self {
            name: T::NAME,
            keys: const { &["kind", T::KEY] },
            about: &[],
            read: |entries, _, _| {
                let text = entries.get(T::KEY).and_then(Value::as_str).filter(|text| T::accepts(text));
                let text =
                    text.ok_or_else(|| format!("the card's {:?} is not a text of the letters {}", T::KEY, T::LETTERS))?;
                Ok(Arc::new(Text { kind: T::NAME, key: T::KEY, text: text.to_owned() }))
            },
            file: None,
        }
    }
}

/// A champion that consists of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    kind: &'static str,
    key: &'static str,
    text: String,
}

impl Text {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Champion for Text {
    fn write(&self, _: &str) -> (Map<String, Value>, Option<FileBeside>) {
        let entries = [("kind", self.kind), (self.key, &self.text)];
        (entries.map(|(key, text)| (key.to_owned(), text.into())).into_iter().collect(), None)
    }

    fn show(&self, first: usize) -> Showing {
        let (key, letters) = (self.key, self.text.chars().count());
        let shown: String = self.text.chars().take(first).collect();
        Showing { text: format!("{letters} {key}.\n\n{shown}\n"), json: json!({"length": letters, key: shown}) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sums;

    impl TextCard for Sums {
        const KEY: &'static str = "bits";
        const LETTERS: &'static str = "01";
    }

    #[test]
    fn a_text_is_written_read_and_shown() {
        static KIND: CardKind = CardKind::of_text::<Sums>();
        let card = Sums::card("1101");
        let (written, _) = card.write("card");
        let mut load = |_: &str| Err("there is no file".into());
        let read = Card::read(&[&KIND], &written, &mut load).unwrap();
        assert_eq!((&read, read.champion_as().map(Text::as_str)), (&card, Some("1101")));
        let Showing { text, json } = card.champion.show(2);
        assert_eq!((text.as_str(), json), ("4 bits.\n\n11\n", json!({"length": 4, "bits": "11"})));
        for wrong in [json!("12"), json!(3), Value::Null] {
            let why = Card::read(&[&KIND], &json!({"kind": "sums", "bits": wrong}).to_string(), &mut load);
            assert_eq!(why.unwrap_err(), "the card's \"bits\" is not a text of the letters 01");
        }
    }
}
