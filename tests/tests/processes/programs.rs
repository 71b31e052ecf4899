//! Programs next to workers. A search has the same result as with the built-in function, whatever happens to the programs'
//! processes. A program that cannot be trusted ends its run with a sentence.

use std::{collections::BTreeSet, fs, net::SocketAddr, path::Path, process::Command, time::Duration};

use evoxo_common::rng::below;
use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
};

use super::crashes::random_moments;

/// Counts the ones of each candidate; each task has one candidate. One line determines its behaviour. Each process writes
/// down its number.
const ONES: &str = r#"echo $$ >> "$0.pids"
echo '{"evoxo":1,"name":"NAME","version":"VERSION","objectives":["max ones"],"genome":[{"name":"x","type":"bits","length":24}],"canned":CANNED}'
while read -r line; do
  batch=${line#*:}
  IFS=1
  set -f -- ${line##*genes}
  unset IFS
  ones=$(($# - 1))
  BEHAVIOUR
  echo "{\"batch\":${batch%%,*},\"items\":[{\"f\":[$((ones))]}]}"
done
"#;

/// The search with generations and with a window, for a program or for the built-in function.
fn file(problem: &str, evaluations: u32) -> String {
    format!(
        "experiment = \"evolve\"\nseed = 3\nreplicas = 1\n[settings]\nproblem = {problem}\n\
         evaluations = {evaluations}\npopulation = 30\ntimeout = 2\n[arms.generations]\n[arms.window]\nwindow = 7\n"
    )
}

/// The setting of the built-in function.
const ONEMAX: &str = "\"onemax\"\nlength = 24";

pub(crate) fn built_in(evaluations: u32) -> String {
    digest_of_one_thread(&file(ONEMAX, evaluations))
}

/// Writes the program "ones" into the site. Returns its command.
pub(crate) fn write(site: &Site, name: &str, version: &str, canned: u32, behaviour: &str) -> String {
    write_named("ones", site, name, version, canned, behaviour)
}

fn write_named(program: &str, site: &Site, name: &str, version: &str, canned: u32, behaviour: &str) -> String {
    let words = [("NAME", program), ("VERSION", version), ("CANNED", &canned.to_string()), ("BEHAVIOUR", behaviour)];
    let text = words.iter().fold(ONES.to_owned(), |text, (word, value)| text.replace(word, value));
    fs::write(site.path(name), text).expect("a file");
    format!("{program}=exec sh {}", site.path(name).display())
}

/// The processes of a program so far, from the numbers that they wrote down.
fn processes(site: &Site, name: &str) -> BTreeSet<u32> {
    let text = fs::read_to_string(site.path(&format!("{name}.pids"))).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Whether a process exists and has not ended.
fn lives(process: u32) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

async fn have_ended(site: &Site, name: &str) {
    for _ in 0..500 {
        if !processes(site, name).into_iter().any(lives) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("processes of {name} are left");
}

/// Submits the search with this program.
async fn submit(site: &Site, coordinator: SocketAddr, evaluations: u32, program: &str) {
    submit_as("ones", site, coordinator, evaluations, program).await;
}

/// The same under this name.
pub(crate) async fn submit_as(name: &str, site: &Site, coordinator: SocketAddr, evaluations: u32, program: &str) {
    fs::write(site.path("ones.toml"), file("\"program:ones\"", evaluations)).expect("a file");
    let address = coordinator.to_string();
    let words = ["submit", "ones.toml", "--name", name, "--coordinator", &address, "--program", program];
    let mut submitting = site.program("evoxo", &words);
    let status = submitting.end().await;
    assert!(status.success(), "{}", submitting.log());
}

/// Sends SIGKILL to this process. Returns whether it existed.
fn kill(process: u32) -> bool {
    Command::new("kill").args(["-9", &process.to_string()]).status().is_ok_and(|status| status.success())
}

#[tokio::test]
async fn a_killed_program_has_the_same_result_as_the_function() {
    let (site, mut rng) = (Site::new(), random_moments());
    // At least 150 kills.
    let (rounds, evaluations) = if std::env::var_os("THOROUGH").is_some() { (120, 16_000) } else { (12, 3000) };
    let mut coordinator = site.coordinator(&[]);
    let address = coordinator.address;
    let program = write(&site, "ones.sh", "1", 1, "");
    let mut workers = [1, 2, 3].map(|_| site.worker(address, &["--program", &program]));
    let mut person = Person::of(address);
    submit(&site, address, evaluations, &program).await;
    let (mut kills, mut cut_short) = (0, 0);
    for round in 0..rounds {
        let before = person.wait("ones", |_| true).await.tasks_done;
        // So few tasks that the run lasts for all rounds, even on machines where it advances much further in the meantime.
        let more = 1 + below(&mut rng, 100);
        let moved = |run: &evoxo_proto::v1::Run| run.tasks_done >= before + more || run.state() == RunState::Finished;
        let run = person.wait("ones", moved).await;
        tokio::time::sleep(Duration::from_millis(below(&mut rng, 20))).await;
        let living: Vec<u32> = processes(&site, "ones.sh").into_iter().filter(|process| lives(*process)).collect();
        if run.state() == RunState::Finished || living.is_empty() {
            continue;
        }
        // All processes at once, or one of them.
        let victims = if round % 3 == 0 { 0..living.len() } else { 0..1 };
        let first = below(&mut rng, living.len() as u64) as usize;
        victims.for_each(|offset| kills += u32::from(kill(living[(first + offset) % living.len()])));
        // The program of a killed worker ends by itself.
        if round % 12 == 5 {
            workers[0].kill();
            workers[0] = site.worker(address, &["--program", &program]);
        }
        // The programs of the other workers continue. The workers keep the answers until the coordinator is back.
        if [2, 8].contains(&(round % 12)) {
            coordinator.process.kill();
            coordinator = site.coordinator_on(&address.to_string(), &[]);
            cut_short += 1;
        }
    }
    let run = person.finished("ones").await;
    assert_eq!(run.digest, built_in(evaluations));
    assert!(kills > rounds / 6 && cut_short > 0, "the run ended before anything was killed");
    drop(workers);
    have_ended(&site, "ones.sh").await;
}

#[tokio::test]
async fn a_worker_with_a_different_program_gets_no_tasks() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let (good, later) = (write(&site, "ones.sh", "1", 1, ""), write(&site, "later.sh", "1", 1, "ones=$((ones + 1))"));
    let _other = site.worker(coordinator.address, &["--program", &later, "--name", "other"]);
    let mut person = Person::of(coordinator.address);
    let other = person.worker("other").await;
    assert!(other.programs[0].starts_with("ones "), "{:?}", other.programs);
    submit(&site, coordinator.address, 300, &good).await;
    let run = person.wait("ones", |run| !run.message.is_empty()).await;
    assert!(run.message.contains("that of worker other computes something else: `evoxo check`"), "{}", run.message);
    assert_eq!((run.workers, run.tasks_done), (0, 0));
    let _good = site.worker(coordinator.address, &["--program", &good, "--name", "good"]);
    assert_eq!(person.finished("ones").await.digest, built_in(300));
    assert_eq!(person.worker("other").await.tasks_done, 0);
}

/// The same for programs that leave the genome to the file and have the same description.
#[tokio::test]
async fn the_files_genome_reveals_a_different_program() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let genome = r#""genome":[{"name":"x","type":"bits","length":24}],"#;
    let [good, other] = [("ones.sh", ""), ("other.sh", "ones=$((ones + 1))")].map(|(name, behaviour)| {
        let command = write(&site, name, "1", 1, behaviour);
        let text = fs::read_to_string(site.path(name)).expect("the program");
        assert!(text.contains(genome));
        fs::write(site.path(name), text.replace(genome, "")).expect("a file");
        command
    });
    let problem = "\"program:ones\"\ngenome = [{ name = \"x\", type = \"bits\", length = 24 }]";
    fs::write(site.path("ones.toml"), file(problem, 300)).expect("a file");
    let address = coordinator.address.to_string();
    let _other = site.worker(coordinator.address, &["--program", &other, "--name", "other"]);
    let mut person = Person::of(coordinator.address);
    person.worker("other").await;
    let words = ["submit", "ones.toml", "--coordinator", &address, "--program", &good];
    let mut submitting = site.program("evoxo", &words);
    assert!(submitting.end().await.success(), "{}", submitting.log());
    let run = person.wait("ones", |run| !run.message.is_empty()).await;
    assert!(run.message.contains("that of worker other computes something else: `evoxo check`"), "{}", run.message);
    assert_eq!((run.state(), run.workers), (RunState::Running, 0));
    let _good = site.worker(coordinator.address, &["--program", &good, "--name", "good"]);
    assert_eq!(person.finished("ones").await.digest, built_in(300));
    person.worker_that("other", |worker| worker.programs == ["ones answers differently"]).await;
}

/// The run of a program with this behaviour, after it has ended.
async fn failed(behaviour: &str) -> String {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let program = write(&site, "ones.sh", "1", 0, behaviour);
    let _workers = [1, 2, 3]
        .map(|number| site.worker(coordinator.address, &["--program", &program, "--name", &format!("w{number}")]));
    let mut person = Person::of(coordinator.address);
    submit(&site, coordinator.address, 300, &program).await;
    let run = person.wait("ones", |run| run.state() == RunState::Failed).await;
    // All workers are still there, and compute other runs.
    assert!(person.submit("after", &file(ONEMAX, 300)).await);
    assert_eq!(person.finished("after").await.digest, built_in(300));
    run.message
}

#[tokio::test]
async fn a_program_that_dies_ends_its_run_with_its_last_words() {
    let message = failed("echo 'no more memory' >&2; exit 7").await;
    assert!(message.contains("ended (exit status: 7) before it could answer"), "{message}");
    assert!(message.contains("no more memory"), "{message}");
}

#[tokio::test]
async fn a_program_that_hangs_is_stopped() {
    let message = failed("sleep 1000 & wait").await;
    assert!(message.contains("did not answer within 2 s and was stopped"), "{message}");
}

#[tokio::test]
async fn a_program_with_invalid_answers_ends_its_run() {
    let message = failed("batch=77,").await;
    assert!(message.contains("gave a wrong answer: its \"batch\" is 77"), "{message}");
}

/// What programs do instead of answering, with a part of the resulting sentence.
const HOSTILE: [(&str, &str, &str); 13] = [
    ("rubbish", "echo 'oh dear'; continue", "it is not JSON (expected value at line 1 column 1); it wrote \"oh dear\""),
    ("half", "printf '{\"batch\":'; exit 0", "ended (exit status: 0) before it could answer"),
    ("few", r#"echo "{\"batch\":${batch%%,*},\"items\":[]}"; continue"#, "it has 0 items for 1 candidate"),
    (
        "many",
        r#"echo "{\"batch\":${batch%%,*},\"items\":[{\"f\":[1]},{\"f\":[1]}]}"; continue"#,
        "it has 2 items for 1 candidate",
    ),
    (
        "huge",
        "head -c 100000000 /dev/zero | tr '\\0' x; continue",
        "wrote a line of more than 16777216 bytes and was stopped",
    ),
    ("endless", "while echo y; do :; done", "it is not JSON"),
    (
        "loud",
        "head -c 100000000 /dev/zero | tr '\\0' x >&2; echo done >&2; exit 3",
        "ended (exit status: 3) before it could answer",
    ),
    ("nothing", "sleep 1000", "did not answer within 1 s and was stopped"),
    (
        "forks",
        r#"for child in 1 2 3; do sh -c 'echo $$ >> "$0"; trap "" TERM HUP; sleep 1000; :' "$0.pids" & done; exit 0"#,
        "ended (exit status: 0) before it could answer",
    ),
    (
        "leaves",
        r#"setsid sh -c 'echo $$ >> "$0"; sleep 1000 & echo $! >> "$0"; wait; :' "$0.pids" & sleep 1000"#,
        "did not answer within 1 s and was stopped",
    ),
    ("closes", "exec 1>&-; sleep 1000", "closed its output before it could answer"),
    ("binary", "printf '\\377\\n'; continue", "wrote a line that is not UTF-8 and was stopped"),
    (
        "nan",
        r#"echo "{\"batch\":${batch%%,*},\"items\":[{\"f\":[NaN]}]}"; continue"#,
        "a candidate without a number is answered with",
    ),
];

/// Three workers have a program for each way to misbehave. Each run ends with its sentence, and nothing else happens: the
/// workers are the same, they have not grown, and no process of a program is left.
#[tokio::test]
async fn hostile_programs_fail_only_their_runs() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let programs = HOSTILE.map(|(name, behaviour, _)| write_named(name, &site, name, "1", 0, behaviour));
    let arguments: Vec<&str> = programs.iter().flat_map(|program| ["--program", program]).collect();
    let mut workers = [1, 2, 3].map(|_| site.worker(coordinator.address, &arguments));
    let address = coordinator.address.to_string();
    for ((name, _, sentence), program) in HOSTILE.iter().zip(&programs) {
        let timeout = if sentence.contains("within 1 s") { 1 } else { 60 };
        let settings = format!("problem = \"program:{name}\"\nevaluations = 8\npopulation = 4\ntimeout = {timeout}\n");
        let text = format!("experiment = \"evolve\"\nreplicas = 1\n[settings]\n{settings}");
        let file = format!("{name}.toml");
        fs::write(site.path(&file), text).expect("a file");
        let mut submitting = site.program("evoxo", &["submit", &file, "--coordinator", &address, "--program", program]);
        let status = submitting.end().await;
        assert!(status.success(), "{}", submitting.log());
    }
    let mut person = Person::of(coordinator.address);
    for (name, _, sentence) in HOSTILE {
        let run = person.wait(name, |run| run.state() == RunState::Failed).await;
        let begins = format!("the program {name} ");
        assert!(run.message.contains(&begins) && run.message.contains(sentence), "{name}: {}", run.message);
        assert!(!run.message.contains('\n') && run.message.len() < 3000, "{name}: {}", run.message);
    }
    assert!(person.submit("after", &file(ONEMAX, 300)).await);
    assert_eq!(person.finished("after").await.digest, built_in(300));
    for worker in &mut workers {
        assert!(!worker.has_ended(), "{}", worker.log());
        if let Some(bytes) = worker.memory_bytes("VmHWM") {
            assert!(bytes < 256 << 20, "{bytes} bytes for lines of 16 MiB");
        }
    }
    // A slot may still wait for one of the processes. A worker that is killed would leave that process behind; one that ends
    // does not.
    for worker in &mut workers {
        worker.signal("TERM");
        assert_eq!(worker.end().await.code(), Some(0), "{}", worker.log());
    }
    for (name, ..) in HOSTILE {
        have_ended(&site, name).await;
    }
}

/// A run is stopped in the middle of a candidate. Its program must end too, or it would run forever.
#[tokio::test]
async fn no_program_outlives_a_run_that_is_stopped() {
    for (workers, signals) in [("1", 1), ("0", 2)] {
        let site = Site::new();
        let program = write(&site, "ones.sh", "1", 0, "echo asked >> \"$0.asked\"; sleep 300");
        fs::write(site.path("ones.toml"), file("\"program:ones\"", 60)).expect("a file");
        let arguments = ["run", "ones.toml", "--workers", workers, "--program", &program, "--no-page"];
        let mut run = site.program("evoxo", &arguments);
        let asked = async {
            while !site.path("ones.sh.asked").exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), asked).await.unwrap_or_else(|_| panic!("{}", run.log()));
        for _ in 0..signals {
            run.signal("INT");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let status = tokio::time::timeout(Duration::from_secs(60), run.end()).await.expect("the process ends");
        assert_eq!(status.code(), Some(1), "{}", run.log());
        have_ended(&site, "ones.sh").await;
    }
}
