//! The settings of `evolve` that are a choice between words.

use evoxo_common::choice;

choice! {
    /// Whether a candidate's value depends on its seed.
    pub enum NoiseName {
        /// the problem decides: built-in problems know, and a program is noisy if its function takes a seed
        Declared = "declared",
        /// it does: the best candidates are evaluated again at the end of a search, and only those values are reported
        Yes = "yes",
        /// it does not: a value that was seen is the candidate's value
        No = "no",
    }
}

choice! {
    /// What to do with a candidate that has no value.
    pub enum OnFailure {
        /// its task fails; if it fails on three workers, so does the run
        Stop = "stop",
        /// the candidate is worse than any other; failures are counted and shown with the results
        Worst = "worst",
    }
}

choice! {
    /// Whether the coordinator recalls the values of candidates that were evaluated before.
    pub enum RecallName {
        /// those of programs and modules are, those of built-in problems are not, because computing them takes less time; with
        /// noise = "no" only for equal seeds, because values may depend on them
        Auto = "auto",
        /// they are
        Yes = "yes",
        /// every value is computed
        No = "no",
    }
}

choice! {
    /// What is added to a file for comparison.
    pub enum BaselineName {
        /// random search, as an additional arm
        Random = "random",
        /// nothing
        None = "none",
    }
}

choice! {
    /// How curves of the best candidates summarise replicas.
    pub enum CurvesName {
        /// medians if values fall by powers of ten, because one bad replica would hide all others in a mean; otherwise means
        Fitting = "fitting",
        /// means and the middle 80 % of replicas
        Means = "means",
        /// medians and quartiles
        Medians = "medians",
    }
}
