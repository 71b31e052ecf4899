//! What the coordinator remembers about tokens and identities, as a fold over records. There are no files and no clock here:
//! the [journal](super::journal) keeps the records, and times come in.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use evoxo_access::{Certificate, Id, Identity, Role, Secret, SecretHash, renewable_until_s};
use serde::{Deserialize, Serialize};

/// The most tokens at once.
const TOKENS_MAX: usize = 1000;
/// The most identities at once: as many as would ever join before the first certificate can no longer be renewed.
const IDENTITIES_MAX: usize = 100_000;

/// An event, as a line of the journal. All times are seconds since 1970.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub(crate) enum Record {
    /// An operator created a token.
    Token { id: Id, secret: SecretHash, role: Role, uses: u32, expires_s: u64, by: String },
    /// A newcomer joined with a token, or an identity was recognised after a restart.
    Joined {
        id: Id,
        role: Role,
        name: String,
        token: String,
        /// The hash of the newcomer's key. It identifies a repeated join.
        key: String,
        address: String,
        expires_s: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        granted: Option<Granted>,
    },
    /// An identity got a new certificate: for the key with which it joined, or, if `key` is empty, for another one.
    Renewed {
        id: Id,
        expires_s: u64,
        #[serde(default)]
        key: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        granted: Option<Granted>,
    },
    /// An identity or a token is refused from now on. Revocations never expire, because a clock that was set wrong must not
    /// admit anybody.
    Revoked {
        id: Id,
        /// True if the identity was convicted of computing wrongly; false if a person revoked it.
        #[serde(default)]
        convicted: bool,
    },
}

/// The certificate granted to a join, kept for a repeated join whose answer was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Granted {
    /// The pin of the authority that signed the certificate, as text.
    authority: String,
    /// The certificate, DER in base64.
    certificate: String,
}

impl Granted {
    pub(crate) fn new(authority: String, certificate: &[u8]) -> Self {
        Self { authority, certificate: STANDARD_NO_PAD.encode(certificate) }
    }

    /// The certificate, if this authority signed it and less than half of its life is over.
    pub(crate) fn good(&self, authority: &str, now_s: u64) -> Option<Vec<u8>> {
        let der = STANDARD_NO_PAD.decode(&self.certificate).ok().filter(|_| self.authority == authority)?;
        let Certificate { begins_s, expires_s, .. } = Certificate::read(&der).ok()?;
        (begins_s..begins_s.midpoint(expires_s)).contains(&now_s).then_some(der)
    }
}

/// A token that can still be used.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) secret: SecretHash,
    pub(crate) role: Role,
    pub(crate) uses: u32,
    pub(crate) expires_s: u64,
    pub(crate) by: String,
}

impl Token {
    pub(crate) fn is_usable(&self, now_s: u64) -> bool {
        self.expires_s > now_s && self.uses > 0
    }
}

/// An identity that was admitted.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) role: Role,
    pub(crate) name: String,
    /// The token with which it joined; empty for an operator made by `init`.
    pub(crate) token: String,
    /// The hash of the key with which it joined; empty if it joined without a key, or has another one by now.
    pub(crate) key: String,
    pub(crate) address: String,
    pub(crate) expires_s: u64,
    /// The certificate granted for that key.
    pub(crate) granted: Option<Granted>,
}

impl Known {
    /// Whether the certificate is valid or can still be renewed.
    pub(crate) fn may_come_back(&self, now_s: u64) -> bool {
        renewable_until_s(self.role, self.expires_s) > now_s
    }
}

/// The state after all records so far.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) tokens: BTreeMap<Id, Token>,
    pub(crate) identities: BTreeMap<Id, Known>,
    /// The revoked identities and tokens, and whether each was convicted.
    revoked: BTreeMap<Id, bool>,
}

impl Records {
    /// Applies the next record.
    pub(crate) fn apply(&mut self, record: Record) {
        match record {
            Record::Token { id, secret, role, uses, expires_s, by } => {
                self.tokens.insert(id, Token { secret, role, uses, expires_s, by });
            }
            Record::Joined { id, role, name, token, key, address, expires_s, granted } => {
                if let Some(used) = token.parse().ok().and_then(|id: Id| self.tokens.get_mut(&id)) {
                    used.uses = used.uses.saturating_sub(1);
                }
                self.identities.insert(id, Known { role, name, token, key, address, expires_s, granted });
            }
            Record::Renewed { id, expires_s, key, granted } => {
                if let Some(known) = self.identities.get_mut(&id) {
                    (known.expires_s, known.key, known.granted) = (expires_s, key, granted);
                }
            }
            Record::Revoked { id, convicted } => {
                self.tokens.remove(&id);
                self.identities.remove(&id);
                *self.revoked.entry(id).or_default() |= convicted;
            }
        }
    }

