//! Roles and identities.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// What the holder of a certificate may do. The coordinator's table, and the comment of each call in `proto/`, say which
/// calls a role may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Views runs and fetches results.
    Viewer,
    /// Like a viewer, and submits runs, and pauses, resumes, cancels and deletes those that it submitted.
    Submitter,
    /// May do everything that people can do, including managing tokens and identities.
    Operator,
    /// Computes tasks.
    Worker,
    /// Computes tasks on a machine whose outputs the operator trusts.
    TrustedWorker,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 5] = [Self::Viewer, Self::Submitter, Self::Operator, Self::Worker, Self::TrustedWorker];

    /// Its name in certificates, files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Submitter => "submitter",
            Self::Operator => "operator",
            Self::Worker => "worker",
            Self::TrustedWorker => "trusted-worker",
        }
    }

    /// Whether the role is for machines that compute, not for people.
    #[must_use]
    pub fn is_worker(self) -> bool {
        matches!(self, Self::Worker | Self::TrustedWorker)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no role {:?}: use one of {names}", text.chars().take(40).collect::<String>())
        })
    }
}

/// The number of an identity or a token: 12 hexadecimal digits, drawn at random.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Id(String);

impl Id {
    /// Draws a new number.
    #[must_use]
    pub fn draw() -> Self {
        Self(hex(&crate::random::<6>()))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() != 12 || !digits {
            return Err("an ID has 12 digits of 0-9 and a-f: `evoxo access list` shows them".into());
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Id {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.0
    }
}

/// The identity in a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The number, unique in the cluster. Renewed certificates keep it.
    pub id: Id,
    /// The role, which says what the holder may do.
    pub role: Role,
}

impl Identity {
    /// The identity as written in a certificate.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("evoxo:{}:{}", self.role, self.id)
    }

    /// The inverse of [`Self::uri`].
    #[must_use]
    pub fn from_uri(uri: &str) -> Option<Self> {
        let (role, id) = uri.strip_prefix("evoxo:")?.split_once(':')?;
        Some(Self { id: id.parse().ok()?, role: role.parse().ok()? })
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_uris_are_identities() {
        for role in Role::ALL {
            let identity = Identity { id: Id::draw(), role };
            assert_eq!(Identity::from_uri(&identity.uri()), Some(identity));
        }
        for uri in ["", "evoxo:worker:", "evoxo:king:000000000000", "evoxo:worker:00000000000g", "http://worker"] {
            assert_eq!(Identity::from_uri(uri), None);
        }
        assert_ne!(Id::draw(), Id::draw());
    }
}
