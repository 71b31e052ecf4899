//! `evoxo bench`: what one core does in a second, the fast path beside its slow twin, and what this build computes.

use std::{
    hint::black_box,
    io::Write as _,
    process::ExitCode,
    sync::LazyLock,
    time::{Duration, Instant},
};

use evoxo_common::{
    board::{Outcome, Side},
    digest::Digest,
    experiment::{
        invincible::{exact::Scorer, plain, sampled::Program, table::TableGenome},
        nndtf::{
            self,
            judge::Judge,
            network::{Coupling, Kind, Network, Numbering},
        },
        rules::{self, agent::Agent},
        td3d::speed,
        ternary::{
            self,
            game::{Opponent as StringOpponent, Tally},
            index::Strings,
            player::{Alphabet, Code},
        },
    },
    math,
    rng::{Generator, Stream},
    simd,
    task::{signature, signature_digest},
};
use evoxo_worker::cli::Simd;
use serde_json::{Value, json};

/// What to measure.
#[derive(clap::Args)]
#[command(after_help = "The figures are of one core, and only their ratios mean much on another machine.
The behaviour signature is the hash of a fixed workload's outputs: builds with the same one may work on one run.")]
pub(crate) struct Arguments {
    /// Only the kernel of this name
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Instructions the kernels may use: the results are the same
    #[arg(long, value_enum, default_value_t)]
    simd: Simd,
    /// Print it as JSON: {"kernels": [{"name", "unit", "fast", "slow"}], "signature", "tasks"}
    #[arg(long)]
    json: bool,
}

/// A kernel and its slow twin; each does some work on some players and says how much.
struct Kernel {
    name: &'static str,
    unit: &'static str,
    fast: fn(&[TableGenome], &mut Generator) -> u64,
    slow: fn(&[TableGenome], &mut Generator) -> u64,
}

/// Games a player plays in one measurement step.
const GAMES: u32 = 1000;

/// Self-play of one of the networks of `td3d`, warmed by 20,000 games, with learning.
macro_rules! learning {
    ($name:literal, $speed:ident) => {
        Kernel {
            name: $name,
            unit: "games/s",
            fast: |_, _| learn(speed::GAMES, |games| speed::$speed.fast(games)),
            slow: |_, _| learn(4, |games| speed::$speed.slow(games)),
        }
    };
}

/// Plays games and learns from them; says how many.
fn learn(games: u64, learn: impl Fn(u64) -> f32) -> u64 {
    black_box(learn(games));
    games
}

const KERNELS: [Kernel; 16] = [
    Kernel {
        name: "sampled_games",
        unit: "games/s",
        fast: |players, rng| {
            let play = |player: &TableGenome| Program::compile(player.side(), player.genes()).play(GAMES, rng);
            black_box(players.iter().map(play).fold(0, |sum, score| sum ^ score.wins));
            players.len() as u64 * u64::from(GAMES)
        },
        slow: |players, rng| {
            black_box(players[..2].iter().fold(0, |sum, player| sum ^ plain::sampled(player, GAMES, rng).wins));
            2 * u64::from(GAMES)
        },
    },
    Kernel {
        name: "exact_fitness",
        unit: "players/s",
        fast: |players, _| {
            let score = |player: &TableGenome| Scorer::of(player.side()).score(player.genes()).wins;
            black_box(
                (0..100).fold(0, |sum, _| sum ^ black_box(players).iter().fold(0, |sum, player| sum ^ score(player))),
            );
            100 * players.len() as u64
        },
        slow: |players, _| {
            players[..2].iter().for_each(|player| _ = black_box(plain::exact(player)));
            2
        },
    },
    Kernel {
        name: "nndtf_fitness",
        unit: "networks/s",
        fast: |_, _| {
            let Pupils { judge, genes, .. } = pupils();
            black_box(genes.iter().fold(0, |sum, genes| sum ^ judge.sum(black_box(genes))));
            genes.len() as u64
        },
        slow: |_, _| {
            let Pupils { judge, boards, genes } = pupils();
            genes[..5].iter().for_each(|genes| _ = black_box(nndtf::plain::fitness(judge.network(), genes, boards)));
            5
        },
    },
    Kernel {
        name: "rules_games",
        unit: "games/s",
        fast: |_, rng| counted(GAMES, |games| rules::speed::fast(&AGENTS, games, rng)),
        slow: |_, rng| counted(GAMES, |games| rules::speed::slow(&AGENTS, games, rng)),
    },
    Kernel {
        name: "rules_cycles",
        unit: "cycles/s",
        fast: |_, _| counted(20, rules::speed::cycles),
        slow: |_, _| counted(2, rules::speed::slow_cycles),
    },
    Kernel {
        name: "ternary_games",
        unit: "games/s",
        fast: |_, rng| strings(10 * GAMES, ternary::game::game, rng),
        slow: |_, rng| strings(GAMES / 10, ternary::plain::game, rng),
    },
    Kernel {
        name: "dot_product",
        unit: "products/s",
        fast: |_, _| dots(100, math::dot),
        slow: |_, _| dots(10, math::dot_plain),
    },
    learning!("deep_structured", DEEP_STRUCTURED),
    learning!("small_structured", SMALL_STRUCTURED),
    learning!("small", SMALL),
    learning!("wide", WIDE),
    learning!("deep", DEEP),
    learning!("linear_tuples", LINEAR_TUPLES),
    learning!("tuples", TUPLES),
    learning!("unshared", UNSHARED),
    learning!("shared", SHARED),
];

