//! When certificates and tokens expire, for the metrics.

use evoxo_access::{Id, Role, now_s};

use super::{Access, lock};

/// The most identities, and the most tokens, that are named: those that expire first.
const EXPIRIES_MAX: usize = 100;

/// When certificates and tokens expire, in seconds since 1970.
#[derive(Debug, Default)]
pub(crate) struct Expiries {
    /// The coordinator's own: the authority's and the server's.
    pub(crate) own: Vec<(&'static str, u64)>,
    /// Identities that are connected now, each with its name and role.
    pub(crate) identities: Vec<(Id, String, Role, u64)>,
    /// Tokens that can still be used.
    pub(crate) tokens: Vec<(Id, Role, u64)>,
}

impl Access {
    /// When the present certificates and tokens expire.
    pub(crate) fn expiries(&self) -> Expiries {
        let own = ["authority", "server"].into_iter().zip(self.current().expire_s).collect();
        let connected: Vec<Id> = {
            let connections = lock(&self.0.connections);
            let open = connections.iter().filter(|(_, ends)| ends.iter().any(|end| !end.is_closed()));
            open.map(|(id, _)| id.clone()).collect()
        };
        let records = self.0.records.read();
        let known = |id: Id| records.identities.get(&id).map(|it| (id, it.name.clone(), it.role, it.expires_s));
        let mut identities: Vec<_> = connected.into_iter().filter_map(known).collect();
        identities.sort_by_key(|(.., expires_s)| *expires_s);
        identities.truncate(EXPIRIES_MAX);
        let usable = records.tokens.iter().filter(|(_, token)| token.is_usable(now_s()));
        let mut tokens: Vec<_> = usable.map(|(id, token)| (id.clone(), token.role, token.expires_s)).collect();
        tokens.sort_by_key(|(.., expires_s)| *expires_s);
        tokens.truncate(EXPIRIES_MAX);
        Expiries { own, identities, tokens }
    }
}
