//! One evaluation: an instance of the module, calls of its two functions, and their answer.

use wasmi::{
    Linker, Store, TrapCode,
    errors::{ErrorKind, InstantiationError},
};

use super::{BUFFER, EVALUATE, MEMORY, Module, limits::Limits};
use crate::messages::Evaluation;
use evoxo_common::text::counted;

/// How many numbers an answer has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) objectives: usize,
    pub(crate) constraints: usize,
    pub(crate) measures: usize,
}

/// Why there is no answer.
enum End {
    /// The candidate has no value, on every machine and every time.
    Candidate(String),
    /// As above, because the candidate used up its fuel.
    Fuel,
    /// The module is wrong, or the machine could not compute it.
    Task(String),
}

type Answer<T> = Result<T, End>;

impl Module {
    /// Evaluates a candidate with a fresh instance and this much fuel.
    ///
    /// # Errors
    /// If the module breaks its contract; the sentence says how. A candidate without a value is not an error.
    pub(crate) fn evaluate(&self, genes: &[u8], seed: u64, fuel: u64, counts: Counts) -> Result<Evaluation, String> {
        let mut store = Store::new(&self.engine, Limits::default());
        store.limiter(|limits| limits);
        store.set_fuel(fuel).map_err(|error| error.to_string())?;
        let numbers = self.call(&mut store, genes, seed, counts).and_then(|numbers| counts.split(&numbers));
        match numbers {
            Ok(evaluation) => Ok(evaluation),
            Err(End::Fuel) => {
                Ok(Evaluation { failure: format!("the module used up its fuel, {fuel}"), ..Evaluation::default() })
            }
            Err(End::Candidate(failure)) => Ok(Evaluation { failure, ..Evaluation::default() }),
            Err(End::Task(why)) => Err(why),
        }
    }

    fn call(&self, store: &mut Store<Limits>, genes: &[u8], seed: u64, counts: Counts) -> Answer<Vec<f64>> {
        let linker: Linker<Limits> = Linker::new(&self.engine);
        let instance = linker.instantiate_and_start(&mut *store, &self.compiled);
        let instance = instance.map_err(|error| ended(store, &error))?;
        let missing = || End::Task("the module has lost its exports".into());
        let memory = instance.get_memory(&*store, MEMORY).ok_or_else(missing)?;
        let buffer = instance.get_typed_func::<i32, i32>(&*store, BUFFER).map_err(|_| missing())?;
        let evaluate = instance.get_typed_func::<(i32, i32, i64), i32>(&*store, EVALUATE).map_err(|_| missing())?;
        let room = genes.len().max(8 * counts.all());
        let bytes = i32::try_from(room).map_err(|_| End::Task(format!("a candidate has {room} bytes")))?;
        let address = buffer.call(&mut *store, bytes).map_err(|error| ended(store, &error))?;
        let start = address as u32 as usize;
        if start == 0 {
            return Err(End::Task(format!("the module's {BUFFER} has no room for {room} bytes")));
        }
        let outside = || {
            let held = memory.data_size(&*store);
            End::Task(format!("the module's {BUFFER} gave {room} bytes at {start}, outside its memory of {held} bytes"))
        };
        let end = start.checked_add(room).filter(|end| *end <= memory.data_size(&*store)).ok_or_else(outside)?;
        memory.data_mut(&mut *store)[start..start + genes.len()].copy_from_slice(genes);
        let given = evaluate.call(&mut *store, (address, genes.len() as i32, seed.cast_signed()));
        match given.map_err(|error| ended(store, &error))? {
            0 => Err(End::Candidate("the module gives it no value".into())),
            code if code < 0 => Err(End::Candidate(format!("the module gives it no value, and says why by {code}"))),
            given if given as usize == counts.all() => {
                let numbers = memory.data(&*store)[start..end].chunks_exact(8).take(counts.all());
                Ok(numbers.map(|bytes| f64::from_le_bytes(bytes.try_into().expect("8 bytes"))).collect())
            }
            given => {
                let given = counted(given as usize, "number");
                Err(End::Task(format!("the module's {EVALUATE} gave {given}, but the file declares {counts}")))
            }
        }
    }
}

impl Counts {
    const fn all(self) -> usize {
        self.objectives + self.constraints + self.measures
    }

    /// Splits the numbers of an answer into objectives, constraints and measures.
    fn split(self, numbers: &[f64]) -> Answer<Evaluation> {
        let (objectives, rest) = numbers.split_at(self.objectives);
        let (constraints, measures) = rest.split_at(self.constraints);
        let lists = [("objective", objectives), ("constraint", constraints), ("measure", measures)];
        let named = lists.into_iter().flat_map(|(what, list)| (1..).zip(list).map(move |it| (what, it)));
        for (what, (place, number)) in named {
            if !number.is_finite() {
                let found = if number.is_nan() { "NaN" } else { "infinite" };
                return Err(End::Candidate(format!("{what} {place} is {found}")));
            }
        }
        let (objectives, constraints, measures) = (objectives.to_vec(), constraints.to_vec(), measures.to_vec());
        Ok(Evaluation { objectives, constraints, measures, failure: String::new() })
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { objectives, constraints, measures } = self;
        write!(f, "objectives: {objectives}, constraints: {constraints}, measures: {measures}")
    }
}

/// What a failed call means. These sentences are part of results, so they must not change with wasmi's.
fn ended(store: &Store<Limits>, error: &wasmi::Error) -> End {
    let Limits { exceeded, starved } = store.data();
    if *starved {
        return End::Task("this machine has too little memory for the module".into());
    }
    if let Some(what) = exceeded {
        return End::Candidate(format!("the module was stopped: {what}"));
    }
    let segment = matches!(error.kind(), ErrorKind::Instantiation(InstantiationError::ElementSegmentDoesNotFit { .. }));
    let stopped = match error.as_trap_code() {
        None if segment => "it used a place outside its table",
        Some(TrapCode::OutOfFuel) => return End::Fuel,
        Some(TrapCode::UnreachableCodeReached) => "it came to an instruction unreachable",
        Some(TrapCode::MemoryOutOfBounds) => "it used a place outside its memory",
        Some(TrapCode::TableOutOfBounds) => "it used a place outside its table",
        Some(TrapCode::IndirectCallToNull) => "it called an empty place of its table",
        Some(TrapCode::BadSignature) => "it called a function as one of another type",
        Some(TrapCode::IntegerDivisionByZero) => "it divided by zero",
        Some(TrapCode::IntegerOverflow) => "a quotient was too large",
        Some(TrapCode::BadConversionToInteger) => "it converted a number that is no integer of that size",
        Some(TrapCode::StackOverflow) => "its calls are too deep",
        _ => return End::Task(format!("the module could not be computed here: {error}")),
    };
    End::Candidate(format!("the module was stopped: {stopped}"))
}
