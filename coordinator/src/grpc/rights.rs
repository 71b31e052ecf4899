//! The table of which role may make which call. Each call's comment in `proto/` says the same, and a test compares the two.

use evoxo_access::{
    Role::{self, Operator, Submitter, TrustedWorker, Viewer, Worker},
    now_s,
};
use tonic::Status;

use super::secure::Caller;

const ALL: &[Role] = &Role::ALL;
const PEOPLE: &[Role] = &[Viewer, Submitter, Operator];
/// These calls change a run. A submitter may make them only for its own runs, which the core checks.
const SUBMITTERS: &[Role] = &[Submitter, Operator];
const OPERATORS: &[Role] = &[Operator];
const WORKERS: &[Role] = &[Worker, TrustedWorker];

/// Everybody may make this call, even without a certificate.
const JOIN: &str = "/evoxo.v1.AccessService/Join";

/// The call with which anybody learns whether a coordinator leads.
const CHECK_HEALTH: &str = "/grpc.health.v1.Health/Check";
/// The only call that an expired certificate may make.
const RENEW: &str = "/evoxo.v1.AccessService/Renew";

/// The calls with the roles that may make them. A call that is not here does not exist.
const RIGHTS: [(&str, &[Role]); 24] = [
    (JOIN, ALL),
    (RENEW, ALL),
    ("/evoxo.v1.AccessService/CreateToken", OPERATORS),
    ("/evoxo.v1.AccessService/ListAccess", OPERATORS),
    ("/evoxo.v1.AccessService/Revoke", OPERATORS),
    ("/evoxo.v1.AccessService/ReadLog", OPERATORS),
    ("/evoxo.v1.RunService/Submit", SUBMITTERS),
    ("/evoxo.v1.RunService/List", PEOPLE),
    ("/evoxo.v1.RunService/Get", PEOPLE),
    ("/evoxo.v1.RunService/Watch", PEOPLE),
    ("/evoxo.v1.RunService/Pause", SUBMITTERS),
    ("/evoxo.v1.RunService/Resume", SUBMITTERS),
    ("/evoxo.v1.RunService/Cancel", SUBMITTERS),
    ("/evoxo.v1.RunService/Fetch", PEOPLE),
    ("/evoxo.v1.RunService/FetchChampion", PEOPLE),
    ("/evoxo.v1.RunService/ListTasks", PEOPLE),
    ("/evoxo.v1.RunService/ListWorkers", PEOPLE),
    ("/evoxo.v1.RunService/DrainWorkers", OPERATORS),
    ("/evoxo.v1.RunService/CordonWorkers", OPERATORS),
    ("/evoxo.v1.WorkerService/Work", WORKERS),
    (CHECK_HEALTH, ALL),
    ("/grpc.health.v1.Health/Watch", ALL),
    ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", PEOPLE),
    ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", PEOPLE),
];

