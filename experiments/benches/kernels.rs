//! All kernels and their reference implementations: `cargo bench -p evoxo-experiments`. (`evoxo bench` prints the same
//! without criterion.)

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use evoxo_experiments::registry;

fn kernels(criterion: &mut Criterion) {
    let registry = registry();
    for kernel in registry.kinds().iter().flat_map(|kind| kind.kernels) {
        let mut group = criterion.benchmark_group(kernel.name);
        for (path, work) in [("fast", kernel.fast), ("reference", kernel.reference)] {
            group.throughput(Throughput::Elements(work()));
            group.bench_function(path, |bench| bench.iter(work));
        }
    }
}

criterion_group!(benches, kernels);
criterion_main!(benches);
