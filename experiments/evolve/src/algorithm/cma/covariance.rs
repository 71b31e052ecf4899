//! The forms of the covariance matrix.

/// What a search learns of the covariance matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covariance {
    /// The full matrix.
    Full,
    /// A diagonal matrix (Ros and Hansen 2008). Time and memory grow linearly with the number of genes, not quadratically.
    Separable,
    /// A diagonal plus a few directions, as many as the search needs (Akimoto and Hansen 2016).
    Limited,
}
