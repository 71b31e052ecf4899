//! The task of `menace`: plays the next games of a replica. Each game depends on the previous one, so the games of a replica
//! are one task after another. Only replicas and arms run in parallel.

use bytes::Bytes;
use evoxo_common::{
    rng::Stream,
    task::{Compute, Refusal},
};
use evoxo_games::board::{Outcome, Side};

use super::{
    machine::{BEADS_MAX, Machine, Opponent, game},
    messages::{self, LearnOutput, LearnTask, Row, Rules, State, Tally},
    odds::Walk,
    settings::{EVERY_MAX, GAMES_MAX, ROWS_MAX},
};

/// The kind's name.
pub(super) const NAME: &str = "menace";

/// Plays games; shares no bytes.
pub enum Learn {}

/// The stages of a machine: its first move to its fourth.
const STAGES: usize = 4;
/// The most beads that a game adds to a move or removes from it.
const REWARD_MAX: u32 = 1_000;

impl Compute for Learn {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "learn";
    type Task = LearnTask;
    type Output = LearnOutput;

    fn run(task: &LearnTask, _: &Bytes) -> Result<LearnOutput, Refusal> {
        learn(task)
    }

    fn check(task: &LearnTask, _: &Bytes, output: &LearnOutput) -> Result<(), Refusal> {
        check(task, output)
    }

    fn workload() -> Vec<(LearnTask, Bytes)> {
        workload()
    }
}

/// The contents of a task, checked.
struct Meaning<'a> {
    rules: &'a Rules,
    state: &'a State,
    machine: Machine,
    opponent: Opponent,
}

fn refuse<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(why.into()))
}

/// The side that a message names.
fn side_of(side: messages::Side) -> Result<Side, Refusal> {
    match side {
        messages::Side::X => Ok(Side::X),
        messages::Side::O => Ok(Side::O),
        messages::Side::Unspecified => refuse("the task does not say which side learns"),
    }
}

/// The machine and the opponent of a state.
///
/// # Errors
/// A message if the state does not have them.
pub(super) fn players(side: Side, opponent: messages::Opponent, state: &State) -> Result<(Machine, Opponent), Refusal> {
    let machine = Machine::new(side, state.beads.clone()).map_err(Refusal)?;
    let opponent = match opponent {
        messages::Opponent::Unspecified => return refuse("the task does not say who the opponent is"),
        messages::Opponent::Random | messages::Opponent::Perfect if !state.other_beads.is_empty() => {
            return refuse("the state has beads for an opponent that has none");
        }
        messages::Opponent::Random => Opponent::Random,
        messages::Opponent::Perfect => Opponent::Perfect,
        messages::Opponent::Itself => {
            Opponent::Machine(Machine::new(side.other(), state.other_beads.clone()).map_err(Refusal)?)
        }
    };
    Ok((machine, opponent))
}

fn meaning(task: &LearnTask) -> Result<Meaning<'_>, Refusal> {
    let (Some(rules), Some(state)) = (&task.rules, &task.state) else {
        return refuse("the task has no rules, or no state");
    };
    if rules.beads.len() != STAGES || rules.beads.iter().any(|beads| !(1..=BEADS_MAX).contains(beads)) {
        return refuse(format!("the beads at the start are {:?}, not four numbers from 1 to {BEADS_MAX}", rules.beads));
    }
    if [rules.win, rules.draw, rules.loss].iter().any(|reward| reward.unsigned_abs() > REWARD_MAX) {
        return refuse(format!("a game adds or removes more than {REWARD_MAX} beads"));
    }
    let LearnTask { games, every, .. } = *task;
    if !(1..=GAMES_MAX).contains(&games) || !(1..=EVERY_MAX).contains(&every) || games / every > ROWS_MAX {
        return refuse(format!(
            "{games} games with a row every {every}: at most {GAMES_MAX}, {EVERY_MAX} and {ROWS_MAX} rows"
        ));
    }
    let so_far = state.tally.unwrap_or_default();
    if state.games.checked_add(games).is_none() || total(so_far) != u64::from(state.games % every) {
        return refuse(format!("the state's games since the last row do not fit its {} games", state.games));
    }
    let (machine, opponent) = players(side_of(task.side())?, task.opponent(), state)?;
    Ok(Meaning { rules, state, machine, opponent })
}

/// The number of games in a tally. It can be huge, because tallies also come from outside.
pub(super) fn total(tally: Tally) -> u64 {
    u64::from(tally.wins) + u64::from(tally.draws) + u64::from(tally.losses)
}

