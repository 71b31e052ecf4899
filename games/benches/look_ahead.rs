//! Look-ahead: `cargo bench -p evoxo-games --bench look_ahead`. It compares alpha-beta with plain minimax, and measures the
//! exact solver.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use evoxo_common::rng::{Generator, Stream};
use evoxo_games::{
    board::{Geometry, Position, cells, score_four},
    player::{
        alpha_beta::{DEPTH_MAX, Solver, built_in, line_count},
        benchmark::benchmark,
        random::random,
    },
};

/// Positions of 4x4x4 after `plies` plies between two such players. They are the same in every run.
fn positions(plies: u32, count: usize, mover: fn(Position, &Geometry, &mut Generator) -> u8) -> Vec<Position> {
    let drawn = |seed: u64| {
        let mut rng = Stream::root(seed).text("bench").rng();
        let mut position = Position::START;
        for _ in 0..plies {
            position = position.play(score_four(), mover(position, score_four(), &mut rng));
            if score_four().outcome(position.board()).is_some() {
                return None;
            }
        }
        Some(position)
    };
    (0..).filter_map(drawn).take(count).collect()
}

/// The value of a position that is not over, found by looking at every move.
fn minimax(position: Position, depth: u32) -> f32 {
    let (geometry, side) = (score_four(), position.to_move());
    if depth == 0 || position.legal(geometry) == 0 {
        return line_count(geometry, position);
    }
    let values = cells(position.legal(geometry)).map(|cell| match position.wins(geometry, side) >> cell & 1 {
        1 => 2.0,
        _ => -minimax(position.play(geometry, cell), depth - 1),
    });
    values.fold(f32::NEG_INFINITY, f32::max)
}

/// One move in the middle of a game.
fn moves(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("alpha_beta");
    group.sample_size(10).throughput(Throughput::Elements(1));
    let positions = positions(16, 20, benchmark);
    for depth in 1..=DEPTH_MAX {
        let mut player = built_in(score_four(), depth);
        let mut next = positions.iter().cycle();
        group.bench_function(format!("fast depth {depth}"), |bench| {
            bench.iter(|| next.next().map(|position| player.choose(black_box(*position))));
        });
        if depth <= 4 {
            let mut next = positions.iter().cycle();
            group.bench_function(format!("slow depth {depth}"), |bench| {
                bench.iter(|| next.next().map(|position| minimax(black_box(*position), depth)));
            });
        }
    }
}

/// Solves late positions to the end, or until the solver gives up; 64 positions per step.
fn solver(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("solver");
    group.sample_size(10).throughput(Throughput::Elements(64));
    for plies in [40, 36, 32] {
        for (name, mover) in
            [("random", random as fn(Position, &Geometry, &mut Generator) -> u8), ("benchmark", benchmark)]
        {
            let positions = positions(plies, 64, mover);
            let mut solver = Solver::new(score_four());
            group.bench_function(format!("{plies} stones, {name} play"), |bench| {
                bench.iter(|| positions.iter().filter_map(|position| solver.outcome(black_box(*position))).count());
            });
        }
    }
}

criterion_group!(look_ahead, moves, solver);
criterion_main!(look_ahead);
