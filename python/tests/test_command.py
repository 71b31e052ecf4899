"""The command line: help, the experiment file, run and submit, with a fake evoxo that reports how it was started."""

import json
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from .conversation import environment, started, write

PROBLEM = """
    import evoxo
    @evoxo.problem(genome=evoxo.reals(30, -5, 5), objectives=["min cost"])
    def Rosen(x): return sum(100 * (b - a * a) * (b - a * a) + (1 - a) * (1 - a) for a, b in zip(x, x[1:]))
    evoxo.main(Rosen)
"""

FILE = """\
experiment = "evolve"
seed = 1
replicas = 5

[settings]
problem = "program:Rosen"
algorithm = "auto"
evaluations = 10000
objectives = "min cost"

[[genome]]
name = "x"
type = "real"
length = 30
low = -5
high = 5
"""

MIXED = """
    import evoxo
    genome = {"a": evoxo.reals(2, -0.5, 0.000001), "s": evoxo.symbols(3, 'A"\\\\'), "p": evoxo.permutation(4)}
    @evoxo.problem(genome=genome, objectives=["min a", "max b"], constraints=["g1", "g2"], measures=["m1"])
    def mixed(a, s, p): return 0, 0
    evoxo.main(mixed)
"""

MIXED_FILE = """\
experiment = "evolve"
seed = 9223372036854775807
replicas = 2

[settings]
problem = "program:mixed"
algorithm = "auto"
evaluations = 300
objectives = "min a, max b"
constraints = 2
measures = 1
population = 40
crossover = "two-point"
rates = [0.1, 0.5]

[[genome]]
name = "a"
type = "real"
length = 2
low = -0.5
high = 0.000001

[[genome]]
name = "s"
type = "symbols"
length = 3
alphabet = "A\\"\\\\"

[[genome]]
name = "p"
type = "permutation"
length = 4
"""

FAKE = """\
#!{python}
import json, sys
print(json.dumps(sys.argv[1:]))
sys.exit(7)
"""


