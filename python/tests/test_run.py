"""Runs of scripts and notebooks with the real program evoxo: the one that EVOXO names, one on the PATH, or one that was built here."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import evoxo

from .conversation import started, write
from .test_ask import real

SCRIPT = """
    import evoxo

    @evoxo.problem(genome=evoxo.reals(3, -5, 5), objectives=["min cost"])
    def bowl(x):
        return sum(a * a for a in x)  # round

    result = bowl.run(evaluations=80, replicas=2, workers=0)
    print(result.f == bowl(result.x), len(result.x), result.directory)
    print(result)
"""

CELLS = (
    "import math, evoxo\nSHIFT = 0.5",
    "def square(a): return a * a",
    '@evoxo.problem(genome=evoxo.reals(3, -5, 5), objectives=["min cost"])\ndef bowl(x):\n'
    "    return sum(square(a - SHIFT) for a in x) + math.pi",
    "result = bowl.run(evaluations=80, replicas=1, workers=1)\nresult",
    "result.plot()",
)


@unittest.skipUnless(real(), "there is no program evoxo")
class Runs(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def script(self, text):
        done = started(write(self.directory, text), directory=self.directory, EVOXO=real())
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_a_script_runs_its_problem(self):
        first = self.script(SCRIPT)
        self.assertEqual(first[0], "True 3 out/bowl")
        self.assertEqual(first[1], "<evoxo results: finished, in out/bowl>")
        self.assertRegex(first[2], r"^  min cost  \S{1,9}$")
        # A comment does not change the version, but a function does; and a number of evaluations makes another run.
        self.assertEqual(self.script(SCRIPT.replace("# round", "# flat")), first)
        self.assertEqual(self.script(SCRIPT.replace("a * a", "2 * a * a"))[0], "True 3 out/bowl-2")
        self.assertEqual(self.script(SCRIPT.replace("=80", "=90"))[0], "True 3 out/bowl-3")
        self.assertEqual(self.script(SCRIPT), first)

    def test_a_search_begins_with_given_candidates(self):
        said = self.script("""
            import evoxo

            @evoxo.problem(genome=evoxo.reals(3, -5, 5), objectives=["min cost"])
            def bowl(x):
                return sum((a - 1) ** 2 for a in x)

            def run(**options):
                return bowl.run(replicas=1, workers=0, quiet=True, **options)

            first = run(evaluations=300)
            for algorithm in ("ga", "random"):
                for start in (first.best, first.x, [[5, 5, 5], {"x": first.x}]):
                    print(run(evaluations=10, algorithm=algorithm, start=start).f <= first.f)
            print(run(evaluations=10, algorithm="cma-es", start=[1, 1, 1], settings={"sigma": "0.001"}).f < 0.01)
            for start in ([1, 1], [1, float("nan"), 1]):
                try:
                    run(evaluations=10, start=start)
                except (evoxo.RunFailed, ValueError) as why:
                    print(why)
        """)
        self.assertEqual(said[:7], ["True"] * 7)
        self.assertIn('candidate 1 of start: part "x" has 2 genes, not 3', " ".join(said[7:-1]))
        self.assertRegex(said[-1], "^start must have lists of genes")

    def test_scales_steps_and_choices_arrive_as_values(self):
        said = self.script("""
            import math
            import evoxo

            GENOME = {
                "rate": evoxo.reals(1, 1e-5, 1, log=True), "drop": evoxo.reals(1, 0, 0.95, step=0.1),
                "width": evoxo.integers(1, 1, 1000, log=True), "size": evoxo.choices(2, ["adam", 32, 1e-05, True, None]),
            }

            @evoxo.problem(genome=GENOME, objectives=["min cost"])
            def tuned(rate, drop, width, size):
                assert 1e-5 <= rate[0] <= 1 and round(drop[0], 1) == drop[0] <= 0.9 and type(width[0]) is int
                assert all(any(option is one or option == one for one in ("adam", 32, 1e-05, True, None)) for option in size)
                return (math.log10(rate[0]) + 3) ** 2 + (drop[0] - 0.3) ** 2 + math.log(width[0] / 30) ** 2 + sum(s != 32 for s in size)

            for algorithm in ("ga", "random"):
                best = tuned.run(evaluations=2000, replicas=1, workers=0, algorithm=algorithm, settings={"slice": "100"}).best["genes"]
                print(best["drop"], best["width"], best["size"], round(math.log10(best["rate"][0]), 1))
        """)
        self.assertEqual(said[0], "[0.3] [30] [32, 32] -3.0")

    def test_parts_that_are_not_there(self):
        said = self.script("""
            import evoxo

            GENOME = {
                "optimizer": evoxo.choices(1, ["adam", "sgd"]), "beta": evoxo.reals(1, 0.5, 0.999, when={"optimizer": "adam"}),
                "momentum": evoxo.reals(1, 0, 1, when={"optimizer": "sgd"}), "nesterov": evoxo.bits(3, when={"optimizer": "sgd"}),
                "damping": evoxo.integers(1, 0, 2, when={"optimizer": "sgd"}), "delay": evoxo.symbols(2, "AB", when={"damping": [1, 2]}),
            }

            @evoxo.problem(genome=GENOME, objectives=["min loss", "max size"])
            def tuned(optimizer, beta, momentum, nesterov, damping, delay):
                if optimizer == ["adam"]:
                    assert (momentum, nesterov, damping, delay) == (None, None, None, None)
                    return beta[0], 0
                assert beta is None and (delay is None) == (damping == [0])
                return momentum[0], 1.0 + (delay == "AB")

            start = [{"optimizer": ["adam"], "beta": [0.75]}, {"optimizer": ["sgd"], "beta": None, "momentum": [0.25],
                     "nesterov": [0, 1, 1], "damping": [1], "delay": "AB"}]
            found = tuned.run(evaluations=60, replicas=1, workers=0, start=start)
            row = next(row for row in found.front if row["size"] == 2)
            print(row["optimizer"], row["beta"], type(row["nesterov"]), row["delay"])
        """)
        self.assertEqual(said, ["sgd nan <class 'str'> AB"])

    def test_the_arguments_of_a_script_are_those_of_its_program(self):
        text = SCRIPT.replace("import evoxo\n", "import sys\n    import evoxo\n    power = int(sys.argv[1])\n", 1)
        problem = write(self.directory, text.replace("a * a", "a ** power"))
        done = started(problem, "4", directory=self.directory, EVOXO=real())
        self.assertEqual((done.returncode, done.stdout.splitlines()[:1]), (0, ["True 3 out/bowl"]), done.stderr)

    def test_a_front(self):
        text = SCRIPT.replace("[\"min cost\"]", '["min one", "max two"]').replace("sum(a * a for a in x)", "x[0], x[1]")
        text = text[: text.index("print(result.f")] + "print(len(result.f), list(result.front[0]), result.plots)\n"
        columns = ["arm", "replica", "one", "two", "x[0]", "x[1]", "x[2]"]
        self.assertEqual(self.script(text), [f"2 {columns} ['attainment', 'best', 'front']"])

    def test_what_evoxo_refuses_is_an_exception(self):
        text = SCRIPT.replace("workers=0", 'workers=0, algorithm="none"')
        done = started(write(self.directory, text), directory=self.directory, EVOXO=real())
        self.assertIn("RunFailed: error: ", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_a_problem_that_cannot_be_started_elsewhere(self):
        scope = {}
        exec("def flat(x): return 1", scope)
        problem = evoxo.problem(genome=evoxo.bits(1), objectives=["min f"], version="1")(scope["flat"])
        with mock.patch.dict(os.environ, EVOXO=str(real())), self.assertRaisesRegex(ValueError, "was not defined in a file"):
            problem.run(out=self.directory / "out")

    def test_a_notebook(self):
        try:
            import nbclient
            import nbformat
        except ImportError:
            self.skipTest("nbclient is not installed")
        cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
        notebook = nbformat.v4.new_notebook(cells=cells)
        package = str(Path(evoxo.__file__).parent.parent)
        with mock.patch.dict(os.environ, EVOXO=str(real()), PYTHONPATH=package):
            client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(self.directory)}})
            client.execute()
        said, shown = ([output for output in cell.outputs if output.output_type == "execute_result"] for cell in cells[3:])
        self.assertIn("<evoxo results: finished, in out/bowl>", said[0].data["text/plain"])
        self.assertTrue(shown[0].data["text/html"].startswith("<svg "))
        self.assertIn("SHIFT = 0.5", (self.directory / "out" / "bowl.py").read_text())


if __name__ == "__main__":
    unittest.main()
