//! TLS 1.3 for both sides: their common parts, the configurations of clients, and the meaning of failures.

use std::{error::Error as StdError, io, sync::Arc};

use anyhow::Context as _;
use tokio_rustls::rustls::{
    self, AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
    client::{
        Resumption, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    version::TLS13,
};

use crate::{certificate::Pin, file::AccessFile};

/// The protocol inside TLS, for clients that negotiate it: HTTP/2.
pub(crate) const HTTP2: &[u8] = b"h2";

/// The cryptography provider.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The configuration of a client with a certificate.
pub(crate) fn client(file: &AccessFile) -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(file.authority.clone()).context("the access file's authority cannot be used")?;
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .context("TLS 1.3 is not available")?
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![file.certificate.clone()], file.key.clone_key())
        .context("the access file's key cannot be used")?;
    Ok(finish(config))
}

/// The configuration of a newcomer, which knows only the hash of the authority's key.
pub(crate) fn newcomer(pin: Pin) -> anyhow::Result<ClientConfig> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .context("TLS 1.3 is not available")?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned { pin, provider: provider() }))
        .with_no_client_auth();
    Ok(finish(config))
}

fn finish(mut config: ClientConfig) -> ClientConfig {
    // Every connection verifies both ends again.
    config.resumption = Resumption::disabled();
    config.alpn_protocols = vec![HTTP2.to_vec()];
    config
}

/// Accepts a coordinator whose certificate chain ends in the authority with this pin.
#[derive(Debug)]
struct Pinned {
    pin: Pin,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let unknown = || Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let authority = intermediates.iter().find(|der| Pin::of(der) == Ok(self.pin)).ok_or_else(unknown)?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider)).build();
        verifier.map_err(|_| unknown())?.verify_server_cert(end_entity, &[], server_name, ocsp_response, now)
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
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// What a failed connection means for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A coordinator whose identity was verified refuses the certificate. That will not change.
    Final(String),
    /// The certificate was revoked, so every coordinator of the cluster refuses it.
    Revoked(String),
    /// The certificate seems to have expired, or not to be valid yet. The refusal is final if the local clock agrees.
    Expired(String),
    /// By the local clock, the coordinator's certificate is not valid.
    Clock(String),
    /// Anything else, as a sentence.
    Other(String),
}

impl Refusal {
    /// Interprets an error of a TLS stream; `None` if it has nothing to do with TLS.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        let inner: &(dyn StdError + 'static) = error.get_ref()?;
        let again = "ask the operator for a token, and join again";
        Some(match inner.downcast_ref::<Error>()? {
            Error::AlertReceived(AlertDescription::CertificateRevoked) => {
                Self::Revoked(format!("the coordinator refuses this certificate, because it was revoked: {again}"))
            }
            Error::AlertReceived(AlertDescription::CertificateExpired) => Self::Expired(format!(
                "the coordinator refuses this certificate, because by the coordinator's clock it has expired or is \
                 not valid yet: check both hosts' clocks, or {again}"
            )),
            Error::AlertReceived(
                AlertDescription::UnknownCA
                | AlertDescription::DecryptError
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateUnknown
                | AlertDescription::AccessDenied,
            ) => Self::Final(format!(
                "the coordinator refuses this certificate, because it belongs to another cluster: {again}"
            )),
            Error::InvalidCertificate(
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. },
            ) => Self::Clock("the coordinator's certificate is not valid at this time: check this host's clock".into()),
            Error::InvalidCertificate(_) => Self::Other(
                "the server at this address is not the coordinator of this cluster: its certificate is of another authority \
                 than the token or access file names; check the address, and join again if the cluster was set up again"
                    .into(),
            ),
            Error::InvalidMessage(_) => Self::Other(
                "the server at this address does not use TLS: if it is a coordinator without --access, leave out \
                 --access and EVOXO_ACCESS here"
                    .into(),
            ),
            error => Self::Other(format!("TLS failed: {error}")),
        })
    }

    /// The sentence that describes the refusal.
    #[must_use]
    pub fn sentence(&self) -> &str {
        match self {
            Self::Final(sentence)
            | Self::Revoked(sentence)
            | Self::Expired(sentence)
            | Self::Clock(sentence)
            | Self::Other(sentence) => sentence,
        }
    }
}

/// The error for a certificate that this side's verifier refuses.
pub(crate) fn invalid(error: CertificateError) -> rustls::Error {
    Error::InvalidCertificate(error)
}
