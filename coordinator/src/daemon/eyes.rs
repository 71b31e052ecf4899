//! A standby's view of the store, and of the leader, whose health it checks.

use std::time::{Duration, Instant};

use evoxo_access::{Dialer, Refusal};
use evoxo_process::{Address, host_name};
use evoxo_proto::STANDBY_HEADER;
use tokio::time::timeout;
use tonic::{
    Code, Status,
    metadata::MetadataValue,
    transport::{Channel, Endpoint},
};
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};
use tracing::warn;

use crate::{
    access::Access,
    standby::{Look, conflict},
    store::{Epoch, Leader, Reader, Security},
};

/// How often a standby looks for the leader, and how often a leader checks that it still leads.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// How long the store may take to answer.
pub(super) const STORE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the leader may take to answer. The timeouts of two looks do not overlap, and a stopped leader is missed as
/// quickly as one that is gone.
const ANSWER_TIMEOUT: Duration = LOOK_INTERVAL;
/// How long connecting to the leader may take, which may span several looks.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long one connection to the leader, with one certificate, is used.
const CHANNEL_LIFE: Duration = Duration::from_secs(24 * 3600);

/// The service name for the health of the leader of an epoch. Another process at its address does not know this name.
pub(super) fn service_of(epoch: u64) -> String {
    format!("evoxo.leader.{epoch}")
}

/// A standby's view of the store and of the leader.
pub(super) struct Eyes {
    reader: Reader,
    /// Whether any coordinator has led in this store, as far as this process knows.
    seen: bool,
    /// The epoch in which this process last led.
    led: Option<u64>,
    /// The connection to the last leader that was seen.
    known: Option<(Epoch, Dialer, Channel, Instant)>,
    /// The last leader that answered.
    reached: Option<Epoch>,
    /// The last warning.
    troubled: Option<String>,
}

impl Eyes {
    /// The view of a standby. `seen` says that a coordinator has led in this store; `led` is the epoch in which this process
    /// last led.
    pub(super) fn new(reader: Reader, seen: bool, led: Option<u64>) -> Self {
        Self { reader, seen, led, known: None, reached: None, troubled: None }
    }

