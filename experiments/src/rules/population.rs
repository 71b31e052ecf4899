//! A population and its cycle: the games, the order of agents, survival and births.
//!
//! The streams of cycle c are named by the replica's stream, c and a purpose: `players` (which agents meet), `couple`, k (the
//! games of couple k), `parents` (which agents mate), `births`, k (child k), `repeated`, k and `weak`, k (new rules of agent
//! k). The first agents come from `agents`, k.

use std::ops::Range;

use super::{
    agent::Agent,
    couple::{self, Tally},
    index::{IndexedAgent, with_blocks},
    messages::Cycle,
    rule::{Rule, Source},
    settings::{
        AgentWeights, Fate, IdenticalParents, Inherit, InheritedWeights, Knowledge, Mutations, Newborn, Pairing,
        Settings, Similar,
    },
    strength::strength,
};
use evoxo_common::{
    evolve::{mutate, select},
    ratio::Ratio,
    rng::{Generator, Stream, shuffle},
};

/// All agents, and the sought rules that any of them has had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Population {
    /// After a cycle: the survivors, best first, then the new agents.
    pub agents: Vec<Agent>,
    /// The sought rules that any agent had at the beginning or after a cycle, one bit per rule.
    pub found: u64,
}

/// Sees the places of a child's parents, the one with its first rule first, and its rules with their weights before mutation.
pub type Crossing<'a> = dyn FnMut([usize; 2], &[(Rule, i32)]) + 'a;

/// The results of a couple's games.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// The counts of the games.
    pub tally: Tally,
    /// The changes of the weights of both agents' rules.
    pub changes: [Vec<i32>; 2],
}

impl Population {
    /// The population before the first cycle.
    #[must_use]
    pub fn start(settings: &Settings, replica: Stream) -> Self {
        let born = |agent: u64| {
            let rng = &mut replica.text("agents").word(agent).rng();
            Agent::newborn((0..settings.rules).map(|_| Rule::born(rng, settings.source())).collect())
        };
        let mut population = Self { agents: (0..settings.agents as u64).map(born).collect(), found: 0 };
        population.found = population.sought();
        population
    }

    /// Computes a whole cycle.
    pub fn cycle(&mut self, settings: &Settings, replica: Stream, cycle: u32) -> Cycle {
        let stream = replica.word(cycle.into());
        self.renew(settings, stream, cycle);
        let couples = self.couples(settings, stream);
        let played: Vec<Played> =
            (0..).zip(&couples).map(|(number, couple)| self.play(settings, stream, number, *couple)).collect();
        self.end_of_cycle(settings, stream, &couples, &played)
    }

    /// Ends a cycle after its games: learning, the order of agents, parents and children.
    pub fn end_of_cycle(
        &mut self,
        settings: &Settings,
        stream: Stream,
        couples: &[[usize; 2]],
        played: &[Played],
    ) -> Cycle {
        self.learn(settings, couples, played);
        self.order(settings);
        let (best, strength) = (self.agents[0].weight, strength(&self.agents[0]));
        self.breed(settings, stream, &mut |_, _| ());
        let alive = self.sought();
        self.found |= alive;
        let sum = |part: fn(&Tally) -> u32| played.iter().map(|played| part(&played.tally)).sum();
        Cycle {
            moves: sum(|tally| tally.moves),
            rule_moves: sum(|tally| tally.rule_moves),
            draws: sum(|tally| tally.draws),
            strength,
            best,
            alive,
            good: self.rules().filter(|rule| rule.is_good() && rule.sought().is_none()).count() as u32,
        }
    }

    /// Prepares a cycle's games: replaces repeated rules and, after the first cycle, weak ones.
    pub fn renew(&mut self, settings: &Settings, stream: Stream, cycle: u32) {
        let weak = settings.weak_weight_before(cycle);
        for (number, agent) in (0..).zip(&mut self.agents) {
            if settings.repeated == Fate::Replace {
                replace_repeated(agent, settings.source(), &mut stream.text("repeated").word(number).rng());
            }
            if let Some(weak) = weak {
                replace_weak(agent, weak, settings.source(), &mut stream.text("weak").word(number).rng());
            }
        }
    }

    /// The couples that play, as indices of agents.
    #[must_use]
    pub fn couples(&self, settings: &Settings, stream: Stream) -> Vec<[usize; 2]> {
        let mut order: Vec<usize> = match settings.players {
            Pairing::Random => (0..self.agents.len()).collect(),
            Pairing::ByWeight => {
                let weights: Vec<i32> = self.agents.iter().map(|agent| agent.weight).collect();
                select::fittest(&weights, weights.len())
            }
        };
        if settings.players == Pairing::Random {
            shuffle(&mut stream.text("players").rng(), &mut order);
        }
        order.as_chunks().0.to_vec()
    }

