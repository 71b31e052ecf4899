//! The faults, workers, settings and runs of a cluster, drawn from the seed.

use std::sync::Arc;

use evoxo_common::rng::{Generator, Stream, below, chance};
use evoxo_coordinator::{
    core::{Batch, Settings},
    prepared::Prepared,
    trust::Level,
};
use evoxo_tests::registry;

use super::worker::Character;

/// How often faults happen, in thousandths, and how many a cluster may have at most, so that every cluster ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) lose: u64,
    pub(crate) repeat: u64,
    pub(crate) cut: u64,
    pub(crate) die: u64,
    pub(crate) store: u64,
    pub(crate) damage: u64,
    pub(crate) delay_ms_max: u64,
    pub(crate) budget: u64,
    /// How many times a coordinator is killed.
    pub(crate) crashes: u64,
    /// Coordinators in addition to the first one, which wait to take over.
    pub(crate) standbys: u64,
    /// How many times a coordinator is stopped for a while, or all are cut off from each other.
    pub(crate) stops: u64,
    /// How often another coordinator leads between a check of the store and a write, in thousandths.
    pub(crate) rival: u64,
    /// Whether a person pauses and resumes runs.
    pub(crate) people: bool,
    /// Workers that flap, forge results or send invalid outputs, in addition to honest ones.
    pub(crate) bad_workers: u64,
    /// The longest duration of a task, in milliseconds.
    pub(crate) task_ms_max: u64,
    /// How many workers are admitted per second.
    pub(crate) admissions: u32,
    /// How outputs are verified. At any level but the plain one, workers have certificates.
    pub(crate) level: Level,
    /// How long ended runs are kept, in milliseconds.
    pub(crate) retain_ms: Option<u64>,
}

impl Faults {
    pub(crate) fn none() -> Self {
        Self {
            lose: 0,
            repeat: 0,
            cut: 0,
            die: 0,
            store: 0,
            damage: 0,
            delay_ms_max: 3,
            budget: 0,
            crashes: 0,
            standbys: 0,
            stops: 0,
            rival: 0,
            people: false,
            bad_workers: 0,
            task_ms_max: 60,
            admissions: 3,
            level: Level::Plain,
            retain_ms: None,
        }
    }

    pub(crate) fn drawn(seed: u64) -> Self {
        let mut rng = Stream::root(seed).text("faults").rng();
        let mut up_to = |most: u64| if chance(&mut rng, 1, 3) { 0 } else { below(&mut rng, most + 1) };
        Self {
            lose: up_to(8),
            repeat: up_to(60),
            cut: up_to(20),
            die: up_to(20),
            store: up_to(300),
            damage: up_to(1000),
            delay_ms_max: 1 + up_to(40),
            budget: 4 + up_to(20),
            crashes: up_to(3),
            standbys: up_to(4) / 2,
            stops: up_to(4),
            rival: up_to(30),
            // Most clusters get no requests, so their progress relies on the wakes that the core asks for.
            people: up_to(9) <= 1,
            bad_workers: up_to(5),
            task_ms_max: if up_to(9) == 1 { 40_000 } else { 60 },
            admissions: 3,
            level: Level::Plain,
            retain_ms: None,
        }
    }
}

/// The characters of the workers. At least one worker is honest.
pub(super) fn characters(rng: &mut Generator, bad: u64) -> Vec<Character> {
    let good = 1 + below(rng, 4) as usize;
    let mut characters = vec![Character::Honest; good];
    for _ in 0..bad {
        characters.push(match below(rng, 8) {
            0 => Character::Foreign,
            1 => Character::Garbled,
            2 | 3 => Character::Forger,
            _ => Character::Flapping,
        });
    }
    characters
}

/// The coordinator's settings. Without faults no task may be computed twice, not even to finish sooner.
pub(super) fn settings(rng: &mut Generator, runs: &[(String, Arc<Prepared>)], faults: &Faults) -> Settings {
    let batch = match below(rng, 4) {
        0 => Batch::Tasks(1),
        1 => Batch::Tasks(1_000_000),
        _ => Batch::Auto,
    };
    // Often there is hardly enough memory for one run, so the other one has to wait.
    let least = runs.iter().map(|(_, prepared)| prepared.least_bytes(64 << 20)).max().unwrap_or(0);
    let memory_bytes_max = if chance(rng, 1, 2) { 2 * least + below(rng, least) } else { 2 << 30 };
    let settings = Settings {
        checkpoint_interval_ms: below(rng, 200),
        batch,
        admissions_per_second: faults.admissions,
        memory_bytes_max,
        retain_ms: faults.retain_ms,
        lanes_max: 1 + below(rng, 4) as usize,
        ..Settings::default()
    };
    match faults.budget {
        0 => Settings { second_copy_ms_min: u64::MAX, second_copy_ms_unknown: u64::MAX, ..settings },
        _ => settings,
    }
}