fn learn(task: &LearnTask) -> Result<LearnOutput, Refusal> {
    let Meaning { rules, state, mut machine, mut opponent } = meaning(task)?;
    let stream = Stream::from_words(task.stream_high, task.stream_low);
    let mut tally = state.tally.unwrap_or_default();
    let (mut rows, mut walk) = (Vec::new(), Walk::new());
    for number in state.games..state.games + task.games {
        let ending = game(&mut machine, &mut opponent, rules, &mut stream.word(number.into()).rng());
        match ending.outcome {
            Outcome::Win(side) if side == machine.side => tally.wins += 1,
            Outcome::Win(_) => tally.losses += 1,
            Outcome::Draw => tally.draws += 1,
        }
        tally.resigned += u32::from(ending.resigned == Some(machine.side));
        if (number + 1).is_multiple_of(task.every) {
            let [random, perfect] = [false, true].map(|perfect| walk.odds(&machine, perfect).to_vec());
            rows.push(Row { tally: Some(tally), random, perfect });
            tally = Tally::default();
        }
    }
    let other_beads = match opponent {
        Opponent::Machine(other) => other.beads,
        _ => Vec::new(),
    };
    let games = state.games + task.games;
    Ok(LearnOutput { state: Some(State { games, beads: machine.beads, other_beads, tally: Some(tally) }), rows })
}

/// Checks that an output fits its task.
fn check(task: &LearnTask, output: &LearnOutput) -> Result<(), Refusal> {
    let side = side_of(task.side())?;
    let before = task.state.as_ref().map_or(0, |state| state.games);
    let Some(state) = &output.state else { return refuse("the output has no state") };
    let games = u64::from(before) + u64::from(task.games);
    let every = task.every.max(1);
    if u64::from(state.games) != games || total(state.tally.unwrap_or_default()) != games % u64::from(every) {
        return refuse(format!("the output is not that of {games} games"));
    }
    players(side, task.opponent(), state)?;
    let rows = (games / u64::from(every)) as usize - (before / every) as usize;
    let shares = |odds: &[f64]| odds.len() == 3 && odds.iter().all(|share| (0.0..=1.0 + 1e-9).contains(share));
    let good = |row: &Row| {
        let tally = row.tally.unwrap_or_default();
        let whole = total(tally) == u64::from(every) && tally.resigned <= tally.losses;
        whole && shares(&row.random) && shares(&row.perfect)
    };
    match output.rows.len() == rows && output.rows.iter().all(good) {
        true => Ok(()),
        false => refuse(format!("the output must have {rows} rows, each of {every} games with odds from 0 to 1")),
    }
}

/// The workload covers every opponent, both sides, and both ways to treat an empty box.
fn workload() -> Vec<(LearnTask, Bytes)> {
    let opponents = [messages::Opponent::Random, messages::Opponent::Perfect, messages::Opponent::Itself];
    let task = |number: usize| {
        let (side, opponent) = (Side::BOTH[number % 2], opponents[number / 2]);
        let all_moves = number.is_multiple_of(3);
        let rules = Rules { all_moves, beads: vec![3, 2, 2, 1], win: 3, draw: 1, loss: -2, resigns: number < 3 };
        let other_beads = match opponent {
            messages::Opponent::Itself => Machine::fresh(side.other(), &rules).beads,
            _ => Vec::new(),
        };
        let beads = Machine::fresh(side, &rules).beads;
        LearnTask {
            side: messages::Side::from(side).into(),
            opponent: opponent.into(),
            rules: Some(rules),
            state: Some(State { games: 0, beads, other_beads, tally: None }),
            games: 130,
            every: 40,
            stream_high: 5,
            stream_low: number as u64,
        }
    };
    (0..6).map(|number| (task(number), Bytes::new())).collect()
}

