"""Some thirty problems of every kind of genome: evoxo's defaults compared with pymoo and DEAP.

    python3 suite.py run [--half tuned|other]    writes suite.csv, or adds to it
    python3 suite.py tables                      prints the tables

The defaults of `ga` were chosen on the problems of the first half and a few similar ones. The other half differs in kind, size
or random numbers, and nothing was tuned on it. `evoxo run` calls this file as a program.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

import common

SEEDS = 21
PEER_SEEDS = 7
"""Enough to see which peer is the best, at seconds for each seed."""
MASK = (1 << 64) - 1


def mix(word: int) -> int:
    """SplitMix64's scrambler: the random numbers of the problems."""
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def share(word: int) -> float:
    return (mix(word) >> 11) / float(1 << 53)


def sphere(x: Sequence[float]) -> float:
    return sum(v * v for v in x)


def ellipsoid(x: Sequence[float]) -> float:
    return sum(v * v * 10.0 ** (6 * i / (len(x) - 1)) for i, v in enumerate(x))


def rosenbrock(x: Sequence[float]) -> float:
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


def rastrigin(x: Sequence[float]) -> float:
    return sum(10 + v * v - 10 * math.cos(2 * math.pi * v) for v in x)


def ackley(x: Sequence[float]) -> float:
    ripple = sum(math.cos(2 * math.pi * v) for v in x) / len(x)
    return 20 + math.e - 20 * math.exp(-0.2 * math.sqrt(sphere(x) / len(x))) - math.exp(ripple)


def griewank(x: Sequence[float]) -> float:
    return 1 + sphere(x) / 4000 - math.prod(math.cos(v / math.sqrt(i + 1)) for i, v in enumerate(x))


def schwefel(x: Sequence[float]) -> float:
    return sum(418.9828872724338 - v * math.sin(math.sqrt(abs(v))) for v in x)


def levy(x: Sequence[float]) -> float:
    w = [1 + (v - 1) / 4 for v in x]
    inner = sum((v - 1) ** 2 * (1 + 10 * math.sin(math.pi * v + 1) ** 2) for v in w[:-1])
    return math.sin(math.pi * w[0]) ** 2 + inner + (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)


def alpine(x: Sequence[float]) -> float:
    return sum(abs(v * math.sin(v) + 0.1 * v) for v in x)


def zeros(b: Sequence[int]) -> int:
    return len(b) - sum(b)


def leading(b: Sequence[int]) -> int:
    return next((len(b) - i for i, v in enumerate(b) if not v), 0)


def trap(size: int) -> Callable[[Sequence[int]], float]:
    """Deceptive blocks: all ones are best; otherwise the fewer ones, the better."""

    def value(b: Sequence[int]) -> int:
        ones = (sum(b[i : i + size]) for i in range(0, len(b), size))
        return sum(0 if one == size else 1 + one for one in ones)

    return value


def nk(length: int, size: int, seed: int, near: bool) -> Callable[[Sequence[int]], float]:
    """Kauffman's NK: each bit has a random table over itself and `size - 1` others, neighbours or random."""
    others = [
        [(i + j) % length if near else i if j == 0 else mix(seed + i * 100 + j) % length for j in range(size)]
        for i in range(length)
    ]
    tables = [[share(seed + (i << 8) + key + 77_777) for key in range(1 << size)] for i in range(length)]

    def value(b: Sequence[int]) -> float:
        keys = (sum(b[p] << j for j, p in enumerate(those)) for those in others)
        return 1 - sum(table[key] for table, key in zip(tables, keys)) / length

    return value


def labs(b: Sequence[int]) -> int:
    s = [1 if v else -1 for v in b]
    return sum(sum(p * q for p, q in zip(s, s[k:])) ** 2 for k in range(1, len(s)))


def knapsack(b: Sequence[int]) -> float:
    weights, worths = zip(*((10 + mix(i) % 90, 10 + mix(i + 999) % 90) for i in range(len(b))))
    over = sum(w for w, v in zip(weights, b) if v) - sum(weights) / 2
    return sum(w for w, v in zip(worths, b) if not v) + 10 * max(0.0, over)


def deceptive(highest: int) -> Callable[[Sequence[int]], int]:
    return lambda x: sum(0 if v == highest else 1 + v for v in x)


def shifted(x: Sequence[int]) -> int:
    return sum((v - 7 * i % 50) ** 2 for i, v in enumerate(x))


def far(x: Sequence[int]) -> int:
    return sum(abs(v - 123_456) for v in x)


def pairs(values: int, seed: int) -> Callable[[Sequence[int]], float]:
    """Each gene has a random table over itself and one other gene."""
    return lambda x: sum(
        share(seed + (i << 16) + v * values + x[(i * 7 + 3) % len(x)]) for i, v in enumerate(x)
    )


