//! Players answer every position with a reason, find their game, and are refused with a sentence.

use super::*;
use evoxo_common::{
    board::Outcome,
    card::Card,
    experiment::{
        invincible::optimum::optimum,
        nndtf::network as nndtf,
        rules::rule::read,
        ternary::player::{Alphabet, Code},
    },
    net::{Architecture, First},
    ratio::Ratio,
};

fn who(name: &str) -> Who {
    Who { name: name.into(), game: None, depth: None, behind_name: false, seed: Some(1) }
}

fn answer(table: &TableGenome, board: Board) -> Answer {
    table_answer(table, Position::of(tic_tac_toe(), board))
}

/// Plays every game against anyone, and counts those that the player loses.
fn lost(player: &TableGenome, side: Side, board: Board) -> u64 {
    let game = tic_tac_toe();
    match game.outcome(board) {
        Some(outcome) => u64::from(outcome == Outcome::Win(side.other())),
        None if board.to_move() == side => lost(player, side, board.play(answer(player, board).cell)),
        None => cells(game.legal(board)).map(|cell| lost(player, side, board.play(cell))).sum(),
    }
}

#[test]
fn whoever_is_proven_unbeatable_loses_to_nobody() {
    for side in Side::BOTH {
        let best = optimum(side, Ratio::from(100)).player;
        assert!(best.audit().unbeatable());
        assert_eq!(lost(&best, side, Board::EMPTY), 0);
    }
}

#[test]
fn a_move_comes_with_its_reason() {
    let table = optimum(Side::O, Ratio::from(100)).player;
    for (board, cell, why) in
        [("XX./OO./X..", 5, COMPLETES), ("XX./.O./...", 2, BLOCKS), ("X../.../...", 4, "its table says so")]
    {
        let board = tic_tac_toe().board_of(board).unwrap();
        assert_eq!(answer(&table, board), Answer { cell, why: why.into() }, "{board:?}");
    }
}

/// Also on boards that no play leads to, which a person may set up in an engine.
#[test]
fn every_board_has_an_answer() {
    let game = tic_tac_toe();
    for (side, boards) in [(Side::X, 2423), (Side::O, 2097)] {
        let table = TableGenome::random(side, &mut Stream::root(1).rng());
        let all = (0..512).flat_map(|x| (0..512).map(move |o| Board { x, o })).filter(|board| {
            let extra = board.x.count_ones().checked_sub(board.o.count_ones());
            board.x & board.o == 0 && matches!(extra, Some(0 | 1)) && board.to_move() == side
        });
        let open = all.filter(|board| game.outcome(*board).is_none());
        let answered = open.filter(|board| game.legal(*board) >> answer(&table, *board).cell & 1 == 1);
        assert_eq!(answered.count(), boards, "{side:?}");
    }
}

/// The teacher against anyone: as X it is never beaten, as its audit proves; and it knows its own game.
#[test]
fn the_teacher_plays_as_it_scores() {
    let mut teacher = who("teacher").find().unwrap();
    assert_eq!(teacher.geometry.shape(), tic_tac_toe().shape());
    let board = tic_tac_toe().board_of("..X/OXX/OO.").unwrap();
    let answer = teacher.answer(Position::of(tic_tac_toe(), board));
    assert_eq!(answer, Answer { cell: 8, why: "its score is 873324, the highest".into() });
    let elsewhere = Who { game: Some(Game::Qubic), ..who("teacher") }.find();
    assert!(elsewhere.is_err_and(|error| error.to_string() == "teacher plays tic-tac-toe, not qubic"));
}

