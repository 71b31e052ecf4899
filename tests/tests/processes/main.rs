//! Real programs on loopback. For any number of workers, any division of the work, and kills of any process at any time, a
//! run has the result of one undisturbed thread.

mod algorithms;
mod audit;
mod autoscale;
mod check;
mod crashes;
mod daemon;
mod forks;
mod joining;
mod leaders;
mod liars;
mod modules;
mod orders;
mod own;
mod packs;
mod programs;
mod quota;
mod recalled;
mod rights;
mod secure;
mod selection;
mod services;
mod shapes;
mod standby;
mod strangers;
mod succession;

/// Small enough for a test, with both sides, slices and both kinds of fitness.
pub(crate) const INVINCIBLE: &str = r#"
experiment = "invincible"
seed = 7
replicas = 3
[settings]
population = 200
generations = 8
games = 200
slice = 25
[arms.X]
side = "X"
[arms.O]
side = "O"
[arms."O exact"]
fitness = "exact"
"#;

/// Searches of every kind, on both networks, distributed in both ways.
pub(crate) const NNDTF: &str = r#"
experiment = "nndtf"
seed = 7
replicas = 2
[settings]
iterations = 300
evaluations = 2000
offspring = 20
segment = 40
[arms.proposed]
[arms."proposed, evaluations"]
farming = "evaluations"
[arms.rival]
network = "traditional"
algorithm = "traditional"
[arms."cma-es"]
algorithm = "cma-es"
"#;

/// Agents of rules, distributed in both ways.
pub(crate) const RULES: &str = r#"
experiment = "rules"
seed = 7
replicas = 3
[settings]
cycles = 60
knowledge = "shared"
weak = "replace"
[arms.cycles]
cycles_per_task = 7
[arms.couples]
farming = "couples"
couples_per_task = 3
"#;

/// Many tasks that do nothing, with bytes that the tasks of a round share.
pub(crate) const DISPATCH: &str = r#"
experiment = "dispatch"
replicas = 3
[settings]
rounds = 6
tasks = 300
payload_bytes = 64
shared_bytes = 3000
reply_bytes = 100
"#;

/// Trials in many small segments, with tests between them, against both kinds of opponents, and in rounds of several workers.
pub(crate) const TD3D: &str = r#"
experiment = "td3d"
replicas = 2
[settings]
network = "small-structured"
games = 600
test_every = 200
test_games = 40
segment_games = 70
averaging_games = 300
[arms.self]
[arms.benchmark]
opponent = "benchmark"
network = "deep"
reading = "literal"
[arms."several workers"]
learners = 8
episodes = 2
[arms.momentum]
learners = 3
outer_rate = 0.7
momentum = 0.9
join = "all"
"#;

/// Strings for both sides in slices, with repairs in the outputs.
pub(crate) const TERNARY: &str = r#"
experiment = "ternary"
seed = 5
replicas = 2
[settings]
population = 60
generations = 30
opponents = 10
random_games = 10
slice = 25
[arms.short]
[arms.long]
side = "O"
strings = "long"
alphabet = "9"
"#;

/// Machines of matchboxes, one task after the other.
pub(crate) const MENACE: &str = r#"
experiment = "menace"
seed = 5
replicas = 3
[settings]
games = 600
slice = 70
[arms.random]
[arms.itself]
side = "O"
opponent = "itself"
"#;

/// A long run of invincible with two arms: this many replicas of each, and this many generations.
pub(crate) fn lasting(replicas: u32, generations: u32) -> String {
    format!(
        "experiment = \"invincible\"\nseed = 11\nreplicas = {replicas}\n[settings]\npopulation = 200\n\
         generations = {generations}\ngames = 3000\nslice = 20\n[arms.X]\nside = \"X\"\n[arms.O]\nside = \"O\"\n"
    )
}

/// Two replicas of this many rounds, each of four small tasks that do nothing.
pub(crate) fn echoes(rounds: u32) -> String {
    format!(
        "experiment = \"dispatch\"\nreplicas = 2\n[settings]\nrounds = {rounds}\ntasks = 4\npayload_bytes = 16\nreply_bytes = 16\n"
    )
}