    /// Plays the games of couple `number` in the cycle that has this stream.
    #[must_use]
    pub fn play(&self, settings: &Settings, stream: Stream, number: u64, couple: [usize; 2]) -> Played {
        let agents = couple.map(|agent| &self.agents[agent]);
        play(agents, settings.games, stream, number)
    }

    /// Adds the results of the games to the weights of agents and of rules.
    pub fn learn(&mut self, settings: &Settings, couples: &[[usize; 2]], played: &[Played]) {
        if settings.agent_weights == AgentWeights::Cycle {
            self.agents.iter_mut().for_each(|agent| agent.weight = 0);
        }
        for (couple, played) in couples.iter().zip(played) {
            for (agent, points) in couple.iter().zip([played.tally.points, -played.tally.points]) {
                self.agents[*agent].weight += points;
            }
        }
        if settings.knowledge == Knowledge::Shared {
            return self.share(couples, played);
        }
        for (couple, played) in couples.iter().zip(played) {
            for (agent, changes) in couple.iter().zip(&played.changes) {
                self.agents[*agent].weights.iter_mut().zip(changes).for_each(|(weight, change)| *weight += change);
            }
        }
    }

    /// Every rule learns what all equal rules (including itself) have learned in this cycle, once, after all games.
    fn share(&mut self, couples: &[[usize; 2]], played: &[Played]) {
        let mut learnt: Vec<(Rule, i32)> = Vec::new();
        for (couple, played) in couples.iter().zip(played) {
            for (agent, changes) in couple.iter().zip(&played.changes) {
                let rules = self.agents[*agent].rules.iter().copied().zip(changes.iter().copied());
                learnt.extend(rules.filter(|(_, change)| *change != 0));
            }
        }
        learnt.sort_unstable();
        learnt.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        // Most rules have learned nothing. A filter on the lower bits of their codes avoids most searches.
        let place = |rule: Rule| ((rule.code() >> 6) as usize % FILTER, rule.code() & 63);
        let mut filter = [0_u64; FILTER];
        for (rule, _) in &learnt {
            filter[place(*rule).0] |= 1 << place(*rule).1;
        }
        for agent in &mut self.agents {
            for (rule, weight) in agent.rules.iter().zip(&mut agent.weights) {
                if filter[place(*rule).0] >> place(*rule).1 & 1 == 1
                    && let Ok(found) = learnt.binary_search_by_key(rule, |(rule, _)| *rule)
                {
                    *weight += learnt[found].1;
                }
            }
        }
    }

    /// Sorts agents, best first. Equal agents keep their order.
    pub fn order(&mut self, settings: &Settings) {
        self.agents.sort_by_key(|agent| std::cmp::Reverse(agent.weight));
        if settings.similar == Similar::Ignore {
            return;
        }
        let is_double = |number: usize| {
            let (above, agent) = (&self.agents[..number], &self.agents[number]);
            above.iter().any(|other| are_similar(agent, other, settings.similar_share))
        };
        let penalties =
            (0..self.agents.len()).map(|number| if is_double(number) { settings.similar_penalty } else { 0 });
        let worth: Vec<i32> =
            self.agents.iter().zip(penalties).map(|(agent, penalty)| agent.weight.saturating_sub(penalty)).collect();
        let order = select::fittest(&worth, worth.len());
        self.agents = order.into_iter().map(|number| std::mem::take(&mut self.agents[number])).collect();
    }

    /// The parents survive in their order, and children replace all other agents. The pairs of parents take turns with two
    /// children each until all places are taken. `crossed` sees each child.
    pub fn breed(&mut self, settings: &Settings, stream: Stream, crossed: &mut Crossing<'_>) {
        let (best, worst) = settings.parents_count();
        let total = self.agents.len();
        self.agents.drain(best..total - worst);
        let mut order: Vec<usize> = (0..self.agents.len()).collect();
        if settings.parents == Pairing::Random {
            shuffle(&mut stream.text("parents").rng(), &mut order);
        }
        let couples = order.as_chunks::<2>().0;
        let births = stream.text("births");
        let child = |number: usize| {
            let [mother, father] = couples[number / 2 % couples.len()];
            let places = if number.is_multiple_of(2) { [mother, father] } else { [father, mother] };
            let parents = places.map(|parent| &self.agents[parent]);
            born(settings, parents, &mut births.word(number as u64).rng(), |rules| crossed(places, rules))
        };
        let children: Vec<Agent> = (0..total - self.agents.len()).map(child).collect();
        self.agents.extend(children);
    }

