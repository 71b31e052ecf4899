//! What becomes of repairs: "if it is a good move, then that string will thrive", and otherwise it will "die out of the
//! population".
//!
//! A repair is good if it keeps the result that the side to move can reach against the best opponent: a win or a draw. The
//! example counts repairs on boards with good and bad empty cells. For each repair it counts how many strings of the
//! population name its cell on its board, at the time of the repair and some generations later.

use std::collections::BTreeMap;

use evoxo_common::{
    experiment::{Config, Replica},
    report::Table,
    task::checked,
};
use evoxo_experiments::ternary::{messages::TournamentTask, player::Code, settings::Settings, tournament::Tournament};
use evoxo_games::{
    board::{Board, Outcome, cells, tic_tac_toe},
    index::{PLACEMENT, board_of},
};
use prost::Message as _;

use super::{figure, replicas};

/// The numbers of generations after which the strings are counted again.
const LATER: [usize; 3] = [1, 5, 20];

/// The result for the side to move if both sides play their best: 1 for a win, 0 for a draw, -1 for a loss.
fn value(board: Board, known: &mut BTreeMap<Board, i8>) -> i8 {
    if let Some(value) = known.get(&board) {
        return *value;
    }
    let value = match tic_tac_toe().outcome(board) {
        Some(Outcome::Draw) => 0,
        Some(Outcome::Win(_)) => -1,
        None => cells(tic_tac_toe().legal(board)).map(|cell| -value(board.play(cell), known)).max().unwrap_or(0),
    };
    known.insert(board, value);
    value
}

/// For each decision of a string: whether each cell, numbered as in the chapter, is a good move. `None` if the cell is taken,
/// or if all or none of the moves are good.
fn worth(code: Code) -> Vec<[Option<bool>; 9]> {
    let mut known = BTreeMap::new();
    let moves = |representative: &u16| {
        let board = board_of(*representative);
        let best = value(board, &mut known);
        let legal = tic_tac_toe().legal(board);
        let mut good =
            PLACEMENT.map(|cell| (legal >> cell & 1 == 1).then(|| -value(board.play(cell), &mut known) == best));
        if [true, false].iter().any(|kind| !good.contains(&Some(*kind))) {
            good = [None; 9];
        }
        good
    };
    code.index().representatives().iter().map(moves).collect()
}

/// The cell that a string names on each board of its code.
fn named(code: Code, genome: &[u8]) -> Vec<u8> {
    let cell = |representative: &u16| code.decision(genome, *representative).map_or(u8::MAX, |decision| decision.cell);
    code.index().representatives().iter().map(cell).collect()
}

/// The repairs of one replica, bad ones and good ones: their number, and the percentage of strings that name their cell at
/// once and later.
struct Fates {
    repairs: usize,
    shares: [f64; 1 + LATER.len()],
}

fn fates(mut replica: Replica, code: Code) -> [Fates; 2] {
    let worth = worth(code);
    // For each generation: how many strings name a cell on a board, and which repairs were made.
    let (mut counts, mut repairs) = (Vec::<Vec<[u32; 9]>>::new(), Vec::<Vec<(usize, u8)>>::new());
    let mut strings = 0;
    while !replica.is_finished() {
        let tasks = replica.plan(0..replica.needed());
        let outputs: Vec<_> = tasks.iter().map(|task| task.run().expect("a replica plans good tasks")).collect();
        let (mut count, mut made) = (vec![[0; 9]; worth.len()], Vec::new());
        strings = 0;
        for (task, output) in tasks.iter().zip(&outputs) {
            let task = TournamentTask::decode(task.body.clone()).expect("a replica plans good tasks");
            let born = if task.genomes.is_empty() { &task.mirrored_genomes } else { &task.genomes };
            if task.side() != code.side.into() {
                continue;
            }
            let played = checked::<Tournament>(output).genomes;
            for (born, played) in born.chunks(code.len()).zip(played.chunks(code.len())) {
                strings += 1;
                for (place, (before, after)) in named(code, born).into_iter().zip(named(code, played)).enumerate() {
                    if let Some(count) = count[place].get_mut(usize::from(after)) {
                        *count += 1;
                    }
                    if before != after {
                        made.push((place, after));
                    }
                }
            }
        }
        counts.push(count);
        repairs.push(made);
        replica.absorb(&outputs);
    }
    let last = LATER[LATER.len() - 1];
    [false, true].map(|kind| {
        let (mut number, mut shares) = (0, [0.0; 1 + LATER.len()]);
        for (generation, made) in repairs.iter().enumerate().take(repairs.len().saturating_sub(last)) {
            for (place, cell) in made.iter().filter(|(place, cell)| worth[*place][usize::from(*cell)] == Some(kind)) {
                number += 1;
                for (share, later) in shares.iter_mut().zip([0].into_iter().chain(LATER)) {
                    *share += f64::from(counts[generation + later][*place][usize::from(*cell)]);
                }
            }
        }
        Fates { repairs: number, shares: shares.map(|sum| 100.0 * sum / (f64::from(strings) * number as f64)) }
    })
}

pub(super) fn table(config: &Config) -> Table {
    let mut all: Vec<[Vec<Fates>; 2]> = config.arms.iter().map(|_| [Vec::new(), Vec::new()]).collect();
    for (arm, replica) in replicas(config) {
        let code = Settings::of(&config.arms[arm].settings).code();
        for (kind, fates) in fates(replica, code).into_iter().enumerate() {
            all[arm][kind].push(fates);
        }
    }
    let row = |arm: usize, kind: usize| {
        let fates = &all[arm][kind];
        let of =
            |part: &dyn Fn(&Fates) -> f64, decimals| figure(&fates.iter().map(part).collect::<Vec<f64>>(), decimals);
        let mut row = vec![config.arms[arm].name.clone(), ["bad", "good"][kind].into()];
        row.push(of(&|fates| fates.repairs as f64, 0));
        row.extend((0..=LATER.len()).map(|place| of(&|fates| fates.shares[place], 1)));
        row
    };
    let header = ["arm", "repairs", "each replica", "at once"].map(String::from);
    let later = LATER.map(|later| format!("after {later}"));
    Table {
        title: "Strings that name the cell of a repair on its board, in % of the population, when it is made and generations later".into(),
        header: header.into_iter().chain(later).collect(),
        rows: (0..config.arms.len()).flat_map(|arm| [row(arm, 1), row(arm, 0)]).collect(),
    }
}
