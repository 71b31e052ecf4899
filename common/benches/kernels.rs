//! The kernels beside their slow twins: `cargo bench -p evoxo-common`. (`evoxo bench` prints the same without criterion.)

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use evoxo_common::{
    board::Side,
    experiment::{
        invincible::{exact::Scorer, plain, sampled::Program, table::TableGenome},
        nndtf::{
            judge::Judge,
            network::{Coupling, Kind, Network, Numbering},
            plain as nndtf_plain, training_boards,
        },
        rules::speed as speed_of_rules,
        td3d::speed,
        ternary::{
            self,
            game::{Opponent, Tally},
            index::Strings,
            player::{Alphabet, Code},
        },
    },
    rng::Stream,
};

/// Games in one measured step.
const GAMES: u32 = 1000;

/// A random player of each side, the same in every run.
fn players() -> [TableGenome; 2] {
    Side::BOTH.map(|side| TableGenome::random(side, &mut Stream::root(1).text("bench").rng()))
}

fn sampled_games(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sampled_games");
    group.throughput(Throughput::Elements(GAMES.into()));
    for player in players() {
        let side = player.side().letter();
        let mut rng = Stream::root(2).rng();
        group.bench_function(format!("fast {side}"), |bench| {
            bench.iter(|| Program::compile(player.side(), black_box(player.genes())).play(GAMES, &mut rng));
        });
        group.bench_function(format!("slow {side}"), |bench| {
            bench.iter(|| plain::sampled(black_box(&player), GAMES, &mut rng));
        });
    }
}

fn exact_fitness(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("exact_fitness");
    group.throughput(Throughput::Elements(1));
    for player in players() {
        let (side, scorer) = (player.side().letter(), Scorer::of(player.side()));
        group.bench_function(format!("fast {side}"), |bench| bench.iter(|| scorer.score(black_box(player.genes()))));
        group.bench_function(format!("slow {side}"), |bench| bench.iter(|| plain::exact(black_box(&player))));
    }
}

fn ternary_games(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ternary_games");
    group.throughput(Throughput::Elements(GAMES.into()));
    let [code, other] = Side::BOTH.map(|side| Code { side, strings: Strings::Short, alphabet: Alphabet::Three });
    let mut rng = Stream::root(3).rng();
    let (mut genome, string) = (code.random(&mut rng), other.random(&mut rng));
    let opponent = Opponent::String(other, &string);
    let paths =
        [("fast", ternary::game::game as fn(_, &mut [u8], _, &mut _, &mut _) -> _), ("slow", ternary::plain::game)];
    for (path, play) in paths {
        let mut tally = Tally::default();
        group.bench_function(path, |bench| {
            bench.iter(|| (0..GAMES).for_each(|_| _ = play(code, &mut genome, opponent, &mut rng, &mut tally)));
        });
    }
}

fn learning(criterion: &mut Criterion) {
    for (name, speed) in speed::NETWORKS {
        let mut group = criterion.benchmark_group(format!("learning {name}"));
        for (path, games) in [("fast", speed::GAMES), ("slow", 2)] {
            group.throughput(Throughput::Elements(games));
            group.bench_function(path, |bench| {
                bench.iter(|| if path == "fast" { speed.fast(black_box(games)) } else { speed.slow(black_box(games)) });
            });
        }
    }
}

/// A random chromosome of each network on a hundred boards.
fn nndtf_fitness(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("nndtf_fitness");
    group.throughput(Throughput::Elements(1));
    let boards = training_boards(1, 0, 100);
    for (name, kind) in [("double", Kind::Double), ("traditional", Kind::Traditional)] {
        let network = Network { kind, coupling: Coupling { sweeps: 1 }, numbering: Numbering::LeftToRight };
        let (judge, genes) = (Judge::new(network, &boards), network.random(&mut Stream::root(1).rng()));
        group.bench_function(format!("fast {name}"), |bench| bench.iter(|| judge.sum(black_box(&genes))));
        group.bench_function(format!("slow {name}"), |bench| {
            bench.iter(|| nndtf_plain::fitness(network, black_box(&genes), &boards));
        });
    }
}

/// Games of two agents of 100 rules, and the whole cycle of 40 of them.
fn rules(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rules games");
    group.throughput(Throughput::Elements(GAMES.into()));
    let (agents, mut rng) = (speed_of_rules::agents(), Stream::root(2).rng());
    group.bench_function("fast", |bench| bench.iter(|| speed_of_rules::fast(black_box(&agents), GAMES, &mut rng)));
    group.bench_function("slow", |bench| bench.iter(|| speed_of_rules::slow(black_box(&agents), GAMES, &mut rng)));
    group.finish();
    criterion.bench_function("rules cycles", |bench| bench.iter(|| speed_of_rules::cycles(black_box(1))));
}

criterion_group!(kernels, sampled_games, exact_fitness, ternary_games, learning, nndtf_fitness, rules);
criterion_main!(kernels);
