//! Joining, logging in, renewing a certificate, and leaving.

use std::sync::Arc;

use evoxo_access::{Authority, Id, Identity, Secret, SigningRequest, now_s};

use super::{
    Access, BROWSER, Issued, PERSON_LIFE_S, Refused,
    journal::Journal,
    lock,
    records::{Granted, Record},
};

impl Access {
    /// Admits a newcomer. A caller that repeats a join with the same key, because the answer was lost, is the same identity,
    /// and the token loses no further use. The caller gets the certificate that was granted before, or a new one once half of
    /// that certificate's life is over. The returned flag says whether the join was repeated. Blocks: it waits for the disk.
    ///
    /// # Errors
    /// See [`Refused`].
    pub(crate) fn join(
        &self,
        token: &Id,
        secret: &Secret,
        request: &[u8],
        name: String,
        address: String,
    ) -> Result<(Identity, Issued, bool), Refused> {
        self.join_at(now_s(), token, secret, request, name, address)
    }

    fn join_at(
        &self,
        now_s: u64,
        token: &Id,
        secret: &Secret,
        request: &[u8],
        name: String,
        address: String,
    ) -> Result<(Identity, Issued, bool), Refused> {
        let request = SigningRequest::read(request).map_err(Refused::Invalid)?;
        let (key, number) = (request.key_hash(), token.to_string());
        let mut journal = lock(&self.0.journal);
        let authority = self.authority();
        let before = self
            .0
            .records
            .read()
            .joined(&number, &key, now_s)
            .map(|(identity, granted)| (identity, granted.and_then(|granted| granted.good(&authority.1, now_s))));
        match before {
            // A caller that repeats its join all the time must not cause any writes.
            Some((identity, Some(certificate))) => {
                return Ok((identity, (certificate, authority.0.certificate().to_vec()), true));
            }
            Some((identity, None)) => {
                let issued = self.renewed(&mut journal, &identity, &request, key, now_s)?;
                return Ok((identity, issued, true));
            }
            None => {}
        }
        let role = self.0.records.read().role_of(token, secret, now_s).map_err(Refused::Token)?;
        let identity = Identity { id: Id::draw(), role };
        let (issued, expires_s, granted) = self.issue(&request, &identity, now_s, self.life_s(&identity))?;
        let (id, token) = (identity.id.clone(), number);
        let record = Record::Joined { id, role, name, token, key, address, expires_s, granted: Some(granted) };
        self.append(&mut journal, record, now_s)?;
        Ok((identity, issued, false))
    }

    /// Whether this token admits anybody now.
    pub(crate) fn is_good(&self, token: &Id, secret: &Secret) -> bool {
        self.0.records.read().role_of(token, secret, now_s()).is_ok()
    }

    /// Admits a person with a browser: an identity for this time, without a certificate. Blocks.
    ///
    /// # Errors
    /// See [`Refused`].
    pub(crate) fn enter(&self, token: &Id, secret: &Secret, life_s: u64, address: String) -> Result<Identity, Refused> {
        let mut journal = lock(&self.0.journal);
        let now_s = now_s();
        let role = self.0.records.read().role_of(token, secret, now_s).map_err(Refused::Token)?;
        if role.is_worker() {
            return Err(Refused::Token(
                "this token is for workers: ask for a token of the role viewer, submitter or operator",
            ));
        }
        let identity = Identity { id: Id::draw(), role };
        let (id, name, token, key) = (identity.id.clone(), BROWSER.to_owned(), token.to_string(), String::new());
        let expires_s = now_s + life_s;
        let record = Record::Joined { id, role, name, token, key, address, expires_s, granted: None };
        self.append(&mut journal, record, now_s)?;
        Ok(identity)
    }

    /// Forgets an identity that is no longer used, and ends its connections. Blocks.
    ///
    /// # Errors
    /// See [`Refused`].
    pub(crate) fn leave(&self, id: &Id) -> Result<(), Refused> {
        self.disconnect(id);
        let mut journal = lock(&self.0.journal);
        let (id, expires_s, key) = (id.clone(), now_s(), String::new());
        self.append(&mut journal, Record::Renewed { id, expires_s, key, granted: None }, expires_s)
    }

