//! How the bytes of an input are cut into steps. A step consists of two bytes that choose the action and its target, the
//! length of its data as two bytes (little endian), and the data. A length that is too large takes the rest of the input, so
//! every input is valid.

use bytes::Bytes;

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// The action.
    pub what: u8,
    /// The target of the action.
    pub whom: u8,
    /// The data of the action.
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

/// The bytes of a step, for corpora: the inverse of [`steps`].
pub fn step(what: u8, whom: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("a step of a corpus is short").to_le_bytes();
    [&[what, whom, length[0], length[1]][..], bytes].concat()
}
