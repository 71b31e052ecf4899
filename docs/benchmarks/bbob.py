"""evoxo's CMA-ES compared with pycma on the 24 noiseless functions of BBOB, as COCO's package computes them.

    python3 bbob.py run --dimensions 2,5,10 --instances 1-15    adds to bbob-DIMENSION.csv
    python3 bbob.py tables                                         prints the tables, and draws bbob.svg
    python3 bbob.py coco --data DIRECTORY                          runs COCO's own program on evoxo's data

With --data DIRECTORY, `run` keeps COCO's records of evoxo's searches. All searches see f - f_opt, may use 2,000 evaluations
per gene, and end at 1e-8. bbob-DIMENSION.csv has, for each search, function and instance, the evaluation at which each target
was first reached. A target that was not reached has no number, and a row without a search and function is of those above. `evoxo run`
calls this file as a program.
"""

from __future__ import annotations

import argparse
import bisect
import csv
import json
import math
import random
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Callable, Dict, List, Sequence, Tuple

import common

HERE = Path(__file__).resolve().parent
DIMENSIONS = (2, 5, 10, 20)
BUDGET = 2000
"""Evaluations per search and gene."""
TARGETS = ["1e1", "1e0", "1e-1", "1e-2", "1e-3", "1e-5", "1e-7", "1e-8"]
"""Distances from the optimum that are recorded: those of COCO's tables, and 1e-8."""
COLUMNS = ["search", "function", "instance", *TARGETS]
"""The columns of a dimension's file."""

Settings = Dict[str, object]
SEARCHES: Dict[str, Settings] = {
    "evoxo": {"bounds": "begin"},
    "pycma": {"bounds": [None, None], "start": 4, "sigma": 2},
    "evoxo in the box": {},
    "pycma in the box": {"bounds": [-5, 5], "start": 4, "sigma": 2},
}
"""All start at random from -4 to 4, with a first step of 2. The first two have no bounds, as pycma is usually run on BBOB; the
others have the box from -5 to 5, which is evoxo's default."""
PAIRS = (("evoxo", "pycma"), ("evoxo in the box", "pycma in the box"))
"""Searches that are compared."""


class Watched:
    """A BBOB function minus its optimum. It reports after how many evaluations each target is first reached.

    data: a directory in which COCO records the first `budget` evaluations, or fewer if the
    last target is reached earlier; empty for no records.
    """

    def __init__(
        self,
        function: int,
        dimension: int,
        instance: int,
        tell: Callable[[int, int], None],
        data: str = "",
        budget: int = 0,
    ) -> None:
        import cocoex
        import ioh

        cocoex.log_level("warning")  # COCO would write to standard output.
        options = f"dimensions:{dimension} function_indices:{function}"
        self._suite = cocoex.Suite("bbob", f"instances:{instance}", options)
        self._problem = self._suite[0]
        self._observer, self._recorded = None, budget
        if data:
            # COCO creates a directory for each observer, and records one problem at a time.
            folder = f"outer_folder:{data} result_folder:f{function}-{dimension}-{instance} algorithm_name:evoxo"
            self._observer = cocoex.Observer("bbob", folder)
            self._problem.observe_with(self._observer)
        # COCO does not expose the optimum. The package ioh does, and computes the same functions.
        kind = ioh.ProblemClass.BBOB
        self._optimum = ioh.get_problem(function, instance=instance, dimension=dimension, problem_class=kind).optimum.y
        self._tell = tell
        self._reached = 0
        self.evaluations = 0

    def __call__(self, x: Sequence[float]) -> float:
        difference = self._problem(x) - self._optimum
        if difference < -1e-9:
            raise ValueError(f"{self._problem.id} has a value {difference} below the optimum")
        self.evaluations += 1
        while self._reached < len(TARGETS) and difference <= float(TARGETS[self._reached]):
            self._tell(self._reached, self.evaluations)
            self._reached += 1
        if self._observer and (self._reached == len(TARGETS) or self.evaluations == self._recorded):
            # COCO writes the record when the problem is freed. Later evaluations are not recorded.
            self._problem.free()
            self._problem, self._observer = self._suite[0], None
        return max(difference, 0.0)


