//! The settings of `nndtf`.

use evoxo_common::{choice, ratio::Ratio, settings};
use evoxo_games::player::teacher::BOARDS;

use super::{
    network::{Bounds, HIDDEN_MAX, Kind, Numbering, SWEEPS_MAX},
    search::{CHROMOSOMES_MAX, ITERATIONS_MAX},
    task::SEGMENT_MAX,
};

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
        /// if no child is as fit: equally fit children replace it, so that the best can drift
        UnlessEqualled = "unless-equalled",
        /// if no child is fitter: the best stays beside children that are as fit
        UnlessSurpassed = "unless-surpassed",
    }
}

choice! {
    /// A reading: what a hidden node of the double network reads from its neighbours. The formula has the final outputs
    /// on both sides and the paper does not say how to solve it; for many networks there is no solution.
    pub enum Coupling {
        /// the outputs of their static transfer functions: feed-forward
        Static = "static",
        /// their final outputs by sweeps, the first from the static ones, all nodes at once
        Final = "final",
    }
}

choice! {
    /// What one task computes.
    pub enum Farming {
        /// some iterations of a replica, from the state that the task carries
        Segments = "segments",
        /// the fitness of one round's chromosomes; the improved algorithm has two rounds per iteration
        Evaluations = "evaluations",
    }
}

settings! {
    /// Networks 9-8-1 that learn from a teacher to choose a cell of 3x3 tic-tac-toe, by genetic algorithms: one network
    /// with double transfer functions and a traditional rival (Ling and Lam 2011). Replicas of the same number have the
    /// same training boards and match openings in all arms of a file.
    pub struct Settings, names Name, schema SCHEMA {
        /// The kind of network.
        network: Kind = choice("double"),
        /// Hidden nodes of either network. The paper: 8.
        hidden: usize = addition whole(1, HIDDEN_MAX as u64, "8"),
        /// The least value of a gene. The paper: -1.
        gene_min: Ratio = addition decimal(-1000, 1000, "-1"),
        /// The greatest value of a gene. The paper: 1.
        gene_max: Ratio = addition decimal(-1000, 1000, "1"),
        /// The search algorithm for the genes.
        algorithm: Algorithm = choice("improved"),
        /// Iterations of a genetic algorithm. The paper: 50000.
        iterations: u64 = whole(1, ITERATIONS_MAX, "50000"),
        /// Chromosomes that cma-es may evaluate; it stops before a generation that would exceed this. The default is
        /// the number that the improved algorithm evaluates in the paper's 50000 iterations.
        evaluations: u64 = whole(4, ITERATIONS_MAX, "350000"),
        /// Chromosomes of a genetic algorithm; even for the traditional one. The paper: 10.
        population: u32 = whole(2, CHROMOSOMES_MAX as u64, "10"),
        /// Chromosomes per generation of cma-es. Our choice.
        offspring: u32 = whole(4, CHROMOSOMES_MAX as u64, "100"),
        /// The initial step size of cma-es, in half ranges of a gene. Our choice.
        sigma: Ratio = decimal(0, 10, "0.5"),
        /// The improved algorithm's w: the parents' share of a candidate; the rest comes from the bounds of the genes.
        /// The paper: 0.1.
        weight: Ratio = decimal(0, 1, "0.1"),
        /// The improved algorithm's pa: the probability that the best mutant replaces the worst chromosome even if it
        /// is less fit. The paper: 0.5.
        acceptance: Ratio = decimal(0, 1, "0.5"),
        /// The traditional algorithm's probability that a pair of parents is crossed. The paper: 0.8.
        crossover: Ratio = decimal(0, 1, "0.8"),
        /// The traditional algorithm's probability that a gene is mutated. The paper: 0.1.
        mutation: Ratio = decimal(0, 1, "0.1"),
        /// How fast the traditional algorithm's mutations shrink: the exponent of the share of iterations left. The
        /// paper: 5.
        shape: Ratio = decimal(0, 1000, "5"),
        /// A reading of the traditional algorithm: when the best of the previous generation replaces the worst child.
        /// The paper does not say.
        elite: Elite = choice("unless-equalled"),
        /// Training boards, all different, drawn from the 2423 reachable boards with X to move. The paper: 100.
        boards: usize = whole(1, BOARDS as u64, "100"),
        /// A reading: what a hidden node of the double network reads from its neighbours. The formula has the final
        /// outputs on both sides and the paper does not say how to solve it; for many networks there is no solution.
        coupling: Coupling = choice("static"),
        /// Sweeps of the final coupling; one sweep is the same as static coupling. Our choice.
        sweeps: u32 = whole(1, SWEEPS_MAX as u64, "10"),
        /// A reading: how the cells are numbered 1 to 9, row by row from the top. The two numberings mirror every board
        /// and differ only in their random numbers.
        numbering: Numbering = choice("left-to-right"),
        /// What one task computes.
        farming: Farming = execution choice("segments"),
        /// Iterations per segment; 0 chooses segments of about 50 ms.
        segment: u64 = execution whole(0, SEGMENT_MAX, "0"),
    }
    check(check)
}

impl Settings {
    /// The bounds of a gene.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        (self.gene_min.to_f64() as f32, self.gene_max.to_f64() as f32)
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
