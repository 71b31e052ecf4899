//! The training boards of a replica. The paper does not say how it chose them, so there are several readings.

use std::{collections::BTreeSet, sync::LazyLock};

use evoxo_common::{
    choice,
    rng::{Generator, Stream, below, shuffle},
};
use evoxo_games::{
    board::{Board, Side, cells, tic_tac_toe},
    player::teacher::{self, BOARDS, boards},
};

choice! {
    /// A reading: how training boards are drawn. The paper does not say.
    pub enum Training {
        /// uniformly among the boards
        Uniform = "uniform",
        /// one after another as they occur in games of two random movers, so early boards are more likely
        RandomPlay = "random-play",
        /// as they occur in games of the teacher against a random mover; the teacher plays X and O in turn
        TeacherPlay = "teacher-play",
    }
}

choice! {
    /// A reading: how many stones training boards have. The paper does not say.
    pub enum Stones {
        /// any number, with X to move
        Any = "any",
        /// two X and two O, like the boards from which the paper's match begins
        TwoEach = "two-each",
    }
}

/// Where training boards come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// How training boards are drawn.
    pub training: Training,
    /// How many stones training boards have.
    pub stones: Stones,
}

impl Source {
    /// The defaults.
    pub const USUAL: Self = Self { training: Training::Uniform, stones: Stones::Any };

    /// The indices of all boards that can be drawn, in ascending order.
    #[must_use]
    pub fn pool(self) -> Vec<u32> {
        let all: Vec<u32> = match self.training {
            Training::Uniform | Training::RandomPlay => (0..BOARDS as u32).collect(),
            Training::TeacherPlay => met_by_the_teacher().clone(),
        };
        all.into_iter().filter(|index| self.fits(boards()[*index as usize])).collect()
    }

    /// Whether the board's number of stones is allowed.
    fn fits(self, board: Board) -> bool {
        self.stones == Stones::Any || board.pieces() == 4
    }

    /// The first `count` different boards that occur in games.
    fn met(self, rng: &mut Generator, count: usize) -> Vec<u32> {
        let (mut found, mut seen) = (Vec::with_capacity(count), [false; BOARDS]);
        for side in Side::BOTH.into_iter().cycle() {
            let taught = (self.training == Training::TeacherPlay).then_some(side);
            let mut board = Board::EMPTY;
            while tic_tac_toe().outcome(board).is_none() {
                if board.to_move() == Side::X && self.fits(board) {
                    let index = index_of(board);
                    if !std::mem::replace(&mut seen[index as usize], true) {
                        found.push(index);
                    }
                    if found.len() == count {
                        return found;
                    }
                }
                let moves: Vec<u8> = cells(moves(taught, board)).collect();
                board = board.play(moves[below(rng, moves.len() as u64) as usize]);
            }
        }
        found
    }
}

/// The index of a board with X to move whose game is not over.
fn index_of(board: Board) -> u32 {
    boards().binary_search(&board).expect("play leads to no other boards") as u32
}

/// The cells that the side to move may take, if the teacher plays the side `taught`.
fn moves(taught: Option<Side>, board: Board) -> u64 {
    if taught == Some(board.to_move()) { teacher::choose(board) } else { tic_tac_toe().legal(board) }
}

/// The boards with X to move that can occur in games of the teacher, in ascending order.
fn met_by_the_teacher() -> &'static Vec<u32> {
    static ALL: LazyLock<Vec<u32>> = LazyLock::new(|| {
        let mut met = BTreeSet::new();
        for side in Side::BOTH {
            let (mut seen, mut waiting) = (BTreeSet::from([Board::EMPTY]), vec![Board::EMPTY]);
            while let Some(board) = waiting.pop() {
                let next = cells(moves(Some(side), board)).map(|cell| board.play(cell));
                let goes_on = next.filter(|board| tic_tac_toe().outcome(*board).is_none());
                waiting.extend(goes_on.filter(|board| seen.insert(*board)));
            }
            met.extend(seen.into_iter().filter(|board| board.to_move() == Side::X).map(index_of));
        }
        met.into_iter().collect()
    });
    &ALL
}

