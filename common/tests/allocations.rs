//! What a worker does a million times a second must not allocate.

use allocation_counter::measure;
use evoxo_common::experiment::td3d::speed::{self, Speed};

/// Of a segment's allocations none is of a game: as many games again do not add one.
#[test]
fn a_game_of_learning_does_not_allocate() {
    let networks: [(&str, &Speed); 9] = [
        ("deep structured", &speed::DEEP_STRUCTURED),
        ("small structured", &speed::SMALL_STRUCTURED),
        ("small", &speed::SMALL),
        ("wide", &speed::WIDE),
        ("deep", &speed::DEEP),
        ("linear tuples", &speed::LINEAR_TUPLES),
        ("tuples", &speed::TUPLES),
        ("unshared", &speed::UNSHARED),
        ("shared", &speed::SHARED),
    ];
    for (name, network) in networks {
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
