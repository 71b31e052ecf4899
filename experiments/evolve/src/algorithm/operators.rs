//! The operators of [`Variation`] in experiment files.

use evoxo_common::{choice, ratio::Ratio, settings};

use super::Given;
use crate::{
    genome::Type,
    variation::{IntegerMutation, OrderCrossover, OrderMutation, RealMutation, StringCrossover, Variation},
};

choice! {
    /// Mutation of real genes.
    enum RealMutationName {
        /// polynomial mutation (Deb and Agrawal 1999), with mutation_eta
        Polynomial = "polynomial",
        /// a normal deviate; deviation is its size
        Gaussian = "gaussian",
    }
}

choice! {
    /// Mutation of whole numbers.
    enum IntegerMutationName {
        /// a step up or down, geometrically distributed; deviation is its mean
        Step = "step",
        /// a step up or down of any length, each order of magnitude equally likely (Doerr, Doerr and Kötzing 2018)
        Harmonic = "harmonic",
        /// any other number, each equally likely
        Redraw = "redraw",
    }
}

choice! {
    /// Crossover of bits and symbols.
    enum StringCrossoverName {
        /// each gene from either parent
        Uniform = "uniform",
        /// cut at one point
        OnePoint = "one-point",
        /// cut at two points
        TwoPoint = "two-point",
    }
}

choice! {
    /// Crossover of permutations.
    enum OrderCrossoverName {
        /// order crossover, OX (Davis 1985)
        Order = "order",
        /// edge recombination (Whitley, Starkweather and Fuquay 1989)
        Edge = "edge",
        /// one of the two for each child, at random
        Mixed = "mixed",
    }
}

choice! {
    /// Mutation of permutations.
    enum OrderMutationName {
        /// two places exchange their contents
        Swap = "swap",
        /// a segment is reversed: the 2-opt move of a tour
        Inversion = "inversion",
        /// one place moves to another position
        Insertion = "insertion",
        /// one of the three for each child, at random
        Mixed = "mixed",
    }
}

settings! {
    /// How children are made from their parents.
    pub(super) struct Operators, names Operator, schema OPERATORS {
        /// The probability that a child has two parents.
        crossover: Ratio = real(0, 1, "0.9"),
        /// How many genes of a child are mutated, on average.
        mutations: Ratio = real(0, 100_000, "1"),
        /// The index of simulated binary crossover (Deb and Agrawal 1995): the greater, the closer children are to their
        /// parents.
        crossover_eta: Ratio = real(0, 1_000, "15"),
        /// Mutation of real genes.
        real_mutation: RealMutationName = choice("polynomial"),
        /// The index of polynomial mutation: the greater, the shorter the steps.
        mutation_eta: Ratio = real(0, 1_000, "20") when real_mutation is ["polynomial"],
        /// The size of gaussian mutations and of steps of whole numbers, as a share of the range.
        deviation: Ratio = real(0, 1, "0.1"),
        /// Mutation of whole numbers.
        integer_mutation: IntegerMutationName = choice("harmonic"),
        /// Crossover of bits and symbols.
        string_crossover: StringCrossoverName = choice("two-point"),
        /// Crossover of permutations.
        order_crossover: OrderCrossoverName = choice("mixed"),
        /// Mutation of permutations.
        order_mutation: OrderMutationName = choice("mixed"),
        /// The probability that a permutation is mutated.
        order_rate: Ratio = real(0, 1, "0.5"),
    }
}

/// The settings that only real genes use.
pub(super) const OF_REALS: &[&str] = &["crossover_eta", "real_mutation", "mutation_eta"];

/// The operators in a file. An operator that no part of the genome needs gets its default, whatever the file says.
pub(super) fn variation(given: &Given<'_>) -> Variation {
    let (own, usual, share) = (Operators::of(given.own), Variation::default(), Ratio::to_f64);
    let has = |needs: fn(Type) -> bool| given.genome.parts.iter().any(|part| needs(part.of));
    let has_reals = has(|of| matches!(of, Type::Real { .. }));
    let has_integers = has(|of| matches!(of, Type::Integer { .. }));
    Variation {
        crossover: share(own.crossover),
        mutations: share(own.mutations),
        crossover_eta: share(own.crossover_eta),
        stays_near: usual.stays_near,
        real_mutation: match own.real_mutation {
            _ if !has_reals => usual.real_mutation,
            RealMutationName::Polynomial => RealMutation::Polynomial { eta: share(own.mutation_eta) },
            RealMutationName::Gaussian => RealMutation::Gaussian { deviation: share(own.deviation) },
        },
        integer_mutation: match own.integer_mutation {
            _ if !has_integers => usual.integer_mutation,
            IntegerMutationName::Step => IntegerMutation::Step { mean: share(own.deviation) },
            IntegerMutationName::Redraw => IntegerMutation::Redraw,
            IntegerMutationName::Harmonic => IntegerMutation::Harmonic,
        },
        string_crossover: match own.string_crossover {
            StringCrossoverName::Uniform => StringCrossover::Uniform,
            StringCrossoverName::OnePoint => StringCrossover::OnePoint,
            StringCrossoverName::TwoPoint => StringCrossover::TwoPoint,
        },
        order_crossover: match own.order_crossover {
            OrderCrossoverName::Order => OrderCrossover::Order,
            OrderCrossoverName::Edge => OrderCrossover::Edge,
            OrderCrossoverName::Mixed => OrderCrossover::Mixed,
        },
        order_mutation: match own.order_mutation {
            OrderMutationName::Swap => OrderMutation::Swap,
            OrderMutationName::Inversion => OrderMutation::Inversion,
            OrderMutationName::Insertion => OrderMutation::Insertion,
            OrderMutationName::Mixed => OrderMutation::Mixed,
        },
        order_rate: share(own.order_rate),
    }
}
