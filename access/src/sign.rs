//! Keys that sign documents, such as the certificates of results: ECDSA P-256 and Ed25519, in PEM.

use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use rcgen::{
    KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PublicKeyData as _, SignatureAlgorithm, SigningKey as _,
    SubjectPublicKeyInfo,
};
use ring::{
    digest::{SHA256, digest},
    signature::{ECDSA_P256_SHA256_ASN1, ED25519, UnparsedPublicKey, VerificationAlgorithm},
};
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer, pem::PemObject as _};

use crate::{file::pem, identity::hex, private::read_private};

/// The algorithms, each with the one that verifies its signatures.
static ALGORITHMS: [(&SignatureAlgorithm, &dyn VerificationAlgorithm); 2] =
    [(&PKCS_ECDSA_P256_SHA256, &ECDSA_P256_SHA256_ASN1), (&PKCS_ED25519, &ED25519)];

/// The algorithm that verifies signatures of a key, if the key is of a known kind.
fn verification(of: &SignatureAlgorithm) -> Option<&'static dyn VerificationAlgorithm> {
    ALGORITHMS.iter().find(|(algorithm, _)| *algorithm == of).map(|(_, verification)| *verification)
}

/// A key that signs.
pub struct SigningKey(KeyPair);

impl SigningKey {
    /// Reads the private key in a PEM file, which may be an access file.
    ///
    /// # Errors
    /// If the file cannot be read, or has no key of a known kind.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let none = || {
            anyhow!(
                "{0} has no private key that can sign: give a PEM file with an ECDSA P-256 or Ed25519 key in PKCS #8, such \
                 as an access file; `openssl genpkey -algorithm ed25519 -out {0}` makes one",
                path.display()
            )
        };
        let key = PrivateKeyDer::from_pem_slice(&read_private(path)?).map_err(|_| none())?;
        let pair = KeyPair::try_from(&key).map_err(|_| none())?;
        verification(pair.algorithm()).with_context(none)?;
        Ok(Self(pair))
    }

    /// The key that verifies its signatures.
    #[must_use]
    pub fn public(&self) -> VerifyingKey {
        VerifyingKey { info: self.0.subject_public_key_info() }
    }

    /// Signs a message.
    ///
    /// # Errors
    /// If the key cannot sign, which happens only if the system has no random numbers.
    pub fn sign(&self, message: &[u8]) -> anyhow::Result<Vec<u8>> {
        self.0.sign(message).context("cannot sign")
    }
}

/// A public key that verifies signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingKey {
    /// The SubjectPublicKeyInfo, DER.
    info: Vec<u8>,
}

impl VerifyingKey {
    /// Reads the public key in a PEM file.
    ///
    /// # Errors
    /// If the file cannot be read, or has no public key of a known kind.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = read_private(path)?;
        if let Some(key) = Self::from_pem(&text) {
            return Ok(key);
        }
        bail!(
            "{0} has no public key: give a PEM file with a line \"BEGIN PUBLIC KEY\", of an ECDSA P-256 or Ed25519 key; \
             `openssl pkey -in KEY -pubout -out {0}` makes one from a private key",
            path.display()
        )
    }

    /// The public key in a PEM text; `None` if it has no key of a known kind.
    #[must_use]
    pub fn from_pem(text: &[u8]) -> Option<Self> {
        let info = SubjectPublicKeyInfoDer::from_pem_slice(text).ok()?.to_vec();
        let key = SubjectPublicKeyInfo::from_der(&info).ok()?;
        verification(key.algorithm()).map(|_| Self { info })
    }

    /// The key as PEM.
    #[must_use]
    pub fn to_pem(&self) -> String {
        pem("PUBLIC KEY", &self.info)
    }

    /// The key's name: the SHA-256 of its DER form, in hexadecimal.
    #[must_use]
    pub fn id(&self) -> String {
        hex(digest(&SHA256, &self.info).as_ref())
    }

    /// Whether this key made the signature of this message.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let Ok(key) = SubjectPublicKeyInfo::from_der(&self.info) else { return false };
        let Some(verification) = verification(key.algorithm()) else { return false };
        UnparsedPublicKey::new(verification, key.der_bytes()).verify(message, signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{AccessFile, Authority, Id, Identity, Role, now_s};

    #[test]
    fn keys_of_both_kinds_sign_and_only_their_own_signatures_are_good() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let make = |name: &str, algorithm: &'static SignatureAlgorithm| {
            fs::write(path(name), KeyPair::generate_for(algorithm).unwrap().serialize_pem()).unwrap();
            SigningKey::read(&path(name)).unwrap()
        };
        let mut keys = vec![make("edwards", &PKCS_ED25519), make("curve", &PKCS_ECDSA_P256_SHA256)];
        let authority = Authority::create(directory.path(), now_s()).unwrap();
        let identity = Identity { id: Id::draw(), role: Role::Operator };
        AccessFile::made_by(&authority, &identity, now_s(), 60).unwrap().store(&path("access")).unwrap();
        keys.push(SigningKey::read(&path("access")).unwrap());
        for key in &keys {
            let signature = key.sign(b"message").unwrap();
            for other in &keys {
                let is_own = other.public() == key.public();
                assert_eq!(other.public().verifies(b"message", &signature), is_own);
            }
            assert!(!key.public().verifies(b"Message", &signature) && !key.public().verifies(b"message", b""));
            fs::write(path("public"), key.public().to_pem()).unwrap();
            assert_eq!(VerifyingKey::read(&path("public")).unwrap(), key.public());
        }
        assert!(VerifyingKey::read(&path("curve")).unwrap_err().to_string().contains("has no public key"));
        assert!(SigningKey::read(&path("public")).err().unwrap().to_string().contains("has no private key"));
        let other = make_other();
        fs::write(path("other"), other).unwrap();
        assert!(SigningKey::read(&path("other")).err().unwrap().to_string().contains("P-256 or Ed25519"));
    }

    /// A key of a kind that is not supported.
    fn make_other() -> String {
        KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap().serialize_pem()
    }
}
