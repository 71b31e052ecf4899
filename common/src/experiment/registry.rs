//! The kinds of experiments that a program knows.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use evoxo_proto::v1::KindSignature;

use super::{Asks, Kind, kind::unknown_task};
use crate::{
    card::{Card, CardKind},
    digest::Digest,
    play::Play,
    task::{Encoded, ProgramId, Programs, Refusal, Task, serves},
};

/// The kinds of experiments that a program knows, passed to all code that distinguishes them. Cheap to clone.
///
/// A program can add its own kinds to those of evoxo: `registry().with(&[mine::KIND])`.
#[derive(Clone, Debug)]
pub struct Registry {
    kinds: Vec<&'static Kind>,
    play: Option<&'static Play>,
    /// The signatures, in the order of the kinds.
    signatures: Arc<OnceLock<Vec<Digest>>>,
}

impl Registry {
    /// A registry of these kinds.
    ///
    /// # Panics
    /// If two kinds have the same name.
    #[must_use]
    pub fn new(kinds: impl IntoIterator<Item = &'static Kind>) -> Self {
        let mut registry = Self { kinds: Vec::new(), play: None, signatures: Arc::default() };
        for kind in kinds {
            assert!(registry.kind(kind.name).is_none(), "two kinds of experiments are called {}", kind.name);
            registry.kinds.push(kind);
        }
        registry
    }

    /// This registry with further kinds.
    ///
    /// # Panics
    /// If two kinds have the same name.
    #[must_use]
    pub fn with(&self, more: &'static [Kind]) -> Self {
        Self { play: self.play, ..Self::new(self.kinds.iter().copied().chain(more)) }
    }

    /// This registry, with what the program offers for playing against champions.
    #[must_use]
    pub fn playing(self, play: &'static Play) -> Self {
        Self { play: Some(play), ..self }
    }

    /// What the program offers for playing against champions.
    #[must_use]
    pub fn play(&self) -> Option<&'static Play> {
        self.play
    }

    /// All kinds.
    #[must_use]
    pub fn kinds(&self) -> &[&'static Kind] {
        &self.kinds
    }

    /// The kind with this name.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<&'static Kind> {
        self.kinds.iter().copied().find(|kind| kind.name == name)
    }

    /// The kinds of cards of all champions; each name occurs once.
    pub fn cards(&self) -> impl Iterator<Item = &'static CardKind> {
        let mut seen: Vec<&str> = Vec::new();
        let all = self.kinds.iter().flat_map(|kind| kind.cards);
        all.filter(move |card| {
            !seen.contains(&card.name) && {
                seen.push(card.name);
                true
            }
        })
    }

    /// Reads a champion's card; see [`Card::read`].
    ///
    /// # Errors
    /// A sentence that says what is wrong with the card.
    pub fn read_card(&self, text: &str, load: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>) -> Result<Card, String> {
        Card::read(&self.cards().collect::<Vec<_>>(), text, load)
    }

    /// Decodes a task.
    ///
    /// # Errors
    /// A [`Refusal`] if there are too many bytes, if they are not a task, or if the task's kind is unknown.
    pub fn decode(&self, encoded: &Encoded) -> Result<Task, Refusal> {
        let task = encoded.message().map_err(Refusal)?;
        match self.kind(&task.kind) {
            Some(kind) => kind.task(task),
            None => Err(unknown_task(&task)),
        }
    }

    /// Computes an encoded task with these programs; returns its encoded output.
    ///
    /// # Errors
    /// A [`Refusal`] if the bytes are not a task, if the task is invalid, or if a program that it asks fails.
    pub fn run(&self, encoded: &Encoded, programs: &mut dyn Programs) -> Result<Bytes, Refusal> {
        self.decode(encoded)?.run_asking(programs)
    }

    /// The signature of each kind.
    #[must_use]
    pub fn signatures(&self) -> Vec<KindSignature> {
        let hashes = self.hashes().iter().map(|hash| Bytes::copy_from_slice(&hash.0));
        self.kinds.iter().zip(hashes).map(|(kind, sha256)| KindSignature { kind: kind.name.into(), sha256 }).collect()
    }

    /// [`Kind::signature`], computed once.
    ///
    /// # Panics
    /// If the kind is not in the registry.
    #[must_use]
    pub fn signature(&self, kind: &Kind) -> Digest {
        let place = self.kinds.iter().position(|other| other.name == kind.name);
        self.hashes()[place.expect("a kind of this registry")]
    }

    /// Asks the program of this name for its signature, once for each kind that it serves.
    ///
    /// # Errors
    /// The [`Refusal`] if the program fails, or is not a program for one of these kinds.
    pub fn introduce(
        &self,
        name: &str,
        programs: &mut dyn Programs,
    ) -> Result<Vec<(&'static Kind, ProgramId)>, Refusal> {
        let asking = || self.kinds.iter().filter_map(|kind| Some((*kind, kind.asks.as_ref()?)));
        if asking().next().is_none() {
            return Ok(Vec::new());
        }
        let served = serves(&programs.introduction(name)?);
        let serving =
            |(kind, asks): &(&Kind, &Asks)| served.as_ref().map_or(asks.is_default, |served| kind.name == served);
        if let Some(served) = served.as_ref().filter(|_| !asking().any(|one| serving(&one))) {
            return Err(Refusal(format!(
                "the program {name} serves experiments of the kind {served:?}, which call no programs in this build"
            )));
        }
        let of = |(kind, asks): (&'static Kind, &Asks)| {
            let signature = Some((asks.signature)(name, programs)?);
            Ok((kind, ProgramId { name: name.to_owned(), signature }))
        };
        asking().filter(serving).map(of).collect()
    }

    fn hashes(&self) -> &[Digest] {
        self.signatures.get_or_init(|| self.kinds.iter().map(|kind| kind.signature()).collect())
    }
}
