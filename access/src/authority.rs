//! The cluster's certificate authority. Its key signs the certificates of the coordinator and of everyone who joins.

use std::{net::IpAddr, path::Path, time::Duration};

use anyhow::{Context as _, anyhow};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKey,
    PublicKeyData as _, SanType, date_time_ymd,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, CertificateSigningRequestDer, DnsName, pem::PemObject as _};

use crate::{
    certificate::{Pin, SERVER_NAME},
    identity::{Identity, hex},
    private::{read_private, write_private},
};

/// How long the authority's own certificate is valid, in seconds: ten years.
const AUTHORITY_LIFE_S: u64 = 3650 * DAY_S;
/// How long the coordinator's certificate is valid, in seconds. The coordinator replaces it automatically.
const SERVER_LIFE_S: u64 = 90 * DAY_S;
/// Certificates that clients check are valid from one day earlier, because the clocks of clients may be wrong.
const DAY_S: u64 = 24 * 3600;
/// The largest signing request, in bytes.
const REQUEST_BYTES_MAX: usize = 4096;

/// The files of an authority.
const CERTIFICATE_FILE: &str = "ca.pem";
const KEY_FILE: &str = "ca.key";

/// An authority that can sign.
pub struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// The names of the files in the access directory that [`Self::load`] reads.
    pub const FILES: [&'static str; 2] = [CERTIFICATE_FILE, KEY_FILE];

    /// Creates a new authority and writes it into the access directory.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub fn create(directory: &Path, now_s: u64) -> anyhow::Result<Self> {
        let key = key_pair()?;
        let mut params = CertificateParams::default();
        // Two authorities with the same name would be mistaken for each other, so the name contains part of the key's hash.
        let number = hex(&ring::digest::digest(&ring::digest::SHA256, key.der_bytes()).as_ref()[..8]);
        params.distinguished_name = name(&format!("evoxo cluster {number}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        set_validity(&mut params, now_s.saturating_sub(DAY_S), now_s + AUTHORITY_LIFE_S);
        let certificate = params.self_signed(&key).context("cannot make a certificate")?;
        // Write the key first: a certificate without a key would be found at the next start.
        write_private(&directory.join(KEY_FILE), key.serialize_pem().as_bytes())?;
        write_private(&directory.join(CERTIFICATE_FILE), certificate.pem().as_bytes())?;
        Self::load(directory)
    }

    /// Reads the authority from the access directory.
    ///
    /// # Errors
    /// If a file is missing or damaged.
    pub fn load(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(KEY_FILE);
        let key = String::from_utf8(read_private(&path)?).ok().and_then(|pem| KeyPair::from_pem(&pem).ok());
        let key = key.with_context(|| format!("{} has no private key", path.display()))?;
        let path = directory.join(CERTIFICATE_FILE);
        let certificate = CertificateDer::from_pem_slice(&read_private(&path)?)
            .map_err(|_| anyhow!("{} has no certificate", path.display()))?;
        let issuer = Issuer::from_ca_cert_der(&certificate, key)
            .with_context(|| format!("{} is not the certificate of an authority", path.display()))?;
        Ok(Self { certificate, issuer })
    }

    /// The authority's certificate, DER.
    #[must_use]
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The pin by which newcomers recognize the authority.
    ///
    /// # Errors
    /// If the certificate cannot be read.
    pub fn pin(&self) -> Result<Pin, String> {
        Pin::of(&self.certificate)
    }

    /// Issues a client's certificate, DER, valid from now.
    ///
    /// # Errors
    /// If it cannot be signed.
    pub fn issue(
        &self,
        request: &SigningRequest,
        identity: &Identity,
        now_s: u64,
        life_s: u64,
    ) -> Result<Vec<u8>, String> {
        let mut params = CertificateParams::default();
        params.distinguished_name = name(&format!("evoxo {} {}", identity.role, identity.id));
        let uri = identity.uri().as_str().try_into().map_err(|_| "an identity is ASCII")?;
        params.subject_alt_names = vec![SanType::URI(uri)];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        // The clock of another coordinator of this cluster may differ.
        let before_s = (life_s / 24).min(3600);
        set_validity(&mut params, now_s.saturating_sub(before_s), now_s + life_s);
        let signed = params.signed_by(&request.0, &self.issuer).map_err(|error| format!("cannot sign: {error}"))?;
        Ok(signed.der().to_vec())
    }

    /// A certificate and key for the coordinator, as PEM, with additional names for programs that check them.
    ///
    /// # Errors
    /// If a name cannot be used in a certificate.
    pub fn server(&self, names: &[String], now_s: u64) -> anyhow::Result<String> {
        let key = key_pair()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = name("evoxo coordinator");
        let own = [SERVER_NAME.to_owned()];
        let others = names.iter().filter(|name| **name != own[0]);
        params.subject_alt_names = own
            .iter()
            .chain(others)
            .map(|name| match name.parse::<IpAddr>() {
                Ok(address) => Ok(SanType::IpAddress(address)),
                Err(_) => DnsName::try_from(name.as_str())
                    .ok()
                    .and_then(|known| known.as_ref().try_into().ok())
                    .map(SanType::DnsName)
                    .with_context(|| format!("{name:?} is not a host name or an IP address: give --name one of these")),
            })
            .collect::<anyhow::Result<_>>()?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        set_validity(&mut params, now_s.saturating_sub(DAY_S), now_s + SERVER_LIFE_S);
        let certificate = params.signed_by(&key, &self.issuer).context("cannot sign")?;
        Ok(certificate.pem() + &key.serialize_pem())
    }
}

/// A request for a certificate, signed with its key. Only the key is taken from it.
pub struct SigningRequest(PublicKey);

impl SigningRequest {
    /// Reads a signing request, DER.
    ///
    /// # Errors
    /// If it is not a signing request, or if its signature is wrong.
    pub fn read(der: &[u8]) -> Result<Self, String> {
        if der.len() > REQUEST_BYTES_MAX {
            return Err(format!("the signing request is too long: at most {REQUEST_BYTES_MAX} bytes are allowed"));
        }
        let key = CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(der))
            .map_err(|error| format!("the signing request is not valid: {error}"))?
            .public_key;
        if rcgen::PublicKeyData::algorithm(&key) != &PKCS_ECDSA_P256_SHA256 {
            return Err("the key of the signing request is not ECDSA P-256".into());
        }
        Ok(Self(key))
    }

    /// The SHA-256 of the request's key, in hexadecimal. It distinguishes keys.
    #[must_use]
    pub fn key_hash(&self) -> String {
        hex(ring::digest::digest(&ring::digest::SHA256, self.0.der_bytes()).as_ref())
    }

    /// A signing request for this key, DER.
    pub(crate) fn of(key: &KeyPair) -> anyhow::Result<Vec<u8>> {
        let request = CertificateParams::default().serialize_request(key).context("cannot make a signing request")?;
        Ok(request.der().to_vec())
    }
}

/// A new key, of the only type that is used.
pub(crate) fn key_pair() -> anyhow::Result<KeyPair> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).context("cannot make a key")
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}

fn set_validity(params: &mut CertificateParams, from_s: u64, until_s: u64) {
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + Duration::from_secs(from_s);
    params.not_after = epoch + Duration::from_secs(until_s);
}
