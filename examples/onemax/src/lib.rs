//! Experiment `onemax`: strings of bits evolve until all are ones. CONTRIBUTING.md, beside evoxo's README, explains each part.

use std::{iter::once, ops::Range, sync::Arc};

use bytes::Bytes;
use evoxo_common::{
    card::{Card, CardKind, Champion, Entries, FileBeside, Found, Load, Showing},
    evolve::{cross, mutate, select},
    experiment::{
        Column, Demand, Experiment, Identity, Kind, standard_headline, standard_report, standard_report_of_result,
    },
    rng::{Stream, chance},
    settings,
    task::{Compute, Refusal, Task, TaskKind, checked},
};
use prost::Message as _;
use serde_json::{Map, Value, json};

/// Everything that evoxo asks about the experiment.
pub const KIND: Kind = Kind {
    name: NAME,
    schema: &SCHEMA,
    columns: &[Column { name: "generation", doc: "from 1" }, Column { name: "ones", doc: "of the best string" }],
    primary_metric: 1,
    tail: |_| 1,
    is_solution: None,
    ranking: None,
    rounds: |settings| Settings::of(settings).generations.into(),
    demand: |settings| Settings::of(settings).demand(),
    start: |identity| Box::new(Search::start(identity)),
    restore: |identity, state| Ok(Box::new(Search::restore(identity, state)?)),
    tasks: &[&COUNT],
    asks: None,
    reads: None,
    complete: None,
    cards: &[CardKind { name: NAME, keys: &["kind", "bits"], about: &[], read: read_card, file: None }],
    plays: &[],
    report: standard_report,
    report_of_result: standard_report_of_result,
    headline: standard_headline,
    kernels: &[],
};

/// The name in experiment files, tasks, random streams and cards.
const NAME: &str = "onemax";

settings! {
    /// Strings of bits that evolve until all bits are ones.
    struct Settings, names Name, schema SCHEMA {
        /// Strings of a generation.
        population: usize = whole(2, 5_000, "100"),
        /// Bits of a string.
        length: usize = whole(2, 1_000, "100"),
        /// Generations; the champion is the best string of the last one.
        generations: u32 = whole(1, 100_000, "100"),
        /// Bits of a child that flip, on average; textbooks take one.
        flips: u64 = whole(0, 1_000, "1"),
        /// Strings of a task.
        slice: usize = execution whole(1, 5_000, "25"),
    }
    check(|_| Vec::new())
}

impl Settings {
    /// What a replica needs at most. In a message a string has a byte for each bit and at most three more.
    fn demand(&self) -> Demand {
        let Self { population, length, generations, slice, .. } = *self;
        let bytes = |strings: usize| 64 + (strings * (length + 3)) as u64;
        let (tasks, task_bytes) = (population.div_ceil(slice) as u64, bytes(slice.min(population)));
        let (output_bytes, state_bytes) = (64 + 2 * slice as u64, bytes(population));
        Demand { tasks, task_bytes, output_bytes, state_bytes, rows: generations.into(), ..Demand::default() }
    }
}

/// Message `Population`: the body of a task, and the state of a replica.
#[derive(Clone, PartialEq, prost::Message)]
struct Population {
    /// Of a state: generations so far. The best string of the last one comes first.
    #[prost(uint32, tag = "1")]
    generation: u32,
    /// Each is a text of 0 and 1.
    #[prost(string, repeated, tag = "2")]
    strings: Vec<String>,
}

/// Message `Ones`: the output of a task, the number of ones of each string.
#[derive(Clone, PartialEq, prost::Message)]
struct Ones {
    #[prost(uint32, repeated, tag = "1")]
    ones: Vec<u32>,
}

fn ones(string: &str) -> u32 {
    string.matches('1').count() as u32
}

/// The task: counts ones. Another should take some ten milliseconds or more; this one takes no time.
enum Count {}
static COUNT: TaskKind = TaskKind::of::<Count>();

impl Compute for Count {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "count";
    type Task = Population;
    type Output = Ones;

    fn run(task: &Population, _: &Bytes) -> Result<Ones, Refusal> {
        Ok(Ones { ones: task.strings.iter().map(|string| ones(string)).collect() })
    }

    fn check(task: &Population, _: &Bytes, output: &Ones) -> Result<(), Refusal> {
        let (strings, counts) = (task.strings.len(), output.ones.len());
        (counts == strings).then_some(()).ok_or_else(|| Refusal(format!("{counts} counts for {strings} strings")))
    }

