//! Handshakes of both sides without a network: which clients are admitted, and which coordinators a client believes.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, SanType};
use tempfile::TempDir;
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, ServerConfig, ServerConnection,
    pki_types::ServerName,
};

use super::*;
use crate::{
    certificate::SERVER_NAME,
    tls::{client, newcomer},
};

/// The revoked identities.
#[derive(Debug, Default)]
struct Revoked(BTreeSet<Id>);

impl Revocations for Revoked {
    fn is_revoked(&self, id: &Id) -> bool {
        self.0.contains(id)
    }
}

const DAY_S: u64 = 24 * 3600;

fn authority() -> (TempDir, Authority) {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::create(directory.path(), now_s()).unwrap();
    (directory, authority)
}

/// The coordinator of the authority `signs`, which presents the certificate of the authority `shows` after its own.
fn coordinator(directory: &Path, signs: &Authority, shows: &Authority, revoked: Revoked) -> ServerConfig {
    let file = directory.join("server.pem");
    write_private(&file, signs.server(&[], now_s()).unwrap().as_bytes()).unwrap();
    server_config(shows.certificate(), &file, Arc::new(revoked)).unwrap()
}

fn identity(role: Role) -> Identity {
    Identity { id: Id::draw(), role }
}

/// The server's verdict on the client's certificate, or else the client's verdict on the server.
fn shake_hands(client: ClientConfig, server: ServerConfig) -> Result<(), Error> {
    let name = ServerName::try_from(SERVER_NAME).unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    for _ in 0..4 {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut bytes.as_slice()).unwrap();
        server.process_new_packets()?;
        bytes.clear();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut bytes.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok(())
}

#[test]
fn revoked_and_foreign_certificates_are_rejected() {
    let (directory, ours) = authority();
    let (_other, theirs) = authority();
    let file = |by: &Authority, identity: &Identity, now_s| AccessFile::made_by(by, identity, now_s, DAY_S).unwrap();
    let shake = |mut file: AccessFile, revoked: Revoked| {
        // The client accepts the coordinator anyway.
        file.authority = ours.certificate().clone();
        shake_hands(client(&file).unwrap(), coordinator(directory.path(), &ours, &ours, revoked))
    };
    let one = identity(Role::Worker);
    assert_eq!(shake(file(&ours, &one, now_s()), Revoked::default()), Ok(()));
    let revoked = Revoked([one.id.clone()].into());
    let refused = shake(file(&ours, &one, now_s()), revoked);
    assert_eq!(refused, Err(Error::InvalidCertificate(CertificateError::Revoked)));
    assert!(matches!(shake(file(&theirs, &one, now_s()), Revoked::default()), Err(Error::InvalidCertificate(_))));
    // The certificate is valid for one day. A worker's can be renewed for a week after that; an operator's cannot.
    let after = |who: &Identity, days: u64| shake(file(&ours, who, now_s() - days * DAY_S), Revoked::default());
    assert_eq!((after(&one, 2), after(&one, 7)), (Ok(()), Ok(())));
    for expired in [after(&one, 9), after(&identity(Role::Operator), 2)] {
        assert!(
            matches!(expired, Err(Error::InvalidCertificate(CertificateError::ExpiredContext { .. }))),
            "{expired:?}"
        );
    }
    let revoked = Revoked([one.id.clone()].into());
    let refused = shake(file(&ours, &one, now_s() - 2 * DAY_S), revoked);
    assert_eq!(refused, Err(Error::InvalidCertificate(CertificateError::Revoked)));
    let foreign = shake(file(&theirs, &one, now_s() - 2 * DAY_S), Revoked::default());
    assert!(matches!(foreign, Err(Error::InvalidCertificate(_))), "{foreign:?}");
}

/// A newcomer has only a token with a pin. A server that presents the right authority's certificate after one that the
/// authority has not signed is an impostor.
#[test]
fn a_joining_worker_trusts_only_the_pinned_authority() {
    let (directory, ours) = authority();
    let (_other, theirs) = authority();
    let shake = |signs: &Authority, shows: &Authority, pin: Pin| {
        shake_hands(newcomer(pin).unwrap(), coordinator(directory.path(), signs, shows, Revoked::default()))
    };
    let pin = ours.pin().unwrap();
    assert_eq!(shake(&ours, &ours, pin), Ok(()));
    for (signs, shows) in [(&theirs, &theirs), (&theirs, &ours), (&ours, &theirs)] {
        let believed = shake(signs, shows, pin);
        assert!(matches!(believed, Err(Error::InvalidCertificate(_))), "{believed:?}");
    }
}

