//! The login to the page of a coordinator with an access directory. A token is exchanged for a session, whose secret is a
//! cookie that every request shows. The [table of rights](crate::grpc::rights) says what a session may do.

use std::{
    net::IpAddr,
    sync::Mutex,
    time::{Duration, Instant},
};

use evoxo_access::{Id, Identity, Role, Secret, Token, now_s};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tracing::{info, warn};

use super::{
    allowance::Allowance,
    guard::{PageRefusal, only},
    sessions::Sessions,
    visit::Visit,
};
use crate::{
    access::{self, Access, Outcome, Written, lock},
    grpc::rights::check_role,
};

/// The cookie's name. With this prefix, browsers accept the cookie only over TLS, only from this host, and for all of its
/// paths.
const COOKIE: &str = "__Host-evoxo";
/// Requests without a session, in addition to the first ones of each connection: how many an address may make at once (the
/// page has some twenty files), and the interval after which it may make one more.
const REQUESTS_AT_ONCE: u32 = 200;
const REQUEST_EACH: Duration = Duration::from_millis(250);
/// The same limits for logins: with a bad token they count against the address, with a good one against the token. So wrong
/// guesses lock nobody out.
const GUESSES_AT_ONCE: u32 = 10;
const LOGINS_AT_ONCE: u32 = 64;
const LOGIN_EACH: Duration = Duration::from_secs(6);

/// The call whose rights allow looking at the page.
const LOOK: &str = "/evoxo.v1.RunService/Watch";
/// What can be done on a page, each with the call whose rights it needs.
pub(super) const ORDERS: [(&str, &str); 6] = [
    ("pause", "/evoxo.v1.RunService/Pause"),
    ("resume", "/evoxo.v1.RunService/Resume"),
    ("cancel", "/evoxo.v1.RunService/Cancel"),
    ("delete", "/evoxo.v1.RunService/Cancel"),
    ("note", "/evoxo.v1.RunService/Submit"),
    ("drain", "/evoxo.v1.RunService/DrainWorkers"),
];

/// The orders that a page of a coordinator started by `evoxo run` or `evoxo view` does not take: these runs belong to their
/// directories, and `evoxo view` writes nothing.
const OF_A_STORE: [&str; 2] = ["delete", "note"];

/// Who sends a request.
pub(super) enum Visitor {
    /// Anybody: this coordinator has no access directory, so nobody logs in.
    Anybody,
    /// A visitor without a session.
    Stranger,
    /// A visitor with a session, and when the session ends, in seconds since 1970.
    Known(Identity, u64),
}

impl Visitor {
    fn may(&self, call: &str) -> Result<(), PageRefusal> {
        match self {
            Self::Anybody => Ok(()),
            Self::Stranger => {
                let sentence = "log in first, with a token of the role viewer, submitter or operator";
                Err(PageRefusal::new(StatusCode::UNAUTHORIZED, sentence))
            }
            Self::Known(identity, _) => check_role(identity.role, call)
                .map_err(|status| PageRefusal::new(StatusCode::FORBIDDEN, status.message().to_owned())),
        }
    }

    /// Whether the visitor may look at runs and workers, and play.
    pub(super) fn may_look(&self) -> Result<(), PageRefusal> {
        self.may(LOOK)
    }

    /// Whether the visitor may give this order. The coordinator is `owned` if another program started it for its own runs.
    pub(super) fn may_order(&self, verb: &str, owned: bool) -> Result<(), PageRefusal> {
        if owned && OF_A_STORE.contains(&verb) {
            let sentence = "this page only shows the runs of a directory: delete the directory itself";
            return Err(PageRefusal::new(StatusCode::FORBIDDEN, sentence));
        }
        let known = ORDERS.iter().find(|(order, _)| *order == verb);
        let (_, call) = known.ok_or_else(|| PageRefusal::new(StatusCode::NOT_FOUND, "there is no such order"))?;
        self.may_change(call)
    }

    /// Whether the visitor may make a call that changes something. Each login has a new identity, so a submitter's login has
    /// submitted no run.
    fn may_change(&self, call: &str) -> Result<(), PageRefusal> {
        match self.identity() {
            Some(Identity { role: Role::Submitter, .. }) => {
                let sentence =
                    "a login of a submitter may only look: change your runs with `evoxo`, or log in as an operator";
                Err(PageRefusal::new(StatusCode::FORBIDDEN, sentence))
            }
            _ => self.may(call),
        }
    }

    /// The visitor's identity and rights, for the page.
    pub(super) fn json(&self, owned: bool) -> Value {
        let may: Value =
            ORDERS.iter().map(|(verb, _)| *verb).filter(|verb| self.may_order(verb, owned).is_ok()).collect();
        match self {
            Self::Known(Identity { id, role }, until_s) => {
                json!({"id": id.to_string(), "role": role.name(), "until": until_s, "may": may})
            }
            Self::Anybody | Self::Stranger => json!({"id": null, "role": null, "until": null, "may": may}),
        }
    }

    /// The number of the visitor's identity, if known.
    pub(super) fn id(&self) -> Option<&Id> {
        self.identity().map(|identity| &identity.id)
    }

