//! The forms of the covariance matrix.

/// What is learnt of the covariance matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covariance {
    /// All of it.
    Full,
    /// A diagonal (Ros and Hansen 2008). Time and memory grow with the number of genes, not with its square.
    Separable,
    /// A diagonal and a few directions, as many as the search shows to be needed (Akimoto and Hansen 2016).
    Limited,
}
