//! Tokens: a token is one line with which a machine or a person joins a cluster.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use subtle::ConstantTimeEq as _;

use crate::{certificate::Pin, identity::Id};

/// The first part of every token.
const VERSION: &str = "evoxo1";

/// A token's secret. It is shown only in the token itself.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Draws a new secret.
    #[must_use]
    pub fn draw() -> Self {
        Self(crate::random())
    }

    /// A secret as received; `None` if its length is wrong.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The bytes to send.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The secret as written in a token and in a cookie.
    #[must_use]
    pub fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// The inverse of [`Self::text`].
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        Self::from_bytes(&URL_SAFE_NO_PAD.decode(text).ok()?)
    }

    /// The hash that a coordinator stores. The secret has 256 random bits, so a slow hash would add nothing.
    #[must_use]
    pub fn hash(&self) -> SecretHash {
        SecretHash(digest(&SHA256, &self.0).as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// The hash of a secret.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    /// Whether this is the hash of the secret. The time does not depend on where the hashes differ.
    #[must_use]
    pub fn is_of(&self, secret: &Secret) -> bool {
        self.0.ct_eq(&secret.hash().0).into()
    }
}

impl From<SecretHash> for String {
    fn from(hash: SecretHash) -> Self {
        URL_SAFE_NO_PAD.encode(hash.0)
    }
}

impl TryFrom<String> for SecretHash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or("it is not the hash of a secret")
    }
}

/// A token: it lets its holder join, and identifies the cluster.
#[derive(Clone, Debug)]
pub struct Token {
    /// The token's number.
    pub id: Id,
    /// The secret, which proves that the token was given to its holder.
    pub secret: Secret,
    /// The hash of the authority's key.
    pub pin: Pin,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION}.{}.{}.{}", self.id, self.secret.text(), self.pin)
    }
}

/// The text of a token as typed. If clap parsed the token itself, its error would repeat a mistyped token, including the
/// secret.
#[derive(Clone)]
pub struct Typed(String);

impl Typed {
    /// The token.
    ///
    /// # Errors
    /// A sentence that does not contain the text.
    pub fn token(&self) -> Result<Token, String> {
        self.0.parse()
    }
}

impl From<&str> for Typed {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Typed")
    }
}

impl FromStr for Token {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.trim().split('.').collect();
        let token = match parts.as_slice() {
            [VERSION, id, secret, pin] => id
                .parse()
                .ok()
                .zip(pin.parse().ok())
                .and_then(|(id, pin)| Some(Self { id, secret: Secret::from_text(secret)?, pin })),
            _ => None,
        };
        // Do not repeat the text: it may contain most of a secret.
        token.ok_or_else(|| {
            format!("it is not a token: a token looks like {VERSION}.ID.SECRET.PIN, as `evoxo token create` prints it")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_printed_tokens_can_be_parsed() {
        let directory = tempfile::tempdir().unwrap();
        let authority = crate::Authority::create(directory.path(), crate::now_s()).unwrap();
        let token = Token { id: Id::draw(), secret: Secret::draw(), pin: authority.pin().unwrap() };
        let text = token.to_string();
        let read: Token = text.parse().unwrap();
        assert_eq!((&read.id, read.pin, read.secret.bytes()), (&token.id, token.pin, token.secret.bytes()));
        assert!(read.secret.hash().is_of(&token.secret) && !Secret::draw().hash().is_of(&token.secret));
        assert_ne!(String::from(token.secret.hash()), token.secret.text(), "a coordinator does not store the secret");
        assert!(!format!("{token:?}").contains(&text[20..40]), "a secret is not logged");
        for wrong in ["", "evoxo1", &text[1..], &text[..text.len() - 1], &format!("{text}.x"), &text.replace('.', "-")]
        {
            let sentence = wrong.parse::<Token>().unwrap_err();
            assert!(sentence.contains("it is not a token") && !sentence.contains(&text[20..40]), "{sentence}");
        }
    }
}
