"""Reading a run's directory: the small one in `run/`, written by hand in evoxo's format."""

import importlib.util
import math
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import evoxo

RUN = Path(__file__).resolve().parent / "run"


class Reading(unittest.TestCase):
    def test_a_run(self):
        results = evoxo.results(RUN)
        self.assertEqual((results.state, results.digest[:8]), ("finished", "5e2471bb"))
        self.assertEqual(results.arms, ["random", "cma-es, small"])
        self.assertEqual(results.result["provenance"]["workers"], 2)
        row = results.history[1]
        self.assertEqual(row, {"arm": "cma-es, small", "replica": 0, "evaluations": 40.0, "best": 0.1})
        self.assertEqual([type(value) for value in row.values()], [str, int, float, float])
        self.assertTrue(math.isnan(results.history[2]["best"]))
        self.assertEqual(results.history[4]["best"], 1e21)

    def test_champions_are_in_the_order_of_the_arms(self):
        champions = evoxo.results(str(RUN)).champions
        names = [(card["arm"], card["replica"]) for card in champions]
        self.assertEqual(names, [("random", 0), ("random", 1), ("cma-es, small", 0), ("cma-es, small", 1)])
        self.assertEqual(champions[2]["genes"], {"x": [1.0, 0.9375]})

    def test_a_frame(self):
        if importlib.util.find_spec("pandas") is None:
            self.skipTest("the package pandas is not installed")
        frame = evoxo.results(RUN).frame()
        self.assertEqual(list(frame.columns), ["arm", "replica", "evaluations", "best"])
        self.assertEqual(frame.groupby("arm")["best"].min()["cma-es, small"], 0.1)

    def test_a_frame_without_pandas(self):
        with mock.patch.dict(sys.modules, {"pandas": None}), self.assertRaises(ImportError) as raised:
            evoxo.results(RUN).frame()
        self.assertIn("frame() needs the package pandas", str(raised.exception))

    def test_directories_that_are_not_as_they_should_be(self):
        def remove(name):
            return lambda run: (run / name).unlink()

        def say(name, text):
            return lambda run: (run / name).write_text(text)

        head = "arm,replica,best\n"
        for damage, sentence in (
            (remove("result.json"), "has no result.json: it must be the directory of an evoxo run that has ended"),
            (remove("history.csv"), "has no history.csv"),
            (say("result.json", "{"), "result.json is damaged: "),
            (say("result.json", "[]"), "result.json is damaged: it is not a JSON object"),
            (say("result.json", "{}"), "result.json is not the result of a run"),
            (say("champions/random-1.json", '{"kind"'), "random-1.json is damaged: "),
            (say("history.csv", ""), "history.csv is damaged: its first columns are not arm and replica"),
            (say("history.csv", head + "a,0,1\na,0\n"), "history.csv:3 is damaged: 2 values for 3 columns"),
            (say("history.csv", head + "a,0,half\n"), "history.csv:2 is damaged: could not convert string"),
        ):
            with self.subTest(sentence=sentence), tempfile.TemporaryDirectory() as directory:
                run = Path(directory) / "run"
                shutil.copytree(RUN, run)
                damage(run)
                with self.assertRaises(ValueError) as raised:
                    evoxo.results(run)
                self.assertIn(sentence, str(raised.exception))


if __name__ == "__main__":
    unittest.main()