    /// The visitor's identity, if known.
    fn identity(&self) -> Option<&Identity> {
        match self {
            Self::Known(identity, _) => Some(identity),
            Self::Anybody | Self::Stranger => None,
        }
    }
}

/// The door. It keeps the sessions of everybody it let in.
pub(super) struct Door {
    access: Access,
    /// How long a session lasts, in seconds.
    life_s: u64,
    sessions: Mutex<Sessions>,
    requests: Mutex<Allowance<IpAddr>>,
    guesses: Mutex<Allowance<IpAddr>>,
    logins: Mutex<Allowance<Id>>,
    /// Lets one login at a time wait for the disk.
    turn: Semaphore,
}

impl Door {
    pub(super) fn new(access: Access, life: Duration) -> Self {
        Self {
            access,
            life_s: life.as_secs().max(1),
            sessions: Mutex::default(),
            requests: Mutex::new(Allowance::new(REQUESTS_AT_ONCE, REQUEST_EACH)),
            guesses: Mutex::new(Allowance::new(GUESSES_AT_ONCE, LOGIN_EACH)),
            logins: Mutex::new(Allowance::new(LOGINS_AT_ONCE, LOGIN_EACH)),
            turn: Semaphore::new(1),
        }
    }

    /// The visitor with this cookie. Requests without a valid cookie are limited, so cookies cannot be guessed either.
    pub(super) fn visitor(&self, visit: &Visit, headers: &HeaderMap) -> Result<Visitor, PageRefusal> {
        let found = cookie(headers).and_then(|(id, secret)| lock(&self.sessions).find(&id, &secret, now_s()));
        match found.filter(|(identity, _)| !self.access.is_revoked(&identity.id)) {
            Some((identity, until_s)) => Ok(Visitor::Known(identity, until_s)),
            // A new connection can log in, however many requests others send from behind the same router.
            None if visit.may_ask() || lock(&self.requests).take(&visit.peer, Instant::now()) => Ok(Visitor::Stranger),
            None => Err(too_many("too many requests came from your address without a login: wait a minute")),
        }
    }

    /// Exchanges the token in the header Authorization for a session. Returns the visitor and the cookie.
    pub(super) async fn login(&self, peer: IpAddr, headers: &HeaderMap) -> Result<(Visitor, HeaderValue), PageRefusal> {
        let token: Result<Token, String> = only(headers, header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "))
            .map_or_else(
                || Err("a login needs a token in the header Authorization: `Bearer TOKEN`".into()),
                str::parse,
            );
        let guess = || match lock(&self.guesses).take(&peer, Instant::now()) {
            true => Ok(()),
            false => Err(too_many("too many logins with a wrong token came from your address: wait a minute")),
        };
        let Token { id: token, secret, .. } = match token {
            Ok(token) => token,
            Err(why) => return guess().and(Err(PageRefusal::new(StatusCode::BAD_REQUEST, why))),
        };
        if !self.access.is_good(&token, &secret) {
            guess()?;
        } else if !lock(&self.logins).take(&token, Instant::now()) {
            return Err(too_many("too many logins used this token: wait a minute"));
        }
        let (asked, life_s) = (token.clone(), self.life_s);
        let entered = self.on_disk(move |access| access.enter(&asked, &secret, life_s, peer.to_string())).await;
        let about = format!("token {token}");
        let identity = match entered {
            Ok(identity) => identity,
            Err(refused) => {
                self.audit(&Visitor::Stranger, peer, "login", &about, Outcome::Refused(&refused.1)).wait().await;
                return Err(refused);
            }
        };
        let (secret, now_s) = (Secret::draw(), now_s());
        let until_s = now_s + life_s;
        let displaced = lock(&self.sessions).begin(&identity, token, &secret, (now_s, until_s));
        if let Some(displaced) = displaced {
            self.on_disk(move |access| access.leave(&displaced)).await?;
        }
        info!("{} {} logged in on the page from {peer} with {about}", identity.role, identity.id);
        let cookie = format!("{}.{}", identity.id, secret.text());
        let visitor = Visitor::Known(identity, until_s);
        self.audit(&visitor, peer, "login", &about, Outcome::Done).wait().await;
        Ok((visitor, set(&cookie, life_s)))
    }

    /// Ends a session. Returns a header that deletes the cookie.
    pub(super) async fn logout(&self, visitor: &Visitor, peer: IpAddr) -> Result<HeaderValue, PageRefusal> {
        if let Visitor::Known(Identity { id, .. }, _) = visitor {
            let own = id.clone();
            // The line must be attributed before the session ends: afterwards the identity has no token to whose share the
            // line could count.
            let asker = self.access.asker(visitor.identity(), peer.to_string());
            lock(&self.sessions).end(id);
            self.on_disk(move |access| access.leave(&own)).await?;
            self.access.audit(&asker, "logout on the page", "", Outcome::Done).wait().await;
        }
        Ok(set("", 0))
    }

    /// Completes when the visitor's session ends: when its time is over, by a logout, or because it was revoked.
    pub(super) fn ended(&self, visitor: &Visitor) -> impl Future<Output = ()> + Send + use<> {
        let known = match visitor {
            Visitor::Known(Identity { id, .. }, until_s) => Some((self.access.until_revoked(id), *until_s)),
            _ => None,
        };
        async move {
            let Some((ended, until_s)) = known else { return };
            // Whether by timeout or earlier, the session has ended now.
            let _ = tokio::time::timeout(Duration::from_secs(until_s.saturating_sub(now_s())), ended).await;
        }
    }

    /// Adds a line to the audit log: this was requested on the page, with this outcome.
    pub(super) fn audit(
        &self,
        visitor: &Visitor,
        peer: IpAddr,
        what: &str,
        object: &str,
        outcome: Outcome<'_>,
    ) -> Written {
        let what = format!("{what} on the page");
        self.access.audit(&self.access.asker(visitor.identity(), peer.to_string()), &what, object, outcome)
    }

    /// Does work that waits for the disk, off the thread that serves connections.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Access) -> Result<T, access::Refused> + Send + 'static,
    ) -> Result<T, PageRefusal> {
        let _turn = self.turn.acquire().await;
        let access = self.access.clone();
        match tokio::task::spawn_blocking(move || work(&access)).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(access::Refused::Token(why))) => Err(PageRefusal::new(StatusCode::FORBIDDEN, why)),
            other => {
                warn!("a login or logout failed: {:?}", other.map(|done| done.map(drop)));
                let sentence = "the coordinator cannot write its access directory: its log says why";
                Err(PageRefusal::new(StatusCode::SERVICE_UNAVAILABLE, sentence))
            }
        }
    }
}

