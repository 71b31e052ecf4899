//! The settings of `evolve`: what is searched, by which algorithm, and for how long.

mod choices;
mod follows;
mod meaning;
mod problems;

use evoxo_common::{ratio::Ratio, settings};

pub use choices::{BaselineName, CurvesName, NoiseName, OnFailure, RecallName};
pub(super) use meaning::{objective, twice};

use super::{
    algorithm::{self, AlgorithmKind, Leaves, open_or_having},
    start::START_MAX,
    tables::{GRID, Grid, PART, Parts},
    wasm,
};

/// The most genes of a genome.
pub(super) const GENES_MAX: usize = 100_000;
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
