//! `evoxo doctor`: tries what usually fails when a cluster is set up, and says what to do about it.

use std::{
    fs,
    io::{self, Write as _},
    net::{SocketAddr, TcpStream, ToSocketAddrs as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::Arc,
    time::Duration,
};

use evoxo_access::{AccessFile, now_s, server_names};
use evoxo_common::experiment::Registry;
use evoxo_coordinator::store;
use evoxo_process::{Address, build, bytes, host_name, memory_bytes, open_files};
use evoxo_proto::v1;
use evoxo_worker::{Processes, Program};
use serde_json::{Value, json};

use crate::{
    json,
    progress::short_time,
    remote::{Coordinator, connect, converse, refused},
    say::stdout,
    stop,
};

/// What to try.
#[derive(clap::Args)]
#[command(
    after_help = "Without further options, it tries the coordinator: its port, its answer, its clock, the access file \
and the builds of its workers; and this host: memory and open files. It computes nothing. With \
--store, it creates a few objects in the store and removes them.

Exit status: 0 if nothing is wrong; 1 if something is wrong; 2 for wrong usage.

Examples:
  evoxo doctor --coordinator lab7:7600
  evoxo doctor --store runs --memory 4GiB        before a coordinator starts
  evoxo doctor --access-directory access         on the coordinator's host
  evoxo doctor --program rosen=\"python3 rosen.py\""
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    coordinator: Coordinator,
    /// The store of a coordinator on this host: a directory or s3://BUCKET/PREFIX
    #[arg(long, value_name = "DIR|URL")]
    store: Option<String>,
    /// The access directory of a coordinator on this host: does its certificate name the host?
    #[arg(long, value_name = "DIR")]
    access_directory: Option<PathBuf>,
    /// The program that workers on this host run
    #[arg(long, value_name = "NAME=COMMAND")]
    program: Option<Program>,
    /// The memory that a coordinator or a worker on this host gets with --memory
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory: Option<u64>,
    /// Print JSON: {"good", "findings"}
    #[arg(long)]
    json: bool,
}

/// How long a port may take to answer.
const PORT_TIMEOUT: Duration = Duration::from_secs(4);
/// A difference of the clocks that is worth a remark, and one with which certificates are refused too early or too late.
const CLOCK_NOTE_S: u64 = 5;
const CLOCK_FAULT_S: u64 = 60;
/// An access file that expires so soon is worth a remark.
const EXPIRY_NOTE_S: u64 = 2 * 24 * 3600;
/// Free bytes in a store below which there is a remark, and below which it is a fault.
const FREE_NOTE: u64 = 1 << 30;
const FREE_FAULT: u64 = 64 << 20;
/// Open files that a coordinator of a few hundred workers needs, and the least with which anything works.
const FILES_NOTE: u64 = 4096;
const FILES_FAULT: u64 = 256;
/// The most builds that are named.
const BUILDS_MAX: usize = 3;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    Good,
    Note,
    Fault,
}

impl Grade {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Fault => "fault",
        }
    }
}

/// What was found about one thing.
#[derive(Debug)]
struct Finding {
    what: &'static str,
    grade: Grade,
    says: String,
    /// What to do about it; empty if nothing is wrong.
    remedy: String,
}

impl Finding {
    fn good(what: &'static str, says: impl Into<String>) -> Self {
        Self { what, grade: Grade::Good, says: says.into(), remedy: String::new() }
    }

