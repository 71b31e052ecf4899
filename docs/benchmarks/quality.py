"""evoxo's MAP-Elites and CMA-MAE compared with pyribs, with equal evaluations and the same grid.

    python3 quality.py run       writes quality.csv
    python3 quality.py tables    prints the table

`sphere` and `rastrigin` with 20 genes have the two measures of Fontaine et al. 2020: sums of the clipped halves of the
genome. `arm` is evoxo's, with 10 joints. A score is 100 for the best objective and 0 for the worst. All maps are measured by
the same code. `evoxo run` calls this file as a program.
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

MARKS = (10_000, 50_000)
"""Evaluations after which maps are measured."""
BATCH = 100
CELLS = 50
SEEDS = 11
GENES = {"sphere": 20, "rastrigin": 20, "arm": 10}
BOUND = {"sphere": 5.12, "rastrigin": 5.12, "arm": 3.141592}
REACH = {"sphere": 51.2, "rastrigin": 51.2, "arm": 1.0}
"""Each measure ranges from minus this number to plus this number."""
SIGMA = {"sphere": 0.5, "rastrigin": 0.5, "arm": 0.2}
"""The first steps of pyribs' emitters, as in its tutorials and papers."""
SHIFT = 2.048
"""The optimum of each gene."""
OURS = ("map-elites", "cma-mae")
PEERS = ("IsoLine", "CMA-MAE", "CMA-MAE 0.1", "CMA-ME")


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


class Map:
    """The best score of each cell."""

    def __init__(self, problem: str) -> None:
        self.reach, self.best = REACH[problem], {}

    def take(self, score: float, *measures: float) -> None:
        reach = self.reach
        cell = tuple(min(max(int((value + reach) / (2 * reach) * CELLS), 0), CELLS - 1) for value in measures)
        self.best[cell] = max(self.best.get(cell, 0.0), score)

    def qd(self) -> float:
        return sum(self.best.values())


def of_evoxo(problem: str, algorithm: str, evaluations: int) -> List[float]:
    """The QD score of each seed."""
    with tempfile.TemporaryDirectory() as directory:
        settings = {"problem": f"program:{problem}", "algorithm": algorithm, "evaluations": evaluations}
        settings.update(reference=[0], slice=BATCH)
        grid = f"[[grid]]\nlow = {-REACH[problem]}\nhigh = {REACH[problem]}\ncells = {CELLS}\n" * 2
        command = f"{sys.executable} {Path(__file__).resolve()} program --problem {problem}"
        out = common.evoxo(directory, settings, SEEDS, 1, "--populations", program=command, tables=grid)
        scores = []
        for replica in range(SEEDS):
            found = Map(problem)
            for card in common.cards(out, replica):
                found.take(*evaluate(problem, card["genes"]["x"]))
            scores.append(found.qd())
        return scores


def of_pyribs(problem: str, search: str, seed: int) -> List[float]:
    """The QD score at each mark."""
    import numpy
    from ribs.archives import GridArchive
    from ribs.emitters import EvolutionStrategyEmitter, IsoLineEmitter
    from ribs.schedulers import Scheduler

    count, bound, reach = GENES[problem], BOUND[problem], REACH[problem]
    grid = dict(solution_dim=count, dims=[CELLS, CELLS], ranges=[(-reach, reach)] * 2, seed=seed)
    if search == "IsoLine":
        archive = GridArchive(**grid)
        first = numpy.random.default_rng(seed).uniform(-bound, bound, (BATCH, count))
        emitters = [IsoLineEmitter(
            archive, iso_sigma=0.01 * 2 * bound, line_sigma=0.2, initial_solutions=first, batch_size=BATCH, seed=seed,
            lower_bounds=[-bound] * count, upper_bounds=[bound] * count,
        )]
    else:
        rules = dict(ranker="imp", selection_rule="mu", restart_rule="basic")
        if search == "CMA-ME":
            archive = GridArchive(**grid)
            rules = dict(ranker="2imp", selection_rule="filter", restart_rule="no_improvement")
        else:
            archive = GridArchive(**grid, learning_rate=0.1 if search.endswith("0.1") else 0.01, threshold_min=0.0)
        # Without bounds, as in the tutorials: with them, sampling did not end for some seeds.
        emitters = [EvolutionStrategyEmitter(
            archive, x0=numpy.zeros(count), sigma0=SIGMA[problem], batch_size=36, seed=seed * 1000 + number, **rules
        ) for number in range(5)]
    scheduler, found, done, scores = Scheduler(archive, emitters), Map(problem), 0, []
    while len(scores) < len(MARKS):
        values = [evaluate(problem, genes.tolist()) for genes in scheduler.ask()]
        scheduler.tell([value[0] for value in values], [value[1:] for value in values])
        for value in values:
            found.take(*value)
            done += 1
            if done in MARKS:
                scores.append(found.qd())
    return scores


def run() -> None:
    rows: List[List[object]] = []
    for problem in GENES:
        peers = {search: [of_pyribs(problem, search, seed) for seed in range(1, SEEDS + 1)] for search in PEERS}
        for place, mark in enumerate(MARKS):
            all_of = {search: of_evoxo(problem, search, mark) for search in OURS}
            all_of.update({search: [scores[place] for scores in found] for search, found in peers.items()})
            rows += [[problem, mark, search, " ".join(f"{qd:.0f}" for qd in found)] for search, found in all_of.items()]
        print(problem, file=sys.stderr)
    common.write("quality.csv", ["problem", "evaluations", "search", "qd"], rows)


def tables() -> None:
    found = {(row["problem"], int(row["evaluations"]), row["search"]): row["qd"] for row in common.read("quality.csv")}
    for mark in MARKS:
        rows = []
        for problem in GENES:
            texts = []
            for search in OURS + PEERS:
                values = [float(qd) for qd in found.get((problem, mark, search), "").split()]
                texts.append("{:,.0f} ({:,.0f} to {:,.0f})".format(*common.interval(values)) if values else "-")
            rows.append([problem, *texts])
        common.table([f"{mark:,} evaluations", *OURS, *PEERS], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "tables", "program"])
    parser.add_argument("--problem", choices=list(GENES))
    typed = parser.parse_args()
    program(typed.problem) if typed.verb == "program" else {"run": run, "tables": tables}[typed.verb]()
