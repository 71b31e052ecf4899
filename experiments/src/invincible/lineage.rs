//! Who descends from whom: tables have one parent each.

use std::collections::BTreeSet;

use evoxo_common::{
    experiment::{Birth, Births, Growth, Lineage, mark, words},
    settings::Values,
};
use evoxo_games::{board::tic_tac_toe, table::graph::Graph};
use serde_json::Value;

use super::{Invincible, settings::Settings};

pub(super) const LINEAGE: Lineage = Lineage { genes, value };

/// The boards on which a table decides.
fn genes(values: &Values) -> Result<Vec<String>, String> {
    let boards = Graph::of(Settings::of(values).side.into()).boards();
    Ok(boards.iter().map(|board| tic_tac_toe().board_text(*board)).collect())
}

/// The cell to play.
fn value(_: &Values, _: usize, gene: u64) -> Value {
    tic_tac_toe().cell_name(gene as u8).into()
}

/// The births of the next generation.
pub(super) fn births(replica: &Invincible) -> Births {
    let Settings { fathers, population, generations, .. } = replica.settings;
    let is_first = replica.state.generation == 0;
    let champion = (!is_first).then(|| words(replica.parent(0)));
    if replica.state.generation == generations {
        return Births { generations: Vec::new(), champion };
    }
    let parents: Vec<Vec<u64>> =
        (0..if is_first { 0 } else { fathers }).map(|rank| words(replica.parent(rank))).collect();
    let mut known: BTreeSet<u64> = parents.iter().map(|genes| mark(genes)).collect();
    let born = |index: usize| {
        let genes = words(&replica.individual(index));
        let parent: Option<&[u64]> = (!is_first).then(|| &parents[replica.parent_of(index)][..]);
        let crossed = parent.unwrap_or(&genes);
        Birth::of(parent.as_slice(), &Growth { crossed, mutated: &genes, repaired: &genes })
    };
    let born = (parents.len()..population).map(born).filter(|birth| known.insert(birth.mark)).collect();
    Births { generations: vec![born], champion }
}
