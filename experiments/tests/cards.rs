//! Cards of all kinds of champions.

use evoxo_common::{
    card::{CARD_BYTES_MAX, Card},
    experiment::Config,
    local,
};
use evoxo_experiments::registry;

/// Reads a card that needs no other file.
fn read(text: &str) -> Result<Card, String> {
    registry().read_card(text, &mut |name| Err(format!("{name} is not there")))
}

/// Every champion's card can be read back.
#[test]
fn champions_of_every_experiment_are_read_back() {
    for (kind, settings) in [
        ("invincible", "population = 8\nfathers = 2\ngenerations = 1\ngames = 10"),
        ("td3d", "network = \"small\"\ngames = 4\ntest_every = 2\ntest_games = 2"),
        ("nndtf", "iterations = 1\nboards = 9"),
        ("rules", "agents = 4\nrules = 4\ngames = 1\ncycles = 1"),
        ("menace", "games = 40"),
        ("ternary", "population = 4\ngenerations = 1\nopponents = 1\nrandom_games = 1"),
    ] {
        let text = format!("experiment = {kind:?}\nreplicas = 1\n[settings]\n{settings}\n");
        let config = Config::parse(&registry(), kind, &text, &[]).unwrap_or_else(|problems| panic!("{problems}"));
        let replicas = local::run(&config).unwrap();
        for card in replicas[0].population().into_iter().chain([replicas[0].champion().expect(kind)]) {
            let (text, file) = card.write("t");
            let bytes = file.map(|(_, bytes)| bytes).unwrap_or_default();
            let read = registry().read_card(&text, &mut |_| Ok(bytes.clone()));
            // Decimals may differ in the last digit.
            let keys = |card: &Card| card.about.keys().cloned().collect::<Vec<_>>();
            let read = read.unwrap_or_else(|why| panic!("{kind}: {why}"));
            assert_eq!(read.champion.write("t"), card.champion.write("t"), "{kind}");
            assert_eq!(keys(&read), keys(&card), "{kind}");
        }
    }
}

#[test]
fn invalid_cards_are_rejected_with_a_reason() {
    let kinds = "only \"candidate\", \"table\", \"menace\", \"nndtf\", \"rules\", \"network\", \"ternary\" are known";
    for (text, says) in [
        ("", "not JSON"),
        ("[1]", "not a card"),
        ("3", "not a card"),
        ("{\"kind\":\"table\"", "not JSON"),
        ("{}", "no \"kind\""),
        (r#"{"kind":"chess","side":"X","moves":{}}"#, kinds),
        (r#"{"kind":1,"side":"X","moves":{}}"#, kinds),
        (r#"{"kind":"rules","rules":["V********1"],"rule":1}"#, "an unknown key \"rule\": leave it out"),
        (r#"{"kind":"table","side":"X","side":"O","moves":{}}"#, "\"side\" twice"),
    ] {
        let sentence = read(text).unwrap_err();
        assert!(sentence.contains(says) && !sentence.contains('\n') && sentence.len() < 500, "{text}: {sentence}");
    }
    assert!(read(&" ".repeat(CARD_BYTES_MAX + 1)).unwrap_err().contains("bytes, more than"));
    assert!(read(&"[".repeat(CARD_BYTES_MAX)).unwrap_err().contains("not a card"));
}