fn too_many(sentence: &'static str) -> PageRefusal {
    PageRefusal::new(StatusCode::TOO_MANY_REQUESTS, sentence)
}

/// The number and the secret in the cookie, if there is exactly one of this name.
fn cookie(headers: &HeaderMap) -> Option<(Id, Secret)> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut values =
        texts.flat_map(|text| text.split("; ")).filter_map(|pair| pair.strip_prefix(COOKIE)?.strip_prefix('='));
    let (id, secret) = values.next().filter(|_| values.next().is_none())?.split_once('.')?;
    Some((id.parse().ok()?, Secret::from_text(secret)?))
}

/// The header that sets the cookie.
fn set(value: &str, seconds: u64) -> HeaderValue {
    let text = format!("{COOKIE}={value}; Path=/; Max-Age={seconds}; HttpOnly; Secure; SameSite=Strict");
    let mut header = HeaderValue::try_from(text).expect("digits, base64 and a fixed text can stand in a header");
    header.set_sensitive(true);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_read_back() {
        let (id, secret) = (Id::draw(), Secret::draw());
        let text = set(&format!("{id}.{}", secret.text()), 60).to_str().unwrap().to_owned();
        let pair = text.split("; ").next().unwrap();
        let read = |texts: &[&str]| {
            let headers = texts.iter().map(|text| (header::COOKIE, text.parse().unwrap()));
            cookie(&HeaderMap::from_iter(headers)).map(|(id, secret)| (id, secret.bytes().to_vec()))
        };
        let right = Some((id, secret.bytes().to_vec()));
        assert_eq!(read(&[pair]), right);
        assert_eq!(read(&[&format!("a=b; {pair}; c=d")]), right);
        assert_eq!(read(&["a=b", pair]), right);
        // A second cookie may come from somebody else, so neither counts.
        assert_eq!(read(&[pair, pair]), None);
        assert_eq!(read(&[&format!("{pair}; {pair}")]), None);
        for wrong in
            ["", "a=b", COOKIE, &pair[1..], &pair[..pair.len() - 1], &pair.replace('.', "-"), &pair.to_lowercase()]
        {
            assert_eq!(read(&[wrong]), None, "{wrong}");
        }
    }

    #[test]
    fn orders_need_the_rights_of_their_calls() {
        let known = |role| Visitor::Known(Identity { id: Id::draw(), role }, 0);
        let may = |visitor: &Visitor| visitor.json(false)["may"].clone();
        use evoxo_access::Role::{Operator, Submitter, TrustedWorker, Viewer, Worker};
        assert_eq!(may(&Visitor::Anybody), may(&known(Operator)));
        assert_eq!(may(&known(Operator)), json!(ORDERS.map(|(verb, _)| verb)));
        assert!([Viewer, Submitter, Operator].iter().all(|role| known(*role).may_look().is_ok()));
        for visitor in [known(Viewer), known(Submitter), known(Worker), known(TrustedWorker), Visitor::Stranger] {
            assert_eq!(may(&visitor), json!([]));
        }
        for visitor in [known(Worker), known(TrustedWorker), Visitor::Stranger] {
            assert!(visitor.may_look().is_err());
        }
        assert!(known(Operator).may_order("rename", false).is_err());
        // The page of `evoxo run` or `evoxo view`.
        assert_eq!(Visitor::Anybody.json(true)["may"], json!(["pause", "resume", "cancel", "drain"]));
        assert!(Visitor::Anybody.may_order("delete", true).is_err());
    }
}