    fn note(what: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what, grade: Grade::Note, says: says.into(), remedy: remedy.into() }
    }

    fn fault(what: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what, grade: Grade::Fault, says: says.into(), remedy: remedy.into() }
    }

    fn json(&self) -> Value {
        json!({"what": self.what, "grade": self.grade.word(), "says": self.says, "remedy": self.remedy})
    }
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let findings = findings(arguments, registry)?;
    let good = findings.iter().all(|finding| finding.grade != Grade::Fault);
    let mut out = stdout();
    if arguments.json {
        let findings: Value = findings.iter().map(Finding::json).collect();
        write!(out, "{}", json::text(&json!({"good": good, "findings": findings})))?;
    } else {
        for Finding { what, grade, says, remedy } in &findings {
            writeln!(out, "{:<5}  {what:<12} {says}", grade.word())?;
            if !remedy.is_empty() {
                writeln!(out, "{:<5}  {:<12} -> {remedy}", "", "")?;
            }
        }
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Everything that was asked for. What depends on something faulty is left out.
fn findings(arguments: &Arguments, registry: &Registry) -> anyhow::Result<Vec<Finding>> {
    let Arguments { coordinator, store, access_directory, program, memory, .. } = arguments;
    let build = build().text();
    let mut all = vec![Finding::good("build", format!("evoxo {build} on {}", host_name()))];
    let ports: Vec<Finding> = coordinator.address.all().iter().map(port).collect();
    let is_open = ports.iter().any(|port| port.grade == Grade::Good);
    all.extend(ports);
    let access = coordinator.access.as_deref().map(access_file);
    let is_usable = access.as_ref().is_none_or(|access| access.grade != Grade::Fault);
    all.extend(access);
    if is_open && is_usable {
        all.extend(answer(coordinator, &build));
    }
    if let Some(directory) = access_directory {
        all.extend(coordinator.address.all().iter().map(|address| certificate(directory, address)));
    }
    if let Some(spec) = store {
        all.extend(stored(spec));
    }
    if let Some(program) = program {
        all.push(answers(program, registry)?);
    }
    all.push(memory_of(*memory, memory_bytes()));
    all.push(files(open_files()));
    Ok(all)
}

/// Whether the port of an address can be reached.
fn port(address: &Address) -> Finding {
    const WHAT: &str = "port";
    let found: Vec<SocketAddr> = match address.to_string().to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(error) => {
            let remedy = "check the name, or give the number: --coordinator 10.0.0.5:7600";
            return Finding::fault(WHAT, format!("the host of {address} is unknown ({error})"), remedy);
        }
    };
    let mut failed = None;
    for to in &found {
        match TcpStream::connect_timeout(to, PORT_TIMEOUT) {
            Ok(_) => return Finding::good(WHAT, format!("{address} can be reached")),
            Err(error) => failed = Some(error.kind()),
        }
    }
    let remedy = match (failed == Some(io::ErrorKind::ConnectionRefused), address.is_loopback()) {
        (true, true) => "start evoxo-coordinator here, or name another host with --coordinator",
        (true, false) => {
            "start evoxo-coordinator there with --listen 0.0.0.0:PORT; with 127.0.0.1 only its own host reaches it"
        }
        (false, _) => "open the port in the firewall or security group of that host, and check the route",
    };
    Finding::fault(WHAT, format!("{address} cannot be reached"), remedy)
}

/// Whether the access file is private and valid.
fn access_file(path: &Path) -> Finding {
    const WHAT: &str = "access";
    let shown = path.display();
    let file = match AccessFile::load(path) {
        Ok(file) => file,
        Err(error) => {
            let remedy = "give the right file with --access, or get one: evoxo join TOKEN --access FILE";
            return Finding::fault(WHAT, format!("{error:#}"), remedy);
        }
    };
    let mode = fs::metadata(path).map_or(0, |found| found.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        let says = format!("other people can read {shown} (mode {mode:o})");
        return Finding::fault(
            WHAT,
            says,
            format!("chmod 600 {shown}; if others may have read it, revoke it and join again"),
        );
    }
    match file.certificate() {
        Ok(facts) => validity(
            &format!("{shown} of {} {}", facts.identity.role, facts.identity.id),
            facts.begins_s,
            facts.expires_s,
            now_s(),
        ),
        Err(why) => Finding::fault(WHAT, format!("{shown}: {why}"), "join again: evoxo join TOKEN --access FILE"),
    }
}

/// Whether a certificate is valid now, and for how long.
fn validity(whose: &str, begins_s: u64, expires_s: u64, now_s: u64) -> Finding {
    const WHAT: &str = "access";
    const JOIN: &str = "get a token from the operator, and join again: evoxo join TOKEN --access FILE";
    if now_s < begins_s {
        let says = format!("{whose} is not valid for another {}", time(begins_s - now_s));
        return Finding::fault(WHAT, says, "set this host's clock, for example with NTP");
    }
    let Some(left_s) = expires_s.checked_sub(now_s).filter(|left| *left > 0) else {
        return Finding::fault(WHAT, format!("{whose} expired {} ago", time(now_s - expires_s)), JOIN);
    };
    if left_s < EXPIRY_NOTE_S {
        let remedy = "use it, which renews it, or join again";
        return Finding::note(WHAT, format!("{whose} expires in {}", time(left_s)), remedy);
    }
    Finding::good(WHAT, format!("{whose} is valid for {}", time(left_s)))
}

