"""`evoxo.Executor`: an executor of `concurrent.futures` whose calls are computed on all cores, or by a coordinator's workers."""

from __future__ import annotations

import builtins
import math
import os
import sys
import threading
import traceback
from concurrent.futures import Executor as _Base
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Union

from ._answers import Answers, key_of
from ._binary import binary
from ._declaration import WrongAnswer
from ._functions import named, serve_here, target
from ._local import Call, CallFailed, Pool
from ._runs import Runs
from ._values import decode, encode

ANSWER_BYTES = 1 << 16
"""The default of the most bytes of a returned value, as text."""

ANSWER_BYTES_RANGE = (1024, 4 << 20)
TIMEOUT_SECONDS = 600
"""The default time limit of a call."""

TIMEOUT_SECONDS_MAX = 604_800
WORKERS_MAX = 1024

_UNMADE: Any = (UnicodeError, getattr(builtins, "BaseExceptionGroup", UnicodeError))
"""Errors that cannot be made from their texts."""

_UNSET = Path()
Place = Union[str, "os.PathLike[str]", None]


class Executor(_Base):
    """Calls functions of a file on all cores of this machine, or on the workers of a coordinator.

        with evoxo.Executor() as pool:
            values = list(pool.map(cost, points))

    It is an executor of `concurrent.futures`: `submit`, `map`, `as_completed` and `wait` work as with the others. The values
    are those of the plain calls, in the order of the arguments, whatever ends early: a process or a worker that is killed
    is replaced, a coordinator goes on from its store, and a script that is started again replays what its journal has.

    file: "module", "file.py", or either with ":function"; by default the script that runs. Workers import it and find the
        functions by their names, which must be at its top level. Code below ``if __name__ == "__main__"`` does not run there.
    coordinator: HOST:PORT. Its workers need the program: ``--program NAME="python3 -m evoxo.calls FILE.py"``.
    workers: the number of processes on this machine: one for each core by default, and none with a coordinator.
    name: the name of the program, by default that of the file.
    version: a text that must change whenever a function computes something else, by default a hash of the file's source.
        Changes in files that it imports do not affect it.
    journal: a file of what the calls returned, by default out/NAME.calls; None for no journal. Answers of another version are
        dropped. A call that was made several times with the same arguments has an answer for each time. Errors are not kept.
    timeout: the time limit of a call, in seconds.
    answer_bytes: the most bytes of a returned value as text, from 1,024 to 4,194,304. An array takes 16/9 of its bytes.
    progress: called with the number of answers and of calls so far, from a thread of the executor.

    Raises ValueError if an argument is wrong or the journal is in use, and FileNotFoundError if a coordinator is given and the
    program evoxo is not found.
    """

    def __init__(
        self,
        file: Optional[str] = None,
        *,
        coordinator: Optional[str] = None,
        workers: Optional[int] = None,
        name: Optional[str] = None,
        version: Optional[str] = None,
        journal: Place = _UNSET,
        timeout: float = TIMEOUT_SECONDS,
        answer_bytes: int = ANSWER_BYTES,
        progress: Optional[Callable[[int, int], None]] = None,
    ) -> None:
        # A worker has imported this script to call its functions, not to make another executor.
        serve_here()
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        count = (cores if coordinator is None else 0) if workers is None else workers
        _check("workers", count, 0 if coordinator else 1, WORKERS_MAX)
        _check("answer_bytes", answer_bytes, *ANSWER_BYTES_RANGE)
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout <= TIMEOUT_SECONDS_MAX:
            raise ValueError(f"timeout is {timeout!r}, but it must be a number above 0 and at most {TIMEOUT_SECONDS_MAX:,}")
        self._target = target(file, name, version)
        self.file = self._target.file
        """The file whose functions are called."""
        self._progress = progress
        self._lock = threading.Lock()
        self._times: Dict[str, int] = {}
        self._shut = False
        self._made = self._done = 0
        evoxo = binary() if coordinator is not None else ""
        place = f"out/{self._target.name}.calls" if journal is _UNSET else journal
        owner = f"{self._target.name} {self._target.version}"
        self._answers = None if place is None else Answers(Path(place), owner)
        self._keyed = coordinator is not None or self._answers is not None
        self.replayed = 0
        """How many calls the journal answered."""
        package = str(Path(__file__).parent.parent)
        paths = [os.path.abspath(path) for path in [*sys.path, package]]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
        self._backend: Union[Pool, Runs]
        if coordinator is None:
            said = self._target.introduction()
            self._backend = Pool(self._target.command(), environment, said, count, timeout, answer_bytes, self._take)
        else:
            limit = math.ceil(timeout)
            self._backend = Runs(
                evoxo, coordinator, self._target, count, limit, answer_bytes, self._take, environment
            )

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> "Future[Any]":
        """Calls ``function(*arguments, **keywords)`` and returns the future of its value.

        Raises ValueError if the function is not at the top level of the file or the arguments are too long, TypeError if an argument
        cannot travel, and RuntimeError after `shutdown`.
        """
        called, fixed, named_arguments = named(function, self._target.file)
        text = encode([called, [*fixed, *arguments], {**named_arguments, **keywords}])
        if len(text) > self._backend.most:
            size = f"the arguments of {called} have {len(text):,} bytes as text, but at most {self._backend.most:,} may travel"
            raise ValueError(f"{size}: send the path of a file instead")
        with self._lock:
            if self._shut:
                raise RuntimeError("the Executor is shut down, so it takes no more calls")
            self._made += 1
            call, known = Call(called, text), None
            if self._keyed:
                number = self._times[text] = self._times.get(text, -1) + 1
                call.key = key_of(text, number)
            if self._answers is not None:
                known = self._answers.get(call.key)
                self.replayed += known is not None
        if known is None:
            self._backend.add(call)
        else:
            call.starts()
            self._settle([call], [{"text": known, "raised": False}])
        return call.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the processes after the calls that were made, or, with `cancel_futures`, after those that have begun."""
        with self._lock:
            self._shut = True
        self._backend.close(wait, cancel_futures)
        if wait and self._answers is not None:
            self._answers.close()

    def _take(self, calls: List[Call], returned: List[Dict[str, Any]]) -> None:
        """Takes answers: first into the journal, then to those who wait."""
        if self._answers is not None:
            entries = [(call.key, one["text"]) for call, one in zip(calls, returned) if not one["raised"]]
            with self._lock:
                self._answers.add(entries)
        self._settle(calls, returned)

    def _settle(self, calls: List[Call], returned: List[Dict[str, Any]]) -> None:
        for call, one in zip(calls, returned):
            try:
                value = decode(one["text"])
            except (ValueError, ImportError) as error:  # This process may lack numpy.
                call.future.set_exception(WrongAnswer(f"{call.name} returned what cannot be read here: {error}"))
                continue
            if one["raised"]:
                call.future.set_exception(_error(call.name, *value))
            else:
                call.future.set_result(value)
        with self._lock:
            self._done += len(calls)
            done, made = self._done, self._made
        if self._progress is not None:
            try:
                self._progress(done, made)
            except Exception:  # The calls go on.
                self._progress = None
                traceback.print_exc()


class _OnTheWorker(Exception):
    """The cause of an error: its traceback on the worker."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def _error(name: str, kind: str, text: str, trace: str) -> BaseException:
    """The error that a call raised: of its own type if that is one of Python's, else CallFailed. Its cause is the traceback."""
    module, _, called = kind.rpartition(".")
    own = getattr(builtins, called, None) if module == "builtins" else None
    error: BaseException = CallFailed(f"{name} raised {kind}: {text}")
    if isinstance(own, type) and issubclass(own, Exception) and not issubclass(own, _UNMADE):
        error = own(text)
    error.__cause__ = _OnTheWorker(trace)
    return error


def _check(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} is {value!r}, but it must be a whole number from {least:,} to {most:,}")
