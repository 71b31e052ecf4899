//! Everything that a client without a certificate can send: signing requests, certificates, tokens, and numbers of
//! identities.

#![no_main]

use std::sync::OnceLock;

use evoxo_access::{Authority, Certificate, Id, Identity, Role, Secret, SigningRequest, Token, server_names};

/// A moment within the life of the authority, in seconds since 1970.
const NOW_S: u64 = 1_800_000_000;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [what, rest @ ..] = input else { return };
    match what % 4 {
        0 => {
            let identity = Identity { id: "0123456789ab".parse().expect("an id"), role: Role::Worker };
            let issued =
                SigningRequest::read(rest).and_then(|request| authority().issue(&request, &identity, NOW_S, 3600));
            if let Ok(der) = issued {
                let certificate = Certificate::read(&der).expect("it was issued here");
                assert_eq!(certificate.identity, identity, "the request has chosen its own identity");
            }
        }
        1 => drop(Certificate::read(rest)),
        2 => drop(server_names(rest)),
        _ => {
            let Ok(text) = std::str::from_utf8(rest) else { return };
            if let Ok(token) = text.parse::<Token>() {
                let again: Token = token.to_string().parse().expect("a token that was written");
                assert_eq!(again.to_string(), token.to_string());
            }
            if let Ok(id) = text.parse::<Id>() {
                assert_eq!(id.to_string(), text);
            }
            drop((Identity::from_uri(text), Secret::from_bytes(rest)));
        }
    }
});

fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        let directory = std::env::temp_dir().join(format!("evoxo-fuzz-{}", std::process::id()));
        evoxo_access::create_directory(&directory).expect("a directory");
        let authority = Authority::create(&directory, NOW_S - 3600).expect("an authority");
        std::fs::remove_dir_all(&directory).expect("it is there");
        authority
    })
}