const SETTINGS_OF_DISPATCH: &str = "rounds = 4\ntasks = 5\npayload_bytes = 40\nreply_bytes = 9";
const SETTINGS_OF_SHARING: &str = "rounds = 4\ntasks = 5\npayload_bytes = 40\nshared_bytes = 30\nreply_bytes = 60";
/// Rounds that are planned in three pieces.
const SETTINGS_OF_GREED: &str = "rounds = 2\ntasks = 40\npayload_bytes = 65536\nreply_bytes = 9";
/// Trials of a few games with a small network.
const SETTINGS_OF_TD3D: &str = "network = \"small\"\nunits = 8\ngame = \"tic-tac-toe\"\ngames = 12\ntest_every = 6\n\
    test_games = 2\nsegment_games = 5\nepisodes = 2";
/// One learner alone, against itself and against the benchmark player; and one with several workers.
const ARMS_OF_TD3D: &str = "[arms.self]\naveraging_games = 50\n[arms.other]\nopponent = \"benchmark\"\n\
    [arms.joint]\nlearners = 3\nouter_rate = 0.7\nmomentum = 0.9\ntest_every = 12\ntest_games = 24\n";
const SETTINGS_OF_INVINCIBLE: &str =
    "population = 12\nfathers = 3\ngenerations = 4\nfitness = \"sampled\"\ngames = 20\nslice = 5";
const ARMS_OF_INVINCIBLE: &str = "[arms.X]\nside = \"X\"\n[arms.O]\nside = \"O\"\nfitness = \"exact\"\n";
const SETTINGS_OF_NNDTF: &str = "iterations = 11\nevaluations = 24\noffspring = 6\nboards = 9\nsegment = 4";
const ARMS_OF_NNDTF: &str = "[arms.segments]\n[arms.evaluations]\nnetwork = \"traditional\"\nfarming = \"evaluations\"\n\
    [arms.\"cma-es\"]\nnetwork = \"traditional\"\nalgorithm = \"cma-es\"\n";
const SETTINGS_OF_RULES: &str = "agents = 8\nrules = 20\ngames = 3\ncycles = 7\nweak = \"replace\"\n\
    knowledge = \"shared\"\ncycles_per_task = 3\ncouples_per_task = 2";
const ARMS_OF_RULES: &str = "[arms.cycles]\n[arms.couples]\nfarming = \"couples\"\n";
/// Strings for both sides, which are the shared bytes of a round's tasks.
const SETTINGS_OF_TERNARY: &str = "population = 10\ngenerations = 4\nopponents = 3\nrandom_games = 2\nslice = 4";
const ARMS_OF_TERNARY: &str = "[arms.short]\n[arms.long]\nside = \"O\"\nstrings = \"long\"\nalphabet = \"9\"\n";
/// Tasks that begin where the previous one ended.
const SETTINGS_OF_MENACE: &str = "games = 90\nslice = 25";
const ARMS_OF_MENACE: &str = "[arms.random]\n[arms.itself]\nside = \"O\"\nopponent = \"itself\"\nempty = \"resign\"\n";
/// Games in rounds of two openings, with one in the last round; and exact odds.
const SETTINGS_OF_LEAGUE: &str = "pairs = 5\npairs_a_round = 2\nplayers = [{ who = \"random\" }, { who = \"filtered\" }, \
    { who = \"benchmark\" }]";
const ARMS_OF_LEAGUE: &str = "[arms.exact]\n[arms.games]\ngame = \"score-four\"\n";
/// Calls that do not wait for each other, in tasks of two.
const SETTINGS_OF_CALLS: &str = "slice = 2\ncalls = \"MQ==,Mg==,Mw==,NA==,NQ==,Ng==,Nw==,OA==,OQ==\"";
const SETTINGS_OF_EVOLVE: &str = "evaluations = 60\npopulation = 10\nlength = 6\nslice = 3\ninitial = 20\n\
    recall = \"yes\"";
const ARMS_OF_EVOLVE: &str = "[arms.random]\nalgorithm = \"random\"\n[arms.ga]\nalgorithm = \"ga\"\n\
    [arms.islands]\nalgorithm = \"ga\"\nislands = 3\nmigration = 2\n\
    [arms.es]\nalgorithm = \"cma-es\"\n[arms.openai]\nalgorithm = \"openai-es\"\n\
    [arms.nsga]\nalgorithm = \"nsga2\"\nproblem = \"zdt1\"\n\
    [arms.map]\nalgorithm = \"map-elites\"\nproblem = \"arm\"\ncentroids = 20\n\
    [arms.nsga3]\nalgorithm = \"nsga3\"\nproblem = \"dtlz2\"\n\
    [arms.mae]\nalgorithm = \"cma-mae\"\nproblem = \"arm\"\ninitial = 10\nemitters = 2\n\
    [arms.swarm]\nalgorithm = \"pso\"\n";