    /// Why the last look could not tell whether anybody leads.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.troubled.as_deref()
    }

    /// Looks once, as a coordinator with the security `own`. Also returns the leader.
    pub(super) async fn look(&mut self, own: Security, access: Option<&Access>) -> (Look, Option<Leader>) {
        let leader = match timeout(STORE_TIMEOUT, self.reader.leader()).await {
            Ok(Ok(Some(leader))) => leader,
            Ok(Ok(None)) if self.seen => {
                if let Some(epoch) = self.led
                    && let Ok(Ok(true)) = timeout(STORE_TIMEOUT, self.reader.has_traces(epoch)).await
                {
                    self.leads_again(format!("the store exists, but its record of epoch {epoch} is gone"));
                    return (Look::NoLeader, None);
                }
                let why = "the store is empty, although a coordinator has led there before: is it mounted? To start a \
                           new cluster there, restart this coordinator";
                return (self.waits(why.into()), None);
            }
            Ok(Ok(None)) => return (Look::NoLeader, None),
            Ok(Err(why)) => return (self.waits(why), None),
            Err(_) => return (self.waits("the store does not answer".into()), None),
        };
        self.seen = true;
        if leader.is_damaged() {
            let number = leader.epoch.number;
            if self.led == Some(number) {
                self.leads_again(format!("the object of epoch {number} in the store is damaged"));
                return (Look::NoLeader, Some(leader));
            }
            let why = format!(
                "the object of epoch {number} in the store is damaged, so it does not say who leads. {LEAD_ANYWAY}"
            );
            return (self.waits(why), Some(leader));
        }
        if let Some(why) = conflict(own, leader.security) {
            return (self.waits(why), Some(leader));
        }
        let address: Option<Address> = leader.address.parse().ok();
        if let Some(address) = &address
            && address.is_loopback()
            && leader.host != host_name()
        {
            let why = format!(
                "the leader on {} announces the address {address}, which this host cannot reach: start the leader with \
                 --listen or --advertise and a reachable address",
                leader.host
            );
            return (self.waits(why), Some(leader));
        }
        let answers = match address {
            // The leader serves nobody, so it cannot be asked.
            None => Ok(false),
            Some(address) => self.answers(&leader.epoch, &address, access).await,
        };
        let answers = match answers {
            Ok(answers) => answers,
            Err(why) => {
                self.waits(why);
                return (Look::Leader(leader.epoch.clone(), true), Some(leader));
            }
        };
        self.troubled = None;
        (Look::Leader(leader.epoch.clone(), answers), Some(leader))
    }

    /// Warns that this process led last and leads again: if another coordinator had led since, its record would be there.
    fn leads_again(&mut self, why: String) {
        if self.troubled.as_ref() != Some(&why) {
            warn!("{why}. This coordinator led in that epoch, so it leads again, in a new one");
            self.troubled = Some(why);
        }
    }

    fn waits(&mut self, why: String) -> Look {
        if self.troubled.as_ref() != Some(&why) {
            warn!("this standby waits and does not take over: {why}");
            self.troubled = Some(why);
        }
        Look::Nothing
    }

    /// Whether the leader answers. An error if the server there refuses to answer this standby, or if the leader's name cannot
    /// be resolved here.
    async fn answers(&mut self, epoch: &Epoch, address: &Address, access: Option<&Access>) -> Result<bool, String> {
        let is_good =
            |(known, .., since): &(Epoch, Dialer, Channel, Instant)| known == epoch && since.elapsed() < CHANNEL_LIFE;
        if !self.known.as_ref().is_some_and(is_good) {
            let endpoint = Endpoint::from(address.uri()).connect_timeout(CONNECT_TIMEOUT);
            let dialer = access.map(Access::dialer).transpose();
            let dialer = dialer.map_err(|error| format!("the leader cannot be asked: {error:#}"))?;
            let dialer = dialer.unwrap_or_else(Dialer::plain);
            let channel = dialer.connect_lazy(&endpoint);
            self.known = Some((epoch.clone(), dialer, channel, Instant::now()));
        }
        let Some((_, dialer, channel, _)) = &self.known else { return Ok(false) };
        let mut request = tonic::Request::new(HealthCheckRequest { service: service_of(epoch.number) });
        request.metadata_mut().insert(STANDBY_HEADER, MetadataValue::from_static("watches"));
        let answer = timeout(ANSWER_TIMEOUT, HealthClient::new(channel.clone()).check(request)).await;
        let outcome = match answer {
            Ok(Ok(answer)) if answer.get_ref().status() == ServingStatus::Serving => {
                self.reached = Some(epoch.clone());
                return Ok(true);
            }
            Ok(Err(status)) => Some(status),
            Ok(Ok(_)) | Err(_) => None,
        };
        let somebody = dialer.failure().map(|refusal| refused(address, &refusal));
        if let Some(why) = somebody.or_else(|| outcome.and_then(|status| answered_otherwise(address, &status))) {
            return Err(why);
        }
        // When a host is gone, its name may be gone too. A name that never resolved here is a mistake.
        if self.reached.as_ref() != Some(epoch) { resolve(address).await.map(|()| false) } else { Ok(false) }
    }
}

/// Resolves a leader's name. The error says what to do.
async fn resolve(address: &Address) -> Result<(), String> {
    let found = timeout(CONNECT_TIMEOUT, tokio::net::lookup_host(address.to_string())).await;
    let why = match found {
        // A name without an address is an error too.
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the name server does not answer".to_owned(),
    };
    Err(format!(
        "the name in the leader's address {address} cannot be resolved on this host ({why}): make the name known here, \
         or start the leader with --advertise and a reachable address. {LEAD_ANYWAY}"
    ))
}

/// The standby's message if TLS fails. Only a running server can make TLS fail.
fn refused(address: &Address, refusal: &Refusal) -> String {
    match refusal {
        Refusal::Final(why) | Refusal::Revoked(why) | Refusal::Expired(why) => format!(
            "the leader at {address} refuses this standby: {why}, or restart this standby, which gives it a new \
             identity"
        ),
        Refusal::Clock(why) => format!("a server answers at {address}, but {why}"),
        Refusal::Other(why) => format!(
            "a server answers at {address}, but {why}. If the authority was replaced, stop this standby and give it a \
             new copy of the leader's access directory. {LEAD_ANYWAY}"
        ),
    }
}