    /// All rules of all agents.
    fn rules(&self) -> impl Iterator<Item = Rule> {
        self.agents.iter().flat_map(|agent| agent.rules.iter().copied())
    }

    /// The sought rules that any agent has, one bit per rule.
    #[must_use]
    pub fn sought(&self) -> u64 {
        self.rules().filter_map(Rule::sought).fold(0, |found, number| found | 1 << number)
    }
}

/// The number of words in the filter, 64 bits each.
const FILTER: usize = 64;

/// Plays the games of couple `number` in the cycle that has this stream.
#[must_use]
pub fn play(agents: [&Agent; 2], games: u32, stream: Stream, number: u64) -> Played {
    let rules = agents.map(|agent| agent.rules.len()).into_iter().max().unwrap_or(0);
    with_blocks!(rules, BLOCKS => play_indexed::<BLOCKS>(agents, games, stream, number))
}

fn play_indexed<const BLOCKS: usize>(agents: [&Agent; 2], games: u32, stream: Stream, number: u64) -> Played {
    let mut ready = agents.map(IndexedAgent::<BLOCKS>::new);
    let tally = couple::play(&mut ready, games, &mut stream.text("couple").word(number).rng());
    let changes = [0, 1].map(|one| {
        let places = agents[one].rules.iter().zip(&agents[one].weights).enumerate();
        places.map(|(place, (rule, weight))| ready[one].weight(place, *rule) - weight).collect()
    });
    Played { tally, changes }
}

/// Whether the share of places with equal rules is at least this.
fn are_similar(one: &Agent, other: &Agent, share: Ratio) -> bool {
    let equal = one.rules.iter().zip(&other.rules).filter(|(one, other)| one == other).count();
    equal as i64 * share.denominator() >= one.rules.len() as i64 * share.numerator()
}

/// The child whose first rule comes from the first parent. `crossed` sees its rules before mutation.
fn born(
    settings: &Settings,
    [first, second]: [&Agent; 2],
    rng: &mut Generator,
    crossed: impl FnOnce(&[(Rule, i32)]),
) -> Agent {
    let heavier = settings.inherit == Inherit::Heavier;
    let heir = |place: usize| {
        let (one, other) = if place.is_multiple_of(2) { (first, second) } else { (second, first) };
        let from = if heavier && other.weights[place] > one.weights[place] { other } else { one };
        (from.rules[place], if settings.inherited_weights == InheritedWeights::Keep { from.weights[place] } else { 0 })
    };
    let mut genes: Vec<(Rule, i32)> = (0..first.rules.len()).map(heir).collect();
    crossed(&genes);
    let new = |rng: &mut Generator, _: usize, _: (Rule, i32)| (Rule::born(rng, settings.source()), 0);
    let everything = settings.identical_parents == IdenticalParents::Mutate && first.rules == second.rules;
    match settings.mutations {
        _ if everything => genes.iter_mut().for_each(|gene| *gene = new(rng, 0, *gene)),
        Mutations::Clustered => {
            _ = mutate::redraw_chain(rng, &mut genes, settings.mutation, settings.cluster, new);
        }
        Mutations::Independent => {
            let rate = (settings.mutation.numerator() as u64, settings.mutation.denominator() as u64);
            mutate::redraw_each(rng, &mut genes, rate, new);
        }
    }
    let weight = if settings.newborn == Newborn::Parents { first.weight.midpoint(second.weight) } else { 0 };
    let (rules, weights) = genes.into_iter().unzip();
    Agent { weight, rules, weights }
}

/// Replaces rules that also occur earlier in the list.
fn replace_repeated(agent: &mut Agent, source: Source, rng: &mut Generator) {
    let mut sorted: Vec<(Rule, usize)> = agent.rules.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let mut repeated: Vec<usize> =
        sorted.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1).collect();
    repeated.sort_unstable();
    for place in repeated {
        (agent.rules[place], agent.weights[place]) = (Rule::born(rng, source), 0);
    }
}

/// Replaces rules whose weight is at most `weak`.
fn replace_weak(agent: &mut Agent, weak: i32, source: Source, rng: &mut Generator) {
    for (rule, weight) in agent.rules.iter_mut().zip(&mut agent.weights) {
        if *weight <= weak {
            (*rule, *weight) = (Rule::born(rng, source), 0);
        }
    }
}

/// Computes these cycles of a replica, and returns a report of each.
pub fn cycles(population: &mut Population, settings: &Settings, replica: Stream, cycles: Range<u32>) -> Vec<Cycle> {
    cycles.map(|cycle| population.cycle(settings, replica, cycle)).collect()
}
