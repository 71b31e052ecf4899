//! The settings of `nndtf`.

use evoxo_common::{choice, ratio::Ratio, settings};
use evoxo_games::player::teacher::BOARDS;

use super::{
    boards::{Source, Stones, Training},
    measure::{Formula, Measure, Occupied},
    network::{self, Bounds, HIDDEN_MAX, Kind, Network, Numbering, SWEEPS_MAX},
};

/// The largest population, and the most chromosomes in one task.
pub const CHROMOSOMES_MAX: usize = 4096;
/// The most iterations of a search.
pub const ITERATIONS_MAX: u64 = 1_000_000_000;
/// The most iterations of one task.
pub const SEGMENT_MAX: u64 = 10_000_000;

choice! {
    /// The search algorithm for the genes.
    pub enum Algorithm {
        /// the paper's improved genetic algorithm: seven evaluations per iteration
        Improved = "improved",
        /// the genetic algorithm of the paper's rival: one evaluation per chromosome and iteration
        Traditional = "traditional",
        /// an evolution strategy with covariance matrix adaptation (MA-ES, Beyer and Sendhoff 2017)
        CmaEs = "cma-es",
    }
}

choice! {
    /// A reading of the traditional algorithm: when the best of the previous generation replaces the worst child. The
    /// paper does not say.
    pub enum Elite {
        /// if no child is as fit; equally fit children replace it, so the best can drift
        UnlessEqualled = "unless-equalled",
        /// if no child is fitter; the best then stays together with children that are as fit
        UnlessSurpassed = "unless-surpassed",
    }
}

choice! {
    /// A reading: what a hidden node of the double network reads from its neighbours. The formula has the final outputs on
    /// both sides. The paper does not say how to solve it, and for many networks there is no solution.
    pub enum Coupling {
        /// the outputs of their static transfer functions, so the network is feed-forward
        Static = "static",
        /// their final outputs, computed in sweeps of all nodes at once that start from the static outputs
        Final = "final",
        /// the same, but one node after another: each reads what the previous node has just become
        InPlace = "in-place",
        /// nothing: each output counts as 1, so genes alone give the mean and the spread of a node's second function
        Nothing = "nothing",
    }
}

choice! {
    /// A reading of the improved algorithm: what w weighs in the two candidates near the bounds of the genes. The equations
    /// and the text after them contradict each other.
    pub enum Weighs {
        /// the parents, as in equations 24 and 25
        Parents = "parents",
        /// the bounds, as in the text: near the bounds "as w in (24) and (25) approaches 1"
        Bounds = "bounds",
    }
}

choice! {
    /// A reading of both genetic algorithms: whether the two parents may be the same chromosome.
    pub enum Parents {
        /// they may: the wheel is spun twice
        Any = "any",
        /// they may not: the first parent is taken off the wheel before the second spin
        Different = "different",
    }
}

choice! {
    /// A reading of the improved algorithm: what may join the population.
    pub enum Joins {
        /// only the three mutants, as in the paper's procedure
        Mutants = "mutants",
        /// the offspring too: it is judged again and treated like a mutant, so an iteration has eight evaluations
        OffspringToo = "offspring-too",
    }
}

choice! {
    /// A reading of the improved algorithm: how many genes the second mutant redraws, which are "some" in the paper.
    pub enum SomeGenes {
        /// each gene with probability 1/2
        Half = "half",
        /// each gene with probability k/n for n genes, where k is drawn from 1 to n for each mutant
        AnyNumber = "any-number",
    }
}

choice! {
    /// The improved algorithm's three mutants.
    pub enum Mutants {
        /// as in the paper: the first redraws one gene, the second some, the third all
        OneSomeAll = "one-some-all",
        /// each redraws one gene
        OneGene = "one-gene",
    }
}

choice! {
    /// A reading of the traditional algorithm: how much an iteration replaces.
    pub enum Births {
        /// the whole population, with as many couples as it needs
        All = "all",
        /// two parents, which their two children replace
        Couple = "couple",
    }
}

choice! {
    /// A reading of the traditional algorithm: what the probability of mutation applies to.
    pub enum Mutates {
        /// each gene
        Genes = "genes",
        /// each child, which is then mutated in one gene
        Child = "child",
    }
}

choice! {
    /// What one task computes.
    pub enum Farming {
        /// some iterations of a replica, starting from the state that the task carries
        Segments = "segments",
        /// the fitness of the chromosomes of one round; the improved algorithm has two rounds per iteration
        Evaluations = "evaluations",
    }
}