def queens(x: Sequence[int]) -> int:
    return sum(x[i] == x[j] or abs(x[i] - x[j]) == i - j for i in range(len(x)) for j in range(i))


def jobs(count: int, machines: int, seed: int) -> Callable[[Sequence[int]], int]:
    """A job shop with random orders and times; a permutation of all operations says which job continues next."""
    orders = [sorted(range(machines), key=lambda m: mix(seed + j * 64 + m)) for j in range(count)]
    return shop([[(m, 1 + mix(seed + 5000 + j * 64 + m) % 99) for m in order] for j, order in enumerate(orders)])


def shop(table: Sequence[Sequence[Tuple[int, int]]]) -> Callable[[Sequence[int]], int]:
    def value(order: Sequence[int]) -> int:
        place, job, machine = [0] * len(table), [0] * len(table), [0] * len(table[0])
        for gene in order:
            j = gene % len(table)
            m, time = table[j][place[j]]
            place[j] += 1
            job[j] = machine[m] = max(job[j], machine[m]) + time
        return max(job)

    return value


FT06 = [
    [(2, 1), (0, 3), (1, 6), (3, 7), (5, 3), (4, 6)],
    [(1, 8), (2, 5), (4, 10), (5, 10), (0, 10), (3, 4)],
    [(2, 5), (3, 4), (5, 8), (0, 9), (1, 1), (4, 7)],
    [(1, 5), (0, 5), (2, 5), (3, 3), (4, 8), (5, 9)],
    [(2, 9), (1, 3), (4, 5), (5, 4), (0, 3), (3, 1)],
    [(1, 3), (3, 3), (5, 9), (0, 10), (4, 4), (2, 1)],
]
"""Fisher and Thompson 1963; the shortest schedule takes 55."""


def trip(cities: int, seed: int) -> Callable[[Sequence[int]], float]:
    places = [(share(seed + 2 * i), share(seed + 2 * i + 1)) for i in range(cities)]
    return lambda order: sum(math.dist(places[a], places[b]) for a, b in zip(order, [*order[1:], order[0]]))


def assignment(size: int, seed: int) -> Callable[[Sequence[int]], int]:
    flow = [[mix(seed + i * size + j) % 10 for j in range(size)] for i in range(size)]
    return lambda o: sum(flow[i][j] * abs(o[i] - o[j]) for i in range(size) for j in range(size))


def flow_shop(size: int, machines: int, seed: int) -> Callable[[Sequence[int]], int]:
    times = [[1 + mix(seed + j * machines + m) % 99 for m in range(machines)] for j in range(size)]

    def value(order: Sequence[int]) -> int:
        ends = [0] * machines
        for job in order:
            for m in range(machines):
                ends[m] = max(ends[m - 1] if m else 0, ends[m]) + times[job][m]
        return ends[-1]

    return value


Problem = Tuple[str, str, int, float, float, Callable[[Sequence[Any]], float]]
"""Half, type of the genes, their number, their bounds, and the function to minimise."""

PROBLEMS: Dict[str, Problem] = {
    "sphere 10": ("tuned", "real", 10, -5, 5, sphere),
    "rastrigin 10": ("tuned", "real", 10, -5.12, 5.12, rastrigin),
    "rosenbrock 10": ("tuned", "real", 10, -5, 5, rosenbrock),
    "ackley 20": ("tuned", "real", 20, -32, 32, ackley),
    "griewank 20": ("tuned", "real", 20, -600, 600, griewank),
    "leading ones 60": ("tuned", "bits", 60, 0, 1, leading),
    "traps of 5, 50 bits": ("tuned", "bits", 50, 0, 1, trap(5)),
    "NK 60, neighbours": ("tuned", "bits", 60, 0, 1, nk(60, 5, 0, True)),
    "NK 60, any": ("tuned", "bits", 60, 0, 1, nk(60, 5, 1 << 20, False)),
    "LABS 40": ("tuned", "bits", 40, 0, 1, labs),
    "deceptive, 0 to 9": ("tuned", "integer", 10, 0, 9, deceptive(9)),
    "shifted, -100 to 100": ("tuned", "integer", 20, -100, 100, shifted),
    "pairs, 0 to 5": ("tuned", "integer", 15, 0, 5, pairs(6, 0)),
    "ft06": ("tuned", "permutation", 36, 0, 0, shop(FT06)),
    "trip, 50 cities": ("tuned", "permutation", 50, 0, 0, trip(50, 5000)),
    "assignment 20": ("tuned", "permutation", 20, 0, 0, assignment(20, 0)),
    "flow shop 20 x 5": ("tuned", "permutation", 20, 0, 0, flow_shop(20, 5, 0)),
    "ellipsoid 15": ("other", "real", 15, -5, 5, ellipsoid),
    "levy 12": ("other", "real", 12, -10, 10, levy),
    "alpine 15": ("other", "real", 15, -10, 10, alpine),
    "schwefel 8": ("other", "real", 8, -500, 500, schwefel),
    "ones 150": ("other", "bits", 150, 0, 1, zeros),
    "traps of 4, 48 bits": ("other", "bits", 48, 0, 1, trap(4)),
    "NK 80, neighbours": ("other", "bits", 80, 0, 1, nk(80, 4, 2 << 20, True)),
    "knapsack 60": ("other", "bits", 60, 0, 1, knapsack),
    "deceptive, 0 to 6": ("other", "integer", 14, 0, 6, deceptive(6)),
    "far, 0 to 1,000,000": ("tuned", "integer", 10, 0, 1_000_000, far),
    "pairs, 0 to 9": ("other", "integer", 20, 0, 9, pairs(10, 1 << 30)),
    "queens 14": ("other", "integer", 14, 0, 13, queens),
    "job shop 8 x 5": ("other", "permutation", 40, 0, 0, jobs(8, 5, 3 << 20)),
    "trip, 40 cities": ("other", "permutation", 40, 0, 0, trip(40, 4 << 20)),
    "assignment 16": ("other", "permutation", 16, 0, 0, assignment(16, 5 << 20)),
    "flow shop 25 x 8": ("other", "permutation", 25, 0, 0, flow_shop(25, 8, 6 << 20)),
}
BUDGET = 20_000


