//! The reference implementations: they follow the page's text step by step, on lists. Tests compare the fast code with them.

use super::{
    agent::Agent,
    couple::Tally,
    rule::{CELLS, Need, Rule},
    strength::OutcomeShares,
};
use evoxo_common::rng::{Generator, below};
use evoxo_games::board::{Board, Outcome, Side, cells, tic_tac_toe};

/// The same as [`super::couple::play`].
pub fn play(agents: &mut [Agent; 2], games: u32, rng: &mut Generator) -> Tally {
    let first = below(rng, 2) as usize;
    let mut tally = Tally::default();
    for number in 0..games as usize {
        let beginner = (first + number) % 2;
        let (outcome, used) = game(agents, beginner, rng, &mut tally);
        let winner = match outcome {
            Outcome::Draw => {
                tally.draws += 1;
                continue;
            }
            Outcome::Win(Side::X) => beginner,
            Outcome::Win(Side::O) => 1 - beginner,
        };
        tally.points += if winner == 0 { 1 } else { -1 };
        for (agent, rule) in used {
            agents[agent].weights[rule] += if agent == winner { 1 } else { -1 };
        }
    }
    tally
}

/// Plays one game. Returns the outcome and the rules that each agent used.
fn game(
    agents: &[Agent; 2],
    beginner: usize,
    rng: &mut Generator,
    tally: &mut Tally,
) -> (Outcome, Vec<(usize, usize)>) {
    let (mut board, mut used) = (Board::EMPTY, Vec::new());
    loop {
        if let Some(outcome) = tic_tac_toe().outcome(board) {
            return (outcome, used);
        }
        let mover = if board.to_move() == Side::X { beginner } else { 1 - beginner };
        let candidates = candidates(&agents[mover], board);
        let mut lot = |options: usize| if options == 1 { 0 } else { below(rng, options as u64) as usize };
        let cell = match candidates.as_slice() {
            [] => {
                let empty: Vec<u8> = cells(tic_tac_toe().legal(board)).collect();
                empty[lot(empty.len())]
            }
            several => {
                let rule = several[lot(several.len())];
                used.push((mover, rule));
                tally.rule_moves += 1;
                agents[mover].rules[rule].to()
            }
        };
        tally.moves += 1;
        if tic_tac_toe().legal(board) >> cell & 1 == 0 {
            return (Outcome::Win(board.to_move().other()), used);
        }
        board = board.play(cell);
    }
}

/// The page's four steps: the matching rules, then those of the highest priority, then those of the highest weight.
fn candidates(agent: &Agent, board: Board) -> Vec<usize> {
    let matching: Vec<usize> = (0..agent.rules.len()).filter(|rule| matches(agent.rules[*rule], board)).collect();
    let highest = matching.iter().map(|rule| agent.rules[*rule].priority()).max();
    let first: Vec<usize> =
        matching.into_iter().filter(|rule| Some(agent.rules[*rule].priority()) == highest).collect();
    let heaviest = first.iter().map(|rule| agent.weights[*rule]).max();
    first.into_iter().filter(|rule| Some(agent.weights[*rule]) == heaviest).collect()
}

/// Compares letter by letter. If the cell that the rule moves to has `*`, that cell must be empty.
fn matches(rule: Rule, board: Board) -> bool {
    let (own, other) = (board.stones(board.to_move()), board.stones(board.to_move().other()));
    (0..CELLS as u8).all(|cell| match (own >> cell & 1, other >> cell & 1, rule.need(cell)) {
        (0, 0, need) => matches!(need, Need::Empty | Need::Any),
        (_, _, Need::Any) => rule.to() != cell,
        (1, _, need) => need == Need::Own,
        (_, _, need) => need == Need::Other,
    })
}

/// The same as [`super::strength::odds`], but walks every game and stores nothing.
#[must_use]
pub fn odds(agent: &Agent, side: Side, board: Board) -> OutcomeShares {
    match tic_tac_toe().outcome(board) {
        Some(Outcome::Draw) => return OutcomeShares { win: 0.0, draw: 1.0, loss: 0.0 },
        Some(Outcome::Win(winner)) if winner == side => return OutcomeShares { win: 1.0, draw: 0.0, loss: 0.0 },
        Some(Outcome::Win(_)) => return OutcomeShares { win: 0.0, draw: 0.0, loss: 1.0 },
        None => {}
    }
    let candidates = if board.to_move() == side { candidates(agent, board) } else { Vec::new() };
    let moves: Vec<u8> = match candidates.as_slice() {
        [] => cells(tic_tac_toe().legal(board)).collect(),
        rules => rules.iter().map(|rule| agent.rules[*rule].to()).collect(),
    };
    let after = |cell: &u8| match tic_tac_toe().legal(board) >> cell & 1 {
        0 => OutcomeShares { win: 0.0, draw: 0.0, loss: 1.0 },
        _ => odds(agent, side, board.play(*cell)),
    };
    let parts: Vec<OutcomeShares> = moves.iter().map(after).collect();
    let mean = |part: fn(&OutcomeShares) -> f64| parts.iter().map(part).sum::<f64>() / parts.len() as f64;
    OutcomeShares { win: mean(|odds| odds.win), draw: mean(|odds| odds.draw), loss: mean(|odds| odds.loss) }
}
