"""Ask and tell with the real program evoxo: the one that EVOXO names, one on the PATH, or one that was built here."""

import contextlib
import gc
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import weakref
from pathlib import Path
from unittest import mock

import evoxo

from .conversation import PACKAGE, PATIENCE, PROGRAMS, environment, python, started, write

BUILT = [PACKAGE.parent / "target" / profile / "evoxo" for profile in ("release", "debug")]


def real():
    """The path of the program evoxo, if there is one."""
    named = os.environ.get("EVOXO") or "evoxo"
    return next((found for found in map(shutil.which, [named, *map(str, BUILT)]) if found), None)


def words(process):
    """The command line of a process; empty if it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    return []


def processes(text):
    """The IDs of the processes whose command line contains this text."""
    numbers = [int(directory.name) for directory in Path("/proc").glob("[0-9]*")]
    return [number for number in numbers if text in " ".join(words(number))]


def until(condition):
    """Waits until this is true, or gives up after a while."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("it did not happen in time")
        time.sleep(0.02)


def asked(test, out, name="hill", **options):
    """A run that ends with its test."""
    usual = {"genome": evoxo.reals(3, -5, 5), "objectives": ["min cost"], "evaluations": 70, "wait": PATIENCE}
    run = evoxo.ask(name, out=out, **{**usual, **options})
    # The test must not keep a reference: the run ends when nothing refers to it.
    weak = weakref.ref(run)
    test.addCleanup(lambda: weak() and weak().close())
    return run


def square(candidate):
    return sum(gene * gene for gene in candidate.genes)


