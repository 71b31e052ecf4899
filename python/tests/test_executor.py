"""The executor: values, errors, processes that are killed, the journal, and runs on a coordinator with the real program evoxo."""

import contextlib
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import unittest.mock
from concurrent.futures import as_completed
from pathlib import Path

import evoxo
from evoxo._answers import Answers, key_of
from evoxo._values import CannotTravel, decode, encode

from .conversation import PATIENCE, Conversation, environment, write
from .test_ask import real

FUNCTIONS = """
    import os, time
    import evoxo

    def square(x):
        return x * x

    def slow(x):
        time.sleep(0.05)
        return x * x

    def process(x):
        time.sleep(0.02)
        return os.getpid()

    def fail(x):
        raise KeyError(f"no {x} at {object()}")

    class Odd(Exception):
        pass

    def odd(x):
        raise Odd("odd")

    def die(x):
        os._exit(3)

    def stay(x):
        time.sleep(60)

    def big(n):
        return "a" * n

    def unsendable(x):
        return {x}

    def nested(x):
        evoxo.Executor()

    def leave(x):
        raise SystemExit(4)

    class Model:
        factor = 3

        def scaled(self, x):
            return self.factor * x

    model = Model()
"""

FUNCTIONS_TEXT = textwrap.dedent(FUNCTIONS)


