//! Properties of every kind: bounds on what it needs, rounds planned in pieces, and pinned signatures.

use evoxo_common::{
    experiment::{Config, Demand, Replica},
    local,
    task::Task,
};
use evoxo_experiments::registry;

/// A small file of each kind, or several if its rounds can differ.
const SMALL: [&str; 13] = [
    "experiment = \"dispatch\"\n[settings]\nrounds = 3\ntasks = 5\npayload_bytes = 100\nreply_bytes = 50\nshared_bytes = 9",
    "experiment = \"invincible\"\n[settings]\npopulation = 30\nfathers = 4\ngenerations = 4\ngames = 20\nslice = 7",
    "experiment = \"invincible\"\n[settings]\npopulation = 30\nside = \"X\"\ngenerations = 4\nfitness = \"exact\"",
    "experiment = \"ternary\"\n[settings]\npopulation = 12\ngenerations = 5\nopponents = 4\nrandom_games = 6\nslice = 5",
    "experiment = \"ternary\"\n[settings]\npopulation = 12\ngenerations = 5\nopponents = 0\nstrings = \"long\"\nside = \"O\"",
    "experiment = \"rules\"\n[settings]\nagents = 12\nrules = 30\ncycles = 9\ncycles_per_task = 4",
    "experiment = \"rules\"\n[settings]\nagents = 12\nrules = 30\ncycles = 9\nfarming = \"couples\"\ncouples_per_task = 4",
    "experiment = \"nndtf\"\n[settings]\niterations = 40\nevaluations = 300\nsegment = 9",
    "experiment = \"nndtf\"\n[settings]\niterations = 40\nfarming = \"evaluations\"\nalgorithm = \"traditional\"",
    "experiment = \"nndtf\"\n[settings]\nevaluations = 300\noffspring = 10\nalgorithm = \"cma-es\"\nsegment = 3",
    "experiment = \"td3d\"\n[settings]\nnetwork = \"small\"\ngames = 40\ntest_every = 10\ntest_games = 5\nsegment_games = 15",
    "experiment = \"td3d\"\n[settings]\nnetwork = \"tuples\"\ngames = 20\ntest_every = 10\ntest_games = 50\nlearners = 3\n\
     momentum = \"0.9\"\naveraging_games = 30",
    "experiment = \"td3d\"\n[settings]\nnetwork = \"small-structured\"\ngames = 30\ntest_every = 15\ntest_games = 5\n\
     learners = 4",
];

fn replica(text: &str) -> (Config, Replica) {
    let config = Config::parse(&registry(), "test", text, &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let replica = Replica::start(&config, &config.arms[0], 0);
    (config, replica)
}

/// The coordinator's budget relies on these figures: no round may need more.
#[test]
fn no_replica_needs_more_than_its_kind_says() {
    for text in SMALL {
        let (config, mut replica) = replica(text);
        let most = (config.kind.demand)(&config.arms[0].settings);
        let mut found = Demand::default();
        let mut rounds = 0;
        while !replica.is_finished() {
            let tasks = replica.plan(0..replica.tasks());
            found.tasks = found.tasks.max(tasks.len() as u64);
            let mut shared: Vec<&[u8]> = tasks.iter().map(|task| &task.shared[..]).collect();
            shared.sort_unstable();
            shared.dedup();
            found.shared_bytes = found.shared_bytes.max(shared.concat().len() as u64);
            let outputs: Vec<_> = tasks.iter().map(|task| task.run().unwrap()).collect();
            let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0) as u64;
            found.task_bytes = found.task_bytes.max(longest(&mut tasks.iter().map(|task| task.body.len())));
            found.output_bytes = found.output_bytes.max(longest(&mut outputs.iter().map(bytes::Bytes::len)));
            replica.absorb(&outputs);
            rounds += 1;
            found.state_bytes = found.state_bytes.max(replica.save().state.len() as u64);
        }
        assert_eq!(rounds, (config.kind.rounds)(&config.arms[0].settings), "{text}");
        found.rows = replica.history().len() as u64;
        let pairs = [
            (found.tasks, most.tasks),
            (found.task_bytes, most.task_bytes),
            (found.shared_bytes, most.shared_bytes),
            (found.output_bytes, most.output_bytes),
            (found.state_bytes, most.state_bytes),
            (found.rows, most.rows),
        ];
        assert!(pairs.iter().all(|(found, most)| found <= most), "{text}: {found:?} of {most:?}");
    }
}

/// A coordinator with little memory plans rounds in pieces.
#[test]
fn a_round_may_be_planned_in_pieces() {
    for text in SMALL {
        let (_, mut replica) = replica(text);
        while !replica.is_finished() {
            let parts = |tasks: Vec<Task>| tasks.into_iter().map(|task| (task.body, task.shared)).collect::<Vec<_>>();
            let whole = parts(replica.plan(0..replica.tasks()));
            let pieces = (0..replica.tasks()).flat_map(|index| replica.plan(index..index + 1)).collect();
            assert_eq!(parts(pieces), whole, "{text}");
            local::step(&mut replica).unwrap();
        }
    }
}

/// A change of these keeps workers of earlier builds out, and changes what runs compute.
#[test]
fn what_this_build_computes_is_pinned() {
    let registry = registry();
    let lines: Vec<String> =
        registry.kinds().iter().map(|kind| format!("{} {}", kind.name, registry.signature(kind))).collect();
    insta::assert_snapshot!(lines.join("\n"));
}
