//! The tasks of `rules` refuse what makes no sense, and say why.

use evoxo_proto::v1::{RulesCouplesTask, RulesCyclesTask, task::Work};
use proptest::prelude::*;

use super::*;

fn cycles_task() -> RulesCyclesTask {
    match workloads()[1][1].work.clone() {
        Some(Work::RulesCycles(task)) => task,
        other => panic!("{other:?}"),
    }
}

fn couples_task() -> RulesCouplesTask {
    match workloads()[0][0].work.clone() {
        Some(Work::RulesCouples(task)) => task,
        other => panic!("{other:?}"),
    }
}

#[test]
fn options_are_what_was_written() {
    for task in &workloads()[1] {
        let Some(Work::RulesCycles(task)) = &task.work else { panic!("cycles") };
        let written = task.options.as_ref().unwrap();
        assert_eq!(&write_options(&read_options(written).unwrap()), written);
    }
}

#[test]
fn couples_are_the_same_alone_and_in_company() {
    let task = couples_task();
    let whole = run_couples(&task).unwrap();
    assert_eq!(check_couples(&task, &whole), Ok(()));
    let players = read_agents(task.players.as_ref(), 8, 40).unwrap();
    for (number, couple) in whole.couples.iter().enumerate() {
        let alone = RulesCouplesTask {
            first_couple: task.first_couple + number as u32,
            players: Some(write_agents(players[2 * number..2 * number + 2].iter())),
            ..task.clone()
        };
        assert_eq!(&run_couples(&alone).unwrap().couples[0], couple);
    }
}

#[test]
fn nonsense_is_refused_with_a_sentence() {
    type Change = fn(&mut RulesCyclesTask);
    fn options(task: &mut RulesCyclesTask) -> &mut RulesOptions {
        task.options.as_mut().unwrap()
    }
    fn agents(task: &mut RulesCyclesTask) -> &mut RulesAgents {
        task.agents.as_mut().unwrap()
    }
    assert!(run_cycles(&cycles_task()).is_ok());
    let cases: [(Change, &str); 21] = [
        (|task| task.options = None, "the options are missing"),
        (|task| task.agents = None, "the agents are missing"),
        (|task| task.cycles = 0, "0 cycles after 0"),
        (|task| task.cycles = CYCLES_MAX + 1, "at most 10000"),
        (|task| task.first_cycle = u32::MAX, "cycles after 4294967295"),
        (|task| options(task).agents = 7, "7 agents: give an even number"),
        (|task| options(task).agents = 2, "2 agents"),
        (|task| options(task).agents = 1002, "1002 agents"),
        (|task| options(task).rules = 129, "129 rules"),
        (|task| options(task).games = 0, "0 games"),
        (|task| options(task).games = 1001, "1001 games"),
        (|task| options(task).mutation = None, "a share is missing"),
        (|task| options(task).rigged = Some(RulesShare { numerator: 2, denominator: 1 }), "2/1 is not a share"),
        (|task| options(task).rigged = Some(RulesShare { numerator: 0, denominator: 0 }), "0/0 is not a share"),
        (|task| options(task).selection = 9, "who become parents"),
        (|task| options(task).mutation = Some(RulesShare { numerator: 9, denominator: 10 }), "cannot be clustered"),
        (|task| options(task).similar.as_mut().unwrap().penalty = 1_000_001, "a penalty of 1000001"),
        (|task| options(task).agents = 6, "not 6 agents of 40 rules each"),
        (|task| agents(task).rules = [agents(task).rules.as_ref(), &[0]].concat().into(), "not 8 agents"),
        (|task| agents(task).rule_weights[3] = i32::MIN, "a weight of -2147483648"),
        (|task| agents(task).rules = vec![0xff; 4 * 8 * 40].into(), "is not the code of a rule"),
    ];
    for (change, part) in cases {
        let mut task = cycles_task();
        change(&mut task);
        let sentence = run_cycles(&task).unwrap_err().0;
        assert!(sentence.contains(part), "{sentence}");
    }
    // A move to a cell that the rule wants to be its own.
    let mut task = cycles_task();
    let mut bytes = agents(&mut task).rules.to_vec();
    bytes[..4].copy_from_slice(&1_u32.to_le_bytes());
    agents(&mut task).rules = bytes.into();
    assert!(run_cycles(&task).unwrap_err().0.contains("such a rule is not legal"));
    for players in [None, Some(RulesAgents::default())] {
        assert!(run_couples(&RulesCouplesTask { players, ..couples_task() }).unwrap_err().0.contains("0 players"));
    }
    assert!(run_couples(&RulesCouplesTask { games: 0, ..couples_task() }).is_err());
    assert!(run_couples(&RulesCouplesTask { rules: 20, ..couples_task() }).is_err());
}

#[test]
fn outputs_of_the_wrong_shape_are_refused() {
    let task = cycles_task();
    let good = run_cycles(&task).unwrap();
    assert_eq!(check_cycles(&task, &good), Ok(()));
    let changes: [fn(&mut RulesCyclesOutput); 9] = [
        |output| output.agents = None,
        |output| output.agents.as_mut().unwrap().agent_weights.truncate(6),
        |output| output.cycles.truncate(1),
        |output| output.cycles[0].draws = 13,
        |output| output.cycles[0].rule_moves = output.cycles[0].moves + 1,
        |output| output.cycles[0].moves = 1000,
        |output| output.cycles[1].strength = f64::NAN,
        |output| output.cycles[1].alive = 1 << 48,
        |output| output.cycles[1].good = 321,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut output = good.clone();
        change(&mut output);
        assert!(check_cycles(&task, &output).is_err(), "{number}");
    }
    let task = couples_task();
    let good = run_couples(&task).unwrap();
    let changes: [fn(&mut RulesCouplesOutput); 5] = [
        |output| output.couples.truncate(1),
        |output| output.couples[0].changes.truncate(79),
        |output| output.couples[0].changes[5] = 21,
        |output| output.couples[0].points = 21,
        |output| output.couples[0].draws = u32::MAX,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut output = good.clone();
        change(&mut output);
        assert!(check_couples(&task, &output).is_err(), "{number}");
    }
}

proptest! {
    /// Any agents: an output of the right shape or a sentence, and never a panic.
    #[test]
    fn strangers_do_no_harm(codes in prop::collection::vec(0..1_u32 << 24, 8), weight: i32, options in 0..1_u32 << 10) {
        let bit = |bit: u32| options >> bit & 1 == 1;
        let mut task = cycles_task();
        let written = task.options.as_mut().unwrap();
        (written.agents, written.rules, written.shared_knowledge, written.inherit_heavier) = (4, 2, bit(0), bit(1));
        (written.newborn_as_parents, written.weights_of_last_cycle, written.weak_cycles) = (bit(2), bit(3), u32::from(bit(4)));
        written.weak_weight = bit(5).then_some(weight);
        task.agents = Some(RulesAgents {
            rules: codes.iter().flat_map(|code| code.to_le_bytes()).collect::<Vec<u8>>().into(),
            rule_weights: vec![weight; 8],
            agent_weights: vec![if bit(6) { weight } else { 0 }; 4],
        });
        if let Ok(output) = run_cycles(&task) {
            prop_assert_eq!(check_cycles(&task, &output), Ok(()));
        }
    }
}
