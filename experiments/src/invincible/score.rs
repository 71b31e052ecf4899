//! The task of `invincible`: scores a slice of a population.

use bytes::Bytes;
use evoxo_common::{
    rng::Stream,
    task::{Compute, Refusal},
};
use evoxo_games::{
    board::Side,
    table::{self, Score, TableGenome, exact::Scorer, graph::Graph},
};

use super::{
    messages::{self, ExactOdds, SampledGames, ScoreOutput, ScoreTask, score_task::Fitness},
    sampled::Program,
};

/// The kind's name.
pub(super) const NAME: &str = "invincible";

/// Scores every player of a task, in its order.
pub enum ScorePlayers {}

impl Compute for ScorePlayers {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "score";
    type Task = ScoreTask;
    type Output = ScoreOutput;

    fn run(task: &ScoreTask, _: &Bytes) -> Result<ScoreOutput, Refusal> {
        score(task)
    }

    fn check(task: &ScoreTask, _: &Bytes, output: &ScoreOutput) -> Result<(), Refusal> {
        check(task, output)
    }

    fn workload() -> Vec<(ScoreTask, Bytes)> {
        workload().into_iter().map(|task| (task, Bytes::new())).collect()
    }
}

/// The most players in one task.
pub const PLAYERS_MAX: usize = 65_536;

/// The most sampled games of one player.
pub const GAMES_MAX: u32 = 16_777_216;

impl From<Side> for messages::Side {
    fn from(side: Side) -> Self {
        match side {
            Side::X => Self::X,
            Side::O => Self::O,
        }
    }
}

/// Scores every player of a task, in its order.
///
/// # Errors
/// If the task is invalid: no side, no fitness, genes that are not a player's, or a number out of range.
fn score(task: &ScoreTask) -> Result<ScoreOutput, Refusal> {
    let side = match task.side() {
        messages::Side::X => Side::X,
        messages::Side::O => Side::O,
        messages::Side::Unspecified => return refuse(format!("{} is not a side: give X or O", task.side)),
    };
    let graph = Graph::of(side);
    let players = task.genomes.chunks(graph.len());
    if players.len() == 0 || players.len() > PLAYERS_MAX {
        return refuse(format!("a task scores 1 to {PLAYERS_MAX} players, not {}", players.len()));
    }
    for (player, genes) in players.clone().enumerate() {
        table::check(graph, genes).map_err(|sentence| Refusal(format!("player {player}: {sentence}")))?;
    }
    let scores: Vec<Score> = match &task.fitness {
        None => return refuse("the task names no fitness to compute".into()),
        Some(Fitness::Exact(_)) => players.map(|genes| Scorer::of(side).score(genes)).collect(),
        Some(Fitness::Sampled(SampledGames { games, .. })) if !(1..=GAMES_MAX).contains(games) => {
            return refuse(format!("a player plays 1 to {GAMES_MAX} games, not {games}"));
        }
        Some(Fitness::Sampled(sampled)) => {
            let stream = Stream::from_words(sampled.stream_high, sampled.stream_low);
            let individuals = u64::from(sampled.first_individual)..;
            let play = |(genes, individual)| {
                Program::compile(side, genes).play(sampled.games, &mut stream.word(individual).rng())
            };
            players.zip(individuals).map(play).collect()
        }
    };
    Ok(ScoreOutput {
        wins: scores.iter().map(|score| score.wins).collect(),
        losses: scores.iter().map(|score| score.losses).collect(),
    })
}

/// Checks that an output fits its task: the same number of players, and no more wins and losses than games.
///
/// # Errors
/// A message that describes the mismatch.
fn check(task: &ScoreTask, output: &ScoreOutput) -> Result<(), Refusal> {
    let side = if task.side() == messages::Side::X { Side::X } else { Side::O };
    let graph = Graph::of(side);
    let players = task.genomes.len() / graph.len();
    if output.wins.len() != players || output.losses.len() != players {
        let (wins, losses) = (output.wins.len(), output.losses.len());
        return Err(Refusal(format!("{wins} wins and {losses} losses for {players} players")));
    }
    let games = match &task.fitness {
        Some(Fitness::Sampled(sampled)) => sampled.games,
        _ => graph.denominator(),
    };
    let impossible = |(wins, losses): (&u32, &u32)| u64::from(*wins) + u64::from(*losses) > u64::from(games);
    match output.wins.iter().zip(&output.losses).position(impossible) {
        Some(player) => Err(Refusal(format!("player {player} has more wins and losses than games"))),
        None => Ok(()),
    }
}

/// Random players of both sides, sampled and exact.
fn workload() -> Vec<ScoreTask> {
    let task = |side: Side, fitness| {
        let mut rng = Stream::root(0).text("signature").word(side as u64).rng();
        let genomes = (0..8).flat_map(|_| TableGenome::random(side, &mut rng).genes().to_vec()).collect::<Vec<u8>>();
        ScoreTask { side: messages::Side::from(side).into(), genomes: genomes.into(), fitness: Some(fitness) }
    };
    let sampled = SampledGames { games: 100, stream_high: 1, stream_low: 2, first_individual: 3 };
    let both = |side| [task(side, Fitness::Sampled(sampled)), task(side, Fitness::Exact(ExactOdds {}))];
    Side::BOTH.into_iter().flat_map(both).collect()
}

