//! Small runs of every kind of experiment. They are also cheap, because otherwise the fuzzer could try only few inputs.

use std::sync::{Arc, OnceLock};

use evoxo_coordinator::prepared::Prepared;

use crate::registry;

/// The experiment files.
pub const TEXTS: [&str; 11] = [
    "experiment = \"dispatch\"\nreplicas = 2\n[settings]\nrounds = 3\ntasks = 4\npayload_bytes = 16\nreply_bytes = 8",
    "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 2\ntasks = 3\npayload_bytes = 40\nshared_bytes = 30\n\
     reply_bytes = 60",
    "experiment = \"invincible\"\nreplicas = 1\n[settings]\npopulation = 6\nfathers = 3\ngenerations = 2\n\
     fitness = \"sampled\"\ngames = 4\nslice = 3",
    "experiment = \"nndtf\"\nreplicas = 1\n[settings]\nnetwork = \"traditional\"\nalgorithm = \"cma-es\"\niterations = 2\n\
     evaluations = 12\noffspring = 4\nboards = 4\nsegment = 4",
    "experiment = \"rules\"\nreplicas = 1\n[settings]\nagents = 4\nrules = 8\ngames = 2\ncycles = 2",
    "experiment = \"ternary\"\nreplicas = 1\n[settings]\npopulation = 4\ngenerations = 2\nopponents = 2\nrandom_games = 1\n\
     slice = 2",
    "experiment = \"league\"\nreplicas = 1\n[settings]\npairs = 2\npairs_a_round = 2\ngame = \"score-four\"\n\
     players = [{ who = \"random\" }, { who = \"filtered\" }]",
    "experiment = \"evolve\"\nreplicas = 1\n[settings]\nevaluations = 20\npopulation = 4\nlength = 4\nslice = 2",
    "experiment = \"td3d\"\nreplicas = 1\n[settings]\nnetwork = \"small\"\nunits = 4\ngame = \"tic-tac-toe\"\ngames = 4\n\
     test_every = 2\ntest_games = 1\nsegment_games = 2\nepisodes = 1",
    "experiment = \"menace\"\nreplicas = 1\n[settings]\ngames = 10\nslice = 10\nopponent = \"itself\"",
    "experiment = \"calls\"\nreplicas = 1\n[settings]\nslice = 2\nanswer_bytes = 64",
];

/// Parses one of the experiment files.
pub fn config(number: u8) -> Arc<Prepared> {
    static READ: OnceLock<Vec<Arc<Prepared>>> = OnceLock::new();
    let read = READ.get_or_init(|| {
        let read = |text: &&str| Prepared::read(registry(), "a small run", text);
        TEXTS.iter().map(|text| read(text).unwrap_or_else(|why| panic!("{why}\n{text}"))).collect()
    });
    Arc::clone(&read[usize::from(number) % read.len()])
}
