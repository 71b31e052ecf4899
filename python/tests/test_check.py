"""The check finds each sort of impurity, and reports in which run and for which candidate."""

import contextlib
import io
import os
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import evoxo
from evoxo import _check

from .conversation import environment, python, started, write

PROBLEM = """
    import random, time
    import evoxo
    calls, known = [], {}
    words = {"red", "green", "blue", "yellow", "black", "white"}
    drawn = random.random()
    @evoxo.problem(genome=evoxo.reals(3, -5, 5), objectives=["min cost"])
    def tried(x, seed):
        {body}
    evoxo.main(tried)
"""


# A check lasts a second, most of which it waits, so all checks start at once.
BODIES = {
    "pure": "import random; return sum(x) + random.Random(seed).random()",
    "global state": "calls.append(x); return len(calls)",
    "the one before": "calls.append(x[0]); return calls[-2] if len(calls) % 12 != 1 else 0.0",
    "order of a set": "return list(words).index('red')",
    "random numbers": "return drawn",
    "sign of zero": "calls.append(x); return 0.0 if len(calls) <= 12 else -0.0",
    "clock": "return time.perf_counter()",
    "whole seconds": "return int(time.time())",
    "one candidate": "calls.append(0); return len(calls) * (x[0] == 0.0)",
    "failing": "if x[0] == 5: raise evoxo.Failed('too far')\n        return 1",
    "ending": "return x[3]",
    "first sight": "return known.setdefault(round(x[0]), sum(x))",
}

AGAIN = "the same process once more"
REVERSED = "the same process in reversed order"
FRESH = "a fresh process"
ORDERS = ["a fresh process in reversed order", "a fresh process, odd numbers first"]
HASH_SEED = "a fresh process with another PYTHONHASHSEED"


def lone(x):
    return 0


class Checking(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        pool = ThreadPoolExecutor(len(BODIES))
        cls.addClassCleanup(pool.shutdown)
        cls.checks = {}
        for index, (name, body) in enumerate(BODIES.items()):
            program = write(directory.name, PROBLEM.replace("{body}", body), f"problem{index}.py")
            options = ["--candidates", "4"] if name == "failing" else []
            cls.checks[name] = pool.submit(started, program, "check", *options)

    def check(self, name):
        """The exit status of a check, its standard output, and its standard error."""
        done = self.checks[name].result()
        return done.returncode, done.stdout, done.stderr

    def assert_impure(self, name, runs):
        """The check finds other values in exactly these runs."""
        status, said, errors = self.check(name)
        lines = said.splitlines()
        self.assertEqual((status, errors), (1, ""), said)
        self.assertEqual(lines[-1], "tried is not pure: its values must follow from the genes and the seed alone")
        found = [line.partition("other values in ")[2].partition(":")[0] for line in lines if "other values in" in line]
        self.assertEqual(found, runs, said)
        return said

    def test_a_pure_function(self):
        status, said, errors = self.check("pure")
        self.assertEqual((status, errors), (0, ""))
        pure = "tried is pure as far as 12 candidates show"
        self.assertRegex(said, rf"^{pure}; one candidate takes [0-9.e+]+ (us|ms|s)\n$")

    def test_global_state(self):
        said = self.assert_impure("global state", [AGAIN, REVERSED, *ORDERS])
        self.assertIn("candidate 0 (all genes low), and 11 more: ", said)
        self.assertIn('  the first run: {"f": [1.0]}\n', said)

    def test_the_sign_of_a_zero(self):
        said = self.assert_impure("sign of zero", [AGAIN, REVERSED])
        self.assertIn(f'  the first run: {{"f": [0.0]}}\n  {AGAIN}: {{"f": [-0.0]}}\n', said)

    def test_what_the_candidate_before_leaves(self):
        self.assert_impure("the one before", [REVERSED, *ORDERS])

    def test_what_stays_from_the_first_sight_of_a_candidate(self):
        self.assert_impure("first sight", ORDERS)

    def test_the_order_of_a_set(self):
        self.assert_impure("order of a set", [HASH_SEED])

    def test_random_numbers_of_the_start(self):
        self.assert_impure("random numbers", [FRESH, *ORDERS, HASH_SEED])

    def test_a_clock(self):
        self.assert_impure("clock", [AGAIN, REVERSED, FRESH, *ORDERS, HASH_SEED])

    def test_a_clock_of_whole_seconds(self):
        status, said, _ = self.check("whole seconds")
        self.assertEqual(status, 1, said)
        self.assertIn(f"other values in {HASH_SEED}", said)

    def test_the_last_process_starts_a_second_later(self):
        with tempfile.TemporaryDirectory() as directory:
            program = write(directory, PROBLEM.replace("{body}", "return 0"))
            problem = evoxo.problem(genome=evoxo.reals(3, -5, 5), objectives=["min cost"])(lone)
            with mock.patch.dict(os.environ, environment()), mock.patch.object(_check, "time") as clock:
                clock.monotonic.return_value = clock.perf_counter.return_value = 5.0
                with contextlib.redirect_stdout(io.StringIO()):
                    self.assertEqual(_check.check(problem, python(program), 1), 0)
        self.assertAlmostEqual(clock.sleep.call_args.args[0], _check.CLOCK_SECONDS)

    def test_one_candidate_that_differs_is_named(self):
        said = self.assert_impure("one candidate", [AGAIN, REVERSED, *ORDERS])
        self.assertIn("candidate 2 (all genes in the middle): other values", said)

    def test_a_line_that_would_be_too_long_is_several(self):
        problem = evoxo.problem(genome=evoxo.reals(3, -5, 5), objectives=["min cost"])(lone)
        items = _check.candidates(problem, 12)
        with tempfile.TemporaryDirectory() as directory:
            program = python(write(directory, PROBLEM.replace("{body}", "calls.append(x); return len(calls)")))
            with mock.patch.dict(os.environ, environment()), mock.patch.object(_check, "LINE_BYTES_MAX", 500):
                with _check._Program(program, 1) as running:
                    answers = running.ask(items)
                    self.assertEqual([answer["f"] for answer in answers], [[number + 1] for number in range(12)])
                    self.assertGreater(running._batches, 2)
        lines = list(_check._requests(["x" * 100_000] * 1000))
        self.assertEqual(sum(map(len, lines)), 1000)
        self.assertLessEqual(max(len(", ".join(line)) for line in lines) + _check.FRAME_BYTES, _check.LINE_BYTES_MAX)

    def test_candidates_that_fail_are_shown(self):
        status, said, errors = self.check("failing")
        self.assertEqual((status, errors), (0, ""))
        self.assertIn("candidate 1 (all genes high) failed: too far\n", said)
        self.assertIn("tried is pure as far as 4 candidates show", said)

    def test_a_program_that_ends(self):
        status, said, errors = self.check("ending")
        self.assertEqual((status, said), (1, ""))
        self.assertIn("candidate check-0 ended the program: IndexError: list index out of range\n", errors)
        self.assertTrue(errors.endswith("tried cannot be checked: see the lines above\n"), errors)


if __name__ == "__main__":
    unittest.main()
