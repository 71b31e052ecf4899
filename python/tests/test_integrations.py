"""Examples of other libraries: run as they are, and with two lines changed on three processes or three workers, one of which is
killed. Their output is the same. Each is skipped if its library is not installed."""

import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

import evoxo

from .conversation import PATIENCE, environment, write
from .test_ask import processes, real, until

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
    "from evoxo.integrations.nevergrad import in_order",
    ("executor=None", "executor=in_order(pool)"),
)

NEAT = (
    f"""
    import neat

    xor_inputs = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)]
    xor_outputs = [(0.0,), (1.0,), (1.0,), (0.0,)]

    def eval_genome(genome, config):
        net = neat.nn.FeedForwardNetwork.create(genome, config)
        fitness = 4.0
        for xi, xo in zip(xor_inputs, xor_outputs):
            fitness -= (net.activate(xi)[0] - xo[0]) ** 2
        return fitness

    def eval_genomes(genomes, config):
        for genome_id, genome in genomes:
            genome.fitness = eval_genome(genome, config)
    POOL
    types = neat.DefaultGenome, neat.DefaultReproduction, neat.DefaultSpeciesSet, neat.DefaultStagnation
    config = neat.Config(*types, {str(Path(__file__).parent / "neat" / "config-feedforward")!r})
    p = neat.Population(config, seed=3)
    winner = p.run(eval_genomes, 20)
    print(winner, sorted(p.population))
    """,
    "from evoxo.integrations.neat import Evaluator",
    ("p.run(eval_genomes", "p.run(Evaluator(pool, eval_genome).evaluate"),
)

OPTUNA = (
    """
    import optuna

    def objective(trial):
        layers = trial.suggest_int("layers", 1, 3)
        sizes = [trial.suggest_float(f"size{i}", 1, 100, log=True) for i in range(layers)]
        kind = trial.suggest_categorical("kind", ["relu", "tanh"])
        trial.set_user_attr("total", sum(sizes))
        return abs(sum(sizes) - 42) + (kind == "relu")
    POOL
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=10))
    study.optimize(objective, n_trials=150)
    print([(trial.number, trial.params, trial.value, trial.user_attrs) for trial in study.trials], study.best_params)
    """,
    "from evoxo.integrations.optuna import optimize",
    ("study.optimize(objective, n_trials=150)", "optimize(study, objective, n_trials=150, pool=pool)"),
)

JOBLIB = (
    """
    from joblib import Parallel, delayed, parallel_config
    from sklearn.datasets import load_digits
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC
    X, y = load_digits(return_X_y=True)

    def accuracy(neighbours):
        from sklearn.neighbors import KNeighborsClassifier
        return cross_val_score(KNeighborsClassifier(neighbours), X, y).mean()
    POOL
    grid = {"svc__C": [0.1, 1, 10], "svc__gamma": [0.001, "scale"]}
    with parallel_config(backend="threading"):
        search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, scoring="f1_macro").fit(X, y)
        print(search.best_params_, search.cv_results_["mean_test_score"].tolist())
        print(Parallel(n_jobs=2)(delayed(accuracy)(n) for n in range(1, 20)))
    """,
    "from evoxo.integrations.joblib import register; register(pool)",
    ("threading", "evoxo"),
)

GYMNASIUM = (
    """
    import gymnasium as gym
    import numpy as np

    def act(weights, observation): return int(np.dot(weights, observation) > 0)

    def episode(weights, seed):
        env = gym.make("CartPole-v1")
        observation, info = env.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, info = env.step(act(weights, observation))
            total += float(reward)
            over = terminated or truncated
        return total
    POOL
    rng = np.random.default_rng(1)
    best, seeds = np.zeros(4), range(8)
    for generation in range(6):
        candidates = [best + 0.5 * rng.normal(size=4) for _ in range(16)]
        returns = [[episode(one, seed) for seed in seeds] for one in candidates]
        best = candidates[int(np.argmax([sum(one) for one in returns]))]
        print(returns, best.tolist())
    """,
    "from evoxo.integrations.gymnasium import rollouts",
    (
        "[[episode(one, seed) for seed in seeds] for one in candidates]",
        'rollouts(pool, "CartPole-v1", act, candidates, seeds)',
    ),
)

