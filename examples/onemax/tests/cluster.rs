//! Tests the example on a cluster of real processes, with `kill -9` on both sides, and with a worker that knows neither the
//! experiment nor the algorithm.

use std::process::Command;

use evoxo_common::promises;
use evoxo_tests::{live::Site, person::Person};
use onemax::one_plus_one::registry;

const BITS: &str = "experiment = \"onemax\"\nreplicas = 3\n[settings]\npopulation = 20\ngenerations = 3000";
const ECHOES: &str = "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 5\ntasks = 10";

/// Evoxo's own worker, which knows neither.
fn stock() -> Command {
    Command::new(std::env::var("EVOXO_WORKER").expect("EVOXO_WORKER must be the path of evoxo's own evoxo-worker"))
}

#[tokio::test]
async fn a_cluster_computes_what_one_thread_computes() {
    let site = Site::of_tool(env!("CARGO_BIN_EXE_onemax"));
    let mut coordinator = site.coordinator(&[]);
    let address = coordinator.address.to_string();
    let mut person = Person::of(coordinator.address);
    // Evoxo's own worker is admitted for the kinds that it knows, and gets no tasks of others.
    let _stock = site.start("stock", stock().args(["--coordinator", &address, "--name", "stock"]));
    person.submit("bits", BITS).await;
    person.submit("echoes", ECHOES).await;
    person.finished("echoes").await;
    assert_eq!(person.get("bits").await.unwrap().rounds_done, 0);
    let mut workers = [(); 2].map(|()| site.worker(coordinator.address, &[]));
    for _ in 0..3 {
        let rounds = person.wait("bits", |_| true).await.rounds_done + 100;
        let run = person.wait("bits", |run| run.rounds_done >= rounds).await;
        assert!(run.rounds_done < run.rounds_total, "nothing is left to interrupt");
        workers[0].kill();
        coordinator.process.kill();
        coordinator = site.coordinator_on(&address, &[]);
        workers[0] = site.worker(coordinator.address, &[]);
    }
    assert_eq!(person.finished("bits").await.digest, promises::check(&registry(), BITS));
    let stock = person.worker("stock").await;
    assert!(stock.kinds.contains(&"dispatch".into()) && !stock.kinds.contains(&"onemax".into()), "{stock:?}");
    assert_eq!((stock.tasks_assigned, stock.tasks_done), (0, 0));
}

const SEARCH: &str = "experiment = \"evolve\"\nreplicas = 3\n[settings]\nproblem = \"rastrigin\"\nlength = 4\n\
                      evaluations = 3000\n[arms.one]\nalgorithm = \"one-plus-one\"\nfirst_step = 0.2\n\
                      [arms.cma]\nalgorithm = \"cma-es\"\nfirst_step = 0.1\n";

/// Candidates come with their tasks, so evoxo's own workers compute the searches of an algorithm that only the coordinator has.
#[tokio::test]
async fn workers_need_not_know_the_algorithm() {
    let site = Site::of_tool(env!("CARGO_BIN_EXE_onemax"));
    let mut coordinator = site.coordinator(&[]);
    let address = coordinator.address.to_string();
    let mut person = Person::of(coordinator.address);
    person.submit("search", SEARCH).await;
    let start = |name| site.start(name, stock().args(["--coordinator", &address, "--name", name]));
    let mut workers = ["one", "two"].map(start);
    let run = person.wait("search", |run| run.rounds_done >= 1000).await;
    assert!(run.rounds_done < run.rounds_total, "nothing is left to interrupt");
    workers[0].kill();
    coordinator.process.kill();
    coordinator = site.coordinator_on(&address, &[]);
    let finished = person.finished("search").await;
    assert_eq!(finished.digest, promises::check(&registry(), &finished.config));
    assert!(person.worker("two").await.tasks_done > 0);
    drop(coordinator);
}
