//! Evaluations that were computed before are not computed again, whatever is killed or damaged.

use std::fs;

use evoxo_proto::v1::{Run, RunState, Spent};
use evoxo_tests::{
    live::{Site, objects_in},
    person::Person,
};

use super::programs::{built_in, submit_as, write};

const EVALUATIONS: u32 = 3000;

/// How often the program was called so far.
fn calls(site: &Site) -> u64 {
    fs::read_to_string(site.path("ones.sh.calls")).unwrap_or_default().lines().count() as u64
}

fn spent(run: &Run) -> Spent {
    run.spent.expect("a run says where its time went")
}

#[tokio::test]
async fn what_was_computed_is_recalled_after_kills_and_under_other_names() {
    let site = Site::new();
    let program = write(&site, "ones.sh", "1", 1, "echo call >> \"$0.calls\"");
    let mut coordinator = site.coordinator(&[]);
    let address = coordinator.address;
    let start = || site.worker(address, &["--program", &program]);
    let (mut one, _other) = (start(), start());
    let mut person = Person::of(address);
    submit_as("first", &site, address, EVALUATIONS, &program).await;
    for tasks in [400, 300] {
        let moved = |run: &Run| run.tasks_done >= tasks || run.state() == RunState::Finished;
        assert_eq!(person.wait("first", moved).await.state(), RunState::Running, "it ended before anything was killed");
        one.kill();
        coordinator.process.kill();
        coordinator = site.coordinator_on(&address.to_string(), &[]);
        one = start();
    }
    let run = person.finished("first").await;
    assert_eq!(run.digest, built_in(EVALUATIONS));
    assert!(spent(&run).recalled > 0, "{:?}", spent(&run));

    // What is kept is enough for a coordinator that knows nothing yet.
    coordinator.process.signal("TERM");
    coordinator.process.end().await;
    let coordinator = site.coordinator_on(&address.to_string(), &[]);
    submit_as("second", &site, address, EVALUATIONS, &program).await;
    let run = person.finished("second").await;
    assert_eq!(run.digest, built_in(EVALUATIONS));
    let Spent { evaluations, recalled, rechecked, .. } = spent(&run);
    // A kill loses the outputs of the last second.
    assert!(recalled + rechecked > evaluations * 3 / 4 && rechecked > 0, "{:?}", spent(&run));
    submit_as("third", &site, address, EVALUATIONS, &program).await;
    let (before, run) = (calls(&site), person.finished("third").await);
    let Spent { evaluations, recalled, rechecked, .. } = spent(&run);
    assert_eq!((run.digest, recalled + rechecked), (built_in(EVALUATIONS), evaluations));
    assert!(rechecked < evaluations / 50 && calls(&site) <= before + rechecked + 4, "{rechecked} of {evaluations}");

    // A damaged file is found.
    let mut coordinator = coordinator;
    coordinator.process.kill();
    for file in objects_in(&site.path("store/recall")) {
        let mut bytes = fs::read(&file).expect("a file");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, bytes).expect("a file");
    }
    let coordinator = site.coordinator_on(&address.to_string(), &[]);
    submit_as("fourth", &site, address, EVALUATIONS, &program).await;
    assert_eq!(person.finished("fourth").await.digest, built_in(EVALUATIONS));
    assert!(coordinator.process.log().contains("their evaluations are computed again"));
}

/// The run goes on without a file, and says so once.
#[tokio::test]
async fn a_directory_that_cannot_be_written_is_reported() {
    let site = Site::new();
    let program = write(&site, "ones.sh", "1", 1, "");
    fs::write(site.path("occupied"), "a file").expect("a file");
    let occupied = site.path("occupied").display().to_string();
    let mut coordinator = site.coordinator(&["--recall-in", &occupied]);
    let _worker = site.worker(coordinator.address, &["--program", &program]);
    submit_as("ones", &site, coordinator.address, 1000, &program).await;
    let run = Person::of(coordinator.address).finished("ones").await;
    assert!(run.digest == built_in(1000) && spent(&run).recalled > 0);
    // It writes once a second, and at its end.
    coordinator.process.signal("TERM");
    assert!(coordinator.process.end().await.success(), "{}", coordinator.process.log());
    assert!(coordinator.process.log().contains("cannot be kept in"), "{}", coordinator.process.log());
}
