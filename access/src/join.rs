//! How machines and people get and renew their certificates.

use std::{
    error::Error as _,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use evoxo_process::{Address, innermost};
use evoxo_proto::v1::{self, access_service_client::AccessServiceClient};
use rcgen::KeyPair;
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint},
};

use crate::{
    authority::{SigningRequest, key_pair},
    certificate::Pin,
    dial::Dialer,
    file::{AccessFile, TOKEN, token_in},
    private::{read_private, write_private},
    tls::Refusal,
    token::Token,
};

/// The time limit for a connection, and for an answer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A machine or person that joins. It uses the same key in every attempt, even after a restart. The coordinator recognizes a
/// key that has already joined, so a lost answer does not cost the token a second use.
pub struct Newcomer {
    token: Token,
    /// The path of the future access file.
    access: PathBuf,
    key: KeyPair,
}

impl Newcomer {
    /// Uses the key of an earlier attempt with this token and access file, or a new key. A new key is stored next to the
    /// access file until there is a certificate.
    ///
    /// # Errors
    /// If the key cannot be stored, because then the access file could not be stored either.
    pub fn new(token: Token, access: PathBuf) -> anyhow::Result<Self> {
        let path = waiting(&access);
        let tried = read_private(&path).ok().filter(|tried| token_in(tried).as_ref() == Some(&token.id));
        let kept = tried.and_then(|pem| KeyPair::from_pem(str::from_utf8(&pem).ok()?).ok());
        let key = match kept {
            Some(key) => key,
            None => {
                let key = key_pair()?;
                write_private(&path, format!("{TOKEN}{}\n{}", token.id, key.serialize_pem()).as_bytes())?;
                key
            }
        };
        Ok(Self { token, access, key })
    }

    /// Joins a cluster through the first of its coordinators that answers. The name is for lists.
    ///
    /// # Errors
    /// [`Refusal::Final`] if the coordinator refuses the token, or is not the one that the token names.
    pub async fn join(&self, coordinators: &[Address], name: &str) -> Result<AccessFile, Refusal> {
        at_any(coordinators, |address| async move { self.ask(&address, name).await }).await
    }

    /// Writes the access file and deletes the separate key, which the file contains.
    ///
    /// # Errors
    /// If it cannot be written. The newcomer can then join again.
    pub fn keep(&self, file: &AccessFile) -> anyhow::Result<()> {
        file.store(&self.access)?;
        // If the key stays, it is of no use once the certificate is renewed.
        let _ = fs::remove_file(waiting(&self.access));
        Ok(())
    }

    /// The request to a coordinator.
    ///
    /// # Errors
    /// If the key cannot sign.
    pub fn request(&self, name: &str) -> anyhow::Result<v1::JoinRequest> {
        let Token { id, secret, .. } = &self.token;
        let request = SigningRequest::of(&self.key)?.into();
        Ok(v1::JoinRequest {
            token: id.to_string(),
            secret: secret.bytes().to_vec().into(),
            request,
            name: name.into(),
        })
    }

    async fn ask(&self, coordinator: &Address, name: &str) -> Result<AccessFile, Refusal> {
        let Token { id, pin, .. } = &self.token;
        let dialer = Dialer::newcomer(*pin).map_err(own)?;
        let mut client = client(&dialer, coordinator).await.map_err(|why| match dialer.failure() {
            // Without a certificate, a TLS failure means that the token belongs to another coordinator. A wrong clock is an
            // exception, because it can be set.
            Some(failure) if !matches!(failure, Refusal::Clock(_)) => Refusal::Final(why),
            _ => Refusal::Other(why),
        })?;
        let answer = client
            .join(self.request(name).map_err(own)?)
            .await
            .map_err(|status| refused(&dialer, coordinator, &status))?;
        let mut file = taken(answer.into_inner(), &self.key, *pin)?;
        file.token = Some(id.clone());
        Ok(file)
    }
}

/// The file in which the key waits for a certificate.
fn waiting(access: &Path) -> PathBuf {
    let mut path = access.as_os_str().to_owned();
    path.push(".joining");
    path.into()
}

/// Gets a new certificate for the same identity.
///
/// # Errors
/// [`Refusal::Final`] if the coordinator refuses the old one.
pub async fn renew(file: &AccessFile, coordinator: &Address) -> Result<AccessFile, Refusal> {
    let dialer = Dialer::with(file).map_err(own)?;
    let key = key_pair().map_err(own)?;
    // Not final: a stranger at this address may be gone tomorrow.
    let mut client = client(&dialer, coordinator).await.map_err(Refusal::Other)?;
    let asked = v1::RenewRequest { request: SigningRequest::of(&key).map_err(own)?.into() };
    let answer = client.renew(asked).await.map_err(|status| refused(&dialer, coordinator, &status))?;
    let mut renewed = taken(answer.into_inner(), &key, file.pin().map_err(Refusal::Other)?)?;
    renewed.token.clone_from(&file.token);
    Ok(renewed)
}

/// The access file for a new certificate.
fn taken(answer: v1::Certificate, key: &KeyPair, pin: Pin) -> Result<AccessFile, Refusal> {
    let file = AccessFile::new(answer.certificate.to_vec(), answer.authority.to_vec(), key.serialize_der());
    if file.pin() != Ok(pin) {
        return Err(Refusal::Final("the coordinator sent a certificate of another authority: join again".into()));
    }
    file.certificate().map_err(Refusal::Final)?;
    Ok(file)
}

