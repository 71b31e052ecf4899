//! Access files, in which people and machines keep their certificate and key.

use std::{
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use anyhow::{anyhow, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject as _};

use crate::{
    authority::{Authority, SigningRequest, key_pair},
    certificate::{Certificate, Pin},
    identity::{Id, Identity},
    private::{read_private, write_private},
};

/// The text that precedes the number of the token.
pub(crate) const TOKEN: &str = "# Joined with token ";
/// The length of a line of base64 in PEM.
const PEM_LINE: usize = 64;

/// Everything that a holder needs to use a coordinator, in one PEM file.
#[derive(Debug, PartialEq, Eq)]
pub struct AccessFile {
    /// The holder's certificate.
    pub(crate) certificate: CertificateDer<'static>,
    /// The certificate of the cluster's authority.
    pub(crate) authority: CertificateDer<'static>,
    /// The holder's key, PKCS #8.
    pub(crate) key: PrivateKeyDer<'static>,
    /// The token with which its holder joined.
    pub(crate) token: Option<Id>,
}

impl AccessFile {
    /// An access file for a certificate, the authority that signed it, and its PKCS #8 key, all DER.
    #[must_use]
    pub fn new(certificate: Vec<u8>, authority: Vec<u8>, key: Vec<u8>) -> Self {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key));
        Self { certificate: certificate.into(), authority: authority.into(), key, token: None }
    }

    /// An access file with a new key, made with the authority's key.
    ///
    /// # Errors
    /// If a key or certificate cannot be made.
    pub fn made_by(authority: &Authority, identity: &Identity, now_s: u64, life_s: u64) -> anyhow::Result<Self> {
        let key = key_pair()?;
        let issued = SigningRequest::read(&SigningRequest::of(&key)?)
            .and_then(|request| authority.issue(&request, identity, now_s, life_s));
        let certificate = issued.map_err(anyhow::Error::msg)?;
        Ok(Self::new(certificate, authority.certificate().to_vec(), key.serialize_der()))
    }

    /// Reads an access file.
    ///
    /// # Errors
    /// If it cannot be read, or is not an access file.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        if path.is_dir() {
            bail!("{0} is a directory: give the access file in it, for example {0}/operator.access", path.display());
        }
        let pem = read_private(path)?;
        let none = || {
            anyhow!(
                "{} is not an access file of evoxo: `evoxo join` and `evoxo-worker --join` write one",
                path.display()
            )
        };
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let Ok([certificate, authority]) = <[_; 2]>::try_from(certificates.map_err(|_| none())?) else { bail!(none()) };
        let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| none())?;
        Certificate::read(&certificate).map_err(|_| none())?;
        let token = token_in(&pem);
        Ok(Self { certificate, authority, key, token })
    }

    /// Writes the file so that only its owner can read it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn store(&self, path: &Path) -> anyhow::Result<()> {
        let facts = self.certificate().map_err(anyhow::Error::msg)?;
        let expires = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(facts.expires_s));
        let identity = &facts.identity;
        let text = format!(
            "# Access to an evoxo cluster as {}, ID {}, until {expires}. Keep it secret.\n{}{}{}{}",
            identity.role,
            identity.id,
            self.token.as_ref().map_or_else(String::new, |token| format!("{TOKEN}{token}\n")),
            pem("CERTIFICATE", &self.certificate),
            pem("PRIVATE KEY", self.key.secret_der()),
            pem("CERTIFICATE", &self.authority),
        );
        write_private(path, text.as_bytes())
    }

    /// The contents of the holder's certificate.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn certificate(&self) -> Result<Certificate, String> {
        Certificate::read(&self.certificate)
    }

    /// The pin of the authority.
    ///
    /// # Errors
    /// If it cannot be computed.
    pub fn pin(&self) -> Result<Pin, String> {
        Pin::of(&self.authority)
    }
}

/// The number of the token that a private file mentions.
pub(crate) fn token_in(pem: &[u8]) -> Option<Id> {
    String::from_utf8_lossy(pem).lines().find_map(|line| line.strip_prefix(TOKEN)?.parse().ok())
}

/// The PEM text of DER bytes.
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let base64 = STANDARD.encode(der);
    let lines = base64.as_bytes().chunks(PEM_LINE).map(|line| String::from_utf8_lossy(line));
    let body: String = lines.map(|line| format!("{line}\n")).collect();
    format!("-----BEGIN {label}-----\n{body}-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;
    use crate::Role;

    #[test]
    fn access_files_are_private_and_read_back_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine");
        let authority = Authority::create(directory.path(), crate::now_s()).unwrap();
        let identity = Identity { id: Id::draw(), role: Role::Viewer };
        let now_s = crate::now_s();
        let mut file = AccessFile::made_by(&authority, &identity, now_s, 24 * 3600).unwrap();
        file.token = Some(Id::draw());
        file.store(&path).unwrap();
        assert_eq!(AccessFile::load(&path).unwrap(), file);
        let facts = file.certificate().unwrap();
        assert_eq!((facts.identity, facts.expires_s), (identity, now_s + 24 * 3600));
        assert!(
            (now_s + 15 * 3600..now_s + 17 * 3600)
                .contains(&Certificate::read(&file.certificate).unwrap().renew_at_s())
        );
        for entry in fs::read_dir(directory.path()).unwrap().flatten() {
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
        }
        let files = fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(files, 3, "no drafts are left");
    }

    #[test]
    fn invalid_access_files_are_rejected_with_a_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine");
        assert!(format!("{:#}", AccessFile::load(&path).unwrap_err()).contains("cannot read"));
        Authority::create(directory.path(), crate::now_s()).unwrap();
        for name in Authority::FILES {
            let error = AccessFile::load(&directory.path().join(name)).unwrap_err();
            assert!(error.to_string().contains("not an access file"), "{error}");
        }
        let nowhere = directory.path().join("none/mine");
        assert!(write_private(&nowhere, b"x").unwrap_err().to_string().contains("cannot write"));
    }
}
