//! Sessions of browsers, in memory only. Whoever has a session's secret acts as the identity it was made for. A restart ends
//! all sessions. There is no clock here: times come in, in seconds since 1970.

use std::collections::BTreeMap;

use evoxo_access::{Id, Identity, Role, Secret, SecretHash};

/// The most sessions at once.
const SESSIONS_MAX: usize = 256;

/// A session, without its secret.
struct Session {
    hash: SecretHash,
    role: Role,
    /// The token that the session was exchanged for.
    token: Id,
    expires_s: u64,
}

/// All sessions, by the number of their identity.
#[derive(Default)]
pub(super) struct Sessions(BTreeMap<Id, Session>);

impl Sessions {
    /// Starts a session that ends at `expires_s`. If there are too many, the oldest session of the token with the most makes
    /// room, and its identity is returned. So however many sessions one token has, they never end another token's.
    pub(super) fn begin(
        &mut self,
        identity: &Identity,
        token: Id,
        secret: &Secret,
        (now_s, expires_s): (u64, u64),
    ) -> Option<Id> {
        self.0.retain(|_, session| session.expires_s > now_s);
        let displaced = if self.0.len() < SESSIONS_MAX { None } else { self.most_dispensable() };
        if let Some(id) = &displaced {
            self.0.remove(id);
        }
        let session = Session { hash: secret.hash(), role: identity.role, token, expires_s };
        self.0.insert(identity.id.clone(), session);
        displaced
    }

    fn most_dispensable(&self) -> Option<Id> {
        let mut of_token: BTreeMap<&Id, Vec<(u64, &Id)>> = BTreeMap::new();
        for (id, session) in &self.0 {
            of_token.entry(&session.token).or_default().push((session.expires_s, id));
        }
        let most = of_token.into_values().max_by_key(Vec::len)?;
        most.into_iter().min().map(|(_, id)| id.clone())
    }

    /// The identity of the session with this secret, and when the session ends.
    pub(super) fn find(&self, id: &Id, secret: &Secret, now_s: u64) -> Option<(Identity, u64)> {
        let session = self.0.get(id).filter(|session| session.hash.is_of(secret) && session.expires_s > now_s)?;
        Some((Identity { id: id.clone(), role: session.role }, session.expires_s))
    }

    /// Ends a session.
    pub(super) fn end(&mut self, id: &Id) {
        self.0.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE_S: u64 = 3600;

    fn begin(sessions: &mut Sessions, token: &Id, now_s: u64) -> (Identity, Secret, Option<Id>) {
        let (identity, secret) = (Identity { id: Id::draw(), role: Role::Viewer }, Secret::draw());
        let displaced = sessions.begin(&identity, token.clone(), &secret, (now_s, now_s + LIFE_S));
        (identity, secret, displaced)
    }

    #[test]
    fn a_session_is_found_by_its_secret_until_it_ends() {
        let mut sessions = Sessions::default();
        let token = Id::draw();
        let (one, secret, _) = begin(&mut sessions, &token, 100);
        let (other, ..) = begin(&mut sessions, &token, 100);
        assert_eq!(sessions.find(&one.id, &secret, 100), Some((one.clone(), 100 + LIFE_S)));
        assert_eq!(sessions.find(&one.id, &secret, 99 + LIFE_S), Some((one.clone(), 100 + LIFE_S)));
        assert_eq!(sessions.find(&one.id, &secret, 100 + LIFE_S), None, "the session has expired");
        assert_eq!(sessions.find(&other.id, &secret, 100), None, "the secret of another session opens nothing");
        assert_eq!(sessions.find(&one.id, &Secret::draw(), 100), None);
        assert_eq!(sessions.find(&Id::draw(), &secret, 100), None);
        sessions.end(&one.id);
        assert_eq!(sessions.find(&one.id, &secret, 100), None);
    }

    #[test]
    fn the_oldest_session_of_the_busiest_token_makes_room() {
        let mut sessions = Sessions::default();
        let [few, many] = [Id::draw(), Id::draw()];
        let (first, secret, _) = begin(&mut sessions, &few, 0);
        let greedy: Vec<Id> = (1..SESSIONS_MAX as u64).map(|at_s| begin(&mut sessions, &many, at_s).0.id).collect();
        for oldest in &greedy[..2] {
            assert_eq!(begin(&mut sessions, &many, 1000).2.as_ref(), Some(oldest));
        }
        assert!(sessions.find(&first.id, &secret, 1000).is_some());
        // Expired sessions make room first.
        assert_eq!(begin(&mut sessions, &many, LIFE_S + 10).2, None);
        assert!(sessions.0.len() < SESSIONS_MAX);
    }
}