settings! {
    /// Networks 9-8-1 learn from a teacher to choose a cell in 3x3 tic-tac-toe, by genetic algorithms: a network with double
    /// transfer functions and a traditional rival (Ling and Lam 2011). Replicas of the same number have the same training
    /// boards and match openings in all arms of a file.
    pub struct Settings, names Name, schema SCHEMA {
        /// The kind of network.
        network: Kind = choice("double"),
        /// Hidden nodes of either network. The paper: 8.
        hidden: usize = addition whole(1, HIDDEN_MAX as u64, "8"),
        /// The least value of a gene. The paper: -1.
        gene_min: Ratio = addition real(-1000, 1000, "-1"),
        /// The greatest value of a gene. The paper: 1.
        gene_max: Ratio = addition real(-1000, 1000, "1"),
        /// The search algorithm for the genes.
        algorithm: Algorithm = choice("improved"),
        /// Iterations of a genetic algorithm. The paper: 50000.
        iterations: u64 = whole(1, ITERATIONS_MAX, "50000") when algorithm is ["improved", "traditional"],
        /// Chromosomes that cma-es may evaluate. It stops before a generation that would exceed this number. The default is
        /// the number that the improved algorithm evaluates in the paper's 50000 iterations.
        evaluations: u64 = whole(4, ITERATIONS_MAX, "350000") when algorithm is ["cma-es"],
        /// Chromosomes of a genetic algorithm; even for the traditional one. The paper: 10.
        population: u32 = whole(2, CHROMOSOMES_MAX as u64, "10") when algorithm is ["improved", "traditional"],
        /// Individuals per generation of cma-es. Our choice.
        offspring: u32 = whole(4, CHROMOSOMES_MAX as u64, "100") when algorithm is ["cma-es"],
        /// The initial step size of cma-es, as a share of half the range of a gene. Our choice.
        sigma: Ratio = real(0, 10, "0.5") when algorithm is ["cma-es"],
        /// The improved algorithm's w: the parents' share of a candidate. The rest comes from the bounds of the genes. The
        /// paper: 0.1.
        weight: Ratio = real(0, 1, "0.1") when algorithm is ["improved"],
        /// The improved algorithm's pa: the probability that the best mutant replaces the worst chromosome even if it
        /// is less fit. The paper: 0.5.
        acceptance: Ratio = real(0, 1, "0.5") when algorithm is ["improved"],
        /// The traditional algorithm's probability that a pair of parents is crossed. The paper: 0.8.
        crossover: Ratio = real(0, 1, "0.8") when algorithm is ["traditional"],
        /// The traditional algorithm's probability that a gene is mutated. The paper: 0.1.
        mutation: Ratio = real(0, 1, "0.1") when algorithm is ["traditional"],
        /// How fast the traditional algorithm's mutations shrink: the exponent of the share of iterations left. The paper: 5.
        shape: Ratio = real(0, 1000, "5") when algorithm is ["traditional"],
        /// A reading of the traditional algorithm: when the best of the previous generation replaces the worst child.
        /// The paper does not say.
        elite: Elite = choice("unless-equalled") when algorithm is ["traditional"],
        /// Training boards. They are all different and drawn from the 2423 reachable boards with X to move. The paper: 100.
        boards: usize = whole(1, BOARDS as u64, "100"),
        /// A reading: how training boards are drawn. The paper does not say.
        training: Training = addition choice("uniform"),
        /// A reading: how many stones training boards have. The paper does not say.
        stones: Stones = addition choice("any"),
        /// A reading: how the scores of the chosen cells give the fitness. The printed formula can be read both ways.
        fitness: Formula = addition choice("mean-of-ratios"),
        /// A reading: the worth in training of an output that names an occupied cell. In play the nearest empty cell is
        /// taken.
        occupied: Occupied = addition choice("nearest"),
        /// A reading of the improved algorithm: what w weighs in the two candidates near the bounds of the genes. The
        /// equations and the text after them contradict each other.
        weighs: Weighs = addition choice("parents") when algorithm is ["improved"],
        /// A reading of both genetic algorithms: whether the two parents may be the same chromosome.
        parents: Parents = addition choice("any") when algorithm is ["improved", "traditional"],
        /// A reading of the improved algorithm: what may join the population.
        joins: Joins = addition choice("mutants") when algorithm is ["improved"],
        /// A reading of the improved algorithm: how many genes the second mutant redraws, which are "some" in the paper.
        some: SomeGenes = addition choice("half") when algorithm is ["improved"] and mutants is ["one-some-all"],
        /// The improved algorithm's three mutants. The paper says that one mutated gene may be enough once fitness is high.
        mutants: Mutants = addition choice("one-some-all") when algorithm is ["improved"],
        /// A reading of the traditional algorithm: how much an iteration replaces.
        births: Births = addition choice("all") when algorithm is ["traditional"],
        /// A reading of the traditional algorithm: what the probability of mutation applies to.
        mutates: Mutates = addition choice("genes") when algorithm is ["traditional"],
        /// A reading: what a hidden node of the double network reads from its neighbours. The formula has the final outputs
        /// on both sides. The paper does not say how to solve it, and for many networks there is no solution.
        coupling: Coupling = choice("static") when network is ["double"],
        /// Sweeps of the final and of the in-place coupling. One sweep of the final coupling equals static coupling. Our
        /// choice.
        sweeps: u32 = whole(1, SWEEPS_MAX as u64, "10") when coupling is ["final", "in-place"],
        /// A reading: the order in which the cells are numbered from 1 to 9, row by row from the top. The two orders mirror
        /// every board and differ only in their random numbers.
        numbering: Numbering = choice("left-to-right"),
        /// What one task computes.
        farming: Farming = execution choice("segments"),
        /// Iterations per segment. With 0, a segment takes about 50 ms.
        segment: u64 = execution whole(0, SEGMENT_MAX, "0") when farming is ["segments"],
    }
    check(check)
}

