"""OneMax, its family and LeadingOnes with the functions of ioh: evoxo's genetic algorithm compared with a (1+1)-EA.

    python3 bits.py run       writes bits.csv
    python3 bits.py tables    prints the table

The (1+1)-EA flips each bit with probability 1/n, and draws again if none was flipped. evoxo's genetic algorithm runs with its
defaults (100 individuals, crossover), and with two individuals of which the better survives, which is nearly a (1+1)-EA.
`evoxo run` calls this file as a program.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Optional

import common

BITS = 64
SEEDS = 15
BUDGET = 30_000
FUNCTIONS = {
    "onemax": 1,
    "leadingones": 2,
    "dummy 0.5": 4,
    "dummy 0.9": 5,
    "neutrality": 6,
    "epistasis": 7,
    "ruggedness 1": 8,
    "ruggedness 2": 9,
    "ruggedness 3": 10,
}
"""Function numbers in ioh's class PBO. All but leadingones are OneMax, made harder by the W-model."""
SEARCHES: Dict[str, Dict[str, object]] = {
    "evoxo, defaults": {},
    "evoxo, two individuals": {"population": 2, "elite": 1, "tournament": 2, "crossover": 0},
    "(1+1)-EA": {},
}


def made(function: str):  # type: ignore[no-untyped-def]
    import ioh

    return ioh.get_problem(FUNCTIONS[function], instance=1, dimension=BITS, problem_class=ioh.ProblemClass.PBO)


def program(function: str) -> None:
    """Answers evoxo by its protocol."""
    problem = made(function)
    part = {"name": "x", "type": "bits", "length": BITS}
    said = {"evoxo": 1, "name": "bits", "version": function, "objectives": ["max value"], "genome": [part]}
    print(json.dumps(said), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answers = [{"f": [problem(item["genes"]["x"])]} for item in request["items"]]
        print(json.dumps({"batch": request["batch"], "items": answers}), flush=True)


def of_evoxo(search: str, function: str) -> List[Optional[int]]:
    """For each seed, the evaluations until the optimum, if it is found within the budget."""
    with tempfile.TemporaryDirectory() as directory:
        target = made(function).optimum.y
        settings = {"problem": "program:bits", "algorithm": "ga", "evaluations": BUDGET, "target": f"{target:.0f}"}
        command = f"{sys.executable} {Path(__file__).resolve()} program --function '{function}'"
        out = common.evoxo(directory, {**settings, "slice": 100, **SEARCHES[search]}, SEEDS, 1, program=command)
        last: Dict[int, Optional[int]] = {}
        for row in common.read_file(out / "history.csv"):
            best = float(row["best"])
            assert best <= target
            last[int(row["replica"])] = int(float(row["evaluations"])) if best == target else None
        return [last[replica] for replica in range(SEEDS)]


def one_plus_one(function: str, seed: int) -> Optional[int]:
    """Evaluations until the optimum, if it is found within the budget."""
    rng, problem = random.Random(seed), made(function)
    parent = [rng.randrange(2) for _ in range(BITS)]
    best, used = problem(parent), 1
    while best < problem.optimum.y:
        if used >= BUDGET:
            return None
        flips = [bit for bit in range(BITS) if rng.random() < 1 / BITS]
        if not flips:
            continue
        child = list(parent)
        for bit in flips:
            child[bit] = 1 - child[bit]
        value, used = problem(child), used + 1
        if value >= best:
            parent, best = child, value
    return used


def run() -> None:
    rows: List[List[object]] = []
    for function in FUNCTIONS:
        for search in SEARCHES:
            ours = search.startswith("evoxo")
            seeds = range(1, SEEDS + 1)
            found = of_evoxo(search, function) if ours else [one_plus_one(function, seed) for seed in seeds]
            rows.append([function, search, " ".join(str(used or "-") for used in found)])
            print(function, search, file=sys.stderr)
    common.write("bits.csv", ["function", "search", "evaluations"], rows)


def tables() -> None:
    rows = []
    for row in common.read("bits.csv"):
        name, all_seeds = f"{row['function']}, {row['search']}", row["evaluations"].split()
        found = [float(used) for used in all_seeds if used != "-"]
        if len(found) < len(all_seeds):
            rows.append([name, f"found by {len(found)} of {len(all_seeds)}"])
            continue
        middle, low, high = common.interval(found)
        rows.append([name, f"{middle:,.0f} ({low:,.0f} to {high:,.0f})"])
    common.table([f"{BITS} bits", "evaluations to the optimum"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "tables", "program"])
    parser.add_argument("--function", choices=list(FUNCTIONS))
    typed = parser.parse_args()
    program(typed.function) if typed.verb == "program" else {"run": run, "tables": tables}[typed.verb]()
