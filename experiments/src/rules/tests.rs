//! Every option does what its setting says, and work may be divided in any way.

use std::collections::BTreeSet;

use super::{
    agent::Agent,
    couple::Tally,
    population::{Played, Population},
    rule::{Rule, read},
    settings::Settings,
};
use crate::testing::{digest, parse};
use evoxo_common::{
    experiment::{Config, Replica},
    local,
    rng::Stream,
    settings::Scope,
};

fn config(settings: &str) -> Config {
    parse(&format!("experiment = \"rules\"\nreplicas = 1\n[settings]\n{settings}\n"))
}

fn settings(settings: &str) -> Settings {
    Settings::of(&config(settings).arms[0].settings)
}

fn stream() -> Stream {
    Stream::root(1).text("test")
}

/// Agents whose weights fall from the first to the last. Every rule has a different code.
fn ranked(count: usize, rules: usize) -> Population {
    let rng = &mut stream().text("ranked").rng();
    let mut seen = BTreeSet::new();
    let mut unique = || loop {
        let rule = Rule::random(rng);
        if seen.insert(rule) {
            return rule;
        }
    };
    let agent = |number: usize| Agent {
        weight: 100 - number as i32,
        rules: (0..rules).map(|_| unique()).collect(),
        weights: (0..rules).map(|place| (number * 7 + place * 3) as i32 % 11 - 5).collect(),
    };
    Population { agents: (0..count).map(agent).collect(), found: 0 }
}

/// For each rule of an agent, the number of the agent of `before` that had it.
fn ancestors(before: &Population, agent: &Agent) -> Vec<Option<usize>> {
    let owner = |(place, rule): (usize, &Rule)| before.agents.iter().position(|other| other.rules[place] == *rule);
    agent.rules.iter().enumerate().map(owner).collect()
}

fn bred(settings: &str, before: &Population) -> Population {
    let mut after = before.clone();
    after.breed(&self::settings(settings), stream(), &mut |_, _| ());
    assert_eq!(after.agents.len(), before.agents.len(), "the number of agents is constant");
    after
}

/// The survivors, by their numbers before the cycle, and the parents of each child.
fn family(settings: &str, before: &Population) -> (Vec<usize>, Vec<Vec<usize>>) {
    let after = bred(&format!("mutation = 0\n{settings}"), before);
    let place = |agent: &Agent| before.agents.iter().position(|other| other == agent);
    let parents: Vec<usize> = after.agents.iter().map_while(place).collect();
    let children = after.agents[parents.len()..].iter().map(|child| {
        let owners: BTreeSet<usize> =
            ancestors(before, child).into_iter().map(|owner| owner.expect("every rule is inherited")).collect();
        owners.into_iter().collect()
    });
    let children = children.collect();
    (parents, children)
}

#[test]
fn numbers_of_agents_rules_and_games_are_settings() {
    for (agents, rules, games) in [(40, 100, 5), (4, 1, 1), (6, 128, 9), (6, 129, 9), (4, 1024, 3)] {
        let settings = self::settings(&format!("agents = {agents}\nrules = {rules}\ngames = {games}"));
        let mut population = Population::start(&settings, stream());
        assert_eq!((population.agents.len(), population.agents[0].rules.len()), (agents, rules));
        let report = population.cycle(&settings, stream(), 0);
        let played = agents / 2 * games as usize;
        assert!((5 * played..=9 * played).contains(&(report.moves as usize)), "{report:?}");
        let points: i32 = population.agents.iter().map(|agent| agent.weight.abs()).sum();
        assert!(points <= 2 * played as i32);
        assert_eq!((population.agents.len(), population.agents[agents - 1].rules.len()), (agents, rules));
    }
}

#[test]
fn mutation_is_the_share_of_new_rules() {
    let before = ranked(40, 100);
    let new = |settings: &str| {
        let after = bred(settings, &before);
        after.agents[20..].iter().flat_map(|child| ancestors(&before, child)).filter(Option::is_none).count()
    };
    assert_eq!((new("mutation = 0"), new("mutation = 1")), (0, 2000));
    // The limit is six standard deviations.
    assert!((new("mutation = 0.2") as i32 - 400).abs() < 108, "{}", new("mutation = 0.2"));
    assert!((new("") as i32 - 20).abs() < 20, "one in a hundred by default: {}", new(""));
}

