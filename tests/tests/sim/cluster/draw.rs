//! What a cluster computes: a small run of any experiment, drawn from the seed.

use evoxo_common::{
    config::Config,
    rng::{Generator, below},
};

const SETTINGS_OF_DISPATCH: &str = "rounds = 4\ntasks = 5\npayload_bytes = 40\nreply_bytes = 9";
const SETTINGS_OF_SHARING: &str = "rounds = 4\ntasks = 5\npayload_bytes = 40\nshared_bytes = 30\nreply_bytes = 60";
/// Trials of a few games of a small network.
const SETTINGS_OF_TD3D: &str = "network = \"small\"\nunits = 8\ngame = \"tic-tac-toe\"\ngames = 12\ntest_every = 6\n\
    test_games = 2\nsegment_games = 5\nepisodes = 2";
/// One learner by himself, against himself and another; one with many workers.
const ARMS_OF_TD3D: &str = "[arms.self]\naveraging_games = 50\n[arms.other]\nopponent = \"benchmark\"\n\
    [arms.joint]\nlearners = 3\nouter_rate = 0.7\nmomentum = 0.9\ntest_every = 12\ntest_games = 24\n";
const SETTINGS_OF_INVINCIBLE: &str =
    "population = 12\nfathers = 3\ngenerations = 4\nfitness = \"sampled\"\ngames = 20\nslice = 5";
const SETTINGS_OF_NNDTF: &str = "iterations = 11\nevaluations = 24\noffspring = 6\nboards = 9\nsegment = 4";
const ARMS_OF_NNDTF: &str = "[arms.segments]\n[arms.evaluations]\nnetwork = \"traditional\"\nfarming = \"evaluations\"\n\
    [arms.\"cma-es\"]\nnetwork = \"traditional\"\nalgorithm = \"cma-es\"\n";
const SETTINGS_OF_RULES: &str = "agents = 8\nrules = 20\ngames = 3\ncycles = 7\nweak = \"replace\"\n\
    knowledge = \"shared\"\ncycles_per_task = 3\ncouples_per_task = 2";
const ARMS_OF_RULES: &str = "[arms.cycles]\n[arms.couples]\nfarming = \"couples\"\n";
/// Strings of both sides, which tasks of a round share.
const SETTINGS_OF_TERNARY: &str = "population = 10\ngenerations = 4\nopponents = 3\nrandom_games = 2\nslice = 4";
const ARMS_OF_TERNARY: &str = "[arms.short]\n[arms.long]\nside = \"O\"\nstrings = \"long\"\nalphabet = \"9\"\n";

/// A run's configuration.
pub(super) fn draw_config(rng: &mut Generator) -> Config {
    let seed = below(rng, 1000);
    let replicas = 1 + below(rng, 4);
    let (kind, settings, arms) = match below(rng, 9) {
        0 => ("dispatch", SETTINGS_OF_DISPATCH, ""),
        1 => ("dispatch", SETTINGS_OF_SHARING, ""),
        2 => ("td3d", SETTINGS_OF_TD3D, ARMS_OF_TD3D),
        3 => ("nndtf", SETTINGS_OF_NNDTF, ARMS_OF_NNDTF),
        4 => ("rules", SETTINGS_OF_RULES, ARMS_OF_RULES),
        5 => ("ternary", SETTINGS_OF_TERNARY, ARMS_OF_TERNARY),
        _ => (
            "invincible",
            SETTINGS_OF_INVINCIBLE,
            "[arms.X]\nside = \"X\"\n[arms.O]\nside = \"O\"\nfitness = \"exact\"\n",
        ),
    };
    let text = format!("experiment = \"{kind}\"\nseed = {seed}\nreplicas = {replicas}\n[settings]\n{settings}\n{arms}");
    Config::parse("drawn", &text, &[]).unwrap_or_else(|problems| panic!("{problems}"))
}
