//! A couple's games: two agents play some games, one after another. After each game, the weights of the rules that they used
//! change.
//!
//! **Random choices.** A couple draws from a stream of its own. It first draws which agent begins the first game (after that
//! they alternate), and then each choice when it is made: among equally ranked rules in the order of the list, or among empty
//! cells in their order. A choice with a single option draws nothing.

use super::{
    index::{BLOCK, IndexedAgent, Mask, count, place},
    rule::CELLS,
};
use evoxo_common::rng::{Generator, below};

/// The results of a couple's games, without the changes of weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Games that the first agent won minus games that the second won.
    pub points: i32,
    /// Games drawn.
    pub draws: u32,
    /// Moves made.
    pub moves: u32,
    /// Moves made by a rule.
    pub rule_moves: u32,
}

/// Plays a couple's games, and changes the weights of both agents' rules.
pub fn play<const BLOCKS: usize>(agents: &mut [IndexedAgent<BLOCKS>; 2], games: u32, rng: &mut Generator) -> Tally {
    let first = below(rng, 2) as usize;
    let mut tally = Tally::default();
    for game in 0..games as usize {
        let mut used = [[0; BLOCKS]; 2];
        let winner = self::game(agents, (first + game) % 2, rng, &mut tally, &mut used);
        let Some(winner) = winner else {
            tally.draws += 1;
            continue;
        };
        tally.points += 1 - 2 * winner as i32;
        agents[winner].add(used[winner], 1);
        agents[1 - winner].add(used[1 - winner], -1);
    }
    tally
}

/// Plays one game and records the rules that each agent used. Returns the winner. An agent whose rule moves to a stone loses.
#[inline(always)]
fn game<const BLOCKS: usize>(
    agents: &[IndexedAgent<BLOCKS>; 2],
    mut mover: usize,
    rng: &mut Generator,
    tally: &mut Tally,
    used: &mut [Mask<BLOCKS>; 2],
) -> Option<usize> {
    let (mut own, mut other) = (0_u32, 0_u32);
    for stones in 0..CELLS as u32 {
        let agent = &agents[mover];
        let candidates = agent.candidates(own, other);
        // Most boards match no rule, so rules are counted only on the other boards.
        let cell = if candidates == [0; BLOCKS] {
            let empty = !(own | other) & BOARD;
            let lot = if stones < CELLS as u32 - 1 { below(rng, u64::from(CELLS as u32 - stones)) } else { 0 };
            nth_cell(empty, lot as usize)
        } else {
            let several = count(&candidates);
            let nth = if several > 1 { below(rng, u64::from(several)) as u32 } else { 0 };
            let place = place(&candidates, nth);
            tally.rule_moves += 1;
            used[mover][place / BLOCK % BLOCKS] |= 1 << (place % BLOCK);
            agent.cell(place)
        };
        if (own | other) >> cell & 1 == 1 {
            // The rule is not valid: it moves to a stone, so the game is lost.
            tally.moves += stones + 1;
            return Some(1 - mover);
        }
        own |= 1 << cell;
        if wins(own) {
            tally.moves += stones + 1;
            return Some(mover);
        }
        (own, other, mover) = (other, own, 1 - mover);
    }
    tally.moves += CELLS as u32;
    None
}

/// The bits of all cells.
const BOARD: u32 = 0x1ff;

/// Whether these cells contain a line.
#[inline(always)]
pub(super) fn wins(stones: u32) -> bool {
    const WINS: [u64; 8] = {
        let (mut wins, mut stones) = ([0; 8], 0);
        while stones < 512 {
            let mut line = 0;
            while line < super::rule::LINES.len() {
                if stones & super::rule::LINES[line] == super::rule::LINES[line] {
                    wins[stones as usize >> 6] |= 1 << (stones & 63);
                }
                line += 1;
            }
            stones += 1;
        }
        wins
    };
    WINS[(stones & BOARD) as usize >> 6] >> (stones & 63) & 1 == 1
}

/// The cell of the mask that follows `nth` other cells of the mask.
#[inline(always)]
fn nth_cell(mask: u32, nth: usize) -> u8 {
    const CELL: [[u8; 16]; 512] = {
        let (mut cells, mut mask) = ([[0; 16]; 512], 0);
        while mask < 512 {
            let (mut cell, mut nth) = (0, 0);
            while cell < CELLS {
                if mask >> cell & 1 == 1 {
                    cells[mask][nth] = cell as u8;
                    nth += 1;
                }
                cell += 1;
            }
            mask += 1;
        }
        cells
    };
    CELL[mask as usize % 512][nth % 16]
}

