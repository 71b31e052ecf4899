//! Checks of the settings of `evolve`. Each finding is a sentence.

use evoxo_common::{rng::Stream, text::counted};

use super::{
    super::{
        activity::Activity,
        algorithm::{BASELINE, Leaves, having, listed},
        known_front::points,
        problem, wasm,
        wrong::Wrong,
    },
    GENES_MAX, Name, Settings, objective, twice,
};

impl Settings {
    pub(super) fn problems(&self) -> Vec<(Name, String)> {
        let mut found = self.problems_of_problem();
        found.extend(self.wrong_module());
        if self.target_number().is_some() && self.objectives().len() > 1 {
            found.push((
                Name::target,
                "a target needs a problem with one objective, but this one has several: leave it out".into(),
            ));
        }
        if !self.target.trim().is_empty() && self.target_number().is_none() {
            found.push((Name::target, format!("target is {:?}, but must be a number such as 1e-8", self.target)));
        }
        found.extend(self.names_twice());
        found.extend(Activity::of(&self.genome.0).err().map(|why| (Name::genome, why)));
        if !found.is_empty() || self.unsigned() {
            return found;
        }
        let genome = self.genome();
        if let Err(why) = genome.valid() {
            return vec![(Name::genome, why)];
        }
        if genome.genes() > GENES_MAX {
            return vec![(Name::genome, format!("the genome has {} genes, more than {GENES_MAX}", genome.genes()))];
        }
        let objectives = self.objectives().len();
        if objectives > self.algorithm.objectives_max {
            let others = listed(&having(|kind| objectives <= kind.objectives_max && kind != BASELINE), "or");
            let most = match self.algorithm.objectives_max {
                1 => "only one".into(),
                most => format!("at most {most}"),
            };
            let sentence =
                format!("the problem has {objectives} objectives, but this algorithm takes {most}: choose {others}");
            found.push((Name::algorithm, sentence));
        }
        if !self.reference.is_empty() && self.reference.len() != objectives {
            let sentence = format!(
                "reference has {} for {}: give a number for each objective",
                counted(self.reference.len(), "number"),
                counted(objectives, "objective")
            );
            found.push((Name::reference, sentence));
        }
        if let Err(why) = points(&self.known_front, objectives) {
            found.push((Name::known_front, why));
        }
        if self.leaves() == Leaves::Archive {
            let (axes, measures) = (self.grid.0.len(), self.measure_count());
            if axes != measures && !(axes == 0 && self.built_in().is_some()) {
                let axes = if axes == 1 { "1 axis".into() } else { format!("{axes} axes") };
                let measures = counted(measures, "measure");
                found.push((Name::grid, format!("the grid has {axes} for {measures}: give a [[grid]] for each")));
            }
        }
        // A program may still have to say what its genome is.
        if self.genome().valid().is_ok()
            && let Err(why) = self.starts()
        {
            found.push((Name::start, why));
        }
        if let Err(Wrong { setting, sentence }) = self.algorithm.check_all(&self.given()) {
            // Algorithms name their parameters like the settings.
            found.push((Name::named(setting).unwrap_or(Name::own(setting)), sentence));
        }
        found
    }

    /// Names that occur twice: tables have a column for each name, and cards an entry.
    fn names_twice(&self) -> Vec<(Name, String)> {
        let all: [(Name, &str, Vec<String>); 4] = [
            (Name::genome, "parts of the genome", self.genome.0.iter().map(|part| part.name.clone()).collect()),
            (Name::objectives, "objectives", self.objectives().into_iter().map(|(_, name)| name).collect()),
            (Name::constraint_names, "constraints", self.constraints_by_name()),
            (Name::measure_names, "measures", self.measures_by_name()),
        ];
        let sentence = |(setting, what, names): &(Name, &str, Vec<String>)| {
            Some((*setting, format!("two {what} are called {}: give each its own name", twice(names)?)))
        };
        all.iter().filter_map(sentence).collect()
    }

    fn wrong_objective(&self) -> Option<(Name, String)> {
        let mut words = self.objectives.split(',').map(str::trim).filter(|text| !text.is_empty());
        let wrong = words.find(|text| objective(text).is_none())?;
        Some((Name::objectives, format!("{wrong:?} must be \"min NAME\" or \"max NAME\"")))
    }

