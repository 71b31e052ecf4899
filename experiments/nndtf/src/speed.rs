//! Throughput of one core, for `evoxo bench`: a hundred random networks, each evaluated on a hundred boards.

use std::{hint::black_box, sync::LazyLock};

use evoxo_common::{experiment::Kernel, rng::Stream};

use super::{
    boards::{Source, training_boards},
    judge::Judge,
    measure::Measure,
    network::{Kind, Network},
    reference,
};

/// The benchmarked kernels.
pub(super) const KERNELS: &[Kernel] = &[Kernel {
    name: "nndtf_fitness",
    unit: "networks/s",
    fast: || {
        let Workload { judge, genes, .. } = &*WORKLOAD;
        black_box(genes.iter().fold(0, |sum, genes| sum ^ judge.sum(black_box(genes))));
        genes.len() as u64
    },
    reference: || {
        let Workload { judge, boards, genes } = &*WORKLOAD;
        genes[..5]
            .iter()
            .for_each(|genes| _ = black_box(reference::fitness(judge.network(), Measure::USUAL, genes, boards)));
        5
    },
    parts: None,
}];

struct Workload {
    judge: Judge,
    boards: Vec<u32>,
    genes: Vec<Vec<f32>>,
}

static WORKLOAD: LazyLock<Workload> = LazyLock::new(|| {
    let network = Network::paper(Kind::Double);
    let boards = training_boards(1, 0, Source::USUAL, 100);
    let genes = (0..100).map(|index| network.random(&mut Stream::root(1).word(index).rng())).collect();
    Workload { judge: Judge::new(network, Measure::USUAL, &boards), boards, genes }
});
