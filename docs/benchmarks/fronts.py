"""NSGA-II, SMS-EMOA and NSGA-III of evoxo and of pymoo: their last populations, measured by pymoo's code for both.

    python3 fronts.py run [PROBLEM...]    writes fronts.csv, or only the rows of these problems
    python3 fronts.py tables              prints the tables

`evoxo run` calls this file as a program for problems with more objectives.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Tuple

import common

EVALUATIONS = 25_000
SEEDS = 31
PROBLEMS = ["zdt1", "zdt2", "zdt3", "zdt4", "zdt6", "dtlz2"]
"""Those of NSGA-II and SMS-EMOA, measured by hypervolume."""
SMS_SEEDS = 11
SIZES = {3: 92, 8: 156}
"""The population of NSGA-III for each number of objectives (Deb and Jain 2014)."""
GENERATIONS = {"dtlz1-3": 400, "dtlz2-3": 250, "dtlz3-3": 1000, "dtlz4-3": 600, "dtlz2-8": 500}
"""Also from there, for problems with a number of objectives."""
MANY = list(GENERATIONS)
"""Those of NSGA-III, measured by IGD."""
MANY_SEEDS = 11
PAPER = {"crossover": 1, "crossover_eta": 30}
"""The operators of NSGA-III in the paper and in pymoo."""
COLUMNS = ["problem", "search", "values"]


def divided(name: str) -> Tuple[str, int]:
    problem, _, objectives = name.partition("-")
    return problem, int(objectives or 3)


def made(name: str) -> Any:
    """pymoo's problem."""
    from pymoo.problems import get_problem

    problem, objectives = divided(name)
    if not problem.startswith("dtlz"):
        return get_problem(problem)
    return get_problem(problem, n_var=objectives + (4 if problem == "dtlz1" else 9), n_obj=objectives)


def directions(objectives: int) -> Any:
    from pymoo.util.ref_dirs import get_reference_directions as points

    if objectives < 8:
        return points("das-dennis", objectives, n_partitions=12)
    outer = points("das-dennis", 8, n_partitions=3, scaling=1.0)
    return points("multi-layer", outer, points("das-dennis", 8, n_partitions=2, scaling=0.5))


def measured(name: str, population: Any) -> float:
    """The hypervolume up to 1.1 in each objective, or the IGD: the mean distance of the best point of each direction to
    the nearest candidate."""
    import numpy
    from pymoo.indicators.hv import HV
    from pymoo.indicators.igd import IGD
    from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

    points = numpy.array(population)
    if name in PROBLEMS:
        return float(HV(ref_point=[1.1] * len(points[0]))(points))
    first = points[NonDominatedSorting().do(points, only_non_dominated_front=True)]
    return float(IGD(made(name).pareto_front(directions(len(points[0]))))(first))


def evaluations(name: str) -> int:
    return EVALUATIONS if name in PROBLEMS else GENERATIONS[name] * SIZES[divided(name)[1]]


def of_pymoo(name: str, seed: int, algorithm: str) -> float:
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.algorithms.moo.nsga3 import NSGA3
    from pymoo.algorithms.moo.sms import SMSEMOA
    from pymoo.optimize import minimize

    objectives = divided(name)[1]
    searches = {
        "nsga2": lambda: NSGA2(pop_size=100),
        "sms-emoa": lambda: SMSEMOA(pop_size=100),
        "nsga3": lambda: NSGA3(directions(objectives), pop_size=SIZES[objectives]),
    }
    search = searches[algorithm]()
    found = minimize(made(name), search, ("n_eval", evaluations(name)), seed=seed, verbose=False)
    assert found.algorithm.evaluator.n_eval == evaluations(name)
    return measured(name, found.pop.get("F"))


def of_evoxo(name: str, seeds: int, settings: Dict[str, Any]) -> List[float]:
    command = None
    settings = {"problem": name, "evaluations": evaluations(name), **settings}
    if name in MANY:
        settings.update(problem=f"program:{name}", slice=1000, population=SIZES[divided(name)[1]])
        command = f"{sys.executable} {Path(__file__).resolve()} program {name}"
    with tempfile.TemporaryDirectory() as directory:
        out = common.evoxo(directory, settings, seeds, 1, "--populations", program=command)
        cards = [common.cards(out, replica) for replica in range(seeds)]
        return [measured(name, [list(card["objectives"].values()) for card in all]) for all in cards]


