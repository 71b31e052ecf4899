"""Evaluations a second of a function that takes no time, 1 ms or 100 ms, with evoxo and with other tools.

    python3 throughput.py run       writes throughput.csv and cost.csv
    python3 throughput.py tables    prints the tables

The function is Rosenbrock's with 30 genes, in Python, plus a sleep. Each tool has two workers and evaluates batches of 100; in
DEAP a batch is a generation of its algorithm. The start is not counted: a rate begins after the first batch. For built-in
functions and C, it is computed from the additional evaluations and time of a long run over a short one. All tools are measured
one after the other, three times.

The cost is the processor time of all processes (coordinator, workers and programs) per evaluation in Python, without the
function's own: the difference between a long run and a short one. Other programs disturb it less than a rate.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, List

import common

HERE = common.HERE
EXAMPLES = HERE.parent.parent / "examples" / "programs"
WORKERS = 2
BATCH = 100
PASSES = 3
MILLISECONDS = [0, 1, 100]
COUNTS = {0: 10_000, 1: 1_000, 100: 100}
"""The number of measured evaluations, by the milliseconds of one evaluation."""
EVERY = {0: 100, 1: 10, 100: 1}
"""After how many evaluations evoxo's program records the time, by the milliseconds of one evaluation."""
COSTS, COSTS_BATCH, COST_COUNT = (1, 10, 100), 1_000, 50_000
"""For the cost: candidates per task, candidates per batch, and evaluations."""
SLOW = {"Dask": 1_000, "Ray": 1_000}
"""Fewer evaluations for slow tools, if the function takes no time."""


def rosen(x: List[float]) -> float:
    cost = 0.0
    for a, b in zip(x, x[1:]):
        cost += 100 * (b - a * a) * (b - a * a) + (1 - a) * (1 - a)
    return cost


def slept(x: List[float], milliseconds: int) -> float:
    if milliseconds:
        time.sleep(milliseconds / 1000)
    return rosen(x)


class Slept:
    """The function, for tools that send functions to other processes."""

    def __init__(self, milliseconds: int) -> None:
        self.milliseconds = milliseconds

    def __call__(self, x: List[float]) -> float:
        return slept(x, self.milliseconds)


def experiment(directory: str, problem: str, evaluations: int, more: str, population: int = BATCH) -> List[str]:
    """Writes an experiment file. Returns the command that runs it with two worker processes."""
    file = Path(directory) / f"{evaluations}.toml"
    # Random search: only the transport of evaluations is measured.
    settings = f'problem = "{problem}"\nalgorithm = "random"\nevaluations = {evaluations}\npopulation = {population}\n'
    file.write_text(f'experiment = "evolve"\nseed = 1\nreplicas = 1\n[settings]\n{settings}{more}\n')
    return ["evoxo", "run", str(file), "--workers", str(WORKERS), "--out", f"{directory}/out-{evaluations}"]


def start(words: List[str]) -> float:
    """The seconds that a command takes."""
    began = time.monotonic()
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return time.monotonic() - began


def between_runs(count: int, problem: str, more: str, program: str = "") -> float:
    """The rate of the `count` additional evaluations of a long run; `more` has settings and the genome."""
    with tempfile.TemporaryDirectory() as directory:
        if program:
            program = program.format(directory=directory)
            words = ["cc", "-O2", "-ffp-contract=off", "-o", program, str(EXAMPLES / "rosen.c")]
            subprocess.run(words, check=True)
        given = ["--program", f"rosen={program}"] if program else []
        short, long = (experiment(directory, problem, number, more) + given for number in (BATCH, BATCH + count))
        return count / (start(long) - start(short))


