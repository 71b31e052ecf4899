//! Champions' cards: a champion as a JSON text that people can read, write and send.
//!
//! ```json
//! {"kind": "table", "side": "O", "moves": {"X........": 4, ".X.......": 0}}
//! ```
//!
//! `kind` says which [`CardKind`] reads the card; each kind has its own keys. A card of any kind may also say where it comes
//! from (the keys of [`ABOUT`]) and how strong it is (those of [`CardKind::about`]). It has no other keys. Large data is in a
//! file next to the card, which the card names.

mod text;

use std::{any::Any, fmt, sync::Arc};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

pub use text::{Text, TextCard};

use crate::{plot::Diagram, report::Figure, text::quoted};

/// The longest card, in bytes. A card with 100,000 numbers, each on its own line, is shorter.
pub const CARD_BYTES_MAX: usize = 4 << 20;
/// The longest file next to a card, in bytes.
pub const FILE_BYTES_MAX: usize = 1 << 28;

/// The keys of any card that say where it comes from.
pub const ABOUT: [&str; 6] = ["game", "experiment", "arm", "replica", "digest", "seed"];

/// Reads the file with this name next to a card. An error is a sentence that says why it cannot be read.
pub type Load<'a> = dyn FnMut(&str) -> Result<Vec<u8>, String> + 'a;

/// The name and the bytes of the file next to a card.
pub type FileBeside = (String, Vec<u8>);

/// The champion that was read, or a sentence that says what is wrong with it.
pub type Found = Result<Arc<dyn Champion>, String>;

/// The extension of files that are champions without a card, and a function that reads them.
pub type ReadFile = (&'static str, fn(&[u8]) -> Found);

/// A champion of some kind.
pub trait Champion: Any + fmt::Debug + Send + Sync {
    /// Writes the keys of its card, including `kind`, and the name and bytes of the file next to the card, if there is one.
    /// `stem` is the card's own file name without extension.
    fn write(&self, stem: &str) -> (Map<String, Value>, Option<FileBeside>);

    /// Describes its contents, for `evoxo show`: only the first `first` parts (rules, boards, layers, genes).
    fn show(&self, first: usize) -> Showing;

    /// The answer to what was searched for, in a few lines for the end of a run. `None` for players of games, whose strength
    /// is shown in tables.
    fn answer(&self) -> Option<Answer> {
        None
    }

    /// Its curves, for `evoxo show --plots`: functions that [`crate::plot::svg`] draws. Most champions have none.
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    /// Its weights as pictures, for `evoxo show --plots`, reports and the page. Only networks have some.
    fn diagrams(&self) -> Vec<Diagram> {
        Vec::new()
    }

    /// An ability in addition to those of this trait: a value of a type that the caller knows, such as a player of a game.
    /// `about` holds the card's other keys.
    ///
    /// # Errors
    /// A sentence if the card's description of the ability is invalid.
    fn capability(&self, _about: &Map<String, Value>) -> Result<Option<Box<dyn Any>>, String> {
        Ok(None)
    }
}

/// A champion that answers a search, in rounded numbers. The card has all digits.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What the answer is: "The best candidate".
    pub what: String,
    /// Its values, each with its name.
    pub values: Vec<(String, String)>,
    /// Its parts, each with its name. They may be long.
    pub parts: Vec<(String, String)>,
}

/// A description of a champion's contents.
#[derive(Clone, Debug, PartialEq)]
pub struct Showing {
    /// A few lines of text, for people.
    pub text: String,
    /// The contents, for programs.
    pub json: Value,
}

/// A kind of card.
pub struct CardKind {
    /// The value of the card's key `kind`.
    pub name: &'static str,
    /// The keys that belong to the champion, including `kind`.
    pub keys: &'static [&'static str],
    /// Further keys, which say how strong it is.
    pub about: &'static [&'static str],
    /// Reads the champion of a card with these entries and this text. An error is a sentence that says what is wrong.
    pub read: fn(&Entries, &str, &mut Load<'_>) -> Found,
    /// The extension of files that are champions without a card, and a function that reads them.
    pub file: Option<ReadFile>,
}

