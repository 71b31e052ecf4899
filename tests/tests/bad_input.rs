//! Mistakes and their messages: tables of cases, each with one clear sentence; nothing is lost.
//!
//! Add a case for a program to [`PROGRAMS`], and one for a submitted file to [`SUBMITTED`].

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    process::Command,
    sync::OnceLock,
    time::{Duration, Instant},
};

use evoxo_common::rng::{Stream, below};
use evoxo_proto::MESSAGE_BYTES_MAX;
use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::{PATIENCE, Site},
    person::{Person, digest_of_one_thread},
    programs::program,
};
use tonic::{Code, Status};

const RUN: &str = "experiment = \"invincible\"\nreplicas = 4\n[settings]\npopulation = 200\ngenerations = 60\n\
                   games = 3000\nslice = 20\n";

/// The digest of [`RUN`].
fn expected() -> &'static str {
    static DIGEST: OnceLock<String> = OnceLock::new();
    DIGEST.get_or_init(|| digest_of_one_thread(RUN))
}

/// A command, its exit status, and parts of its message on standard error.
struct Case {
    program: &'static str,
    /// TAKEN, FILE, READONLY, FULL, WRONG, GOOD and others are replaced by the places that [`Trouble`] has made.
    arguments: &'static [&'static str],
    status: i32,
    says: &'static [&'static str],
}

const fn case(
    program: &'static str,
    arguments: &'static [&'static str],
    status: i32,
    says: &'static [&'static str],
) -> Case {
    Case { program, arguments, status, says }
}

const COORDINATOR: &str = "evoxo-coordinator";
const WORKER: &str = "evoxo-worker";
const EVOXO: &str = "evoxo";
/// Not a valid name, so no name server is asked for it.
const NO_NAME: &str = "this-is-no-name-since-a-label-has-at-most-63-letters-and-this-one-has-more";

