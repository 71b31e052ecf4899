"""evoxo's MAP-Elites compared with pyribs, with equal evaluations, the same grid and the same kind of steps.

    python3 quality.py run       writes quality.csv
    python3 quality.py tables    prints the table

`sphere` and `rastrigin` with 20 genes have the two measures of Fontaine et al. 2020: sums of the clipped halves of the
genome. `arm` is evoxo's, with 10 joints. A score is 100 for the best objective and 0 for the worst. Both maps are measured
by the same code. `evoxo run` calls this file as a program.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

import common

EVALUATIONS = 10_000
BATCH = 100
CELLS = 50
SEEDS = 11
GENES = {"sphere": 20, "rastrigin": 20, "arm": 10}
BOUND = {"sphere": 5.12, "rastrigin": 5.12, "arm": 3.141592}
REACH = {"sphere": 51.2, "rastrigin": 51.2, "arm": 1.0}
"""Each measure ranges from minus this number to plus this number."""
SHIFT = 2.048
"""The optimum of each gene."""


def evaluate(problem: str, x: Sequence[float]) -> Tuple[float, float, float]:
    """The score and the measures."""
    if problem == "arm":
        mean = sum(x) / len(x)
        variance = sum((angle - mean) * (angle - mean) for angle in x) / len(x)
        direction, place = 0.0, [0.0, 0.0]
        for angle in x:
            direction += angle
            place = [place[0] + math.cos(direction) / len(x), place[1] + math.sin(direction) / len(x)]
        return 100 * (1 - variance / BOUND["arm"] ** 2), place[0], place[1]
    clipped = [gene if abs(gene) <= 5.12 else 5.12 / gene for gene in x]
    measures = sum(clipped[: len(x) // 2]), sum(clipped[len(x) // 2 :])
    if problem == "sphere":
        cost, worst = sum((gene - SHIFT) ** 2 for gene in x), (5.12 + SHIFT) ** 2 * len(x)
    else:
        cost = sum((g - SHIFT) ** 2 - 10 * math.cos(2 * math.pi * (g - SHIFT)) + 10 for g in x)
        worst = ((5.12 + SHIFT) ** 2 + 20) * len(x)
    return 100 * (1 - cost / worst), measures[0], measures[1]


def program(problem: str) -> None:
    """Answers evoxo by its protocol."""
    part = {"name": "x", "type": "real", "length": GENES[problem], "low": -BOUND[problem], "high": BOUND[problem]}
    said = {"evoxo": 1, "name": problem, "version": "1", "objectives": ["max score"], "measures": ["a", "b"]}
    print(json.dumps({**said, "genome": [part]}), flush=True)
    for line in sys.stdin:
        request, answers = json.loads(line), []
        for item in request["items"]:
            score, *measures = evaluate(problem, item["genes"]["x"])
            answers.append({"f": [score], "m": measures})
        print(json.dumps({"batch": request["batch"], "items": answers}), flush=True)


def figures(problem: str, elites: Sequence[Sequence[float]]) -> Tuple[float, float]:
    """The QD score and the share of cells that have an elite."""
    best: Dict[Tuple[int, int], float] = {}
    reach = REACH[problem]
    for genes in elites:
        score, *measures = evaluate(problem, genes)
        a, b = (min(max(int((value + reach) / (2 * reach) * CELLS), 0), CELLS - 1) for value in measures)
        best[a, b] = max(best.get((a, b), 0.0), score)
    return sum(best.values()), len(best) / CELLS**2


def of_evoxo(problem: str) -> List[Tuple[float, float]]:
    with tempfile.TemporaryDirectory() as directory:
        settings = {"problem": f"program:{problem}", "algorithm": "map-elites", "evaluations": EVALUATIONS}
        settings["slice"] = BATCH
        grid = f"[[grid]]\nlow = {-REACH[problem]}\nhigh = {REACH[problem]}\ncells = {CELLS}\n" * 2
        command = f"{sys.executable} {Path(__file__).resolve()} program --problem {problem}"
        out = common.evoxo(directory, settings, SEEDS, 1, "--populations", program=command, tables=grid)
        maps = [[card["genes"]["x"] for card in common.cards(out, replica)] for replica in range(SEEDS)]
        return [figures(problem, elites) for elites in maps]


def of_pyribs(problem: str, seed: int) -> Tuple[float, float]:
    import numpy
    from ribs.archives import GridArchive
    from ribs.emitters import IsoLineEmitter
    from ribs.schedulers import Scheduler

    count, bound, reach = GENES[problem], BOUND[problem], REACH[problem]
    first = numpy.random.default_rng(seed).uniform(-bound, bound, (BATCH, count))
    archive = GridArchive(solution_dim=count, dims=[CELLS, CELLS], ranges=[(-reach, reach)] * 2)
    emitter = IsoLineEmitter(
        archive, iso_sigma=0.01 * 2 * bound, line_sigma=0.2, initial_solutions=first, batch_size=BATCH, seed=seed,
        lower_bounds=[-bound] * count, upper_bounds=[bound] * count,
    )
    scheduler = Scheduler(archive, [emitter])
    for _ in range(EVALUATIONS // BATCH):
        values = [evaluate(problem, genes.tolist()) for genes in scheduler.ask()]
        scheduler.tell([value[0] for value in values], [value[1:] for value in values])
    return figures(problem, archive.data("solution").tolist())


def run() -> None:
    rows: List[List[object]] = []
    for problem in GENES:
        ours = of_evoxo(problem)
        for search, found in (("evoxo", ours), ("pyribs", [of_pyribs(problem, seed) for seed in range(1, SEEDS + 1)])):
            rows += [[problem, search, seed, f"{qd:.1f}", f"{share:.4f}"] for seed, (qd, share) in enumerate(found, 1)]
        print(problem, file=sys.stderr)
    common.write("quality.csv", ["problem", "search", "seed", "qd", "coverage"], rows)


def tables() -> None:
    rows = []
    for problem in GENES:
        for column, digits in (("qd", 0), ("coverage", 3)):
            texts, medians = [], []
            for search in ("evoxo", "pyribs"):
                found = common.read("quality.csv")
                mine = [row for row in found if (row["problem"], row["search"]) == (problem, search)]
                middle, low, high = common.interval([float(row[column]) for row in mine])
                medians.append(middle)
                texts.append(f"{middle:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})")
            what = "QD score" if column == "qd" else "coverage"
            rows.append([f"{problem}, {what}", *texts, f"{medians[0] / medians[1]:.3f}"])
    common.table(["problem", "evoxo", "pyribs", "ratio"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "tables", "program"])
    parser.add_argument("--problem", choices=list(GENES))
    typed = parser.parse_args()
    program(typed.problem) if typed.verb == "program" else {"run": run, "tables": tables}[typed.verb]()
