//! Converts a learner between the form in which messages carry it and the types that compute. Messages are checked here and
//! nowhere else.

use bytes::Bytes;
use evoxo_common::{rng::Stream, task::Refusal};
use evoxo_games::net::{
    Architecture,
    learn::{Learning, Tally},
};

use super::{
    messages,
    settings::{SCHEMA, Settings},
};

/// A network, how it learns, and where its random numbers come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// It has at most [`WEIGHTS_MAX`](super::settings::WEIGHTS_MAX) weights.
    pub architecture: Architecture,
    /// See [`evoxo_games::net::learn`].
    pub learning: Learning,
    /// The replica's stream.
    pub stream: Stream,
}

impl Trial {
    /// The trial of a replica with these settings and this stream.
    #[must_use]
    pub fn new(settings: &Settings, stream: Stream) -> Self {
        Self { architecture: settings.architecture(), learning: settings.learning(), stream }
    }
}

/// Reads and checks a trial and its settings.
///
/// # Errors
/// A message that says what is invalid.
pub fn read_trial(trial: Option<&messages::Trial>) -> Result<(Trial, Settings), Refusal> {
    let trial = trial.ok_or_else(|| Refusal("the task has no trial".into()))?;
    let values = SCHEMA.read(&trial.settings).map_err(|why| Refusal(format!("the task's settings: {why}")))?;
    let settings = Settings::of(&values);
    let stream = Stream::from_words(trial.stream_high, trial.stream_low);
    Ok((Trial::new(&settings, stream), settings))
}

/// A trial as a message, with the text of its settings. [`read_trial`] is the inverse.
#[must_use]
pub fn write_trial(settings: String, stream: Stream) -> messages::Trial {
    messages::Trial { settings, stream_high: stream.high(), stream_low: stream.low() }
}

impl From<Tally> for messages::Tally {
    fn from(Tally { wins, draws, .. }: Tally) -> Self {
        Self { wins, draws }
    }
}

/// Weights as messages carry them and as they are stored: f32, little endian.
#[must_use]
pub fn write_weights(weights: &[f32]) -> Bytes {
    let mut bytes = vec![0; 4 * weights.len()];
    for (place, weight) in bytes.as_chunks_mut().0.iter_mut().zip(weights) {
        *place = weight.to_le_bytes();
    }
    bytes.into()
}

/// The inverse of [`write_weights`].
///
/// # Errors
/// A message if the number of weights is not `count`, or if one is not finite.
pub fn read_weights(bytes: &Bytes, count: usize) -> Result<Vec<f32>, Refusal> {
    let (chunks, rest) = bytes.as_chunks::<4>();
    if chunks.len() != count || !rest.is_empty() {
        return Err(Refusal(format!("{} bytes are not {count} weights of 4 bytes", bytes.len())));
    }
    let weights: Vec<f32> = chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect();
    match weights.iter().position(|weight| !weight.is_finite()) {
        Some(index) => Err(Refusal(format!("weight {index} is not a finite number"))),
        None => Ok(weights),
    }
}
