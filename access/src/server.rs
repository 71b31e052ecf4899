//! The coordinator's side of TLS.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, anyhow};
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject as _},
    server::{
        NoServerSessionStorage, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    version::TLS13,
};

use crate::{
    certificate::Certificate,
    identity::Id,
    private::read_private,
    tls::{HTTP2, invalid, provider},
};

/// The other protocol inside TLS, in addition to HTTP/2.
const HTTP1: &[u8] = b"http/1.1";

/// The revoked identities.
pub trait Revocations: fmt::Debug + Send + Sync {
    /// Whether this identity was revoked.
    fn is_revoked(&self, id: &Id) -> bool;
}

/// The configuration of a coordinator: only TLS 1.3, with the certificate and key in this file. A client presents no
/// certificate, or one of this authority that is not revoked and is valid or can still be renewed.
///
/// # Errors
/// If the file cannot be used.
pub fn server_config(
    authority: &CertificateDer<'static>,
    file: &Path,
    revocations: Arc<dyn Revocations>,
) -> anyhow::Result<ServerConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).context("the authority's certificate cannot be used")?;
    let issued = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
        .allow_unauthenticated()
        .build()
        .context("the authority's certificate cannot be used")?;
    let verifier = Arc::new(Verifier { issued, revocations });
    configured(authority, file, verifier, &[HTTP2, HTTP1])
}

/// The configuration for browsers: the same certificate, without asking the browser for one.
///
/// # Errors
/// If the file cannot be used.
pub fn browsers_config(authority: &CertificateDer<'static>, file: &Path) -> anyhow::Result<ServerConfig> {
    configured(authority, file, WebPkiClientVerifier::no_client_auth(), &[HTTP1])
}

fn configured(
    authority: &CertificateDer<'static>,
    file: &Path,
    clients: Arc<dyn ClientCertVerifier>,
    protocols: &[&[u8]],
) -> anyhow::Result<ServerConfig> {
    let pem = read_private(file)?;
    let unusable = || anyhow!("{} has no certificate with its private key", file.display());
    let own = CertificateDer::from_pem_slice(&pem).map_err(|_| unusable())?;
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| unusable())?;
    // A newcomer recognizes the authority by its hash, so send the authority's certificate too.
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .context("TLS 1.3 is not available")?
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![own, authority.clone()], key)
        .with_context(|| format!("{} cannot be used", file.display()))?;
    // A resumed connection would not be verified again.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// Accepts certificates that the authority has signed, unless they are revoked.
#[derive(Debug)]
struct Verifier {
    issued: Arc<dyn ClientCertVerifier>,
    revocations: Arc<dyn Revocations>,
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        self.issued.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.issued.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let certificate = Certificate::read(end_entity);
        // Accept a certificate that can be renewed as if in its last second. The services make sure that it is used only for
        // renewal.
        let seen = match &certificate {
            Ok(known) if (known.expires_s..known.renewable_until_s()).contains(&now.as_secs()) => {
                UnixTime::since_unix_epoch(Duration::from_secs(known.expires_s.saturating_sub(1)))
            }
            _ => now,
        };
        let verified = self.issued.verify_client_cert(end_entity, intermediates, seen)?;
        let certificate = certificate.map_err(|_| invalid(CertificateError::BadEncoding))?;
        if self.revocations.is_revoked(&certificate.identity.id) {
            return Err(invalid(CertificateError::Revoked));
        }
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is supported".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.issued.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.issued.supported_verify_schemes()
    }
}
