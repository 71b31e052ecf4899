"""The calls of an `Executor` as runs of the kind `calls` on a coordinator."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, Deque, Dict, List, Optional

from ._functions import Target
from ._local import Call, Took
from ._processes import AGAIN_SECONDS, FETCHES_MAX, FINAL, SAVE_SECONDS, WORKERS_LOST_MAX, RunFailed, _last, _Process

GATHER_SECONDS = 0.02
"""How long to wait for further calls before those that wait become a run."""

CALLS_MAX = 1000
"""The most calls of a run."""

CALLS_BYTES_MAX = 600 << 10
"""The most bytes of all calls of a run. The file of an experiment has at most 1 MiB."""

PLACES_MAX = 64 << 20
"""The most bytes that a coordinator plans for the calls of a run, each as long as the longest."""

RUNS_MAX = 4
"""The most runs at the same time."""


class Runs:
    """Gathers calls, and gives each batch to the coordinator as a run. A run that is there already is continued."""

    def __init__(
        self,
        evoxo: str,
        coordinator: str,
        served: Target,
        workers: int,
        timeout: int,
        answer_bytes: int,
        took: Took,
        environment: Dict[str, str],
    ) -> None:
        self._evoxo = evoxo
        self._address = ["--coordinator", coordinator]
        self._served = served
        self._settings = f"answer_bytes = {answer_bytes}\ntimeout = {timeout}\n"
        self._took = took
        self._queue: Deque[Call] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._stopped = False
        self._free = threading.Semaphore(RUNS_MAX)
        self._running: List[threading.Thread] = []
        self._watches: List["subprocess.Popen[bytes]"] = []
        self._said: Optional[str] = None
        self._worker: Optional[_Process] = None
        if workers:
            words = ["worker", "--slots", str(workers), "--log", "warn", "--name", f"{socket.gethostname()}-calls-{os.getpid()}"]
            words += ["--exit-with-stdin", "--program", f"{served.name}={shlex.join(served.command())}", *self._address]
            self._worker = _Process([evoxo, *words], subprocess.PIPE, env=environment)
            threading.Thread(target=self._keep_worker, args=[[evoxo, *words], environment], daemon=True).start()
        self._thread = threading.Thread(target=self._gather, name="evoxo.Executor", daemon=True)
        self._thread.start()

    most = CALLS_BYTES_MAX
    """The most bytes of a call as text."""

    def add(self, call: Call) -> None:
        """Takes a call."""
        with self._changed:
            self._queue.append(call)
            self._changed.notify()

    def close(self, wait: bool, cancel: bool) -> None:
        """Ends after all calls, or, with `cancel`, at once. The coordinator goes on with runs that have begun."""
        with self._changed:
            self._closed = True
            self._stopped = self._stopped or cancel
            cancelled = list(self._queue) if cancel else []
            if cancel:
                self._queue.clear()
                for watch in self._watches:
                    watch.kill()
            self._changed.notify_all()
        for call in cancelled:
            call.cancel()
        if wait:
            self._thread.join()
            for thread in self._running:
                thread.join()
            with self._changed:
                self._stopped = True
            if self._worker is not None:
                if self._worker.status() is None:
                    self._worker.process.terminate()
                self._worker.wait(SAVE_SECONDS)

    def _keep_worker(self, words: List[str], environment: Dict[str, str]) -> None:
        """Replaces the worker if it is killed."""
        for _ in range(WORKERS_LOST_MAX):
            assert self._worker is not None
            status = self._worker.process.wait()
            with self._changed:
                if self._stopped:
                    return
                if status >= 0:
                    print(f"evoxo: the worker of this script: {self._worker.failed()}", file=sys.stderr, flush=True)
                    return
                self._worker = _Process(words, subprocess.PIPE, env=environment)

    def _gather(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._closed:
                    self._changed.wait()
                if not self._queue:
                    return
            self._free.acquire()
            count = -1
            while count < len(self._queue) < CALLS_MAX and not self._closed:
                count = len(self._queue)
                time.sleep(GATHER_SECONDS)
            with self._changed:
                calls = self._batch()
            thread = threading.Thread(target=self._compute, args=[calls], daemon=True)
            self._running = [one for one in self._running if one.is_alive()] + [thread]
            thread.start()

    def _batch(self) -> List[Call]:
        calls: List[Call] = []
        size = longest = 0
        while self._queue and len(calls) < CALLS_MAX:
            call = self._queue[0]
            size += len(call.text) + 1
            longest = max(longest, len(call.text))
            if calls and (size > CALLS_BYTES_MAX or longest * (len(calls) + 1) > PLACES_MAX):
                break
            self._queue.popleft()
            if call.starts():
                calls.append(call)
        return calls

    def _compute(self, calls: List[Call]) -> None:
        try:
            if calls:
                self._took(calls, self._returned(calls))
        except Exception as error:
            for call in calls:
                call.future.set_exception(error)
        finally:
            self._free.release()

    def _returned(self, calls: List[Call]) -> List[Dict[str, Any]]:
        """What the calls return, computed by a run. Raises RunFailed."""
        lines = ['experiment = "calls"', "seed = 1", "replicas = 1", "", "[settings]"]
        lines += [f'program = "{self._served.name}"', f'signature = "{self._served.signature()}"']
        text = "\n".join([*lines, f'calls = "{",".join(call.text for call in calls)}"', self._settings])
        # The number of a repeated call distinguishes the runs that compute it.
        keys = b"".join(call.key for call in calls)
        name = "calls-" + hashlib.sha256(text.encode() + keys).hexdigest()[:24]
        with tempfile.TemporaryDirectory(prefix="evoxo-") as directory:
            file = Path(directory) / "calls.toml"
            file.write_text(text, encoding="utf-8")
            why = ""
            for attempt in range(FETCHES_MAX):
                # The coordinator may be restarting, or another script may have fetched and deleted the same run.
                time.sleep(AGAIN_SECONDS * bool(attempt))
                if self._stopped:
                    break
                submitted = self._once(["submit", str(file), "--name", name])
                if submitted.returncode:
                    why = _last(submitted.stderr)
                    if submitted.returncode == 2:
                        break
                    continue
                state = self._watch(name)
                if self._stopped:
                    raise RunFailed("the Executor was shut down: the same script continues the run")
                if state is not None and state["state"] != "finished" and state["state"] in FINAL:
                    raise RunFailed(f"the run {name} is {state['state']}: {state['message']}")
                out = Path(directory) / f"out-{attempt}"
                fetched = self._once(["fetch", name, "--out", str(out)])
                table = out / "returned.csv"
                if fetched.returncode == 0 and table.exists():
                    returned = _read(table)
                    if len(returned) == len(calls):
                        self._once(["cancel", name, "--delete"])
                        return returned
                why = _last(fetched.stderr)
        raise RunFailed(why or "the Executor was shut down: the same script continues the run")

    def _once(self, words: List[str]) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run([self._evoxo, *words, *self._address], stdin=subprocess.DEVNULL, capture_output=True)

    def _watch(self, name: str) -> Any:
        """Waits for the end of a run. Returns the last state that the coordinator reported, if any."""
        words = [self._evoxo, "watch", name, "--json", *self._address]
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        with subprocess.Popen(words, stdin=null, stdout=pipe, stderr=null, start_new_session=True) as watch:
            self._watches.append(watch)
            state = None
            assert watch.stdout is not None
            for line in watch.stdout:
                with contextlib.suppress(ValueError):
                    state = json.loads(line)
                    self._tell(state)
            self._watches.remove(watch)
        return state

    def _tell(self, state: Any) -> None:
        """Shows why a run does not go on, once."""
        said = "; ".join(filter(None, [state.get("message"), *state.get("notices", [])]))
        if said and said != self._said and state["state"] not in FINAL:
            print(f"evoxo: run {state['name']}: {said}", file=sys.stderr, flush=True)
        self._said = said


def _read(table: Path) -> List[Dict[str, Any]]:
    csv.field_size_limit(1 << 24)
    with table.open(newline="", encoding="ascii") as file:
        return [{"text": row["text"], "raised": row["raised"] == "1"} for row in csv.DictReader(file)]
