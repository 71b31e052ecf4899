"""Helpers of the tests: programs as real processes, and the worker's side of a conversation with them."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
"""The directory that holds the package."""

PROGRAMS = PACKAGE.parent / "examples" / "programs"
"""The directory of the examples."""

PATIENCE = 60
"""How many seconds a process may take to end before it is killed and its test fails."""

SPHERE = """
    import evoxo
    @evoxo.problem(genome=evoxo.reals(2, -5, 5), objectives=["min cost"], version="1")
    def sphere(x):
        {body}
        return x[0] * x[0] + x[1] * x[1]
    evoxo.main(sphere)
"""
"""A program with a place for one more line in its function."""


def environment(**variables):
    """The environment of this process with the package on Python's path, but without other variables of evoxo and Python."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(("EVOXO", "PYTHON"))}
    return {**own, "PYTHONPATH": str(PACKAGE), **variables}


def write(directory, text, name="problem.py"):
    """Writes a program. Returns its path."""
    path = Path(directory) / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def item(*genes, candidate="main-0-0", part="x", seed="8f3a00c1d2e3f405"):
    """An item of a request, with one part of genes."""
    return {"id": candidate, "seed": seed, "genes": {part: list(genes)}}


class Conversation:
    """A program, started as a worker starts it. It ends with its `with` block."""

    def __init__(self, command, version="1", errors=None):
        self._errors = tempfile.TemporaryFile()
        pipe, errors = subprocess.PIPE, errors or self._errors
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=errors, env=environment(EVOXO_PROTOCOL=version)
        )
        # If a program hangs, killing it lets its test read the end of the file and fail.
        self._deadline = threading.Timer(PATIENCE, self.process.kill)
        self._deadline.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._deadline.cancel()
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr, self._errors):
            if pipe is not None:
                pipe.close()

    def send(self, line):
        """Sends a request, or a raw line."""
        line = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def receive(self):
        """The program's next line."""
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            raise AssertionError(f"no line but {line!r}; standard error: {self.errors()}")
        return json.loads(line)

    def ask(self, *items, batch=1):
        """The answers to these items."""
        self.send({"batch": batch, "items": list(items)})
        answer = self.receive()
        if list(answer) != ["batch", "items"] or answer["batch"] != batch:
            raise AssertionError(f"no answer to batch {batch}: {answer}")
        return answer["items"]

    def end(self):
        """Ends the input. Returns the exit status, the rest of standard output, and standard error."""
        rest, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, rest, self.errors()

    def errors(self):
        """The standard error output so far."""
        return os.pread(self._errors.fileno(), 1 << 20, 0).decode()


def python(path):
    """The command of a Python program."""
    return [sys.executable, str(path)]


def started(path, *arguments, directory=None, **variables):
    """Starts a program as a person does and waits for its end."""
    return subprocess.run(
        [*python(path), *arguments],
        cwd=directory,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=PATIENCE,
    )
