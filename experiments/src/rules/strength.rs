//! Exact odds of an agent against a random mover, computed in one pass over all positions, from the last moves to the first.
//!
//! The agent's random choices are averaged too, so these figures do not depend on luck. They are exact except for the
//! rounding of sums.

use std::sync::LazyLock;

use super::{
    agent::Agent,
    couple::wins,
    index::{IndexedAgent, count, places, with_blocks},
    rule::CELLS,
};

/// Probabilities of the outcomes of a game, from the agent's point of view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutcomeShares {
    /// The probability that the agent wins.
    pub win: f64,
    /// The probability that the game is drawn.
    pub draw: f64,
    /// The probability that the agent loses.
    pub loss: f64,
}

/// A position with a move to make, from its mover's point of view.
struct Position {
    own: u16,
    other: u16,
    /// For each empty cell, in the order of cells: the index of the position after the mover takes it. Only the first `legal`
    /// entries are used. Two ends follow the last position: one where the mover has won, and one with a full board and no
    /// winner.
    next: [u16; CELLS],
    legal: u16,
}

impl Position {
    /// The index of the position after the mover takes a cell; `None` if the cell is taken.
    fn after(&self, cell: u8) -> Option<usize> {
        let empty = !(self.own | self.other) & 0x1ff;
        let next = self.next[(empty & ((1 << cell) - 1)).count_ones() as usize];
        (empty >> cell & 1 == 1).then_some(usize::from(next))
    }

    /// The cells among which the filter chooses: those that complete a line, or else those that block one; 0 if there are
    /// none.
    fn forced(&self) -> u16 {
        let completing = |stones: u16| {
            let cells = (0..CELLS).filter(|cell| (self.own | self.other) >> cell & 1 == 0);
            cells.filter(|cell| wins(u32::from(stones | 1 << cell))).fold(0, |mask, cell| mask | 1 << cell)
        };
        match completing(self.own) {
            0 => completing(self.other),
            own => own,
        }
    }
}

/// All positions with a move to make. Positions with more stones come first, so the last one is the empty board.
fn positions() -> &'static [Position] {
    static POSITIONS: LazyLock<Vec<Position>> = LazyLock::new(|| {
        let mut levels = vec![vec![(0_u32, 0_u32)]];
        for stones in 0..CELLS - 1 {
            let open = |&(own, other): &(u32, u32)| {
                let taken =
                    (0..CELLS).filter(move |cell| (own | other) >> cell & 1 == 0).map(move |cell| own | 1 << cell);
                taken.filter(|own| !wins(*own)).map(move |own| (other, own)).collect::<Vec<_>>()
            };
            let mut level: Vec<(u32, u32)> = levels[stones].iter().flat_map(open).collect();
            level.sort_unstable();
            level.dedup();
            levels.push(level);
        }
        let all: Vec<(u32, u32)> = levels.into_iter().rev().flatten().collect();
        let mut numbers = vec![0_u16; 512 * 512];
        for (number, (own, other)) in all.iter().enumerate() {
            numbers[(own << 9 | other) as usize] = number as u16;
        }
        let count = all.len() as u16;
        let position = |&(own, other): &(u32, u32)| {
            let empty = (0..CELLS).filter(|cell| (own | other) >> cell & 1 == 0);
            let mut position = Position { own: own as u16, other: other as u16, next: [0; CELLS], legal: 0 };
            for cell in empty {
                let after = own | 1 << cell;
                position.next[usize::from(position.legal)] = match () {
                    () if wins(after) => count,
                    () if (after | other).count_ones() == CELLS as u32 => count + 1,
                    () => numbers[(other << 9 | after) as usize],
                };
                position.legal += 1;
            }
            position
        };
        all.iter().map(position).collect()
    });
    &POSITIONS
}

/// The agent's expected value as the beginner and as the second player, given the values of a win, a draw and a loss.
/// `FILTERED` says whether the random mover has the filter of [`evoxo_games::odds`].
fn expectations<const FILTERED: bool>(agent: &Agent, worth: [f64; 3]) -> [f64; 2] {
    with_blocks!(agent.rules.len(), BLOCKS => walk::<FILTERED, BLOCKS>(&IndexedAgent::new(agent), worth))
}

/// The same as [`expectations`], for an agent that is already prepared.
fn walk<const FILTERED: bool, const BLOCKS: usize>(
    agent: &IndexedAgent<BLOCKS>,
    [win, draw, loss]: [f64; 3],
) -> [f64; 2] {
    let positions = positions();
    // The agent's expected values: in positions where the agent is to move, and in positions where the random mover is.
    let mut moving = vec![0.0; positions.len() + 2];
    let mut waiting = moving.clone();
    // The ends are positions too. Their side to move is the one that would be next.
    (moving[positions.len()], waiting[positions.len()]) = (loss, win);
    (moving[positions.len() + 1], waiting[positions.len() + 1]) = (draw, draw);
    for (number, position) in positions.iter().enumerate() {
        let mean = |values: &[f64]| {
            let next = position.next[..usize::from(position.legal)].iter();
            let sum = next.fold(0.0, |sum, next| sum + values[usize::from(*next)]);
            sum / f64::from(position.legal)
        };
        let candidates = agent.candidates(position.own.into(), position.other.into());
        let chosen = match count(&candidates) {
            0 => mean(&waiting),
            rules => {
                let values = places(&candidates)
                    .map(|place| position.after(agent.cell(place)).map_or(loss, |next| waiting[next]));
                values.fold(0.0, |sum, value| sum + value) / f64::from(rules)
            }
        };
        let random = match if FILTERED { position.forced() } else { 0 } {
            0 => mean(&moving),
            forced => {
                let cells = (0..CELLS as u8).filter(|cell| forced >> cell & 1 == 1);
                let values = cells.filter_map(|cell| position.after(cell)).map(|next| moving[next]);
                values.sum::<f64>() / f64::from(forced.count_ones())
            }
        };
        (moving[number], waiting[number]) = (chosen, random);
    }
    [moving[positions.len() - 1], waiting[positions.len() - 1]]
}

