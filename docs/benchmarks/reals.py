"""Real numbers: evoxo's `l-shade`, `pso` and default compared with differential evolution and particle swarms of libraries.

    python3 reals.py run FILE [SEARCH...]    appends each seed's least value to a file, unless it is there
    python3 reals.py tables FILE...          writes reals.csv from such files, and prints tables and tests

`evoxo run` calls this file as a program. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import common
import numpy as np

SEEDS = 11
Points = Any
"""An array with a point in each row."""


def rosenbrock(z: Points) -> Points:
    z = z + 1
    return (100 * (z[:, 1:] - z[:, :-1] ** 2) ** 2 + (1 - z[:, :-1]) ** 2).sum(1)


def schwefel(z: Points) -> Points:
    z = z + 420.968746
    inside = np.clip(z, -500, 500)
    return np.abs((418.98288727243369 - inside * np.sin(np.sqrt(np.abs(inside)))).sum(1)) + ((z - inside) ** 2).sum(1)


def ackley(z: Points) -> Points:
    waves = np.exp(np.cos(2 * np.pi * z).mean(1))
    return 20 + np.e - 20 * np.exp(-0.2 * np.sqrt((z**2).mean(1))) - waves


def griewank(z: Points) -> Points:
    return 1 + (z**2).sum(1) / 4000 - np.cos(z / np.sqrt(1 + np.arange(z.shape[1]))).prod(1)


FUNCTIONS: Dict[str, Tuple[float, Callable[[Points], Points]]] = {
    "sphere": (1, lambda z: (z**2).sum(1)),
    "ellipsoid": (1, lambda z: (z**2 * 10.0 ** (6 * np.arange(z.shape[1]) / (z.shape[1] - 1))).sum(1)),
    "rosenbrock": (1, rosenbrock),
    "rastrigin": (1, lambda z: (10 + z**2 - 10 * np.cos(2 * np.pi * z)).sum(1)),
    "schwefel": (100, schwefel),
    "ackley": (6.4, ackley),
    "griewank": (120, griewank),
}
"""Each with the factor from genes, -5 to 5, to its usual units. The least value is 0, at 0."""
NAMES = [*FUNCTIONS, *(f"{name}, rotated" for name in ("ellipsoid", "rosenbrock", "rastrigin", "griewank"))]
SIZES = [(genes, each) for genes in (10, 40) for each in (100, 1000)]
"""The number of genes, and of evaluations for each."""
LARGEST = ["rosenbrock", "rastrigin", "schwefel", "ellipsoid, rotated"]
"""The functions of the last size, which takes nearly all of the time."""
Case = Tuple[str, int, int]
SLOW = {"scipy DE": 100, "pymoo PSO": 0, "mealpy PSO": 0}
"""With 40 genes these were measured up to this number of evaluations for each."""
CASES = [(name, *size) for size in SIZES for name in (LARGEST if size == SIZES[-1] else NAMES)]


def made(name: str, genes: int) -> Callable[[Points], Points]:
    """The function, with its least value in a random place, and perhaps rotated at random."""
    plain, _, rotated = name.partition(", ")
    scale, function = FUNCTIONS[plain]
    rng = np.random.default_rng([genes, NAMES.index(name)])
    # The local optima of schwefel stay where they are.
    shift = np.full(genes, 4.20968746) if plain == "schwefel" else rng.uniform(-4, 4, genes)
    turn = np.linalg.qr(rng.normal(size=(genes, genes)))[0]

    def values(points: Points) -> Points:
        z = scale * (np.asarray(points, dtype=float) - shift)
        # Row by row, because the bits of a product of matrices depend on the number of rows.
        return function(np.array([row @ turn for row in z]) if rotated else z)

    return values


def program(name: str, genes: int) -> None:
    """Answers evoxo by its protocol."""
    function = made(name, genes)
    part = {"name": "x", "type": "real", "length": genes, "low": -5, "high": 5}
    print(json.dumps({"evoxo": 1, "name": "reals", "version": name, "objectives": ["min f"], "genome": [part]}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        values = function([item["genes"]["x"] for item in request["items"]]).tolist()
        print(json.dumps({"batch": request["batch"], "items": [{"f": [value]} for value in values]}), flush=True)


def evoxo(algorithm: str, case: Case) -> List[float]:
    name, genes, each = case
    with tempfile.TemporaryDirectory() as directory:
        settings = {"problem": "program:reals", "algorithm": algorithm, "evaluations": genes * each, "slice": 1000}
        command = f"{sys.executable} {Path(__file__).resolve()} program '{name}' {genes}"
        out = common.evoxo(directory, settings, SEEDS, 1, program=command)
        last = {int(row["replica"]): float(row["best"]) for row in common.read_file(out / "history.csv")}
        return [last[replica] for replica in range(SEEDS)]


class Counted:
    """A function that remembers the least of its values, until its evaluations are used up."""

    def __init__(self, case: Case) -> None:
        name, self.genes, each = case
        self.function, self.evaluations = made(name, self.genes), self.genes * each
        self.left, self.least, self.bounds = self.evaluations, float("inf"), [(-5.0, 5.0)] * self.genes

    def __call__(self, points: Points) -> Points:
        values = self.function(points)
        self.least = min([self.least, *values[: self.left].tolist()])
        self.left = max(0, self.left - len(values))
        return values

    def one(self, point: Points) -> float:
        return float(self(np.asarray(point)[None])[0])


def minion(algorithm: str, of: Counted, seed: int) -> None:
    import minionpy

    # Without this it stops when all genes are within 1e-8.
    own = {"maxevals": of.evaluations, "seed": seed, "options": {"x_tol": 0.0}}
    minionpy.Minimizer(lambda points, _=None: of(points).tolist(), of.bounds, algo=algorithm, **own).optimize()


def mealpy(_: str, of: Counted, seed: int) -> None:
    from mealpy import FloatVar
    from mealpy.swarm_based.PSO import OriginalPSO

    box = FloatVar(lb=[-5.0] * of.genes, ub=[5.0] * of.genes)
    problem = {"obj_func": of.one, "bounds": box, "minmax": "min", "log_to": None}
    OriginalPSO(of.evaluations // 50, 50).solve(problem, seed=seed, termination={"max_fe": of.evaluations})


def scipy(_: str, of: Counted, seed: int) -> None:
    from scipy.optimize import differential_evolution

    # 15 candidates for each gene, and no polishing with another method.
    most = of.evaluations // (15 * of.genes)
    differential_evolution(of.one, of.bounds, maxiter=most, tol=0, atol=-1, polish=False, rng=seed)


def pymoo(_: str, of: Counted, seed: int) -> None:
    from pymoo.algorithms.soo.nonconvex.pso import PSO
    from pymoo.core.problem import Problem
    from pymoo.optimize import minimize

    class Own(Problem):  # type: ignore[misc]
        def _evaluate(self, x: Points, out: Dict[str, Points], *_: object, **__: object) -> None:
            out["F"] = of(x)

    minimize(Own(of.genes, 1, xl=-5.0, xu=5.0), PSO(), ("n_eval", of.evaluations), seed=seed, verbose=False)


OWN = ["l-shade", "pso", "auto"]
PEERS: Dict[str, Tuple[Callable[[str, Counted, int], None], str]] = {
    "minion L-SHADE": (minion, "LSHADE"),
    "minion SPSO-2011": (minion, "SPSO2011"),
    "scipy DE": (scipy, ""),
    "pymoo PSO": (pymoo, ""),
    "mealpy PSO": (mealpy, ""),
}
SEARCHES = [*OWN, *PEERS]


def values(search: str, case: Case) -> List[float]:
    if search in OWN:
        return evoxo(search, case)
    found = [Counted(case) for _ in range(SEEDS)]
    for seed, of in enumerate(found, 1):
        PEERS[search][0](PEERS[search][1], of, seed)
    return [of.least for of in found]


def run(file: str, searches: List[str]) -> None:
    Path(file).touch()
    with open(file, "r+", newline="") as both:
        known = {tuple(row[:4]) for row in csv.reader(both)}
        rows = csv.writer(both, lineterminator="\n")
        for case in CASES:
            for search in searches or SEARCHES:
                is_slow = case[1] > 10 and case[2] > SLOW.get(search, 1000)
                if not is_slow and tuple(map(str, [*case, search])) not in known:
                    rows.writerow([*case, search, " ".join(f"{value:.4g}" for value in values(search, case))])
                    both.flush()


def tables(files: List[str]) -> None:
    all: Dict[Case, Dict[str, List[float]]] = {case: {} for case in CASES}
    for name, genes, each, search, found in (row for file in files for row in csv.reader(open(file, newline=""))):
        if int(genes) > 10 and int(each) > SLOW.get(search, 1000):
            continue
        # Values below 1e-10 differ by rounding.
        all.get((name, int(genes), int(each)), {})[search] = [max(1e-10, float(value)) for value in found.split()]

    def quartiles(case: Case, search: str) -> List[str]:
        found = all[case].get(search)
        return [f"{one:.2g}" for one in np.percentile(found, [25, 50, 75])] if found else [""] * 3

    rows = ([*case, *(" ".join(quartiles(case, search)).strip() for search in SEARCHES)] for case in CASES)
    common.write("reals.csv", ["function", "genes", "each", *SEARCHES], rows)
    short = lambda text: f"{float(text):,.0f}" if text and float(text) >= 100 else text  # noqa: E731
    medians = ([*case, *(short(quartiles(case, search)[1]) for search in SEARCHES)] for case in CASES)
    common.table(["function", "genes", "each", *SEARCHES], medians)
    for one, two in [(own, peer) for own in OWN for peer in PEERS]:
        both = [case for case in CASES if two in all[case]]
        ps = common.tested({case: (all[case][one], all[case][two]) for case in both})
        clear = [case for case in both if ps[case] < 0.05]
        less = {case for case in both if np.median(all[case][one]) < np.median(all[case][two])}
        worse = [" ".join(map(str, case)) for case in clear if case not in less]
        print(f"{one}, {two}: better {len(clear) - len(worse)}, not clear {len(both) - len(clear)}, worse {worse}")


if __name__ == "__main__":
    verb, *words = sys.argv[1:]
    if verb == "program":
        program(words[0], int(words[1]))
    else:
        run(words[0], words[1:]) if verb == "run" else tables(words)