#[test]
fn clustered_mutations_come_in_runs() {
    let before = ranked(40, 100);
    let runs = |settings: &str| {
        let after = bred(&format!("mutation = 0.1\n{settings}"), &before);
        let (mut all, mut pairs) = (0, 0);
        for child in &after.agents[20..] {
            let owners = ancestors(&before, child);
            all += owners.iter().filter(|owner| owner.is_none()).count();
            pairs += owners.windows(2).filter(|pair| pair[0].is_none() && pair[1].is_none()).count();
        }
        (all as i32, pairs as i32)
    };
    let (all, pairs) = runs("");
    assert!((all - 200).abs() < 81 && pairs < 50, "{all} {pairs}");
    let (all, pairs) = runs("mutations = \"clustered\"\ncluster = 0.8");
    assert!((all - 200).abs() < 240 && pairs > all * 7 / 10, "{all} {pairs}");
}

#[test]
fn selection_decides_which_agents_survive() {
    let before = ranked(40, 100);
    let lives = |selection: &str| family(&format!("selection = \"{selection}\""), &before).0;
    assert_eq!(lives("half"), (0..20).collect::<Vec<_>>());
    assert_eq!(lives("tenth"), (0..4).collect::<Vec<_>>());
    assert_eq!(lives("fifth"), (0..8).collect::<Vec<_>>());
    assert_eq!(lives("ends"), (0..16).chain(36..40).collect::<Vec<_>>());
    // The numbers are as close as an even number of agents allows.
    let few = ranked(6, 100);
    for (selection, parents) in
        [("half", vec![0, 1]), ("tenth", vec![0, 1]), ("fifth", vec![0, 1]), ("ends", vec![0, 5])]
    {
        assert_eq!(family(&format!("selection = \"{selection}\"\nagents = 6"), &few).0, parents);
    }
}

#[test]
fn couples_of_parents_have_two_children_in_turn() {
    let before = ranked(40, 100);
    let children = |settings: &str| family(settings, &before).1;
    let ordered = children("parents = \"by-weight\"");
    let couples: Vec<Vec<usize>> = (0..20).map(|child| vec![child / 2 * 2, child / 2 * 2 + 1]).collect();
    assert_eq!(ordered, couples);
    let tenth = children("parents = \"by-weight\"\nselection = \"tenth\"");
    let couples: Vec<Vec<usize>> = (0..36).map(|child| vec![child / 2 % 2 * 2, child / 2 % 2 * 2 + 1]).collect();
    assert_eq!(tenth, couples);
    let random = children("");
    assert!(random != ordered && random.chunks(2).all(|two| two[0] == two[1]), "{random:?}");
    let parents: BTreeSet<usize> = random.iter().flatten().copied().collect();
    assert_eq!(parents, (0..20).collect(), "each agent is a parent once");
}

#[test]
fn players_are_paired_at_random_or_by_weight() {
    let mut before = ranked(40, 10);
    before.agents.swap(3, 30);
    let couples = |settings: &str| before.couples(&self::settings(settings), stream());
    let mut weights: Vec<[i32; 2]> = couples("players = \"by-weight\"")
        .into_iter()
        .map(|couple| couple.map(|agent| before.agents[agent].weight))
        .collect();
    assert!(weights.iter().enumerate().all(|(couple, two)| *two == [100 - 2 * couple as i32, 99 - 2 * couple as i32]));
    weights = couples("").into_iter().map(|couple| couple.map(|agent| before.agents[agent].weight)).collect();
    assert!(weights.iter().filter(|two| two[0] - two[1] == 1).count() < 5, "{weights:?}");
    let all: BTreeSet<i32> = weights.into_iter().flatten().collect();
    assert_eq!(all.len(), 40, "each agent plays once");
}

