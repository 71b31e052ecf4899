//! SHA-256, which names tasks, and is the digest of states and objects.

use sha2::{Digest as _, Sha256};

/// A SHA-256 hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The hash of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The hash of several pieces, each preceded by its length, so that no other division into pieces gives the same
    /// hash.
    pub fn of_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = Sha256::new();
        for piece in pieces {
            hasher.update((piece.len() as u64).to_le_bytes());
            hasher.update(piece);
        }
        Self(hasher.finalize().into())
    }

    /// The digest with these 32 bytes; `None` for any other number of bytes.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Parses a digest from 64 hexadecimal digits, as it is displayed; `None` if the text is not a digest.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let plain = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let byte = |place: usize| u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok();
        let bytes: Vec<u8> = (0..32).map(byte).collect::<Option<_>>().filter(|_| plain)?;
        Self::from_slice(&bytes)
    }

    /// The first 16 hexadecimal digits, which are enough to name an object or a build for people.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string()[..16].to_owned()
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.short())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_matches_the_published_vector() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), expected);
    }

    #[test]
    fn the_digest_depends_on_piece_boundaries() {
        let cut = Digest::of_pieces([b"ab".as_slice(), b"c"]);
        assert_ne!(cut, Digest::of_pieces([b"a".as_slice(), b"bc"]));
        assert_ne!(cut, Digest::of_pieces([b"abc".as_slice()]));
    }
}
