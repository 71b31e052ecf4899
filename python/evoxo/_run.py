"""A run that a script or a notebook starts: runs evoxo, passes on its messages, and reads its results."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Deque, List, Mapping, Optional, Union

from ._binary import binary
from ._channel import claimed
from ._experiment import experiment, write
from ._processes import ERROR_LINES, SAVE_SECONDS, RunFailed, run_name
from ._results import Results, results
from ._serve import serve
from ._start import start_text

if TYPE_CHECKING:
    from ._problem import Problem

_PLACE = re.compile(r"^results are in (.*)$", re.MULTILINE)


def run(
    problem: Problem,
    evaluations: int,
    algorithm: Optional[str],
    replicas: int,
    seed: int,
    settings: Optional[Mapping[str, object]],
    start: Optional[object],
    workers: Optional[int],
    out: Union[str, "os.PathLike[str]", None],
    quiet: bool,
) -> Results:
    """See `Problem.run`."""
    if problem.function.__module__ == "__mp_main__":
        raise RuntimeError('a multiprocessing child would start the run again: call run below if __name__ == "__main__":')
    channel = claimed()
    if channel is not None:
        # A worker has started this script to evaluate candidates, not to start another run.
        sys.exit(serve(problem.name, problem, channel))
    values = {key: value if isinstance(value, str) else json.dumps(value) for key, value in (settings or {}).items()}
    if start is not None:
        values["start"] = start_text(list(problem.parts), start)
    text = experiment(problem, algorithm, evaluations, replicas, seed, values)
    evoxo = binary()
    place = Path(out if out is not None else f"out/{run_name(problem.name)}")
    file = place.with_name(place.name + ".toml")
    write(file, text, "choose another directory with out=", results=None if out is None else place)
    words = [evoxo, "run", str(file), "--no-page", "--program", f"{problem.name}={shlex.join(_program(problem, place))}"]
    words += [] if out is None else ["--out", str(place)]
    words += [] if workers is None else ["--workers", str(workers)]
    return results(_directory(_compute(words, quiet)))


def _program(problem: Problem, place: Path) -> List[str]:
    """The command that starts a program which serves the problem."""
    file = problem.file
    if file is None:
        if problem.typed is None:
            raise ValueError(
                f"{problem.name} was not defined in a file, so workers cannot start it: leave out its version="
            )
        file = place.with_name(place.name + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(problem.typed, encoding="utf-8")
    return [sys.executable, str(Path(__file__).with_name("_program.py")), str(file.resolve()), problem.name, *_arguments(file)]


def _arguments(file: Path) -> List[str]:
    """The arguments of this process if it runs that file, because the problem may depend on them."""
    started = getattr(sys.modules["__main__"], "__file__", None)
    return sys.argv[1:] if started is not None and Path(started).resolve() == file.resolve() else []


def _compute(words: List[str], quiet: bool) -> str:
    """Runs evoxo and returns what it prints. On an interrupt, evoxo saves its state first. Raises RunFailed if it fails."""
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        text=True, encoding="utf-8", errors="replace",
    )
    said: Deque[str] = deque(maxlen=ERROR_LINES)

    def listen() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line.rstrip("\n"))
            if not quiet:
                print(said[-1], file=sys.stderr, flush=True)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    assert process.stdout is not None
    try:
        printed = process.stdout.read()
        status = process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SAVE_SECONDS)
        process.kill()
        raise
    listener.join()
    if status:
        raise RunFailed("\n".join(said) or f"evoxo ended with status {status}")
    return printed


def _directory(printed: str) -> str:
    found = _PLACE.findall(printed)
    if not found:
        raise RunFailed("this evoxo does not report where its results are: use the version that belongs to this package")
    return str(found[-1])
