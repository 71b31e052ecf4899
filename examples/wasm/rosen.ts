// Rosenbrock's valley as a WebAssembly module (docs/own-problem.md), in AssemblyScript:
//
//     npm install assemblyscript@0.28.20
//     npx asc rosen.ts -O3 --noAssert --runtime stub --use abort= -o rosen-as.wasm
//
// `--use abort=` removes the import env.abort, because a module may not import anything.

// The genes, which the answer overwrites: at most 100 numbers.
const BYTES: i32 = 800;
const numbers: usize = memory.data(BYTES, 8);

export function evoxo_buffer(bytes: i32): usize {
  return bytes <= BYTES ? numbers : 0;
}

export function evoxo_evaluate(x: usize, bytes: i32, seed: u64): i32 {
  let cost: f64 = 0;
  for (let i: i32 = 0; i + 8 < bytes; i += 8) {
    const here = load<f64>(x + i), next = load<f64>(x + i, 8);
    const step = next - here * here, rest = 1 - here;
    cost += 100 * (step * step) + rest * rest;
  }
  store<f64>(x, cost);
  return 1;
}
