//! The options of `rules`, as the cycle reads them. What each means is said at its setting.

use super::rule::Source;
use crate::ratio::Ratio;

/// Who become parents, best first; the rest of the population gives way to their children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The best half.
    Half,
    /// The best tenth.
    Tenth,
    /// The best fifth.
    Fifth,
    /// The best 40 % and the worst 10 %.
    Ends,
}

/// How agents are taken two by two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coupling {
    /// By lot.
    Random,
    /// The heaviest with the next, and so on.
    ByWeight,
}

/// Which parent's rule a child has at each place of its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// The mother's, the father's, the mother's, ...; the second child the other way round.
    Alternately,
    /// The heavier of the two; of two of the same weight as alternately.
    Heavier,
}

/// How agents differ too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Similar {
    /// The share of places with the same rule from which two agents are very similar.
    pub share: Ratio,
    /// What the lower of two very similar agents loses when agents are ordered.
    pub penalty: i32,
}

/// Every option, but for the number of cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Agents, an even number.
    pub agents: usize,
    /// Rules of an agent.
    pub rules: usize,
    /// Games of a couple in a cycle.
    pub games: u32,
    /// The probability that a new rule takes the place of an inherited one.
    pub mutation: Ratio,
    /// The probability that a mutation follows a mutation in the list; `None` if they are independent.
    pub cluster: Option<Ratio>,
    /// Who become parents.
    pub selection: Selection,
    /// How parents are coupled.
    pub parents: Coupling,
    /// How players are coupled.
    pub players: Coupling,
    /// How rules are inherited.
    pub inherit: Inherit,
    /// Whether the children of equal parents have new rules only.
    pub identical_parents_mutate: bool,
    /// What very similar agents lose, if anything.
    pub similar: Option<Similar>,
    /// Whether a used rule's change goes to every equal rule of the population.
    pub shared_knowledge: bool,
    /// Where new rules come from.
    pub source: Source,
    /// Whether an agent's repeated rules are replaced.
    pub replace_repeated: bool,
    /// The weight at or below which rules are replaced before every cycle.
    pub weak: Option<i32>,
    /// The same before every so many cycles: their number, and the weight.
    pub weak_at_times: Option<(u32, i32)>,
    /// Whether an agent's weight is the sum over all its cycles, or of the last one alone.
    pub accumulate: bool,
    /// Whether a newborn agent has the mean of its parents' weights, instead of 0.
    pub newborn_as_parents: bool,
    /// Whether inherited rules keep their weights, instead of beginning at 0.
    pub keep_weights: bool,
}

impl Options {
    /// How many of the best and how many of the worst become parents: together an even number, at least two.
    #[must_use]
    pub fn parents_count(&self) -> (usize, usize) {
        let even = |tenths: usize| (self.agents * tenths / 10 / 2 * 2).max(2);
        match self.selection {
            Selection::Half => (even(5), 0),
            Selection::Tenth => (even(1), 0),
            Selection::Fifth => (even(2), 0),
            Selection::Ends => {
                let worst = (self.agents / 10).max(1);
                (even(5) - worst, worst)
            }
        }
    }
}
