//! Exact odds of an agent against a random mover, by one walk over all positions, last moves first.
//!
//! Lots of the agent, too, are averaged over, so there is no luck in these figures: the history's strength is exact to the
//! rounding of sums.

use std::sync::LazyLock;

use super::{couple::wins, index::Ready, rule::CELLS};

/// Probabilities of a game's ends, seen from the agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Odds {
    /// That it wins.
    pub win: f64,
    /// That nobody does.
    pub draw: f64,
    /// That it loses.
    pub loss: f64,
}

/// A position in which a move is to be made, as its mover sees it.
struct Place {
    own: u16,
    other: u16,
    /// The number of the place after each empty cell is taken, in the order of cells; as many as `legal`. Past the last place
    /// come: the mover has won; nobody has, and the board is full.
    next: [u16; CELLS],
    legal: u16,
}

impl Place {
    /// The number of the place after an empty cell is taken.
    fn after(&self, cell: u8) -> usize {
        let empty = !(self.own | self.other) & 0x1ff;
        usize::from(self.next[(empty & ((1 << cell) - 1)).count_ones() as usize])
    }

    /// The cells among which the filter chooses: those that complete a line, else those that block one; 0 if there are none.
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

/// All positions in which a move is to be made, those with more stones first; the last is the empty board.
fn places() -> &'static [Place] {
    static PLACES: LazyLock<Vec<Place>> = LazyLock::new(|| {
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
        let place = |&(own, other): &(u32, u32)| {
            let empty = (0..CELLS).filter(|cell| (own | other) >> cell & 1 == 0);
            let mut place = Place { own: own as u16, other: other as u16, next: [0; CELLS], legal: 0 };
            for cell in empty {
                let after = own | 1 << cell;
                place.next[usize::from(place.legal)] = match () {
                    () if wins(after) => count,
                    () if (after | other).count_ones() == CELLS as u32 => count + 1,
                    () => numbers[(other << 9 | after) as usize],
                };
                place.legal += 1;
            }
            place
        };
        all.iter().map(place).collect()
    });
    &PLACES
}

/// What the agent can expect where a win, a draw and a loss are worth this: as the beginner and as the second player. The
/// random mover has the filter of [`evoxo_games::audit`] or not.
fn expectations<const FILTERED: bool>(agent: &Ready, [win, draw, loss]: [f64; 3]) -> [f64; 2] {
    let places = places();
    // What the agent can expect where it is to move, and where the random mover is.
    let mut moving = vec![0.0; places.len() + 2];
    let mut waiting = moving.clone();
    // Ends are places too, of whoever would be the next to move.
    (moving[places.len()], waiting[places.len()]) = (loss, win);
    (moving[places.len() + 1], waiting[places.len() + 1]) = (draw, draw);
    for (number, place) in places.iter().enumerate() {
        let mean = |values: &[f64]| {
            let next = place.next[..usize::from(place.legal)].iter();
            let sum = next.fold(0.0, |sum, next| sum + values[usize::from(*next)]);
            sum / f64::from(place.legal)
        };
        let candidates = agent.candidates(place.own.into(), place.other.into());
        let chosen = match candidates {
            0 => mean(&waiting),
            mut rules => {
                let (mut sum, count) = (0.0, rules.count_ones());
                while rules != 0 {
                    sum += waiting[place.after(agent.cell(rules.trailing_zeros()))];
                    rules &= rules - 1;
                }
                sum / f64::from(count)
            }
        };
        let random = match if FILTERED { place.forced() } else { 0 } {
            0 => mean(&moving),
            forced => {
                let cells = (0..CELLS as u8).filter(|cell| forced >> cell & 1 == 1);
                cells.map(|cell| moving[place.after(cell)]).sum::<f64>() / f64::from(forced.count_ones())
            }
        };
        (moving[number], waiting[number]) = (chosen, random);
    }
    [moving[places.len() - 1], waiting[places.len() - 1]]
}

/// The share of points that an agent can expect of a game against a random mover, a draw being half a win: the mean of both
/// sides.
#[must_use]
pub fn strength(agent: &Ready) -> f64 {
    let [beginning, second] = expectations::<false>(agent, [1.0, 0.5, 0.0]);
    (beginning + second) / 2.0
}