#[test]
fn rules_are_inherited_alternately_or_by_weight() {
    let before = ranked(40, 100);
    let born = |settings: &str| bred(&format!("mutation = 0\nparents = \"by-weight\"\n{settings}"), &before);
    let after = born("");
    for (place, expected) in [(20, [Some(0), Some(1)]), (21, [Some(1), Some(0)])] {
        let owners = ancestors(&before, &after.agents[place]);
        assert!(owners.chunks(2).all(|two| two == expected), "{owners:?}");
    }
    let after = born("inherit = \"heavier\"");
    for child in &after.agents[20..22] {
        let heaviest = |place: usize| before.agents[0].weights[place].max(before.agents[1].weights[place]);
        assert!((0..100).all(|place| child.weights[place] == heaviest(place)));
        assert!(ancestors(&before, child).chunks(2).any(|two| two[0] == two[1]));
    }
}

#[test]
fn equal_parents_may_have_wholly_new_children() {
    let mut before = ranked(40, 100);
    before.agents[1].rules = before.agents[0].rules.clone();
    let new = |settings: &str| {
        let after = bred(&format!("mutation = 0\nparents = \"by-weight\"\n{settings}"), &before);
        let count = |child: &Agent| ancestors(&before, child).into_iter().filter(Option::is_none).count();
        after.agents[20..23].iter().map(count).collect::<Vec<usize>>()
    };
    assert_eq!(new(""), [0, 0, 0]);
    assert_eq!(new("identical_parents = \"mutate\""), [100, 100, 0]);
    assert_eq!(new("identical_parents = \"mutate\"\nmutations = \"clustered\""), [100, 100, 0]);
}

#[test]
fn an_agent_similar_to_a_better_one_is_penalised() {
    let mut before = ranked(6, 10);
    before.agents[2].rules = before.agents[0].rules.clone();
    before.agents[2].rules[9] = before.agents[1].rules[9];
    let order = |settings: &str| {
        let mut after = before.clone();
        after.order(&self::settings(settings));
        after.agents.iter().map(|agent| 100 - agent.weight).collect::<Vec<i32>>()
    };
    assert_eq!(order(""), [0, 1, 2, 3, 4, 5]);
    assert_eq!(
        order("similar = \"penalise\"\nsimilar_penalty = 2"),
        [0, 1, 3, 2, 4, 5],
        "equal agents keep their order"
    );
    assert_eq!(order("similar = \"penalise\""), [0, 1, 3, 4, 5, 2]);
    assert_eq!(
        order("similar = \"penalise\"\nsimilar_share = 1"),
        [0, 1, 2, 3, 4, 5],
        "nine of ten rules are not all of them"
    );
    assert_eq!(order("similar = \"penalise\"\nsimilar_share = 0.91"), [0, 1, 2, 3, 4, 5]);
}

/// The population after the games of two couples of four agents: the first agent used its first rule and won twice, the third
/// agent used its second rule and lost once.
fn learnt(settings: &str, before: &Population) -> Population {
    let played = |points: i32, first: [i32; 2], second: [i32; 2]| Played {
        tally: Tally { points, ..Tally::default() },
        changes: [first.to_vec(), second.to_vec()],
    };
    let mut after = before.clone();
    after.learn(
        &self::settings(settings),
        &[[0, 1], [2, 3]],
        &[played(2, [2, 0], [-1, 0]), played(-1, [0, -1], [0, 0])],
    );
    after
}

#[test]
fn knowledge_is_private_or_shared() {
    let mut before = ranked(4, 2);
    // The winning rule also belongs to two other agents. One of them lost with it, and the other has it twice.
    let [one, two] = [before.agents[0].rules[0], before.agents[2].rules[1]];
    before.agents[1].rules[0] = one;
    before.agents[3].rules = vec![one, one];
    before.agents[2].rules[0] = two;
    let gains = |settings: &str| {
        let after = learnt(settings, &before);
        let gain = |(after, before): (&Agent, &Agent)| [0, 1].map(|place| after.weights[place] - before.weights[place]);
        after.agents.iter().zip(&before.agents).map(gain).collect::<Vec<[i32; 2]>>()
    };
    assert_eq!(gains(""), [[2, 0], [-1, 0], [0, -1], [0, 0]]);
    assert_eq!(gains("knowledge = \"shared\""), [[1, 0], [1, 0], [-1, -1], [1, 1]]);
}

#[test]
fn agents_weights_count_all_cycles_or_the_last() {
    let before = ranked(4, 2);
    let weights =
        |settings: &str| learnt(settings, &before).agents.iter().map(|agent| agent.weight).collect::<Vec<_>>();
    assert_eq!(weights(""), [102, 97, 97, 98]);
    assert_eq!(weights("agent_weights = \"cycle\""), [2, -2, -1, 1]);
}