class Commands(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        # With a space, at which a shell would split the path.
        self.directory = Path(directory.name).resolve() / "my problems"
        self.directory.mkdir()
        self.problem = write(self.directory, PROBLEM)
        self.fake = write(self.directory, FAKE.replace("{python}", sys.executable), "evoxo")
        self.fake.chmod(0o755)
        self.elsewhere = self.directory / "elsewhere"
        self.elsewhere.mkdir()

    def start(self, *arguments, **variables):
        return started(self.problem, *arguments, directory=self.elsewhere, **variables)

    def evoxo(self, *arguments):
        """The command line of evoxo, without the program that it was given."""
        done = self.start(*arguments, EVOXO=str(self.fake))
        self.assertEqual(done.returncode, 7, done.stderr)
        words = json.loads(done.stdout)
        for word in words:
            if word.startswith("Rosen="):
                self.assertEqual(shlex.split(word[len("Rosen="):]), [sys.executable, str(self.problem)])
        return ["Rosen=..." if word.startswith("Rosen=") else word for word in words], done.stderr

    def test_help(self):
        for arguments in ((), ("--help",), ("-h",)):
            done = self.start(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for word in ("check", "run", "submit", "file", "The problem Rosen: min cost."):
                self.assertIn(word, done.stdout)

    def test_the_experiment_file(self):
        done = self.start("file")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, FILE, ""))

    def test_the_experiment_file_of_everything(self):
        mixed = write(self.directory, MIXED, "mixed.py")
        options = "--evaluations 300 --replicas 2 --seed 9223372036854775807"
        options += " --set population=40 --set crossover=two-point"
        done = started(mixed, "file", *options.split(), "--set", "rates=[0.1, 0.5]")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, MIXED_FILE, ""))
        if sys.version_info >= (3, 11):
            import tomllib

            read = tomllib.loads(done.stdout)
            self.assertEqual((read["genome"][1]["alphabet"], read["genome"][0]["high"]), ('A"\\', 0.000001))

    def test_the_algorithm(self):
        self.assertIn('algorithm = "auto"', self.start("file").stdout)
        self.assertIn('algorithm = "ga"', self.start("file", "--algorithm", "ga").stdout)
        self.assertIn('algorithm = "es"', self.start("file", "--set", "algorithm=es").stdout)

    def test_run(self):
        words, errors = self.evoxo("run")
        self.assertEqual(words, ["run", "out/rosen.toml", "--program", "Rosen=..."])
        self.assertEqual(errors, "wrote out/rosen.toml\n")
        mark, text = (self.elsewhere / "out/rosen.toml").read_text().split("\n", 1)
        self.assertTrue(mark.startswith("# The Python package evoxo has written this file"))
        self.assertEqual(text, FILE)

    def test_the_file_of_a_run_with_results_is_kept(self):
        results = self.elsewhere / "here"
        self.evoxo("run", "--out", "here")
        results.mkdir()
        (results / "config.toml").write_text("of the run")
        file = self.elsewhere / "here.toml"
        before = file.read_text()
        done = self.start("run", "--out", "here", "--seed", "77", EVOXO=str(self.fake))
        self.assertEqual((done.returncode, done.stdout, file.read_text()), (1, "", before))
        self.assertIn("has a run with other settings", done.stderr)
        self.assertIn("choose another directory with --out", done.stderr)
        self.evoxo("run", "--out", "here", "--replicas", "9")
        self.assertIn("replicas = 9", file.read_text())

    def test_without_a_directory_evoxo_finds_one(self):
        self.evoxo("run", "--seed", "5")
        (self.elsewhere / "out/rosen").mkdir()
        (self.elsewhere / "out/rosen/config.toml").write_text("of the run")
        for arguments in (("run", "--seed", "77"), ("submit", "--seed", "78")):
            self.assertNotIn("--out", self.evoxo(*arguments)[0])
            self.assertIn(f"seed = {arguments[2]}\n", (self.elsewhere / "out/rosen.toml").read_text())

    def test_the_arguments_of_the_program_itself_are_those_of_the_workers_too(self):
        own = """
            import argparse
            import evoxo
            parser = argparse.ArgumentParser(add_help=False)
            parser.add_argument("--power", type=int, required=True)
            given, rest = parser.parse_known_args()
            @evoxo.problem(genome=evoxo.reals(2, -5, 5), objectives=["min cost"])
            def Rosen(x): return sum(a ** given.power for a in x)
            evoxo.main(Rosen, rest)
        """
        problem = write(self.directory, own, "power.py")
        done = started(problem, "--power", "2", "check", "--candidates", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("is pure as far as 3 candidates show", done.stdout)
        for typed in (("--power", "2", "run"), ("run", "--power", "2")):
            done = started(problem, *typed, directory=self.elsewhere, EVOXO=str(self.fake))
            program = json.loads(done.stdout)[3]
            self.assertEqual(shlex.split(program[len("Rosen="):]), [sys.executable, str(problem), "--power", "2"])
        # Arguments that are not on the command line are not removed from it.
        fixed = write(self.directory, own.replace("rest)", '["check", "--candidates", "2"])'), "fixed.py")
        self.assertIn("pure as far as 2 candidates", started(fixed, "--power", "2").stdout)

    def test_a_file_of_a_person_is_kept(self):
        file = self.elsewhere / "mine.toml"
        own = FILE + "[arms.mine]\n"
        file.write_text(own)
        for arguments, other in ((("run", "--out", "mine"), "--out"), (("submit", "--name", "../mine"), "--name")):
            done = self.start(*arguments, EVOXO=str(self.fake))
            self.assertEqual((done.returncode, done.stdout, file.read_text()), (1, "", own))
            self.assertIn("mine.toml was not written by evoxo's Python package", done.stderr)
            self.assertIn(f"with {other}, or start evoxo with that file: ", done.stderr)
        # The package overwrites what it would write itself, what it wrote, and what a full disk left of that.
        file.write_text("")
        self.start("run", "--out", "mine", EVOXO=str(self.fake))
        self.assertIn(FILE, file.read_text())
        written = file.stat().st_ino
        self.start("run", "--out", "mine", EVOXO=str(self.fake))
        self.assertEqual(file.stat().st_ino, written, "it is as it should be")
        file.write_text(FILE)
        for evaluations in ("10000", "77", "78"):
            self.evoxo("run", "--out", "mine", "--evaluations", evaluations)
            self.assertIn(f"evaluations = {evaluations}\n", file.read_text())

    def test_run_with_options(self):
        out = self.elsewhere / "a" / "b.c"
        words, _ = self.evoxo("run", "--workers", "0", "--out", str(out), "--evaluations", "77")
        expected = ["run", f"{out}.toml", "--program", "Rosen=...", "--out", str(out), "--workers", "0"]
        self.assertEqual(words, expected)
        self.assertIn("evaluations = 77\n", Path(f"{out}.toml").read_text())

    def test_submit(self):
        words, errors = self.evoxo("submit", "--coordinator", "10.0.0.5:7600", "--name", "first", "--seed", "3")
        program = ["--program", "Rosen=..."]
        expected = ["submit", "out/first.toml", *program, "--coordinator", "10.0.0.5:7600", "--name", "first"]
        self.assertEqual(words, expected)
        self.assertIn("seed = 3\n", (self.elsewhere / "out/first.toml").read_text())
        self.assertIn("start workers for it with --program 'Rosen=", errors)
        self.assertEqual(self.evoxo("submit")[0], ["submit", "out/rosen.toml", *program])

    def test_evoxo_is_found_on_the_path(self):
        self.assertEqual(self.start("run", PATH=str(self.directory)).returncode, 7)

    def test_without_evoxo(self):
        done = self.start("run", PATH=str(self.elsewhere))
        sentence = "error: there is no program evoxo here or on the PATH: install the wheel, or build evoxo and set EVOXO=/path/to/evoxo\n"
        self.assertEqual((done.returncode, done.stderr), (1, sentence))
        done = self.start("submit", EVOXO=str(self.elsewhere / "evoxo"))
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"error: EVOXO={self.elsewhere / 'evoxo'} is not a program: ", done.stderr)
        self.assertEqual(list(self.elsewhere.iterdir()), [])

    def test_a_place_that_cannot_be_written(self):
        (self.elsewhere / "out").write_text("a file")
        done = self.start("run", EVOXO=str(self.fake))
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: cannot write out/rosen.toml: ", done.stderr)

    def test_wrong_usage(self):
        for arguments, sentence in (
            (["fly"], "invalid choice: 'fly'"),
            (["run", "--replicas", "0"], "'0' is not a whole number from 1"),
            (["run", "--workers", "-1"], "'-1' is not a whole number from 0"),
            (["file", "--set", "population"], "--set population: must be KEY=VALUE"),
            (["file", "--set", "a.b=1"], "--set a.b=1: must be KEY=VALUE"),
            (["file", "--set", "problem=x"], "the setting problem comes from the problem"),
        ):
            with self.subTest(arguments=arguments):
                done = self.start(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(sentence, done.stderr)

    def test_a_module_is_started_as_one(self):
        write(self.directory, PROBLEM, "module.py")
        command = [sys.executable, "-m", "module", "run"]
        done = subprocess.run(command, cwd=self.directory, env=environment(EVOXO=str(self.fake)), capture_output=True)
        self.assertIn(f"Rosen={shlex.join([sys.executable, '-m', 'module'])}", json.loads(done.stdout))


if __name__ == "__main__":
    unittest.main()