impl From<Side> for messages::Side {
    fn from(side: Side) -> Self {
        match side {
            Side::X => Self::X,
            Side::O => Self::O,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::menace::{
        machine::{Ending, reinforced},
        reference,
    };
    use proptest::prelude::*;

    /// The players of one of the workload's tasks.
    fn playing(number: usize) -> (Rules, Machine, Opponent) {
        let (task, _) = workload().swap_remove(number);
        let Meaning { machine, opponent, rules, .. } = meaning(&task).unwrap();
        (rules.clone(), machine, opponent)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn games_match_the_reference(number in 0..6_usize, seed: u64) {
            let (rules, mut machine, mut opponent) = playing(number);
            let (mut slow, mut slow_opponent) = (machine.clone(), opponent.clone());
            for game_number in 0..40 {
                let stream = Stream::root(seed).word(game_number);
                let ending = game(&mut machine, &mut opponent, &rules, &mut stream.rng());
                let expected = reference::game(&mut slow, &mut slow_opponent, &rules, &mut stream.rng());
                prop_assert_eq!(ending, expected);
                prop_assert_eq!((&machine, &opponent), (&slow, &slow_opponent));
            }
        }
    }

    /// The moves of a won game get three beads each, those of a drawn game get one, and those of a lost game lose one.
    #[test]
    fn games_are_rewarded() {
        let (_, machine, mut opponent) = playing(4);
        let rules = Rules { all_moves: false, beads: vec![4, 3, 2, 1], win: 3, draw: 1, loss: -1, resigns: false };
        let machine = Machine::fresh(machine.side, &rules);
        let mut seen = [false; 3];
        for number in 0..200 {
            let before: i64 = machine.beads.iter().map(|beads| i64::from(*beads)).sum();
            let mut fresh = machine.clone();
            let ending = game(&mut fresh, &mut opponent, &rules, &mut Stream::root(number).rng());
            let after: i64 = fresh.beads.iter().map(|beads| i64::from(*beads)).sum();
            let changed = fresh.beads.iter().zip(&machine.beads).filter(|(one, other)| one != other).count() as i64;
            let (reward, place) = match ending.outcome {
                Outcome::Win(side) if side == machine.side => (3, 0),
                Outcome::Draw => (1, 1),
                Outcome::Win(_) => (-1, 2),
            };
            assert_eq!(after - before, reward * changed);
            assert!((3..=4).contains(&changed), "a game has three or four moves from boxes");
            seen[place] = true;
        }
        assert_eq!(seen, [true; 3]);
    }

    /// At an empty box the machine either resigns or refills it.
    #[test]
    fn an_empty_box_is_filled_or_ends_the_game() {
        let (rules, mut machine, mut opponent) = playing(2);
        assert!(rules.resigns && opponent == Opponent::Perfect);
        machine.beads[..9].fill(0);
        let rng = &mut Stream::root(1).rng();
        let ending = game(&mut machine, &mut opponent, &rules, rng);
        assert_eq!(ending, Ending { outcome: Outcome::Win(Side::O), resigned: Some(Side::X) });
        assert_eq!(machine.beads[..9], [0; 9]);
        let rules = Rules { resigns: false, ..rules };
        let ending = game(&mut machine, &mut opponent, &rules, rng);
        assert_eq!(ending.resigned, None);
        assert!(machine.beads[..9].iter().sum::<u32>() > 0);
        assert_eq!((reinforced(2, -5), reinforced(BEADS_MAX, 3)), (0, BEADS_MAX));
    }

    /// Two tasks with a part of the games each play the same games as one task.
    #[test]
    fn parts_play_the_same_games() {
        for (whole, _) in workload() {
            let all = learn(&whole).unwrap();
            let first = learn(&LearnTask { games: 50, ..whole.clone() }).unwrap();
            let second = LearnTask { games: 80, state: first.state.clone(), ..whole.clone() };
            let rest = learn(&second).unwrap();
            assert_eq!(
                (rest.state.as_ref(), [first.rows.clone(), rest.rows.clone()].concat()),
                (all.state.as_ref(), all.rows.clone())
            );
            assert_eq!((check(&whole, &all), check(&second, &rest)), (Ok(()), Ok(())));
            assert!(check(&whole, &rest).is_err() && all.rows.len() == 3);
        }
    }

    #[test]
    fn invalid_tasks_and_outputs_are_rejected_with_a_reason() {
        let says = |change: fn(&mut LearnTask), says: &str| {
            let (mut task, _) = workload().swap_remove(4);
            change(&mut task);
            let refusal = learn(&task).unwrap_err().0;
            assert!(refusal.contains(says), "{refusal}");
        };
        says(|task| task.side = 0, "which side learns");
        says(|task| task.opponent = 0, "who the opponent is");
        says(|task| task.opponent = 1, "an opponent that has none");
        says(|task| task.rules = None, "no rules");
        says(|task| task.rules.as_mut().unwrap().beads = vec![4, 3, 2, 0], "four numbers from 1");
        says(|task| task.rules.as_mut().unwrap().loss = i32::MIN, "more than 1000 beads");
        says(|task| task.games = 0, "0 games");
        says(|task| task.every = 0, "every 0");
        says(|task| task.state.as_mut().unwrap().games = u32::MAX, "do not fit its 4294967295 games");
        says(|task| _ = task.state.as_mut().unwrap().beads.pop(), "2736 numbers of beads, not 2735");
        says(|task| task.state.as_mut().unwrap().beads[0] = 1_000_001, "1000001 beads");
        says(|task| task.state.as_mut().unwrap().other_beads[4] = 1, "is taken");
        let (task, _) = workload().swap_remove(0);
        let wrong = |change: fn(&mut LearnOutput)| {
            let mut output = learn(&task).unwrap();
            change(&mut output);
            assert!(check(&task, &output).is_err());
        };
        wrong(|output| output.state = None);
        wrong(|output| output.state.as_mut().unwrap().games = 129);
        wrong(|output| output.state.as_mut().unwrap().tally = None);
        wrong(|output| drop(output.rows.pop()));
        wrong(|output| output.rows[0].random[0] = f64::NAN);
        wrong(|output| output.rows[1].tally = None);
    }
}
