//! The settings that evolution strategies share: the length of steps, and what bounds are for.

use evoxo_common::{choice, ratio::Ratio, settings, settings::Values};

use super::{Wrong, kind::Part};

choice! {
    /// What the bounds of real genes are for.
    enum BoundsName {
        /// no gene leaves them
        Kept = "kept",
        /// searches start between them and may leave them: for functions that have a value everywhere
        Begin = "begin",
    }
}

settings! {
    /// The shared settings of evolution strategies.
    struct Steps, names Step, schema STEPS {
        /// The first step of cma-es and cma-mae, and the standard deviation of all steps of openai-es, as a share of the range.
        /// 0: 0.2 for cma-es, 0.1 for cma-mae, 0.02 for openai-es.
        sigma: Ratio = real(0, 10, "0"),
        /// What the bounds of the genes are for. Other algorithms keep them.
        bounds: BoundsName = addition choice("kept"),
    }
}

/// The settings of evolution strategies.
pub(super) const STRATEGY: Part = Part { elsewhere, ..Part::of(&STEPS) };

fn elsewhere(own: &Values, owners: &str) -> Result<(), Wrong> {
    match keeps_bounds(own) {
        true => Ok(()),
        false => Err(Wrong::new("bounds", format!("only {owners} can leave the bounds: set bounds = \"kept\""))),
    }
}

/// Whether all genes stay within their bounds.
pub(super) fn keeps_bounds(own: &Values) -> bool {
    Steps::of(own).bounds == BoundsName::Kept
}

/// The length of steps as a share of the range; `usual` if the file does not set it.
pub(super) fn sigma(own: &Values, usual: f64) -> f64 {
    match Steps::of(own).sigma {
        Ratio::ZERO => usual,
        sigma => sigma.to_f64(),
    }
}