def of_python(milliseconds: int, count: int) -> float:
    """The rate after the first batch, from times that the programs record."""
    with tempfile.TemporaryDirectory() as directory:
        times, every = Path(directory) / "times", EVERY[milliseconds]
        more = f"slice = {10 if milliseconds == 0 else 1}"
        words = experiment(directory, "program:rosen", BATCH + count, more)
        start([*words, "--program", f"rosen={sys.executable} {HERE / 'throughput.py'} program {milliseconds} {times}"])
        stamps = sorted(float(line) for line in times.read_text().splitlines())
        stamps = stamps[BATCH // every :]
        return every * (len(stamps) - 1) / (stamps[-1] - stamps[0])


def program(milliseconds: int, times: str) -> None:
    """Rosenbrock's function with the Python package, sleeping."""
    import evoxo

    log, every, calls = os.open(times, os.O_WRONLY | os.O_CREAT | os.O_APPEND), EVERY[milliseconds], 0

    @evoxo.problem(genome=evoxo.reals(30, -5, 5), objectives=["min cost"], version="1")
    def rosen(x: List[float]) -> float:
        nonlocal calls
        calls += 1
        if calls % every == 0:
            os.write(log, f"{time.monotonic()}\n".encode())
        return slept(x, milliseconds)

    evoxo.main(rosen, [])


def spent() -> float:
    """The processor seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def of_function(count: int) -> float:
    """The processor seconds of one evaluation of the function alone."""
    genes = batches(BATCH)[0][0]
    began = time.process_time()
    for _ in range(count):
        rosen(genes)
    return (time.process_time() - began) / count


def cost(size: int, count: int) -> float:
    """The microseconds that an evaluation in Python costs, without the function, with `size` candidates per task."""
    used: List[float] = []
    with tempfile.TemporaryDirectory() as directory:
        given = ["--program", f"rosen={sys.executable} {EXAMPLES / 'rosen.py'}"]
        for number in (COSTS_BATCH, COSTS_BATCH + count):
            before = spent()
            start(experiment(directory, "program:rosen", number, f"slice = {size}", COSTS_BATCH) + given)
            used.append(spent() - before)
    return ((used[1] - used[0]) / count - of_function(count)) * 1e6


def batches(count: int) -> List[List[List[float]]]:
    import random

    rng = random.Random(1)
    return [[[rng.uniform(-5, 5) for _ in range(30)] for _ in range(BATCH)] for _ in range(count // BATCH)]


def rate(evaluate: Callable[[List[List[float]]], object], count: int) -> float:
    """The rate after a first batch."""
    first, *rest = batches(count + BATCH)
    evaluate(first)
    began = time.monotonic()
    for batch in rest:
        evaluate(batch)
    return count / (time.monotonic() - began)


def of_pool(milliseconds: int, count: int) -> float:
    import multiprocessing

    with multiprocessing.Pool(WORKERS) as pool:
        return rate(lambda batch: pool.map(Slept(milliseconds), batch), count)


def of_futures(milliseconds: int, count: int) -> float:
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(WORKERS) as pool:
        return rate(lambda batch: list(pool.map(Slept(milliseconds), batch)), count)


def of_deap(milliseconds: int, count: int) -> float:
    """DEAP's complete genetic algorithm, in generations of 100."""
    import multiprocessing
    import random

    from deap import algorithms, base, creator, tools

    if not hasattr(creator, "Least"):
        creator.create("Least", base.Fitness, weights=(-1.0,))
        creator.create("Individual", list, fitness=creator.Least)
    random.seed(1)
    box, made = base.Toolbox(), {"low": -5, "up": 5, "eta": 15}
    box.register("mate", tools.cxSimulatedBinaryBounded, **made)
    box.register("mutate", tools.mutPolynomialBounded, **made, indpb=1 / 30)
    box.register("select", tools.selTournament, tournsize=3)
    with multiprocessing.Pool(WORKERS) as pool:
        box.register("evaluate", SleptTuple(milliseconds))
        box.register("map", pool.map)
        people = [creator.Individual(genes) for genes in batches(BATCH)[0]]
        for one, fitness in zip(people, box.map(box.evaluate, people)):
            one.fitness.values = fitness
        began, used = time.monotonic(), 0
        while used < count:
            children = algorithms.varAnd(box.select(people, BATCH), box, 0.9, 1.0)
            for one, fitness in zip(children, box.map(box.evaluate, children)):
                one.fitness.values = fitness
            people, used = children, used + BATCH
        return used / (time.monotonic() - began)


class SleptTuple(Slept):
    """The function in the form that DEAP needs."""

    def __call__(self, x: List[float]):  # type: ignore[no-untyped-def,override]
        return (slept(x, self.milliseconds),)


def of_dask(milliseconds: int, count: int) -> float:
    from dask.distributed import Client, LocalCluster

    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        with Client(cluster) as client:
            return rate(lambda batch: client.gather(client.map(Slept(milliseconds), batch, pure=False)), count)


def of_ray(milliseconds: int, count: int) -> float:
    import ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        remote = ray.remote(slept)
        return rate(lambda batch: ray.get([remote.remote(genes, milliseconds) for genes in batch]), count)
    finally:
        ray.shutdown()


MODULE = EXAMPLES.parent / "wasm" / "rosen.wasm"
GENOME = '[[genome]]\nname = "x"\ntype = "real"\nlength = 30\nlow = -5\nhigh = 5\n'

ALL: Dict[str, Callable[[int, int], float]] = {
    "evoxo, built in": lambda _, count: between_runs(50 * count, "rosenbrock", "length = 30"),
    "evoxo, WebAssembly": lambda _, count: between_runs(20 * count, f"wasm:{MODULE}", f'objectives = "min cost"\n{GENOME}'),
    "evoxo, program in C": lambda _, count: between_runs(5 * count, "program:rosen", "slice = 10", "{directory}/rosen"),
    "evoxo, program in Python": of_python,
    "multiprocessing.Pool": of_pool,
    "concurrent.futures": of_futures,
    "DEAP, multiprocessing": of_deap,
    "Dask": of_dask,
    "Ray": of_ray,
}
NO_SLEEP = ("evoxo, built in", "evoxo, WebAssembly", "evoxo, program in C")


def run() -> None:
    os.environ["PYTHONPATH"] = f"{HERE.parent.parent / 'python'}:{HERE}"
    rows: List[List[object]] = []
    for number in range(1, PASSES + 1):
        for milliseconds in MILLISECONDS:
            for name, measure in ALL.items():
                if milliseconds and name in NO_SLEEP:
                    continue
                count = SLOW.get(name, COUNTS[0]) if milliseconds == 0 else COUNTS[milliseconds]
                rows.append([milliseconds, name, number, f"{measure(milliseconds, count):.2f}"])
                print(*rows[-1], file=sys.stderr)
    common.write("throughput.csv", ["milliseconds", "by", "pass", "rate"], rows)
    costs = [[size, number, f"{cost(size, COST_COUNT):.2f}"] for number in range(1, PASSES + 1) for size in COSTS]
    common.write("cost.csv", ["candidates a task", "pass", "microseconds"], costs)


def tables() -> None:
    found = common.read("throughput.csv")
    for milliseconds in MILLISECONDS:
        rates: Dict[str, List[float]] = {}
        for row in found:
            if int(row["milliseconds"]) == milliseconds:
                rates.setdefault(row["by"], []).append(float(row["rate"]))
        ours = rates["evoxo, program in Python"]
        rows = []
        for name, mine in rates.items():
            ratios = sorted(one / own for one, own in zip(mine, ours))
            shown = f"{sorted(mine)[len(mine) // 2]:,.{0 if milliseconds < 100 else 1}f}"
            rows.append([name, shown, f"{ratios[len(ratios) // 2]:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"])
        heads = [f"{milliseconds} ms", "evaluations a second", "relative to evoxo with Python"]
        common.table(heads, rows)
    costs: Dict[str, List[float]] = {}
    for row in common.read("cost.csv"):
        costs.setdefault(row["candidates a task"], []).append(float(row["microseconds"]))
    lines = [[size, f"{sorted(mine)[len(mine) // 2]:.1f} ({min(mine):.1f} to {max(mine):.1f})"] for size, mine in costs.items()]
    common.table(["candidates per task", "processor time without the function, us"], lines)


if __name__ == "__main__":
    if sys.argv[1] == "program":
        program(int(sys.argv[2]), sys.argv[3])
    else:
        {"run": run, "tables": tables}[sys.argv[1]]()
