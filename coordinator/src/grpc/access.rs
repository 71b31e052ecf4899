//! The service for access: the calls of `access.proto`. [`super::rights`] decides who may make them.

use std::{collections::BTreeMap, sync::Arc};

use evoxo_access::{Identity, Role, Secret};
use evoxo_proto::{
    NAME_BYTES_MAX,
    v1::{self, access_service_server::AccessService},
};
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};
use tracing::{info, warn};

use super::{Failure, accept::ConnectionInfo, cut, status_of};
use crate::{
    access::{Access, Asker, Issued, Outcome, Refused, Revoked, merge, says_done},
    core::{Request as CoreRequest, Response as CoreResponse},
    shell::Handle,
    store::LogPart,
};

/// How many requests wait for the disk at once, each on its own thread.
const AT_ONCE: usize = 2;
/// How many lines of the audit log are read if the request does not say, and at most.
const LINES: u32 = 100;
const LINES_MAX: u32 = 1000;

/// See `access.proto`.
pub(crate) struct AccessCalls {
    access: Option<Access>,
    core: Handle,
    turns: Arc<Semaphore>,
}

impl AccessCalls {
    pub(crate) fn new(access: Option<Access>, core: Handle) -> Self {
        Self { access, core, turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Does work that may wait for the disk, off the thread that serves connections.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Access) -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, Failure> {
        let Some(access) = self.access.clone() else {
            let why = "this coordinator has no access directory, so everybody may use it";
            return Err(Status::failed_precondition(why).into());
        };
        let _turn = self.turns.acquire().await;
        let done = tokio::task::spawn_blocking(move || work(&access)).await;
        match done {
            Ok(done) => done.map_err(|refused| {
                // The record may be in the file.
                let in_doubt = matches!(refused, Refused::Failed(_));
                Failure { status: refused.into(), in_doubt }
            }),
            Err(_) => {
                let status = Status::internal("a request about access panicked: please report this");
                Err(Failure { status, in_doubt: true })
            }
        }
    }
}

impl AccessCalls {
    /// The names of connected workers, by identity. A host may have a new name since it joined.
    async fn names(&self) -> BTreeMap<String, String> {
        match self.core.ask(CoreRequest::Workers).await {
            Ok(CoreResponse::Workers(workers)) => {
                let known = workers.into_iter().filter(|worker| !worker.identity.is_empty());
                known.map(|worker| (worker.identity, worker.name)).collect()
            }
            _ => BTreeMap::new(),
        }
    }

    async fn keep_revoked(&self, id: &str, by: String) -> Result<(), Failure> {
        match self.core.ask(CoreRequest::Revoke { id: id.to_owned(), by }).await {
            Ok(_) => Ok(()),
            Err(rejection) => {
                let why = status_of(rejection);
                let status = Status::unavailable(cut(format!(
                    "{id} is revoked on this coordinator, but the store does not have the revocation yet, so a standby \
                     does not know it: {}; revoke it again",
                    why.message()
                )));
                Err(Failure { status, in_doubt: true })
            }
        }
    }
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Token(why) => Self::unauthenticated(why),
            Refused::Invalid(why) => Self::invalid_argument(cut(why)),
            Refused::Exhausted => Self::resource_exhausted(
                "there are too many tokens: revoke some that are no longer \
                                                            needed",
            ),
            Refused::Failed(error) => {
                warn!("{error:#}");
                Self::unavailable("the coordinator cannot write its access directory now: its log says why")
            }
        }
    }
}

/// The caller's connection.
fn info<T>(request: &Request<T>) -> Result<ConnectionInfo, Status> {
    let info = request.extensions().get::<ConnectionInfo>().cloned();
    info.ok_or_else(|| Status::internal("a call without a connection: please report this"))
}

/// The caller's identity. Every such caller has one, because the rights were checked.
fn identity(info: &ConnectionInfo) -> Result<Identity, Status> {
    let certificate = info.caller.certificate().ok_or_else(|| Status::unauthenticated("this needs a certificate"))?;
    Ok(certificate.identity.clone())
}

fn certificate((certificate, authority): Issued) -> Response<v1::Certificate> {
    Response::new(v1::Certificate { certificate: certificate.into(), authority: authority.into() })
}

/// Returns the name if it is safe to print; otherwise a sentence.
fn checked(name: String) -> Result<String, Status> {
    if name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        let sentence = format!("a name must have at most {NAME_BYTES_MAX} bytes and no control characters");
        return Err(Status::invalid_argument(sentence));
    }
    Ok(name)
}

