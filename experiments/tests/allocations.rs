//! Code that a worker runs a million times per second must not allocate.

use allocation_counter::measure;
use evoxo_common::{
    experiment::{Config, Replica},
    local,
};
use evoxo_experiments::registry;

/// A longer segment has no more allocations than a short one, so a game has none.
#[test]
fn a_game_of_learning_does_not_allocate() {
    let networks = ["small-structured", "deep-structured", "small", "deep", "wide", "tuples", "linear-tuples"];
    let alone = networks.map(|network| (network, "no"));
    let shared = ["deep-structured", "tuples", "linear-tuples"].map(|network| (network, "yes"));
    for (network, shared) in alone.into_iter().chain(shared) {
        let of = |games: u32| {
            let text = format!(
                "experiment = \"td3d\"\n[settings]\nnetwork = \"{network}\"\nshared = \"{shared}\"\ngames = {games}\n\
                 test_every = {games}\ntest_games = 1\nsegment_games = {games}\n"
            );
            let config = Config::parse(&registry(), "test", &text, &[]).expect("a good file");
            let mut replica = Replica::start(&config, &config.arms[0], 0);
            let allocations = measure(|| assert_eq!(local::step(&mut replica), Ok(true)));
            assert!(replica.is_finished());
            allocations.count_total
        };
        // The first call warms the learner up.
        of(1);
        assert_eq!(of(10), of(40), "{network}, shared: {shared}");
    }
}