const PROGRAMS: &[Case] = &[
    case(COORDINATOR, &["--listen", "TAKEN"], 1, &["cannot listen on 127.0.0.1:", "choose another port with --listen"]),
    case(COORDINATOR, &["--store", "FILE"], 1, &["FILE", "is a file: name a directory"]),
    case(COORDINATOR, &["--store", "FILE/below"], 1, &["FILE/below", "--store"]),
    case(COORDINATOR, &["--store", "/proc/evoxo"], 1, &["/proc/evoxo", "--store"]),
    case(COORDINATOR, &["--store", "READONLY"], 1, &["READONLY", "--store"]),
    case(COORDINATOR, &["--store", "FULL"], 1, &["FULL", "No space left on device"]),
    case(
        COORDINATOR,
        &["--store", "s3://bucket//a"],
        1,
        &["s3://bucket//a", "prefix of object names", "s3://BUCKET/PREFIX"],
    ),
    case(COORDINATOR, &["--listen", "0.0.0.0:0"], 2, &["0.0.0.0:0 can be reached from other hosts", "--insecure"]),
    case(COORDINATOR, &["--listen", "[::]:0"], 2, &["[::]:0 can be reached from other hosts", "--insecure"]),
    case(
        COORDINATOR,
        &["--access", "FILE"],
        1,
        &["FILE is not an access directory", "evoxo-coordinator init --access"],
    ),
    case(COORDINATOR, &["--access", "x", "--insecure"], 2, &["--access and --insecure exclude each other"]),
    case(WORKER, &["--join", "evoxo1.x"], 2, &["it is not a token", "evoxo token create"]),
    case(COORDINATOR, &["--listen", "lab7"], 2, &["'lab7'", "give a numeric address and a port"]),
    case(COORDINATOR, &["--stor", "x"], 2, &["'--stor'", "'--store'"]),
    case(COORDINATOR, &["--batch", "0"], 2, &["give \"auto\" or a number from 1"]),
    case(COORDINATOR, &["--checkpoint-interval=-1s"], 2, &["give a time like 90s, 1.5s"]),
    case(COORDINATOR, &["--checkpoint-interval", "soon"], 2, &["give a time like 90s, 1.5s"]),
    case(COORDINATOR, &["--keep-finished", "few"], 2, &["'few'", "give a whole number from 0"]),
    case(COORDINATOR, &["run.toml"], 2, &["'run.toml' cannot be used with"]),
    case(WORKER, &["--program", "x"], 2, &["give NAME=COMMAND"]),
    case(WORKER, &["--program", "a b=x"], 2, &["a program's name has 1 to 64 letters"]),
    case(
        WORKER,
        &["--program", "p=exit 3"],
        1,
        &["the program p ended (exit status: 3) before it could introduce itself"],
    ),
    case(WORKER, &["--program", "p=echo oh dear"], 1, &["the program p does not introduce itself", "oh dear"]),
    case(
        WORKER,
        &["--program", "p=echo '{\"evoxo\":1,\"name\":\"q\",\"objectives\":[]}'"],
        1,
        &["the program p calls itself \"q\": give it as --program q=COMMAND"],
    ),
    case(WORKER, &["--coordinator", "TAKEN", "--idle-timeout", "300ms"], 0, &["shut down (no task for 0.3 s)"]),
    case(WORKER, &["--coordinator", "127.0.0.1:1", "--idle-timeout", "3s"], 0, &["cannot reach 127.0.0.1:1"]),
    case(WORKER, &["--coordinator", NO_NAME, "--idle-timeout", "1s"], 0, &["cannot reach", NO_NAME]),
    case(WORKER, &["--coordinator", "https://lab7"], 2, &["only http:// is understood"]),
    case(WORKER, &["--slots", "0"], 2, &["a whole number from 1 to 1024"]),
    case(WORKER, &["--idle-timeout", "soon"], 2, &["give a time like 90s, 1.5s"]),
    case(WORKER, &["--slotz", "1"], 2, &["'--slotz'", "'--slots'"]),
    case(WORKER, &["run-task", "/no/such.task"], 1, &["cannot read the task /no/such.task"]),
    case(WORKER, &["run-task", "FILE"], 1, &["FILE is not a saved task"]),
    case(EVOXO, &[], 2, &["Usage: evoxo"]),
    case(EVOXO, &["rum", "GOOD"], 2, &["'rum'", "'run'"]),
    case(EVOXO, &["run", "none.toml"], 2, &["cannot read none.toml: file not found", "evoxo new"]),
    case(EVOXO, &["run", "READONLY"], 2, &["READONLY: it is a directory: give a file in it"]),
    case(EVOXO, &["run", "LONELY"], 1, &["LONELY: this is JSON, not an experiment file"]),
    case(EVOXO, &["run", "FILE"], 1, &["FILE is not UTF-8 text"]),
    case(
        EVOXO,
        &["run", "WRONG"],
        1,
        &["WRONG:1: unknown experiment \"invincibel\" (known are ", "; did you mean \"invincible\"?"],
    ),
    case(
        EVOXO,
        &["run", "GOOD", "--program", "x=y"],
        2,
        &["the experiment does not ask a program x: leave out --program x"],
    ),
    case(EVOXO, &["run", "GOOD", "--set", "task=3"], 2, &["unknown setting \"task\"", "did you mean \"tasks\"?"]),
    case(EVOXO, &["run", "GOOD", "--set", "tasks=0"], 2, &["tasks is 0, but must be a whole number from 1 to 100000"]),
    case(EVOXO, &["run", "GOOD", "--set", "settings=5"], 2, &["--set settings: it is a table", "SETTING=VALUE"]),
    case(EVOXO, &["run", "GOOD", "--out", "s3://bucket/run"], 2, &["s3://bucket/run cannot be used as a directory"]),
    case(EVOXO, &["run", "/dev/zero"], 1, &["/dev/zero has more than 1048576 bytes"]),
    case(EVOXO, &["runs", "--coordinator", "https://127.0.0.1:1"], 2, &["only http:// is understood", "HOST:PORT"]),
    case(EVOXO, &["run", "GOOD", "--set", "tasks"], 2, &["give KEY=VALUE"]),
    case(EVOXO, &["run", "GOOD", "--arm", "mian"], 2, &["GOOD: no arm is called \"mian\": the arms are \"main\""]),
    case(
        EVOXO,
        &["run", "ARMS", "--arm", "one", "--set", "arms.other.tasks=3"],
        2,
        &["--set arms.other.tasks: --arm leaves that arm out"],
    ),
    case(EVOXO, &["run", "GOOD", "--batch", "zero"], 2, &["--batch", "a number from 1"]),
    case(EVOXO, &["run", "GOOD", "--workers", "many"], 2, &["'many'", "--workers", "from 0 to 1024"]),
    case(EVOXO, &["run", "GOOD", "--workers", "-1"], 2, &["'-1'", "--workers", "from 0 to 1024"]),
    case(EVOXO, &["run", "GOOD", "--replicas", "0"], 2, &["'0' for '--replicas <N>'", "from 1 to 10000"]),
    case(EVOXO, &["run", "GOOD", "--seed", "99999999999999999999"], 2, &["from 0 to 9223372036854775807"]),
    case(EVOXO, &["match", "random", "random", "--openings", "-1"], 2, &["from 0 to 4"]),
    case(EVOXO, &["show", "SHORT", "--first", "-1"], 2, &["from 0 to 1000000"]),
    case(EVOXO, &["run", "GOOD", "--out", "FILE"], 1, &["FILE", "choose another with --out"]),
    case(EVOXO, &["run", "GOOD", "--out", "/proc/evoxo"], 1, &["/proc/evoxo", "choose another with --out"]),
    case(EVOXO, &["run", "GOOD", "--out", "READONLY/out"], 1, &["READONLY/out", "Read-only file system"]),
    case(EVOXO, &["run", "GOOD", "--out", "FULL/out"], 1, &["No space left on device"]),
    case(EVOXO, &["submit", "GOOD", "--coordinator", "127.0.0.1:1"], 1, &["no coordinator answers at 127.0.0.1:1"]),
    case(
        EVOXO,
        &["submit", "AGENTS", "--coordinator", "127.0.0.1:1"],
        1,
        &["note: arm \"main\": repeated = \"replace\" hardly ever changes anything", "no coordinator answers"],
    ),
    case(EVOXO, &["submit", "WRONG", "--coordinator", "127.0.0.1:1"], 1, &["WRONG:1: unknown experiment"]),
    case(EVOXO, &["runs", "--coordinator", "127.0.0.1:1"], 1, &["no coordinator answers at 127.0.0.1:1"]),
    case(EVOXO, &["runs", "--coordinator", "127.0.0.1:70000"], 2, &["the port is not a number from 0 to 65535"]),
    case(EVOXO, &["runs", "--coordinator", NO_NAME], 1, &["the host of", NO_NAME, "is unknown"]),
    case(EVOXO, &["new", "chess"], 2, &["give one of dispatch, evolve, invincible"]),
    case(EVOXO, &["odds", "none.json"], 2, &["cannot read none.json: file not found"]),
    case(EVOXO, &["odds", "GOOD"], 1, &["GOOD: the card is not JSON"]),
    case(EVOXO, &["odds", "none.safetensors"], 2, &["cannot read none.safetensors"]),
    case(EVOXO, &["odds", "CUT"], 1, &["CUT: it ends within its header: it has 100 bytes"]),
    case(EVOXO, &["play", "CUT"], 1, &["CUT: it ends within its header"]),
    case(EVOXO, &["engine", "ALIEN"], 1, &["ALIEN: it is not a network of this version of evoxo"]),
    case(EVOXO, &["play", "LONELY"], 1, &["LONELY: cannot read", "gone.safetensors"]),
    case(EVOXO, &["play", "ASTRAY"], 1, &["ASTRAY: the card's file is \"../FAR\", not the name of a file beside it"]),
    case(EVOXO, &["play", "SHORT"], 1, &["SHORT: the card's genes: a chromosome of this network has 89 genes, not 3"]),
    case(EVOXO, &["run", "NETWORKS", "--set", "boards=2424"], 2, &["boards is 2424", "from 1 to 2423"]),
    case(EVOXO, &["run", "NETWORKS", "--set", "population=9"], 2, &["population is 9", "needs pairs"]),
    case(EVOXO, &["run", "NETWORKS", "--set", "mutation=1.5"], 2, &["mutation is 1.5", "from 0 to 1"]),
    case(EVOXO, &["engine", "teacher", "--game", "qubic"], 2, &["teacher plays only tic-tac-toe"]),
    case(EVOXO, &["odds", "STUB"], 1, &["STUB: the card's genome: a string for X has 3 letters instead of 208"]),
    case(EVOXO, &["play", "NINES"], 1, &["NINES: the card's genome: letter 0 of a string is 8", "only 0 to 2"]),
    case(EVOXO, &["run", "STRINGS", "--set", "alphabet=4"], 2, &["alphabet is 4, but must be one of \"3\", \"9\""]),
    case(EVOXO, &["run", "STRINGS", "--set", "crossover_rate=1.5"], 2, &["crossover_rate is 1.5", "from 0 to 1"]),
    case(EVOXO, &["run", "STRINGS", "--set", "elite=101"], 2, &["elite is 101, but the population is only 100"]),
    case(EVOXO, &["run", "STRINGS", "--set", "mutations=69"], 2, &["mutations is 69", "from 0 to 68"]),
    case(EVOXO, &["run", "BOXES", "--set", "games=105"], 2, &["games is 105, which is not a multiple of every, 10"]),
    case(EVOXO, &["play", "EMPTY"], 1, &["EMPTY: X has no box for the board \"X........\""]),
    case(
        EVOXO,
        &["run", "LEAGUE"],
        2,
        &["cannot read", "gone.json: file not found", "relative to the directory of LEAGUE"],
    ),
    case(EVOXO, &["report", "none.json"], 2, &["cannot read none.json"]),
    case(EVOXO, &["report", "FILE"], 1, &["FILE is not JSON"]),
    case(EVOXO, &["report", "LONELY"], 1, &["LONELY: it is not the result of a run"]),
    case(EVOXO, &["show", "none.json"], 2, &["cannot read none.json"]),
    case(EVOXO, &["play", "ILLEGAL"], 1, &["its rule C********1 moves to a stone"]),
    case(EVOXO, &["optimum", "--side", "Z", "--penalty", "1"], 2, &["give X or O"]),
    case(EVOXO, &["optimum", "--side", "O", "--penalty", "-1"], 2, &["'-1'", "give a decimal from 0"]),
    case(EVOXO, &["play", "none.json"], 2, &["there is no player \"none.json\" and no file of that name"]),
    case(EVOXO, &["play", "RULER", "--game", "qubic"], 2, &["plays tic-tac-toe, not qubic: leave out --game"]),
    case(EVOXO, &["match", "random", "alpha-beta:9"], 2, &["alpha-beta:9 looks 9 plies ahead: give 1 to 6"]),
];

