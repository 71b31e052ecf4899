//! The tasks of `rules` reject invalid messages, and say why.

use proptest::prelude::*;

use super::{messages::Agents, *};

/// A task with every option.
fn cycles_task() -> CyclesTask {
    cycles_workload().remove(1)
}

#[test]
fn settings_survive_a_round_trip() {
    for task in cycles_workload() {
        let settings = read_settings(&task).unwrap();
        assert_eq!(settings.agents, 8);
        let written = SCHEMA.read(&task.settings).unwrap();
        assert_eq!((Settings::of(&written), written.to_text()), (settings, task.settings));
    }
}

#[test]
fn couples_do_not_depend_on_the_others_of_a_task() {
    let task = couples_workload();
    let whole = run_couples(&task).unwrap();
    assert_eq!(check_couples(&task, &whole), Ok(()));
    let players = read_agents(task.players.as_ref(), 8, 40).unwrap();
    for (number, couple) in whole.couples.iter().enumerate() {
        let alone = CouplesTask {
            first_couple: task.first_couple + number as u32,
            players: Some(write_agents(players[2 * number..2 * number + 2].iter())),
            ..task.clone()
        };
        assert_eq!(&run_couples(&alone).unwrap().couples[0], couple);
    }
}

#[test]
fn invalid_tasks_are_rejected_with_a_reason() {
    type Change = fn(&mut CyclesTask);
    /// Replaces a setting of a task.
    fn set(task: &mut CyclesTask, setting: &str) {
        let name = setting.split(' ').next();
        let others = task.settings.lines().filter(|line| line.split(' ').next() != name);
        task.settings = others.chain([setting]).collect::<Vec<&str>>().join("\n");
    }
    fn agents(task: &mut CyclesTask) -> &mut Agents {
        task.agents.as_mut().unwrap()
    }
    assert!(run_cycles(&cycles_task()).is_ok());
    let cases: [(Change, &str); 17] = [
        (|task| task.settings = "agents = ".into(), "the task's settings: "),
        (|task| task.settings += "agnts = 4\n", "there is no setting \"agnts\""),
        (|task| task.agents = None, "the agents are missing"),
        (|task| task.cycles = 0, "0 cycles after 0"),
        (|task| task.cycles = CYCLES_PER_TASK_MAX as u32 + 1, "at most 10000"),
        (|task| task.first_cycle = u32::MAX, "cycles after 4294967295"),
        (|task| set(task, "agents = 7"), "agents is 7, but they play in couples: give an even number"),
        (|task| set(task, "agents = 1002"), "agents is 1002, but must be"),
        (|task| set(task, "rules = 1025"), "rules is 1025"),
        (|task| set(task, "games = 0"), "games is 0"),
        (|task| set(task, "mutation = 1.5"), "mutation is 1.5"),
        (|task| set(task, "selection = \"best\""), "selection is"),
        (|task| set(task, "mutation = 0.9"), "cannot be reached"),
        (|task| set(task, "agents = 6"), "not 6 agents of 40 rules each"),
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
    // The rule moves to a cell that does not exist.
    let mut task = cycles_task();
    let mut bytes = agents(&mut task).rules.to_vec();
    bytes[..4].copy_from_slice(&(9_u32 << 18).to_le_bytes());
    agents(&mut task).rules = bytes.into();
    assert!(run_cycles(&task).unwrap_err().0.contains("0x240000 is not the code of a rule"));
    for players in [None, Some(Agents::default())] {
        assert!(run_couples(&CouplesTask { players, ..couples_workload() }).unwrap_err().0.contains("0 players"));
    }
    assert!(run_couples(&CouplesTask { games: 0, ..couples_workload() }).is_err());
    assert!(run_couples(&CouplesTask { rules: 20, ..couples_workload() }).is_err());
}

#[test]
fn outputs_of_the_wrong_shape_are_rejected() {
    let task = cycles_task();
    let good = run_cycles(&task).unwrap();
    assert_eq!(check_cycles(&task, &good), Ok(()));
    let changes: [fn(&mut CyclesOutput); 9] = [
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
    let task = couples_workload();
    let good = run_couples(&task).unwrap();
    let changes: [fn(&mut CouplesOutput); 5] = [
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
    /// Any agents give either an output of the right shape or an error message, never a panic.
    #[test]
    fn arbitrary_agents_never_panic(codes in prop::collection::vec(0..1_u32 << 24, 8), weight: i32, options in 0..1_u32 << 8) {
        let bit = |bit: u32| options >> bit & 1 == 1;
        let either = |number: u32, line: &'static str| if bit(number) { line } else { "" };
        let mut task = cycles_task();
        task.settings = [
            "agents = 4\nrules = 2\ngames = 3\n",
            either(0, "knowledge = \"shared\"\n"),
            either(1, "inherit = \"heavier\"\n"),
            either(2, "newborn = \"parents\"\n"),
            either(3, "agent_weights = \"cycle\"\n"),
            either(4, "weak_at_times = \"replace\"\nweak_cycles = 1\n"),
            either(5, "weak = \"replace\"\nweak_weight = -3\n"),
        ].concat();
        task.agents = Some(Agents {
            rules: codes.iter().flat_map(|code| code.to_le_bytes()).collect::<Vec<u8>>().into(),
            rule_weights: vec![weight; 8],
            agent_weights: vec![if bit(6) { weight } else { 0 }; 4],
        });
        if let Ok(output) = run_cycles(&task) {
            prop_assert_eq!(check_cycles(&task, &output), Ok(()));
        }
    }
}
