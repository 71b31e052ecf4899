//! An agent: a list of rules with weights, and how the agent chooses among them.
//!
//! From the matching rules the agent takes those of the highest priority, from these those of the highest weight, and then
//! draws one of them. If no rule matches, it draws any empty cell.

use super::rule::{CELLS, Rule};
use evoxo_games::{
    board::{Board, Side},
    odds::{Exact, Subject},
};

/// The most rules of an agent. The page sets no bound, but more rules would not fit an agent's card and tasks.
pub const RULES_MAX: usize = 1024;

/// An agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// Games won minus games lost.
    pub weight: i32,
    /// At most [`RULES_MAX`].
    pub rules: Vec<Rule>,
    /// For each rule: games won in which it was used, minus games lost.
    pub weights: Vec<i32>,
}

impl Agent {
    /// A new agent with these rules, before its first game.
    #[must_use]
    pub fn newborn(rules: Vec<Rule>) -> Self {
        Self { weight: 0, weights: vec![0; rules.len()], rules }
    }

    /// The rules among which the side with these stones draws its move, in the order of the list; empty if no rule matches.
    #[must_use]
    pub fn candidates(&self, own: u32, other: u32) -> Vec<usize> {
        let matching: Vec<usize> = (0..self.rules.len()).filter(|rule| self.rules[*rule].matches(own, other)).collect();
        let rank = |rule: &usize| (self.rules[*rule].priority(), self.weights[*rule]);
        let highest = matching.iter().map(rank).max();
        matching.into_iter().filter(|rule| Some(rank(rule)) == highest).collect()
    }

    /// How likely the agent takes each cell: integer shares, and their sum.
    #[must_use]
    pub fn odds(&self, own: u32, other: u32) -> ([u32; CELLS], u32) {
        let mut shares = [0; CELLS];
        for rule in self.candidates(own, other) {
            shares[usize::from(self.rules[rule].to())] += 1;
        }
        if shares == [0; CELLS] {
            shares = std::array::from_fn(|cell| u32::from((own | other) >> cell & 1 == 0));
        }
        (shares, shares.iter().sum())
    }

    /// The cells that the agent may take when this side is to move, as a mask.
    #[must_use]
    pub fn choices(&self, board: Board) -> u64 {
        let side = board.to_move();
        let (shares, _) = self.odds(board.stones(side) as u32, board.stones(side.other()) as u32);
        (0..CELLS).map(|cell| u64::from(shares[cell] > 0) << cell).sum()
    }

    /// All games that the agent can lose as one side, whatever it draws and the opponent plays, or the proof that there are
    /// none. Exact odds treat all cells that the agent may choose as equally likely; [`super::strength::odds`] computes
    /// the true odds.
    #[must_use]
    pub fn exact(&self, side: Side) -> Exact {
        let choose = Box::new(|board| self.choices(board));
        Subject { side, filtered: false, choose }.exact().expect("an agent chooses among the empty cells of any board")
    }

    /// The agent's rules by descending weight, then by descending priority, then in the order of the list.
    #[must_use]
    pub fn heaviest_first(&self) -> Vec<(Rule, i32)> {
        let mut rules: Vec<(Rule, i32)> = self.rules.iter().copied().zip(self.weights.iter().copied()).collect();
        rules.sort_by_key(|(rule, weight)| std::cmp::Reverse((*weight, rule.priority())));
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::read;
    use super::*;

    fn agent(rules: &[(&str, u32, i32)]) -> Agent {
        let read = |(text, priority, _): &(&str, u32, i32)| read(text, *priority).unwrap();
        let weights = rules.iter().map(|(_, _, weight)| *weight).collect();
        Agent { weights, ..Agent::newborn(rules.iter().map(read).collect()) }
    }

    /// Follows the page's four steps one by one.
    #[test]
    fn priority_precedes_weight_and_weight_precedes_chance() {
        let rules = [
            ("P********2", 1, 9),
            ("*********3", 2, -1),
            ("*V*******2", 2, 0),
            ("V********1", 3, 5),
            ("***V*****4", 2, 0),
        ];
        let agent = agent(&rules);
        assert_eq!(agent.candidates(0, 0), [3], "the highest priority wins although another rule is heavier");
        assert_eq!(agent.candidates(1, 0), [2, 4], "the highest weight among these wins");
        assert_eq!(agent.odds(1, 0), ([0, 1, 0, 1, 0, 0, 0, 0, 0], 2));
        assert_eq!(agent.candidates(1, 2), [4], "the other's cell is taken");
        assert_eq!(agent.candidates(1, 2 | 8), [1], "a lighter rule is better than none");
        assert_eq!(agent.candidates(1, 2 | 4 | 8), Vec::<usize>::new());
        assert_eq!(
            agent.odds(1, 2 | 4 | 8),
            ([0, 0, 0, 0, 1, 1, 1, 1, 1], 5),
            "without a rule any empty cell is chosen"
        );
    }

    /// An agent without rules may play any game. An agent that always begins in the centre plays fewer than a ninth of them.
    #[test]
    fn the_proof_counts_all_random_choices() {
        let random = Agent::default().exact(Side::X);
        assert_eq!(random.losing_lines, 77_904, "games that O wins, of all 255,168");
        let centre = agent(&[("VVVVVVVVV5", 3, 0)]);
        let exact = centre.exact(Side::X);
        assert!(0 < exact.losing_lines && exact.losing_lines < 77_904 / 9, "{}", exact.losing_lines);
    }

    #[test]
    fn rules_are_sorted_by_weight() {
        let agent = agent(&[("V********1", 0, -2), ("V********1", 1, 3), ("*V*******2", 2, 3), ("**V******3", 2, 3)]);
        let texts: Vec<String> =
            agent.heaviest_first().iter().map(|(rule, weight)| format!("{rule} {weight}")).collect();
        assert_eq!(texts, ["*V*******2 3", "**V******3 3", "V********1 3", "V********1 -2"]);
    }
}