fn time(seconds: u64) -> String {
    short_time(seconds as f64)
}

/// What the coordinator answers: who leads, its clock, and the builds of its workers.
fn answer(coordinator: &Coordinator, build: &str) -> Vec<Finding> {
    let asked = converse(async {
        let mut client = connect(coordinator).await?;
        let answer = client.list_workers(v1::ListWorkersRequest::default()).await.map_err(refused)?;
        let date = answer.metadata().get("date").and_then(|date| date.to_str().ok()).and_then(seconds_of);
        anyhow::Ok((answer.into_inner().workers, date, now_s()))
    });
    let (workers, date, now_s) = match asked {
        Ok(asked) => asked,
        Err(error) => {
            let remedy = match coordinator.access {
                None => "if this coordinator has an access directory, give your access file with --access",
                Some(_) => "if the coordinator has no access directory, leave --access away; otherwise join again",
            };
            return vec![Finding::fault("answer", format!("{error:#}"), remedy)];
        }
    };
    let count = workers.len();
    let noun = if count == 1 { "worker" } else { "workers" };
    let answers = Finding::good("answer", format!("the coordinator leads and has {count} {noun}"));
    let clock = date.map(|date| clock(date, now_s));
    [Some(answers), clock, Some(builds(&workers, build))].into_iter().flatten().collect()
}

/// The difference between the coordinator's clock and this one.
fn clock(theirs_s: u64, ours_s: u64) -> Finding {
    const WHAT: &str = "clock";
    let (apart, which) = (theirs_s.abs_diff(ours_s), if theirs_s > ours_s { "ahead of" } else { "behind" });
    let says = format!("the coordinator's clock is {} {which} this one", time(apart));
    let remedy = "set both clocks by NTP: certificates are valid by these clocks";
    match apart {
        CLOCK_FAULT_S.. => Finding::fault(WHAT, says, remedy),
        CLOCK_NOTE_S.. => Finding::note(WHAT, says, remedy),
        _ => Finding::good(WHAT, format!("the coordinator's clock agrees with this one to {CLOCK_NOTE_S} s")),
    }
}

