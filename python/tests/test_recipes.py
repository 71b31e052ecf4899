"""docs/recipes.md: each snippet in Python runs, beside a small run of the real program."""

import importlib.util
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
PACKAGES = ["pandas", "duckdb", "mlflow"]
EVOXO = shutil.which(os.environ.get("EVOXO") or "evoxo")


def snippets() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@unittest.skipUnless(EVOXO, "the program evoxo is not there: build it, or set EVOXO")
class Recipes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.desk = Path(folder.name)
        (self.desk / "invincible.toml").write_text(FILE)
        self.evoxo("run", "invincible.toml", "--workers", "0")

    def evoxo(self, *arguments):
        subprocess.run([EVOXO, *arguments], cwd=self.desk, check=True, capture_output=True)

    def test_each_snippet(self):
        self.assertEqual(len(snippets()), 3)
        for snippet in snippets():
            needed = [package for package in PACKAGES if re.search(rf"^import {package}\b", snippet, re.MULTILINE)]
            missing = [package for package in needed if importlib.util.find_spec(package) is None]
            with self.subTest(needed):
                if missing:
                    self.skipTest(f"not installed: {missing}")
                done = subprocess.run([sys.executable, "-c", snippet], cwd=self.desk, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("X", done.stdout)

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
