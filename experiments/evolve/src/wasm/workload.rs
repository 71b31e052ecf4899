//! The fixed workload of modules. Its outputs are part of the behaviour signature, so a worker whose interpreter computes
//! anything differently gets no tasks.

use bytes::Bytes;

use crate::messages::{Candidate, EvaluateTask, Genes, Item, Shared};

/// See workload.wat.
const MODULE: &[u8] = include_bytes!("workload.wasm");
/// The number of modes of the module, which are counted from 0.
const MODES: i64 = 16;

/// Candidates for all modes, and what their task shares.
pub(crate) fn workload() -> (EvaluateTask, Bytes) {
    let settings = "problem = \"wasm:workload.wasm\"\nalgorithm = \"ga\"\nfuel = 200000\nobjectives = \"min a\"\nconstraints = 1\nmeasures = 2\n\
                    on_failure = \"worst\"\ngenome = [{ name = \"mode\", type = \"integer\", high = 15 }, { name = \"x\", \
                    length = 4, low = -5, high = 5 }]\n";
    let item = |mode: i64| {
        let reals = [0.7, -1.3, 2.5, -4.1].map(|real| real + mode as f64 / 16.0).to_vec();
        let parts = [Genes { integers: vec![mode], ..Genes::default() }, Genes { reals, ..Genes::default() }].to_vec();
        let seed = 0x9e37_79b9_7f4a_7c15_u64.rotate_left(mode as u32);
        Item { id: mode.to_string(), seed, candidate: Some(Candidate { parts }), number: 0 }
    };
    let shared = Shared { settings: settings.into(), module: MODULE.into(), steps: None };
    (EvaluateTask { items: (0..MODES).map(item).collect(), timeout_ms: 0 }, shared.encode())
}
