//! How algorithms for several objectives make children: the parents of a child win two binary tournaments. What wins a tournament,
//! and which individuals stay, is in the files of the algorithms.

use std::{cmp::Ordering, ops::Range};

use evoxo_common::rng::{Generator, below, shuffle};

use super::{Descent, Individual, Search};
use crate::{
    genome::Candidate,
    variation::{Variation, new_child},
};

/// A population whose children are made.
pub(super) struct Mating<'a> {
    pub(super) variation: &'a Variation,
    pub(super) search: &'a Search,
    /// Candidates evaluated so far.
    pub(super) births: u64,
    pub(super) population: &'a [Individual],
    /// Compares the individuals in two places: the lesser one wins a tournament, and the first of two that are equal.
    pub(super) compare: Box<dyn Fn(usize, usize) -> Ordering + 'a>,
}

/// Compares for a tournament the individuals in two places: the feasible one wins, or the one that breaks constraints less. Feasible
/// ones are equal.
pub(super) fn feasible_first(population: &[Individual]) -> impl Fn(usize, usize) -> Ordering {
    |one, other| {
        let [one, other] = [one, other].map(|place| &population[place].evaluation);
        if one.feasible() && other.feasible() { Ordering::Equal } else { one.compare(other) }
    }
}

impl Mating<'_> {
    /// The individuals of this batch's tournaments: four for each child. Each individual takes part in equally many
    /// tournaments, as in Deb's program.
    fn meetings(&self) -> Vec<usize> {
        let stream = self.search.stream.text("tournaments").word(self.births);
        let round = |number: u64| {
            let mut order: Vec<usize> = (0..self.population.len()).collect();
            shuffle(&mut stream.word(number).rng(), &mut order);
            order
        };
        (0..4).flat_map(round).collect()
    }

    /// A child that is not yet in the population, see [`new_child`], of the parents in these places. `crossed` sees it before
    /// mutation; if it is drawn again, the last call counts.
    fn child(&self, rng: &mut Generator, parents: [usize; 2], crossed: &mut dyn FnMut(&Candidate)) -> Candidate {
        let known = |child: &Candidate| self.population.iter().any(|individual| individual.candidate == *child);
        let of = parents.map(|place| &self.population[place].candidate);
        new_child(&known, || self.variation.watched(&self.search.genome, rng, of, crossed))
    }

    /// The place of the better of two individuals; the first if they are equal.
    fn better(&self, pair: &[usize]) -> usize {
        let first_wins = (self.compare)(pair[0], pair[1]).is_le();
        pair[usize::from(!first_wins)]
    }

    /// The places of the parents of a candidate of this batch.
    fn parents(&self, meetings: &[usize], index: usize) -> [usize; 2] {
        let four = &meetings[4 * index % meetings.len()..][..4];
        [self.better(&four[..2]), self.better(&four[2..])]
    }

    /// These candidates of the next batch: children, or the first candidates if there is no population.
    pub(super) fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        let meetings = self.meetings();
        let candidate = |index: usize| {
            let number = self.births + index as u64;
            if self.population.is_empty() {
                return self.search.first(number);
            }
            self.child(&mut self.search.birth(number), self.parents(&meetings, index), &mut |_| ())
        };
        range.map(candidate).collect()
    }

    /// How the candidates of the next batch are made, if it has this many.
    pub(super) fn descents(&self, size: usize) -> Vec<Option<Descent>> {
        let meetings = self.meetings();
        let descent = |index: usize| {
            let (parents, number) = (self.parents(&meetings, index), self.births + index as u64);
            Descent::of(|crossed| self.child(&mut self.search.birth(number), parents, &mut |it| crossed(parents, it)))
        };
        (0..size).map(|index| if self.population.is_empty() { None } else { descent(index) }).collect()
    }

    /// The candidate with this number of a search with a window: one of the first `size` candidates, or the child of random
    /// tournaments.
    pub(super) fn made(&self, size: usize, number: u64, crossed: &mut dyn FnMut([usize; 2], &Candidate)) -> Candidate {
        if number < size as u64 || self.population.is_empty() {
            return self.search.first(number);
        }
        let mut rng = self.search.birth(number);
        let mut draw = || below(&mut rng, self.population.len() as u64) as usize;
        let (one, other) = ([draw(), draw()], [draw(), draw()]);
        let parents = [self.better(&one), self.better(&other)];
        self.child(&mut rng, parents, &mut |child| crossed(parents, child))
    }
}
