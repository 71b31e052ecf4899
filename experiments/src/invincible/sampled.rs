//! Plays sampled games of a table player against a random mover, both with the filter, as fast as possible.
//!
//! A player is compiled to a table of states. A state is a point of the game (see [`Target`]). It has the number of equally
//! likely next states, and the place where they are listed. A decision has the next states of the point that its gene leads
//! to, and an end of the game has only itself. Every game therefore takes the same number of steps without a branch, and
//! several games are played side by side to hide the latency of memory.
//!
//! **Random choices.** Game i of a player takes the i-th word of its generator. Each choice between n options multiplies the
//! word by n: the upper half of the 128-bit product is the option, and the lower half is the word for the next choice. The
//! numbers of options in a game multiply to at most 945, so each outcome's probability is within 945 / 2^64 of its exact
//! value.

use evoxo_common::rng::Generator;
use evoxo_games::board::{Outcome, Side};
use evoxo_games::table::{
    Score,
    graph::{Graph, Target},
};
use rand_core::Rng;
use std::sync::LazyLock;

/// The number of games that are played side by side.
const LANES: usize = 8;

/// Upper bounds for the numbers of states and of list entries. They are powers of two, so a mask can replace the check of an
/// index.
const STATES: usize = 256;
const ENTRIES: usize = 1024;

/// The number of next states, and where they are listed.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    first: u16,
    count: u16,
}

/// The states that all players of a side share. Decisions come first, in the order of classes, then the three ends of a
/// game, then the opponent's choices.
#[derive(Debug)]
struct States {
    states: Vec<State>,
    /// The list begins with every state itself, for ends and for decisions that lead to a single state.
    entries: [u16; ENTRIES],
    decisions: usize,
    start: u16,
    steps: usize,
}

/// A player compiled for playing.
#[derive(Clone, Debug)]
pub struct Program {
    shared: &'static States,
    states: [State; STATES],
}

impl States {
    fn of(side: Side) -> &'static Self {
        static STATES: LazyLock<[States; 2]> = LazyLock::new(|| Side::BOTH.map(|side| States::build(Graph::of(side))));
        &STATES[side as usize]
    }

    fn build(graph: &Graph) -> Self {
        let decisions = graph.len();
        let count = decisions + 3 + graph.choices().len();
        let mut entries: Vec<u16> = (0..count as u16).collect();
        let alone = |state: usize| State { first: state as u16, count: 1 };
        let mut states: Vec<State> = (0..decisions + 3).map(alone).collect();
        for choice in graph.choices() {
            states.push(State { first: entries.len() as u16, count: choice.targets.len() as u16 });
            entries.extend(choice.targets.iter().map(|target| state(graph, *target) as u16));
        }
        assert!(states.len() <= STATES && entries.len() <= ENTRIES, "the bounds of the graph are too small");
        entries.resize(ENTRIES, 0);
        Self {
            states,
            entries: entries.try_into().expect("the vector was just given this length"),
            decisions,
            start: state(graph, graph.start()) as u16,
            steps: steps(graph, graph.start()),
        }
    }
}

/// The index of a target's state.
fn state(graph: &Graph, target: Target) -> usize {
    match target {
        Target::Decide(class) => class,
        Target::End(Outcome::Win(side)) if side == graph.side() => graph.len(),
        Target::End(Outcome::Win(_)) => graph.len() + 1,
        Target::End(Outcome::Draw) => graph.len() + 2,
        Target::Choose(choice) => graph.len() + 3 + choice,
    }
}

/// The largest number of steps from a target to the end. A decision and the choice after it are one step.
fn steps(graph: &Graph, target: Target) -> usize {
    let longest = |choice: usize| graph.choices()[choice].targets.iter().map(|next| steps(graph, *next)).max();
    match target {
        Target::End(_) => 0,
        Target::Choose(choice) => 1 + longest(choice).unwrap_or(0),
        Target::Decide(class) => {
            let after = graph.legal_cells(class).iter().filter_map(|cell| graph.after(class, *cell));
            let step = after.map(|target| match target {
                Target::Choose(_) => steps(graph, target),
                _ => 1 + steps(graph, target),
            });
            step.max().unwrap_or(0)
        }
    }
}

impl Program {
    /// Compiles a player.
    ///
    /// # Panics
    /// If these are not the genes of a player of this side; see [`super::table::check`].
    #[must_use]
    pub fn compile(side: Side, genes: &[u8]) -> Self {
        let graph = Graph::of(side);
        let shared = States::of(side);
        assert!(genes.len() == graph.len(), "{} genes for {} boards", genes.len(), graph.len());
        let mut states = [State::default(); STATES];
        states[..shared.states.len()].copy_from_slice(&shared.states);
        for (class, gene) in genes.iter().enumerate() {
            let after = graph.after(class, *gene).expect("the genes were checked to be empty cells");
            states[class] = shared.states[state(graph, after)];
        }
        Self { shared, states }
    }

    /// Plays games and counts the player's wins and losses.
    pub fn play(&self, games: u32, rng: &mut Generator) -> Score {
        let mut score = Score::default();
        for _ in 0..games / LANES as u32 {
            self.games::<LANES>(rng, &mut score);
        }
        for _ in 0..games % LANES as u32 {
            self.games::<1>(rng, &mut score);
        }
        score
    }

    /// Plays N games side by side.
    #[inline(always)]
    fn games<const N: usize>(&self, rng: &mut Generator, score: &mut Score) {
        let mut words: [u64; N] = std::array::from_fn(|_| rng.next_u64());
        let mut at = [self.shared.start; N];
        for _ in 0..self.shared.steps {
            for lane in 0..N {
                let State { first, count } = self.states[usize::from(at[lane]) % STATES];
                let product = u128::from(words[lane]) * u128::from(count);
                words[lane] = product as u64;
                at[lane] = self.shared.entries[(usize::from(first) + (product >> 64) as usize) % ENTRIES];
            }
        }
        for end in at {
            score.wins += u32::from(usize::from(end) == self.shared.decisions);
            score.losses += u32::from(usize::from(end) == self.shared.decisions + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::rng::Stream;
    use evoxo_games::table::{TableGenome, reference};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_match_the_reference(
            side in prop::sample::select(Side::BOTH.to_vec()), seed: u64, games in 0..200_u32
        ) {
            let player = TableGenome::random(side, &mut Stream::root(seed).rng());
            let stream = Stream::root(seed).text("games");
            let fast = Program::compile(side, player.genes()).play(games, &mut stream.rng());
            prop_assert_eq!(fast, reference::sampled(&player, games, &mut stream.rng()));
        }
    }

    /// The limit is six standard deviations of the mean around the exact odds.
    #[test]
    fn counts_agree_with_the_exact_odds() {
        for (side, seed) in Side::BOTH.into_iter().flat_map(|side| (0..10).map(move |seed| (side, seed))) {
            let player = TableGenome::random(side, &mut Stream::root(seed).rng());
            let games = 100_000;
            let score = Program::compile(side, player.genes()).play(games, &mut Stream::root(seed).word(1).rng());
            let exact = reference::exact(&player);
            for (count, share) in [(score.wins, exact.win), (score.losses, exact.loss)] {
                let (share, games) = (share.to_f64(), f64::from(games));
                let deviation = (share * (1.0 - share) * games).sqrt();
                assert!((f64::from(count) - share * games).abs() <= 6.0 * deviation, "{side:?} {seed} {count} {share}");
            }
        }
    }
}