#[cfg(test)]
mod tests {
    use super::super::{
        agent::{Agent, RULES_MAX},
        index::with_blocks,
        reference,
        rule::{RandomRules, Rule, Source, read},
    };
    use super::*;
    use evoxo_common::{ratio::Ratio, rng::Stream};
    use evoxo_games::board::tic_tac_toe;
    use proptest::prelude::*;

    fn random(seed: u64, count: usize, source: impl Into<Source>) -> Agent {
        let (rng, source) = (&mut Stream::root(seed).text("agent").rng(), source.into());
        Agent::newborn((0..count).map(|_| Rule::born(rng, source)).collect())
    }

    /// The weights of an agent's rules after its games.
    fn weights<const BLOCKS: usize>(agent: &Agent, ready: &IndexedAgent<BLOCKS>) -> Vec<i32> {
        (0..agent.rules.len()).map(|place| ready.weight(place, agent.rules[place])).collect()
    }

    proptest! {
        #[test]
        fn games_match_the_reference(seed: u64, count in 0..=RULES_MAX, rigged in 0..=10_i128, games in 0..40_u32, any: bool) {
            let kind = if any { RandomRules::Any } else { RandomRules::LettersFirst };
            let source = Source { rigged: Ratio::new(rigged, 10), random: kind };
            let mut agents = [0, 1].map(|one| random(seed ^ one, count, source));
            let stream = Stream::root(seed).text("games");
            let (fast, found) = with_blocks!(count, BLOCKS => {
                let mut ready = [0, 1].map(|one| IndexedAgent::<BLOCKS>::new(&agents[one]));
                let tally = play(&mut ready, games, &mut stream.rng());
                (tally, [0, 1].map(|one| weights(&agents[one], &ready[one])))
            });
            let expected = reference::play(&mut agents, games, &mut stream.rng());
            prop_assert_eq!(fast, expected);
            prop_assert_eq!(found, agents.map(|agent| agent.weights));
        }
    }

    #[test]
    fn lines_win() {
        assert!((0..512).all(|stones| wins(stones) == tic_tac_toe().has_line(stones.into())));
    }

    /// The results of random against random on 3x3 are known: the beginner wins 58.49 %, the other side wins 28.81 %, and
    /// 12.70 % are drawn. Here both agents begin equally often.
    #[test]
    fn agents_without_rules_play_at_random() {
        let mut agents = [0, 1].map(|seed| IndexedAgent::<1>::new(&random(seed, 0, Ratio::ZERO)));
        let games = 40_000;
        let tally = play(&mut agents, games, &mut Stream::root(1).rng());
        assert!((f64::from(tally.draws) / f64::from(games) - 0.1270).abs() < 0.01, "{tally:?}");
        assert!(tally.points.abs() < 1200 && tally.rule_moves == 0, "{tally:?}");
        assert!((f64::from(tally.moves) / f64::from(games) - 7.6).abs() < 0.1, "{tally:?}");
    }

    /// One agent completes the top row whenever it can. The other agent's only rule does nothing useful.
    #[test]
    fn rules_gain_weight_by_wins_and_lose_it_by_losses() {
        let rules = [("V********1", 3), ("PV*******2", 3), ("PPV******3", 3)]
            .map(|(text, priority)| read(text, priority).unwrap());
        let idle = read("*******V*8", 0).unwrap();
        let agents = [Agent::newborn(rules.to_vec()), Agent::newborn(vec![idle])];
        let mut ready = [0, 1].map(|one| IndexedAgent::<1>::new(&agents[one]));
        let tally = play(&mut ready, 1000, &mut Stream::root(2).rng());
        let [winner, loser] = [0, 1].map(|one| weights(&agents[one], &ready[one]));
        assert!(tally.points > 400, "{tally:?}");
        // The first rule of each agent is used in every game. The last rule of the winner is used only in games that it wins.
        assert_eq!((winner[0], loser[0]), (tally.points, -tally.points));
        assert!(winner[2] > 400, "{winner:?}");
    }
}
