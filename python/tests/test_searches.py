"""The examples as a person runs them: `evoxo run` gives the same digest for each on a cluster and on one thread."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from .conversation import PACKAGE, PATIENCE, PROGRAMS, environment
from .test_examples import needs

EVOXO = shutil.which(os.environ.get("EVOXO") or "evoxo")
MODULES = PACKAGE.parent / "examples" / "wasm"
FILE = """experiment = "evolve"
replicas = 1
[settings]
problem = "program:{name}"
algorithm = "{algorithm}"
evaluations = {evaluations}
population = 10
"""


@unittest.skipUnless(EVOXO, "the program evoxo is not there: build it, or set EVOXO")
class Searches(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.desk = Path(folder.name)

    def digest(self, file, workers, *more):
        """The digest of a run with this number of workers."""
        out = Path(tempfile.mkdtemp(dir=self.desk)) / "out"
        words = [EVOXO, "run", str(file), "--workers", str(workers), "--no-page", "--out", str(out), *more]
        done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=4 * PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads((out / "result.json").read_text())
        self.assertEqual(result["state"], "finished")
        return result["digest"]

    def assert_is_searched(self, name, command, algorithm="ga", evaluations=40, *more):
        file = self.desk / f"{name}.toml"
        file.write_text(FILE.format(name=name, algorithm=algorithm, evaluations=evaluations))
        program = ["--program", f"{name}={command}", *more]
        self.assertEqual(self.digest(file, 2, *program), self.digest(file, 0, *program))

    def python(self, name):
        return f"{sys.executable} {PROGRAMS / name}"

    def test_rosen(self):
        self.assert_is_searched("rosen", self.python("rosen.py"), "openai-es")

    @needs("numpy")
    def test_rosen_numpy(self):
        self.assert_is_searched("rosen", self.python("rosen_numpy.py"), "cma-es")

    @needs("node")
    def test_rosen_in_javascript(self):
        self.assert_is_searched("rosen", f"node {PROGRAMS / 'rosen.js'}")

    @needs("cc")
    def test_rosen_in_c(self):
        program = self.desk / "rosen"
        subprocess.run(["cc", "-O2", "-ffp-contract=off", "-o", program, PROGRAMS / "rosen.c"], check=True)
        self.assert_is_searched("rosen", str(program))

    def test_salesman(self):
        self.assert_is_searched("salesman", self.python("salesman.py"))

    @needs("gymnasium")
    def test_cartpole(self):
        self.assert_is_searched("cartpole", self.python("cartpole.py"), "openai-es", 20)

    @needs("sklearn")
    def test_hyperparameters(self):
        # A model that does not converge has no value.
        counted = ["--set", "on_failure=worst"]
        self.assert_is_searched("hyperparameters", self.python("hyperparameters.py"), "nsga2", 20, *counted)

    def test_modules(self):
        for module in ("rosen.wasm", "rosen-as.wasm"):
            with self.subTest(module=module):
                changed = ["--set", "evaluations=400", "--set", f"problem=wasm:{module}"]
                file = MODULES / "rosen.toml"
                self.assertEqual(self.digest(file, 2, *changed), self.digest(file, 0, *changed))


if __name__ == "__main__":
    unittest.main()
