//! Refusing identities and tokens: by hand, after a conviction, or because the store says so.

use anyhow::bail;
use evoxo_access::{Id, now_s};

use super::{
    Access, Refused, Revoked, lock,
    records::{Record, Records},
    writer::PATIENCE,
};
use crate::store::Refused as RefusedByAll;

impl Access {
    /// Refuses an identity or a token from now on. Blocks.
    ///
    /// # Errors
    /// See [`Refused`].
    pub(crate) fn revoke(&self, id: &Id) -> Result<Revoked, Refused> {
        self.revoke_as(id, false)
    }

    fn revoke_as(&self, id: &Id, convicted: bool) -> Result<Revoked, Refused> {
        let mut journal = lock(&self.0.journal);
        let now_s = now_s();
        let (known, token) = {
            let records = self.0.records.read();
            let known = records.identities.contains_key(id) || records.tokens.contains_key(id);
            (known, usable_token(&records, id, now_s))
        };
        self.append(&mut journal, Record::Revoked { id: id.clone(), convicted }, now_s)?;
        // From now on the handshake refuses this certificate.
        Ok(Revoked { known, connections: self.disconnect(id), token })
    }

    /// Takes over the identities and tokens that the store refuses. Returns those that only this directory refuses, and the
    /// tokens of convicted identities. Nothing is written here, because every start reads the store.
    pub(crate) fn take_over(&self, refused: &RefusedByAll) -> RefusedByAll {
        let now_s = now_s();
        let convicted: Vec<Id> = refused.convicted.iter().filter_map(|id| id.parse().ok()).collect();
        let own = {
            let records = self.0.records.read();
            // A coordinator may have ended between a conviction and the revocation of the token.
            let tokens = convicted.iter().filter_map(|id| usable_token(&records, id, now_s));
            let revoked = records.revoked().cloned().chain(tokens);
            let own_convicted = records.convicted().map(|id| id.to_string().into());
            RefusedByAll {
                convicted: own_convicted.filter(|id| !refused.convicted.contains(id)).collect(),
                revoked: revoked.filter(|id| !refused.revoked.contains(id)).collect(),
            }
        };
        let convicted = convicted.into_iter().map(|id| (id, true));
        let revoked = refused.revoked.iter().chain(&own.revoked).map(|id| (id.clone(), false));
        for (id, convicted) in convicted.chain(revoked) {
            self.0.records.apply(Record::Revoked { id: id.clone(), convicted }, now_s);
            self.disconnect(&id);
        }
        own
    }

    /// Revokes an identity that computed wrongly, together with the token with which it joined and could join again as
    /// another identity, and records the reason. Returns the token. Blocks.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub(crate) fn convict(&self, identity: &str, what: &str) -> anyhow::Result<Option<Id>> {
        let id: Id = identity.parse().map_err(anyhow::Error::msg)?;
        // The audit line comes first, so that no identity is revoked without a reason.
        let token = self.token_of(&id);
        let cause = if token.is_empty() { identity } else { &token };
        self.audit_caused(cause, "convict", &format!("{identity}: {what}")).wait_here(PATIENCE);
        let revoke = |id: &Id, convicted: bool| match self.revoke_as(id, convicted) {
            Ok(revoked) => Ok(revoked.token),
            Err(Refused::Failed(why)) => Err(why),
            Err(other) => bail!("{other:?}"),
        };
        let token = revoke(&id, true)?;
        if let Some(token) = &token {
            self.audit_own("revoke", &format!("{token}: {identity}, who is convicted, joined with it"));
            revoke(token, false)?;
        }
        Ok(token)
    }
}

/// The token with which an identity joined, if it can still be used.
fn usable_token(records: &Records, id: &Id, now_s: u64) -> Option<Id> {
    let token: Id = records.identities.get(id)?.token.parse().ok()?;
    records.tokens.get(&token).is_some_and(|token| token.is_usable(now_s)).then_some(token)
}
