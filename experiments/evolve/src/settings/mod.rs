//! The settings of `evolve`: what is searched, by which algorithm, and for how long.

mod choices;
mod follows;
mod problems;

use evoxo_common::{digest::Digest, ratio::Ratio, settings};

pub use choices::{BaselineName, CurvesName, NoiseName, OnFailure, RecallName};

use super::{
    algorithm::{self, AlgorithmKind, Axis, Given, Leaves, open_or_having},
    genome::Genome,
    notation::Notation,
    problem::{self, Problem},
    start::{self, START_MAX},
    tables::{GRID, Grid, PART, PartSettings, Parts},
    wasm,
};

/// The default number of cells for each measure of a built-in problem.
const OWN_CELLS: usize = 20;
/// The most genes of a genome.
pub(super) const GENES_MAX: usize = 100_000;
/// The most bytes of a task's candidates, or of their evaluations, unless the task has only one candidate. It is half of what
/// a task may have; a module needs some of the other half.
const TASK_CANDIDATES_BYTES: u64 = 4 << 20;
/// The most characters of the names of constraints, and of measures.
pub(super) const NAMES_MAX: usize = 400;
/// The most bytes of the sentence that says why a candidate has no value.
pub(super) const FAILURE_BYTES_MAX: usize = 120;
/// The most characters of the points of a known front.
const KNOWN_FRONT_MAX: usize = 40_000;
/// The greatest number of a reference point; the least is its negative.
const REFERENCE_MAX: i64 = 1_000_000_000_000;

