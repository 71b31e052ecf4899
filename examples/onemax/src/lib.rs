//! Experiment `onemax`: strings of bits evolve until all bits are ones. CONTRIBUTING.md in evoxo's repository explains each
//! part. [`one_plus_one`] is an algorithm for evoxo's experiment `evolve`.

pub mod one_plus_one;

use evoxo_common::prelude::*;

/// The experiment as a value.
pub const KIND: Kind = Kind::of::<OneMax>();

settings! {
    /// Strings of bits that evolve until all bits are ones.
    struct Settings, names Name, schema SCHEMA {
        /// Strings of a generation.
        population: usize = whole(2, 5_000, "100"),
        /// Bits of a string.
        length: usize = whole(2, 1_000, "100"),
        /// Generations. The champion is the best string of the last one.
        generations: u32 = whole(1, 100_000, "100"),
        /// How many bits of a child flip, on average; textbooks use one.
        flips: u64 = whole(0, 1_000, "1"),
    }
}

row! {
    /// A row describes a generation.
    struct Row, primary ones {
        /// from 1
        generation: u32,
        /// of the best string
        ones: u32,
    }
}

/// The state of a replica, as a message.
#[derive(Clone, PartialEq, prost::Message)]
struct Population {
    /// Generations so far.
    #[prost(uint32, tag = "1")]
    generation: u32,
    /// The strings, each a text of 0 and 1. The best string of the last generation comes first.
    #[prost(string, repeated, tag = "2")]
    strings: Vec<String>,
}

/// A replica between two rounds. A round counts the ones of all strings, and then the next generation is made.
struct OneMax {
    settings: Settings,
    /// Every random number comes from a stream derived from this one, whose name says what the number is for.
    stream: Stream,
    state: Population,
}

/// The task: counts the ones of a string. A real task should take some ten milliseconds or more; this one takes hardly any
/// time.
impl Compute for OneMax {
    const EXPERIMENT: &'static str = Self::NAME;
    const WORK: &'static str = "count";
    type Task = String;
    type Output = u32;

    fn run(string: &String, _: &Bytes) -> Result<u32, Refusal> {
        Ok(string.matches('1').count() as u32)
    }

    fn check(string: &String, _: &Bytes, ones: &u32) -> Result<(), Refusal> {
        if *ones as usize <= string.len() { Ok(()) } else { Err(Refusal("more ones than bits".into())) }
    }

    fn workload() -> Vec<(String, Bytes)> {
        vec![("1101".into(), Bytes::new())]
    }
}

/// A champion's card is `{"kind": "onemax", "bits": "1101"}`.
impl TextCard for OneMax {
    const KEY: &'static str = "bits";
    const LETTERS: &'static str = "01";
}

impl Experiment for OneMax {
    const NAME: &'static str = "onemax";
    const TASKS: &'static [TaskKind] = &[TaskKind::of::<Self>()];
    const CARDS: &'static [CardKind] = &[CardKind::of_text::<Self>()];
    type Settings = Settings;
    type State = Population;
    type Row = Row;
    type Told = Standard;

    fn demand(settings: &Settings) -> Demand {
        // In a message, a string has a byte for each bit and at most four more.
        let bytes = |strings: u64| 48 + strings * (settings.length as u64 + 4);
        let (tasks, rows) = (settings.population as u64, settings.generations.into());
        Demand { tasks, task_bytes: bytes(1), output_bytes: 8, state_bytes: bytes(tasks), rows, ..Demand::default() }
    }

    fn first(Identity { settings, stream, .. }: &Identity<'_, Self>) -> Population {
        let mut rng = stream.text("first").rng();
        let mut string = || (0..settings.length).map(|_| if chance(&mut rng, 1, 2) { '1' } else { '0' }).collect();
        Population { generation: 0, strings: (0..settings.population).map(|_| string()).collect() }
    }

    fn restore(Identity { settings, stream, .. }: Identity<'_, Self>, state: Population) -> Result<Self, String> {
        fits(state.generation <= settings.generations && state.strings.len() == settings.population)?;
        fits(state.strings.iter().all(|string| string.len() == settings.length && Self::accepts(string)))?;
        Ok(Self { settings, stream, state })
    }

    fn save(&self) -> Population {
        self.state.clone()
    }

    fn tasks(&self) -> usize {
        if self.state.generation == self.settings.generations { 0 } else { self.settings.population }
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        self.state.strings[tasks].iter().map(Task::of::<Self>).collect()
    }

    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Row>) -> Result<(), String> {
        let Population { generation, strings } = &self.state;
        let ones: Vec<u32> = outputs.iter().map(checked::<Self>).collect();
        let births = self.stream.word((*generation).into()).text("births");
        let rate = (self.settings.flips, self.settings.length as u64);
        let (generation, best) = (generation + 1, select::fittest(&ones, 1)[0]);
        let strings = select::generation(births, vec![strings[best].clone()], 1, ones.len(), |rng| {
            let [mother, father] = [(); 2].map(|()| &strings[select::binary_tournament(rng, &ones)]);
            let [mut child, _] = cross::one_point(rng, mother.as_bytes(), father.as_bytes());
            mutate::redraw_each(rng, &mut child, rate, |_, _, bit| bit ^ 1);
            Some(String::from_utf8(child).expect("'0' and '1' differ in their last bit"))
        });
        history.push(Row { generation, ones: ones[best] });
        self.state = Population { generation, strings };
        Ok(())
    }

    fn champion(&self) -> Option<Card> {
        (self.state.generation > 0).then(|| Self::card(&self.state.strings[0]))
    }
}
