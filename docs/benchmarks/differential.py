"""Differential evolution on real numbers: evoxo's `l-shade` and `cma-es`, mealpy's L-SHADE, and the defaults of scipy and pymoo.

    python3 differential.py run        writes differential.csv
    python3 differential.py tables     prints the table

The functions are those of suite.py, which answers evoxo as a program.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
from typing import Any, Callable, Dict, List

import common
import suite

SEEDS = 7
CASES = {
    f"{name} {length}": (length, budget, low, high, function)
    for length, budget in ((10, 20_000), (20, 40_000))
    for name, low, high, function in (
        ("sphere", -5, 5, suite.sphere),
        ("ellipsoid", -5, 5, suite.ellipsoid),
        ("rosenbrock", -5, 10, suite.rosenbrock),
        ("rastrigin", -5.12, 5.12, suite.rastrigin),
        ("ackley", -32, 32, suite.ackley),
        ("griewank", -600, 600, suite.griewank),
        ("levy", -10, 10, suite.levy),
        ("schwefel", -500, 500, suite.schwefel),
    )
}
"""Number of genes, evaluations, bounds, and the function."""
for name, (length, _, low, high, function) in CASES.items():
    suite.PROBLEMS[name] = ("differential", "real", length, low, high, function)


def evoxo(algorithm: str) -> Callable[[str], List[float]]:
    def values(name: str) -> List[float]:
        with tempfile.TemporaryDirectory() as directory:
            settings = {"problem": "program:suite", "algorithm": algorithm, "evaluations": CASES[name][1], "slice": 100}
            if algorithm == "cma-es":
                settings["restarts"] = "bipop"
            command = f"{sys.executable} {common.HERE / 'differential.py'} program '{name}'"
            out = common.evoxo(directory, settings, SEEDS, 1, program=command)
            rows = common.read_file(out / "history.csv")
            last: Dict[int, float] = {int(row["replica"]): float(row["best"]) for row in rows}
            return [last[replica] for replica in range(SEEDS)]

    return values


def mealpy(name: str) -> List[float]:
    from mealpy import FloatVar
    from mealpy.evolutionary_based.SHADE import L_SHADE

    length, budget, low, high, function = CASES[name]

    def least(seed: int) -> float:
        problem = {
            "obj_func": lambda x: function(x.tolist()),
            "bounds": FloatVar(lb=[low] * length, ub=[high] * length),
            "minmax": "min",
            "log_to": None,
        }
        search = L_SHADE(epoch=100_000, pop_size=18 * length)
        return float(search.solve(problem, seed=seed, termination={"max_fe": budget}).target.fitness)

    return [least(seed) for seed in range(1, SEEDS + 1)]


def scipy(name: str) -> List[float]:
    from scipy.optimize import differential_evolution

    length, budget, low, high, function = CASES[name]

    def least(seed: int) -> float:
        # 15 candidates for each gene, and no polishing with another method.
        generations = budget // (15 * length) - 1
        bounds = [(low, high)] * length
        return float(differential_evolution(function, bounds, maxiter=generations, tol=0, polish=False, rng=seed).fun)

    return [least(seed) for seed in range(1, SEEDS + 1)]


def pymoo(name: str) -> List[float]:
    from pymoo.algorithms.soo.nonconvex.de import DE
    from pymoo.core.problem import ElementwiseProblem
    from pymoo.optimize import minimize

    length, budget, low, high, function = CASES[name]

    class Own(ElementwiseProblem):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(n_var=length, n_obj=1, xl=low, xu=high)

        def _evaluate(self, x: Any, out: Dict[str, float], *_: object, **__: object) -> None:
            out["F"] = function(x.tolist())

    def least(seed: int) -> float:
        return float(minimize(Own(), DE(pop_size=100), ("n_eval", budget), seed=seed, verbose=False).F[0])

    return [least(seed) for seed in range(1, SEEDS + 1)]


SEARCHES = {"l-shade": evoxo("l-shade"), "cma-es": evoxo("cma-es"), "mealpy": mealpy, "scipy": scipy, "pymoo": pymoo}


def run() -> None:
    rows = []
    for name in CASES:
        for search, values in SEARCHES.items():
            random.seed(1)
            rows.append((name, search, " ".join(f"{value:.3g}" for value in values(name))))
            print(*rows[-1], file=sys.stderr)
    common.write("differential.csv", ["problem", "search", "least"], rows)


def tables() -> None:
    rows = common.read("differential.csv")
    of = {(row["problem"], row["search"]): statistics.median(map(float, row["least"].split())) for row in rows}
    common.table(["problem", *SEARCHES], ([name, *(f"{of[name, search]:.2g}" for search in SEARCHES)] for name in CASES))


if __name__ == "__main__":
    if sys.argv[1] == "program":
        suite.program(sys.argv[2])
    else:
        {"run": run, "tables": tables}[sys.argv[1]]()