/// The standby's message if a server answered without saying whether it leads. `None` if nobody answered, or if the answer
/// came from a coordinator that does not lead, or from a proxy that reaches no coordinator.
fn answered_otherwise(address: &Address, status: &Status) -> Option<String> {
    let from_here = std::error::Error::source(status).is_some();
    match status.code() {
        Code::NotFound | Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded => None,
        _ if from_here => None,
        _ => Some(format!(
            "a server answers at {address}, but does not tell this standby whether it leads ({}): check that both have \
             --access, or neither. {LEAD_ANYWAY}",
            status.message()
        )),
    }
}

/// What to do if the leader is gone and another program uses its address.
const LEAD_ANYWAY: &str = "If no coordinator runs there any more, start this one once without --standby, and it leads";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    fn address() -> Address {
        "10.0.0.5".parse().unwrap()
    }

    #[test]
    fn a_tls_failure_counts_as_an_answer_and_comes_with_advice() {
        let why = || "why".to_owned();
        let said = [
            (Refusal::Final(why()), "restart this standby"),
            (Refusal::Revoked(why()), "restart this standby"),
            (Refusal::Expired(why()), "restart this standby"),
            (Refusal::Clock(why()), "answers at 10.0.0.5:7600, but why"),
            (Refusal::Other(why()), "give it a new copy of the leader's access directory"),
        ];
        for (refusal, wanted) in said {
            let sentence = refused(&address(), &refusal);
            assert!(sentence.contains("10.0.0.5:7600") && sentence.contains(wanted), "{sentence}");
        }
    }

    /// Nobody has led since, which another standby cannot know.
    #[test]
    fn a_leader_whose_own_record_is_damaged_or_missing_leads_again() {
        let registry = evoxo_experiments::registry();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for (has_run, damage) in [(true, false), (true, true), (false, false), (false, true)] {
            let directory = tempfile::tempdir().unwrap();
            let mut store = Store::open(directory.path().to_str().unwrap(), registry.clone()).unwrap().0;
            store.lead().unwrap();
            let record = directory.path().join("leader/000001");
            match damage {
                true => std::fs::write(record, b"").unwrap(),
                false => std::fs::remove_file(record).unwrap(),
            }
            if has_run {
                std::fs::create_dir_all(directory.path().join("runs/demo")).unwrap();
            }
            let look = |led| runtime.block_on(Eyes::new(store.reader(), true, led).look(Security::PlainText, None)).0;
            let again = if has_run || damage { Look::NoLeader } else { Look::Nothing };
            assert_eq!(look(Some(1)), again, "{has_run} {damage}");
            assert_eq!(look(None), Look::Nothing, "{has_run} {damage}");
            assert_eq!(
                look(Some(2)) == Look::NoLeader,
                has_run && !damage,
                "of an epoch that is not its own: {has_run} {damage}"
            );
            if !damage {
                std::fs::create_dir(directory.path().join("leader/000001")).unwrap();
                assert_eq!((look(Some(1)), look(None)), (Look::NoLeader, Look::Nothing), "a directory: {has_run}");
            }
        }
    }

    #[tokio::test]
    async fn an_unresolvable_name_is_not_a_miss() {
        let why = resolve(&"nobody.invalid:7600".parse().unwrap()).await.unwrap_err();
        assert!(why.contains("nobody.invalid:7600") && why.contains("--advertise"), "{why}");
        assert_eq!(resolve(&address()).await, Ok(()), "a numeric address needs no name server");
    }

    #[test]
    fn an_answer_from_another_server_is_not_a_miss() {
        let is_there = |status: Status| answered_otherwise(&address(), &status).is_some();
        for code in [Code::Unauthenticated, Code::PermissionDenied, Code::Unimplemented, Code::ResourceExhausted] {
            assert!(is_there(Status::new(code, "not you")));
        }
        // The coordinator does not lead in that epoch, or a proxy reaches no coordinator.
        assert!(!is_there(Status::not_found("unknown")) && !is_there(Status::unavailable("no backend")));
        let broken = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert!(!is_there(Status::from_error(Box::new(broken))), "there was no answer");
    }
}