/// A hundred random networks of experiment nndtf with a hundred boards to judge them by.
struct Pupils {
    judge: Judge,
    boards: Vec<u32>,
    genes: Vec<Vec<f32>>,
}

fn pupils() -> &'static Pupils {
    static PUPILS: LazyLock<Pupils> = LazyLock::new(|| {
        let network =
            Network { kind: Kind::Double, coupling: Coupling { sweeps: 1 }, numbering: Numbering::LeftToRight };
        let boards = nndtf::training_boards(1, 0, 100);
        let genes = (0..100).map(|index| network.random(&mut Stream::root(1).word(index).rng())).collect();
        Pupils { judge: Judge::new(network, &boards), boards, genes }
    });
    &PUPILS
}

/// Two agents of experiment `rules`.
static AGENTS: LazyLock<[Agent; 2]> = LazyLock::new(rules::speed::agents);

/// Plays games or cycles of rules; says how many.
fn counted(count: u32, play: impl FnOnce(u32) -> i32) -> u64 {
    black_box(play(black_box(count)));
    count.into()
}

/// Plays so many games between two short strings of three letters, the first of which is repaired; says how many.
fn strings(
    games: u32,
    play: fn(Code, &mut [u8], StringOpponent<'_>, &mut Generator, &mut Tally) -> Outcome,
    rng: &mut Generator,
) -> u64 {
    let [code, other] = Side::BOTH.map(|side| Code { side, strings: Strings::Short, alphabet: Alphabet::Three });
    let (mut genome, opponent) = (code.random(rng), other.random(rng));
    let mut tally = Tally::default();
    for _ in 0..games {
        black_box(play(code, &mut genome, StringOpponent::String(other, &opponent), rng, &mut tally));
    }
    games.into()
}

/// Computes a dot product of 1,024 floats so many times; says how many products that took.
fn dots(times: u64, dot: fn(&[f32], &[f32]) -> f32) -> u64 {
    let values = black_box([0.5_f32; 1024]);
    (0..times).for_each(|_| _ = black_box(dot(black_box(&values), black_box(&values))));
    times * values.len() as u64
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    simd::set_level(arguments.simd.level());
    let chosen = |kernel: &&Kernel| arguments.only.as_ref().is_none_or(|only| kernel.name == only);
    let chosen: Vec<&Kernel> = KERNELS.iter().filter(chosen).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = KERNELS.iter().map(|kernel| kernel.name).collect();
        return Err(crate::usage(format!("there is no such kernel: --only takes {}", names.join(", "))));
    }
    let figures: Vec<(&Kernel, f64, f64)> = chosen.into_iter().map(measure).collect();
    let signature = signature();
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let kernels = figures.iter().map(|(kernel, fast, slow)| {
            json!({"name": kernel.name, "unit": kernel.unit, "fast": fast.round(), "slow": slow.round()})
        });
        let tasks = signature.iter().map(|kind| (kind.kind.clone(), hexadecimal(&kind.sha256).into()));
        let all = json!({
            "kernels": kernels.collect::<Vec<Value>>(),
            "signature": signature_digest(&signature).to_string(),
            "tasks": tasks.collect::<serde_json::Map<String, Value>>(),
        });
        writeln!(out, "{all:#}")?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "{:<16}{:>14}{:>14}{:>8}  on one core", "kernel", "fast", "slow twin", "ratio")?;
    for (kernel, fast, slow) in figures {
        let (name, unit, ratio) = (kernel.name, kernel.unit, fast / slow);
        writeln!(out, "{name:<16}{:>14}{:>14}{ratio:>8.1}  {unit}", grouped(fast), grouped(slow))?;
    }
    writeln!(out, "\nbehaviour signature {}", signature_digest(&signature))?;
    for kind in &signature {
        writeln!(out, "  {:<18}{}", kind.kind, hexadecimal(&kind.sha256))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Units of work per second: fast and slow, measured in turns so that a busy machine hurts both alike, the best of each.
fn measure(kernel: &Kernel) -> (&Kernel, f64, f64) {
    let mut rng = Stream::root(1).text("bench").rng();
    let players: Vec<TableGenome> =
        (0..64).flat_map(|_| Side::BOTH).map(|side| TableGenome::random(side, &mut rng)).collect();
    let mut best = [0.0_f64; 2];
    // What they prepare the first time is not measured.
    (kernel.fast)(&players, &mut rng);
    for _ in 0..5 {
        for (best, work) in best.iter_mut().zip([kernel.fast, kernel.slow]) {
            let (start, mut done) = (Instant::now(), 0);
            while start.elapsed() < Duration::from_millis(150) {
                done += work(&players, &mut rng);
            }
            *best = best.max(done as f64 / start.elapsed().as_secs_f64());
        }
    }
    (kernel, best[0], best[1])
}

fn hexadecimal(sha256: &[u8]) -> String {
    Digest::from_slice(sha256).map(|digest| digest.to_string()).unwrap_or_default()
}

/// A whole number with a space between groups of three digits.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group).into_owned());
    groups.collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_does_some_work() {
        for kernel in &KERNELS {
            let (_, fast, slow) = measure(kernel);
            assert!(fast > 0.0 && slow > 0.0, "{}: {fast} and {slow} {}", kernel.name, kernel.unit);
        }
    }

    #[test]
    fn digits_in_groups() {
        assert_eq!([1.0, 999.0, 1000.0, 12_345_678.4].map(grouped), ["1", "999", "1 000", "12 345 678"]);
    }
}
