"""The evoxo processes behind `evoxo.ask`: a whole run on this machine, or a worker of a cluster."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import deque
from pathlib import Path
from typing import IO, Any, Deque, Dict, Optional, Sequence

SAVE_SECONDS = 45.0
"""How long a run may take to save its state at the end before it is killed."""

ERROR_LINES = 6
"""How many lines of standard error are shown if a run fails."""

AGAIN_SECONDS = 1.0
"""How long to wait before connecting to a coordinator again."""

FETCHES_MAX = 10
"""How often to try to fetch the results of a finished run before it counts as failed."""

NOTICE_SECONDS = 0.2
"""How long a run may take to notice that it should end."""

FINAL = ("finished", "in doubt", "failed", "cancelled", "blocked")
"""States that a run does not leave on its own."""

WORKERS_LOST_MAX = 100
"""The most workers to replace. If more are lost, something is wrong with this machine."""


RUN_NAME_CHARACTERS_MAX = 64
"""The most characters of a run's name."""


class RunFailed(RuntimeError):
    """The run cannot be finished; the text says why. The same call may be able to continue it."""


class _Process:
    """A process of evoxo, in its own session: Ctrl-C on the terminal reaches only the caller."""

    def __init__(
        self, words: Sequence[str], stdin: int, stdout: Optional[int] = None, env: Optional[Dict[str, str]] = None
    ) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()
        output = self._errors if stdout is None else stdout
        self.process = subprocess.Popen(
            list(words), stdin=stdin, stdout=output, stderr=self._errors, start_new_session=True, env=env
        )

    def status(self) -> Optional[int]:
        return self.process.poll()

    def failed(self) -> RunFailed:
        """The error that says why the process ended."""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").replace("\r", "\n").splitlines()
        last = [line for line in lines if line.strip()][-ERROR_LINES:]
        status = self.process.returncode
        killed = status is not None and status < 0
        how = f"was killed by signal {-status}" if killed and status else f"ended with status {status}"
        return RunFailed("\n".join([f"evoxo {how}", *last]))

    def wait(self, seconds: float) -> None:
        """Waits for the end of the process, and kills it after this time."""
        if self.process.stdin:
            self.process.stdin.close()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._errors.close()


class Here:
    """`evoxo run` with one thread, whose candidates the caller evaluates."""

    def __init__(self, evoxo: str, words: Sequence[str], out: Path) -> None:
        self._run = _Process([evoxo, "run", *words, "--workers", "0", "--out", str(out)], subprocess.DEVNULL)

    def finished(self) -> bool:
        """Whether the run is finished. Raises RunFailed if it ended in another way."""
        status = self._run.status()
        if status:
            raise self._run.failed()
        return status is not None

    def stop(self) -> None:
        """Asks the run to save its state and end."""
        if self._run.status() is None:
            self._run.process.send_signal(signal.SIGINT)
            # Let it notice before its program ends, so that the end of the program does not count as a failed task.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._run.process.wait(NOTICE_SECONDS)

    def wait(self) -> None:
        """Waits for the end of the process."""
        self._run.wait(SAVE_SECONDS)


def run_name(directory: str) -> str:
    """The name that `evoxo submit` gives a run whose results are in a directory of this name."""
    plain = re.sub(r"[^a-z0-9_.-]", "-", directory.lower())
    return plain[:RUN_NAME_CHARACTERS_MAX].lstrip("-_.") or "run"


class Cluster:
    """A run on a coordinator, and a worker with one slot, whose candidates the caller evaluates."""

    def __init__(self, evoxo: str, words: Sequence[str], out: Path, coordinator: str) -> None:
        self._evoxo = evoxo
        self._address = ["--coordinator", coordinator]
        self._out = out
        self._name = run_name(out.name)
        self._program = list(words[words.index("--program") :][:2])
        self._lost = 0
        self._said: Deque[Any] = deque(maxlen=1)
        self._next_watch = 0.0
        submitted = self._once(["submit", *words, "--name", self._name])
        if submitted.returncode:
            raise RunFailed(_last(submitted.stderr))
        self._worker = self._start_worker()
        self._watch: Optional[_Process] = None

    def _once(self, words: Sequence[str]) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run([self._evoxo, *words, *self._address], stdin=subprocess.DEVNULL, capture_output=True)

    def _start_worker(self) -> _Process:
        name = f"{socket.gethostname()}-ask-{os.getpid()}"
        words = ["worker", "--slots", "1", "--log", "warn", "--name", name, "--exit-with-stdin", *self._program]
        return _Process([self._evoxo, *words, *self._address], subprocess.PIPE)

    def finished(self) -> bool:
        """Whether the run is finished and its results are fetched. Raises RunFailed if it ended in another way."""
        self._keep_worker()
        state = self._state()
        if state is None:
            return False
        if state["state"] in ("finished", "in doubt"):
            for attempt in range(FETCHES_MAX):
                # The coordinator may be restarting.
                time.sleep(AGAIN_SECONDS if attempt else 0)
                fetched = self._once(["fetch", self._name, "--out", str(self._out)])
                if state["state"] == "in doubt":
                    break
                if fetched.returncode == 0:
                    return True
            raise RunFailed(state["message"] or _last(fetched.stderr))
        if state["state"] in FINAL:
            raise RunFailed(f"the run is {state['state']}: {state['message']}")
        return False

    def _keep_worker(self) -> None:
        """Replaces a worker that was killed."""
        status = self._worker.status()
        if status is None:
            return
        self._lost += 1
        if status >= 0 or self._lost > WORKERS_LOST_MAX:
            raise self._worker.failed()
        self._worker.wait(0)
        self._worker = self._start_worker()

    def _state(self) -> Optional[Any]:
        """The last state of the run that the coordinator reported. Reconnects if the coordinator was unreachable."""
        said = self._said[-1] if self._said else None
        if said is not None and said["state"] in FINAL:
            return said
        if (self._watch is None or self._watch.status() is not None) and time.monotonic() >= self._next_watch:
            self._next_watch = time.monotonic() + AGAIN_SECONDS
            if self._watch is not None:
                self._watch.wait(0)
            words = [self._evoxo, "watch", self._name, "--json", *self._address]
            self._watch = _Process(words, subprocess.DEVNULL, subprocess.PIPE)
            threading.Thread(target=self._listen, args=[self._watch.process.stdout], daemon=True).start()
        return said

    def _listen(self, lines: IO[bytes]) -> None:
        """Keeps the last line that `evoxo watch` prints."""
        with lines:
            for line in lines:
                if line.endswith(b"\n"):
                    self._said.append(json.loads(line))

    def stop(self) -> None:
        """Asks the worker to leave. The coordinator gives its task to another worker."""
        if self._watch is not None and self._watch.status() is None:
            self._watch.process.kill()
        if self._worker.status() is None:
            self._worker.process.terminate()

    def wait(self) -> None:
        """Waits for the end of all processes."""
        for process in [self._worker, *([self._watch] if self._watch else [])]:
            process.wait(SAVE_SECONDS)


def _last(errors: bytes) -> str:
    lines = [line for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    return "\n".join(lines[-ERROR_LINES:]) or "evoxo gave no reason"