    /// Issues a new certificate to an identity that has one. While more than half of the newest certificate's life is left,
    /// the new one ends at the same time, and nothing is written. So repeated renewals do not fill the file. Blocks.
    ///
    /// # Errors
    /// See [`Refused`].
    pub(crate) fn renew(&self, identity: &Identity, request: &[u8]) -> Result<Issued, Refused> {
        self.renew_at(now_s(), identity, request)
    }

    fn renew_at(&self, now_s: u64, identity: &Identity, request: &[u8]) -> Result<Issued, Refused> {
        let request = SigningRequest::read(request).map_err(Refused::Invalid)?;
        let mut journal = lock(&self.0.journal);
        if self.is_revoked(&identity.id) {
            return Err(Refused::Token("this identity was revoked"));
        }
        let life_s = self.life_s(identity);
        let left_s = self.0.records.read().renewed_until_s(&identity.id).map(|end_s| end_s.saturating_sub(now_s));
        if let Some(left_s) = left_s.filter(|left_s| *left_s > life_s / 2) {
            return Ok(self.issue(&request, identity, now_s, left_s.min(life_s))?.0);
        }
        self.renewed(&mut journal, identity, &request, String::new(), now_s)
    }

    fn renewed(
        &self,
        journal: &mut Journal,
        identity: &Identity,
        request: &SigningRequest,
        key: String,
        now_s: u64,
    ) -> Result<Issued, Refused> {
        let (issued, expires_s, granted) = self.issue(request, identity, now_s, self.life_s(identity))?;
        // Only the key of a join is ever sent again, so other certificates are not kept.
        let (id, granted) = (identity.id.clone(), Some(granted).filter(|_| !key.is_empty()));
        self.append(journal, Record::Renewed { id, expires_s, key, granted }, now_s)?;
        Ok(issued)
    }

    /// How long a new certificate is valid, in seconds.
    fn life_s(&self, identity: &Identity) -> u64 {
        if identity.role.is_worker() { self.0.worker_life_s } else { PERSON_LIFE_S }
    }

    /// A certificate for this time, when it ends, and the part that is recorded.
    fn issue(
        &self,
        request: &SigningRequest,
        identity: &Identity,
        now_s: u64,
        life_s: u64,
    ) -> Result<(Issued, u64, Granted), Refused> {
        let (authority, pin) = self.authority();
        let certificate = authority.issue(request, identity, now_s, life_s).map_err(Refused::Invalid)?;
        let granted = Granted::new(pin, &certificate);
        Ok(((certificate, authority.certificate().to_vec()), now_s + life_s, granted))
    }