def program(arguments: argparse.Namespace) -> None:
    """Answers evoxo by its protocol."""
    part = {"name": "x", "type": "real", "length": arguments.dimension, "low": -5, "high": 5}
    said = {"evoxo": 1, "name": "bbob", "version": "1", "objectives": ["min f"], "genome": [part], "canned": 0}
    print(json.dumps(said), flush=True)
    # Line buffering: evoxo kills the program when it is no longer needed.
    with open(arguments.log, "a", buffering=1) as log:
        watched = None
        for line in sys.stdin:
            # Not earlier: evoxo also starts a process only to read the introduction.
            watched = watched or Watched(
                arguments.function,
                arguments.dimension,
                arguments.instance,
                lambda target, evaluations: print(target, evaluations, file=log),
                arguments.data,
                arguments.budget,
            )
            request = json.loads(line)
            answers = [{"f": [watched(item["genes"]["x"])]} for item in request["items"]]
            print(json.dumps({"batch": request["batch"], "items": answers}), flush=True)


Reached = Dict[int, Dict[int, int]]
"""For each instance, the evaluations until each target, by the target's index."""


def of_evoxo(settings: Settings, function: int, dimension: int, instances: range, budget: int, data: str) -> Reached:
    """One run per instance."""
    usual = {"problem": "program:bbob", "algorithm": "cma-es", "evaluations": budget, "target": "1e-8"}
    reached: Reached = {}
    for instance in instances:
        with tempfile.TemporaryDirectory() as directory:
            log = Path(directory) / "log"
            command = f"{sys.executable} {Path(__file__).resolve()} program --log {log} --budget {budget}"
            command += f" --function {function} --dimension {dimension} --instance {instance} --data '{data}'"
            seed = 1_000_000 * dimension + 1000 * function + instance
            common.evoxo(directory, {**usual, "slice": 10_000, **settings}, 1, seed, program=command)
            lines = log.read_text().splitlines()
            reached[instance] = {int(target): int(evaluations) for target, evaluations in map(str.split, lines)}
    return reached


class Enough(Exception):
    """The budget is used up, or the last target is reached."""


def of_pycma(settings: Settings, function: int, dimension: int, instances: range, budget: int, _: str) -> Reached:
    """Runs of `cma.fmin2` with BIPOP restarts, one for each instance."""
    import cma
    import numpy

    reached: Reached = {}
    for instance in instances:
        own = reached[instance] = {}
        watched = Watched(function, dimension, instance, own.__setitem__)

        def limited(x: Sequence[float]) -> float:
            value = watched(x)
            if len(TARGETS) - 1 in own or watched.evaluations >= budget:
                raise Enough
            return value

        # pycma takes its random numbers from numpy's generator.
        seed = 1_000_000 * dimension + 1000 * function + instance
        start = float(settings["start"])
        uniform = numpy.random.default_rng(seed)
        options = {"seed": seed, "verbose": -9, "maxfevals": 10 * budget, "bounds": settings["bounds"]}
        def place() -> Sequence[float]:
            return uniform.uniform(-start, start, dimension)

        try:
            cma.fmin2(limited, place, settings["sigma"], options, restarts=100, bipop=True)
            print(f"pycma ended by itself: f{function}, {instance}, {watched.evaluations}", file=sys.stderr)
        except Enough:
            pass
    return reached


def rows_file(dimension: int) -> Path:
    return HERE / f"bbob-{dimension}.csv"