#[test]
fn new_agents_have_no_weight_or_their_parents() {
    let before = ranked(40, 10);
    let weights = |settings: &str| {
        let after = bred(&format!("parents = \"by-weight\"\n{settings}"), &before);
        [after.agents[20].weight, after.agents[23].weight]
    };
    assert_eq!(weights(""), [0, 0]);
    assert_eq!(weights("newborn = \"parents\""), [99, 97], "half of 199 and of 195");
}

#[test]
fn inherited_rules_keep_or_reset_their_weights() {
    let before = ranked(40, 10);
    let child = |settings: &str| {
        let mut after = bred(&format!("mutation = 0\nparents = \"by-weight\"\n{settings}"), &before);
        after.agents.remove(20).weights
    };
    let theirs: Vec<i32> = (0..10).map(|place| before.agents[place % 2].weights[place]).collect();
    assert_eq!(child(""), theirs);
    assert_eq!(child("inherited_weights = \"zero\""), [0; 10]);
}

#[test]
fn a_rigged_generator_makes_all_new_rules_presumed_useful() {
    let useful = |agents: &[Agent]| {
        let rules = agents.iter().flat_map(|agent| &agent.rules);
        let count = rules.clone().filter(|rule| {
            rule.needs().empty.count_ones() == 1 && {
                let pair = [rule.needs().own, rule.needs().other].map(u32::count_ones);
                pair == [2, 0] || pair == [0, 2]
            }
        });
        count.count() as f64 / rules.count() as f64
    };
    let shares = |settings: &str| {
        let settings = format!("{settings}\nmutation = 1\nweak = \"replace\"\nrepeated = \"replace\"");
        let first = Population::start(&self::settings(&settings), stream());
        let children = bred(&settings, &ranked(40, 100));
        let (mut repeated, mut weak) = (ranked(40, 100), ranked(40, 100));
        repeated.agents.iter_mut().for_each(|agent| agent.rules = vec![agent.rules[0]; 100]);
        repeated.agents.iter_mut().for_each(|agent| agent.weights = vec![1; 100]);
        weak.agents.iter_mut().for_each(|agent| agent.weights = vec![0; 100]);
        repeated.renew(&self::settings(&settings), stream(), 1);
        weak.renew(&self::settings(&settings), stream(), 1);
        [useful(&first.agents), useful(&children.agents[20..]), useful(&repeated.agents), useful(&weak.agents)]
    };
    assert!(shares("").into_iter().all(|share| share < 0.01), "{:?}", shares(""));
    let half = shares("generator = \"rigged\"");
    assert!(half.into_iter().all(|share| (share - 0.5).abs() < 0.07), "{half:?}");
    let few = shares("generator = \"rigged\"\nrigged_share = 0.1");
    assert!(few.into_iter().all(|share| (share - 0.1).abs() < 0.04), "{few:?}");
}

#[test]
fn repeated_rules_may_be_replaced() {
    let [one, two] = ["V********1", "*V*******2"].map(|text| read(text, 1).unwrap());
    let other_priority = read("V********1", 2).unwrap();
    let agent =
        Agent { weight: 5, rules: vec![one, two, one, other_priority, two, one], weights: vec![1, 2, 3, 4, 5, 6] };
    let renewed = |settings: &str, cycle: u32| {
        let mut population = Population { agents: vec![agent.clone()], found: 0 };
        population.renew(&self::settings(settings), stream(), cycle);
        population.agents.remove(0)
    };
    assert_eq!(renewed("", 3), agent);
    for cycle in [0, 3] {
        let after = renewed("repeated = \"replace\"", cycle);
        assert_eq!((after.weight, &after.weights), (5, &vec![1, 2, 0, 4, 0, 0]), "the first of equal rules is kept");
        let kept: Vec<bool> = after.rules.iter().zip(&agent.rules).map(|(after, before)| after == before).collect();
        assert_eq!(kept, [true, true, false, true, false, false]);
    }
}