/// The calls whose answer is a stream, except the sessions of workers. Clients that watch for days must leave calls to
/// others.
const STREAMS: [&str; 5] = [
    "/evoxo.v1.RunService/Watch",
    "/evoxo.v1.RunService/Fetch",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// Whether the answer to this call is a stream.
pub(crate) fn is_stream(path: &str) -> bool {
    STREAMS.contains(&path)
}

/// Whether this call may come from a standby: it asks for the health, over TLS as a viewer. A leader may step down for a
/// standby, so no worker may pose as one.
pub(crate) fn may_stand_by(caller: &Caller, path: &str) -> bool {
    let viewer = match caller {
        Caller::Anybody => true,
        Caller::Known(certificate) => certificate.identity.role == Role::Viewer,
        Caller::PlainText | Caller::Stranger => false,
    };
    viewer && path == CHECK_HEALTH
}

/// Whether the caller may make this call.
pub(crate) fn check(caller: &Caller, path: &str) -> Result<(), Status> {
    let role = match caller {
        Caller::Anybody => return Ok(()),
        Caller::PlainText => {
            return Err(Status::unauthenticated(
                "this coordinator speaks only TLS: give --access FILE with an access file, or join with a token first",
            ));
        }
        Caller::Stranger if path == JOIN => return Ok(()),
        Caller::Stranger => {
            return Err(Status::unauthenticated("this needs a certificate: join with a token first"));
        }
        // A worker renews its certificate and reconnects.
        Caller::Known(certificate) if certificate.expires_s <= now_s() && path != RENEW => {
            return Err(Status::unavailable(
                "this certificate has expired and must be renewed first; if its host still takes it for valid, compare \
                 the clocks of both hosts",
            ));
        }
        Caller::Known(certificate) => certificate.identity.role,
    };
    check_role(role, path)
}

/// Whether a caller of this role may make this call.
pub(crate) fn check_role(role: Role, path: &str) -> Result<(), Status> {
    let Some((_, roles)) = RIGHTS.iter().find(|(call, _)| *call == path) else {
        return Err(Status::unimplemented("this coordinator has no such call"));
    };
    if roles.contains(&role) {
        return Ok(());
    }
    let call = path.rsplit('/').next().unwrap_or_default();
    let may: Vec<&str> = roles.iter().map(|role| role.name()).collect();
    let may = may.join(" or ");
    Err(Status::permission_denied(format!(
        "your role is {role}, and {call} needs the role {may}: ask an operator for a token of that role"
    )))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs, path::Path};

    use evoxo_access::{Certificate, Id, Identity};
    use tonic::Code;

    use super::*;

    fn known(role: Role) -> Caller {
        let identity = Identity { id: Id::draw(), role };
        Caller::Known(Certificate { identity, begins_s: 0, expires_s: u64::MAX })
    }

    /// The roles that the comments in `proto/` state.
    fn stated() -> BTreeMap<String, String> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/proto/evoxo/v1");
        let mut stated = BTreeMap::new();
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let text = fs::read_to_string(entry.path()).unwrap();
            let (mut service, mut may) = ("", "");
            for line in text.lines().map(str::trim) {
                if let Some(rest) = line.strip_prefix("service ") {
                    service = rest.trim_end_matches(" {");
                } else if let Some((_, rest)) = line.split_once("May: ").filter(|_| line.starts_with("//")) {
                    may = rest.trim_end_matches('.');
                } else if let Some(rest) = line.strip_prefix("rpc ") {
                    let call = rest.split('(').next().unwrap();
                    stated.insert(format!("/evoxo.v1.{service}/{call}"), std::mem::take(&mut may).to_owned());
                }
            }
        }
        stated
    }

    #[test]
    fn the_table_of_rights_matches_the_protocol() {
        let ours = RIGHTS.iter().filter(|(call, _)| call.starts_with("/evoxo.v1."));
        let table: BTreeMap<String, String> = ours
            .map(|(call, roles)| {
                let names: Vec<&str> = roles.iter().map(|role| role.name()).collect();
                let may = if *call == JOIN { "everybody, also without a certificate".into() } else { names.join(", ") };
                ((*call).to_owned(), may)
            })
            .collect();
        assert_eq!(table, stated());
    }

    #[test]
    fn calls_whose_answer_is_a_stream_are_counted_as_streams() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/proto/evoxo/v1");
        let texts = ["run", "access", "worker"].map(|name| fs::read_to_string(directory.join(format!("{name}.proto"))));
        let mut calls = 0;
        for line in texts.iter().flat_map(|text| text.as_ref().unwrap().lines()) {
            let Some(rest) = line.trim().strip_prefix("rpc ") else { continue };
            let (name, streams) = (rest.split('(').next().unwrap(), rest.contains("returns (stream "));
            let path = RIGHTS.iter().map(|(call, _)| *call).find(|call| call.ends_with(&format!("/{name}"))).unwrap();
            assert_eq!(is_stream(path), streams && name != "Work", "{name}");
            calls += 1;
        }
        assert_eq!(calls, RIGHTS.iter().filter(|(call, _)| call.starts_with("/evoxo.v1.")).count());
        assert!(STREAMS.iter().all(|stream| RIGHTS.iter().any(|(call, _)| call == stream)));
    }

    /// A worker that posed as a standby could make a leader step down.
    #[test]
    fn only_a_viewers_health_check_may_come_from_a_standby() {
        assert!(may_stand_by(&Caller::Anybody, CHECK_HEALTH) && !may_stand_by(&Caller::Anybody, JOIN));
        assert!(!may_stand_by(&Caller::Stranger, CHECK_HEALTH) && !may_stand_by(&Caller::PlainText, CHECK_HEALTH));
        for role in Role::ALL {
            assert_eq!(may_stand_by(&known(role), CHECK_HEALTH), role == Role::Viewer, "{role}");
        }
    }

    /// Every call with every kind of caller.
    #[test]
    fn the_matrix() {
        for (call, roles) in RIGHTS {
            assert!(check(&Caller::Anybody, call).is_ok());
            assert_eq!(check(&Caller::PlainText, call).unwrap_err().code(), Code::Unauthenticated);
            let stranger = check(&Caller::Stranger, call).map_err(|status| status.code());
            assert_eq!(stranger, if call == JOIN { Ok(()) } else { Err(Code::Unauthenticated) }, "{call}");
            for role in Role::ALL {
                let allowed = check(&known(role), call).map_err(|status| status.code());
                assert_eq!(allowed, if roles.contains(&role) { Ok(()) } else { Err(Code::PermissionDenied) }, "{call}");
            }
        }
        for role in Role::ALL {
            assert_eq!(check(&known(role), "/evoxo.v1.RunService/New").unwrap_err().code(), Code::Unimplemented);
        }
        assert_eq!(check(&Caller::Stranger, "/x").unwrap_err().code(), Code::Unauthenticated);
        let identity = Identity { id: Id::draw(), role: Worker };
        let expired = Caller::Known(Certificate { identity, begins_s: 0, expires_s: 1 });
        for (call, _) in RIGHTS {
            let allowed = check(&expired, call).map_err(|status| status.code());
            assert_eq!(allowed, if call == RENEW { Ok(()) } else { Err(Code::Unavailable) }, "{call}");
        }
    }
}
