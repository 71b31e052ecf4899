//! How the bytes of an input are cut into steps: two bytes that say what is done and to whom, the length of its bytes
//! as two bytes (little endian), and its bytes. A length that is too large takes the rest, so that every input has a
//! meaning.

use bytes::Bytes;

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// What is done.
    pub what: u8,
    /// To whom.
    pub whom: u8,
    /// With these bytes.
    pub bytes: Bytes,
}

/// The steps of an input, at most this many.
pub fn steps(input: &[u8], most: usize) -> impl Iterator<Item = Step> {
    let mut rest = Bytes::copy_from_slice(input);
    std::iter::from_fn(move || {
        let head = rest.get(..4)?;
        let (what, whom, length) = (head[0], head[1], usize::from(u16::from_le_bytes([head[2], head[3]])));
        let mut bytes = rest.split_off(4);
        rest = bytes.split_off(length.min(bytes.len()));
        Some(Step { what, whom, bytes })
    })
    .take(most)
}

/// The bytes of a step: the inverse of [`steps`], for corpora.
pub fn step(what: u8, whom: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("a step of a corpus is short").to_le_bytes();
    [&[what, whom, length[0], length[1]][..], bytes].concat()
}