/// A network of `nndtf` that is read from a card plays both sides to the end.
#[test]
fn a_network_with_double_transfer_functions_plays() {
    let network = nndtf::Network {
        kind: nndtf::Kind::Double,
        coupling: nndtf::Coupling { sweeps: 1 },
        numbering: nndtf::Numbering::LeftToRight,
    };
    let player = NetworkPlayer::new(network, network.random(&mut Stream::root(1).rng())).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("double.json");
    std::fs::write(&file, Card::from(Player::Nndtf(player.clone())).write("double").0).unwrap();
    let mut opponent = who(file.to_str().unwrap()).find().unwrap();
    assert_eq!(opponent.name, "nndtf network");
    let mut position = Position::START;
    while opponent.geometry.outcome(position.board()).is_none() {
        let answer = opponent.answer(position);
        assert_eq!(Some(answer.cell), player.choose(position.board()));
        position = position.play(opponent.geometry, answer.cell);
    }
    assert!(position.board().pieces() >= 5);
}

#[test]
fn built_in_players_play_every_game_to_its_end() {
    for game in Game::ALL {
        for name in ["random", "filtered", "benchmark", "alpha-beta"] {
            let mut opponent = Who { game: Some(game), depth: (name == "alpha-beta").then_some(1), ..who(name) };
            opponent.seed = Some(7);
            let mut opponent = opponent.find().unwrap();
            let mut position = Position::START;
            while opponent.geometry.outcome(position.board()).is_none() {
                let answer = opponent.answer(position);
                position = position.play(opponent.geometry, answer.cell);
            }
            assert!(position.board().pieces() >= 5, "{name} at {game:?}");
        }
    }
}

