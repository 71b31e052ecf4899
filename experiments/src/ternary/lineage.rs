//! Who descends from whom among the strings of the reported side. The games of a generation repair its strings, so they are
//! played here too.

use std::collections::BTreeSet;

use evoxo_common::{
    experiment::{Birth, Births, Experiment as _, Growth, Lineage, mark, words},
    settings::Values,
    task::checked,
};
use evoxo_games::{board::tic_tac_toe, index::board_of};
use serde_json::Value;

use super::{Ternary, settings::Settings, tournament::Tournament};

pub(super) const LINEAGE: Lineage = Lineage { genes, value };

/// The boards of the places, each with the number of the letter if it has two.
fn genes(values: &Values) -> Result<Vec<String>, String> {
    let code = Settings::of(values).code();
    let places = code.index().representatives().iter().map(|code| tic_tac_toe().board_text(board_of(*code)));
    Ok(match code.alphabet.digits() {
        1 => places.collect(),
        digits => places.flat_map(|board| (1..=digits).map(move |digit| format!("{board} {digit}"))).collect(),
    })
}

/// The letter.
fn value(_: &Values, _: usize, gene: u64) -> Value {
    gene.into()
}

/// The births of the next generation, after its games. A string that stays may be repaired again: then it is born from itself.
pub(super) fn births(replica: &Ternary) -> Births {
    let champion = replica.best().map(words);
    let code = replica.code;
    let mut litters = Vec::new();
    if replica.state.generation == replica.settings.generations {
        return Births { generations: Vec::new(), champion };
    }
    let bred = replica.bred(0, code, &mut |parents, children| litters.push((parents, children.clone())));
    let bred: Vec<Vec<u64>> = bred.chunks(code.len()).map(words).collect();
    let own_tasks = replica.settings.population.div_ceil(replica.slice);
    let tasks = replica.plan(0..own_tasks);
    let outputs = tasks.iter().map(|task| task.run().expect("the replica's own tasks can be computed"));
    let played: Vec<Vec<u64>> = outputs
        .flat_map(|it| checked::<Tournament>(&it).genomes.chunks(code.len()).map(words).collect::<Vec<_>>())
        .collect();
    let kept: Vec<Vec<u64>> = replica
        .state
        .populations
        .first()
        .map_or_else(Vec::new, |it| it.genomes.chunks(code.len()).map(words).collect());
    let mut known: BTreeSet<u64> = kept.iter().map(|genes| mark(genes)).collect();
    let stay = if kept.is_empty() { bred.len() } else { replica.settings.elite };
    let born = |(index, (own, genes)): (usize, (&Vec<u64>, &Vec<u64>))| {
        let child = index.checked_sub(stay).map(|child| {
            let (parents, children) = &litters[child / 2];
            (parents.map(|parent| &kept[parent][..]), words(&children[child % 2]))
        });
        match &child {
            Some((parents, crossed)) => Birth::of(parents, &Growth { crossed, mutated: own, repaired: genes }),
            None if kept.is_empty() => Birth::of(&[], &Growth { crossed: own, mutated: own, repaired: genes }),
            None => Birth::of(&[own], &Growth { crossed: own, mutated: own, repaired: genes }),
        }
    };
    let births = bred.iter().zip(&played).enumerate().map(born).filter(|birth| known.insert(birth.mark)).collect();
    Births { generations: vec![births], champion }
}
