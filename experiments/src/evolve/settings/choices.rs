//! Settings of `evolve` that are one of several words.

use evoxo_common::choice;

choice! {
    /// What searches.
    pub enum AlgorithmName {
        /// uniform random search, the baseline
        Random = "random",
        /// a genetic algorithm, for genes of every type
        Ga = "ga",
        /// CMA-ES, for real genes
        Cma = "cma-es",
        /// OpenAI's evolution strategy, for thousands of real genes
        OpenAiEs = "openai-es",
        /// NSGA-II, for several objectives
        Nsga2 = "nsga2",
        /// MAP-Elites, for the best of every kind: the problem must have behaviour measures
        MapElites = "map-elites",
    }
}

choice! {
    /// Whether a candidate's value depends on its seed.
    pub enum NoiseName {
        /// as the problem says: built-in ones know, and so does a program whose function takes a seed
        Declared = "declared",
        /// it does: the best candidates are evaluated anew at the end of a search, and only those values are told
        Yes = "yes",
        /// it does not: a value that was seen is the candidate's value
        No = "no",
    }
}

choice! {
    /// What a candidate without a value means.
    pub enum OnFailure {
        /// the task has failed; if it fails on three workers, so does the run
        Stop = "stop",
        /// the candidate is worse than any other; failures are counted, and shown beside the results
        Worst = "worst",
    }
}

choice! {
    /// Mutation of real genes.
    pub enum RealMutationName {
        /// polynomial mutation (Deb and Agrawal 1999), with mutation_eta
        Polynomial = "polynomial",
        /// a normal deviate, with deviation
        Gaussian = "gaussian",
    }
}

choice! {
    /// Mutation of whole numbers.
    pub enum IntegerMutationName {
        /// a step up or down, geometrically distributed, with deviation as its mean
        Step = "step",
        /// a step up or down of any length, each order of size equally likely (Doerr, Doerr and Kötzing 2018)
        Harmonic = "harmonic",
        /// any other number, each equally likely
        Redraw = "redraw",
    }
}

choice! {
    /// Crossover of bits and symbols.
    pub enum StringCrossoverName {
        /// each gene from either parent
        Uniform = "uniform",
        /// cut at one place
        OnePoint = "one-point",
        /// cut at two places
        TwoPoint = "two-point",
    }
}

choice! {
    /// Crossover of permutations.
    pub enum OrderCrossoverName {
        /// order crossover, OX (Davis 1985)
        Order = "order",
        /// edge recombination (Whitley, Starkweather and Fuquay 1989)
        Edge = "edge",
        /// one of both for each child, by chance
        Mixed = "mixed",
    }
}

choice! {
    /// Mutation of permutations.
    pub enum OrderMutationName {
        /// two places change their contents
        Swap = "swap",
        /// a piece is turned round: the 2-opt move of a tour
        Inversion = "inversion",
        /// one place moves
        Insertion = "insertion",
        /// one of the three for each child, by chance
        Mixed = "mixed",
    }
}

choice! {
    /// What the bounds of real genes are for.
    pub enum BoundsName {
        /// no gene leaves them
        Kept = "kept",
        /// a search begins between them and may leave them: for functions that have a value everywhere
        Begin = "begin",
    }
}

choice! {
    /// The covariance matrix of CMA-ES.
    pub enum CovarianceName {
        /// full, up to some hundred genes
        Full = "full",
        /// diagonal, for long genomes (Ros and Hansen 2008)
        Separable = "separable",
    }
}

choice! {
    /// What CMA-ES does when a search has converged.
    pub enum RestartsName {
        /// it ends
        None = "none",
        /// it begins again with twice the population (Auger and Hansen 2005)
        Ipop = "ipop",
        /// it alternates between twice the population and small ones (Hansen 2009)
        Bipop = "bipop",
    }
}

choice! {
    /// What a file without random search gets to be compared with.
    pub enum BaselineName {
        /// random search as an arm of its own
        Random = "random",
        /// nothing
        None = "none",
    }
}