fn refuse(sentence: String) -> Result<ScoreOutput, Refusal> {
    Err(Refusal(sentence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_games::table::reference;
    use proptest::prelude::*;

    fn task(side: Side, players: &[TableGenome], fitness: Fitness) -> ScoreTask {
        let genomes: Vec<u8> = players.iter().flat_map(|player| player.genes().to_vec()).collect();
        ScoreTask { side: messages::Side::from(side).into(), genomes: genomes.into(), fitness: Some(fitness) }
    }

    fn players(side: Side, count: u64) -> Vec<TableGenome> {
        (0..count).map(|seed| TableGenome::random(side, &mut Stream::root(seed).rng())).collect()
    }

    fn sampled(games: u32, first_individual: u32) -> Fitness {
        Fitness::Sampled(SampledGames { games, stream_high: 5, stream_low: 7, first_individual })
    }

    /// The score of a player does not depend on the slice, and equals that of the reference implementation.
    #[test]
    fn scores_do_not_depend_on_slices() {
        for side in Side::BOTH {
            let players = players(side, 5);
            let whole = score(&task(side, &players, sampled(100, 10))).unwrap();
            let exact = score(&task(side, &players, Fitness::Exact(ExactOdds {}))).unwrap();
            for (index, player) in players.iter().enumerate() {
                let one = std::slice::from_ref(player);
                let sliced = score(&task(side, one, sampled(100, 10 + index as u32))).unwrap();
                assert_eq!((sliced.wins[0], sliced.losses[0]), (whole.wins[index], whole.losses[index]));
                let mut rng = Stream::from_words(5, 7).word(10 + index as u64).rng();
                let expected = reference::sampled(player, 100, &mut rng);
                assert_eq!((expected.wins, expected.losses), (whole.wins[index], whole.losses[index]));
                let odds = reference::exact(player);
                let whole = Graph::of(side).denominator();
                let expected = Score { wins: exact.wins[index], losses: exact.losses[index] };
                assert_eq!(expected.odds(whole), odds);
            }
        }
    }

    /// If these numbers change, every run gives different results.
    #[test]
    fn scores_are_pinned() {
        for (side, pinned) in [
            (Side::X, "[[164, 401, 335], [89, 19, 81], [58, 158, 132], [36, 8, 32]]"),
            (Side::O, "[[167, 135, 193], [486, 236, 232], [168, 132, 174], [450, 222, 227]]"),
        ] {
            let output = |fitness| score(&task(side, &players(side, 3), fitness)).unwrap();
            let (sampled, exact) = (output(sampled(1000, 0)), output(Fitness::Exact(ExactOdds {})));
            let scores = [sampled.wins, sampled.losses, exact.wins, exact.losses];
            assert_eq!(format!("{scores:?}"), pinned);
        }
    }

    #[test]
    fn invalid_tasks_are_rejected_with_a_reason() {
        let good = task(Side::O, &players(Side::O, 2), sampled(1, u32::MAX));
        assert!(score(&good).is_ok(), "individuals are numbered beyond 32 bits");
        let with = |change: fn(&mut ScoreTask)| {
            let mut task = good.clone();
            change(&mut task);
            score(&task).unwrap_err().0
        };
        assert!(with(|task| task.side = 0).contains("not a side"));
        assert!(with(|task| task.side = 3).contains("3 is not a side"));
        assert!(with(|task| task.fitness = None).contains("no fitness"));
        assert!(with(|task| task.fitness = Some(sampled(0, 0))).contains("not 0"));
        assert!(with(|task| task.fitness = Some(sampled(GAMES_MAX + 1, 0))).contains("16777216 games"));
        assert!(with(|task| task.genomes = Vec::new().into()).contains("not 0"));
        assert!(with(|task| task.genomes = vec![0; 86].into()).contains("player 0: gene 0"));
        assert!(with(|task| task.genomes = task.genomes.slice(..85)).contains("player 1: a table for O has 42 genes"));
        assert!(with(|task| task.genomes = task.genomes.repeat(32_769).into()).contains("65538"));
    }

    proptest! {
        /// Any bytes as genes give either scores or an error message, never a panic.
        #[test]
        fn arbitrary_tasks_never_panic(side in 0..4_i32, genomes in prop::collection::vec(0..12_u8, 0..130), games in 0..9_u32) {
            let task = ScoreTask { side, genomes: genomes.into(), fitness: Some(sampled(games, 0)) };
            prop_assert!(score(&task).is_ok_and(|output| output.wins.len() == output.losses.len()) || score(&task).is_err());
        }
    }
}
