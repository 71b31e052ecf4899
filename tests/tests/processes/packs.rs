//! Many small replicas end together. They share objects, whatever is killed or damaged.

use std::{fs, time::Duration};

use evoxo_proto::v1::{Run, RunState};
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
};

/// 12,000 replicas of one task.
const TINY: &str = "experiment = \"dispatch\"\nreplicas = 6000\n[settings]\nrounds = 1\ntasks = 1\npayload_bytes = 8\n\
                    reply_bytes = 8\n[arms.one]\n[arms.two]\n";
const REPLICAS: usize = 12_000;

/// kill -9, five times while replicas are being stored.
#[tokio::test]
async fn many_replicas_share_objects_whatever_is_killed() {
    let site = Site::new();
    let mut coordinator = site.coordinator(&[]);
    let address = coordinator.address.to_string();
    let workers = [(); 2].map(|()| site.worker(coordinator.address, &[]));
    let mut person = Person::of(coordinator.address);
    person.submit("tiny", TINY).await;
    let mut cut_short = 0;
    for life in 1..=5 {
        let far = |run: &Run| run.replicas_finished as usize >= REPLICAS / 20 * life;
        let run = person.wait("tiny", far).await;
        cut_short += u32::from(run.state() == RunState::Running);
        // Not always at the same step of a write.
        tokio::time::sleep(Duration::from_millis(3 * life as u64)).await;
        coordinator.process.kill();
        coordinator = site.coordinator_on(&address, &[]);
    }
    assert!(cut_short >= 2, "the run ended before anything was killed");
    let run = person.finished("tiny").await;
    assert_eq!((run.digest, run.notices), (digest_of_one_thread(TINY), Vec::<String>::new()));
    let (objects, copies) = (site.objects("tiny", "finished").len(), site.objects("tiny", "finished-copy").len());
    assert!(objects == copies && objects < REPLICAS / 4, "{objects} objects and {copies} copies");
    drop(workers);
}

/// One object of many replicas is damaged, and later its copy too. The replicas are read from the copy, and then computed again.
#[tokio::test]
async fn replicas_of_a_lost_object_are_all_computed_again() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let address = coordinator.address.to_string();
    let worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("tiny", TINY).await;
    let digest = person.finished("tiny").await.digest;
    drop(coordinator);
    let replicas_of = |path: &std::path::Path| -> u64 {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        name.split('-').nth(2).expect("a number of replicas").parse().expect("a number")
    };
    let largest = site.objects("tiny", "finished").into_iter().max_by_key(|path| replicas_of(path)).expect("an object");
    let copy = site.path("store/runs/tiny/finished-copy").join(largest.file_name().expect("a name"));
    let (good, count) = (fs::read(&largest).expect("an object"), replicas_of(&largest));
    assert!(count > 1, "{}", largest.display());

    fs::write(&largest, &good[..good.len() / 2]).expect("an object");
    let coordinator = site.coordinator_on(&address, &[]);
    let run = person.wait("tiny", |run| run.notices.iter().any(|it| it.contains("was rewritten from"))).await;
    assert_eq!((run.digest, fs::read(&largest).expect("an object") == good), (digest.clone(), true));
    drop(coordinator);

    for path in [&largest, &copy] {
        let mut bytes = good.clone();
        bytes[good.len() / 2] ^= 1;
        fs::write(path, bytes).expect("an object");
    }
    let coordinator = site.coordinator_on(&address, &[]);
    let told = format!("its {count} replicas are computed again");
    person.wait("tiny", |run| run.notices.iter().any(|notice| notice.contains(&told))).await;
    assert_eq!(person.finished("tiny").await.digest, digest);
    drop((coordinator, worker));
}
