//! What the settings mean: the genome, the objectives, and what an algorithm is given.

use evoxo_common::digest::Digest;

use super::{
    super::{
        activity::Activity,
        algorithm::{self, Axis, Given, Leaves},
        genome::{Candidate, Genome},
        notation::Notation,
        problem::{self, Problem},
        start,
        tables::PartSettings,
    },
    FAILURE_BYTES_MAX, NoiseName, Settings,
};

/// The default number of cells for each measure of a built-in problem.
const OWN_CELLS: usize = 20;
/// The most bytes of a task's candidates, or of their evaluations, unless the task has only one candidate. It is half of what
/// a task may have; a module needs some of the other half.
const TASK_CANDIDATES_BYTES: u64 = 4 << 20;

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
        // A genome without conditions keeps the hash that it had before there were any.
        Digest::of(format!("{said:?} {worth:?}").replace(", when: \"\"", "").as_bytes())
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
            start: self.starts().unwrap_or_default(),
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

    /// The candidates with which the search begins.
    pub(super) fn starts(&self) -> Result<Vec<Candidate>, String> {
        start::candidates(&self.start, &self.genome(), &self.notations(), &self.activity())
    }

    /// Which parts of a candidate are there.
    pub(crate) fn activity(&self) -> Activity {
        // What cannot be read is one of the settings' problems.
        Activity::of(&self.genome.0).unwrap_or_default()
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
    pub(super) fn unsigned(&self) -> bool {
        self.program().is_some() && self.signature.is_empty()
    }
}

/// The name at an index from 0 in a list of names separated by commas, if there is one.
fn nth(names: &str, index: usize) -> Option<&str> {
    names.split(',').map(str::trim).nth(index).filter(|name| !name.is_empty())
}

/// The first name that occurs twice.
pub(crate) fn twice(names: &[String]) -> Option<&String> {
    let again = |(place, name): &(usize, &String)| names[..*place].contains(*name);
    names.iter().enumerate().find(again).map(|(_, name)| name)
}

/// Splits a text such as "min cost" into whether it is to be maximised, and its name.
pub(crate) fn objective(text: &str) -> Option<(bool, String)> {
    let (direction, name) = text.trim().split_once(' ')?;
    let maximised = match direction {
        "min" => false,
        "max" => true,
        _ => return None,
    };
    let plain = |c: char| c.is_ascii_graphic() && !"\"\\,".contains(c);
    (!name.is_empty() && name.chars().all(plain)).then(|| (maximised, name.to_owned()))
}
