"""Examples of other libraries: run as they are, and with two lines changed on three processes, one of which is killed. Their
output is the same. Each is skipped if its library is not installed."""

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

import evoxo
from evoxo.integrations.scipy import workers

from .conversation import PATIENCE, environment, write
from .test_ask import processes

POOL = "pool = evoxo.Executor(workers=3, journal=None)"
"""The first of the two lines, after `import evoxo`."""

SCIPY = (
    """
    import numpy as np
    from scipy.optimize import differential_evolution

    def ackley(x):
        arg1 = -0.2 * np.sqrt(0.5 * (x[0] ** 2 + x[1] ** 2))
        arg2 = 0.5 * (np.cos(2. * np.pi * x[0]) + np.cos(2. * np.pi * x[1]))
        return -20. * np.exp(arg1) - np.exp(arg2) + 20. + np.e
    POOL
    bounds = [(-5, 5), (-5, 5)]
    result = differential_evolution(ackley, bounds, rng=1, updating="deferred")
    print(result.x.tolist(), result.fun, result.nfev)
    """,
    "from evoxo.integrations.scipy import workers",
    ('updating="deferred"', 'updating="deferred", workers=workers(pool)'),
)

DEAP = (
    """
    import random
    from deap import algorithms, base, creator, tools

    creator.create("FitnessMax", base.Fitness, weights=(1.0,))
    creator.create("Individual", list, fitness=creator.FitnessMax)
    toolbox = base.Toolbox()
    toolbox.register("attr_bool", random.randint, 0, 1)
    toolbox.register("individual", tools.initRepeat, creator.Individual, toolbox.attr_bool, 100)
    toolbox.register("population", tools.initRepeat, list, toolbox.individual)

    def evalOneMax(individual):
        return sum(individual),

    toolbox.register("evaluate", evalOneMax)
    toolbox.register("mate", tools.cxTwoPoint)
    toolbox.register("mutate", tools.mutFlipBit, indpb=0.05)
    toolbox.register("select", tools.selTournament, tournsize=3)
    toolbox.register("map", map)
    POOL
    random.seed(64)
    pop = toolbox.population(n=300)
    hof = tools.HallOfFame(1)
    algorithms.eaSimple(pop, toolbox, cxpb=0.5, mutpb=0.2, ngen=20, halloffame=hof, verbose=False)
    print(hof[0], [one.fitness.values for one in pop])
    """,
    'toolbox.register("map", pool.map)',
    (),
)

CMA = (
    """
    import cma

    def rosen(x):
        return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(len(x) - 1))
    POOL
    es = cma.CMAEvolutionStrategy(8 * [0], 0.5, {"seed": 7, "verbose": -9, "maxiter": 60})
    while not es.stop():
        solutions = es.ask()
        es.tell(solutions, list(map(rosen, solutions)))
    print(es.result.xbest.tolist(), es.result.fbest)
    """,
    "",
    ("list(map(", "list(pool.map("),
)

PYMOO = (
    """
    import numpy as np
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.core.problem import ElementwiseProblem
    from pymoo.optimize import minimize

    class MyProblem(ElementwiseProblem):
        def __init__(self):
            super().__init__(n_var=2, n_obj=2, n_ieq_constr=2, xl=np.array([-2, -2]), xu=np.array([2, 2]))

        def _evaluate(self, x, out, *args, **kwargs):
            f1 = 100 * (x[0] ** 2 + x[1] ** 2)
            f2 = (x[0] - 1) ** 2 + x[1] ** 2
            g1 = 2 * (x[0] - 0.1) * (x[0] - 0.9) / 0.18
            g2 = - 20 * (x[0] - 0.4) * (x[0] - 0.6) / 4.8
            out["F"] = [f1, f2]
            out["G"] = [g1, g2]

    problem = MyProblem()
    POOL
    res = minimize(problem, NSGA2(pop_size=40), ("n_gen", 20), seed=1, copy_algorithm=False, copy_termination=False)
    print(res.X.tolist(), res.F.tolist())
    """,
    "from evoxo.integrations.pymoo import runner; problem.elementwise_runner = runner(pool)",
    (),
)