/// The moment of a date in an answer, such as `Sat, 28 Nov 2026 23:59:07 GMT`, in seconds since 1970.
fn seconds_of(date: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let parts: Vec<&str> = date.split([' ', ':']).collect();
    let &[_, day, month, year, hour, minute, second, "GMT"] = parts.as_slice() else { return None };
    let month = MONTHS.find(month).filter(|place| month.len() == 3 && place.is_multiple_of(3))? / 3 + 1;
    let text = format!("{year}-{month:02}-{day}T{hour}:{minute}:{second}Z");
    let moment = humantime::parse_rfc3339(&text).ok()?;
    moment.duration_since(std::time::UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// Whether the workers have the build of this program. Another build may compute the same, which the coordinator checks.
fn builds(workers: &[v1::Worker], build: &str) -> Finding {
    const WHAT: &str = "workers";
    if workers.is_empty() {
        let remedy = "start one on each host: evoxo-worker --coordinator HOST:PORT";
        return Finding::note(WHAT, "no worker is connected, so no run is computed", remedy);
    }
    let refused: Vec<&str> =
        workers.iter().filter(|worker| !worker.kinds_refused.is_empty()).map(|worker| worker.name.as_str()).collect();
    if let Some(first) = refused.first() {
        let says = format!("{} of {} workers compute other results, first {first}", refused.len(), workers.len());
        return Finding::fault(WHAT, says, "install the coordinator's build on them");
    }
    let mut others: Vec<&str> =
        workers.iter().map(|worker| worker.build.as_str()).filter(|other| *other != build).collect();
    others.sort_unstable();
    others.dedup();
    match others.len() {
        0 => Finding::good(WHAT, "all workers have the build of this program"),
        _ => {
            let named = others[..others.len().min(BUILDS_MAX)].join(", ");
            let says = format!("workers have other builds ({named}), which compute the same");
            Finding::note(WHAT, says, "nothing needs to be done; the same build everywhere is easier to support")
        }
    }
}

/// Whether the certificate of a coordinator on this host names the host of an address, which browsers check.
fn certificate(directory: &Path, address: &Address) -> Finding {
    const WHAT: &str = "certificate";
    let path = directory.join("server.pem");
    let shown = path.display();
    let remedy = "give the coordinator's access directory, which `evoxo-coordinator init` makes";
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return Finding::fault(WHAT, format!("cannot read {shown}: {error}"), remedy),
    };
    let (names, valid) = match names_of(&text) {
        Ok(found) => found,
        Err(why) => return Finding::fault(WHAT, format!("{shown}: {why}"), remedy),
    };
    let host = address.to_string();
    let host = host.rsplit_once(':').map_or(host.as_str(), |(host, _)| host).trim_matches(['[', ']']);
    let all = names.join(", ");
    if !names.iter().any(|name| name == host) {
        let says = format!("{shown} names {all}, but not {host}, so browsers refuse the page at that address");
        return Finding::fault(
            WHAT,
            says,
            format!("evoxo-coordinator init --name {host} adds it; then restart the coordinator"),
        );
    }
    if !valid.contains(&now_s()) {
        return Finding::note(
            WHAT,
            format!("{shown} is due for replacement"),
            "restart the coordinator, which replaces it",
        );
    }
    Finding::good(WHAT, format!("{shown} names {host}"))
}

/// The names in the first certificate of a PEM file, and when it need not be replaced.
fn names_of(pem: &str) -> Result<(Vec<String>, std::ops::Range<u64>), String> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let body = pem.split_once("-----BEGIN CERTIFICATE-----").and_then(|(_, rest)| rest.split_once("-----END"));
    let (body, _) = body.ok_or("it has no certificate")?;
    let der = STANDARD.decode(body.split_whitespace().collect::<String>()).map_err(|error| error.to_string())?;
    server_names(&der)
}

/// Whether a store can be written, and how much room a directory has.
fn stored(spec: &str) -> Vec<Finding> {
    const WHAT: &str = "store";
    if let Err(why) = store::check(spec, 1) {
        return vec![Finding::fault(WHAT, why, "name another with --store, or correct this")];
    }
    let written = Finding::good(WHAT, format!("{spec} can be written"));
    let free = if Path::new(spec).is_dir() { free_bytes(Path::new(spec)) } else { None };
    [Some(written), free.map(|free| space(spec, free))].into_iter().flatten().collect()
}

/// The free bytes of the disk of a directory, by the program `df`, which every POSIX system has.
fn free_bytes(directory: &Path) -> Option<u64> {
    let output = Command::new("df").arg("-Pk").arg(directory).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.lines().nth(1)?.split_whitespace().nth(3)?.parse::<u64>().ok()? * 1024)
}

fn space(spec: &str, free: u64) -> Finding {
    const WHAT: &str = "space";
    let says = format!("{} are free in {spec}", mib(free));
    let remedy = "make room, or put the store on a larger disk; a full disk stops runs until there is room";
    match free {
        0..FREE_FAULT => Finding::fault(WHAT, says, remedy),
        FREE_FAULT..FREE_NOTE => Finding::note(WHAT, says, remedy),
        _ => Finding::good(WHAT, says),
    }
}

fn mib(bytes: u64) -> String {
    if bytes >= 10 << 30 { format!("{} GiB", bytes >> 30) } else { format!("{} MiB", bytes >> 20) }
}

/// Whether a program starts and answers.
fn answers(program: &Program, registry: &Registry) -> anyhow::Result<Finding> {
    const WHAT: &str = "program";
    stop::with_programs()?;
    let Some(asks) = registry.kinds().iter().find_map(|kind| kind.asks) else {
        return Ok(Finding::fault(WHAT, "no kind of experiment of this build asks programs", "use another build"));
    };
    let mut processes = Processes::new(Arc::from([program.clone()]));
    Ok(match (asks.signature)(&program.name, &mut processes) {
        Ok(_) => Finding::good(WHAT, format!("{} starts and answers", program.name)),
        Err(why) => {
            let remedy = format!("try the command in a shell on this host: {}", program.command);
            Finding::fault(WHAT, why.to_string(), remedy)
        }
    })
}

