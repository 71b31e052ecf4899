//! A network of experiment `nndtf` as part of its card.

use serde_json::{Map, Value};

use super::{Entries, brief};
use crate::experiment::nndtf::network::{Coupling, Kind, Network, NetworkPlayer, Numbering, SWEEPS_MAX};

/// The keys that belong to the player.
pub(super) const KEYS: [&str; 5] = ["kind", "network", "sweeps", "numbering", "genes"];

const KINDS: [(&str, Kind); 2] = [("double", Kind::Double), ("traditional", Kind::Traditional)];
const NUMBERINGS: [(&str, Numbering); 2] =
    [("left-to-right", Numbering::LeftToRight), ("right-to-left", Numbering::RightToLeft)];

/// The player of a card. `sweeps` and `numbering` may be left out: 1, and from left to right.
pub(super) fn read(entries: &Entries) -> Result<NetworkPlayer, String> {
    let kind =
        word(entries, "network", &KINDS)?.ok_or("the card has no \"network\": give \"double\" or \"traditional\"")?;
    let numbering = word(entries, "numbering", &NUMBERINGS)?.unwrap_or(Numbering::LeftToRight);
    let sweeps = match entries.get("sweeps") {
        None => 1,
        Some(value) => match value.as_u64() {
            Some(sweeps) if (1..=u64::from(SWEEPS_MAX)).contains(&sweeps) => sweeps as u32,
            _ => return Err(format!("the card's sweeps are {}, not 1 to {SWEEPS_MAX}", brief(value))),
        },
    };
    let genes = entries.get("genes").and_then(Value::as_array).ok_or("the card has no \"genes\", a list of numbers")?;
    let gene = |(at, value): (usize, &Value)| {
        let gene = value.as_f64().map(|gene| gene as f32).filter(|gene| gene.is_finite());
        gene.ok_or_else(|| {
            format!("the card's genes: gene {at} is {}, which is not a number from -1 to 1", brief(value))
        })
    };
    let genes = genes.iter().enumerate().map(gene).collect::<Result<Vec<f32>, String>>()?;
    NetworkPlayer::new(Network { kind, coupling: Coupling { sweeps }, numbering }, genes)
        .map_err(|why| format!("the card's genes: {why}"))
}

/// The value that a key's word stands for.
fn word<T: Copy>(entries: &Entries, key: &str, words: &[(&str, T)]) -> Result<Option<T>, String> {
    let Some(value) = entries.get(key) else { return Ok(None) };
    let found = words.iter().find(|(word, _)| value == word);
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let problem = || format!("the card's {key} is {}, not one of {}", brief(value), names.join(", "));
    found.map(|(_, meant)| Some(*meant)).ok_or_else(problem)
}

/// The player's keys.
pub(super) fn to_map(player: &NetworkPlayer) -> Map<String, Value> {
    let network = player.network();
    fn name<T: PartialEq>(words: &[(&'static str, T)], meant: T) -> &'static str {
        words.iter().find(|(_, other)| *other == meant).map_or("", |(word, _)| *word)
    }
    let values = [
        "nndtf".into(),
        name(&KINDS, network.kind).into(),
        network.coupling.sweeps.into(),
        name(&NUMBERINGS, network.numbering).into(),
        decimals(player.genes()),
    ];
    KEYS.map(String::from).into_iter().zip(values).collect()
}

/// Numbers as the shortest decimals that stand for them.
pub(crate) fn decimals(numbers: &[f32]) -> Value {
    let decimal = |number: &f32| number.to_string().parse::<f64>().expect("Rust reads its own numbers");
    numbers.iter().map(decimal).map(Value::from).collect()
}

#[cfg(test)]
mod tests {
    use crate::{
        card::{Card, Player},
        experiment::nndtf::network::{Coupling, Kind, Network, NetworkPlayer, Numbering},
        rng::Stream,
    };

    fn read(text: &str) -> Result<Card, String> {
        Card::read(text, |_| panic!("it has no file beside it"))
    }

    #[test]
    fn a_card_is_read_as_it_was_written() {
        for (kind, sweeps, numbering) in
            [(Kind::Double, 3, Numbering::RightToLeft), (Kind::Traditional, 1, Numbering::LeftToRight)]
        {
            let network = Network { kind, coupling: Coupling { sweeps }, numbering };
            let genes = network.random(&mut Stream::root(1).rng());
            let card = Card::from(Player::Nndtf(NetworkPlayer::new(network, genes).unwrap()));
            let (text, file) = card.write("one");
            assert_eq!((read(&text), file), (Ok(card), None));
        }
    }

    #[test]
    fn what_is_no_player_is_refused_with_a_sentence() {
        let genes = vec!["0.5"; 89].join(", ");
        let card = |rest: &str| read(&format!("{{\"kind\": \"nndtf\", {rest}}}")).map(|_| ()).unwrap_err();
        let good = format!("\"network\": \"traditional\", \"genes\": [{genes}]");
        assert!(read(&format!("{{\"kind\": \"nndtf\", {good}}}")).is_ok());
        insta::assert_snapshot!(
            [
                card("\"network\": \"double\""),
                card(&format!("\"genes\": [{genes}]")),
                card(&format!("\"network\": \"treble\", \"genes\": [{genes}]")),
                card(&good.replace("traditional", "double")),
                card(&good.replacen("0.5", "1.5", 1)),
                card(&good.replacen("0.5", "null", 1)),
                card(&good.replacen("0.5, 0.5", "0.5, 1e300", 1)),
                card(&format!("{good}, \"coupling\": \"final\"")),
                card(&format!("{good}, \"sweeps\": 65")),
                card(&format!("{good}, \"numbering\": 7")),
            ]
            .join("\n")
        );
    }
}
