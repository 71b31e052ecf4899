"""NSGA-II of evoxo and of pymoo: the hypervolume of the last population, computed by the same code for both.

    python3 fronts.py run [PROBLEM...]    writes fronts.csv, or only the rows of these problems
    python3 fronts.py tables              prints the table
"""

from __future__ import annotations

import sys
import tempfile
from typing import List

import common

EVALUATIONS = 25_000
SEEDS = 31
PROBLEMS = ["zdt1", "zdt2", "zdt3", "zdt4", "zdt6", "dtlz2"]


def hypervolume(front: List[List[float]]) -> float:
    """The hypervolume of a population; the reference point is 1.1 in each objective."""
    import numpy
    from pymoo.indicators.hv import HV

    return float(HV(ref_point=[1.1] * len(front[0]))(numpy.array(front)))


def of_pymoo(problem: str, seed: int) -> float:
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.optimize import minimize
    from pymoo.problems import get_problem

    made = get_problem(problem, n_var=12, n_obj=3) if problem == "dtlz2" else get_problem(problem)
    found = minimize(made, NSGA2(pop_size=100), ("n_eval", EVALUATIONS), seed=seed, verbose=False)
    assert found.algorithm.evaluator.n_eval == EVALUATIONS
    return hypervolume([list(row) for row in found.pop.get("F")])


def of_evoxo(problem: str) -> List[float]:
    with tempfile.TemporaryDirectory() as directory:
        settings = {"problem": problem, "algorithm": "nsga2", "evaluations": EVALUATIONS}
        out = common.evoxo(directory, settings, SEEDS, 1, "--populations")
        cards = [common.cards(out, replica) for replica in range(SEEDS)]
        return [hypervolume([list(card["objectives"].values()) for card in population]) for population in cards]


def run(problems: List[str]) -> None:
    columns = ["problem", "search", "hypervolumes"]
    for problem in problems or PROBLEMS:
        rows: List[List[object]] = [[row[it] for it in columns] for row in common.read("fronts.csv")]
        rows = [row for row in rows if row[0] != problem]
        theirs = [of_pymoo(problem, seed) for seed in range(1, SEEDS + 1)]
        for search, volumes in (("evoxo", of_evoxo(problem)), ("pymoo", theirs)):
            rows.append([problem, search, " ".join(f"{volume:.6f}" for volume in volumes)])
        common.write("fronts.csv", columns, sorted(rows, key=lambda row: PROBLEMS.index(str(row[0]))))
        print(problem, file=sys.stderr)


def tables() -> None:
    rows = []
    for problem in PROBLEMS:
        texts, medians = [], []
        for search in ("evoxo", "pymoo"):
            mine = [row for row in common.read("fronts.csv") if (row["problem"], row["search"]) == (problem, search)]
            middle, low, high = common.interval([float(volume) for volume in mine[0]["hypervolumes"].split()])
            medians.append(middle)
            texts.append(f"{middle:.4f} ({low:.4f} to {high:.4f})")
        rows.append([problem, *texts, f"{medians[0] / medians[1]:.4f}"])
    common.table(["problem", "evoxo", "pymoo", "ratio"], rows)


if __name__ == "__main__":
    run(sys.argv[2:]) if sys.argv[1] == "run" else tables()
