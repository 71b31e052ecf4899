//! Programs beside workers: the result of a search is that of the same function built in, whatever becomes of their
//! processes; and a program that is not to be trusted ends its run with a sentence.

use std::{fs, net::SocketAddr, process::Command, time::Duration};

use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
};

/// Counts the ones of each candidate, whose tasks have one each. A line says how it behaves.
const ONES: &str = r#"echo '{"evoxo":1,"name":"ones","version":"VERSION","objectives":["max ones"],"genome":[{"name":"x","type":"bits","length":24}],"canned":CANNED}'
while read -r line; do
  batch=${line#*:}
  ones=$(printf %s "${line##*genes}" | tr -cd 1 | wc -c)
  BEHAVIOUR
  echo "{\"batch\":${batch%%,*},\"items\":[{\"f\":[$((ones))]}]}"
done
"#;

/// The search with generations and with a window, for a program or for the function that is built in.
fn file(problem: &str, evaluations: u32) -> String {
    format!(
        "experiment = \"evolve\"\nseed = 3\nreplicas = 1\n[settings]\nproblem = {problem}\n\
         evaluations = {evaluations}\npopulation = 30\ntimeout = 2\n[arms.generations]\n[arms.window]\nwindow = 7\n"
    )
}

/// The setting of the function that is built in.
const ONEMAX: &str = "\"onemax\"\nlength = 24";

fn built_in(evaluations: u32) -> String {
    digest_of_one_thread(&file(ONEMAX, evaluations))
}

/// Writes the program into the site; its command.
fn write(site: &Site, name: &str, version: &str, canned: u32, behaviour: &str) -> String {
    let text = ONES.replace("VERSION", version).replace("CANNED", &canned.to_string()).replace("BEHAVIOUR", behaviour);
    fs::write(site.path(name), text).expect("a file");
    format!("ones=sh {}", site.path(name).display())
}

/// Submits the search with this program.
async fn submit(site: &Site, coordinator: SocketAddr, evaluations: u32, program: &str) {
    fs::write(site.path("ones.toml"), file("\"program:ones\"", evaluations)).expect("a file");
    let address = coordinator.to_string();
    let mut submitting =
        site.program("evoxo", &["submit", "ones.toml", "--coordinator", &address, "--program", program]);
    let status = submitting.end().await;
    assert!(status.success(), "{}", submitting.log());
}

/// Kills every process of the program that this site has.
fn kill_programs(site: &Site, name: &str) -> bool {
    let path = site.path(name).display().to_string();
    Command::new("pkill").args(["-9", "-f", &format!("^sh {path}")]).status().is_ok_and(|status| status.success())
}

#[tokio::test]
async fn a_program_has_the_result_of_the_function_however_often_it_is_killed() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let program = write(&site, "ones.sh", "1", 1, "");
    let _workers = [1, 2, 3].map(|_| site.worker(coordinator.address, &["--program", &program]));
    let mut person = Person::of(coordinator.address);
    submit(&site, coordinator.address, 3000, &program).await;
    let mut kills = 0;
    while person.get("ones").await.expect("the run").state() == RunState::Running {
        if kills < 3 && person.get("ones").await.expect("the run").tasks_done > 300 * (kills + 1) {
            kills += u64::from(kill_programs(&site, "ones.sh"));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let run = person.finished("ones").await;
    assert_eq!(run.digest, built_in(3000));
    assert!(kills > 0, "the run ended before a program was killed");
}

#[tokio::test]
async fn a_worker_whose_program_computes_something_else_gets_no_tasks() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let (good, later) = (write(&site, "ones.sh", "1", 1, ""), write(&site, "later.sh", "1", 1, "ones=$((ones + 1))"));
    let _other = site.worker(coordinator.address, &["--program", &later, "--name", "other"]);
    let mut person = Person::of(coordinator.address);
    let other = person.worker("other").await;
    assert!(other.programs[0].starts_with("ones "), "{:?}", other.programs);
    submit(&site, coordinator.address, 300, &good).await;
    let run = person.wait("ones", |run| !run.message.is_empty()).await;
    assert!(run.message.ends_with("the one of worker other computes something else"), "{}", run.message);
    assert_eq!((run.workers, run.tasks_done), (0, 0));
    let _good = site.worker(coordinator.address, &["--program", &good, "--name", "good"]);
    assert_eq!(person.finished("ones").await.digest, built_in(300));
    assert_eq!(person.worker("other").await.tasks_done, 0);
}

/// The run of a program that behaves like this, after it has ended.
async fn failed(behaviour: &str) -> String {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let program = write(&site, "ones.sh", "1", 0, behaviour);
    let _workers = [1, 2, 3]
        .map(|number| site.worker(coordinator.address, &["--program", &program, "--name", &format!("w{number}")]));
    let mut person = Person::of(coordinator.address);
    submit(&site, coordinator.address, 300, &program).await;
    let run = person.wait("ones", |run| run.state() == RunState::Failed).await;
    // All workers are still there, and compute what others want.
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
async fn a_program_that_answers_nonsense_ends_its_run() {
    let message = failed("batch=77,").await;
    assert!(message.contains("gave a wrong answer: its \"batch\" is 77"), "{message}");
}