    /// Forgets tokens and identities that can no longer be used.
    pub(crate) fn prune(&mut self, now_s: u64) {
        self.tokens.retain(|_, token| token.is_usable(now_s));
        self.identities.retain(|_, known| known.may_come_back(now_s));
    }

    /// The fewest records that lead to this state.
    pub(crate) fn records(&self) -> Vec<Record> {
        // Identities come before tokens: if a token were known already, a `Joined` record would use it once more.
        let identities = self.identities.iter().map(|(id, known)| {
            let Known { role, name, token, key, address, expires_s, granted } = known.clone();
            Record::Joined { id: id.clone(), role, name, token, key, address, expires_s, granted }
        });
        let tokens = self.tokens.iter().map(|(id, token)| {
            let Token { secret, role, uses, expires_s, by } = token.clone();
            Record::Token { id: id.clone(), secret, role, uses, expires_s, by }
        });
        let revoked =
            self.revoked.iter().map(|(id, convicted)| Record::Revoked { id: id.clone(), convicted: *convicted });
        identities.chain(tokens).chain(revoked).collect()
    }

    /// The number of remembered entries.
    pub(crate) fn len(&self) -> usize {
        self.tokens.len() + self.identities.len() + self.revoked.len()
    }

    /// The identities and tokens that people revoked.
    pub(crate) fn revoked(&self) -> impl Iterator<Item = &Id> {
        self.revoked.iter().filter(|(_, convicted)| !**convicted).map(|(id, _)| id)
    }

    /// The identities that were convicted.
    pub(crate) fn convicted(&self) -> impl Iterator<Item = &Id> {
        self.revoked.iter().filter(|(_, convicted)| **convicted).map(|(id, _)| id)
    }

    pub(crate) fn is_revoked(&self, id: &Id) -> bool {
        self.revoked.contains_key(id)
    }

    /// The identity that joined with this token and key before, if it may still come back, with the granted certificate.
    /// After a renewal the identity has another key, so an old copy of the first key is worthless.
    pub(crate) fn joined(&self, token: &str, key: &str, now_s: u64) -> Option<(Identity, Option<&Granted>)> {
        let same = |known: &Known| known.key == key && known.token == token && known.may_come_back(now_s);
        let (id, known) = self.identities.iter().find(|(_, known)| same(known))?;
        Some((Identity { id: id.clone(), role: known.role }, known.granted.as_ref()))
    }

    /// When an identity's newest certificate ends, if the identity has renewed one or never joined with a key that could be
    /// sent again.
    pub(crate) fn renewed_until_s(&self, id: &Id) -> Option<u64> {
        self.identities.get(id).filter(|known| known.key.is_empty()).map(|known| known.expires_s)
    }

