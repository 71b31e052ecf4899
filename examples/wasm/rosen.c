/* Rosenbrock's valley as a WebAssembly module (docs/own-problem.md), with clang and lld:
 *
 *     clang --target=wasm32 -O2 -ffp-contract=off -nostdlib -Wl,--no-entry -Wl,--strip-all -Wl,-z,stack-size=4096 \
 *         -o rosen.wasm rosen.c
 *
 * The operations are in the same order as in the built-in function, so all bits are equal.
 */

/* The genes, which the answer overwrites: at most 100 numbers. */
static double numbers[100];

__attribute__((export_name("evoxo_buffer"))) void *evoxo_buffer(int bytes)
{
    return bytes <= (int)sizeof numbers ? numbers : 0;
}

__attribute__((export_name("evoxo_evaluate"))) int evoxo_evaluate(double *x, int bytes, unsigned long long seed)
{
    double cost = 0;

    for (int i = 0; i + 1 < bytes / 8; i++) {
        double step = x[i + 1] - x[i] * x[i], rest = 1 - x[i];
        cost += 100 * (step * step) + rest * rest;
    }
    x[0] = cost;
    return 1;
}
