//! What `nndtf` can be told.

use evoxo_common::{choice, ratio::Ratio, settings};
use evoxo_games::player::teacher::BOARDS;

use super::{
    network::{Kind, Numbering, SWEEPS_MAX},
    search::{CHROMOSOMES_MAX, ITERATIONS_MAX},
    task::SEGMENT_MAX,
};

choice! {
    /// What searches for the genes.
    pub enum Algorithm {
        /// the paper's improved genetic algorithm: seven evaluations an iteration
        Improved = "improved",
        /// the genetic algorithm of the paper's rival: one evaluation a chromosome and iteration
        Traditional = "traditional",
        /// an evolution strategy with covariance matrix adaptation (MA-ES, Beyer and Sendhoff 2017)
        CmaEs = "cma-es",
    }
}

choice! {
    /// A reading of the traditional algorithm: when the best of the former generation takes the place of the worst
    /// child. The paper is silent.
    pub enum Elite {
        /// if no child is as fit: equally fit children replace it, so that the best can drift
        UnlessEqualled = "unless-equalled",
        /// if no child is fitter: the best stays beside children that are as fit
        UnlessSurpassed = "unless-surpassed",
    }
}

choice! {
    /// A reading: what a hidden node of the double network reads off its neighbours. The formula puts the final
    /// outputs on both sides and says not how to solve it; for many networks there is no solution.
    pub enum Coupling {
        /// the outputs of their static transfer functions: feed-forward
        Static = "static",
        /// their final outputs by sweeps, the first from the static ones, all nodes at once
        Final = "final",
    }
}

choice! {
    /// What a task is.
    pub enum Farming {
        /// it moves a replica on by some iterations, from the state that it carries
        Segments = "segments",
        /// it judges the chromosomes of one round; the improved algorithm has two an iteration
        Evaluations = "evaluations",
    }
}

settings! {
    /// Networks 9-8-1 that learn to choose a cell of 3x3 tic-tac-toe as a teacher would, by genetic algorithms: one
    /// with double transfer functions and a traditional rival (Ling and Lam 2011). Arms of one file share their
    /// training boards and the boards of their matches, replica by replica.
    pub struct Settings, names Name, schema SCHEMA {
        /// Which network.
        network: Kind = choice("double"),
        /// What searches for the genes.
        algorithm: Algorithm = choice("improved"),
        /// Iterations of a genetic algorithm. The paper: 50000.
        iterations: u64 = whole(1, ITERATIONS_MAX, "50000"),
        /// Chromosomes that cma-es may judge; generations that would go beyond are left out. As many as the improved
        /// algorithm judges in the paper's 50000 iterations.
        evaluations: u64 = whole(4, ITERATIONS_MAX, "350000"),
        /// Chromosomes of a genetic algorithm; even for the traditional one. The paper: 10.
        population: u32 = whole(2, CHROMOSOMES_MAX as u64, "10"),
        /// Chromosomes of a generation of cma-es. Ours.
        offspring: u32 = whole(4, CHROMOSOMES_MAX as u64, "100"),
        /// The first size of a step of cma-es; genes lie from -1 to 1. Ours.
        sigma: Ratio = decimal(0, 10, "0.5"),
        /// The improved algorithm's w: the parents' share of a candidate; the rest is the end of the genes' range.
        /// The paper: 0.1.
        weight: Ratio = decimal(0, 1, "0.1"),
        /// The improved algorithm's pa: the probability that the best mutant replaces the worst chromosome whatever
        /// its fitness. The paper: 0.5.
        acceptance: Ratio = decimal(0, 1, "0.5"),
        /// The traditional algorithm's probability that a couple is crossed. The paper: 0.8.
        crossover: Ratio = decimal(0, 1, "0.8"),
        /// The traditional algorithm's probability that a gene is mutated. The paper: 0.1.
        mutation: Ratio = decimal(0, 1, "0.1"),
        /// How fast the traditional algorithm's mutations shrink: the exponent of the share of iterations left. The
        /// paper: 5.
        shape: Ratio = decimal(0, 1000, "5"),
        /// A reading of the traditional algorithm: when the best of the former generation takes the place of the
        /// worst child. The paper is silent.
        elite: Elite = choice("unless-equalled"),
        /// Training boards, all different, drawn from the 2423 with X to move that play can lead to. The paper: 100.
        boards: usize = whole(1, BOARDS as u64, "100"),
        /// A reading: what a hidden node of the double network reads off its neighbours. The formula puts the final
        /// outputs on both sides and says not how to solve it; for many networks there is no solution.
        coupling: Coupling = choice("static"),
        /// Sweeps of the final coupling; one is the same as static. Ours.
        sweeps: u32 = whole(1, SWEEPS_MAX as u64, "10"),
        /// A reading: how the cells are numbered 1 to 9, row by row from the top. It mirrors every board, which
        /// changes nothing but the numbers of chance.
        numbering: Numbering = choice("left-to-right"),
        /// What a task is.
        farming: Farming = execution choice("segments"),
        /// Iterations of a segment; 0 makes segments of some fifty milliseconds.
        segment: u64 = execution whole(0, SEGMENT_MAX, "0"),
    }
    check(check)
}

fn check(settings: &Settings) -> Vec<(Name, String)> {
    let mut problems = Vec::new();
    let Settings { algorithm, population, offspring, evaluations, .. } = *settings;
    if algorithm == Algorithm::Traditional && population % 2 == 1 {
        let sentence = format!("population is {population}, but the traditional algorithm needs couples");
        problems.push((Name::population, sentence));
    }
    if algorithm == Algorithm::CmaEs {
        if u64::from(offspring) > evaluations {
            let sentence = format!("offspring is {offspring}, but only {evaluations} may be judged");
            problems.push((Name::offspring, sentence));
        }
        if settings.sigma.numerator() == 0 {
            problems.push((Name::sigma, "sigma is 0, and cma-es would stay where it is".into()));
        }
    }
    problems
}