/// Whether this process may use as much memory as is planned.
fn memory_of(planned: Option<u64>, allowed: Option<u64>) -> Finding {
    const WHAT: &str = "memory";
    match (planned, allowed) {
        (Some(planned), Some(allowed)) if planned > allowed => {
            let says = format!(
                "--memory {} is more than the {} that this host or its control group allows",
                mib(planned),
                mib(allowed)
            );
            Finding::fault(WHAT, says, "lower --memory, or raise MemoryMax of the unit or the limit of the container")
        }
        (_, Some(allowed)) => Finding::good(WHAT, format!("{} may be used here", mib(allowed))),
        (_, None) => Finding::note(WHAT, "the system does not say how much memory may be used", "give --memory"),
    }
}

/// Whether enough files may be open at once.
fn files(allowed: Option<u64>) -> Finding {
    const WHAT: &str = "open files";
    let remedy = "raise it: LimitNOFILE=65536 in the unit, --ulimit nofile=65536 for a container, or ulimit -Hn";
    match allowed {
        None => Finding::note(WHAT, "the system does not say how many files may be open", ""),
        Some(allowed @ ..FILES_FAULT) => {
            Finding::fault(WHAT, format!("only {allowed} files may be open at once"), remedy)
        }
        Some(allowed @ ..FILES_NOTE) => {
            Finding::note(WHAT, format!("{allowed} files may be open at once, too few for hundreds of workers"), remedy)
        }
        Some(allowed) => Finding::good(WHAT, format!("{allowed} files may be open at once")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_answers_are_read() {
        assert_eq!(seconds_of("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(seconds_of("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        for wrong in ["", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 anF 1994 08:49:37 GMT", "a b c d e f g GMT"] {
            assert_eq!(seconds_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn grades_have_limits() {
        let day = 24 * 3600;
        let grade = |finding: Finding| {
            assert_eq!(finding.remedy.is_empty(), finding.grade == Grade::Good, "{finding:?}");
            finding.grade
        };
        assert_eq!(
            [0, 4, 5, 59, 60, 9999].map(|apart| grade(clock(10_000 + apart, 10_000))),
            [Grade::Good, Grade::Good, Grade::Note, Grade::Note, Grade::Fault, Grade::Fault]
        );
        assert!(clock(0, 90).says.contains("behind this one"));
        let at = |now: u64| grade(validity("it", 10 * day, 20 * day, now));
        assert_eq!(
            [9, 10, 17, 19, 20].map(|now| at(now * day)),
            [Grade::Fault, Grade::Good, Grade::Good, Grade::Note, Grade::Fault]
        );
        let memory = |planned| grade(memory_of(planned, Some(1 << 30)));
        assert_eq!([None, Some(1 << 30), Some(1 << 31)].map(memory), [Grade::Good, Grade::Good, Grade::Fault]);
        assert_eq!(
            [100, 1024, 65_536].map(|count| grade(files(Some(count)))),
            [Grade::Fault, Grade::Note, Grade::Good]
        );
        assert_eq!(
            [1, 1 << 27, 1 << 40].map(|free| grade(space("runs", free))),
            [Grade::Fault, Grade::Note, Grade::Good]
        );
    }

    #[test]
    fn builds_of_workers_are_compared() {
        let worker = |build: &str, refused: &[&str]| v1::Worker {
            build: build.into(),
            kinds_refused: refused.iter().map(|kind| (*kind).to_owned()).collect(),
            ..v1::Worker::default()
        };
        assert_eq!(builds(&[], "1").grade, Grade::Note);
        assert_eq!(builds(&[worker("1", &[])], "1").grade, Grade::Good);
        let other = builds(&[worker("2", &[]), worker("2", &[]), worker("1", &[])], "1");
        assert_eq!((other.grade, other.says.matches('2').count()), (Grade::Note, 1));
        assert_eq!(builds(&[worker("2", &["rules"])], "1").grade, Grade::Fault);
    }
}
