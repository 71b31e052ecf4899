//! Reading certificates. They come from the network, so nothing here panics.

use std::{fmt, net::IpAddr, ops::Range, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use x509_parser::{
    certificate::X509Certificate,
    extensions::{GeneralName, ParsedExtension},
    parse_x509_certificate,
};

use crate::identity::{Identity, Role};

/// The name in the coordinator's certificate that all clients check, wherever the coordinator runs. The authority gives a
/// server certificate only to coordinators, so the address does not matter.
pub(crate) const SERVER_NAME: &str = "evoxo-coordinator";

/// The hash of an authority's public key. Newcomers recognize the authority by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin([u8; 32]);

impl Pin {
    /// The pin of the key in this certificate.
    ///
    /// # Errors
    /// If the bytes are not a certificate.
    pub fn of(der: &[u8]) -> Result<Self, String> {
        let spki = parse(der)?.tbs_certificate.subject_pki.raw.to_vec();
        let hash = digest(&SHA256, &spki);
        Ok(Self(hash.as_ref().try_into().expect("SHA-256 has 32 bytes")))
    }

    /// The hash.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first eight bytes in hexadecimal, for file names and for display.
    #[must_use]
    pub fn short(&self) -> String {
        crate::identity::hex(&self.0[..8])
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl TryFrom<&[u8]> for Pin {
    type Error = ();

    fn try_from(bytes: &[u8]) -> Result<Self, ()> {
        bytes.try_into().map(Self).map_err(drop)
    }
}

impl FromStr for Pin {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(drop)?;
        bytes.as_slice().try_into()
    }
}

/// How long after its expiry a worker's certificate can still be renewed, in seconds. A host, or the coordinator, may be off
/// for a week.
const RENEWABLE_S: u64 = 7 * 24 * 3600;

/// The contents of a client's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The identity of the holder.
    pub identity: Identity,
    /// The start of its validity, in seconds since 1970.
    pub begins_s: u64,
    /// The end of its validity, in seconds since 1970.
    pub expires_s: u64,
}

impl Certificate {
    /// Reads a certificate. It does not check who signed it.
    ///
    /// # Errors
    /// If the bytes are not a certificate, or not one of evoxo.
    pub fn read(der: &[u8]) -> Result<Self, String> {
        let certificate = parse(der)?;
        let identity = names(&certificate)
            .find_map(|name| match name {
                GeneralName::URI(uri) => Identity::from_uri(uri),
                _ => None,
            })
            .ok_or("the certificate contains no evoxo identity")?;
        let (begins_s, expires_s) = validity(&certificate);
        Ok(Self { identity, begins_s, expires_s })
    }

    /// When the certificate should be replaced: at two thirds of its life, in seconds since 1970.
    #[must_use]
    pub fn renew_at_s(&self) -> u64 {
        self.begins_s + self.expires_s.saturating_sub(self.begins_s) * 2 / 3
    }

    /// Until when the certificate can be renewed, in seconds since 1970. For a worker that is later than its expiry.
    #[must_use]
    pub fn renewable_until_s(&self) -> u64 {
        renewable_until_s(self.identity.role, self.expires_s)
    }
}

/// Until when a certificate with this role and this expiry can be renewed, in seconds since 1970.
#[must_use]
pub fn renewable_until_s(role: Role, expires_s: u64) -> u64 {
    if role.is_worker() { expires_s.saturating_add(RENEWABLE_S) } else { expires_s }
}

/// The start and the end of a certificate's validity, in seconds since 1970.
fn validity(certificate: &X509Certificate<'_>) -> (u64, u64) {
    let validity = certificate.validity();
    let seconds = |time: x509_parser::time::ASN1Time| u64::try_from(time.timestamp()).unwrap_or(0);
    (seconds(validity.not_before), seconds(validity.not_after))
}

/// When a certificate of any kind expires, in seconds since 1970.
///
/// # Errors
/// If the bytes are not a certificate.
pub fn expires_s(der: &[u8]) -> Result<u64, String> {
    Ok(validity(&parse(der)?).1)
}

/// The names in a server's certificate, in the form that `--name` takes, and the time range in which it need not be replaced,
/// in seconds since 1970.
///
/// # Errors
/// If the bytes are not a certificate.
pub fn server_names(der: &[u8]) -> Result<(Vec<String>, Range<u64>), String> {
    let certificate = parse(der)?;
    let names = names(&certificate).filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match **bytes {
            [a, b, c, d] => Some(IpAddr::from([a, b, c, d]).to_string()),
            _ => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_string()),
        },
        _ => None,
    });
    let (begins_s, expires_s) = validity(&certificate);
    Ok((names.collect(), begins_s..begins_s + expires_s.saturating_sub(begins_s) * 2 / 3))
}

fn parse(der: &[u8]) -> Result<X509Certificate<'_>, String> {
    match parse_x509_certificate(der) {
        Ok(([], certificate)) => Ok(certificate),
        _ => Err("it is not a certificate".into()),
    }
}

/// The alternative names of a certificate.
fn names<'a>(certificate: &'a X509Certificate<'a>) -> impl Iterator<Item = &'a GeneralName<'a>> {
    let extensions = certificate.extensions().iter();
    extensions
        .filter_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
            _ => None,
        })
        .flatten()
}

#[cfg(test)]
mod tests {
    use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject as _};

    use super::*;
    use crate::Authority;

    /// A certificate made while the clock was ahead is replaced once the clock is right again.
    #[test]
    fn a_coordinators_certificate_is_used_only_within_its_time() {
        const DAY_S: u64 = 24 * 3600;
        let directory = tempfile::tempdir().unwrap();
        let now_s = crate::now_s();
        let authority = Authority::create(directory.path(), now_s).unwrap();
        let made_s = now_s + 400 * DAY_S;
        let pem = authority.server(&["lab1".into()], made_s).unwrap();
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let (names, good_s) = server_names(&der).unwrap();
        assert!(names.contains(&"lab1".to_owned()), "{names:?}");
        let good = [0, 300, 399, 400, 455, 465, 500].map(|day| good_s.contains(&(now_s + day * DAY_S)));
        assert_eq!(good, [false, false, true, true, true, false, false], "{good_s:?}");
    }
}
