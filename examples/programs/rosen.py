"""Rosenbrock's valley in 30 dimensions (Rosenbrock 1960): the cost is 0 where all genes are 1."""
import evoxo


@evoxo.problem(genome=evoxo.reals(30, -5, 5), objectives=["min cost"])
def rosen(x):
    cost = 0.0
    for a, b in zip(x, x[1:]):  # products and a loop: `**` and `sum` give different bits elsewhere (docs/own-problem.md)
        cost += 100 * (b - a * a) * (b - a * a) + (1 - a) * (1 - a)
    return cost


evoxo.main(rosen)
