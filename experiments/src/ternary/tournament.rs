//! The task of `ternary`: plays the games of a slice of a population and repairs its strings.

use bytes::Bytes;
use evoxo_common::{
    rng::{Stream, below},
    task::{Compute, Refusal},
};
use evoxo_games::board::Side;

use super::{
    game::{Adversary, MoveTally, game},
    messages::{self, TournamentOutput, TournamentTask},
    player::{Alphabet, Code},
};
use evoxo_games::index::{Classes, Strings};

/// The kind's name.
pub(super) const NAME: &str = "ternary";

/// Plays every player's games, in the task's order. The shared bytes are the population of the other side.
pub enum Tournament {}

impl Compute for Tournament {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "tournament";
    type Task = TournamentTask;
    type Output = TournamentOutput;

    fn run(task: &TournamentTask, shared: &Bytes) -> Result<TournamentOutput, Refusal> {
        tournament(task, shared)
    }

    fn check(task: &TournamentTask, _: &Bytes, output: &TournamentOutput) -> Result<(), Refusal> {
        check(task, output)
    }

    fn workload() -> Vec<(TournamentTask, Bytes)> {
        workload()
    }
}

/// The most players in one task, and the most strings of the other side.
pub const PLAYERS_MAX: usize = 65_536;
/// The most games of one player against strings.
pub const OPPONENTS_MAX: u32 = 65_536;
/// The most games of one player against the random mover.
pub const RANDOM_GAMES_MAX: u32 = 16_777_216;

/// The meaning of a task's strings.
fn code(task: &TournamentTask) -> Result<Code, Refusal> {
    let side = match task.side() {
        messages::Side::X => Side::X,
        messages::Side::O => Side::O,
        messages::Side::Unspecified => return Err(Refusal("the task does not say which side its strings play".into())),
    };
    let alphabet = match task.letters {
        9 => Alphabet::Nine,
        3 => Alphabet::Three,
        other => return Err(Refusal(format!("there is no alphabet of {other} letters: give 9 or 3"))),
    };
    let strings = if task.rules { Strings::Short } else { Strings::Long };
    let classes = match (task.genomes.is_empty(), task.mirrored_genomes.is_empty()) {
        (_, true) => Classes::Rotations,
        (true, false) => Classes::Symmetries,
        (false, false) => {
            return Err(Refusal("the task has both genomes and mirrored_genomes: give one of them".into()));
        }
    };
    Ok(Code { side, strings, classes, alphabet })
}

/// A task's strings, one after another.
fn genomes(task: &TournamentTask) -> &Bytes {
    if task.mirrored_genomes.is_empty() { &task.genomes } else { &task.mirrored_genomes }
}

/// Splits the strings, which are stored one after another, and checks each of them.
fn strings(code: Code, bytes: &[u8]) -> Result<Vec<&[u8]>, Refusal> {
    let genomes: Vec<&[u8]> = bytes.chunks(code.len()).collect();
    if genomes.len() > PLAYERS_MAX {
        return Err(Refusal(format!("the task has {} strings of one side, more than {PLAYERS_MAX}", genomes.len())));
    }
    genomes.iter().try_for_each(|genome| code.check(genome)).map_err(Refusal)?;
    Ok(genomes)
}

/// Plays every player's games, in the task's order. `shared` is the population of the other side.
///
/// # Errors
/// A message if the task is invalid: no side, an unknown alphabet, invalid strings, or a number out of range.
fn tournament(task: &TournamentTask, shared: &[u8]) -> Result<TournamentOutput, Refusal> {
    let code = code(task)?;
    let other = Code { side: code.side.other(), ..code };
    let (players, others) = (strings(code, genomes(task))?, strings(other, shared)?);
    if task.opponents > OPPONENTS_MAX || task.random_games > RANDOM_GAMES_MAX {
        return Err(Refusal(format!(
            "each player has {} games with strings and {} with the random mover: at most {OPPONENTS_MAX} and {RANDOM_GAMES_MAX}",
            task.opponents, task.random_games
        )));
    }
    if task.opponents > 0 && others.is_empty() {
        return Err(Refusal("the task has no strings of the other side to draw opponents from".into()));
    }
    let stream = Stream::from_words(task.stream_high, task.stream_low);
    let mut output = TournamentOutput::default();
    let mut repaired = Vec::with_capacity(genomes(task).len());
    for (index, player) in players.iter().enumerate() {
        let mut genome = player.to_vec();
        let mut tally = MoveTally::default();
        let mut rng = stream.word(u64::from(task.first_individual) + index as u64).rng();
        for _ in 0..task.opponents {
            let opponent = others[below(&mut rng, others.len() as u64) as usize];
            game(code, &mut genome, Adversary::String(other, opponent), &mut rng, &mut tally);
        }
        for _ in 0..task.random_games {
            game(code, &mut genome, Adversary::Random { rules: task.random_rules }, &mut rng, &mut tally);
        }
        output.wins.push(tally.wins);
        output.losses.push(tally.losses);
        output.repairs.push(tally.repairs);
        repaired.extend_from_slice(&genome);
    }
    output.genomes = repaired.into();
    Ok(output)
}

