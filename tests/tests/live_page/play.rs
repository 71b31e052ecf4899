//! Playing on the page: champions of runs answer as they do on one thread, garbage is refused, and many people who play at
//! once do no harm to a run.

use std::time::{Duration, Instant};

use evoxo_common::{
    experiment::Config,
    local,
    play::{Question, Wanted, Who},
    rng::{Stream, below},
};
use evoxo_games::answer::PLAY;
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
    registry,
};
use serde_json::json;

use super::http::get;
use crate::RUN;

/// A run that lasts longer than a test.
const LONG: &str = "experiment = \"invincible\"\nseed = 5\nreplicas = 1\n[settings]\npopulation = 100\ngames = 200\n\
    generations = 100000\nslice = 20\n";

#[tokio::test]
async fn champions_answer_as_after_a_run_on_one_thread() {
    let site = Site::new();
    let mut coordinator = site.coordinator(&[]);
    let _worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", RUN).await;
    person.finished("run").await;
    // Champions are read from the store, even by a coordinator that has not computed them.
    coordinator.process.kill();
    let coordinator = site.coordinator(&[]);
    let to = coordinator.address;
    let config = Config::parse(registry(), "test", RUN, &[]).expect("a good file");
    for replica in local::run(&config).expect("tasks that are computed") {
        let arm = config.arms.iter().position(|arm| arm.name == replica.arm()).expect("an arm");
        let who = format!("run/{arm}/{}", replica.index());
        let introduction = get(to, &format!("/api/play/introduction?player={who}")).await.json();
        assert_eq!((&introduction["game"], &introduction["side"]), (&json!("tic-tac-toe"), &json!("O")));
        let card = replica.champion().expect("a champion");
        let path = format!("/api/runs/run/champion?arm={arm}&replica={}", replica.index());
        let shown = get(to, &path).await.json();
        let showing = card.champion.show(usize::MAX);
        assert_eq!(
            (&shown["text"], &shown["parts"], &shown["more"]),
            (&json!(showing.text), &showing.json, &json!(false))
        );
        assert_eq!(shown["about"]["digest"], json!(replica.digest().to_string()));
        for (what, wanted) in [("move", Wanted::Move), ("thoughts", Wanted::Thoughts)] {
            for moves in ["a1", "b2", "a3.b2.c1"] {
                let who_here = Who::Champion(&card);
                let question = Question { game: "tic-tac-toe", moves, who: who_here, plies: None, wanted };
                let right = (PLAY.answer)(&question).expect("an answer");
                let path = format!("/api/play/{what}?game=tic-tac-toe&moves={moves}&player={who}");
                let answer = get(to, &path).await;
                assert_eq!((answer.status, answer.json()), (200, right), "{path}");
            }
        }
    }
    for (query, status) in [("", 400), ("?arm=0", 400), ("?arm=-1&replica=0", 400), ("?arm=9&replica=0", 404)] {
        assert_eq!(get(to, &format!("/api/runs/run/champion{query}")).await.status, status, "{query}");
    }
    let other = get(to, "/api/play/move?game=qubic&moves=a11&player=run/0/0").await;
    assert_eq!(other.status, 400);
    assert!(other.text().contains("this champion plays tic-tac-toe, not qubic"), "{}", other.text());
}

#[tokio::test]
async fn a_champion_of_an_unfinished_run_can_play_once_stored() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let to = coordinator.address;
    let mut person = Person::of(to);
    person.submit("long", LONG).await;
    let early = get(to, "/api/play/introduction?player=long/0/0").await.json();
    assert_eq!(early["game"], json!(null));
    assert!(early["why"].as_str().is_some_and(|why| why.contains("nothing of this replica is stored yet")), "{early}");
    let _worker = site.worker(to, &[]);
    let begun = Instant::now();
    while get(to, "/api/play/introduction?player=long/0/0").await.json()["game"].is_null() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no champion appears");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The checkpoint that was found may be replaced by a newer one before it is read.
    let begun = Instant::now();
    let answer = loop {
        let answer = get(to, "/api/play/move?moves=b2&player=long/0/0").await;
        if answer.status == 200 {
            break answer;
        }
        assert!(answer.status == 503 && begun.elapsed() < Duration::from_secs(60), "{}", answer.text());
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(answer.json()["to_move"], json!("X"), "{}", answer.text());
    for (who, why) in
        [("long/1/0", "arms 0 to 0"), ("long/0/1", "replicas 0 to 0"), ("none/0/0", "no run of this name")]
    {
        let answer = get(to, &format!("/api/play/move?moves=b2&player={who}")).await;
        assert_eq!(answer.status, 404, "{who}");
        assert!(answer.text().contains(why), "{who}: {}", answer.text());
    }
}

/// Questions made of good and bad parts. Each gets an answer or a refusal, and nothing else happens.
#[tokio::test]
async fn garbage_is_rejected() {
    const WHAT: [&str; 6] = ["introduction", "position", "move", "thoughts", "", "x/y"];
    const GAME: [&str; 6] = ["", "tic-tac-toe", "connect-four", "score-four", "chess", "%00"];
    const MOVES: [&str; 8] = ["", "a1", "a1.a1", "d4.d4.d4.d4.d4", "a1.b2.b1.b3.c1", "....", "%61%31", "a1,b2"];
    const WHO: [&str; 10] =
        ["", "random", "perfect", "alpha-beta", "run/0/0", "run/0/4294967295", "/0/0", "../../etc/0/0", "a/b", "%2F"];
    const PLIES: [&str; 6] = ["", "&plies=1", "&plies=5", "&plies=-1", "&plies=18446744073709551616", "&plies=x"];
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut rng = Stream::root(20).text("garbage").rng();
    let mut statuses = Vec::new();
    for _ in 0..400 {
        let mut any = |from: &[&'static str]| from[below(&mut rng, from.len() as u64) as usize];
        let query = format!("game={}&moves={}&player={}{}", any(&GAME), any(&MOVES), any(&WHO), any(&PLIES));
        let path = format!("/api/play/{}?{query}", any(&WHAT));
        let answer = get(coordinator.address, &path).await;
        assert!(matches!(answer.status, 200 | 400 | 404), "{path}: {} {}", answer.status, answer.text());
        assert!(answer.status == 200 || answer.json()["error"].is_string(), "{path}: {}", answer.text());
        statuses.push(answer.status);
    }
    let of = |status: u16| statuses.iter().filter(|other| **other == status).count();
    assert!(of(200) > 20 && of(400) > 100, "{} good, {} bad", of(200), of(400));
}

/// More questions at once than can be answered, each as expensive as possible. Some are refused, and the run is as on one
/// thread.
#[tokio::test]
async fn many_simultaneous_games_slow_no_run() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let to = coordinator.address;
    let _worker = site.worker(to, &[]);
    let mut person = Person::of(to);
    person.submit("run", RUN).await;
    let heavy = "/api/play/thoughts?game=score-four&moves=a1.b2.c3.d4.a1.b2.c3&player=alpha-beta&plies=4";
    let questions = (0..120).map(|_| tokio::spawn(async move { get(to, heavy).await.status }));
    let mut statuses = Vec::new();
    for question in questions.collect::<Vec<_>>() {
        statuses.push(question.await.expect("an answer"));
    }
    // A connection beyond the limit is dropped without an answer.
    assert!(statuses.iter().all(|status| matches!(status, 0 | 200 | 429)), "{statuses:?}");
    assert!(statuses.contains(&200), "{statuses:?}");
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(RUN));
    assert_eq!(get(to, heavy).await.status, 200);
}
