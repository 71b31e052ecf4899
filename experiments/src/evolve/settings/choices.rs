//! Settings of `evolve` that are one of several words.

use evoxo_common::choice;

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
    /// What a file without random search gets to be compared with.
    pub enum BaselineName {
        /// random search as an arm of its own
        Random = "random",
        /// nothing
        None = "none",
    }
}

choice! {
    /// How replicas are summed up in curves of the best candidates.
    pub enum CurvesName {
        /// medians where the values fall by powers of ten, because one bad replica would hide all others in a mean; else means
        Fitting = "fitting",
        /// means and the middle 80 % of replicas
        Means = "means",
        /// medians and quartiles
        Medians = "medians",
    }
}