def program(name: str) -> None:
    """Answers evoxo by its protocol."""
    _, kind, length, low, high, function = PROBLEMS[name]
    part: Dict[str, object] = {"name": "x", "type": kind, "length": length}
    if kind in ("real", "integer"):
        part.update(low=low, high=high)
    said = {"evoxo": 1, "name": "suite", "version": name, "objectives": ["min value"], "genome": [part]}
    print(json.dumps(said), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answers = [{"f": [function(item["genes"]["x"])]} for item in request["items"]]
        print(json.dumps({"batch": request["batch"], "items": answers}), flush=True)


def evoxo(name: str) -> List[float]:
    with tempfile.TemporaryDirectory() as directory:
        settings = {"problem": "program:suite", "algorithm": "ga", "evaluations": BUDGET, "slice": 100}
        command = f"{sys.executable} {Path(__file__).resolve()} program --name '{name}'"
        out = common.evoxo(directory, settings, SEEDS, 1, program=command)
        last: Dict[int, float] = {int(row["replica"]): float(row["best"]) for row in common.read_file(out / "history.csv")}
        return [last[replica] for replica in range(SEEDS)]


def pymoo(name: str) -> List[float]:
    """pymoo's GA, as its documentation shows it for each type of genes."""
    from pymoo.algorithms.soo.nonconvex.ga import GA
    from pymoo.core.problem import ElementwiseProblem
    from pymoo.operators.crossover.ox import OrderCrossover
    from pymoo.operators.crossover.pntx import TwoPointCrossover
    from pymoo.operators.crossover.sbx import SBX
    from pymoo.operators.mutation.bitflip import BitflipMutation
    from pymoo.operators.mutation.inversion import InversionMutation
    from pymoo.operators.mutation.pm import PM
    from pymoo.operators.repair.rounding import RoundingRepair
    from pymoo.operators.sampling.rnd import BinaryRandomSampling, IntegerRandomSampling, PermutationRandomSampling
    from pymoo.optimize import minimize

    _, kind, length, low, high, function = PROBLEMS[name]

    class Own(ElementwiseProblem):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(n_var=length, n_obj=1, xl=low, xu=high if kind != "permutation" else length - 1)

        def _evaluate(self, x: Any, out: Dict[str, float], *_: object, **__: object) -> None:
            genes = x.tolist()
            out["F"] = function(genes if kind == "real" else [int(gene) for gene in genes])

    whole = {"vtype": float, "repair": RoundingRepair()}
    operators: Dict[str, Dict[str, object]] = {
        "real": {},
        "bits": dict(sampling=BinaryRandomSampling(), crossover=TwoPointCrossover(), mutation=BitflipMutation()),
        "integer": dict(sampling=IntegerRandomSampling(), crossover=SBX(**whole), mutation=PM(**whole)),
        "permutation": dict(sampling=PermutationRandomSampling(), crossover=OrderCrossover(), mutation=InversionMutation()),
    }

    def least(seed: int) -> float:
        done = minimize(Own(), GA(pop_size=100, **operators[kind]), ("n_eval", BUDGET), seed=seed, verbose=False)
        return float(done.F[0])

    return [least(seed) for seed in range(1, PEER_SEEDS + 1)]


def deap(name: str) -> List[float]:
    """The (mu + lambda) of DEAP's examples, with the library's operators for each type of genes."""
    from deap import algorithms, base, creator, tools

    if not hasattr(creator, "Own"):
        creator.create("Least", base.Fitness, weights=(-1.0,))
        creator.create("Own", list, fitness=creator.Least)
    _, kind, length, low, high, function = PROBLEMS[name]
    gene: Dict[str, Callable[[], float]] = {
        "real": lambda: random.uniform(low, high),
        "bits": lambda: random.randint(0, 1),
        "integer": lambda: random.randint(int(low), int(high)),
    }
    toolbox, rate = base.Toolbox(), 1 / length
    mates: Dict[str, Callable[..., object]] = {
        "real": lambda a, b: tools.cxSimulatedBinaryBounded(a, b, 15, low, high),
        "bits": tools.cxTwoPoint,
        "integer": tools.cxTwoPoint,
        "permutation": tools.cxOrdered,
    }
    mutations: Dict[str, Callable[..., object]] = {
        "real": lambda one: tools.mutPolynomialBounded(one, 20, low, high, rate),
        "bits": lambda one: tools.mutFlipBit(one, rate),
        "integer": lambda one: tools.mutUniformInt(one, int(low), int(high), rate),
        "permutation": lambda one: tools.mutShuffleIndexes(one, rate),
    }
    toolbox.register("mate", mates[kind])
    toolbox.register("mutate", mutations[kind])
    toolbox.register("select", tools.selTournament, tournsize=3)

    def least(seed: int) -> float:
        random.seed(seed)
        genes = (lambda: random.sample(range(length), length)) if kind == "permutation" else None
        fresh = lambda: creator.Own(genes() if genes else (gene[kind]() for _ in range(length)))  # noqa: E731
        population, used, best = [fresh() for _ in range(100)], 0, math.inf
        children = population
        while True:
            for one in children:
                if not one.fitness.valid:
                    one.fitness.values = (function(one),)
                    used, best = used + 1, min(best, one.fitness.values[0])
                if used == BUDGET:
                    return best
            population = toolbox.select(population + children, 100) if children is not population else population
            children = algorithms.varOr(population, toolbox, 100, 0.7, 0.3)

    return [least(seed) for seed in range(1, PEER_SEEDS + 1)]


PEERS: Dict[str, Callable[[str], List[float]]] = {"evoxo": evoxo, "pymoo": pymoo, "DEAP": deap}


def run(half: str, who: Sequence[str]) -> None:
    """Adds the missing rows to the CSV."""
    path = common.HERE / "suite.csv"
    rows = [tuple(row.values()) for row in common.read_file(path)] if path.exists() else []
    for name, (own, *_) in PROBLEMS.items():
        for peer in who:
            if own == half and not any(row[:2] == (name, peer) for row in rows):
                rows.append((name, peer, " ".join(f"{value:.4g}" for value in PEERS[peer](name))))
                common.write(path.name, ["problem", "search", "least"], rows)


def ratio(ours: Sequence[float], peer: Sequence[float]) -> str:
    """The peer's median divided by evoxo's, with its 95 % bootstrap interval."""
    rng = random.Random(1)

    def quotient(a: Sequence[float], b: Sequence[float]) -> float:
        own, other = statistics.median(a), statistics.median(b)
        return 1.0 if own == other else other / own if own > 0 else math.inf

    def said(number: float) -> str:
        return "better" if number == math.inf else f"{number:.3g}"

    drawn = sorted(quotient(rng.choices(ours, k=len(ours)), rng.choices(peer, k=len(peer))) for _ in range(common.BOOTSTRAPS))
    low, high = drawn[common.BOOTSTRAPS * 25 // 1000], drawn[common.BOOTSTRAPS * 975 // 1000 - 1]
    middle = quotient(ours, peer)
    return said(middle) if low == high else f"{said(middle)} ({said(low)} to {said(high)})"


def tables() -> None:
    rows = common.read("suite.csv")
    for half in ("tuned", "other"):
        lines = []
        for name, (own, *_) in PROBLEMS.items():
            of = {row["search"]: [float(value) for value in row["least"].split()] for row in rows if row["problem"] == name}
            if own == half and len(of) == len(PEERS):
                medians = {peer: statistics.median(values) for peer, values in of.items()}
                best = min(("pymoo", "DEAP"), key=lambda peer: medians[peer])
                lines.append([name, *(f"{medians[peer]:.4g}" for peer in PEERS), ratio(of["evoxo"], of[best])])
        common.table(["problem", *PEERS, "best peer / evoxo"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("act", choices=["run", "tables", "program"])
    parser.add_argument("--half", choices=["tuned", "other"], default="other")
    parser.add_argument("--who", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--name", default="")
    given = parser.parse_args()
    if given.act == "program":
        program(given.name)
    elif given.act == "run":
        run(given.half, given.who)
    else:
        tables()


if __name__ == "__main__":
    main()