/// Checks that an output fits its task.
///
/// # Errors
/// A message that describes the mismatch.
fn check(task: &TournamentTask, output: &TournamentOutput) -> Result<(), Refusal> {
    let code = code(task)?;
    let players = genomes(task).len() / code.len();
    let lengths = [output.wins.len(), output.losses.len(), output.repairs.len()];
    if lengths != [players; 3] || output.genomes.len() != genomes(task).len() {
        return Err(Refusal(format!("the output does not fit {players} players")));
    }
    strings(code, &output.genomes)?;
    let games = u64::from(task.opponents) + u64::from(task.random_games);
    match output
        .wins
        .iter()
        .zip(&output.losses)
        .position(|(wins, losses)| u64::from(*wins) + u64::from(*losses) > games)
    {
        None => {}
        Some(player) => return Err(Refusal(format!("player {player} won and lost more than its {games} games"))),
    }
    // A decision that was repaired does not break again.
    match output.repairs.iter().position(|repairs| *repairs as usize > code.len()) {
        None => Ok(()),
        Some(player) => Err(Refusal(format!("player {player} repaired more than its {} letters", code.len()))),
    }
}

/// Strings of every form, of both sides.
fn workload() -> Vec<(TournamentTask, Bytes)> {
    let mut tasks = Vec::new();
    for (number, side) in [Side::X, Side::O, Side::X, Side::O].into_iter().enumerate() {
        for alphabet in [Alphabet::Nine, Alphabet::Three] {
            let strings = Strings::BOTH[number / 2];
            let code = Code { side, strings, classes: Classes::Rotations, alphabet };
            let mut rng = Stream::root(7).text("ternary").word(number as u64).rng();
            let genomes: Vec<u8> = (0..4).flat_map(|_| code.random(&mut rng)).collect();
            let other = Code { side: side.other(), ..code };
            let others: Vec<u8> = (0..3).flat_map(|_| other.random(&mut rng)).collect();
            let work = TournamentTask {
                side: messages::Side::from(side).into(),
                rules: strings == Strings::Short,
                letters: alphabet.letters().into(),
                genomes: genomes.into(),
                opponents: 5,
                random_games: 20,
                random_rules: side == Side::O,
                stream_high: 1,
                stream_low: 2,
                first_individual: 3,
                mirrored_genomes: Bytes::new(),
            };
            tasks.push((work, others.into()));
        }
    }
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of the workload's tasks, with its shared bytes.
    fn task(number: usize) -> (TournamentTask, Vec<u8>) {
        let (task, shared) = workload().swap_remove(number);
        (task, shared.to_vec())
    }

    /// A slice of a population plays the same games as it does in the whole population.
    #[test]
    fn slices_play_the_same_games() {
        for number in 0..8 {
            let (whole, others) = task(number);
            let length = whole.genomes.len() / 4;
            let half = TournamentTask {
                genomes: whole.genomes.slice(2 * length..),
                first_individual: whole.first_individual + 2,
                ..whole.clone()
            };
            let [whole_output, half_output] = [&whole, &half].map(|task| tournament(task, &others).unwrap());
            assert_eq!(whole_output.genomes.slice(2 * length..), half_output.genomes);
            assert_eq!(whole_output.wins[2..], half_output.wins);
            assert_eq!((check(&whole, &whole_output), check(&half, &half_output)), (Ok(()), Ok(())));
            assert!(whole_output.repairs.iter().sum::<u32>() > 0 && whole_output.genomes != whole.genomes);
            assert!(check(&whole, &half_output).is_err());
        }
    }

    /// Strings in which mirror images share a place also play and are repaired.
    #[test]
    fn mirrored_strings_play() {
        let (task, _) = task(0);
        let code =
            Code { side: Side::X, strings: Strings::Long, classes: Classes::Symmetries, alphabet: Alphabet::Nine };
        let mut rng = Stream::root(5).rng();
        let genomes: Bytes = (0..2).flat_map(|_| code.random(&mut rng)).collect::<Vec<u8>>().into();
        let others = Code { side: Side::O, ..code }.random(&mut rng);
        let task = TournamentTask { genomes: Bytes::new(), mirrored_genomes: genomes, ..task };
        let output = tournament(&task, &others).unwrap();
        assert_eq!((output.wins.len(), output.genomes.len(), check(&task, &output)), (2, 2 * 338, Ok(())));
        assert!(output.repairs.iter().all(|repairs| *repairs > 0) && output.genomes != task.mirrored_genomes);
    }

    #[test]
    fn invalid_tasks_are_rejected_with_a_reason() {
        let says = |change: fn(&mut TournamentTask, &mut Vec<u8>), says: &str| {
            let (mut task, mut others) = task(0);
            change(&mut task, &mut others);
            let refusal = tournament(&task, &others).unwrap_err().0;
            assert!(refusal.contains(says), "{refusal}");
        };
        says(|task, _| task.side = 0, "which side");
        says(|task, _| task.letters = 4, "4 letters");
        says(|task, _| task.genomes = vec![0; 613].into(), "1 letters instead of 612");
        says(|_, others| *others = vec![9; 526], "letter 0 of a string is 9");
        says(|_, others| others.clear(), "no strings of the other side");
        says(|task, _| task.mirrored_genomes = vec![0; 338].into(), "both genomes and mirrored_genomes");
        says(
            |task, _| (task.genomes, task.mirrored_genomes) = (Bytes::new(), vec![0; 337].into()),
            "337 letters instead of 338",
        );
        says(|task, _| task.opponents = 65_537, "65537 games with strings");
        says(|task, _| task.random_games = 16_777_217, "16777217 with the random mover");
        let (task, others) = task(0);
        let mut output = tournament(&task, &others).unwrap();
        output.wins[1] = 26;
        assert!(check(&task, &output).unwrap_err().0.contains("player 1 won and lost more than its 25"));
        output.wins[1] = 0;
        output.repairs[0] = 613;
        assert!(check(&task, &output).unwrap_err().0.contains("player 0 repaired more than its 612 letters"));
    }
}