impl Settings {
    /// The network that these settings describe.
    #[must_use]
    pub fn architecture(&self) -> Network {
        let Self { network: kind, hidden, coupling, sweeps, numbering, .. } = *self;
        let coupling = match (kind, coupling) {
            (Kind::Double, Coupling::Final) => network::Coupling::at_once(sweeps),
            (Kind::Double, Coupling::InPlace) => network::Coupling::in_place(sweeps),
            (Kind::Double, Coupling::Nothing) => network::Coupling::at_once(0),
            _ => network::Coupling::at_once(1),
        };
        Network { kind, hidden, coupling, numbering }
    }

    /// The number of iterations of the search. For cma-es, iterations are generations.
    #[must_use]
    pub fn search_iterations(&self) -> u64 {
        match self.algorithm {
            Algorithm::CmaEs => self.evaluations / u64::from(self.offspring),
            Algorithm::Improved | Algorithm::Traditional => self.iterations,
        }
    }

    /// The bounds of a gene.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        (self.gene_min.to_f64() as f32, self.gene_max.to_f64() as f32)
    }

    /// Where the training boards come from.
    #[must_use]
    pub const fn source(&self) -> Source {
        Source { training: self.training, stones: self.stones }
    }

    /// How training boards are judged.
    #[must_use]
    pub const fn measure(&self) -> Measure {
        Measure { formula: self.fitness, occupied: self.occupied }
    }
}

fn check(settings: &Settings) -> Vec<(Name, String)> {
    let mut problems = Vec::new();
    let (least, most) = settings.bounds();
    if least >= most {
        let sentence =
            format!("gene_min is {least} and gene_max {most}, so a gene has no range: give more for gene_max");
        problems.push((Name::gene_max, sentence));
    }
    let Settings { algorithm, population, offspring, evaluations, .. } = *settings;
    if algorithm == Algorithm::Traditional && population % 2 == 1 {
        let sentence =
            format!("population is {population}, but the traditional algorithm needs pairs: give an even number");
        problems.push((Name::population, sentence));
    }
    let can_come = settings.source().pool().len();
    if settings.boards > can_come {
        let sentence = format!(
            "boards is {}, but this training and these stones allow only {can_come} different boards: give at most \
             that many",
            settings.boards
        );
        problems.push((Name::boards, sentence));
    }
    if algorithm == Algorithm::CmaEs {
        if u64::from(offspring) > evaluations {
            let sentence = format!("offspring is {offspring}, but only {evaluations} evaluations are allowed");
            problems.push((Name::offspring, sentence));
        }
        if settings.sigma.numerator() == 0 {
            problems.push((Name::sigma, "sigma is 0, so cma-es would never move: give more than 0".into()));
        }
    }
    problems
}
