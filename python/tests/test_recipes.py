"""docs/recipes.md: each snippet works on small runs of the real program, one of the page's kind and one whose arms have odd names."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "recipes.md"
FILE = """experiment = "invincible"
replicas = 3
[settings]
population = 60
games = 100
generations = 5
slice = 20
[arms.O]
[arms.X]
side = "X"
"""
NAMES = ["None", "NA", "nan", "null", "n/a", "true", "1", "02", "1e5", "a, b", 'q"']
"""Names that CSV readers mistake for something other than text."""
NAMED = """experiment = "evolve"
seed = 9007199254740993
replicas = 3
[settings]
problem = "sphere"
length = 2
evaluations = 60
algorithm = "random"
""" + "".join(f"[arms.{json.dumps(name)}]\n" for name in NAMES)
PACKAGES = ["pandas", "duckdb", "mlflow"]
EVOXO = shutil.which(os.environ.get("EVOXO") or "evoxo")
RSCRIPT = shutil.which("Rscript")


def snippets(language: str) -> "list[str]":
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def named(snippet: str) -> str:
    """The same for the other run."""
    return snippet.replace("out/invincible", "out/named").replace("worth", "best").replace("generation", "evaluations")


@unittest.skipUnless(EVOXO, "the program evoxo is not there: build it, or set EVOXO")
class Recipes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.desk = Path(folder.name)
        for name, text in (("invincible", FILE), ("named", NAMED)):
            (self.desk / f"{name}.toml").write_text(text)
            self.evoxo("run", f"{name}.toml", "--workers", "0")

    def evoxo(self, *arguments):
        subprocess.run([EVOXO, *arguments], cwd=self.desk, check=True, capture_output=True)

    def lines(self, command, snippet):
        """The output of a snippet."""
        done = subprocess.run([*command, snippet], cwd=self.desk, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def assert_all_arms(self, lines, package):
        """Each arm has its lines, with numbers after its name: one in a table, or one for each replica."""
        for name in NAMES:
            here = [line for line in lines if re.match(rf"[^a-zA-Z0-9]*([0-9]+ +)?\W*{re.escape(name)}[^a-zA-Z0-9]+[0-9]", line)]
            self.assertTrue(here, f"{package}: {name} is not in\n" + "\n".join(lines))

    def test_each_snippet(self):
        self.assertEqual(len(snippets("python")), 3)
        for snippet in snippets("python"):
            needed = [package for package in PACKAGES if re.search(rf"^import {package}\b", snippet, re.MULTILINE)]
            missing = [package for package in needed if importlib.util.find_spec(package) is None]
            with self.subTest(needed):
                if missing:
                    self.skipTest(f"not installed: {missing}")
                command = [sys.executable, "-c"]
                self.assertIn("X", "".join(self.lines(command, snippet)))
                self.assert_all_arms(self.lines(command, named(snippet)), needed)

    def test_r(self):
        if not RSCRIPT or subprocess.run([RSCRIPT, "-e", "library(jsonlite)"], capture_output=True).returncode:
            self.skipTest("R is not installed, or has no jsonlite")
        [snippet] = snippets("r")
        self.assertIn("X", "".join(self.lines([RSCRIPT, "-e"], snippet)))
        self.assert_all_arms(self.lines([RSCRIPT, "-e"], named(snippet)), "R")

    def test_a_seed_that_no_float_has_is_a_text(self):
        text = (self.desk / "out/named/result.json").read_text()
        self.assertEqual(json.loads(text)["seed"], "9007199254740993")
        again = subprocess.run([EVOXO, "report", "out/named"], cwd=self.desk, capture_output=True, text=True)
        self.assertEqual((again.returncode, "There are no tables" in again.stdout), (0, False), again.stderr)

    def test_tensorboard_reads_what_is_written_for_it(self):
        if importlib.util.find_spec("tensorboard") is None:
            self.skipTest("the package tensorboard is not installed")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        self.evoxo("report", "out/invincible", "--tensorboard", "events")
        header, *lines = (self.desk / "out/invincible/history.csv").read_text().splitlines()
        place = header.split(",").index("worth")
        rows = [line.split(",") for line in lines if line.startswith("X,1,")]
        events = EventAccumulator(str(self.desk / "events" / "X-1"))
        events.Reload()
        self.assertEqual(events.Tags()["scalars"], header.split(",")[3:])
        scalars = events.Scalars("worth")
        self.assertEqual([scalar.step for scalar in scalars], [1, 2, 3, 4, 5])
        for scalar, row in zip(scalars, rows, strict=True):
            self.assertAlmostEqual(scalar.value, float(row[place]), places=6)


if __name__ == "__main__":
    unittest.main()