class Values(unittest.TestCase):
    def test_values_arrive_as_they_were(self):
        values = [
            None, True, 1, -(2**200), 0.1, -0.0, 1e-310, "ä\ud800\n~", b"\0\xff", [1, [2.5]], (1, (2,)), {"a": [1]}, {"~f": 1},
            {1: "a", (2,): "b"}, 1 + 2j, math.inf, -math.inf, [], {}, (),
        ]  # fmt: skip
        for value in values:
            back = decode(encode(value))
            self.assertEqual((type(back), repr(back)), (type(value), repr(value)))
        self.assertTrue(math.isnan(decode(encode(math.nan))))

    def test_a_subclass_arrives_as_its_base(self):
        class Individual(list):
            fitness = 3

        self.assertIs(type(decode(encode(Individual([1])))), list)

    def test_what_cannot_travel_is_refused_with_a_sentence(self):
        circle = []
        circle.append(circle)
        for value, words in (({1}, "builtins.set"), (print, "builtin"), (circle, "refers to itself"), ([object()], "object")):
            with self.assertRaisesRegex(CannotTravel, words):
                encode(value)

    def test_damaged_texts_are_refused(self):
        for text in ("?", encode(1)[:-1], "eyJ+YSI6MX0=", "eyJ+eiI6MX0=", "AAAA"):
            with self.assertRaises(ValueError):
                decode(text)

    def test_arrays_arrive_bit_for_bit(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        for value in (
            numpy.array([[1.5, math.nan], [-0.0, 2]]), numpy.arange(6, dtype="i2").reshape(2, 3).T, numpy.array(3.5),
            numpy.array(["a", "bc"]), numpy.zeros((0, 2)), numpy.float32(0.1), numpy.int8(-3), numpy.bool_(True),
        ):  # fmt: skip
            back = decode(encode(value))
            self.assertEqual((type(back), back.dtype, back.shape, back.tobytes()), (type(value), value.dtype, value.shape, value.tobytes()))
        with self.assertRaisesRegex(CannotTravel, "array of the type object"):
            encode(numpy.array([object()]))


class InADirectory(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name).resolve()
        self.file = write(self.directory, FUNCTIONS, "functions.py")
        sys.path.insert(0, str(self.directory))
        self.addCleanup(sys.path.remove, str(self.directory))
        sys.modules.pop("functions", None)
        import functions

        self.addCleanup(sys.modules.pop, "functions", None)
        self.functions = functions

    def pool(self, **options):
        usual = {"workers": 2, "journal": self.directory / "calls"}
        pool = evoxo.Executor(str(self.file), **{**usual, **options})
        self.addCleanup(pool.shutdown, cancel_futures=True)
        return pool


class Calling(InADirectory):
    def test_values_are_those_of_the_plain_calls_in_order(self):
        told = []
        with self.pool(progress=lambda done, made: told.append((done, made))) as pool:
            self.assertEqual(list(pool.map(self.functions.square, range(300))), [x * x for x in range(300)])
            futures = {pool.submit(self.functions.slow, x): x for x in range(4)}
            self.assertEqual({futures[one]: one.result() for one in as_completed(futures)}, {x: x * x for x in range(4)})
            self.assertEqual(pool.submit(self.functions.model.scaled, x=2).result(), 6)
        self.assertEqual(told[-1], (305, 305))
        with self.assertRaisesRegex(RuntimeError, "shut down"):
            pool.submit(self.functions.square, 1)

    def test_errors_have_their_types_and_the_traceback_of_the_worker(self):
        with self.pool() as pool:
            with self.assertRaises(KeyError) as caught:
                pool.submit(self.functions.fail, 3).result()
            self.assertIn("no 3 at <object object at 0x...>", str(caught.exception))
            self.assertRegex(str(caught.exception.__cause__), 'File "functions.py", line [0-9]+, in fail')
            for function, argument, error, words in (
                (self.functions.odd, 1, evoxo.CallFailed, "odd raised evoxo_function.Odd: odd"),
                (self.functions.nested, 1, RuntimeError, "cannot make another Executor"),
                (self.functions.leave, 1, evoxo.CallFailed, "leave raised builtins.SystemExit: 4"),
                (self.functions.big, 100_000_000, ValueError, "big returned a value of 133,333,336 bytes"),
                (self.functions.unsendable, 1, TypeError, "unsendable returned something else"),
                (self.functions.die, 1, evoxo.CallFailed, "die ended 3 processes .* ended with status 3"),
            ):
                with self.assertRaisesRegex(error, words):
                    pool.submit(function, argument).result()
            self.assertEqual(pool.submit(self.functions.square, 3).result(), 9)

    def test_what_is_not_at_the_top_level_of_the_file_is_refused(self):
        with self.pool() as pool:
            for function in (lambda x: x, len, self.functions.Model().scaled, os.path.join):
                with self.assertRaisesRegex(ValueError, "is not a function at the top level"):
                    pool.submit(function, 1)
            with self.assertRaisesRegex(TypeError, "cannot travel"):
                pool.submit(self.functions.square, {1})

    def test_a_worker_calls_only_functions_of_its_file(self):
        """The script refuses other names too, but whoever may submit calls to a coordinator does not need this script."""
        with Conversation([sys.executable, "-m", "evoxo.calls", str(self.file)]) as served:
            self.assertEqual(served.receive()["serves"], "calls")
            names = ["os.getpid", "time.time", "evoxo.Executor", "square.__globals__.clear", "__builtins__.eval", "model.__class__.mro"]
            calls = [encode([name, [], {}]) for name in names] + [encode(["model.scaled", [2], {}])]
            served.send({"batch": 1, "answer_bytes": 65536, "calls": calls})
            returned = served.receive()["returned"]
        for name, one in zip(names, returned):
            kind, text, _ = decode(one["text"])
            self.assertEqual((one["raised"], kind), (True, "builtins.NameError"), (name, text))
            self.assertIn(f"{name} is not there", text)
        self.assertEqual((returned[-1]["raised"], decode(returned[-1]["text"])), (False, 6))

    def test_wrong_arguments_are_refused(self):
        for options, words in (
            ({"workers": 0}, "workers is 0"),
            ({"timeout": 0}, "timeout is 0"),
            ({"answer_bytes": 5}, "answer_bytes is 5"),
            ({"name": "a b"}, "the name is 'a b'"),
            ({"version": ""}, "the version is ''"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                evoxo.Executor(str(self.file), **options)
        for file in ("no_such_module", "gone.py", "math"):
            with self.assertRaisesRegex(ValueError, "there is no"):
                evoxo.Executor(file)

    def test_a_process_that_is_killed_is_replaced(self):
        with self.pool(journal=None) as pool:
            futures = [pool.submit(self.functions.process, x) for x in range(60)]
            killed = futures[0].result()
            os.kill(killed, signal.SIGKILL)
            numbers = [one.result() for one in futures]
        self.assertEqual(len(set(numbers)), 3)

    def test_a_process_that_is_killed_while_it_starts_is_replaced(self):
        marker = self.directory / "marker"
        once = f"import os\nfrom pathlib import Path\nmine = Path({str(marker)!r})\nif not mine.exists():\n"
        end = "    mine.touch()\n    os.kill(os.getpid(), 9)\n"
        self.file.write_text(FUNCTIONS_TEXT + once + end)
        with self.pool(workers=1) as pool:
            self.assertEqual(pool.submit(self.functions.square, 3).result(), 9)
        self.assertTrue(marker.exists())

    def test_a_call_that_takes_too_long_is_stopped_and_others_go_on(self):
        with self.pool(timeout=0.5) as pool:
            late, good = pool.submit(self.functions.stay, 1), [pool.submit(self.functions.square, x) for x in range(20)]
            with self.assertRaisesRegex(TimeoutError, "stay took more than 0.5 s"):
                late.result()
            self.assertEqual([one.result() for one in good], [x * x for x in range(20)])

    def test_calls_can_be_cancelled(self):
        pool = self.pool(workers=1)
        futures = [pool.submit(self.functions.slow, x) for x in range(50)]
        self.assertEqual(futures[0].result(), 0)
        self.assertTrue(futures[-1].cancel())
        pool.shutdown(cancel_futures=True)
        self.assertTrue(futures[-1].cancelled() and futures[-2].cancelled())

    def test_a_file_that_cannot_be_imported_fails_its_calls(self):
        broken = write(self.directory, "def f(x):\n    return x\nraise ValueError('broken')\n", "broken.py")
        with evoxo.Executor(str(broken), workers=1, journal=None) as pool:
            module = type(sys)("broken")
            exec(compile("def f(x):\n    return x\n", str(broken), "exec"), vars(module))
            module.__file__, module.f.__module__ = str(broken), "broken"
            sys.modules["broken"] = module
            self.addCleanup(sys.modules.pop, "broken")
            with self.assertRaisesRegex(evoxo.CallFailed, "cannot be imported"):
                pool.submit(module.f, 1).result()


class Journals(InADirectory):
    def test_a_repeated_script_replays_and_another_version_does_not(self):
        for version, replayed in (("1", 0), ("1", 30), ("2", 0), ("2", 30), ("1", 0)):
            with self.pool(version=version) as pool:
                values = list(pool.map(self.functions.square, [*range(15), *range(15)]))
                self.assertEqual((values[20], pool.replayed), (25, replayed))

    def test_a_line_that_was_cut_off_is_computed_again(self):
        with self.pool() as pool:
            list(pool.map(self.functions.square, range(9)))
        path = self.directory / "calls"
        whole = path.read_bytes()
        path.write_bytes(whole[:-3])
        with self.pool() as pool:
            self.assertEqual(list(pool.map(self.functions.square, range(9))), [x * x for x in range(9)])
            self.assertEqual(pool.replayed, 8)

    def test_a_journal_has_one_owner_at_a_time_and_other_files_are_left_alone(self):
        with self.pool():
            with self.assertRaisesRegex(ValueError, "in use by another process"):
                self.pool()
        other = self.directory / "other"
        other.write_text("mine")
        with self.assertRaisesRegex(ValueError, "not a journal"):
            self.pool(journal=other)
        self.assertEqual(other.read_text(), "mine")
        with self.pool() as pool:
            list(pool.map(self.functions.square, range(3)))
        path = self.directory / "calls"
        path.write_bytes(path.read_bytes()[:-60] + b"?" * 59 + b"\n")
        with self.assertRaisesRegex(ValueError, "a line that is not an answer"):
            self.pool()

    def test_a_journal_that_is_full_keeps_what_it_has(self):
        answers = Answers(self.directory / "full", "me")
        answers.add([(key_of("a", 0), "MQ==")])
        with unittest.mock.patch("evoxo._answers.JOURNAL_BYTES_MAX", 10), self.assertWarnsRegex(UserWarning, "no more answers"):
            answers.add([(key_of("b", 0), "MQ==")])
        answers.close()
        again = Answers(self.directory / "full", "me")
        self.assertEqual((len(again), again.get(key_of("a", 0)), again.get(key_of("b", 0))), (1, "MQ==", None))
        again.close()

    def test_a_script_that_is_killed_goes_on_where_it_was(self):
        """The script has no guard: workers import it, and serve it where it makes its Executor."""
        script = write(
            self.directory,
            """
            import time, sys
            import evoxo
            def slow(x):
                time.sleep(0.05)
                return x * x
            with evoxo.Executor(workers=2) as pool:
                print(list(pool.map(slow, range(40))), pool.replayed)
            """,
            "script.py",
        )

        def start():
            pipe = subprocess.PIPE
            return subprocess.Popen([sys.executable, str(script)], cwd=self.directory, stdout=pipe, text=True, env=environment())

        first = start()
        journal = self.directory / "out" / "script.calls"
        deadline = time.monotonic() + PATIENCE
        while not journal.exists() or journal.read_bytes().count(b"\n") < 8:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        first.kill()
        first.communicate()
        said = start().communicate(timeout=PATIENCE)[0]
        values, _, replayed = said.rpartition("] ")
        self.assertEqual(values + "]", str([x * x for x in range(40)]))
        self.assertGreaterEqual(int(replayed), 7)


@unittest.skipUnless(real(), "the program evoxo is not there: build it, or set EVOXO")
class OnACoordinator(InADirectory):
    def setUp(self):
        super().setUp()
        named = unittest.mock.patch.dict(os.environ, {"EVOXO": real(), "PYTHONPATH": environment()["PYTHONPATH"]})
        named.start()
        self.addCleanup(named.stop)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.processes = []
        self.addCleanup(lambda: [one.kill() or one.wait() for one in self.processes])
        self.coordinator = self.start("coordinator", "--listen", self.address, "--store", str(self.directory / "store"))

    def start(self, *words):
        null = subprocess.DEVNULL
        process = subprocess.Popen([real(), *words], stdin=null, stdout=null, stderr=null)
        self.processes.append(process)
        return process

    def worker(self, file=None):
        program = f"functions={sys.executable} -m evoxo.calls {file or self.file}"
        return self.start("worker", "--coordinator", self.address, "--slots", "1", "--program", program)

    def runs(self):
        words = [real(), "runs", "--json", "--coordinator", self.address]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    def remote(self, **options):
        return self.pool(coordinator=self.address, workers=0, **options)

    def test_values_are_those_of_the_plain_calls_whatever_is_killed(self):
        workers = [self.worker() for _ in range(3)]
        with self.remote() as pool:
            futures = [pool.submit(self.functions.slow, x) for x in range(150)]
            time.sleep(3)
            workers[0].kill()
            self.coordinator.kill()
            self.coordinator.wait()
            self.coordinator = self.start("coordinator", "--listen", self.address, "--store", str(self.directory / "store"))
            self.assertEqual([one.result() for one in futures], [x * x for x in range(150)])
            self.assertEqual(list(pool.map(self.functions.square, [7])), [49])
            with self.assertRaisesRegex(KeyError, "no 3"):
                pool.submit(self.functions.fail, 3).result()
        self.assertIn(self.runs(), ("", "[]"))
        # The journal is the same as without a coordinator.
        with self.pool() as pool:
            self.assertEqual(list(pool.map(self.functions.slow, range(150))), [x * x for x in range(150)])
            self.assertEqual(pool.replayed, 150)

    def test_an_executor_may_bring_its_own_workers(self):
        with self.pool(coordinator=self.address, workers=2) as pool:
            self.assertEqual(list(pool.map(self.functions.square, range(5))), [0, 1, 4, 9, 16])

    def test_a_function_that_differs_gets_no_calls_and_the_script_is_told(self):
        other = write(self.directory, FUNCTIONS.replace("x * x", "x + x"), "other.py")
        self.worker(f"{other} --name functions")
        with self.remote() as pool, contextlib.ExitStack() as stack:
            said = stack.enter_context(unittest.mock.patch("evoxo._runs.print", create=True))
            future = pool.submit(self.functions.square, 3)
            told = lambda: any("functions" in str(call) for call in said.call_args_list)
            deadline = time.monotonic() + PATIENCE
            while not told():
                self.assertLess(time.monotonic(), deadline, said.call_args_list)
                time.sleep(0.05)
            self.assertFalse(future.done())
            self.worker()
            self.assertEqual(future.result(PATIENCE), 9)

    def test_arguments_that_are_too_long_are_refused(self):
        with self.remote() as pool, self.assertRaisesRegex(ValueError, "the arguments of square have 1,333,3"):
            pool.submit(self.functions.square, "a" * 1_000_000)


if __name__ == "__main__":
    unittest.main()
