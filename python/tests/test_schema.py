"""Checks committed results against docs/result.schema.json, with the package jsonschema if it is installed."""

import importlib.util
import json
import subprocess
import unittest
from pathlib import Path

from .test_ask import real

DOCS = Path(__file__).resolve().parents[2] / "docs"


class Schema(unittest.TestCase):
    def test_committed_results_conform(self):
        if importlib.util.find_spec("jsonschema") is None:
            self.skipTest("the package jsonschema is not installed")
        program = real()
        if program is None:
            self.skipTest("the program evoxo is not there: build it, or set EVOXO")
        from jsonschema import Draft202012Validator

        schema = json.loads((DOCS / "result.schema.json").read_text())
        Draft202012Validator.check_schema(schema)
        checker = Draft202012Validator(schema)
        results = sorted(DOCS.glob("reproduction/*/result-*.json"))
        self.assertGreater(len(results), 20)
        for path in results:
            # Committed results are reduced; this restores their usual form.
            report = subprocess.run([program, "report", "--json", path], check=True, capture_output=True)
            result = json.loads(report.stdout)
            with self.subTest(path.name):
                self.assertEqual([error.message for error in checker.iter_errors(result)], [])
        result["seed"] = "one"
        self.assertEqual(len(list(checker.iter_errors(result))), 1)


if __name__ == "__main__":
    unittest.main()