/// Files, directories and ports that cause errors.
struct Trouble {
    site: Site,
    taken: TcpListener,
    /// Whether file systems could be mounted, which needs administrator rights.
    mounted: bool,
}

impl Trouble {
    fn make() -> Self {
        let site = Site::new();
        fs::write(site.path("file"), b"\xffsomebody's letter").expect("a file");
        for (name, text) in [
            ("agents", "experiment = \"rules\"\n[settings]\nrepeated = \"replace\"\n"),
            ("league", "experiment = \"league\"\nplayers = [{ who = \"gone.json\" }, {}]\n"),
            ("illegal", r#"{"kind": "rules", "rules": ["V********1", "C********1"]}"#),
            ("lonely", r#"{"kind": "network", "file": "gone.safetensors"}"#),
            ("astray", r#"{"kind": "network", "file": "../FAR"}"#),
            ("short", r#"{"kind": "nndtf", "network": "traditional", "genes": [0.5, 0.5, 0.5]}"#),
            ("networks", "experiment = \"nndtf\"\n[settings]\nalgorithm = \"traditional\"\niterations = 1\n"),
            ("strings", "experiment = \"ternary\"\n"),
            ("boxes", "experiment = \"menace\"\n"),
            ("empty", r#"{"kind": "menace", "side": "X", "boxes": {"X........": [0,0,0,0,1,0,0,0,0]}}"#),
            ("wrong", "experiment = \"invincibel\"\n"),
            ("ruler", r#"{"kind": "rules", "rules": ["V********1"]}"#),
            ("good", "experiment = \"dispatch\"\n[settings]\nrounds = 1\ntasks = 1\n"),
            ("arms", "experiment = \"dispatch\"\n[arms.one]\ntasks = 1\n[arms.other]\ntasks = 2\n"),
        ] {
            fs::write(site.path(name), text).expect("a file");
        }
        let string = |genome: &str| {
            format!(r#"{{"kind":"ternary","side":"X","strings":"short","alphabet":3,"genome":"{genome}"}}"#)
        };
        fs::write(site.path("stub"), string("012")).expect("a file");
        fs::write(site.path("nines"), string(&"8".repeat(208))).expect("a file");
        // Foreign weights, complete and truncated.
        let header = format!("{:<200}", r#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#);
        let foreign = [&200_u64.to_le_bytes(), header.as_bytes(), &[0; 4]].concat();
        fs::write(site.path("alien.safetensors"), &foreign).expect("a file");
        fs::write(site.path("cut.safetensors"), &foreign[..100]).expect("a file");
        let mut mounted = true;
        for (name, options) in [("readonly", "ro,size=64k"), ("full", "size=64k")] {
            fs::create_dir(site.path(name)).expect("a directory");
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(site.path(name));
            mounted &= mount.output().is_ok_and(|output| output.status.success());
        }
        if mounted {
            let mut file = fs::File::create(site.path("full").join("ballast")).expect("a file");
            while file.write(&[0; 4096]).is_ok_and(|bytes| bytes > 0) {}
        }
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        Self { site, taken, mounted }
    }

    fn fill_in(&self, text: &str) -> String {
        let address = self.taken.local_addr().expect("an address").to_string();
        let mut text = text.replace("TAKEN", &address);
        for name in [
            "file", "readonly", "full", "wrong", "good", "lonely", "astray", "short", "networks", "illegal", "strings",
            "stub", "nines", "ruler", "arms", "agents", "league", "boxes", "empty",
        ] {
            text = text.replace(&name.to_uppercase(), &self.site.path(name).to_string_lossy());
        }
        for name in ["cut", "alien"] {
            let path = self.site.path(&format!("{name}.safetensors"));
            text = text.replace(&name.to_uppercase(), &path.to_string_lossy());
        }
        text
    }

    fn is_possible(&self, case: &Case) -> bool {
        self.mounted
            || !case
                .arguments
                .iter()
                .any(|argument| ["READONLY", "FULL"].iter().any(|place| argument.starts_with(place)))
    }
}

impl Drop for Trouble {
    fn drop(&mut self) {
        for name in ["readonly", "full"] {
            // It may not have been mounted.
            drop(Command::new("umount").arg(self.site.path(name)).output());
        }
    }
}

#[tokio::test]
async fn programs_report_mistakes_in_one_sentence() {
    let (trouble, mut wrong) = (Trouble::make(), Vec::new());
    for case in PROGRAMS {
        let arguments: Vec<String> = case.arguments.iter().map(|argument| trouble.fill_in(argument)).collect();
        if !trouble.is_possible(case) {
            println!("left out, because nothing can be mounted here: {arguments:?}");
            continue;
        }
        let mut command = Command::new(program(case.program));
        if case.program == COORDINATOR && !case.arguments.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.args(&arguments).current_dir(trouble.site.path(""));
        let mut process = trouble.site.start(case.program, &mut command);
        let status = process.end().await;
        let log = process.log();
        let mut missing: Vec<String> = case.says.iter().map(|part| trouble.fill_in(part)).collect();
        missing.retain(|part| !log.contains(part));
        let one_line = case.status != 1 || log.lines().filter(|line| line.starts_with("error: ")).count() == 1;
        if status.code() != Some(case.status) || !missing.is_empty() || !one_line || log.contains("panicked") {
            wrong.push(format!("{arguments:?}: {status}, expected {}; not outgoing: {missing:?}; {log}", case.status));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A run's name, its file, and how it is refused.
const SUBMITTED: &[(&str, &str, Code, &[&str])] = &[
    (
        "run",
        "",
        Code::InvalidArgument,
        &["the key \"experiment\" is missing: give one of dispatch, evolve, invincible"],
    ),
    ("run", "experiment = ", Code::InvalidArgument, &["the submitted file:1: not TOML"]),
    ("run", "experiment = \"invincibel\"", Code::InvalidArgument, &["did you mean \"invincible\"?"]),
    (
        "run",
        "experiment = \"invincible\"\nsead = 1\nreplicas = 0\n[settings]\npopulaton = 5\npenalty = -1",
        Code::InvalidArgument,
        &["file:2: unknown key \"sead\"", "file:3: replicas", "did you mean \"population\"?", "file:6: penalty is -1"],
    ),
    (
        "run",
        "experiment = \"rules\"\n[settings]\nagents = 7\nrules = 1025\nmutation = 1.5\nselection = \"best\"\nweak_weight = -0.5",
        Code::InvalidArgument,
        &[
            "file:4: rules is 1025",
            "1 to 1024",
            "file:5: mutation is 1.5",
            "file:6: selection is best",
            "file:7: weak_weight is -0.5, but must be a whole number from -1000000 to 1000000",
        ],
    ),
    (
        "run",
        "experiment = \"rules\"\n[settings]\nagents = 7\ngames = 1000\ncycles = 1000000\nmutation = 0.9\nmutations = \"clustered\"",
        Code::InvalidArgument,
        &[
            "file:3: arm \"main\": agents is 7, but they play in couples: give an even number",
            "3000000000 games are more than 1073741823",
            "with cluster 0.5 a mutation of 0.9 cannot be reached",
        ],
    ),
    ("run", "experiment = \"dispatch\"\nreplicas = 10001", Code::InvalidArgument, &["from 0 to 10000"]),
    ("../run", RUN, Code::InvalidArgument, &["\"../run\" cannot name a run"]),
    ("", RUN, Code::InvalidArgument, &["\"\" cannot name a run"]),
    ("Run", RUN, Code::InvalidArgument, &["\"Run\" cannot name a run", "a-z, 0-9"]),
    ("run\u{1b}[2J", RUN, Code::InvalidArgument, &["\"run[2J\" cannot name a run"]),
    ("run", "MANY ARMS", Code::ResourceExhausted, &["at most 25000"]),
    ("run", "LONG FILE", Code::InvalidArgument, &["bytes, more than 1048576"]),
    ("run", "HUGE FILE", Code::OutOfRange, &["a message has 16777227 bytes, but at most 16777216 are allowed"]),
];

fn file(text: &str) -> String {
    match text {
        "MANY ARMS" => {
            let arms: String = (0..11).map(|arm| format!("[arms.a{arm}]\n")).collect();
            format!("experiment = \"dispatch\"\nreplicas = 10000\n{arms}")
        }
        "LONG FILE" => "#".repeat((1 << 20) + 1),
        "HUGE FILE" => "#".repeat(MESSAGE_BYTES_MAX + 1),
        other => other.to_owned(),
    }
}

#[tokio::test]
async fn submitted_files_are_rejected_with_all_problems() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    for (name, text, code, says) in SUBMITTED {
        let status: Status = person.try_submit(name, &file(text)).await.expect_err(text);
        assert_eq!(status.code(), *code, "{text}: {status}");
        for part in *says {
            assert!(status.message().contains(part), "{text}: no {part:?} in: {status}");
        }
        assert!(!status.message().chars().any(|c| c.is_control() && c != '\n'), "{status}");
    }
    let missing = person.get("nothing").await.expect_err("there is no such run");
    assert_eq!((missing.code(), missing.message().contains("there is no run \"nothing\"")), (Code::NotFound, true));
    assert!(person.submit("run", "experiment = \"dispatch\"").await, "the coordinator still serves");
}

/// Sends bytes to a port, and reads the reply until it is closed, or for a while.
fn send_bytes(address: SocketAddr, bytes: &[u8]) {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    stream.set_write_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    // The coordinator may close the connection before everything is written.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read(&mut [0; 1024]);
}

#[tokio::test]
async fn invalid_bytes_on_the_port_affect_no_run() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let _worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", RUN).await;
    let mut rng = Stream::root(1).text("noise").rng();
    let mut noise = |bytes: usize| -> Vec<u8> { (0..bytes).map(|_| below(&mut rng, 256) as u8).collect() };
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    for bytes in [
        Vec::new(),
        noise(7),
        noise(100_000),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        [preface.clone(), noise(5000)].concat(),
        // A frame that claims 16 MiB, and one of an unknown kind.
        [preface.clone(), vec![0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1], noise(100)].concat(),
        [preface, vec![0, 0, 4, 0x7f, 0, 0, 0, 0, 0], noise(4)].concat(),
    ] {
        send_bytes(coordinator.address, &bytes);
    }
    let huge = person.try_submit("huge", &"#".repeat(2 * MESSAGE_BYTES_MAX)).await;
    assert_eq!(huge.expect_err("the file is too large").code(), Code::OutOfRange);
    let run = person.finished("run").await;
    assert_eq!((run.digest.as_str(), run.notices), (expected(), Vec::new()));
    let log = coordinator.process.log();
    assert!(!log.contains("panicked") && !log.contains("is lost"), "{log}");
}

#[tokio::test]
async fn damaged_checkpoints_are_reported_and_change_no_result() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 4] = [
        ("cut", |bytes| bytes.truncate(bytes.len() / 2)),
        ("flipped", |bytes| bytes[40] ^= 1),
        ("emptied", Vec::clear),
        ("foreign", |bytes| *bytes = b"somebody's letter".to_vec()),
    ];
    for (name, damage) in damages {
        let site = Site::new();
        let mut coordinator = site.coordinator(&[]);
        let mut person = Person::of(coordinator.address);
        person.submit("run", RUN).await;
        let (start, written) = (Instant::now(), || site.objects("run", "checkpoint").len());
        while written() < 2 {
            assert!(start.elapsed() < PATIENCE, "{name}: two checkpoints are not written");
            let (before, rounds) = (written(), person.get("run").await.expect("the run is there").rounds_done);
            let worker = site.worker(coordinator.address, &[]);
            person.wait("run", |run| run.rounds_done > rounds + 4).await;
            // Without a worker the run does not end before its second checkpoint. Rounds that are reported late may be in the
            // first one.
            drop(worker);
            let stopped = Instant::now();
            while written() == before && stopped.elapsed() < Duration::from_secs(2) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        coordinator.process.kill();
        let newest = site.objects("run", "checkpoint").pop().expect("a checkpoint");
        let mut bytes = fs::read(&newest).expect("the checkpoint");
        damage(&mut bytes);
        fs::write(&newest, bytes).expect("the checkpoint");

        let coordinator = site.coordinator(&[]);
        let mut person = Person::of(coordinator.address);
        let run = person.get("run").await.expect("the run is there");
        let object = newest.file_name().and_then(|name| name.to_str()).expect("text");
        assert!(run.notices.iter().any(|notice| notice.contains(object)), "{name}: {object} in {:?}", run.notices);
        assert!(coordinator.process.log().contains(object), "{name}: the log names it too");
        assert_eq!(run.state(), RunState::Running, "{name}");
        assert!(run.rounds_done > 0, "{name}: the previous checkpoint is used");
        let _worker = site.worker(coordinator.address, &[]);
        assert_eq!(person.finished("run").await.digest, expected(), "{name}");
    }
}

#[tokio::test]
async fn a_full_store_delays_the_run_until_there_is_room() {
    let site = Site::new();
    let store = site.path("store");
    fs::create_dir(&store).expect("a directory");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=512k", "tmpfs"]).arg(&store).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        println!("left out: nothing can be mounted here");
        return;
    }
    let ballast = store.join("ballast");
    let outcome = tokio::spawn(async move {
        let coordinator = site.coordinator(&[]);
        let _worker = site.worker(coordinator.address, &[]);
        let mut person = Person::of(coordinator.address);
        person.submit("run", RUN).await;
        person.wait("run", |run| run.rounds_done > 3).await;
        let mut file = fs::File::create(&ballast).expect("a file");
        while file.write(&[0; 512]).is_ok_and(|bytes| bytes > 0) {}
        let waits = person.wait("run", |run| run.message.contains("when the store can be written again")).await;
        assert!(waits.message.contains("No space left on device"), "{waits:?}");
        drop(file);
        fs::remove_file(&ballast).expect("the ballast");
        assert_eq!(person.finished("run").await.digest, expected());
    })
    .await;
    drop(Command::new("umount").arg(&store).output());
    outcome.expect("no result was lost");
}
