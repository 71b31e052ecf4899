//! Games between strings, and against a random mover. Cells are numbered 0 to 8 as in the chapter, and bit n of a mask is
//! cell n.

use std::sync::LazyLock;

use super::player::Code;
use evoxo_common::rng::{Generator, below};
use evoxo_games::board::{Outcome, Side, cells, tic_tac_toe};
use evoxo_games::index::{PLACEMENT, Strings, number_of, weight};

/// The opponent of a string.
#[derive(Clone, Copy, Debug)]
pub enum Adversary<'a> {
    /// A mover that takes any empty cell with equal probability.
    Random {
        /// Whether the mover first completes a line, or else blocks one.
        rules: bool,
    },
    /// A string of the other side. The string does not change, so its repairs are forgotten after the game.
    String(Code, &'a [u8]),
}

/// The results of a string's games.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveTally {
    /// Games won.
    pub wins: u32,
    /// Games lost.
    pub losses: u32,
    /// Decisions of the string that were rewritten.
    pub repairs: u32,
}

/// For every mask of stones: the cells, taken or not, that would complete a line of them, or all cells if a line is complete.
static COMPLETING: LazyLock<[u16; 512]> = LazyLock::new(|| {
    let lines: Vec<u16> = tic_tac_toe()
        .lines()
        .iter()
        .map(|line| cells(*line).fold(0, |mask, cell| mask | 1 << number_of(cell)))
        .collect();
    std::array::from_fn(|stones| {
        let missing = lines.iter().map(|line| line & !(stones as u16));
        missing.fold(0, |all, rest| match rest.count_ones() {
            0 => 0x1ff,
            1 => all | rest,
            _ => all,
        })
    })
});

/// A game in progress.
struct Play {
    stones: [u16; 2],
    code: u16,
}

impl Play {
    fn empty(&self) -> u16 {
        0x1ff & !(self.stones[0] | self.stones[1])
    }

    /// The first cell that completes a line of the side to move, or else the first cell that blocks one.
    fn ruled(&self, side: Side) -> Option<u8> {
        let completing = |side: Side| COMPLETING[usize::from(self.stones[side as usize])] & self.empty();
        let cells = [side, side.other()].map(completing).into_iter().find(|cells| *cells != 0)?;
        Some(cells.trailing_zeros() as u8)
    }

    /// An empty cell, drawn with equal probability.
    fn any(&self, rng: &mut Generator) -> u8 {
        let mut empty = self.empty();
        for _ in 0..below(rng, empty.count_ones().into()) {
            empty &= empty - 1;
        }
        empty.trailing_zeros() as u8
    }

    /// Takes a cell. Returns whether this completes a line.
    fn take(&mut self, side: Side, cell: u8) -> bool {
        let stones = &mut self.stones[side as usize];
        let wins = COMPLETING[usize::from(*stones)] >> cell & 1 == 1;
        *stones |= 1 << cell;
        self.code += weight(cell, side);
        wins
    }
}

/// Plays one game and repairs the player's string. Where the string names a taken cell, an empty cell is drawn with equal
/// probability, played, and written instead.
pub fn game(
    code: Code,
    genome: &mut [u8],
    opponent: Adversary<'_>,
    rng: &mut Generator,
    tally: &mut MoveTally,
) -> Outcome {
    let mut play = Play { stones: [0; 2], code: 0 };
    let mut side = Side::X;
    while play.empty() != 0 {
        let cell = if side == code.side {
            let (cell, repaired) = chosen_cell(&play, code, genome, rng);
            if let Some(decision) = repaired {
                code.repair(genome, decision, cell);
                tally.repairs += 1;
            }
            cell
        } else {
            match opponent {
                Adversary::Random { rules } => {
                    let rule = if rules { play.ruled(side) } else { None };
                    rule.unwrap_or_else(|| play.any(rng))
                }
                Adversary::String(code, genome) => chosen_cell(&play, code, genome, rng).0,
            }
        };
        if play.take(side, cell) {
            *(if side == code.side { &mut tally.wins } else { &mut tally.losses }) += 1;
            return Outcome::Win(side);
        }
        side = side.other();
    }
    Outcome::Draw
}

/// The cell that a string plays, and the decision to rewrite if the string names a taken cell.
fn chosen_cell(play: &Play, code: Code, genome: &[u8], rng: &mut Generator) -> (u8, Option<super::player::Decision>) {
    if code.strings == Strings::Short
        && let Some(cell) = play.ruled(code.side)
    {
        return (cell, None);
    }
    let decision = code
        .decision(genome, play.code)
        .expect("a string has a decision for every board on which its rules do not move");
    if play.empty() >> decision.cell & 1 == 1 { (decision.cell, None) } else { (play.any(rng), Some(decision)) }
}

/// The cell of [`tic_tac_toe`] that has this number in the chapter.
#[must_use]
pub fn on_board(cell: u8) -> u8 {
    PLACEMENT[usize::from(cell)]
}

#[cfg(test)]
mod tests {
    use super::super::{player::Alphabet, reference};
    use super::*;
    use evoxo_common::rng::Stream;
    use evoxo_games::index::Classes;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn games_match_the_reference(seed: u64, kind in 0..32_u8) {
            let strings = Strings::BOTH[usize::from(kind & 1)];
            let alphabet = [Alphabet::Nine, Alphabet::Three][usize::from(kind >> 1 & 1)];
            let side = Side::BOTH[usize::from(kind >> 2 & 1)];
            let classes = Classes::BOTH[usize::from(kind >> 4)];
            let code = Code { side, strings, classes, alphabet };
            let other = Code { side: side.other(), ..code };
            let mut rng = Stream::root(seed).rng();
            let (mut genome, string) = (code.random(&mut rng), other.random(&mut rng));
            let opponent = match kind >> 3 & 1 {
                0 => Adversary::String(other, &string),
                _ => Adversary::Random { rules: seed & 1 == 1 },
            };
            let mut expected = genome.clone();
            let (mut tally, mut expected_tally) = (MoveTally::default(), MoveTally::default());
            let mut expected_rng = rng.clone();
            for _ in 0..20 {
                let outcome = game(code, &mut genome, opponent, &mut rng, &mut tally);
                prop_assert_eq!(outcome, reference::game(code, &mut expected, opponent, &mut expected_rng, &mut expected_tally));
            }
            prop_assert_eq!((genome, tally), (expected, expected_tally));
        }
    }

    /// Repairs come to an end: against one opponent that never changes and never moves at random, a string repeats its game.
    #[test]
    fn repairs_end_against_a_fixed_opponent() {
        let classes = Classes::Rotations;
        let code = Code { side: Side::X, strings: Strings::Long, classes, alphabet: Alphabet::Three };
        let mut rng = Stream::root(3).rng();
        let mut genome = code.random(&mut rng);
        let before = code.broken(&genome);
        let mut tally = MoveTally::default();
        for _ in 0..20_000 {
            game(code, &mut genome, Adversary::Random { rules: false }, &mut rng, &mut tally);
        }
        assert!(tally.repairs > 20 && code.broken(&genome) == before - tally.repairs as usize, "{tally:?}");
        let repairs = tally.repairs;
        for _ in 0..2_000 {
            game(code, &mut genome, Adversary::Random { rules: false }, &mut rng, &mut tally);
        }
        assert_eq!(tally.repairs, repairs, "every board that it meets has been repaired by now");
    }
}
