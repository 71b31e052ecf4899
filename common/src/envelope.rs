//! The format of every stored object: 8 bytes of magic, a version byte, a kind byte, the length of the body as a
//! little-endian u64, the body, and the SHA-256 of everything before it.

use bytes::Bytes;

use crate::digest::Digest;

const MAGIC: &[u8; 8] = b"evoxo\r\n\0";
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 18;
const CHECKSUM_BYTES: usize = 32;

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// An `Order`.
    Order = 1,
    /// A `Checkpoint`.
    Checkpoint = 2,
    /// A `Finished`.
    Finished = 3,
    /// An epoch: which coordinator owns a run.
    Epoch = 4,
    /// A `Doubt`.
    Doubt = 5,
    /// A `Conviction`.
    Conviction = 6,
    /// A `Revocation`.
    Revocation = 7,
    /// An `AuditLog`.
    AuditLog = 8,
    /// An `Index`.
    Index = 9,
    /// A `Cordons`.
    Cordons = 10,
    /// A `KnownOutputs`.
    KnownOutputs = 11,
}

/// The reason why bytes are not a valid object. Each completes the sentence "the object X ...".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Fewer or more bytes than the header says.
    Length,
    /// Does not begin with the magic.
    Foreign,
    /// A version that this build does not know.
    Version(u8),
    /// Another kind of object than the name says.
    Kind(u8),
    /// The checksum does not match.
    Checksum,
    /// The checksum matches, but the body is not the expected message.
    Body,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Length => f.write_str("is truncated or has bytes added"),
            Self::Foreign => f.write_str("was not written by evoxo"),
            Self::Version(version) => write!(f, "has format version {version}, but this build knows only {VERSION}"),
            Self::Kind(kind) => write!(f, "is of kind {kind}, which does not fit its name"),
            Self::Checksum => f.write_str("has changed since it was written: its checksum does not fit"),
            Self::Body => f.write_str("has a valid checksum but cannot be read"),
        }
    }
}

impl std::error::Error for Damage {}

/// Wraps a body.
#[must_use]
pub fn seal(kind: Kind, body: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len() + CHECKSUM_BYTES);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[VERSION, kind as u8]);
    bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
    bytes.extend_from_slice(body);
    let checksum = Digest::of(&bytes);
    bytes.extend_from_slice(&checksum.0);
    bytes.into()
}

/// The bytes of the object with which these bytes begin, as its header says.
///
/// # Errors
/// A [`Damage`], if no object begins here or its end is missing.
pub fn length(bytes: &[u8]) -> Result<usize, Damage> {
    if bytes.len() < HEADER_BYTES + CHECKSUM_BYTES {
        return Err(Damage::Length);
    }
    if !bytes.starts_with(MAGIC) {
        return Err(Damage::Foreign);
    }
    let body = bytes[10..HEADER_BYTES].try_into().map(u64::from_le_bytes).map_err(|_| Damage::Length)?;
    let length = usize::try_from(body).ok().and_then(|body| body.checked_add(HEADER_BYTES + CHECKSUM_BYTES));
    length.filter(|length| *length <= bytes.len()).ok_or(Damage::Length)
}

/// The first 8 bytes of an object's checksum, as a number: it tells objects of the same length apart. `None` if there are too
/// few bytes for a checksum.
#[must_use]
pub fn mark(sealed: &[u8]) -> Option<u64> {
    let checksum = sealed.len().checked_sub(CHECKSUM_BYTES).map(|begin| &sealed[begin..])?;
    checksum.first_chunk().map(|first| u64::from_le_bytes(*first))
}

/// Takes the first object off several ones that follow each other; `None` if the bytes do not begin with a whole object.
#[must_use]
pub fn cut(bytes: &mut Bytes) -> Option<Bytes> {
    let whole = length(bytes).ok()?;
    Some(bytes.split_to(whole))
}

/// Unwraps a body.
///
/// # Errors
/// A [`Damage`] that says what is wrong with the bytes.
pub fn open(kind: Kind, bytes: &Bytes) -> Result<Bytes, Damage> {
    let prefix = &bytes[..bytes.len().min(MAGIC.len())];
    if prefix.is_empty() || !MAGIC.starts_with(prefix) {
        return Err(if prefix.is_empty() { Damage::Length } else { Damage::Foreign });
    }
    if bytes.len() < HEADER_BYTES + CHECKSUM_BYTES {
        return Err(Damage::Length);
    }
    if bytes[8] != VERSION {
        return Err(Damage::Version(bytes[8]));
    }
    let body_end = bytes.len() - CHECKSUM_BYTES;
    let length = bytes[10..HEADER_BYTES].try_into().map(u64::from_le_bytes).map_err(|_| Damage::Length)?;
    if length != (body_end - HEADER_BYTES) as u64 {
        return Err(Damage::Length);
    }
    if Digest::of(&bytes[..body_end]).0 != bytes[body_end..] {
        return Err(Damage::Checksum);
    }
    if bytes[9] != kind as u8 {
        return Err(Damage::Kind(bytes[9]));
    }
    Ok(bytes.slice(HEADER_BYTES..body_end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sealed_envelopes_can_be_opened(body: Vec<u8>) {
            let sealed = seal(Kind::Checkpoint, &body);
            prop_assert_eq!(open(Kind::Checkpoint, &sealed).unwrap(), &body[..]);
            prop_assert!(open(Kind::Order, &sealed).is_err());
            prop_assert_eq!(length(&[&sealed[..], &body].concat()), Ok(sealed.len()));
            prop_assert!(length(&sealed[..sealed.len() - 1]).is_err() && length(&sealed[1..]).is_err());
        }

        #[test]
        fn flipped_bits_and_truncation_are_detected(body: Vec<u8>, position: prop::sample::Index, bit in 0..8_u8) {
            let sealed = seal(Kind::Checkpoint, &body);
            let mut flipped = sealed.to_vec();
            flipped[position.index(sealed.len())] ^= 1 << bit;
            prop_assert!(open(Kind::Checkpoint, &flipped.into()).is_err());
            prop_assert!(open(Kind::Checkpoint, &sealed.slice(..position.index(sealed.len()))).is_err());
        }
    }
}