def run(arguments: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    for dimension in arguments.dimensions:
        known = rows_file(dimension).exists()
        with open(rows_file(dimension), "a", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            if not known:
                rows.writerow(COLUMNS)
            for search in arguments.searches:
                began = time.monotonic()
                for function in arguments.functions:
                    budget = BUDGET * dimension
                    of = of_evoxo if search.startswith("evoxo") else of_pycma
                    data = str(arguments.data / search.replace(" ", "-")) if arguments.data else ""
                    found = of(SEARCHES[search], function, dimension, arguments.instances, budget, data)
                    for place, (instance, reached) in enumerate(found.items()):
                        numbers = [reached.get(target, "") for target in range(len(TARGETS))]
                        head = ["", ""] if place else [search, function]
                        rows.writerow([*head, instance, *numbers])
                    file.flush()
                print(f"{search}, dimension {dimension}: {time.monotonic() - began:.0f} s", file=sys.stderr)


def read(dimension: int) -> List[Dict[str, str]]:
    """The rows of a dimension, each with its search and function, which are written once for all instances."""
    rows, search, function = common.read(rows_file(dimension).name), "", ""
    for row in rows:
        search, function = row["search"] or search, row["function"] or function
        row.update(search=search, function=function, dimension=str(dimension))
    return rows


Runs = Dict[str, List[Dict[str, str]]]
"""The rows of one function and dimension, by search."""


def rows_of(found: List[Dict[str, str]], dimension: int, function: int) -> Runs:
    mine = [row for row in found if (int(row["dimension"]), int(row["function"])) == (dimension, function)]
    if not mine:
        return {search: [] for search in SEARCHES}
    instances = {search: {row["instance"] for row in mine if row["search"] == search} for search in SEARCHES}
    # Only instances that all searches with results have.
    shared = set.intersection(*(known for known in instances.values() if known))
    mine = [row for row in mine if row["instance"] in shared]
    return {search: [row for row in mine if row["search"] == search] for search in SEARCHES}


def ert(rows: Sequence[Dict[str, str]], target: str) -> float:
    """The expected running time: all evaluations until the target or the end, divided by the searches that reached it."""
    times = sum(1 for row in rows if row[target])
    return sum(int(row[target] or BUDGET * int(row["dimension"])) for row in rows) / times if times else math.inf


def ert_text(rows: Sequence[Dict[str, str]], target: str) -> str:
    """The expected running time, with the number of searches that reached the target if not all did."""
    if not rows:
        return "not run"
    times = sum(1 for row in rows if row[target])
    return f"{ert(rows, target):,.0f}" + (f" [{times}]" if times < len(rows) else "") if times else "-"


def ratios(found: List[Runs], target: str, own: str, other: str) -> List[float]:
    """Ratios of expected running times, for the functions on which both reached the target in most runs."""
    known = []
    for runs in found:
        both = [runs[own], runs[other]]
        if all(2 * sum(1 for row in rows if row[target]) > len(rows) > 0 for rows in both):
            known.append(ert(both[0], target) / ert(both[1], target))
    return known


def median_ratio(found: List[Runs], target: str, own: str, other: str) -> str:
    """The median over the functions, its 95 % interval by resampling instances, and the number of functions."""
    rng, drawn = random.Random(1), []
    for _ in range(1000):
        again = [{one: rng.choices(rows, k=len(rows)) for one, rows in runs.items() if rows} for runs in found]
        drawn.append(statistics.median(ratios(again, target, own, other)))
    drawn.sort()
    exact = ratios(found, target, own, other)
    return f"{statistics.median(exact):.2f} ({drawn[25]:.2f} to {drawn[974]:.2f}), {len(exact)}"


def compared(found: List[Dict[str, str]], pair: Sequence[str]) -> List[Runs]:
    """The runs of two searches on the functions and instances that both have; empty if one of them was not run."""
    mine = {search: [row for row in found if row["search"] == search] for search in pair}
    of = {search: {(row["function"], row["instance"]): row for row in rows} for search, rows in mine.items()}
    both = set.intersection(*(set(rows) for rows in of.values()))
    functions = sorted({int(function) for function, _ in both})
    return [
        {search: [rows[key] for key in sorted(both) if int(key[0]) == function] for search, rows in of.items()}
        for function in functions
    ]


def tables(_: argparse.Namespace) -> None:
    dimensions = [dimension for dimension in DIMENSIONS if rows_file(dimension).exists()]
    found = [row for dimension in dimensions for row in read(dimension)]
    lines: List[List[object]] = []
    for dimension in dimensions:
        of_dimension = [row for row in found if int(row["dimension"]) == dimension]
        pairs = {pair: compared(of_dimension, pair) for pair in PAIRS}
        for target in ("1e1", "1e-1", "1e-3", "1e-5", "1e-8"):
            texts = [median_ratio(runs, target, *pair) if runs else "not run" for pair, runs in pairs.items()]
            lines.append([f"{dimension}, {target}", *texts])
    common.table(["dimension, target", *(" / ".join(pair) for pair in PAIRS)], lines)
    for dimension in dimensions:
        searched = {row["search"] for row in found if int(row["dimension"]) == dimension}
        columns = [(target, search) for target in ("1e-1", "1e-8") for search in SEARCHES if search in searched]
        lines = []
        for function in range(1, 25):
            runs = rows_of(found, dimension, function)
            if any(runs.values()):
                lines.append([f"f{function}", *(ert_text(runs[search], target) for target, search in columns)])
        print(f"Dimension {dimension}\n")
        common.table(["", *(f"{target}: {search}" for target, search in columns)], lines)
    draw(found, dimensions)


def draw(found: List[Dict[str, str]], dimensions: List[int]) -> None:
    """The share of all targets of all functions and instances that was reached, by evaluations per gene."""
    width, height, left = 230, 220, 50
    colours = dict(zip(SEARCHES, ("#0060a8", "#c04000", "#508020", "#905090")))
    text = 'font-family="sans-serif" font-size="12"'
    total = left + len(dimensions) * (width + 30)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{height + 105}" {text}>']
    parts.append('<rect width="100%" height="100%" fill="#ffffff"/>')
    for panel, dimension in enumerate(dimensions):
        x0, y0 = left + panel * (width + 30), 30
        rows = [row for row in found if int(row["dimension"]) == dimension]
        end = math.log10(BUDGET)
        parts.append(f'<text x="{x0}" y="{y0 - 10}">{dimension} genes</text>')
        for power in range(int(end) + 1):
            x = x0 + width * power / end
            parts.append(f'<path d="M{x:.1f} {y0}v{height}" stroke="#dddddd"/>')
            parts.append(f'<text x="{x:.1f}" y="{y0 + height + 16}" text-anchor="middle">{10**power}</text>')
        for share in range(0, 101, 20):
            y = y0 + height - height * share / 100
            parts.append(f'<path d="M{x0} {y:.1f}h{width}" stroke="#dddddd"/>')
            if panel == 0:
                parts.append(f'<text x="{x0 - 6}" y="{y + 4:.1f}" text-anchor="end">{share} %</text>')
        for search, colour in colours.items():
            mine = [row for row in rows if row["search"] == search]
            # Curves over different functions would not be comparable.
            if len(mine) < sum(1 for row in rows if row["search"] == "evoxo"):
                continue
            reached = sorted(int(row[target]) / dimension for row in mine for target in TARGETS if row[target])
            points, count = [(f"{x0}", f"{y0 + height}")], len(mine) * len(TARGETS)
            for step in range(0, 241):
                x = step / 240 * end
                share = bisect.bisect_right(reached, 10**x) / count
                points.append((f"{x0 + width * x / end:.1f}", f"{y0 + height - height * share:.1f}"))
            # A point between two of the same height adds nothing.
            places = range(1, len(points) - 1)
            flat = {place for place in places if len({y for _, y in points[place - 1 : place + 2]}) == 1}
            path = "L".join(f"{x} {y}" for place, (x, y) in enumerate(points) if place not in flat)
            parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    label = "evaluations for each gene"
    parts.append(f'<text x="{left}" y="{height + 66}">{label}; share of targets reached</text>')
    for number, (search, colour) in enumerate(colours.items()):
        x, y = left + 170 * number, height + 86
        parts.append(f'<path d="M{x} {y - 4}h24" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 30}" y="{y}">{search}</text>')
    (HERE / "bbob.svg").write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


def coco(arguments: argparse.Namespace) -> None:
    """The table of COCO's own program, which compares with the best of 31 searches of 2009 in its wheel."""
    warnings.simplefilter("ignore")
    import cocopp
    from cocopp import bestalg

    cocopp.genericsettings.verbose = False
    own = str(arguments.data / "evoxo")
    archive = Path(cocopp.__file__).parent / "refalgs" / "best2009-bbob.tar.gz"
    best = bestalg.load_reference_algorithm(str(archive), force=True)
    found = {(data.dim, data.funcId): data for data in cocopp.load(own)}
    targets = [1e-1, 1e-7]
    rows: List[List[object]] = []
    for function in range(1, 25):
        row: List[object] = [f"f{function}"]
        for dimension in DIMENSIONS:
            data, known = found[dimension, function], best[dimension, function].detERT(targets)
            for target, took, least in zip(targets, data.detERT(targets), known):
                reached = sum(1 for evaluations in data.detEvals([target])[0] if evaluations == evaluations)
                some = f" [{reached}]" if reached < data.nbRuns() else ""
                row.append(f"{took / least:.1f}{some}" if reached else "-")
        rows.append(row)
    common.table(["", *(f"{dimension}: {target}" for dimension in DIMENSIONS for target in ("1e-1", "1e-7"))], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)

    def numbers(text: str) -> List[int]:
        return [int(number) for number in text.split(",")]

    def span(text: str) -> range:
        first, last = text.split("-")
        return range(int(first), int(last) + 1)

    running = verbs.add_parser("run")
    running.add_argument("--dimensions", type=numbers, default=[5])
    running.add_argument("--functions", type=numbers, default=list(range(1, 25)))
    running.add_argument("--searches", type=lambda text: text.split("/"), default=list(SEARCHES))
    running.add_argument("--instances", type=span, default=span("1-15"))
    running.add_argument("--data", type=lambda text: Path(text).resolve(), help="keep what COCO records in there")
    verbs.add_parser("tables")
    processing = verbs.add_parser("coco")
    processing.add_argument("--data", type=lambda text: Path(text).resolve(), required=True)
    asked = verbs.add_parser("program")
    for name in ("function", "dimension", "instance", "budget"):
        asked.add_argument(f"--{name}", type=int)
    for name in ("log", "data"):
        asked.add_argument(f"--{name}")
    arguments = parser.parse_args()
    {"run": run, "tables": tables, "coco": coco, "program": program}[arguments.verb](arguments)


if __name__ == "__main__":
    main()