/// The agent's expected share of points per game against a random mover, averaged over both sides. A draw counts half.
#[must_use]
pub fn strength(agent: &Agent) -> f64 {
    let [beginning, second] = expectations::<false>(agent, [1.0, 0.5, 0.0]);
    (beginning + second) / 2.0
}

/// The agent's odds against a random mover as X and as O.
#[must_use]
pub fn odds(agent: &Agent) -> [OutcomeShares; 2] {
    both(|worth| expectations::<false>(agent, worth))
}

/// The agent's odds against a random mover with the filter of [`evoxo_games::odds`], as X and as O.
#[must_use]
pub fn odds_filtered(agent: &Agent) -> [OutcomeShares; 2] {
    both(|worth| expectations::<true>(agent, worth))
}

fn both(expectations: impl Fn([f64; 3]) -> [f64; 2]) -> [OutcomeShares; 2] {
    let [win, draw, loss] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].map(expectations);
    [0, 1].map(|side| OutcomeShares { win: win[side], draw: draw[side], loss: loss[side] })
}

#[cfg(test)]
mod tests {
    use super::super::{
        reference,
        rule::{RandomRules, Rule, Source, read},
    };
    use super::*;
    use evoxo_common::{
        ratio::Ratio,
        rng::{Stream, below},
    };
    use evoxo_games::board::{Board, Side};

    #[test]
    fn all_positions_with_a_move_are_listed() {
        // There are 5,478 reachable positions, and 958 of them are ends.
        assert_eq!(positions().len(), 5478 - 958);
    }

    #[test]
    fn without_rules_play_is_random() {
        let [x, o] = odds(&Agent::default());
        let close = |one: f64, two: f64| (one - two).abs() < 1e-12;
        assert!(close(x.win, 737.0 / 1260.0) && close(x.loss, 121.0 / 420.0) && close(x.draw, 8.0 / 63.0), "{x:?}");
        assert!(close(o.win, x.loss) && close(o.loss, x.win) && close(o.draw, x.draw), "{o:?}");
        assert!(close(strength(&Agent::default()), 0.5));
    }

    /// The rules of this agent never tie, so it chooses either a single cell or any cell. In this case [`evoxo_games::odds`], which knows
    /// nothing of rules, gives its odds as fractions, also with the filter.
    #[test]
    fn odds_match_the_exact_analysis() {
        let rules = ["VVVVVVVVV5", "PPV******3", "V********1"].map(|text| read(text, 0).unwrap());
        let agent = Agent { weights: vec![3, 2, 1], ..Agent::newborn(rules.into()) };
        let (plain, filtered) = (odds(&agent), odds_filtered(&agent));
        for (index, side) in Side::BOTH.into_iter().enumerate() {
            let exact = agent.exact(side);
            for (ours, exact) in [(plain[index], exact.odds_unfiltered.unwrap()), (filtered[index], exact.odds)] {
                for (one, two) in [(ours.win, exact.win), (ours.draw, exact.draw), (ours.loss, exact.loss)] {
                    assert!((one - two.to_f64()).abs() < 1e-12, "{side:?}: {ours:?} {exact:?}");
                }
            }
        }
        assert!(plain[0].win > filtered[0].win);
    }

    #[test]
    fn odds_match_the_reference() {
        for (rigged, count, random) in [
            (0, 100, RandomRules::LettersFirst),
            (1, 100, RandomRules::LettersFirst),
            (1, 300, RandomRules::LettersFirst),
            (0, 300, RandomRules::Any),
        ] {
            let rng = &mut Stream::root(rigged).rng();
            let source = Source { rigged: Ratio::new(rigged.into(), 1), random };
            let rules: Vec<Rule> = (0..count).map(|_| Rule::born(rng, source)).collect();
            let weights = rules.iter().map(|_| below(rng, 3) as i32).collect();
            let agent = Agent { weights, ..Agent::newborn(rules) };
            let fast = odds(&agent);
            for (side, fast) in Side::BOTH.into_iter().zip(fast) {
                let expected = reference::odds(&agent, side, Board::EMPTY);
                for (one, two) in [(fast.win, expected.win), (fast.draw, expected.draw), (fast.loss, expected.loss)] {
                    assert!((one - two).abs() < 1e-12, "{fast:?} {expected:?}");
                }
            }
            let points = fast.iter().map(|odds| odds.win + odds.draw / 2.0).sum::<f64>() / 2.0;
            assert!((strength(&agent) - points).abs() < 1e-12);
        }
    }

    #[test]
    fn a_good_rule_makes_an_agent_stronger() {
        let strength = |rules: &[&str]| {
            let rules = rules.iter().map(|text| read(text, 0).unwrap()).collect();
            strength(&Agent::newborn(rules))
        };
        assert!(strength(&["PPV******3"]) > 0.5 && strength(&["PPV******3", "***PPV***6"]) > strength(&["PPV******3"]));
    }
}
