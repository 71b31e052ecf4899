//! Access control, for both sides of a connection: [roles](Role) and [identities](Identity), the [authority](Authority) that
//! signs certificates, [tokens](Token) with which machines and people join, [access files](AccessFile) that hold their
//! certificates, and TLS 1.3 for the [coordinator](server_config) and for its [clients](Dialer).
//!
//! The coordinator's records of tokens and identities are not here: see its folder `access/`.

mod authority;
mod certificate;
mod dial;
mod file;
mod identity;
mod join;
mod keep;
mod private;
mod server;
mod sign;
#[cfg(test)]
mod tests;
mod tls;
mod token;

use std::time::{SystemTime, UNIX_EPOCH};

pub use authority::{Authority, SigningRequest};
pub use certificate::{Certificate, Pin, expires_s, renewable_until_s, server_names};
pub use dial::Dialer;
pub use file::AccessFile;
pub use identity::{Id, Identity, Role};
pub use join::{Newcomer, at_any, renew};
pub use keep::{Keeper, Source};
pub use private::{create_directory, read_private, write_private};
pub use server::{Revocations, browsers_config, server_config};
pub use sign::{SigningKey, VerifyingKey};
pub use tls::Refusal;
pub use token::{Secret, SecretHash, Token, Typed};

/// The time in seconds since 1970.
#[must_use]
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Random bytes for secrets and numbers.
///
/// # Panics
/// If the system has no random numbers.
#[must_use]
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
        .expect("the system has random numbers");
    bytes
}