/// The training boards of a replica: `count` different ones, in ascending order. All arms with this source share them.
///
/// # Panics
/// If the source has fewer boards: see [`Source::pool`].
#[must_use]
pub fn training_boards(seed: u64, replica: u32, source: Source, count: usize) -> Vec<u32> {
    let mut rng = shared(seed, replica).text("training boards").rng();
    let mut all = source.pool();
    assert!(count <= all.len(), "{count} training boards, but only {} can come", all.len());
    if source.training == Training::Uniform {
        shuffle(&mut rng, &mut all);
        all.truncate(count);
    } else {
        all = source.met(&mut rng, count);
    }
    all.sort_unstable();
    all
}

/// The random stream that all arms of a replica share.
#[must_use]
pub fn shared(seed: u64, replica: u32) -> Stream {
    Stream::root(seed).text("nndtf").text("shared").word(u64::from(replica))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Source; 6] = {
        const fn of(training: Training, stones: Stones) -> Source {
            Source { training, stones }
        }
        [
            Source::USUAL,
            of(Training::RandomPlay, Stones::Any),
            of(Training::TeacherPlay, Stones::Any),
            of(Training::Uniform, Stones::TwoEach),
            of(Training::RandomPlay, Stones::TwoEach),
            of(Training::TeacherPlay, Stones::TwoEach),
        ]
    };

    /// Other replicas and other seeds get other boards. Every board is from the pool, and none occurs twice.
    #[test]
    fn boards_are_distinct_and_from_their_pool() {
        let sizes = ALL.map(|source| source.pool().len());
        assert_eq!([sizes[0], sizes[1], sizes[3], sizes[4]], [BOARDS, BOARDS, 756, 756]);
        assert!(sizes[5] < sizes[2] && sizes[2] < BOARDS && sizes[5] >= 100, "{sizes:?}");
        for source in ALL {
            let drawn = training_boards(1, 0, source, 100);
            assert!(drawn.len() == 100 && drawn.is_sorted_by(|one, two| one < two));
            assert!(drawn.iter().all(|index| source.pool().contains(index)));
            assert_eq!(drawn, training_boards(1, 0, source, 100));
            assert_ne!(drawn, training_boards(1, 1, source, 100));
            assert_ne!(drawn, training_boards(2, 0, source, 100));
            assert_eq!(training_boards(1, 0, source, source.pool().len()), source.pool());
        }
    }

    /// Games begin on the empty board, and there are two more stones each time X is to move again.
    #[test]
    fn boards_from_games_are_earlier_than_uniform_ones() {
        let stones = |training: Training| {
            let source = Source { training, stones: Stones::Any };
            let drawn = (0..20).flat_map(|replica| training_boards(1, replica, source, 100));
            drawn.map(|index| boards()[index as usize].pieces()).sum::<u32>()
        };
        let [uniform, random, teacher] = [Training::Uniform, Training::RandomPlay, Training::TeacherPlay].map(stones);
        assert!(random < uniform - 1000 && teacher < uniform, "{uniform} {random} {teacher}");
        assert!(training_boards(1, 0, Source { training: Training::RandomPlay, ..Source::USUAL }, 5).contains(&0));
    }

    /// In games of the teacher, one side takes only cells that the teacher chooses.
    #[test]
    fn the_teachers_moves_reach_its_boards() {
        let corner = tic_tac_toe().board_of("XO./.../...").unwrap();
        // The teacher opens in the middle, and it answers a corner with the middle. So neither side of this board is the
        // teacher.
        assert!(!met_by_the_teacher().contains(&index_of(corner)));
        assert!(met_by_the_teacher().contains(&0));
    }
}