EXAMPLES = {
    "scipy": SCIPY,
    "deap": DEAP,
    "cma": CMA,
    "pymoo": PYMOO,
    "ribs": RIBS,
    "nevergrad": NEVERGRAD,
    "neat": NEAT,
    "optuna": OPTUNA,
    "sklearn": JOBLIB,
    "gymnasium": GYMNASIUM,
}


class Scripts(unittest.TestCase):
    """Writes examples and starts them."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name).resolve()

    def scripts(self, library, pool=POOL):
        """The example as it is, and with two lines changed. The function of the second is slow, so that it can be killed."""
        if importlib.util.find_spec(library) is None:
            self.skipTest(f"{library} is not installed")
        text, line, change = EXAMPLES[library]
        changed = text.replace(*change) if change else text
        changed = changed.replace("        return ", "        import time; time.sleep(0.002)\n        return ", 1)
        serial = write(self.directory, text.replace("POOL", ""), "serial.py")
        return serial, write(self.directory, changed.replace("    POOL", f"    import evoxo; {pool}\n    {line}"), "own.py")

    def run_of(self, script):
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, str(script)], cwd=self.directory, stdout=pipe, text=True, env=environment())

    def output(self, script):
        return self.run_of(script).communicate(timeout=PATIENCE)[0]


class Integrations(Scripts):
    def example(self, library):
        serial, own = self.scripts(library)
        expected = self.output(serial)
        run = self.run_of(own)
        killed = self.kill_one(run)
        said = run.communicate(timeout=PATIENCE)[0]
        self.assertTrue(killed and expected)
        self.assertEqual(said, expected)

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

    def test_neat(self):
        self.example("neat")

    def test_optuna(self):
        self.example("optuna")

    def test_joblib(self):
        self.example("sklearn")

    def test_gymnasium(self):
        self.example("gymnasium")

    def test_a_script_that_is_killed_replays_its_journal(self):
        serial, own = self.scripts("cma", "pool = evoxo.Executor(workers=3)")
        first = self.run_of(own)
        journal = self.directory / "out" / "own.calls"
        until(lambda: journal.exists() and journal.read_bytes().count(b"\n") > 50)
        first.kill()
        first.communicate()
        until(lambda: not processes(f"evoxo.calls {self.directory}"))
        kept = journal.read_bytes().rpartition(b"\n")[0]
        self.assertEqual(self.output(own), self.output(serial))
        calls = journal.read_bytes()
        self.assertTrue(calls.startswith(kept))
        self.assertEqual(len(set(calls.splitlines())), 601)  # 60 generations of 10, and the head


@unittest.skipUnless(real(), "the program evoxo is not there: build it, or set EVOXO")
class OnACoordinator(Scripts):
    """Three workers of a coordinator, one of which is killed. Two examples are enough here: each batch of calls is a run."""

    def setUp(self):
        super().setUp()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.started = []
        self.addCleanup(lambda: [one.kill() or one.wait() for one in self.started])
        self.start("coordinator", "--listen", self.address, "--store", str(self.directory / "store"))

    def start(self, *words):
        null = subprocess.DEVNULL
        own = environment()
        self.started.append(subprocess.Popen([real(), *words], stdin=null, stdout=null, stderr=null, env=own))
        return self.started[-1]

    def example(self, library):
        pool = f"pool = evoxo.Executor(coordinator={self.address!r}, journal=None)"
        with unittest.mock.patch.dict(os.environ, {"EVOXO": real()}):
            serial, own = self.scripts(library, pool)
            program = f"own={sys.executable} -m evoxo.calls {own}"
            workers = [self.start("worker", "--coordinator", self.address, "--slots", "1", "--program", program) for _ in range(3)]
            run = subprocess.Popen(
                [sys.executable, str(own)], cwd=self.directory, stdout=subprocess.PIPE, text=True, env=environment(EVOXO=real())
            )
            seen = set()
            # When there is a second run, the workers have computed a first one.
            until(lambda: len(seen.update(self.runs()) or seen) > 1)
            workers[0].kill()
            self.assertIsNone(run.poll())
            said = run.communicate(timeout=PATIENCE)[0]
        self.assertTrue(said)
        self.assertEqual(said, self.output(serial))

    def runs(self):
        words = [real(), "runs", "--json", "--coordinator", self.address]
        return re.findall("calls-[0-9a-f]{24}", subprocess.run(words, capture_output=True, text=True).stdout)

    def test_neat(self):
        self.example("neat")

    def test_optuna(self):
        self.example("optuna")


class BadInput(Scripts):
    """Each is a sentence, and other calls keep their values."""

    def scene(self, library, functions):
        """A module with these functions, and an Executor that has it."""
        if importlib.util.find_spec(library) is None:
            self.skipTest(f"{library} is not installed")
        file = write(self.directory, functions, "scene.py")
        spec = importlib.util.spec_from_file_location("scene", file)
        module = sys.modules["scene"] = importlib.util.module_from_spec(spec)
        self.addCleanup(sys.modules.pop, "scene")
        spec.loader.exec_module(module)
        pool = evoxo.Executor(str(file), workers=1, journal=self.directory / "calls")
        self.addCleanup(pool.shutdown, cancel_futures=True)
        return module, pool

    def test_a_version_that_was_not_tried_is_said(self):
        for name, library, tried in (
            ("scipy", "scipy", "1.17.1"),
            ("pymoo", "pymoo", "0.6.2"),
            ("neat", "neat-python", "2.0.0"),
            ("optuna", "optuna", "5.0.0"),
            ("joblib", "joblib", "1.6.0"),
            ("gymnasium", "gymnasium", "1.4.0"),
        ):
            adapter = importlib.import_module(f"evoxo.integrations.{name}")
            with unittest.mock.patch("importlib.metadata.version", return_value="0.1.2"), self.assertWarnsRegex(
                UserWarning, f"tried with {library} {tried}, not with 0.1.2: compare"
            ):
                adapter._warn(library, adapter.TRIED)

    def test_fitnesses_of_neat(self):
        functions = """
            import neat
            def nothing(genome, config):
                return None
            def nan(genome, config):
                return float("nan")
            def good(genome, config):
                return float(genome.key)
            """
        scene, pool = self.scene("neat", functions)
        import neat

        from evoxo.integrations.neat import Evaluator

        class Own(neat.DefaultGenome):
            pass

        text = (Path(__file__).parent / "neat" / "config-feedforward").read_text(encoding="utf-8")
        parts = neat.DefaultReproduction, neat.DefaultSpeciesSet, neat.DefaultStagnation
        for genome, function, words in (
            (neat.DefaultGenome, scene.nothing, "nothing returned None for genome 1, but a fitness must be a number"),
            (neat.DefaultGenome, scene.nan, "nan returned nan for genome 1"),
            (Own, scene.good, "Own is neither in the file nor in neat"),
        ):
            path = write(self.directory, text.replace("DefaultGenome", genome.__name__), "config")
            population = neat.Population(neat.Config(genome, *parts, str(path)), seed=1)
            with self.assertRaisesRegex((ValueError, NameError), words):
                population.run(Evaluator(pool, function).evaluate, 1)
        with self.assertRaisesRegex(ValueError, "is not a function at the top level"):
            Evaluator(pool, lambda genome, config: 1.0)

    def test_objectives_of_optuna(self):
        functions = """
            def fails(trial):
                if trial.suggest_float("x", 0, 1) > 0.8:
                    raise ValueError("x is too great")
                return trial.suggest_float("y", 0, 1)
            def nan(trial):
                return float("nan")
            def long(trial):
                return "a" * 100_000_000
            def prunes(trial):
                trial.report(1.0, 1)
                return trial.should_prune()
            """
        scene, pool = self.scene("optuna", functions)
        import optuna

        from evoxo.integrations.optuna import optimize

        optuna.logging.set_verbosity(optuna.logging.CRITICAL)
        self.addCleanup(optuna.logging.set_verbosity, optuna.logging.INFO)

        def studied(run, seed=2):
            study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
            run(study)
            return study, [(trial.params, trial.values, trial.state.name) for trial in study.trials]

        # A sampler that looks at values, in batches of one trial: failed trials have the parameters for which they asked.
        serial = studied(lambda study: study.optimize(scene.fails, n_trials=25, catch=(ValueError,)))[1]
        own = studied(lambda study: optimize(study, scene.fails, 25, pool, batch=1, catch=(ValueError,)))[1]
        self.assertEqual(own, serial)
        self.assertIn("FAIL", [state for _, _, state in serial])
        # An error is raised when its batch has been told.
        study = studied(lambda study: None)[0]
        with self.assertRaisesRegex(ValueError, "x is too great"):
            optimize(study, scene.fails, 25, pool, batch=8)
        self.assertEqual({trial.state.name for trial in study.trials}, {"COMPLETE", "FAIL"})
        with self.assertWarnsRegex(UserWarning, "nan is not acceptable"):
            self.assertEqual(studied(lambda study: optimize(study, scene.nan, 2, pool))[1], 2 * [({}, None, "FAIL")])
        for function, options, error, words in (
            (scene.long, {}, ValueError, "returned a value of [0-9,]+ bytes"),
            (scene.prunes, {}, RuntimeError, "a worker cannot ask the study's pruner"),
            (scene.nan, {"batch": 0}, ValueError, "batch is 0"),
        ):
            with self.assertRaisesRegex(error, words):
                studied(lambda study: optimize(study, function, 2, pool, **options))

    def test_calls_of_joblib(self):
        functions = """
            import os
            import numpy as np
            def double(x):
                return 2 * x
            def shape(x):
                return x.shape
            other = np.full(1000, float(os.getpid()))
            """
        scene, pool = self.scene("sklearn", functions)
        import numpy
        from joblib import Parallel, delayed, parallel_config
        from sklearn.model_selection import cross_val_score
        from sklearn.svm import SVC

        from evoxo.integrations.joblib import register

        register(pool)
        points, labels = numpy.arange(40.0).reshape(20, 2), numpy.arange(20) % 2
        fitted = SVC().fit(points, labels)
        with parallel_config(backend="evoxo"):
            self.assertEqual(Parallel(batch_size=3)(delayed(scene.double)(x) for x in range(7)), [2 * x for x in range(7)])
            for call, error, words in (
                (lambda: Parallel()(delayed(len)(x) for x in ["a"]), ValueError, "is not a function at the top level"),
                (lambda: Parallel()(delayed(scene.double)(x) for x in [object()]), TypeError, "builtins.object cannot travel"),
                (lambda: Parallel()(delayed(scene.double)(x) for x in [fitted]), TypeError, "SVC is fitted"),
                (lambda: Parallel()(delayed(scene.shape)(x) for x in [scene.other]), ValueError, "other is not the same on the worker"),
                (lambda: cross_val_score(SVC(), points, labels, scoring=lambda *_: 1.0), TypeError, "function cannot travel"),
            ):
                with self.assertRaisesRegex(error, words):
                    call()

    def test_episodes_of_gymnasium(self):
        functions = """
            def wrong(candidate, observation):
                return 7
            def keep(candidate, observation):
                return candidate
            """
        scene, pool = self.scene("gymnasium", functions)
        from evoxo.integrations.gymnasium import rollouts

        with self.assertRaisesRegex(AssertionError, "7 .* invalid"):
            rollouts(pool, "CartPole-v1", scene.wrong, [0], [1])
        with self.assertRaisesRegex(evoxo.CallFailed, "NameNotFound"):
            rollouts(pool, "Unknown-v1", scene.keep, [0], [1])
        with self.assertRaisesRegex(TypeError, "cannot travel"):
            rollouts(pool, "CartPole-v1", scene.keep, [{1}], [1])
        first = rollouts(pool, "CartPole-v1", scene.keep, [0, 1], [1, 2])
        pool.shutdown()
        again = evoxo.Executor(str(self.directory / "scene.py"), workers=1, journal=self.directory / "calls")
        self.addCleanup(again.shutdown)
        self.assertEqual((rollouts(again, "CartPole-v1", scene.keep, [0, 1], [1, 2]), again.replayed), (first, 4))