/// For each of five rules with weights from -2 to 2: whether it is replaced before the games of this cycle.
fn replaced(settings: &str, cycle: u32) -> [bool; 5] {
    let rules: Vec<Rule> = (1..=5).map(|cell| read(&format!("*********{cell}"), 0).unwrap()).collect();
    let agent = Agent { weight: 5, rules: rules.clone(), weights: vec![-2, -1, 0, 1, 2] };
    let mut population = Population { agents: vec![agent], found: 0 };
    population.renew(&self::settings(settings), stream(), cycle);
    let after = &population.agents[0];
    std::array::from_fn(|place| {
        let new = after.rules[place] != rules[place];
        assert_eq!(after.weights[place], if new { 0 } else { place as i32 - 2 });
        new
    })
}

#[test]
fn weak_rules_may_be_replaced_before_every_cycle() {
    assert_eq!(replaced("", 1), [false; 5]);
    assert_eq!(replaced("weak = \"replace\"", 1), [true, true, true, false, false]);
    assert_eq!(replaced("weak = \"replace\"\nweak_weight = -1", 7), [true, true, false, false, false]);
    assert_eq!(replaced("weak = \"replace\"\nweak_weight = 2", 7), [true; 5]);
    assert_eq!(replaced("weak = \"replace\"", 0), [false; 5], "nothing has been played yet");
}

#[test]
fn weak_rules_may_be_replaced_at_times() {
    let at_times = "weak_at_times = \"replace\"\nweak_cycles = 3\nweak_at_times_weight = -1";
    for cycle in 1..10 {
        let expected = if cycle % 3 == 0 { [true, true, false, false, false] } else { [false; 5] };
        assert_eq!(replaced(at_times, cycle), expected, "{cycle}");
    }
    let both = format!("{at_times}\nweak = \"replace\"\nweak_weight = -2");
    assert_eq!(replaced(&both, 1), [true, false, false, false, false]);
    assert_eq!(replaced(&both, 3), [true, true, false, false, false], "the greater of both weights decides");
}

fn run(settings: &str) -> Vec<Replica> {
    crate::testing::run(&config(settings))
}

const SMALL: &str = "agents = 12\nrules = 30\ncycles = 25\ngames = 4\ngenerator = \"rigged\"\nmutation = 0.1";

/// Every setting is used. Given the other settings here, each setting changes the digest, unless it only says how to compute.
#[test]
fn every_setting_that_affects_results_changes_the_digest() {
    let cases = [
        ("agents", "", "14"),
        ("rules", "", "31"),
        ("games", "", "5"),
        ("cycles", "", "26"),
        ("mutation", "", "0.2"),
        ("mutations", "", "\"clustered\""),
        ("cluster", "mutations = \"clustered\"", "0.7"),
        ("selection", "", "\"ends\""),
        ("parents", "", "\"by-weight\""),
        ("players", "", "\"by-weight\""),
        ("inherit", "", "\"heavier\""),
        ("identical_parents", "mutation = 0\nselection = \"tenth\"\nagent_weights = \"cycle\"", "\"mutate\""),
        ("similar", "similar_share = 0.4", "\"penalise\""),
        ("similar_share", "similar = \"penalise\"", "0.4"),
        ("similar_penalty", "similar = \"penalise\"\nsimilar_share = 0.4", "1"),
        ("knowledge", "", "\"shared\""),
        ("generator", "generator = \"random\"", "\"rigged\""),
        ("rigged_share", "", "0.6"),
        ("random_rules", "", "\"alike\""),
        ("repeated", "rigged_share = 1", "\"replace\""),
        ("weak", "", "\"replace\""),
        ("weak_weight", "weak = \"replace\"", "-1"),
        ("weak_at_times", "", "\"replace\""),
        ("weak_cycles", "weak_at_times = \"replace\"", "5"),
        ("weak_at_times_weight", "weak_at_times = \"replace\"", "-1"),
        ("agent_weights", "", "\"cycle\""),
        ("newborn", "", "\"parents\""),
        ("inherited_weights", "", "\"zero\""),
    ];
    let fields = super::settings::SCHEMA.fields().iter().filter(|field| field.scope != Scope::Execution);
    assert_eq!(fields.map(|field| field.name).collect::<Vec<_>>(), cases.map(|(name, ..)| name));
    let digest = |settings: &str| self::digest(&run(settings));
    for (name, context, value) in cases {
        let before = merged(SMALL, context);
        let after = merged(&before, &format!("{name} = {value}"));
        assert_ne!(digest(&before), digest(&after), "{name} changes nothing");
    }
    let whole = digest(SMALL);
    for how in ["cycles_per_task = 1", "farming = \"couples\"", "farming = \"couples\"\ncouples_per_task = 4"] {
        assert_eq!(digest(&merged(SMALL, how)), whole, "{how}");
    }
}