/// The request names an operator, and asks to be a coordinator.
#[test]
fn only_the_key_of_a_request_is_used() {
    let (_directory, authority) = authority();
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let asking = |params: CertificateParams, key: &KeyPair| params.serialize_request(key).unwrap().der().to_vec();
    let wish = identity(Role::Operator);
    let mut params = CertificateParams::new(vec!["evoxo-coordinator".to_owned()]).unwrap();
    params.subject_alt_names.insert(0, SanType::URI(wish.uri().as_str().try_into().unwrap()));
    let given = identity(Role::Worker);
    let request = SigningRequest::read(&asking(params.clone(), &key)).unwrap();
    let issued = authority.issue(&request, &given, now_s(), DAY_S).unwrap();
    assert_eq!(Certificate::read(&issued).unwrap().identity, given);
    assert_eq!(server_names(&issued).unwrap().0, [""; 0], "it is not a coordinator");
    let refused = |request: &[u8]| SigningRequest::read(request).err().unwrap();
    let other = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    assert!(refused(&asking(CertificateParams::default(), &other)).contains("ECDSA P-256"));
    params.subject_alt_names.extend((0..1500).map(|number| SanType::DnsName(format!("h{number}").try_into().unwrap())));
    assert!(refused(&asking(params.clone(), &key)).contains("at most 4096 bytes"));
    assert!(refused(b"nonsense").contains("is not valid"));
}

/// A wrong clock can be corrected, but another authority stays another authority.
#[test]
fn wrong_clocks_cause_no_permanent_rejection() {
    let of = |error: Error| Refusal::of(&std::io::Error::other(error)).unwrap();
    let alert = |said| of(Error::AlertReceived(said));
    assert!(matches!(of(Error::InvalidCertificate(CertificateError::NotValidYet)), Refusal::Clock(_)));
    assert!(matches!(of(Error::InvalidCertificate(CertificateError::UnknownIssuer)), Refusal::Other(_)));
    assert!(matches!(alert(AlertDescription::CertificateRevoked), Refusal::Revoked(_)));
    let (_directory, authority) = authority();
    let refused = |begins_s: u64| {
        let file = AccessFile::made_by(&authority, &identity(Role::Worker), begins_s, DAY_S).unwrap();
        let dialer = Dialer::with(&file).unwrap();
        dialer.fail(alert(AlertDescription::CertificateExpired));
        assert!(!dialer.is_revoked() && dialer.failure().is_some());
        dialer.refusal().is_some()
    };
    assert!(!refused(now_s()), "the coordinator's clock is wrong");
    assert!(!refused(now_s() - 7 * DAY_S), "it can be renewed");
    assert!(refused(now_s() - 9 * DAY_S), "both clocks agree that it has expired");
}

#[test]
fn a_server_without_the_protocol_is_not_a_coordinator() {
    use tonic::Status;
    let refuses = Status::unauthenticated("give --access FILE");
    let http = Status::unimplemented("grpc-status header missing, mapped from HTTP status code 404");
    let broken = || Status::from_error(Box::new(std::io::Error::other("frame with invalid size")));
    assert_eq!(Dialer::plain().stranger(&refuses), None);
    for (status, why) in [(http, "status code 404"), (broken(), "frame with invalid size")] {
        let sentence = Dialer::plain().stranger(&status).unwrap();
        assert!(sentence.contains(why) && sentence.contains("check the address"), "{sentence}");
    }
    let (_directory, authority) = authority();
    let dialer =
        Dialer::with(&AccessFile::made_by(&authority, &identity(Role::Worker), now_s(), DAY_S).unwrap()).unwrap();
    dialer.fail(Refusal::Revoked("it was revoked".into()));
    assert_eq!(dialer.stranger(&broken()), None);
}