    /// The role that a token gives. The sentence for an unknown token or a wrong secret is always the same, so nobody learns
    /// which tokens exist. Only a caller who knows the secret learns the exact reason.
    pub(crate) fn role_of(&self, id: &Id, secret: &Secret, now_s: u64) -> Result<Role, &'static str> {
        let token = self.tokens.get(id).filter(|token| token.secret.is_of(secret));
        let Some(token) = token else {
            return Err(
                "the token is not known here, or it was revoked, has expired, was used up or is damaged: ask the \
                 operator for another one",
            );
        };
        if token.expires_s <= now_s {
            return Err("the token has expired: ask the operator for another one");
        }
        if token.uses == 0 {
            return Err("the token has no uses left: ask the operator for another one");
        }
        if self.identities.len() >= IDENTITIES_MAX {
            return Err(
                "too many identities have joined: a worker is forgotten a week after its certificate has expired, or \
                 when it is revoked",
            );
        }
        Ok(token.role)
    }

    /// Whether there is room for another token.
    pub(crate) fn has_room_for_token(&self) -> bool {
        self.tokens.len() < TOKENS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(id: &Id, secret: &Secret, uses: u32) -> Record {
        let by = "me".to_owned();
        Record::Token { id: id.clone(), secret: secret.hash(), role: Role::Worker, uses, expires_s: 100, by }
    }

    fn joined(token: &Id, expires_s: u64) -> (Id, Record) {
        let id = Id::draw();
        let [name, address] = ["lab7", "10.0.0.7"].map(str::to_owned);
        let (role, token, key) = (Role::Worker, token.to_string(), format!("key of {id}"));
        (id.clone(), Record::Joined { id, role, name, token, key, address, expires_s, granted: None })
    }

    #[test]
    fn a_token_is_limited_by_its_uses_its_time_and_its_secret() {
        let (id, secret) = (Id::draw(), Secret::draw());
        let mut records = Records::default();
        records.apply(token(&id, &secret, 2));
        assert_eq!(records.role_of(&id, &secret, 99), Ok(Role::Worker));
        assert!(records.role_of(&id, &secret, 100).unwrap_err().contains("has expired"));
        assert!(records.role_of(&id, &Secret::draw(), 99).unwrap_err().contains("not known"));
        assert!(records.role_of(&Id::draw(), &secret, 99).unwrap_err().contains("not known"));
        records.apply(joined(&id, 200).1);
        assert!(records.role_of(&id, &secret, 99).is_ok());
        records.apply(joined(&id, 200).1);
        assert!(records.role_of(&id, &secret, 99).unwrap_err().contains("no uses left"));
        records.apply(token(&id, &secret, 2));
        records.apply(Record::Revoked { id: id.clone(), convicted: false });
        assert!(records.role_of(&id, &secret, 99).unwrap_err().contains("revoked"));
    }

    #[test]
    fn rejoining_with_the_same_token_and_key_keeps_the_identity() {
        let (id, secret) = (Id::draw(), Secret::draw());
        let mut records = Records::default();
        records.apply(token(&id, &secret, 1));
        let (one, record) = joined(&id, 50);
        records.apply(record);
        records.prune(10);
        assert!(records.role_of(&id, &secret, 10).is_err(), "the token is used up");
        let (number, key) = (id.to_string(), format!("key of {one}"));
        let same = Some((Identity { id: one.clone(), role: Role::Worker }, None));
        assert_eq!(records.joined(&number, &key, 10), same);
        assert_eq!(records.joined(&number, "another key", 10), None);
        assert_eq!(records.joined(&Id::draw().to_string(), &key, 10), None);
        assert_eq!(records.joined(&number, &key, renewable_until_s(Role::Worker, 50) - 1), same);
        assert_eq!(
            records.joined(&number, &key, renewable_until_s(Role::Worker, 50)),
            None,
            "the join was too long \
                                                                                              ago"
        );
        let renewed = |key: &str| Record::Renewed { id: one.clone(), expires_s: 60, key: key.into(), granted: None };
        records.apply(renewed(&key));
        assert_eq!(records.joined(&number, &key, 10), same, "the second answer was lost too");
        records.apply(renewed(""));
        assert_eq!(records.joined(&number, &key, 10), None, "an old copy of the key is not accepted");
        assert!(records.identities.contains_key(&one));
        let (two, record) = joined(&id, 50);
        records.apply(record);
        let key = format!("key of {two}");
        assert!(records.joined(&number, &key, 10).is_some());
        records.apply(Record::Revoked { id: two, convicted: false });
        assert_eq!(records.joined(&number, &key, 10), None, "the identity was revoked");
    }

    #[test]
    fn compacted_records_lead_to_the_same_state() {
        let (id, secret) = (Id::draw(), Secret::draw());
        let mut records = Records::default();
        records.apply(token(&id, &secret, 3));
        let ((one, first), (two, second)) = (joined(&id, 150), joined(&id, 150));
        [first, second].into_iter().for_each(|record| records.apply(record));
        let granted = Some(Granted::new("pin".into(), b"certificate"));
        records.apply(Record::Renewed { id: two.clone(), expires_s: 300, key: "key".into(), granted });
        records.apply(Record::Revoked { id: one.clone(), convicted: true });
        // Revoking it by hand later does not undo the conviction.
        records.apply(Record::Revoked { id: one.clone(), convicted: false });
        let mut again = Records::default();
        let text: Vec<String> = records.records().iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        text.iter().for_each(|line| again.apply(serde_json::from_str(line).unwrap()));
        assert_eq!(format!("{again:?}"), format!("{records:?}"));
        assert_eq!((again.tokens[&id].uses, again.identities[&two].expires_s), (1, 300));
        assert!(again.is_revoked(&one) && !again.is_revoked(&two));
        assert_eq!(again.convicted().collect::<Vec<_>>(), [&one]);
        again.prune(299);
        assert_eq!(again.len(), 2, "the token has expired, but the rest is still there: {again:?}");
        again.prune(1000);
        assert_eq!(again.len(), 2, "an expired certificate may be renewed: {again:?}");
        again.prune(10 * 366 * 24 * 3600);
        assert_eq!(again.len(), 1, "{again:?}");
        assert!(again.is_revoked(&one), "even if the clock says that it is late");
    }
}