/// Windows narrower and wider than the number of tasks that the workers compute at once. The second arm ends in the middle of
/// a window.
const ARMS_OF_WINDOWS: &str = "[arms.narrow]\nwindow = 2\n\
    [arms.target]\nproblem = \"onemax\"\nwindow = 5\ntarget = \"6\"\n\
    [arms.wide]\nalgorithm = \"map-elites\"\nproblem = \"arm\"\nwindow = 30\n\
    [arms.front]\nalgorithm = \"nsga2\"\nproblem = \"zdt1\"\nwindow = 7\n";

/// A small run of any experiment.
pub(crate) fn run(rng: &mut Generator) -> Arc<Prepared> {
    let seed = below(rng, 1000);
    let replicas = 1 + below(rng, 4);
    let (kind, settings, arms) = match below(rng, 16) {
        0 => ("dispatch", SETTINGS_OF_DISPATCH, ""),
        1 => ("dispatch", SETTINGS_OF_SHARING, ""),
        2 => ("dispatch", SETTINGS_OF_GREED, ""),
        3 => ("td3d", SETTINGS_OF_TD3D, ARMS_OF_TD3D),
        4 => ("nndtf", SETTINGS_OF_NNDTF, ARMS_OF_NNDTF),
        5 => ("rules", SETTINGS_OF_RULES, ARMS_OF_RULES),
        6 => ("ternary", SETTINGS_OF_TERNARY, ARMS_OF_TERNARY),
        7 => ("evolve", SETTINGS_OF_EVOLVE, ARMS_OF_EVOLVE),
        8 | 9 => ("evolve", SETTINGS_OF_EVOLVE, ARMS_OF_WINDOWS),
        13 => ("league", SETTINGS_OF_LEAGUE, ARMS_OF_LEAGUE),
        14 => ("menace", SETTINGS_OF_MENACE, ARMS_OF_MENACE),
        15 => ("calls", SETTINGS_OF_CALLS, ""),
        _ => ("invincible", SETTINGS_OF_INVINCIBLE, ARMS_OF_INVINCIBLE),
    };
    let keep = ["0", "0", "5000", "1 MiB"][below(&mut Stream::root(seed).text("keep").rng(), 4) as usize];
    let text = format!(
        "experiment = \"{kind}\"\nseed = {seed}\nreplicas = {replicas}\nkeep = \"{keep}\"\n[settings]\n{settings}\n{arms}"
    );
    forked(prepared(&text), &mut Stream::root(seed).text("fork").rng())
}

/// Another run that begins as this one, or any run if this one cannot fork or is not to.
pub(crate) fn run_beside(rng: &mut Generator, first: &Arc<Prepared>) -> Arc<Prepared> {
    let other = run(rng);
    let fork = forked(Arc::clone(first), &mut Stream::root(first.config.seed).text("run beside").rng());
    if fork.hash == first.hash { other } else { fork }
}

/// Whether a run beside the first one is submitted only after it: half of the forks are.
pub(crate) fn waits_for_past(run: &Prepared) -> bool {
    !run.config.forks.is_empty() && chance(&mut Stream::root(run.config.seed).text("waits for its past").rng(), 1, 2)
}

/// A setting of each kind that changes after a round, with its later value.
const CHANGES: [(&str, &str, &str); 7] = [
    ("invincible", "penalty", "1"),
    ("ternary", "mutations", "3"),
    ("rules", "mutation", "0.3"),
    ("td3d", "alpha", "0.1"),
    ("menace", "loss", "-2"),
    ("nndtf", "weight", "0.4"),
    ("evolve", "mutations", "3"),
];

/// The run, or a run that forks from it after one of its rounds.
fn forked(run: Arc<Prepared>, rng: &mut Generator) -> Arc<Prepared> {
    let (config, rounds) =
        (&run.config, (0..run.config.arms.len() as u32).map(|arm| run.rounds(arm)).min().unwrap_or(0));
    match CHANGES.iter().find(|(kind, ..)| *kind == config.kind.name) {
        Some((_, name, value)) if rounds > 1 && config.forks.is_empty() && chance(rng, 1, 2) => {
            let at = 1 + below(rng, rounds - 1);
            let fork = config.forked(registry(), at, &[((*name).into(), (*value).into())]);
            prepared(&fork.unwrap_or_else(|problems| panic!("{problems}")).to_toml())
        }
        _ => run,
    }
}

/// Reads a configuration.
pub(super) fn prepared(text: &str) -> Arc<Prepared> {
    Prepared::read(registry(), "drawn", text).unwrap_or_else(|problems| panic!("{problems}"))
}