/// A champion, and what is known about it.
#[derive(Clone, Debug)]
pub struct Card {
    /// The champion.
    pub champion: Arc<dyn Champion>,
    /// The card's other keys, in their order.
    pub about: Map<String, Value>,
}

impl PartialEq for Card {
    /// Whether the written forms are equal.
    fn eq(&self, other: &Self) -> bool {
        self.write("card") == other.write("card")
    }
}

impl Card {
    /// A champion without further information.
    #[must_use]
    pub fn new(champion: impl Champion) -> Self {
        Self { champion: Arc::new(champion), about: Map::new() }
    }

    /// Reads a card of one of these kinds.
    ///
    /// # Errors
    /// If the text or the file next to the card is too long or invalid: one sentence that says what is wrong.
    pub fn read(kinds: &[&'static CardKind], text: &str, load: &mut Load<'_>) -> Result<Self, String> {
        if text.len() > CARD_BYTES_MAX {
            return Err(format!("the card has {} bytes, more than {CARD_BYTES_MAX}", text.len()));
        }
        let entries: Entries = serde_json::from_str(text).map_err(|error| match error.is_data() {
            true => "it is not a card, which is a JSON object with a \"kind\"".into(),
            false => format!("the card is not JSON: {error}"),
        })?;
        if let Some(twice) = entries.twice() {
            return Err(format!("the card has the key {} twice", quoted(twice)));
        }
        let known: Vec<String> = kinds.iter().map(|kind| format!("{:?}", kind.name)).collect();
        let known = known.join(", ");
        let named = entries.get("kind").ok_or_else(|| format!("the card has no \"kind\": there are {known}"))?;
        let kind = kinds.iter().find(|kind| named.as_str() == Some(kind.name));
        let kind = kind.ok_or_else(|| format!("the card's kind is {}, but only {known} are known", brief(named)))?;
        let champion = (kind.read)(&entries, text, load)?;
        let about = |key: &str| ABOUT.contains(&key) || kind.about.contains(&key);
        let is_known = |key: &&str| kind.keys.contains(key) || about(key);
        if let Some(other) = entries.0.iter().map(|(key, _)| key.as_str()).find(|key| !is_known(key)) {
            let (other, own) = (quoted(other), kind.keys.join(", "));
            return Err(format!("the card has an unknown key {other}: leave it out, or use one of {own}"));
        }
        let about = entries.0.into_iter().filter(|(key, _)| !kind.keys.contains(&key.as_str())).collect();
        Ok(Self { champion, about })
    }

    /// The card's text, with a line break at the end, and the name and bytes of the file next to the card, if there is one.
    /// `stem` is the card's own file name without extension. [`Card::read`] is the inverse.
    #[must_use]
    pub fn write(&self, stem: &str) -> (String, Option<FileBeside>) {
        let (mut map, file) = self.champion.write(stem);
        map.extend(self.about.clone());
        (format!("{:#}\n", Value::Object(map)), file)
    }

    /// The champion as a value of this type, if it is one.
    #[must_use]
    pub fn champion_as<T: Champion>(&self) -> Option<&T> {
        let champion: &dyn Any = &*self.champion;
        champion.downcast_ref()
    }

    /// An ability of this type, if the champion has it; see [`Champion::capability`].
    ///
    /// # Errors
    /// A sentence if the card's description of the ability is invalid.
    pub fn capability<T: Any>(&self) -> Result<Option<T>, String> {
        let capability = self.champion.capability(&self.about)?;
        Ok(capability.and_then(|capability| capability.downcast().ok()).map(|capability| *capability))
    }
}

/// A value from outside, for a one-line message: control characters are escaped as in JSON, and the text is cut after 40
/// letters.
#[must_use]
pub fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// The entries of a JSON object, in order, including keys that occur twice.
#[derive(Debug)]
pub struct Entries(Vec<(String, Value)>);

impl Entries {
    /// The entries in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The entries as a list.
    #[must_use]
    pub fn into_vec(self) -> Vec<(String, Value)> {
        self.0
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(other, _)| other == key).map(|(_, value)| value)
    }

    /// A key that occurs twice.
    #[must_use]
    pub fn twice(&self) -> Option<&str> {
        let mut keys: Vec<&str> = self.0.iter().map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Entries;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Object)
    }
}
