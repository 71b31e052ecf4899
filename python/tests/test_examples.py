"""The examples in examples/programs, tested through the protocol, if their interpreter and packages are installed."""

import importlib.util
import json
import random
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from .conversation import PROGRAMS, Conversation, environment, item, python, started

# The optimal tour of berlin52 as TSPLIB gives it, with cities numbered from 1.
BERLIN52 = (
    "1 49 32 45 19 41 8 9 10 43 33 51 11 52 14 13 47 26 27 28 12 25 4 6 15 5 24 48 38 37 40 39 36 35 34 44 46 16 29 50 "
    "20 23 30 2 7 42 21 17 3 18 31 22"
)


def needs(what):
    """Skips a test if a Python package or a program is missing."""
    there = importlib.util.find_spec(what) if what in ("numpy", "gymnasium", "sklearn") else shutil.which(what)
    return unittest.skipUnless(there, f"{what} is not installed")


def points(count, length):
    """Random points of the domain of Rosenbrock's function, in which 1 occurs, and a candidate for each."""
    rng = random.Random(1)
    drawn = [[rng.choice([1.0, rng.uniform(-5, 5)]) for _ in range(length)] for _ in range(count)]
    return drawn, [item(*x, candidate=f"main-0-{index}") for index, x in enumerate(drawn)]


def rosen(x):
    """Rosenbrock's function, with the terms added from the left."""
    cost = 0.0
    for a, b in zip(x, x[1:]):
        cost += 100 * (b - a * a) * (b - a * a) + (1 - a) * (1 - a)
    return cost


