//! Measures which algorithm of `evolve` is best for which genome, number of genes, budget and noise, for `algorithm = "auto"`.
//!
//! `cargo run --release -p evoxo-experiments --example choice -- KIND GENES NOISE EACH SEARCHES ALGORITHM...`
//!
//! KIND is real, wide, narrow, mixed or bits; NOISE none, constant (a normal deviate is added) or growing (the value times 1 plus a normal
//! deviate). Budgets are 10, 30, 100 and so on up to EACH evaluations for each gene, and SEARCHES the seeds. An ALGORITHM may have
//! settings, as in cma-es,model=none. For each half of the functions and each budget the first table has, for each algorithm, how many
//! powers of ten its median is above that of the best one, on average over functions, and on how many functions it is within 5 % of the
//! best. The second table has the medians. With noise the true value of the answer counts.

#![expect(clippy::disallowed_methods, reason = "functions to be minimised, and arguments, are not part of the engine")]

mod functions;

use std::process::ExitCode;

use evoxo_common::{report::Table, rng::Stream, stats::quantile};
use evoxo_experiments::evolve::{
    algorithm::{AlgorithmKind, algorithms},
    evaluation::Evaluation,
    genome::Candidate,
    settings::{SCHEMA, Settings},
};
use functions::{FUNCTIONS, Function, Kind, Problem, mix, normal};

/// Evaluations for each gene.
const EACH: [u64; 6] = [10, 30, 100, 300, 1000, 3000];
/// Values below count as this.
const PRECISION: f64 = 1e-8;
/// The candidates that are evaluated again with noise: so many of the whole search and as many from its end, each so often.
const FINALISTS: usize = 4;
const CONFIRMATIONS: u64 = 30;

/// What is measured.
struct Measured {
    kind: Kind,
    genes: usize,
    noise: Noise,
    searches: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Noise {
    None,
    Constant,
    Growing,
}

impl Noise {
    fn named(name: &str) -> Option<Self> {
        let all = [("none", Self::None), ("constant", Self::Constant), ("growing", Self::Growing)];
        all.iter().find(|(other, _)| *other == name).map(|(_, noise)| *noise)
    }

    /// A measurement of a value with a seed. Candidates with one seed have independent noise.
    fn measured(self, value: f64, point: &[f64], seed: u64) -> f64 {
        let drawn = || normal(point.iter().fold(seed, |word, gene| mix(word ^ gene.to_bits())));
        match self {
            Self::None => value,
            Self::Constant => value + drawn(),
            Self::Growing => value * (1.0 + drawn()),
        }
    }
}

/// An algorithm with settings.
struct Contender {
    name: String,
    algorithm: &'static AlgorithmKind,
    settings: Vec<(String, String)>,
}

impl Contender {
    fn named(name: &str) -> Option<Self> {
        let mut parts = name.split(',');
        let own = parts.next()?;
        let algorithm = algorithms().iter().find(|kind| kind.name == own).copied()?;
        let setting = |part: &str| part.split_once('=').map(|(setting, value)| (setting.to_owned(), value.to_owned()));
        Some(Self { name: name.to_owned(), algorithm, settings: parts.map(setting).collect::<Option<_>>()? })
    }
}

impl Measured {
    /// The best values of a search after each of these evaluations; with noise the true value of its answer, once.
    fn search(&self, problem: &Problem, contender: &Contender, ends: &[u64], number: u64) -> Vec<f64> {
        let evaluations = ends[ends.len() - 1];
        let algorithm = contender.algorithm;
        let values = SCHEMA.defaults().with("algorithm", algorithm.name).with("evaluations", &evaluations.to_string());
        let values = contender.settings.iter().fold(values, |values, (setting, value)| values.with(setting, value));
        let settings = Settings::of(&values);
        let noisy = self.noise != Noise::None;
        let mut given = settings.given();
        (given.genome, given.noisy) = (self.kind.genome(self.genes), noisy);
        let search = given.search(Stream::root(1).text("choice").word(number));
        let mut algorithm = algorithm.begin(&given, search, None).expect("an algorithm for numbers");
        let (mut best, mut count, mut found) = (f64::INFINITY, 0, Vec::new());
        let (mut all, mut last): (Vec<(f64, Vec<f64>)>, Vec<_>) = (Vec::new(), Vec::new());
        while algorithm.size() > 0 {
            let batch = algorithm.ask(0..algorithm.size());
            let told = |(place, candidate): (usize, &Candidate)| {
                let point = self.kind.point(candidate);
                let seed = algorithm.seed(place).unwrap_or_else(|| algorithm.number(place) << 20) ^ (number << 50);
                (self.noise.measured(problem.value(&point), &point, seed), point)
            };
            last = batch.iter().enumerate().map(told).collect();
            for (value, _) in &last {
                (best, count) = (best.min(*value), count + 1);
                if ends.get(found.len()) == Some(&count) {
                    found.push(best);
                }
            }
            let evaluation = |(value, _): &(f64, _)| Evaluation { objectives: vec![*value], ..Evaluation::default() };
            algorithm.tell(&last.iter().map(evaluation).collect::<Vec<_>>());
            if noisy {
                last = least(last);
                all.extend(last.iter().cloned());
                all = least(all);
            }
        }
        if !noisy {
            found.resize(ends.len(), best);
            return found;
        }
        all.extend(last);
        all.extend(algorithm.mean().map(|mean| (0.0, self.kind.point(&mean))));
        vec![self.confirmed(problem, &all, number)]
    }