#[test]
fn a_pair_plays_one_game() {
    let games = |names: [&str; 2], game| pair(names, game).map(|pair| pair.map(|player| player.game));
    assert_eq!(games(["random", "benchmark"], None).unwrap(), [Game::ScoreFour; 2]);
    assert_eq!(games(["random", "alpha-beta:2"], Some(Game::Qubic)).unwrap(), [Game::Qubic; 2]);
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, network: Network| {
        let path = directory.path().join(name);
        std::fs::write(&path, network.to_file()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let network = |geometry: &Geometry| {
        let (shape, first) = (geometry.shape(), First::Dense { units: 3 });
        let activation = Activation::Logistic;
        let architecture = Architecture { shape, first, second: 0, biases: false, activation, shared: false };
        Network { architecture, weights: architecture.initial(Stream::root(1)) }
    };
    let [four, solid] =
        [file("four.safetensors", network(connect_four())), file("solid.safetensors", network(qubic()))];
    assert_eq!(games(["random", &four], None).unwrap(), [Game::ConnectFour; 2]);
    assert_eq!(games([&format!("{solid}:1"), "filtered"], None).unwrap(), [Game::Qubic; 2]);
    let sentence = games([&four, &solid], None).unwrap_err().to_string();
    assert!(
        sentence.contains("plays connect-four, but") && sentence.contains("plays qubic: name players of one game"),
        "{sentence}"
    );
    assert_eq!(games(["perfect", "random"], None).unwrap(), [Game::TicTacToe; 2]);
    assert!(games(["perfect", &four], None).unwrap_err().to_string().contains("but "));
    assert!(games(["random:2", "benchmark"], None).unwrap_err().to_string().contains("does not look ahead"));
}

/// A network's values do not depend on the order in which its board was put up, and look-ahead finds a win.
#[test]
fn a_network_answers_any_position() {
    let architecture = Architecture {
        shape: score_four().shape(),
        first: First::Lines { detectors: 4 },
        second: 32,
        biases: true,
        activation: Activation::Logistic,
        shared: false,
    };
    let weights = architecture.initial(Stream::root(5));
    let position =
        [48, 63, 49, 62, 50].into_iter().fold(Position::START, |position, cell| position.play(score_four(), cell));
    let network = Network { architecture, weights };
    let think = |depth: Option<u32>, exact_wins: bool, position: Position| {
        Thinker::new(&network, exact_wins).answer(score_four(), position, depth)
    };
    let greedy = think(None, true, position);
    assert!(greedy.why.starts_with("it values this at"), "{}", greedy.why);
    assert!(position.legal(score_four()) >> greedy.cell & 1 == 1);
    let position = position.play(score_four(), 61);
    assert_eq!(think(Some(2), false, position), Answer { cell: 51, why: "it sees a win".into() });
    // A win that it has not learnt to value it takes only if its card says that wins are exact.
    let mut networks = (0..20).map(|seed| Network { architecture, weights: architecture.initial(Stream::root(seed)) });
    let greedy = |network: &Network, exact_wins| Thinker::new(network, exact_wins).answer(score_four(), position, None);
    let blind = networks.find(|network| greedy(network, false).cell != 51).unwrap();
    assert_eq!(greedy(&blind, true), Answer { cell: 51, why: COMPLETES.into() });
}

/// The card beside a network's file says how it moves; the file alone does not.
#[test]
fn a_card_says_whether_wins_are_exact() {
    let (first, activation) = (First::Dense { units: 3 }, Activation::Logistic);
    let shape = tic_tac_toe().shape();
    let architecture = Architecture { shape, first, second: 0, biases: false, activation, shared: false };
    let network = Network { architecture, weights: architecture.initial(Stream::root(1)) };
    let mut card = Card::from(Player::Network(network));
    card.about.insert("wins".into(), "exact".into());
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let write = |card: &Card| {
        let (text, file) = card.write("n");
        let (name, bytes) = file.unwrap();
        std::fs::write(path("n.json"), text).and_then(|()| std::fs::write(path(&name), bytes)).unwrap();
    };
    let exact = |name: &str| match who(path(name).to_str().unwrap()).find().map(|found| found.skill) {
        Ok(Skill::Network(thinker)) => Ok(thinker.exact_wins),
        Ok(_) => panic!("it is a network"),
        Err(why) => Err(why.to_string()),
    };
    write(&card);
    assert_eq!((exact("n.json").unwrap(), exact("n.safetensors").unwrap()), (true, false));
    card.about.insert("wins".into(), "never".into());
    write(&card);
    let sentence = exact("n.json").unwrap_err();
    assert!(sentence.contains("n.json: the card's wins are \"never\""), "{sentence}");
}

/// It never loses, whatever the other does, and does not always play the same.
#[test]
fn the_perfect_player_never_errs() {
    let mut perfect = who("perfect").find().unwrap();
    let geometry = perfect.geometry;
    let mut first_moves = 0_u64;
    for seed in 0..200 {
        let mut rng = Stream::root(seed).rng();
        let mut position = Position::START;
        let side = Side::BOTH[seed as usize % 2];
        while geometry.outcome(position.board()).is_none() {
            let own = position.to_move() == side;
            let cell = if own { perfect.choose(position, &mut rng) } else { random(position, geometry, &mut rng) };
            first_moves |= u64::from(own && position == Position::START) << cell;
            position = position.play(geometry, cell);
        }
        assert_ne!(geometry.outcome(position.board()), Some(Outcome::Win(side.other())), "{position:?}");
    }
    assert_eq!(first_moves, geometry.cells(), "all of them keep the draw");
    let forced = [0, 4, 8, 2].into_iter().fold(Position::START, |position, cell| position.play(geometry, cell));
    let answer = perfect.answer(forced);
    assert_eq!((answer.cell, answer.why.as_str()), (6, WIN), "a block that makes two threats");
}

/// It plays its side only, turns its answers with the board, and leaves to chance where its string names a taken cell.
#[test]
fn a_string_plays_by_its_letters() {
    let code = Code { side: Side::O, strings: Strings::Short, alphabet: Alphabet::Nine };
    let card = Card::from(Player::Ternary(Ternary { code, genome: vec![8; code.len()] }));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("o.json");
    std::fs::write(&path, card.write("o").0).unwrap();
    let mut string = who(path.to_str().unwrap()).find().unwrap();
    assert_eq!((string.name.as_str(), string.side, string.game), ("string O", Some(Side::O), Game::TicTacToe));
    assert!(string.by_chance() && !string.plays_any());
    let mut answer = |board: &str| {
        let Answer { cell, why } = string.answer(Position::of(tic_tac_toe(), tic_tac_toe().board_of(board).unwrap()));
        (cell, why)
    };
    // The chapter's cell 8 is the corner on the lower left.
    assert_eq!(answer(".../.X./..."), (6, "its string says so".into()));
    assert_eq!(answer("XX./.O./..."), (2, BLOCKS.into()));
    assert_eq!(answer("XX./OO./X.."), (5, COMPLETES.into()));
    let lots: Vec<(u8, String)> = (0..30).map(|_| answer(".../.../X..")).collect();
    assert!(lots.iter().all(|(cell, why)| *cell != 6 && why.starts_with("by chance")), "{lots:?}");
    assert!(lots.windows(2).any(|two| two[0] != two[1]));
}

#[test]
fn what_is_no_opponent_is_refused() {
    let sentence = |who: Who| who.find().map(|_| ()).unwrap_err().to_string();
    assert!(sentence(who("bencmark")).contains("no player \"bencmark\""));
    assert!(sentence(who("nowhere/card.json")).contains("no player \"nowhere/card.json\" and no file"));
    assert_eq!(sentence(Who { depth: Some(2), ..who("random") }), "random does not look ahead: leave out --depth");
    let behind = |one: &str, two: &str| pair([one, two], None).map(|_| ()).unwrap_err().to_string();
    assert_eq!(behind("random:3", "random"), "random does not look ahead: leave out :3");
    assert_eq!(behind("alpha-beta:9", "random"), "alpha-beta:9 looks 9 plies ahead: give 1 to 6 plies");
    let large = sentence(Who { game: Some(Game::Qubic), ..who("perfect") });
    assert!(large.starts_with("perfect plays tic-tac-toe, not qubic: give alpha-beta"), "{large}");
}

#[test]
fn an_agent_of_rules_names_the_rule_it_follows() {
    let rules = ["PPV******3", "V********1"].map(|text| read(text, 1).unwrap());
    let mut agent = Agent::newborn(rules.to_vec());
    agent.weights = vec![4, -1];
    let rng = &mut Stream::root(1).rng();
    let mut answer =
        |board| agent_answer(&agent, Position::of(tic_tac_toe(), tic_tac_toe().board_of(board).unwrap()), rng);
    let (wins, begins) = (answer("XX./OO./..."), answer("OO./XX./X.."));
    assert_eq!((wins.cell, wins.why.as_str()), (2, "its rule PPV******3 says so (priority 1, weight 4)"));
    assert_eq!(begins.cell, 2, "O sees the board with its own eyes");
    assert_eq!(answer(".../.X./...").cell, 0);
    let lots: Vec<Answer> = (0..30).map(|_| answer("X../.../...")).collect();
    assert!(lots.iter().all(|lot| lot.cell > 0 && lot.why.starts_with("by chance")), "{lots:?}");
    assert!(lots.windows(2).any(|two| two[0] != two[1]));
}

/// Found by its file, it plays both sides of its own game, and leaves something to chance.
#[test]
fn an_agent_of_rules_is_found_by_its_card() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.json");
    let agent = Agent::newborn(vec![read("V********1", 1).unwrap()]);
    std::fs::write(&path, Card::from(Player::Rules(agent)).write("agent").0).unwrap();
    let name = path.to_str().unwrap();
    let mut opponent = who(name).find().unwrap();
    assert_eq!((opponent.game, opponent.side, opponent.name.as_str()), (Game::TicTacToe, None, "rules"));
    assert!(opponent.by_chance());
    assert_eq!(opponent.answer(Position::of(tic_tac_toe(), Board::EMPTY)).cell, 0);
    let [_, random] = pair([name, "random"], None).unwrap();
    assert_eq!(random.game, Game::TicTacToe);
    let deep = Who { depth: Some(2), ..who(name) };
    assert!(deep.find().is_err_and(|why| why.to_string().contains("does not look ahead")));
    let elsewhere = Who { game: Some(Game::Qubic), ..who(name) };
    assert!(elsewhere.find().is_err_and(|why| why.to_string().contains("plays tic-tac-toe, not qubic")));
}