@unittest.skipUnless(real(), "the program evoxo is not there: build it, or set EVOXO")
class Asking(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name).resolve()
        named = mock.patch.dict(os.environ, {"EVOXO": real()})
        named.start()
        self.addCleanup(named.stop)

    def ask(self, out="hill", **options):
        return asked(self, self.directory / out, **options)

    def finish(self, run, value=square):
        """Answers all batches of a run. Returns its digest and the names of the candidates."""
        asked = []
        for batch in run:
            asked += [candidate.id for candidate in batch]
            batch.tell([value(candidate) for candidate in batch])
        self.assertTrue(run.finished)
        results = run.results()
        self.assertEqual(results.state, "finished")
        return results.digest, asked

    def assert_nothing_is_left(self, run):
        until(lambda: not processes(run._link.path))
        self.assertFalse(Path(run._link.path).parent.exists())

    def test_a_run_is_evolved_by_its_caller(self):
        run = self.ask(replicas=2)
        digest, asked = self.finish(run)
        expected = [f"main-{replica}-{birth}" for replica in (0, 1) for birth in range(70)]
        self.assertEqual(sorted(asked), sorted(expected))
        self.assertEqual([len(run.results().champions), list(run)], [2, []])
        self.assert_nothing_is_left(run)
        # The same search, in batches of another size.
        one_by_one = self.ask("other", replicas=2, batch=2)
        sizes = {len(batch) for batch in one_by_one if batch.tell(map(square, batch)) is None}
        self.assertEqual((one_by_one.results().digest, max(sizes)), (digest, 2))

    def test_all_that_can_be_told(self):
        genome = {"r": evoxo.reals(2, 0, 1), "s": evoxo.symbols(3, "AB")}
        run = self.ask(
            genome=genome, objectives=["min a", "max b"], constraints=["g"], measures=["m"], evaluations=40,
            settings={"population": 10, "on_failure": "worst"},
        )
        for batch in run:
            first = batch[0]
            self.assertEqual((len(first.genes["r"]), len(first.genes["s"]), first.told), (2, 3, False))
            self.assertTrue(0 <= first.seed < 2**64)
            for wrong, sentence in (
                ((1,), r"returned 1 number for 2 objectives: return evoxo.Result\(f, g=\[...\], m=\[...\]\)"),
                (([1, None],), "returned None among its objectives"),
                (([1, 2],), "returned 0 numbers for 1 constraint"),
                (([1, 2], [0]), "returned 0 numbers for 1 measure"),
            ):
                with self.assertRaisesRegex(ValueError, sentence):
                    first.tell(*wrong)
            first.tell([1, 2], [0], [0.5])
            with self.assertRaisesRegex(ValueError, f"{first.id} already has an answer"):
                first.fail("twice")
            batch[1].fail("the flask broke")
            with self.assertRaisesRegex(ValueError, "there are 0 values for 10 candidates"):
                batch.tell([])
            with self.assertRaisesRegex(ValueError, "already has an answer"):
                batch.tell([evoxo.Failed()] * 10)
            self.assertEqual([one.told for one in batch], [True] * 2 + [False] * 8)
            batch[2].tell([float("nan"), 1], 0, 0)
            rest = evoxo.Batch(batch[3:])
            rest.tell([evoxo.Failed("too late"), *[evoxo.Result([i, i], g=[i], m=[i]) for i in range(6)]])
        self.assertEqual(run.results().state, "finished")
        failures = {row["failures"] for row in run.results().history}
        self.assertEqual(max(failures), 12)

    def test_candidates_without_an_answer_are_noticed(self):
        run = self.ask()
        next(run)[1].tell(1)
        with self.assertRaisesRegex(RuntimeError, "main-0-0 and 5 more of the previous batch have no answer"):
            next(run)

    def test_leaving_early_saves_and_the_same_call_continues(self):
        digest, all_asked = self.finish(self.ask("whole"))
        asked = []
        for number, batch in enumerate(self.ask()):
            if number == 3:
                break
            asked += [candidate.id for candidate in batch]
            batch.tell(map(square, batch))
        gc.collect()
        until(lambda: not processes(str(self.directory / "hill")))
        again, rest = self.finish(self.ask())
        self.assertEqual((again, len(asked)), (digest, 21))
        self.assertEqual(sorted({*asked, *rest}), sorted(all_asked))

    def test_an_exception_in_the_loop_ends_the_run(self):
        with self.assertRaisesRegex(ZeroDivisionError, "by zero"):
            with self.ask() as run:
                for batch in run:
                    batch.tell([1 / 0 for _ in batch])
        self.assert_nothing_is_left(run)
        self.assertEqual(list(run), [])
        with self.assertRaisesRegex(ValueError, "the run in .* is unfinished: the same call continues it"):
            run.results()
        batch = next(self.ask("other"))
        batch[0].tell(1)

    def test_a_killed_program_asks_again_and_the_caller_is_not_asked_twice(self):
        digest, all_asked = self.finish(self.ask("whole"))
        run, asked = self.ask(), []
        for number, batch in enumerate(run):
            asked += [candidate.id for candidate in batch]
            if number in (0, 2):
                relays = [process for process in processes(run._link.path) if "-I" in words(process)]
                self.assertTrue(relays)
                for process in relays:
                    os.kill(process, signal.SIGKILL)
            batch[0].tell(square(batch[0]))
            time.sleep(0.3 if number == 2 else 0)
            evoxo.Batch(batch[1:]).tell(map(square, batch[1:]))
        self.assertEqual((run.results().digest, sorted(asked)), (digest, sorted(all_asked)))

    def test_evoxo_is_killed(self):
        digest, _ = self.finish(self.ask("whole"))
        run = self.ask()
        batch = next(run)
        os.kill(run._processes._run.process.pid, signal.SIGKILL)
        batch.tell(map(square, batch))
        with self.assertRaisesRegex(evoxo.RunFailed, "evoxo was killed by signal 9"):
            next(run)
        self.assert_nothing_is_left(run)
        self.assertEqual(self.finish(self.ask())[0], digest)

    def test_the_caller_is_killed(self):
        path = write(self.directory, """
            import sys, time
            import evoxo
            genome = evoxo.reals(3, -5, 5)
            options = {"objectives": ["min cost"], "evaluations": 70, "out": sys.argv[1], "journal": sys.argv[2]}
            run = evoxo.ask("hill", genome=genome, **options)
            batch = next(run)
            batch[0].tell(1)
            print(run._link.path, flush=True)
            time.sleep(600)
        """)
        arguments = [str(self.directory / "hill"), str(self.directory / "journal")]
        caller = subprocess.Popen(
            [*python(path), *arguments], env=environment(EVOXO=real()), stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(caller.stdout.close)
        path = caller.stdout.readline().strip()
        caller.kill()
        caller.wait()
        until(lambda: not processes(path))
        shutil.rmtree(Path(path).parent)
        _, asked = self.finish(self.ask(journal=self.directory / "journal"))
        self.assertEqual((len(asked), "main-0-0" in asked), (69, False))

    def test_a_journal_knows_what_was_told(self):
        journal = self.directory / "a" / "journal"
        digest, asked = self.finish(self.ask(journal=journal))
        self.assertEqual(journal.read_bytes().count(b"\n"), 70)
        self.assertEqual(self.finish(self.ask("again", journal=journal)), (digest, []))
        # If it is evaluated differently, the answer is another one.
        self.assertEqual(len(self.finish(self.ask("other", version="2", journal=journal))[1]), 70)
        # The process was killed while it wrote a line.
        cut = journal.read_bytes()[:-5]
        journal.write_bytes(cut)
        self.assertEqual(self.finish(self.ask("cut", version="2", journal=journal))[1], ["main-0-69"])
        # The candidate was measured, but the run ended before its answer was given.
        late = self.ask("late", version="3", journal=journal)
        candidate = next(late)[0]
        late.close()
        candidate.tell(5)
        first = self.ask("late again", version="3", journal=journal)
        self.assertNotIn(candidate.id, [one.id for one in next(first)])
        first.close()
        # The disk is full in the middle of a line: no answer counts, and all can be given again.
        full = self.ask("full", version="4", journal=journal)
        batch = next(full)
        whole, begin = journal.read_bytes(), os.write

        def on_a_full_disk(file, line):
            begin(file, line[:9])
            raise OSError("No space left on device")

        with mock.patch("os.write", on_a_full_disk):
            with self.assertRaisesRegex(OSError, "No space"):
                batch.tell(map(square, batch))
        self.assertEqual(journal.read_bytes(), whole)
        batch.tell(map(square, batch))
        full.close()
        with contextlib.closing(self.ask("here", journal=journal)):
            with self.assertRaisesRegex(ValueError, "journal is in use by another process"):
                self.ask("there", journal=journal)
        journal.write_bytes(b"{}\n")
        with self.assertRaisesRegex(ValueError, "journal:1 is not a line of a journal"):
            self.ask("wrong", journal=journal)

    def test_a_candidate_that_takes_too_long_fails_the_run(self):
        run = self.ask(timeout=1, batch=1)
        next(run)
        with self.assertRaisesRegex(RuntimeError, "main-0-0 of the previous batch"):
            next(run)
        until(lambda: run._processes._run.status() is not None)
        with self.assertRaisesRegex(evoxo.RunFailed, "did not answer within 1 s and was stopped"):
            next(run)

    def test_a_candidate_that_fails_stops_the_run(self):
        run = self.ask()
        next(run).tell([evoxo.Failed("the flask broke")] * 7)
        with self.assertRaisesRegex(evoxo.RunFailed, "the flask broke"):
            next(run)
        self.assert_nothing_is_left(run)

    def test_waiting_has_an_end(self):
        run = self.ask()
        run._wait = 0.0
        started = time.monotonic()
        with contextlib.suppress(TimeoutError):
            while time.monotonic() < started + PATIENCE:
                next(run).tell(range(7))
        run._wait = PATIENCE
        next(run)

    def test_two_callers_at_once(self):
        digests = {}

        def one(name):
            digests[name] = self.finish(self.ask(name))[0]

        threads = [threading.Thread(target=one, args=[name]) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(digests["a"], digests["b"])
        # For one directory.
        first = self.ask("c")
        batch = next(first)
        with self.assertRaises(evoxo.RunFailed) as raised:
            next(self.ask("c"))
        self.assertIn("is being computed by another process", str(raised.exception))
        batch.tell(map(square, batch))
        next(first)

    def test_a_file_of_a_person_is_kept(self):
        file = self.directory / "hill.toml"
        file.write_text("mine\n")
        with self.assertRaisesRegex(ValueError, "hill.toml was not written by .* with out=, or run .* with file="):
            self.ask()
        self.assertEqual(file.read_text(), "mine\n")

    def test_the_file_of_a_run_with_results_is_kept(self):
        run = self.ask()
        next(run)
        file = self.directory / "hill.toml"
        before = file.read_text()
        with self.assertRaisesRegex(ValueError, "hill has a run with other settings, .* with out=, or run that file"):
            self.ask(seed=77)
        self.assertEqual(file.read_text(), before)

    def test_an_experiment_file(self):
        file = self.directory / "mine.toml"
        file.write_text('experiment = "evolve"\nseed = 1\nreplicas = 1\n[settings]\nproblem = "program:hill"\n'
                        'algorithm = "random"\nevaluations = 12\npopulation = 4\n')
        run = self.ask(file=file)
        sizes = [len(batch) for batch in run if batch.tell(map(square, batch)) is None]
        self.assertEqual((sizes, run.finished), ([4, 4, 4], True))
        with self.assertRaisesRegex(ValueError, "file= cannot be combined with algorithm= or settings="):
            self.ask(file=file, algorithm="ga")
        with self.assertRaisesRegex(evoxo.RunFailed, "foo"):
            next(self.ask("wrong", algorithm="foo"))
        with self.assertRaisesRegex(evoxo.RunFailed, "population"):
            next(self.ask("wrong", settings={"population": "many"}))

    def test_the_example(self):
        out = self.directory / "dye"
        done = started(PROGRAMS / "laboratory.py", str(out), EVOXO=real())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^distance [0-9.]+e-[23]\d: \[0.2[89], 0.56, 0.42\]\n$")
        self.assertEqual(len(Path(f"{out}.journal").read_text().splitlines()), 350)

    def test_the_loop_of_the_page(self):
        page = (PACKAGE.parent / "docs" / "own-problem.md").read_text(encoding="utf-8")
        block = next(block for block in page.split("```python\n") if "run = evoxo.ask(" in block).partition("```")[0]
        path = write(self.directory, f"def measure(genes): return sum(genes)\n{block}")
        done = started(path, directory=self.directory, EVOXO=real())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = re.search(r"'min distance': ([0-9.e-]+)", done.stdout)
        self.assertTrue(found and float(found[1]) < 0.01, done.stdout)

    def test_mistakes(self):
        for options, sentence in (
            ({"name": "a b"}, "the name is 'a b'"),
            ({"genome": 7}, "the genome must be a part"),
            ({"objectives": []}, "objectives is"),
            ({"version": ""}, "the version is ''"),
            ({"evaluations": 0}, "evaluations is 0, but it must be a whole number from 1 to 1,000,000,000"),
            ({"replicas": 10_001}, "replicas is 10001, but it must be a whole number from 1 to 10,000"),
            ({"seed": -1}, "seed is -1, but it must be"),
            ({"batch": 0}, "batch is 0, but it must be a whole number from 1 to 10,000"),
            ({"batch": 10_001}, "batch is 10001, but it must be"),
            ({"timeout": 0.5}, "timeout is 0.5, but it must be a whole number from 1 to 604,800"),
            ({"settings": {"problem": "sphere"}}, "the setting problem comes from the problem"),
        ):
            with self.subTest(options=options), self.assertRaisesRegex(ValueError, sentence):
                self.ask(**options)
        with mock.patch.dict(os.environ, {"EVOXO": str(self.directory / "none")}):
            with self.assertRaisesRegex(FileNotFoundError, "EVOXO=.*/none is not a program"):
                self.ask()
        self.assertEqual(list(self.directory.iterdir()), [])


@unittest.skipUnless(real(), "the program evoxo is not there: build it, or set EVOXO")
class OnACluster(unittest.TestCase):
    ask, finish, assert_nothing_is_left = Asking.ask, Asking.finish, Asking.assert_nothing_is_left

    def setUp(self):
        Asking.setUp(self)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.coordinator = f"127.0.0.1:{probe.getsockname()[1]}"
        self.addCleanup(lambda: (self.process.kill(), self.process.wait()))
        self.start()

    def start(self):
        command = [real(), "coordinator", "--listen", self.coordinator, "--store", str(self.directory / "store")]
        self.process = subprocess.Popen([*command, "--log", "error"], stdin=subprocess.DEVNULL)
        host, port = self.coordinator.split(":")

        def listens():
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1):
                return True

        until(listens)

    def test_the_digest_is_that_of_one_machine(self):
        digest, _ = self.finish(self.ask("alone"))
        run = self.ask(coordinator=self.coordinator)
        self.assertEqual(self.finish(run)[0], digest)
        self.assert_nothing_is_left(run)

    def test_a_run_may_be_called_as_a_problem_may(self):
        digest, _ = self.finish(self.ask("alone", name="_Hill"))
        run = self.ask("_Hill", name="_Hill", coordinator=self.coordinator)
        self.assertEqual(self.finish(run)[0], digest)
        listed = [real(), "runs", "--json", "--coordinator", self.coordinator]
        runs = json.loads(subprocess.run(listed, check=True, capture_output=True).stdout)
        self.assertEqual([run["name"] for run in runs], ["hill"])

    def test_two_callers_share_a_run(self):
        digest, all_asked = self.finish(self.ask("alone", replicas=4))
        # Each caller has its own directory for the results.
        places = ["a/hill", "b/hill"]
        runs = [self.ask(place, coordinator=self.coordinator, replicas=4, batch=2) for place in places]
        asked = [[], []]

        def work(caller):
            for batch in runs[caller]:
                asked[caller] += [candidate.id for candidate in batch]
                time.sleep(0.02)
                batch.tell(map(square, batch))

        threads = [threading.Thread(target=work, args=[caller]) for caller in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual([run.finished and run.results().digest for run in runs], [digest] * 2)
        self.assertEqual(sorted({*asked[0], *asked[1]}), sorted(all_asked))
        self.assertTrue(asked[0] and asked[1], "both had a share")

    def test_worker_and_coordinator_are_killed(self):
        digest, all_asked = self.finish(self.ask("alone"))
        run, asked = self.ask(coordinator=self.coordinator), []
        for number, batch in enumerate(run):
            asked += [candidate.id for candidate in batch]
            if number == 2:
                run._processes._worker.process.kill()
            if number == 5:
                self.process.kill()
                self.process.wait()
                self.start()
            batch.tell(map(square, batch))
        self.assertEqual((run.results().digest, sorted(set(asked))), (digest, sorted(all_asked)))

    def test_leaving_early_and_continuing(self):
        digest, _ = self.finish(self.ask("alone"))
        with self.ask(coordinator=self.coordinator) as run:
            batch = next(run)
            batch.tell(map(square, batch))
            next(run)
        self.assert_nothing_is_left(run)
        self.assertEqual(self.finish(self.ask(coordinator=self.coordinator))[0], digest)

    def test_a_run_that_the_coordinator_does_not_take(self):
        self.finish(self.ask(coordinator=self.coordinator))
        with self.assertRaisesRegex(evoxo.RunFailed, "refuses the run"):
            self.ask("elsewhere/hill", coordinator=self.coordinator, seed=2)
        run = self.ask("other", coordinator=self.coordinator)
        next(run)
        subprocess.run([real(), "cancel", "other", "--coordinator", self.coordinator], check=True, capture_output=True)
        until(lambda: run._processes._said and run._processes._state() and
              run._processes._said[-1]["state"] == "cancelled")
        with self.assertRaisesRegex(evoxo.RunFailed, "the run is cancelled"):
            next(run)


if __name__ == "__main__":
    unittest.main()