def program(name: str) -> None:
    """Answers evoxo by its protocol."""
    import numpy

    problem = made(name)
    part = {"name": "x", "type": "real", "length": problem.n_var, "low": 0, "high": 1}
    named = [f"min f{number}" for number in range(problem.n_obj)]
    print(json.dumps({"evoxo": 1, "name": name, "version": "1", "objectives": named, "genome": [part]}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        values = problem.evaluate(numpy.array([item["genes"]["x"] for item in request["items"]])).tolist()
        answers = [{"f": numbers} for numbers in values]
        print(json.dumps({"batch": request["batch"], "items": answers}), flush=True)


def run(names: List[str]) -> None:
    for name in names or PROBLEMS + MANY:
        seeds = SEEDS if name in PROBLEMS else MANY_SEEDS
        own = "nsga2" if name in PROBLEMS else "nsga3"
        found = {"pymoo": [of_pymoo(name, seed, own) for seed in range(1, seeds + 1)]}
        if name in PROBLEMS:
            found["evoxo"] = of_evoxo(name, seeds, {"algorithm": "nsga2"})
            found["sms-emoa"] = of_evoxo(name, SMS_SEEDS, {"algorithm": "sms-emoa"})
            found["pymoo sms-emoa"] = [of_pymoo(name, seed, "sms-emoa") for seed in range(1, SMS_SEEDS + 1)]
        else:
            found["evoxo"] = of_evoxo(name, seeds, {"algorithm": "nsga3", **PAPER})
            found["defaults"] = of_evoxo(name, seeds, {"algorithm": "nsga3", "crossover": 0.9, "crossover_eta": 15})
            found["nsga2"] = of_evoxo(name, seeds, {"algorithm": "nsga2", **PAPER})
        write(name, found)


def write(name: str, found: Dict[str, List[float]]) -> None:
    rows: List[List[object]] = [[row[it] for it in COLUMNS] for row in common.read("fronts.csv")]
    rows = [row for row in rows if row[0] != name]
    for search, values in found.items():
        texts = [f"{value:.6f}" if name in PROBLEMS else f"{value:.2e}" for value in values]
        rows.append([name, search, " ".join(texts)])
    common.write("fronts.csv", COLUMNS, sorted(rows, key=lambda row: (PROBLEMS + MANY).index(str(row[0]))))
    print(name, file=sys.stderr)


def tables() -> None:
    read = {(row["problem"], row["search"]): row["values"].split() for row in common.read("fronts.csv")}
    numbers = {key: [float(value) for value in values] for key, values in read.items()}
    all = {key: common.interval(values) for key, values in numbers.items()}
    many = ["evoxo", "pymoo", "defaults", "nsga2"]
    sms = ["sms-emoa", "pymoo sms-emoa", "evoxo"]
    for names, searches, digits in ((PROBLEMS, many[:2], ".4f"), (PROBLEMS, sms, ".4f"), (MANY, many, ".5f")):
        rows = []
        for name in names:
            found = [all.get((name, search)) for search in searches]
            texts = [f"{one[0]:{digits}} ({one[1]:{digits}} to {one[2]:{digits}})" if one else "" for one in found]
            ratio = f"{found[0][0] / found[1][0]:.4f}" if found[0] and found[1] else ""
            rows.append([name, *texts[:2], ratio, *texts[2:]])
        common.table(["problem", *searches[:2], "ratio", *searches[2:]], rows)
        first, *others = searches
        for one, two in [(first, other) for other in others] + [("defaults", "pymoo")]:
            both = [name for name in names if (name, one) in numbers and (name, two) in numbers]
            if not both:
                continue
            ps = common.tested({name: (numbers[name, one], numbers[name, two]) for name in both})
            print(*[f"{one}, {two}, corrected P:", *(f"{name} {p:.2g}" for name, p in ps.items())], "\n")


if __name__ == "__main__":
    verb, *words = sys.argv[1:]
    run(words) if verb == "run" else program(words[0]) if verb == "program" else tables()