    /// The present authority, and its pin as text.
    fn authority(&self) -> (Arc<Authority>, String) {
        let current = self.current();
        (Arc::clone(&current.authority), current.pin.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use evoxo_access::{Certificate, Newcomer, Role};

    use super::{super::init, *};

    /// A caller that repeats a join all day gets one certificate and causes no further line in the journal. It gets a new
    /// certificate when half of the first one's life is over.
    #[test]
    fn a_repeated_join_gets_the_same_certificate() {
        const LIFE_S: u64 = 1000;
        let site = tempfile::tempdir().unwrap();
        let directory = site.path().join("access");
        init(&directory, &[]).unwrap();
        let open = || Access::open(&directory, Duration::from_secs(LIFE_S)).unwrap();
        let access = open();
        let token = access.create_token(Role::Worker, 3600, 1, String::new()).unwrap();
        let request = |name: &str| {
            let newcomer = Newcomer::new(token.clone(), site.path().join(name)).unwrap();
            newcomer.request("lab7").unwrap().request
        };
        let (own, now) = (request("own"), now_s());
        let join = |access: &Access, at_s: u64, request: &[u8]| {
            access.join_at(at_s, &token.id, &token.secret, request, "lab7".into(), "10.0.0.7".into())
        };
        let records = || std::fs::read_to_string(directory.join("records.jsonl")).unwrap();
        let first = join(&access, now, &own).unwrap();
        let written = records();
        for _ in 0..100 {
            let again = join(&access, now + LIFE_S / 2 - 30, &request("own")).unwrap();
            assert_eq!((&again.0, &again.1, again.2), (&first.0, &first.1, true));
        }
        assert_eq!(records(), written);
        assert!(join(&access, now, &request("other")).is_err(), "the token is used up");
        // A restarted coordinator still knows the grant.
        let access = open();
        assert_eq!(join(&access, now, &own).unwrap().1, first.1);
        // Half of the certificate's life is over.
        let later = now + LIFE_S / 2;
        let second = join(&access, later, &own).unwrap();
        assert!(second.0 == first.0 && second.1 != first.1 && second.2);
        let written = records();
        assert_eq!(join(&access, later + 1, &own).unwrap().1, second.1);
        assert_eq!(records(), written);
        // Under another authority the certificate is worthless.
        let other = site.path().join("other");
        init(&other, &[]).unwrap();
        for name in ["ca.pem", "ca.key", "server.pem"] {
            std::fs::copy(other.join(name), directory.join(name)).unwrap();
        }
        let moved = open();
        let third = join(&moved, later + 2, &own).unwrap();
        assert!(third.0 == first.0 && third.1 != second.1 && third.1.1 != second.1.1);
        // The identity renews with another key, and the first key becomes worthless.
        moved.renew(&first.0, &request("renewed")).unwrap();
        assert!(join(&moved, later + 3, &own).is_err());
    }

    /// An identity that renews all day, with a new key each time, gets valid certificates and causes three lines in the
    /// journal within one life.
    #[test]
    fn repeated_renewals_write_almost_nothing() {
        const LIFE_S: u64 = 1000;
        let site = tempfile::tempdir().unwrap();
        let directory = site.path().join("access");
        init(&directory, &[]).unwrap();
        let open = || Access::open(&directory, Duration::from_secs(LIFE_S)).unwrap();
        let access = open();
        let token = access.create_token(Role::Worker, 3600, 1, String::new()).unwrap();
        let request = |name: &str| {
            let newcomer = Newcomer::new(token.clone(), site.path().join(name)).unwrap();
            newcomer.request("lab7").unwrap().request
        };
        let now = now_s();
        let (own, address) = (request("own"), "10.0.0.7".to_owned());
        let (identity, first, _) =
            access.join_at(now, &token.id, &token.secret, &own, "lab7".into(), address.clone()).unwrap();
        let lines = || std::fs::read_to_string(directory.join("records.jsonl")).unwrap().lines().count();
        let (begun, mut ends) = (lines(), Vec::new());
        for at_s in (now..=now + LIFE_S).step_by(20) {
            for name in ["one", "two"] {
                let (renewed, authority) =
                    access.renew_at(at_s, &identity, &request(&format!("{name}{at_s}"))).unwrap();
                let facts = Certificate::read(&renewed).unwrap();
                assert!(renewed != first.0 && authority == first.1 && facts.identity == identity);
                assert!(
                    (at_s + LIFE_S / 2..=at_s + LIFE_S).contains(&facts.expires_s),
                    "at least half of its life is left"
                );
                ends.push(facts.expires_s);
            }
        }
        ends.dedup();
        assert_eq!((lines() - begun, ends), (3, [0, 500, 1000].map(|second| now + second + LIFE_S).to_vec()));
        // The key with which it joined has been worthless since the first renewal.
        assert!(access.join_at(now, &token.id, &token.secret, &own, "lab7".into(), address).is_err());
        // A restarted coordinator knows as much.
        let (access, before) = (open(), lines());
        access.renew_at(now + LIFE_S, &identity, &request("again")).unwrap();
        assert_eq!(lines(), before);
        // A life that an operator has shortened applies to renewals.
        let short = Access::open(&directory, Duration::from_secs(10)).unwrap();
        let (renewed, _) = short.renew_at(now + LIFE_S, &identity, &request("short")).unwrap();
        assert_eq!(Certificate::read(&renewed).unwrap().expires_s, now + LIFE_S + 10);
        access.revoke(&identity.id).unwrap();
        assert!(access.renew_at(now + LIFE_S, &identity, &request("late")).is_err());
    }
}
