//! Small leagues: exact figures, pinned games, reports computed again, and inputs that are rejected.

use super::*;
use crate::testing::{digest, parse, problems, run};
use evoxo_common::{
    experiment::{Config, Registry, Replica},
    local,
    task::checked,
};
use messages::Roster;

/// The exact odds of two players, from openings of `plies` plies.
fn odds(roster: &Roster, plies: u32, one: u32, two: u32) -> Vec<f64> {
    let task = Task::of::<ComputeOdds>(&OddsTask { plies, one, two }).sharing(roster.encode_to_vec().into());
    let output = task.run().unwrap();
    assert_eq!(task.check(&output), Ok(output.clone()));
    checked::<ComputeOdds>(&output).odds
}

fn roster(names: &[&str]) -> Roster {
    let player = |name: &&str| messages::Player { name: (*name).into(), x: (*name).into(), o: String::new() };
    Roster { players: names.iter().map(player).collect(), files: Vec::new() }
}

/// Random play from the empty board: X wins 737 of 1,260 games, and 8 of 63 are drawn. Two players that never make a mistake
/// always draw.
#[test]
fn odds_match_known_values() {
    let known = [737.0 / 1260.0, 8.0 / 63.0, 121.0 / 420.0];
    let close = |found: &[f64], known: &[f64]| {
        assert!(found.iter().zip(known).all(|(one, two)| (one - two).abs() < 1e-12), "{found:?}, not {known:?}");
    };
    let all = roster(&["random", "perfect", "alpha-beta:6", "filtered"]);
    let twins = roster(&["random", "random"]);
    close(&odds(&twins, 0, 0, 1), &[known, known].concat());
    // Openings of one ply are chosen at random, so the mean over them is the same.
    close(&odds(&twins, 1, 0, 1), &[known.map(|p| 9.0 * p), known.map(|p| 9.0 * p)].concat());
    close(&odds(&all, 0, 1, 2), &[0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
    // There are 252 openings of three plies. Probabilities add up, and no player does better against the perfect player than
    // the perfect player does against it.
    let found = odds(&all, 3, 1, 3);
    assert!((found.iter().sum::<f64>() - 504.0).abs() < 1e-9, "{found:?}");
    assert!(found[0] > found[2] && found[5] > found[3], "{found:?}");
}

const SCORE_FOUR: &str = "experiment = \"league\"\nreplicas = 1\n\
    players = [{ who = \"random\" }, { who = \"benchmark\" }, { who = \"alpha-beta:1\" }, { who = \"filtered\" }]\n\
    [settings]\ngame = \"score-four\"\nanchor = \"benchmark\"\npairs = 10\n";

#[test]
fn the_reports_of_small_leagues_are_pinned_and_readable() {
    let exact = parse("experiment = \"league\"\nreplicas = 1\n");
    let replicas = run(&exact);
    let report = exact.report(&replicas);
    let text = |report: &evoxo_common::report::Report| {
        let tables: Vec<String> = report.tables.iter().map(ToString::to_string).collect();
        format!("{}\n{}", tables.join("\n"), report.notes.join("\n"))
    };
    insta::assert_snapshot!(format!("{}\n{}", digest(&replicas), text(&report)));
    let played = parse(SCORE_FOUR);
    let replicas = run(&played);
    let report = played.report(&replicas);
    insta::assert_snapshot!(format!("{}\n{}", digest(&replicas), text(&report)));
    assert_eq!(replicas[0].history().len(), 3, "4, 4 and 2 openings");
    assert!(report.json.to_string().contains("\"interval\":["));
    let unmeasured = parse(&SCORE_FOUR.replace("benchmark\"\npairs", "random\"\npairs"));
    let report = unmeasured.report(&run(&unmeasured));
    assert!(!report.json.to_string().contains("\"interval\":["), "random has no point");
    assert!(
        report.notes.iter().any(|note| note.contains("No rating has an interval, because the anchor random")),
        "{:?}",
        report.notes
    );
    let few = parse(&SCORE_FOUR.replace("pairs = 10", "pairs = 9"));
    let report = few.report(&run(&few)).json.to_string();
    assert!(report.contains("\"interval\":null") && !report.contains("\"interval\":["), "{report}");
}

/// A run of 7 openings in rounds of 4 ends with the third opening of a round. A longer league completes that round, so there
/// are 2 rounds, not 3.
#[test]
fn a_longer_league_completes_the_unfinished_round() {
    let [short, long] = [7, 8].map(|pairs| parse(&SCORE_FOUR.replace("pairs = 10", &format!("pairs = {pairs}"))));
    let [shorter, whole] = [&short, &long].map(|config| run(config).remove(0));
    let mut replica = Replica::restore(&long, &Replica::lengthened(&long, shorter.save()).unwrap()).unwrap();
    assert_eq!((replica.rounds(), replica.history().len(), shorter.rounds()), (1, 1, 2));
    let task = GamesTask::decode(replica.plan(0..1)[0].body.clone()).unwrap();
    assert_eq!((task.first_opening, task.openings), (7, 1), "no game is played twice");
    while local::step(&mut replica).unwrap() {}
    assert_eq!((replica.rounds(), replica.digest()), (whole.rounds(), whole.digest()));
    assert_eq!(replica.history(), whole.history());
}

/// A report computed from a result is the same, and a league that has not begun has a report too.
#[test]
fn a_report_can_be_made_from_a_result() {
    for text in ["experiment = \"league\"\nreplicas = 2\n", SCORE_FOUR] {
        let config = parse(text);
        for replicas in [run(&config), evoxo_common::local::start(&config).collect()] {
            let report = config.report(&replicas);
            let arms = report.json["arms"].as_array().unwrap();
            assert_eq!((KIND.report)(&config, arms), Ok(report.clone()));
            let mut cut = arms.clone();
            cut[0]["pairs"] = "X".into();
            assert!((KIND.report)(&config, &cut).unwrap_err().contains("of the result cannot be read"));
            cut[0] = arms[0].clone();
            cut[0]["pairs"].as_array_mut().unwrap().pop();
            assert!((KIND.report)(&config, &cut).unwrap_err().contains("of the result has no results of all pairs"));
        }
    }
}

/// Tables of many players are split to fit on a page, and no player is lost.
#[test]
fn many_players_need_several_tables() {
    let names: Vec<String> = (0..25).map(|number| format!("{{ name = \"p{number}\" }}")).collect();
    let config = parse(&format!("experiment = \"league\"\nplayers = [{}]\n", names.join(", ")));
    let report = config.report(&evoxo_common::local::start(&config).collect::<Vec<_>>());
    let columns: Vec<usize> = report.tables.iter().map(|table| table.header.len()).collect();
    assert_eq!((columns, report.tables[0].title.as_str()), (vec![6, 21, 6], "No games yet"));
    assert!(report.tables.iter().all(|table| table.rows.len() == 25));
    assert!(report.notes[0].starts_with("These groups never met"));
}

/// The games of two players do not depend on the other players of the league.
#[test]
fn games_do_not_depend_on_others() {
    let with = |players: &str| {
        let text = SCORE_FOUR.replace(", { who = \"filtered\" }]", players);
        let config = parse(&text);
        run(&config)[0].save().state
    };
    let (three, four) = (with("]"), with(", { who = \"teacher\" }]".replace("teacher", "filtered").as_str()));
    let [three, four] = [three, four].map(|state| State::decode(state).unwrap().games);
    // The pairs of three players are 0-1, 0-2, 1-2; those of four are 0-1, 0-2, 0-3, 1-2, 1-3, 2-3.
    let of = |games: &Bytes, pairs: usize, wanted: [usize; 3]| -> Vec<u8> {
        games
            .chunks(2 * pairs)
            .flat_map(|block| wanted.into_iter().flat_map(move |p| [block[2 * p], block[2 * p + 1]]))
            .collect()
    };
    assert_eq!(of(&three, 3, [0, 1, 2]), of(&four, 6, [0, 1, 3]));
}

/// Adds files until none is missing.
fn with_files(text: &str, directory: &[(&str, Vec<u8>)]) -> Result<Config, String> {
    let registry: Registry = crate::registry();
    let mut overrides: Vec<(String, String)> = Vec::new();
    loop {
        let config = Config::parse(&registry, "t", text, &overrides).map_err(|problems| problems.to_string())?;
        let Some(path) = config.missing_file() else { return Ok(config) };
        let bytes = directory.iter().find(|(name, _)| *name == path).map(|(_, bytes)| bytes);
        let bytes = bytes.ok_or_else(|| format!("{path} is asked for"))?;
        let said = (KIND.reads.unwrap().settings)(&config.arms[0].settings, bytes).map_err(|refusal| refusal.0)?;
        overrides = said.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    }
}

/// Champions of every kind. The card of a network names another file, and a table plays only one side.
#[test]
fn champions_are_read_from_their_files() {
    use evoxo_common::{card::Card, ratio::Ratio};
    use evoxo_games::{
        board::{Side, tic_tac_toe},
        net::{Activation, Architecture, First, Network},
        table::optimum::optimum,
    };
    let shape = tic_tac_toe().shape();
    let (first, activation) = (First::Dense { units: 5 }, Activation::Tanh);
    let architecture = Architecture { shape, first, second: 0, biases: true, activation, shared: false };
    let network = Network { architecture, weights: architecture.initial(Stream::root(1)) };
    let (card, beside) = Card::new(network).write("net");
    let (beside, weights) = beside.unwrap();
    let table = |side| Card::new(optimum(side, Ratio::from(100)).player).write("t").0.into_bytes();
    let files = [
        ("nets/net.json", card.into_bytes()),
        ("nets/net.safetensors", weights),
        ("x.json", table(Side::X)),
        ("o.json", table(Side::O)),
    ];
    assert_eq!(beside, "net.safetensors");
    let text = "experiment = \"league\"\nreplicas = 1\nplayers = [{ name = \"net\", who = \"nets/net.json:2\" }, \
                { name = \"tables\", who = \"x.json\", as_o = \"o.json\" }, { name = \"O only\", who = \"o.json\" }, \
                { who = \"perfect\" }]\n[settings]\nopenings = 4\n";
    let config = with_files(text, &files).unwrap();
    let report = config.report(&run(&config));
    let pairs = report.json["arms"][0]["pairs"].as_array().unwrap();
    let of = |x: &str, o: &str| pairs.iter().find(|pair| pair["x"] == x && pair["o"] == o).unwrap()["odds"].clone();
    assert_eq!(of("O only", "net"), serde_json::json!([0.0, 0.0, 0.0]), "it has no games as X");
    assert_eq!(of("net", "O only"), of("net", "tables"));
    let whole = of("perfect", "tables");
    let sum: f64 = whole.as_array().unwrap().iter().map(|part| part.as_f64().unwrap()).sum();
    assert!((sum - 756.0).abs() < 1e-9, "{whole}");
    // The configuration is complete, so it can be read again.
    let again = Config::parse(&crate::registry(), "t", &config.to_toml(), &[]).unwrap();
    assert_eq!(again, config);
    let without = with_files(text, &files[..1]).unwrap_err();
    assert_eq!(without, "nets/net.safetensors is asked for");
    let wrong = with_files(&text.replace("nets/net.json:2", "x.json:2"), &files).unwrap_err();
    assert_eq!(wrong, "player \"net\": \"x.json\" does not look ahead: leave out :2");
    let wrong = with_files(&text.replace("\"x.json\"", "\"o.json\""), &files).unwrap_err();
    assert!(wrong.contains("\"o.json\" does not play X"), "{wrong}");
    let broken = with_files(text, &[("nets/net.json", b"{}".to_vec())]).unwrap_err();
    assert!(broken.starts_with("player \"net\": \"nets/net.json\": the card has no \"kind\""), "{broken}");
}

#[test]
fn mistakes_are_named() {
    let mistake = |text: &str| problems(&format!("experiment = \"league\"\n{text}")).to_string();
    let has = |text: &str, part: &str| {
        let found = mistake(text);
        assert!(found.contains(part), "{found}");
    };
    has("players = [{ who = \"random\" }]", "a league needs at least two players");
    has("players = [{ who = \"random\" }, { who = \"random\" }]", "have the name \"random\": give each its own");
    has("[settings]\nanchor = \"nobody\"", "no player is called \"nobody\"");
    has("[settings]\nopenings = 5", "openings of 0 to 4 plies, not 5");
    has("[settings]\ngame = \"qubic\"", "teacher plays only tic-tac-toe");
    has("players = [{ who = \"random:2\" }, { who = \"filtered\" }]", "does not look ahead");
    has("players = [{ who = \"alpha-beta:7\" }, { who = \"filtered\" }]", "give 1 to 6");
    has("files = [{ path = \"a\", data = \"*\" }]", "the file \"a\" is empty or not in base64");
    has("files = [{ path = \"a\", data = \"AA==\" }, { path = \"a\", data = \"AA==\" }]", "is listed twice");
    let many =
        "players = [{ who = \"random\" }, { who = \"filtered\" }]\n[settings]\ngame = \"qubic\"\npairs = 100000\n";
    assert!(parse(&format!("experiment = \"league\"\n{many}")).missing_file().is_none());
    let names: Vec<String> = (0..64).map(|number| format!("{{ name = \"{number}\" }}")).collect();
    has(
        &format!("players = [{}]\n[settings]\ngame = \"qubic\"\npairs = 1000", names.join(", ")),
        "the maximum is 4000000",
    );
}

/// Invalid tasks and states from outside are rejected with a message.
#[test]
fn invalid_tasks_and_states_are_rejected() {
    let shared: Bytes = roster(&["random", "no.json"]).encode_to_vec().into();
    let refusal = |task: Task| task.sharing(shared.clone()).run().unwrap_err().0;
    let games = GamesTask { one: 0, two: 1, openings: 1, ..GamesTask::default() };
    assert_eq!(refusal(Task::of::<Games>(&games)), "the file \"no.json\" is not in the roster");
    assert!(refusal(Task::of::<Games>(&GamesTask { two: 9, ..games })).contains("do not play each other"));
    assert!(refusal(Task::of::<Games>(&GamesTask { openings: 0, ..games })).contains("games from 0 openings"));
    assert!(refusal(Task::of::<Games>(&GamesTask { first_opening: u32::MAX, ..games })).contains("openings"));
    assert!(refusal(Task::of::<ComputeOdds>(&OddsTask { plies: 5, one: 0, two: 1 })).contains("at most 4"));
    let garbage = Task::of::<ComputeOdds>(&OddsTask::default()).sharing(Bytes::from_static(&[0xff; 9]));
    assert!(garbage.run().unwrap_err().0.starts_with("the roster cannot be read"));
    let many = Roster { players: vec![messages::Player::default(); 65], files: Vec::new() };
    let task = Task::of::<ComputeOdds>(&OddsTask::default()).sharing(many.encode_to_vec().into());
    assert!(task.run().unwrap_err().0.starts_with("a roster of 65 players"));
    let long = messages::GamesOutput { games: vec![1; 3].into() }.encode_to_vec();
    assert!(Task::of::<Games>(&games).check(&long.into()).unwrap_err().0.contains("must have 2 bytes"));
    let odd = messages::OddsOutput { odds: vec![f64::NAN; 6] }.encode_to_vec();
    assert!(Task::of::<ComputeOdds>(&OddsTask::default()).check(&odd.into()).is_err());

    let config = parse(SCORE_FOUR);
    let identity = || Identity::new(&config, &config.arms[0], 0);
    let restore = |state: State| League::restore(identity(), state).map(drop);
    let good = State { openings: 4, games: vec![1; 48].into(), odds: Vec::new() };
    assert_eq!(restore(good.clone()), Ok(()));
    // A shorter league ends in this state.
    assert_eq!(restore(State { openings: 3, games: vec![1; 36].into(), ..good.clone() }), Ok(()));
    for bad in [
        State { games: vec![4; 48].into(), ..good.clone() },
        State { games: vec![1; 47].into(), ..good.clone() },
        State { openings: 12, games: vec![1; 144].into(), ..good.clone() },
        State { odds: vec![1.0], ..good },
    ] {
        assert_eq!(restore(bad), Err("the state does not fit the settings".into()));
    }
}