RIBS = (
    """
    import numpy as np
    from ribs.archives import GridArchive
    from ribs.emitters import EvolutionStrategyEmitter
    from ribs.schedulers import Scheduler

    def sphere(x):
        return -np.sum(np.square(x))
    POOL
    archive = GridArchive(solution_dim=10, dims=[20, 20], ranges=[(-1, 1), (-1, 1)], seed=1)
    emitters = [EvolutionStrategyEmitter(archive, x0=[0.0] * 10, sigma0=0.1, batch_size=30, seed=2)]
    scheduler = Scheduler(archive, emitters)
    for itr in range(20):
        solutions = scheduler.ask()
        objective = np.array(list(map(sphere, solutions)))
        scheduler.tell(objective, solutions[:, :2])
    print(archive.stats)
    """,
    "",
    ("list(map(", "list(pool.map("),
)

NEVERGRAD = (
    """
    from concurrent import futures
    import nevergrad as ng

    def square(x, y=12):
        return sum((x - .5) ** 2) + abs(y)
    POOL
    instrum = ng.p.Instrumentation(ng.p.Array(shape=(2,)), y=ng.p.Scalar())
    instrum.random_state.seed(12)
    optimizer = ng.optimizers.DE(parametrization=instrum, budget=200, num_workers=5)
    recommendation = optimizer.minimize(square, executor=None, batch_mode=True)
    print(recommendation.value)
    """,
    "",
    ("executor=None", "executor=pool"),
)

EXAMPLES = {"scipy": SCIPY, "deap": DEAP, "cma": CMA, "pymoo": PYMOO, "ribs": RIBS, "nevergrad": NEVERGRAD}


class Integrations(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name).resolve()

    def example(self, library):
        if importlib.util.find_spec(library) is None:
            self.skipTest(f"{library} is not installed")
        text, line, change = EXAMPLES[library]
        serial = write(self.directory, text.replace("POOL", ""), "serial.py")
        changed = text.replace(*change) if change else text
        # A slow function, so that a process can be killed while it computes.
        changed = changed.replace("        return ", "        import time; time.sleep(0.002)\n        return ", 1)
        own = write(self.directory, changed.replace("    POOL", f"    import evoxo; {POOL}\n    {line}"), "own.py")
        expected = self.run_of(serial).communicate(timeout=PATIENCE)[0]
        run = self.run_of(own)
        killed = self.kill_one(run)
        said = run.communicate(timeout=PATIENCE)[0]
        self.assertTrue(killed and expected)
        self.assertEqual(said, expected)

    def run_of(self, script):
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, str(script)], cwd=self.directory, stdout=pipe, text=True, env=environment())

    def kill_one(self, run):
        """Kills one of the processes of a run."""
        deadline = time.monotonic() + PATIENCE
        while run.poll() is None and time.monotonic() < deadline:
            found = [number for number in processes(f"evoxo.calls {self.directory}") if number != run.pid]
            if len(found) == 3:
                time.sleep(0.5)
                os.kill(found[0], signal.SIGKILL)
                return True
            time.sleep(0.02)
        return False

    def test_a_version_that_was_not_tried_is_said(self):
        with unittest.mock.patch("importlib.metadata.version", return_value="0.1.2"), self.assertWarnsRegex(
            UserWarning, "tried with scipy 1.17.1, not with 0.1.2"
        ):
            workers(evoxo.Executor.__new__(evoxo.Executor))

    def test_scipy(self):
        self.example("scipy")

    def test_deap(self):
        self.example("deap")

    def test_cma(self):
        self.example("cma")

    def test_pymoo(self):
        self.example("pymoo")

    def test_ribs(self):
        self.example("ribs")

    def test_nevergrad(self):
        self.example("nevergrad")
