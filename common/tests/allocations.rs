//! What a worker does a million times a second must not allocate.

use allocation_counter::measure;
use evoxo_common::experiment::td3d::speed::NETWORKS;

/// Of a segment's allocations none is of a game: as many games again do not add one.
#[test]
fn a_game_of_learning_does_not_allocate() {
    for (name, network) in NETWORKS {
        let of = |games| {
            let allocations = measure(|| {
                std::hint::black_box(network.fast(games));
            });
            allocations.count_total
        };
        // The first call warms the learner up.
        of(1);
        assert_eq!(of(10), of(40), "{name}");
    }
}
