//! Who descends from whom among the agents. A cycle may replace rules of agents before its games: such an agent is born from
//! itself.

use std::collections::BTreeSet;

use evoxo_common::{
    experiment::{Birth, Births, Growth, Lineage, mark},
    settings::Values,
};
use serde_json::Value;

use super::{
    Rules,
    agent::Agent,
    population::Population,
    rule::Rule,
    settings::{Farming, Settings},
};

pub(super) const LINEAGE: Lineage = Lineage { genes, value };

/// The places of an agent's rules.
fn genes(values: &Values) -> Result<Vec<String>, String> {
    Ok((1..=Settings::of(values).rules).map(|number| format!("rule {number}")).collect())
}

/// The rule as a text.
fn value(_: &Values, _: usize, gene: u64) -> Value {
    Rule::of_code(gene as u32).map_or(Value::Null, |rule| rule.to_string().into())
}

fn words<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Vec<u64> {
    rules.into_iter().map(|rule| u64::from(rule.code())).collect()
}

fn own(population: &Population) -> Vec<Vec<u64>> {
    population.agents.iter().map(|agent: &Agent| words(&agent.rules)).collect()
}

/// The births of the cycles of the next round: a cycle's agents with replaced rules and its children are a generation. The
/// first agents are one before them.
pub(super) fn births(replica: &Rules) -> Births {
    let Settings { cycles, cycles_per_task, farming, .. } = replica.settings;
    let many = if farming == Farming::Cycles { cycles_per_task } else { 1 };
    let mut population = replica.population.clone();
    let first = |genes: &Vec<u64>| Birth::of(&[], &Growth { crossed: genes, mutated: genes, repaired: genes });
    let founders = (replica.cycle == 0).then(|| own(&population).iter().map(first).collect());
    let later = (replica.cycle..cycles).take(many as usize).map(|cycle| of_cycle(replica, &mut population, cycle));
    let generations = founders.into_iter().chain(later).collect();
    let champion = (replica.cycle > 0).then(|| words(&replica.population.agents[0].rules));
    Births { generations, champion }
}

/// The births of a cycle: at its beginning agents with replaced rules, at its end children. Advances the population.
fn of_cycle(replica: &Rules, population: &mut Population, cycle: u32) -> Vec<Birth> {
    let (settings, stream) = (&replica.settings, replica.stream.word(cycle.into()));
    let before = own(population);
    population.renew(settings, stream, cycle);
    let renewed = own(population);
    let again = |(genes, repaired): (&Vec<u64>, &Vec<u64>)| {
        Birth::of(&[genes], &Growth { crossed: genes, mutated: genes, repaired })
    };
    let replaced = before.iter().zip(&renewed).filter(|(before, after)| before != after).map(again);

    let couples = population.couples(settings, stream);
    let played: Vec<_> =
        (0..).zip(&couples).map(|(number, couple)| population.play(settings, stream, number, *couple)).collect();
    population.learn(settings, &couples, &played);
    population.order(settings);
    let mut litters = Vec::new();
    population.breed(settings, stream, &mut |parents, crossed| {
        litters.push((parents, words(crossed.iter().map(|(rule, _)| rule))));
    });
    let now = own(population);
    let children = now.iter().skip(now.len() - litters.len()).zip(&litters).map(|(genes, (parents, crossed))| {
        let parents = parents.map(|parent| &now[parent][..]);
        Birth::of(&parents, &Growth { crossed, mutated: genes, repaired: genes })
    });
    let mut known: BTreeSet<u64> = renewed.iter().map(|genes| mark(genes)).collect();
    replaced.chain(children.filter(|birth| known.insert(birth.mark))).collect()
}