    /// A sentence if the search begins with only some of the given candidates: a distribution begins around one, and a first
    /// population has room for a number of them.
    pub(super) fn unused_start(&self) -> Option<String> {
        let given = self.given();
        let count = given.start.len();
        // With a window, candidates are made one by one, and each of these is made in its turn.
        if count < 2 || self.window > 0 {
            return None;
        }
        let algorithm = self.algorithm.begin(&given, given.search(Stream::root(0)), None).ok()?;
        let used = if algorithm.mean().is_some() { 1 } else { algorithm.whole() };
        let name = self.algorithm.name;
        (used < count).then(|| format!("start has {count} candidates, but {name} begins with only {used} of them"))
    }

    fn problems_of_module(&self) -> Vec<(Name, String)> {
        let mut found: Vec<(Name, String)> = self.wrong_objective().into_iter().collect();
        if self.module_file() == Some("") {
            found.push((Name::problem, "wasm: must be followed by a file, for example wasm:rosen.wasm".into()));
        }
        for (name, given) in [(Name::signature, &self.signature), (Name::answers, &self.answers)] {
            if !given.is_empty() {
                found.push((name, format!("{} is only for programs: leave it out", name.text())));
            }
        }
        if self.objectives.trim().is_empty() {
            found.push((Name::objectives, "a module needs objectives, for example \"min cost\"".into()));
        }
        if self.genome.0.is_empty() {
            found.push((Name::genome, "a module needs the genome: add [[genome]]".into()));
        }
        found
    }

    /// What is wrong with the module itself. A task has it outside of its settings, where it is compiled only once.
    fn wrong_module(&self) -> Option<(Name, String)> {
        self.module_file().filter(|_| !self.module.is_empty())?;
        let why = wasm::decode(&self.module).and_then(|bytes| wasm::Module::new(&bytes)).err()?;
        Some((Name::module, why))
    }

    /// What is wrong with the settings of the problem, apart from the contents of a module.
    pub(super) fn problems_of_problem(&self) -> Vec<(Name, String)> {
        let mut found = Vec::new();
        if self.module_file().is_none() && !self.module.is_empty() {
            found.push((Name::module, "module is only for problems that are WebAssembly modules: leave it out".into()));
        }
        match (self.program(), self.built_in()) {
            _ if self.module_file().is_some() => found.extend(self.problems_of_module()),
            (Some(name), _) => {
                let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
                if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
                    found.push((Name::problem, "a program's name has 1 to 64 letters, digits, _, . and -".into()));
                }
                found.extend(self.wrong_objective());
                let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
                for (name, given) in [(Name::signature, &self.signature), (Name::answers, &self.answers)] {
                    if !given.is_empty() && !is_hash(given) {
                        let sentence = format!("{} must have 64 hexadecimal digits, or be empty", name.text());
                        found.push((name, sentence));
                    }
                }
                if !self.unsigned() && (self.genome.0.is_empty() || self.objectives().is_empty()) {
                    found.push((
                        Name::genome,
                        "a file with a signature also needs the genome and the objectives".into(),
                    ));
                }
            }
            (None, Some(problem)) => {
                let other = [
                    (Name::objectives, !self.objectives.is_empty()),
                    (Name::constraints, self.constraints > 0),
                    (Name::measures, self.measures > 0),
                    (Name::signature, !self.signature.is_empty()),
                    (Name::answers, !self.answers.is_empty()),
                ];
                let (least, most) = problem.lengths;
                if self.length != 0 && !(least..=most).contains(&self.length) {
                    found
                        .push((Name::length, format!("the length of {} must be from {least} to {most}", problem.name)));
                }
                for (name, _) in other.into_iter().filter(|(_, given)| *given) {
                    found.push((
                        name,
                        format!("{} is only for programs, but {} is built in", name.text(), problem.name),
                    ));
                }
                if !self.genome.0.is_empty() {
                    found.push((Name::genome, format!("{} has its own genome: set its length instead", problem.name)));
                }
            }
            (None, None) => {
                let known: Vec<&str> = problem::PROBLEMS.iter().map(|problem| problem.name).collect();
                found.push((
                    Name::problem,
                    format!(
                        "there is no problem {:?}: use program:NAME, wasm:FILE, or one of {}",
                        self.problem,
                        known.join(", ")
                    ),
                ));
            }
        }
        found
    }
}