settings! {
    /// Any optimisation problem: searches a fitness function for its best candidate. The function is built in, a WebAssembly
    /// module, or a program that runs beside the workers. docs/own-problem.md is the tutorial, docs/algorithms.md says which
    /// algorithm to choose.
    pub struct Settings, names Name, schema SCHEMA {
        /// What is searched: a built-in problem (sphere, ellipsoid, rosenbrock, rastrigin, onemax, leadingones, nk, labs, tsp
        /// and others); "wasm:FILE", a WebAssembly module, with its path relative to this file; or "program:NAME", a program
        /// that the workers have.
        problem: String = text(80, "sphere"),
        /// The length of a built-in problem: genes, bits or cities. 0: the problem's default.
        length: usize = whole(0, 10_000, "0"),
        /// For a module or program: its objectives, each "min NAME" or "max NAME", separated by commas. Empty: as the program
        /// declares.
        objectives: String = text(400, ""),
        /// For a module or program: the number of its constraints. A candidate satisfies a constraint if its number is at
        /// most 0.
        constraints: usize = whole(0, 100, "0"),
        /// For a module or program: the names of its constraints, separated by commas, for tables and cards. Empty: as the
        /// program declares.
        constraint_names: String = execution text(NAMES_MAX, ""),
        /// For a module or program: the number of its behaviour measures.
        measures: usize = whole(0, 10, "0"),
        /// For a module or program: the names of its measures, separated by commas, for tables, cards and figures. Empty: as
        /// the program declares.
        measure_names: String = execution text(NAMES_MAX, ""),
        /// For a program: the hash of its description of itself and of its answers. Empty: `evoxo run` and `evoxo submit`
        /// fill it in.
        signature: String = text(64, ""),
        /// For a program that leaves the genome to this file: the hash of its answers to fixed candidates. Each worker
        /// compares it with the answers of its own program. Empty: `evoxo run` and `evoxo submit` fill it in.
        answers: String = addition text(64, ""),
        /// For a module: the content of its file, in base64. Empty: `evoxo run` and `evoxo submit` read the file.
        module: String = addition text(wasm::MODULE_TEXT_MAX, ""),
        /// For a module: the limit of its computation for one candidate, about one unit for each instruction. A candidate
        /// that needs more has no value.
        fuel: u64 = addition whole(1, wasm::FUEL_MAX, "1000000000"),
        /// What to do with a candidate that has no value.
        on_failure: OnFailure = choice("stop"),
        /// Whether a candidate's value depends on its seed. If it does, the best value that a search saw is mostly luck.
        noise: NoiseName = addition choice("declared"),
        /// How many candidates of a noisy problem with one objective are evaluated again at the end: this many of the best of
        /// the whole search, as many from its end, and the mean of a learnt distribution. With several objectives, the first
        /// front is evaluated again.
        finalists: usize = addition whole(1, 100, "4") when noise not ["no"],
        /// For a noisy problem: evaluations of each finalist with fresh seeds, to choose the answer, and as many of the
        /// answer, to say what it is worth. They are in addition to `evaluations`; with the defaults they are at most 300.
        confirmations: usize = addition whole(2, 10_000, "30") when noise not ["no"],
        /// The algorithm that searches. A run's configuration never has "auto", but the algorithm that was chosen.
        algorithm: &'static AlgorithmKind = choice("auto"),
        /// Whether `evoxo run` and `evoxo submit` add an arm of random search, with these settings, for each problem of the
        /// file that lacks one: a search that does not beat it has learnt nothing. The problem needs one objective, or
        /// several with a reference point. Nothing is added for programs, whose candidates may take an hour each, or for
        /// screens.
        baseline: BaselineName = execution choice("random"),
        /// The most evaluations of a replica.
        evaluations: u64 = length whole(1, 1_000_000_000, "10000"),
        /// A replica ends when its objective is as good as this number, for example 1e-8. Empty: it never ends early.
        target: String = text(24, ""),
        /// Candidates with which the search begins: their genes in JSON, for example "[[0.5, 2]]", or a card or another file
        /// with such JSON, with its path relative to this file. A first population has them, as many as it has room for; a
        /// distribution begins around the first. Empty: the search begins at random.
        start: String = addition text(START_MAX, ""),
        /// Candidates of a generation. 0: the usual number in the literature.
        population: usize = whole(0, 100_000, "0"),
        /// Candidates that are evaluated at the same time, without generations: candidate k is made from the results of
        /// candidates 0 to k - window, so a slow evaluation delays only candidates that need its result. Choose several times
        /// the number of slots of all workers. 0: whole generations.
        window: usize = addition whole(0, 1_000, "0") when algorithm is (open_or_having(AlgorithmKind::has_windows)),
        /// With several objectives: the reference point of the hypervolume, one number for each objective. For an archive:
        /// the value of the objective that is worth nothing; the QD score is the sum, over all elites, of how much better
        /// they are. Empty: that of a built-in problem, or no hypervolume and no QD score.
        reference: Vec<Ratio> = numbers(10, -REFERENCE_MAX, REFERENCE_MAX, "")
            when algorithm is (open_or_having(|kind| kind.can_leave(Leaves::Front) || kind.can_leave(Leaves::Archive))),
        /// With several objectives: points of the best front, if it is known. Points are separated by semicolons and have a
        /// number for each objective, in the objective's own unit, as in "0 1; 0.5 0.3; 1 0". The report then says how far
        /// fronts are from it (IGD+). Empty: that of a built-in problem, or unknown.
        known_front: String = execution text(KNOWN_FRONT_MAX, "")
            when algorithm is (open_or_having(|kind| kind.can_leave(Leaves::Front))),
        /// Whether curves of the best candidates show means or medians over replicas.
        curves: CurvesName = execution choice("fitting"),
        /// Candidates of a task; fewer if these would exceed 4 MiB. 0: 100 of a built-in problem, 10 of a module, 1 of a program.
        /// With a window it is always 1.
        slice: usize = execution whole(0, 10_000, "0"),
        /// The time limit of a program for one candidate, in seconds. When it is exceeded, the program is stopped and its
        /// task fails.
        timeout: u64 = execution whole(1, 604_800, "600"),
        /// Whether values of candidates that were evaluated before, in this run or another one, are recalled instead of
        /// computed. No result depends on it, if equal candidates have equal values or `noise` says that they do not.
        recall: RecallName = execution choice("auto"),
        /// The genome: one table for each part. A built-in problem has its own.
        genome: Parts = list(PART, 64, ""),
        /// The grid: one table for each measure. A built-in problem has its own.
        grid: Grid = list(GRID, 10, "") when algorithm is (open_or_having(|kind| kind.can_leave(Leaves::Archive))),
    }
    check(|settings| settings.problems())
    notes(|settings| settings.unused_start().into_iter().collect())
    follows(|settings| settings.follows())
    rare(
        objectives, constraints, constraint_names, measures, measure_names, signature, answers, module, fuel, on_failure,
        finalists, confirmations, baseline, known_front, curves, slice, timeout, recall,
    )
    includes(own: algorithm::SETTINGS, before reference, chosen by algorithm)
}

/// The prefix of a program in the setting `problem`.
const PROGRAM: &str = "program:";
/// The prefix of a module in the setting `problem`.
const MODULE: &str = "wasm:";

impl Settings {
    /// The program, if the problem is one.
    #[must_use]
    pub fn program(&self) -> Option<&str> {
        self.problem.strip_prefix(PROGRAM)
    }

    /// The program that the tasks ask, for candidates' values or for the batches of the person's own algorithm.
    #[must_use]
    pub fn asked(&self) -> Option<String> {
        let own = || self.algorithm.asks.then(|| algorithm::own(&self.own).own);
        self.program().map(str::to_owned).or_else(own)
    }