/// Tries the addresses in order until one answers. An address that refuses may belong to a stranger while its coordinator is
/// away, so the others are tried too.
///
/// # Errors
/// [`Refusal::Final`] if one refused and none answered, otherwise the last failure.
pub async fn at_any<T, F>(addresses: &[Address], ask: impl Fn(Address) -> F) -> Result<T, Refusal>
where
    F: Future<Output = Result<T, Refusal>>,
{
    let mut failed = Refusal::Other("no coordinator leads".into());
    for address in addresses {
        match ask(address.clone()).await {
            Ok(file) => return Ok(file),
            Err(refusal) if !matches!(failed, Refusal::Final(_)) => failed = refusal,
            Err(_) => {}
        }
    }
    Err(failed)
}

/// A local failure.
fn own(error: anyhow::Error) -> Refusal {
    Refusal::Other(format!("{error:#}"))
}

async fn client(dialer: &Dialer, coordinator: &Address) -> Result<AccessServiceClient<Channel>, String> {
    let endpoint = Endpoint::from(coordinator.uri()).connect_timeout(TIMEOUT).timeout(TIMEOUT);
    let channel = dialer.connect(&endpoint).await;
    let channel = channel.map_err(|error| format!("no certificate from {coordinator}: {}", innermost(&error)))?;
    Ok(AccessServiceClient::new(channel))
}

fn refused(dialer: &Dialer, coordinator: &Address, status: &Status) -> Refusal {
    if let Some(why) = dialer.refusal() {
        return Refusal::Final(format!("no certificate from {coordinator}: {why}"));
    }
    let why = status.source().map_or_else(|| status.message().to_owned(), innermost);
    let sentence = format!("no certificate from {coordinator}: {why}");
    match status.code() {
        Code::Unauthenticated
        | Code::InvalidArgument
        | Code::PermissionDenied
        | Code::Unimplemented
        | Code::FailedPrecondition => Refusal::Final(sentence),
        _ => Refusal::Other(sentence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Authority, Id, Identity, Role, Secret, now_s};

    #[tokio::test]
    async fn a_stranger_at_one_address_does_not_block_the_next_address() {
        let [first, second]: [Address; 2] = ["lab1:7600", "lab2:7600"].map(|text| text.parse().unwrap());
        let (refused, away) = (Refusal::Final("no".into()), Refusal::Other("away".into()));
        let ask = async |of_first: Result<u8, Refusal>, of_second: Result<u8, Refusal>| {
            let answer = |address: Address| if address == first { of_first.clone() } else { of_second.clone() };
            at_any(&[first.clone(), second.clone()], |address| std::future::ready(answer(address))).await
        };
        assert_eq!(ask(Err(refused.clone()), Ok(2)).await, Ok(2));
        assert_eq!(ask(Ok(1), Err(refused.clone())).await, Ok(1));
        assert_eq!(
            ask(Err(refused.clone()), Err(away.clone())).await,
            Err(refused.clone()),
            "a refusal wins over an absent coordinator"
        );
        assert_eq!(ask(Err(away.clone()), Err(refused.clone())).await, Err(refused));
        assert_eq!(ask(Err(away.clone()), Err(away.clone())).await, Err(away));
    }

    /// The key is the same after an interrupted attempt, unless another token is given.
    #[test]
    fn a_joining_worker_keeps_its_key_between_attempts() {
        let directory = tempfile::tempdir().unwrap();
        let access = directory.path().join("mine");
        let pin = Authority::create(directory.path(), now_s()).unwrap().pin().unwrap();
        let token = || Token { id: Id::draw(), secret: Secret::draw(), pin };
        let (first, second) = (token(), token());
        let key = |token: &Token| Newcomer::new(token.clone(), access.clone()).unwrap().key.serialize_der();
        let kept = key(&first);
        assert_eq!(key(&first), kept);
        assert_ne!(key(&second), kept);
        let nowhere = Newcomer::new(first, directory.path().join("none/mine")).err().unwrap();
        assert!(format!("{nowhere:#}").contains("cannot write"), "{nowhere:#}");
        fs::write(waiting(&access), format!("{TOKEN}{}\nno key", second.id)).unwrap();
        let replaced = key(&second);
        assert_eq!(key(&second), replaced, "a damaged key is replaced");
    }

    #[test]
    fn a_certificate_of_another_authority_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::create(directory.path(), now_s()).unwrap();
        let identity = Identity { id: Id::draw(), role: Role::Worker };
        let file = AccessFile::made_by(&authority, &identity, now_s(), 3600).unwrap();
        let key = KeyPair::try_from(file.key.secret_der()).unwrap();
        let answer = || v1::Certificate {
            certificate: file.certificate.to_vec().into(),
            authority: file.authority.to_vec().into(),
        };
        assert_eq!(taken(answer(), &key, authority.pin().unwrap()).unwrap(), file);
        let other = Authority::create(tempfile::tempdir().unwrap().path(), now_s()).unwrap();
        let refused = taken(answer(), &key, other.pin().unwrap());
        assert!(matches!(&refused, Err(Refusal::Final(why)) if why.contains("another authority")), "{refused:?}");
    }
}