/// The settings, with those replaced that `others` names too.
fn merged(settings: &str, others: &str) -> String {
    let name = |line: &str| line.split(" =").next().map(str::to_owned);
    let kept = settings.lines().filter(|line| others.lines().all(|other| name(other) != name(line)));
    kept.chain(others.lines()).collect::<Vec<&str>>().join("\n")
}

/// With all options at once, states and histories are the same, computed whole or in slices of any size.
#[test]
fn results_do_not_depend_on_the_division_of_work() {
    let every = format!(
        "{SMALL}\nmutations = \"clustered\"\nselection = \"ends\"\nparents = \"by-weight\"\nidentical_parents = \"mutate\"\n\
         similar = \"penalise\"\nknowledge = \"shared\"\nrepeated = \"replace\"\nweak_at_times = \"replace\"\nweak_cycles = 4\n\
         inherit = \"heavier\"\n"
    );
    for settings in [SMALL, every.as_str()] {
        let histories =
            |replicas: &[Replica]| replicas.iter().map(|replica| replica.history().to_vec()).collect::<Vec<_>>();
        let whole = run(settings);
        assert_eq!(whole[0].history().len(), 25);
        for how in ["cycles_per_task = 1", "cycles_per_task = 4", "farming = \"couples\"\ncouples_per_task = 4"] {
            let cut = run(&format!("{settings}\n{how}"));
            assert_eq!(digest(&cut), digest(&whole), "{how}");
            assert_eq!(histories(&cut), histories(&whole), "{how}");
        }
    }
}

/// A replica that is saved and restored after every round continues as if it had not been interrupted.
#[test]
fn a_restored_replica_continues() {
    for how in ["cycles_per_task = 3", "farming = \"couples\""] {
        let config = config(&format!("{SMALL}\n{how}"));
        let mut replica = local::start(&config).next().unwrap();
        while local::step(&mut replica).unwrap() {
            replica = Replica::restore(&config, &replica.save()).unwrap();
        }
        assert_eq!(replica.digest(), run(SMALL)[0].digest());
    }
}

#[test]
fn mismatched_states_are_rejected() {
    let config = config(SMALL);
    let mut replica = local::start(&config).next().unwrap();
    assert!(Replica::restore(&config, &replica.save()).is_ok());
    local::step(&mut replica).unwrap();
    let mut good = replica.save();
    let other = self::config(&SMALL.replace("rules = 30", "rules = 31"));
    assert!(Replica::restore(&other, &good).is_err_and(|why| why.contains("not 12 agents of 31 rules")));
    let shorter = self::config(&SMALL.replace("cycles = 25", "cycles = 24"));
    assert!(Replica::restore(&shorter, &good).is_err_and(|why| why.contains("does not fit the settings")));
    good.state = b"nonsense".as_slice().into();
    assert!(Replica::restore(&config, &good).is_err_and(|why| why.contains("cannot be read")));
}

/// If these numbers change, every run gives different results.
#[test]
fn results_are_pinned() {
    let replicas = run("cycles = 100");
    let rows: Vec<String> = replicas[0].history().iter().step_by(33).map(|row| format!("{row:?}")).collect();
    insta::assert_snapshot!(format!("{}\n{}", rows.join("\n"), digest(&replicas)));
}

/// Another implementation found that, with the page's settings, rules first make about an eighth of the moves.
#[test]
fn the_first_cycles_agree_with_another_implementation() {
    let replicas = run("cycles = 20");
    let mean = |column: usize| replicas[0].history().iter().map(|row| row[column]).sum::<f64>() / 20.0;
    let (share, strength) = (mean(super::Row::rule_share), mean(super::Row::strength));
    assert!((9.0..15.0).contains(&share) && (48.0..54.0).contains(&strength), "{share} {strength}");
}