    /// The true value of the finalist with the best mean of fresh measurements.
    fn confirmed(&self, problem: &Problem, finalists: &[(f64, Vec<f64>)], number: u64) -> f64 {
        let again = |(_, point): &(f64, Vec<f64>)| {
            let seed = |fresh: u64| (999_999 + fresh) ^ (number << 50);
            let value = problem.value(point);
            let sum: f64 = (0..CONFIRMATIONS).map(|fresh| self.noise.measured(value, point, seed(fresh))).sum();
            (sum, value)
        };
        let means = finalists.iter().map(again).min_by(|one, other| one.0.total_cmp(&other.0));
        means.expect("a search has finalists").1
    }

    /// For each budget, the median of the searches.
    fn medians(&self, problem: &Problem, contender: &Contender, ends: &[u64]) -> Vec<f64> {
        // What an algorithm does before a budget ends may depend on the budget, and a noisy search has one answer.
        let alone = contender.algorithm.shrinks || self.noise != Noise::None;
        let parts: Vec<&[u64]> = if alone { ends.chunks(1).collect() } else { vec![ends] };
        let of = |ends: &&[u64]| {
            let all: Vec<Vec<f64>> =
                (0..self.searches).map(|number| self.search(problem, contender, ends, number)).collect();
            let at = |place: usize| all.iter().map(|values| values[place].max(PRECISION)).collect::<Vec<f64>>();
            (0..ends.len()).map(|place| quantile(&at(place), 0.5)).collect::<Vec<f64>>()
        };
        parts.iter().flat_map(of).collect()
    }

    /// The tables of these algorithms: how far they are above the best one, and the medians themselves.
    fn tables(&self, contenders: &[Contender], each: u64) -> [Table; 2] {
        let budgets: Vec<u64> = EACH.into_iter().filter(|budget| *budget <= each).collect();
        let ends: Vec<u64> = budgets.iter().map(|budget| budget * self.genes as u64).collect();
        let of_function = |index: usize| {
            let problem = Problem::new(index, self.kind, self.genes);
            contenders.iter().map(|it| self.medians(&problem, it, &ends)).collect::<Vec<_>>()
        };
        let found: Vec<Vec<Vec<f64>>> = (0..FUNCTIONS.len()).map(of_function).collect();
        let mut rows = Vec::new();
        for half in ["tuned", "other"] {
            for (place, budget) in budgets.iter().enumerate() {
                let mut row = vec![half.to_owned(), budget.to_string()];
                for algorithm in 0..contenders.len() {
                    let above = |function: &Vec<Vec<f64>>| {
                        let best = function.iter().map(|values| values[place]).fold(f64::INFINITY, f64::min);
                        function[algorithm][place] / best
                    };
                    let of_half = found.iter().zip(FUNCTIONS).filter(|(_, (own, ..))| *own == half);
                    let above: Vec<f64> = of_half.map(|(function, _)| above(function)).collect();
                    let loss = above.iter().map(|ratio| ratio.log10()).sum::<f64>() / above.len() as f64;
                    let best = above.iter().filter(|ratio| **ratio <= 1.05).count();
                    row.push(format!("{loss:.2} ({best} of {})", above.len()));
                }
                rows.push(row);
            }
        }
        let header = |first: &str| {
            let names = contenders.iter().map(|it| it.name.clone());
            [first.to_owned(), "for each gene".to_owned()].into_iter().chain(names).collect()
        };
        let median = |(function, (_, name, ..)): (&Vec<Vec<f64>>, (&str, &str, Function, bool)), place: usize| {
            let medians = function.iter().map(|values| format!("{:.2e}", values[place]));
            [name.to_owned(), budgets[place].to_string()].into_iter().chain(medians).collect()
        };
        let all = found.iter().zip(FUNCTIONS);
        let medians = all.flat_map(|of| (0..budgets.len()).map(move |place| median(of, place))).collect();
        [
            Table { title: "Powers of ten above the best algorithm".into(), header: header("half"), rows },
            Table { title: "Medians".into(), header: header("function"), rows: medians },
        ]
    }
}

/// The least of these values.
fn least(mut all: Vec<(f64, Vec<f64>)>) -> Vec<(f64, Vec<f64>)> {
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    all.truncate(FINALISTS);
    all
}

fn asked() -> Option<[Table; 2]> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, genes, noise, each, searches, names @ ..] = arguments.as_slice() else { return None };
    let measured = Measured {
        kind: Kind::named(kind)?,
        genes: genes.parse().ok().filter(|genes| *genes > 1)?,
        noise: Noise::named(noise)?,
        searches: searches.parse().ok().filter(|searches| *searches > 0)?,
    };
    let each = each.parse().ok().filter(|each| *each >= EACH[0])?;
    Some(measured.tables(&names.iter().map(|name| Contender::named(name)).collect::<Option<Vec<_>>>()?, each))
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a report for the person who runs it")]
fn main() -> ExitCode {
    match asked() {
        Some([losses, medians]) => {
            print!("{}\n{}", losses.within(200), medians.within(200));
            ExitCode::SUCCESS
        }
        None => {
            eprintln!(
                "error: give KIND GENES NOISE EACH SEARCHES ALGORITHM..., for example real 10 none 300 5 cma-es l-shade"
            );
            ExitCode::FAILURE
        }
    }
}