    /// The file of the module, if the problem is one.
    #[must_use]
    pub fn module_file(&self) -> Option<&str> {
        self.problem.strip_prefix(MODULE)
    }

    /// The built-in problem, if it is one.
    #[must_use]
    pub fn built_in(&self) -> Option<&'static Problem> {
        problem::find(&self.problem)
    }

    /// The objectives of the problem, each with whether it is to be maximised.
    #[must_use]
    pub fn objectives(&self) -> Vec<(bool, String)> {
        match self.built_in() {
            Some(problem) => problem.objectives.iter().map(|it| (it.maximised, it.name.to_owned())).collect(),
            None => self.objectives.split(',').filter_map(objective).collect(),
        }
    }

    /// Whether the candidates of both settings are the same and have the same values.
    #[must_use]
    pub fn same_problem(&self, other: &Self) -> bool {
        [&self.problem, &self.signature, &self.answers, &self.module]
            == [&other.problem, &other.signature, &other.answers, &other.module]
            && self.genome == other.genome
            && self.genome().parts == other.genome().parts
            && self.objectives() == other.objectives()
            && self.is_noisy() == other.is_noisy()
    }

    /// A hash that is the same for all settings of the [same problem](Self::same_problem) with the same reference point.
    #[must_use]
    pub fn problem_hash(&self) -> Digest {
        let program = format!("{}{}", self.signature, self.answers);
        let said = (&self.problem, program, &self.module, &self.genome, self.genome().parts);
        let worth = (self.objectives(), self.reference_point(), self.is_noisy());
        Digest::of(format!("{said:?} {worth:?}").as_bytes())
    }

    /// The number of constraints of the problem.
    #[must_use]
    pub fn constraint_count(&self) -> usize {
        self.built_in().map_or(self.constraints, |problem| problem.constraints)
    }

    /// The names of all constraints, in order.
    #[must_use]
    pub fn constraints_by_name(&self) -> Vec<String> {
        let name = |index| {
            nth(&self.constraint_names, index).map_or_else(|| format!("constraint {}", index + 1), str::to_owned)
        };
        (0..self.constraint_count()).map(name).collect()
    }

    /// The names of all behaviour measures, in order.
    #[must_use]
    pub fn measures_by_name(&self) -> Vec<String> {
        (0..self.measure_count()).map(|index| self.measure_name(index)).collect()
    }

    /// The genome that is searched.
    #[must_use]
    pub fn genome(&self) -> Genome {
        let bounded = (self.algorithm.keeps_bounds)(&self.own);
        match self.built_in().filter(|_| self.genome.0.is_empty()) {
            Some(problem) => {
                let length = if self.length == 0 { problem.length } else { self.length };
                Genome { bounded, ..(problem.genome)(length) }
            }
            None => Genome { parts: self.genome.0.iter().map(PartSettings::part).collect(), bounded },
        }
    }

    /// The number of behaviour measures of the problem.
    #[must_use]
    pub fn measure_count(&self) -> usize {
        self.built_in().map_or(self.measures, |problem| problem.measures.len())
    }

    /// The number of objectives, constraints and measures of an evaluation.
    #[must_use]
    pub fn counts(&self) -> [usize; 3] {
        [self.objectives().len(), self.constraint_count(), self.measure_count()]
    }

    /// The name of a measure, by its index from 0.
    #[must_use]
    pub fn measure_name(&self, index: usize) -> String {
        let own = self.built_in().and_then(|problem| Some(problem.measures.get(index)?.name));
        own.or_else(|| nth(&self.measure_names, index)).map_or_else(|| format!("measure {}", index + 1), str::to_owned)
    }

    /// The reference point of the hypervolume, with all objectives to be minimised. `None` with one objective, or if there is
    /// no reference point.
    #[must_use]
    pub fn reference_point(&self) -> Option<Vec<f64>> {
        let objectives = self.objectives();
        let given: Vec<f64> = match self.built_in().filter(|_| self.reference.is_empty()) {
            Some(problem) => problem.reference.to_vec(),
            None => self.reference.iter().map(|number| number.to_f64()).collect(),
        };
        let turned =
            given.iter().zip(&objectives).map(|(number, (maximised, _))| if *maximised { -number } else { *number });
        let fits = objectives.len() > 1 && given.len() == objectives.len();
        fits.then(|| turned.collect())
    }

    /// Whether a single number decides which of two searches is better.
    #[must_use]
    pub fn has_order(&self) -> bool {
        self.objectives().len() == 1 || self.reference_point().is_some()
    }

    /// The value of the objective, to be minimised, below which an elite of an archive is worth something. `None` if it is
    /// not known.
    #[must_use]
    pub fn worthless(&self) -> Option<f64> {
        let own = self.built_in().filter(|_| self.reference.is_empty()).map_or(&[][..], |problem| problem.reference);
        let value = self.reference.first().map(|given| given.to_f64()).or(own.first().copied())?;
        let archive = self.leaves() == Leaves::Archive && self.objectives().len() == 1;
        archive.then(|| if self.objectives()[0].0 { -value } else { value })
    }

    /// What the algorithm is given.
    #[must_use]
    pub fn given(&self) -> Given<'_> {
        Given {
            own: &self.own,
            genome: self.genome(),
            evaluations: self.evaluations,
            population: (self.population > 0).then_some(self.population),
            window: self.window,
            noisy: self.is_noisy(),
            objectives: self.objectives().len(),
            numbers: self.counts().iter().sum::<usize>() as u64,
            grid: self.axes(),
            worthless: self.worthless(),
            // What cannot be read is one of the settings' problems.
            start: start::candidates(&self.start, &self.genome(), &self.notations()).unwrap_or_default(),
        }
    }

    /// What a search leaves, apart from its best candidate.
    #[must_use]
    pub fn leaves(&self) -> Leaves {
        (self.algorithm.leaves)(self.objectives().len())
    }

    /// The number of regions of an archive; 0 if it is a grid.
    #[must_use]
    pub fn regions(&self) -> usize {
        algorithm::regions(&self.own)
    }

    /// The grid of an archive.
    #[must_use]
    pub fn axes(&self) -> Vec<Axis> {
        let given =
            self.grid.0.iter().map(|axis| Axis { low: axis.low.to_f64(), high: axis.high.to_f64(), cells: axis.cells });
        let own = self.built_in().filter(|_| self.grid.0.is_empty()).map_or(&[][..], |problem| problem.measures);
        given.chain(own.iter().map(|it| Axis { low: it.low, high: it.high, cells: OWN_CELLS })).collect()
    }

    /// Whether a candidate's value depends on its seed.
    #[must_use]
    pub fn is_noisy(&self) -> bool {
        match self.noise {
            NoiseName::Declared => self.built_in().is_some_and(|problem| problem.noise.is_some()),
            NoiseName::Yes => true,
            NoiseName::No => false,
        }
    }

    /// What the genes of each part stand for.
    #[must_use]
    pub fn notations(&self) -> Vec<Notation> {
        let bounded = (self.algorithm.keeps_bounds)(&self.own);
        match self.genome.0.is_empty() {
            true => vec![Notation::Plain; self.genome().parts.len()],
            false => self.genome.0.iter().map(|part| part.notation(bounded)).collect(),
        }
    }

    /// The number in [`Self::target`], with the problem's own sign.
    #[must_use]
    pub fn target_number(&self) -> Option<f64> {
        self.target.trim().parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// The candidates of a task: fewer than the file says if so many would be too large.
    #[must_use]
    pub fn task_candidates(&self) -> usize {
        if self.window > 0 {
            return 1;
        }
        let wanted = match (self.slice, self.program(), self.module_file()) {
            (0, Some(_), _) => 1,
            (0, None, Some(_)) => 10,
            (0, None, None) => 100,
            (slice, ..) => slice,
        };
        let bytes = self.genome().bytes_max().max(self.evaluation_bytes());
        wanted.min((TASK_CANDIDATES_BYTES / bytes).max(1) as usize)
    }

    /// The most bytes of an evaluation as a message.
    #[must_use]
    pub fn evaluation_bytes(&self) -> u64 {
        8 * self.counts().iter().sum::<usize>() as u64 + FAILURE_BYTES_MAX as u64 + 40
    }

    /// Whether the settings that a program determines are still to be filled in.
    fn unsigned(&self) -> bool {
        self.program().is_some() && self.signature.is_empty()
    }
}

/// The name at an index from 0 in a list of names separated by commas, if there is one.
fn nth(names: &str, index: usize) -> Option<&str> {
    names.split(',').map(str::trim).nth(index).filter(|name| !name.is_empty())
}

/// The first name that occurs twice.
pub(super) fn twice(names: &[String]) -> Option<&String> {
    let again = |(place, name): &(usize, &String)| names[..*place].contains(*name);
    names.iter().enumerate().find(again).map(|(_, name)| name)
}

/// Splits a text such as "min cost" into whether it is to be maximised, and its name.
pub(super) fn objective(text: &str) -> Option<(bool, String)> {
    let (direction, name) = text.trim().split_once(' ')?;
    let maximised = match direction {
        "min" => false,
        "max" => true,
        _ => return None,
    };
    let plain = |c: char| c.is_ascii_graphic() && !"\"\\,".contains(c);
    (!name.is_empty() && name.chars().all(plain)).then(|| (maximised, name.to_owned()))
}
