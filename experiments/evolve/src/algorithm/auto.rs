//! The default of the setting `algorithm`: which algorithm fits a problem. docs/benchmarks/default.md has the figures behind each
//! row of the rule.

use evoxo_common::{
    settings::{Follows, OPEN},
    text::counted,
};

use super::{AlgorithmKind, Cma, Ga, Given, LShade, Leaves, MapElites, Most, Nsga2, Nsga3, SETTING, Wrong, cma};
use crate::genome::Type;

/// Stands in a file for the algorithm that [`Situation::follows`] chooses. It searches nothing: the settings of a run name an
/// algorithm, or lack the signature of a program whose genome is not known yet.
pub const AUTO: &AlgorithmKind = &AlgorithmKind {
    name: OPEN,
    doc: "the one that fits the genome, the objectives, the noise and the evaluations; a note says which one, and why",
    parts: &[],
    objectives_max: usize::MAX,
    leaves: |_| Leaves::Nothing,
    made: None,
    keeps_bounds: |_| true,
    check: |_| Err(Wrong::new(SETTING, "the algorithm is not chosen yet: name one")),
    has_parents: false,
    shrinks: false,
    asks: false,
    defaults: |_| &[],
    noise: None,
    // No run is planned before its algorithm is chosen, but a fork of a file is checked, whose program may not be known yet.
    most: |given| Most { candidates: 1, batches: given.evaluations, kept: 1, state_bytes: 0 },
    begin: |_, _, _| Err("the algorithm is not chosen yet".into()),
    steady: None,
};

/// Evaluations for each gene from which `ga` is the choice for whole numbers alone, if `cma-es` would have no model.
const WHOLE_EACH: u64 = 1000;
/// Evaluations for each pair of genes from which `l-shade` is the choice for real numbers, and for real and whole numbers together.
/// With so many, local optima matter more than dependencies between genes, which `cma-es` has learnt long before.
const REAL_PAIRS: u64 = 200;
const MIXED_PAIRS: u64 = 50;

/// Free genes from which `cma-es` has the covariance "limited": time and memory of a full matrix grow with their square.
const LIMITED_GENES: usize = 300;

/// Free genes up to which `cma-es` has a model of the objective: the time to fit it grows with the sixth power of their number.
const MODEL_GENES: usize = 20;

/// What the choice depends on. Workers and longer searches never see it, because a run's configuration names the algorithm.
pub struct Situation<'a> {
    /// The settings. The genome is [valid](crate::genome::Genome::valid).
    pub given: Given<'a>,
    /// Whether there is a grid for the behaviour measures.
    pub has_grid: bool,
}

impl Situation<'_> {
    /// The algorithm that fits best, and what follows for the settings: the algorithm itself, and how it is to be set.
    #[must_use]
    pub fn follows(&self) -> (&'static AlgorithmKind, Vec<Follows>) {
        let (algorithm, why) = self.choice();
        let mut follows = vec![Follows { setting: SETTING, value: algorithm.name, why }];
        let genes = self.given.genome.free_genes();
        if algorithm == CMA_ES && genes >= LIMITED_GENES {
            let why = format!("there are {genes} genes");
            follows.push(Follows { setting: "covariance", value: "limited", why });
        }
        if algorithm == CMA_ES && self.can_have_model() {
            let why = format!("there are {}, none of them a bit, and values have no noise", counted(genes, "gene"));
            follows.push(Follows { setting: "model", value: "quadratic", why });
        }
        (algorithm, follows)
    }

    /// Whether a model helps `cma-es`. With bits it does not.
    fn can_have_model(&self) -> bool {
        let has_bits = self.has(|of| matches!(of, Type::Bits));
        self.given.genome.free_genes() <= MODEL_GENES
            && !has_bits
            && !self.given.noisy
            && cma::can_have_model(&self.given)
    }

    /// Whether a part that is not fixed has such a type.
    fn has(&self, is: fn(Type) -> bool) -> bool {
        self.given.genome.parts.iter().any(|part| part.fixed().is_none() && is(part.of))
    }

    /// The algorithm that fits best, and why: the first row that applies.
    fn choice(&self) -> (&'static AlgorithmKind, String) {
        let (objectives, genes) = (self.given.objectives, self.given.genome.free_genes());
        let has_reals = self.has(|of| matches!(of, Type::Real { .. }));
        let has_wholes = self.has(|of| matches!(of, Type::Integer { .. }));
        let has_bits = self.has(|of| matches!(of, Type::Bits));
        let numbers = match (has_reals, has_wholes || has_bits) {
            (true, false) => "real numbers",
            (false, true) => "whole numbers",
            _ => "real and whole numbers",
        };
        let budget = format!(
            "there are {} for {}",
            counted(self.given.evaluations as usize, "evaluation"),
            counted(genes, "gene")
        );
        let pairs = (genes as u64).saturating_mul(genes as u64);
        let needed = if has_wholes { MIXED_PAIRS } else { REAL_PAIRS };
        match () {
            () if objectives > 2 => (NSGA3, format!("there are {objectives} objectives")),
            () if objectives == 2 => (NSGA2, "there are two objectives".into()),
            () if self.has_grid => (MAP_ELITES, "there is a grid for the measures".into()),
            () if self.given.window > 0 => (GA, "it can search with a window".into()),
            () if genes == 0 => (GA, "all genes are fixed".into()),
            () if self.has(|of| matches!(of, Type::Permutation | Type::Symbols { .. })) => {
                (GA, "some genes are not numbers".into())
            }
            () if !has_reals && !has_wholes => (GA, "all genes are bits".into()),
            () if self.given.noisy => (CMA_ES, format!("genes are {numbers}, and values have noise")),
            () if !has_reals && self.given.evaluations / genes as u64 >= WHOLE_EACH && !self.can_have_model() => {
                (GA, format!("genes are {numbers}, and {budget}"))
            }
            () if has_reals && !has_bits && self.given.evaluations >= pairs.saturating_mul(needed) => {
                (L_SHADE, format!("genes are {numbers}, and {budget}"))
            }
            () => (CMA_ES, format!("genes are {numbers}, and {budget}")),
        }
    }
}

const NSGA3: &AlgorithmKind = &AlgorithmKind::of::<Nsga3>();
const NSGA2: &AlgorithmKind = &AlgorithmKind::of::<Nsga2>();
const MAP_ELITES: &AlgorithmKind = &AlgorithmKind::of::<MapElites>();
const GA: &AlgorithmKind = &AlgorithmKind::of::<Ga>();
const L_SHADE: &AlgorithmKind = &AlgorithmKind::of::<LShade>();
const CMA_ES: &AlgorithmKind = &AlgorithmKind::of::<Cma>();