#[tonic::async_trait]
impl AccessService for AccessCalls {
    async fn join(&self, request: Request<v1::JoinRequest>) -> Result<Response<v1::Certificate>, Status> {
        let info = info(&request)?;
        let v1::JoinRequest { token, secret, request, name } = request.into_inner();
        let name = checked(name)?;
        let address = info.address.to_string();
        let id = token.parse().map_err(Status::invalid_argument);
        let (shown, from) = (name.clone(), address.clone());
        let joined = match (id, Secret::from_bytes(&secret)) {
            (Ok(id), Some(secret)) => {
                self.on_disk(move |access| access.join(&id, &secret, &request, name, address)).await
            }
            (Err(status), _) => Err(status.into()),
            (_, None) => Err(Status::invalid_argument("a token's secret must have 32 bytes").into()),
        };
        let written = match &joined {
            Ok((identity, _, again)) => {
                // A caller that repeats its join must not fill the process's log either.
                if !again {
                    info!("{} {} joined from {from} as {shown:?} with token {token}", identity.role, identity.id);
                }
                let what = format!("token {token}: {} {} {shown:?}", identity.role, identity.id);
                // The line about a new operator counts as an operator's line.
                let newcomer = Asker { account: token, strong: identity.role == Role::Operator, ..info.asker() };
                info.audit_as(&newcomer, "join", &what, if *again { Outcome::Again } else { Outcome::Done })
            }
            Err(_) => info.audit("join", &format!("token {token} {shown:?}"), Failure::outcome(&joined)),
        };
        written.wait().await;
        Ok(joined.map(|(_, issued, _)| certificate(issued))?)
    }

    async fn renew(&self, request: Request<v1::RenewRequest>) -> Result<Response<v1::Certificate>, Status> {
        let identity = identity(&info(&request)?)?;
        let request = request.into_inner().request;
        Ok(self.on_disk(move |access| access.renew(&identity, &request)).await.map(certificate)?)
    }

    async fn create_token(
        &self,
        request: Request<v1::CreateTokenRequest>,
    ) -> Result<Response<v1::CreateTokenResponse>, Status> {
        let info = info(&request)?;
        let v1::CreateTokenRequest { role, lifetime_s, uses } = request.into_inner();
        let role: Role = role.parse().map_err(Status::invalid_argument)?;
        let by = identity(&info).map(|identity| identity.id.to_string()).unwrap_or_default();
        let created = self.on_disk(move |access| access.create_token(role, lifetime_s, uses, by)).await;
        let shown = created.as_ref().map_or_else(|_| String::new(), |token| format!(" {}", token.id));
        let what = format!("token{shown} for {role}: {uses} uses in {lifetime_s} s");
        info.audit("create token", &what, Failure::outcome(&created)).wait().await;
        Ok(Response::new(v1::CreateTokenResponse { token: created?.to_string() }))
    }

    async fn list_access(&self, _: Request<v1::ListAccessRequest>) -> Result<Response<v1::ListAccessResponse>, Status> {
        let (tokens, identities) = self.on_disk(|access| Ok(access.list())).await?;
        let named = self.names().await;
        let tokens = tokens.into_iter().map(|(id, token)| v1::Token {
            id: id.to_string(),
            role: token.role.to_string(),
            uses: token.uses,
            expires: token.expires_s,
            created_by: token.by,
        });
        let identities = identities.into_iter().map(|(id, known, connections)| v1::Identity {
            id: id.to_string(),
            role: known.role.to_string(),
            name: named.get(&id.to_string()).cloned().unwrap_or(known.name),
            token: known.token,
            address: known.address,
            expires: known.expires_s,
            connections,
        });
        Ok(Response::new(v1::ListAccessResponse { tokens: tokens.collect(), identities: identities.collect() }))
    }

    async fn revoke(&self, request: Request<v1::RevokeRequest>) -> Result<Response<v1::RevokeResponse>, Status> {
        let info = info(&request)?;
        let id: evoxo_access::Id = request.into_inner().id.parse().map_err(Status::invalid_argument)?;
        let what = id.to_string();
        let by = identity(&info).map(|identity| identity.id.to_string()).unwrap_or_default();
        // First here, where the revocation takes effect at once; then in the store, for later leaders.
        let revoked = async {
            let revoked = self.on_disk(move |access| access.revoke(&id)).await?;
            self.keep_revoked(&what, by).await.map(|()| revoked)
        };
        let revoked = revoked.await;
        info.audit("revoke", &what, Failure::outcome(&revoked)).wait().await;
        let Revoked { known, connections, token } = revoked?;
        info!("{what} is revoked: {connections} connections are ended");
        Ok(Response::new(v1::RevokeResponse { known, connections, token: token.map(String::from).unwrap_or_default() }))
    }

    async fn read_log(&self, request: Request<v1::ReadLogRequest>) -> Result<Response<v1::ReadLogResponse>, Status> {
        let v1::ReadLogRequest { lines, done } = request.into_inner();
        let lines = match lines {
            0 => LINES,
            lines => lines.min(LINES_MAX),
        };
        let lines = lines as usize;
        let (here, unread) = self.on_disk(move |access| Ok(access.newest(lines, done))).await?;
        let wanted = if done { says_done } else { |_: &str| true };
        let stored = async {
            let [rights, others] = LogPart::ALL.map(|part| self.core.reader.newest_log(part, lines, wanted));
            Ok([rights.await?, others.await?])
        };
        let (stored, missing) = match (unread, stored.await) {
            (None, Ok(stored)) => (stored, String::new()),
            (None, Err(why)) => (Default::default(), why),
            (Some(error), stored) => {
                let why = format!("the audit log on the coordinator's host cannot be read now: {error:#}");
                warn!("{why}");
                (stored.map_err(|why: String| Status::unavailable(cut(why)))?, why)
            }
        };
        Ok(Response::new(v1::ReadLogResponse { lines: merge(here, stored, lines), missing: cut(missing) }))
    }
}