    fn workload() -> Vec<(Population, Bytes)> {
        vec![(Population { generation: 0, strings: vec!["1101".into(), String::new()] }, Bytes::new())]
    }
}

/// One replica between two rounds. In a round all strings are counted, and the next generation is born.
struct Search {
    settings: Settings,
    /// Every random number comes from a stream below this one, whose name says what the number is for.
    stream: Stream,
    state: Population,
}

impl Search {
    fn start(identity: Identity<'_>) -> Self {
        let settings = Settings::of(identity.settings);
        let stream = Stream::root(identity.seed).text(NAME).text(identity.arm).word(identity.replica.into());
        let mut rng = stream.text("first").rng();
        let mut string = || (0..settings.length).map(|_| if chance(&mut rng, 1, 2) { '1' } else { '0' }).collect();
        let strings = (0..settings.population).map(|_| string()).collect();
        Self { settings, stream, state: Population { generation: 0, strings } }
    }

    fn restore(identity: Identity<'_>, state: &[u8]) -> Result<Self, String> {
        let state = Population::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        let fresh = Self::start(identity);
        let Settings { population, length, generations, .. } = fresh.settings;
        let good = |string: &String| string.len() == length && string.bytes().all(|bit| b"01".contains(&bit));
        let fits = state.strings.len() == population && state.strings.iter().all(good);
        let restored = (fits && state.generation <= generations).then_some(Self { state, ..fresh });
        restored.ok_or("the state does not fit the settings".into())
    }

    /// A child of two parents, each of which is the better one of two strings.
    fn child(&self, ones: &[u32], index: usize) -> String {
        let mut rng = self.stream.word(self.state.generation.into()).text("births").word(index as u64).rng();
        let [mother, father] = [(); 2].map(|()| &self.state.strings[select::binary_tournament(&mut rng, ones)]);
        let [mut child, _] = cross::one_point(&mut rng, mother.as_bytes(), father.as_bytes());
        let rate = (self.settings.flips, self.settings.length as u64);
        mutate::redraw_each(&mut rng, &mut child, rate, |_, _, bit| bit ^ 1);
        String::from_utf8(child).expect("'0' and '1' differ in their last bit")
    }
}

impl Experiment for Search {
    fn tasks(&self) -> usize {
        let Settings { population, generations, slice, .. } = self.settings;
        if self.state.generation == generations { 0 } else { population.div_ceil(slice) }
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        let slices = self.state.strings.chunks(self.settings.slice).skip(tasks.start).take(tasks.len());
        slices.map(|strings| COUNT.task::<Count>(&Population { generation: 0, strings: strings.into() })).collect()
    }

    fn absorb(&mut self, outputs: &[Bytes]) -> Result<(), String> {
        let ones: Vec<u32> = outputs.iter().flat_map(|output| checked::<Count>(output).ones).collect();
        let best = self.state.strings[select::fittest(&ones, 1)[0]].clone();
        let strings = once(best).chain((1..ones.len()).map(|index| self.child(&ones, index))).collect();
        self.state = Population { generation: self.state.generation + 1, strings };
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        self.state.encode_to_vec()
    }

    fn rows(&self) -> Vec<Vec<f64>> {
        vec![vec![self.state.generation.into(), ones(&self.state.strings[0]).into()]]
    }

    fn champion(&self) -> Option<Card> {
        (self.state.generation > 0).then(|| Card::new(BitString(self.state.strings[0].clone())))
    }
}

/// A champion. Its card is `{"kind": "onemax", "bits": "1101"}`.
#[derive(Debug)]
struct BitString(String);

fn read_card(entries: &Entries, _: &str, _: &mut Load<'_>) -> Found {
    let bits = entries.get("bits").and_then(Value::as_str).filter(|bits| bits.bytes().all(|bit| b"01".contains(&bit)));
    Ok(Arc::new(BitString(bits.ok_or("the card's \"bits\" are not a text of 0 and 1")?.into())))
}

impl Champion for BitString {
    fn write(&self, _: &str) -> (Map<String, Value>, Option<FileBeside>) {
        (Map::from_iter([("kind".into(), NAME.into()), ("bits".into(), self.0.as_str().into())]), None)
    }

    fn show(&self, first: usize) -> Showing {
        let (length, ones, bits) = (self.0.len(), ones(&self.0), &self.0[..first.min(self.0.len())]);
        let text = format!("A string of {length} bits, {ones} of them ones.\n\n{bits}\n");
        Showing { text, json: json!({"length": length, "ones": ones, "bits": bits}) }
    }
}
