//! How far the fittest player of each generation looks ahead.

use evoxo_common::{experiment::Config, report::Table, rng::Stream};
use evoxo_games::{
    board::Side,
    odds::{Foresight, Subject, Turns},
    table::TableGenome,
};

use super::{figure, replicas, step};

/// The generations that the table shows.
const SHOWN: [u64; 3] = [1, 5, 20];
/// The number of tables drawn at random for comparison.
const RANDOM: u64 = 1000;

fn foresight(player: &TableGenome) -> Foresight {
    let choose = Box::new(|board| player.choose(board).map_or(0, |cell| 1 << cell));
    let subject = Subject { side: player.side(), filtered: true, choose };
    subject.foresight().expect("a table has a legal answer on every board that play with the filter leads to")
}

fn row(arm: String, generation: String, players: &[Foresight]) -> Vec<String> {
    let share = |turns: fn(&Foresight) -> Turns| {
        let shares: Vec<f64> = players.iter().filter_map(|player| turns(player).percent()).collect();
        figure(&shares, 0)
    };
    let games = |part: fn(&Foresight) -> f64| {
        figure(&players.iter().map(|player| 100.0 * part(player)).collect::<Vec<f64>>(), 1)
    };
    let turns = [share(|player| player.to_make), share(|player| player.to_prepare), share(|player| player.to_prevent)];
    let won = [games(|player| player.won_by_choice), games(|player| player.won_by_block)];
    [arm, generation].into_iter().chain(turns).chain(won).collect()
}

pub(super) fn table(config: &Config) -> Table {
    let mut seen: Vec<[Vec<Foresight>; SHOWN.len()]> = config.arms.iter().map(|_| Default::default()).collect();
    for (arm, mut replica) in replicas(config) {
        while step(&mut replica) {
            if let Some(place) = SHOWN.iter().position(|shown| *shown == replica.rounds()) {
                let champion = replica.champion().expect("a generation has a fittest player");
                seen[arm][place].push(foresight(champion.champion_as().expect("a player of `invincible` is a table")));
            }
        }
    }
    let mut rows = Vec::new();
    for side in Side::BOTH {
        let stream = Stream::root(config.seed).text("random tables");
        let player = |number| foresight(&TableGenome::random(side, &mut stream.word(number).rng()));
        let players: Vec<Foresight> = (0..RANDOM).map(player).collect();
        rows.push(row(format!("{RANDOM} random tables of {}", side.letter()), "0".into(), &players));
    }
    for (arm, by_generation) in config.arms.iter().zip(&seen) {
        for (generation, players) in SHOWN.iter().zip(by_generation).filter(|(_, players)| !players.is_empty()) {
            rows.push(row(arm.name.clone(), generation.to_string(), players));
        }
    }
    let header = ["arm", "generation", "made", "prepared", "prevented", "won by choice", "won by a block"];
    Table {
        title: "Double threats: % of the turns on which looking ahead tells good moves from bad; % of games won".into(),
        header: header.map(String::from).into(),
        rows,
    }
}