/// Its odds against a random mover as X and as O.
#[must_use]
pub fn odds(agent: &Ready) -> [Odds; 2] {
    both(|worth| expectations::<false>(agent, worth))
}

/// Its odds against a random mover with the filter of [`evoxo_games::audit`], as X and as O.
#[must_use]
pub fn odds_filtered(agent: &Ready) -> [Odds; 2] {
    both(|worth| expectations::<true>(agent, worth))
}

fn both(expectations: impl Fn([f64; 3]) -> [f64; 2]) -> [Odds; 2] {
    let [win, draw, loss] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].map(expectations);
    [0, 1].map(|side| Odds { win: win[side], draw: draw[side], loss: loss[side] })
}

#[cfg(test)]
mod tests {
    use super::super::{
        agent::Agent,
        reference,
        rule::{Rule, read},
    };
    use super::*;
    use evoxo_common::{
        ratio::Ratio,
        rng::{Stream, below},
    };
    use evoxo_games::board::{Board, Side};

    #[test]
    fn places_are_all_open_positions() {
        // 5,478 reachable positions, 958 of them ends.
        assert_eq!(places().len(), 5478 - 958);
    }

    #[test]
    fn without_rules_it_is_random_play() {
        let [x, o] = odds(&Ready::new(&Agent::default()));
        let close = |one: f64, two: f64| (one - two).abs() < 1e-12;
        assert!(close(x.win, 737.0 / 1260.0) && close(x.loss, 121.0 / 420.0) && close(x.draw, 8.0 / 63.0), "{x:?}");
        assert!(close(o.win, x.loss) && close(o.loss, x.win) && close(o.draw, x.draw), "{o:?}");
        assert!(close(strength(&Ready::new(&Agent::default())), 0.5));
    }

    /// An agent whose rules never tie chooses one cell or any, and the audit, which knows nothing of rules, has its odds as
    /// fractions; against the filter too.
    #[test]
    fn odds_are_those_of_the_audit() {
        let rules = ["VVVVVVVVV5", "PPV******3", "V********1"].map(|text| read(text, 0).unwrap());
        let agent = Agent { weights: vec![3, 2, 1], ..Agent::newborn(rules.into()) };
        let ready = Ready::new(&agent);
        let (plain, filtered) = (odds(&ready), odds_filtered(&ready));
        for (index, side) in Side::BOTH.into_iter().enumerate() {
            let audit = agent.audit(side);
            for (ours, exact) in [(plain[index], audit.odds_unfiltered.unwrap()), (filtered[index], audit.odds)] {
                for (one, two) in [(ours.win, exact.win), (ours.draw, exact.draw), (ours.loss, exact.loss)] {
                    assert!((one - two.to_f64()).abs() < 1e-12, "{side:?}: {ours:?} {exact:?}");
                }
            }
        }
        assert!(plain[0].win > filtered[0].win);
    }

    #[test]
    fn odds_are_those_of_the_reference() {
        for seed in 0..2 {
            let rng = &mut Stream::root(seed).rng();
            let rules: Vec<Rule> = (0..100).map(|_| Rule::born(rng, Ratio::new(seed.into(), 1))).collect();
            let weights = rules.iter().map(|_| below(rng, 3) as i32).collect();
            let agent = Agent { weights, ..Agent::newborn(rules) };
            let fast = odds(&Ready::new(&agent));
            for (side, fast) in Side::BOTH.into_iter().zip(fast) {
                let slow = reference::odds(&agent, side, Board::EMPTY);
                for (one, two) in [(fast.win, slow.win), (fast.draw, slow.draw), (fast.loss, slow.loss)] {
                    assert!((one - two).abs() < 1e-12, "{fast:?} {slow:?}");
                }
            }
            let points = fast.iter().map(|odds| odds.win + odds.draw / 2.0).sum::<f64>() / 2.0;
            assert!((strength(&Ready::new(&agent)) - points).abs() < 1e-12);
        }
    }

    #[test]
    fn a_good_rule_makes_it_stronger() {
        let strength = |rules: &[&str]| {
            let rules = rules.iter().map(|text| read(text, 0).unwrap()).collect();
            strength(&Ready::new(&Agent::newborn(rules)))
        };
        assert!(strength(&["PPV******3"]) > 0.5 && strength(&["PPV******3", "***PPV***6"]) > strength(&["PPV******3"]));
    }
}