class Examples(unittest.TestCase):
    def talk(self, command):
        conversation = Conversation(command)
        self.addCleanup(conversation.__exit__)
        return conversation

    def assert_is_rosen(self, command, length):
        """The program computes Rosenbrock's function to the last bit, in several batches, and exits with status 0."""
        conversation = self.talk(command)
        introduction = conversation.receive()
        self.assertEqual((introduction["evoxo"], introduction["name"]), (1, "rosen"))
        self.assertEqual(introduction["objectives"], ["min cost"])
        part = {"name": "x", "type": "real", "length": length, "low": -5, "high": 5}
        self.assertEqual(introduction["genome"], [part])
        drawn, items = points(200, length)
        answers = conversation.ask(*items[:150]) + conversation.ask(*items[150:], batch=2)
        self.assertEqual(answers, [{"f": [rosen(x)]} for x in drawn])
        self.assertEqual(conversation.ask(item(*[1] * length), batch=3), [{"f": [0.0]}])
        self.assertEqual(conversation.ask(batch=4), [])
        self.assertEqual(conversation.ask(item(*[1e200] * length), batch=5), [{"fail": self.fail_of(command)}])
        status, rest, _ = conversation.end()
        self.assertEqual((status, rest), (0, b""))

    def fail_of(self, command):
        return "cost is Infinity" if command[0] == "node" else "cost is inf"

    def test_rosen(self):
        self.assert_is_rosen(python(PROGRAMS / "rosen.py"), 30)

    @needs("numpy")
    def test_rosen_numpy(self):
        self.assert_is_rosen(python(PROGRAMS / "rosen_numpy.py"), 100)

    @needs("node")
    def test_rosen_in_javascript(self):
        self.assert_is_rosen(["node", str(PROGRAMS / "rosen.js")], 30)

    @needs("cc")
    def test_rosen_in_c(self):
        with tempfile.TemporaryDirectory() as directory:
            program = self.compile(directory)
            self.assert_is_rosen([program], 30)
            # The parser accepts keys in any order, unknown keys, and spaces.
            conversation = self.talk([program])
            conversation.receive()
            genes = {"y": [[], {}, {"a": [1, "]}"]}], "x": [1] * 30}
            one = {"genes": genes, "new": [True, False, None, "quoted \"\\ text"], "id": "a", "seed": "0" * 16}
            request = json.dumps({"more": {}, "items": [one], "batch": 7}, indent=1).replace("\n", " ")
            conversation.send(request.encode() + b"\n")
            self.assertEqual(conversation.receive(), {"batch": 7, "items": [{"f": [0.0]}]})
            short = b'{"batch":1,"items":[{"id":"a","genes":{"x":[1,2]}}]}\n'
            for line in (b"rubbish\n", short, b'{"batch":1}\n', b'{"batch'):
                conversation = self.talk([program])
                conversation.receive()
                conversation.send(line)
                status, _, errors = conversation.end()
                self.assertEqual(status, 1)
                self.assertIn("rosen: ", errors)

    def compile(self, directory):
        """Compiles rosen.c with the command in its first comment, without warnings."""
        source = PROGRAMS / "rosen.c"
        line = next(line for line in source.read_text().splitlines() if "cc -O2" in line).strip(" *")
        self.assertEqual(line, "cc -O2 -ffp-contract=off -o rosen rosen.c")
        program = Path(directory) / "rosen"
        words = line.replace("-o rosen rosen.c", "").split()
        warnings = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
        subprocess.run([*words, *warnings, "-o", str(program), str(source)], check=True)
        return str(program)

    def test_salesman(self):
        conversation = self.talk(python(PROGRAMS / "salesman.py"))
        self.assertEqual(conversation.receive()["genome"], [{"name": "tour", "type": "permutation", "length": 52}])
        best = [int(city) - 1 for city in BERLIN52.split()]
        tours = [best, best[7:] + best[:7], best[::-1], sorted(best)]
        answers = conversation.ask(*(item(*tour, part="tour") for tour in tours))
        self.assertEqual(answers[:3], [{"f": [7542.0]}] * 3)
        self.assertGreater(answers[3]["f"][0], 7542)

    @needs("gymnasium")
    def test_cartpole(self):
        conversation = self.talk(python(PROGRAMS / "cartpole.py"))
        self.assertEqual(conversation.receive()["objectives"], ["max steps"])
        # Hidden units for the pole's angle and angular velocity and their negatives: push to the side to which it falls.
        inputs = [0, 0, 3, 1, 0], [0, 0, -3, -1, 0], [0] * 5, [0] * 5
        good = [weight for unit in inputs for weight in unit] + [1, -1, 0, 0]
        left = item(*[0] * 24)
        answers = conversation.ask(item(*good), left, item(*good), left, item(*[0] * 24, seed="0" * 16))
        steps = [answer["f"][0] for answer in answers]
        self.assertEqual(steps[:2], steps[2:4])
        self.assertGreater(steps[0], 150)
        self.assertLess(steps[1], 11)
        self.assertLess(steps[4], 11)

    @needs("sklearn")
    def test_hyperparameters(self):
        conversation = self.talk(python(PROGRAMS / "hyperparameters.py"))
        self.assertEqual(conversation.receive()["objectives"], ["max accuracy", "min components"])

        def model(log10_c, log10_gamma, components):
            genes = {"log10_c": [log10_c], "log10_gamma": [log10_gamma], "components": [components]}
            return {"id": "a", "seed": "0" * 16, "genes": genes}

        good, bad, again, hard = conversation.ask(model(0, -1, 13), model(-3, -5, 1), model(0, -1, 13), model(3, -1, 1))
        self.assertEqual(good, again)
        self.assertEqual((good["f"][1], bad["f"][1]), (13, 1))
        self.assertGreater(good["f"][0], 0.95)
        self.assertLess(bad["f"][0], 0.5)
        self.assertEqual(hard, {"fail": "no convergence within 500 iterations"})

    def test_an_algorithm(self):
        path = PROGRAMS / "one_plus_one.py"
        self.assertLessEqual(len(path.read_text(encoding="utf-8").splitlines()), 40)
        conversation = self.talk(python(path))
        self.assertEqual(list(conversation.receive()["algorithms"]), ["one-plus-one"])
        genome = [{"name": "x", "type": "real", "length": 3, "low": -5, "high": 5}]
        state, told, seeds = None, [], random.Random(1)
        for number in range(400):
            asked = {"algorithm": "one-plus-one", "settings": {"sigma": 0.1}, "genome": genome, "state": state, "told": told}
            conversation.send({"batch": number, "ask": {**asked, "seed": f"{seeds.getrandbits(64):016x}"}})
            answer = conversation.receive()
            [genes], state = answer["items"], answer["state"]
            told = [{"genes": genes, "f": [sum(gene * gene for gene in genes["x"])], "g": [], "m": []}]
        self.assertLess(json.loads(state)[2], 1e-9)

    def test_optimizers(self):
        conversation = self.talk(python(PROGRAMS / "optimizers.py"))
        declared = {part["name"]: part.get("when") for part in conversation.receive()["genome"]}
        self.assertEqual((declared["beta"], declared["damping"]), ("optimizer = adam", "nesterov = 1"))
        adam = {"optimizer": ["adam"], "rate": [0.01], "beta": [0.9]}
        plain = {"optimizer": ["sgd"], "rate": [0.01], "momentum": [0.8], "nesterov": [0]}
        best = {**plain, "nesterov": [1], "damping": [0.25, 0.25, 0.25]}
        items = [{"id": "1", "seed": "0" * 16, "genes": genes} for genes in (adam, plain, best)]
        values = [answer["f"][0] for answer in conversation.ask(*items, batch=1)]
        self.assertEqual([round(value, 12) for value in values], [0.5, 0.3, 0.1])

    def test_a_package_that_is_missing(self):
        for name, module, package in (
            ("rosen_numpy.py", "numpy", "numpy"),
            ("cartpole.py", "gymnasium", "gymnasium"),
            ("hyperparameters.py", "sklearn", "scikit-learn"),
        ):
            with self.subTest(name=name), tempfile.TemporaryDirectory() as directory:
                (Path(directory) / f"{module}.py").write_text("raise ImportError")
                path = f"{directory}:{environment()['PYTHONPATH']}"
                done = started(PROGRAMS / name, PYTHONPATH=path)
                sentence = f"{name} needs the package {package}: pip install {package}\n"
                self.assertEqual((done.returncode, done.stderr), (1, sentence))

    def test_every_example_is_tested(self):
        # laboratory.py: test_ask.py
        tested = ["cartpole.py", "hyperparameters.py", "laboratory.py", "one_plus_one.py"]
        tested += ["optimizers.py", "rosen.c", "rosen.js", "rosen.py", "rosen_numpy.py", "salesman.py"]
        there = sorted(path.name for path in PROGRAMS.iterdir() if path.suffix in (".py", ".c", ".js"))
        self.assertEqual(there, tested)


if __name__ == "__main__":
    unittest.main()
