"""Ask and tell: a worker whose slot is the caller, for evaluations that are not a function."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
import weakref
from numbers import Integral
from pathlib import Path
from typing import Mapping, Optional, Sequence, Union

from ._binary import binary
from ._declaration import NAME, Declaration
from ._experiment import EVALUATIONS, SEED, experiment, write
from ._genome import Part
from ._journal import Journal
from ._link import Batch, Link
from ._processes import Cluster, Here, RunFailed
from ._results import Results, results

BATCH = 10_000
"""The default of the most candidates in a batch: usually a whole generation."""

TIMEOUT_SECONDS = 604_800
"""The default time limit for a candidate: a week, the most that evoxo allows."""

LOOK_SECONDS = 0.1
"""How often the processes are checked while there is no batch."""

EVALUATIONS_MAX = 1_000_000_000
"""The most evaluations of a replica that evoxo allows."""

REPLICAS_MAX = 10_000
"""The most replicas that evoxo allows."""

SEED_MAX = 2**63 - 1
"""The greatest seed of an experiment that evoxo allows."""

Place = Union[str, "os.PathLike[str]"]


class Asked:
    """The batches of a run, returned by `ask`: an iterator that ends with the run, and a context manager that ends the run.

    The run also ends when nothing refers to this object any more, and with the process. The same call continues it.
    """

    def __init__(self, link: Link, processes: Union[Here, Cluster], out: Path, wait: Optional[float]) -> None:
        self._link = link
        self._processes = processes
        self._out = out
        self._wait = wait
        self._last: Optional[Batch] = None
        self._finished = False
        self._end = weakref.finalize(self, _end, os.getpid(), processes, link)

    def __iter__(self) -> Asked:
        return self

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> Batch:
        """The next batch.

        Raises StopIteration when the run is finished, `RunFailed` if it cannot be finished, RuntimeError if a candidate of
        the previous batch has no answer, and TimeoutError if there is no batch within `wait`, after which you can try again.
        """
        deadline = None if self._wait is None else time.monotonic() + self._wait
        while self._end.alive:
            with self._link.changed:
                batch = self._link.take()
                trouble = self._link.trouble
            if trouble is not None:
                self.close()
                raise RunFailed(trouble)
            if batch is not None:
                self._last = batch
                return batch
            try:
                self._finished = self._processes.finished()
            except RunFailed:
                self.close()
                raise
            if self._finished:
                self.close()
                break
            untold = [candidate.id for candidate in self._last or () if not candidate.told]
            if untold:
                more = f" and {len(untold) - 1} more" if len(untold) > 1 else ""
                raise RuntimeError(f"{untold[0]}{more} of the previous batch have no answer: tell or fail them first")
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"there was no batch within {self._wait:g} s")
            with self._link.changed:
                self._link.changed.wait_for(self._link.something, LOOK_SECONDS)
        raise StopIteration

    def close(self) -> None:
        """Ends the run early and waits until all finished generations are saved."""
        self._end()

    @property
    def finished(self) -> bool:
        """Whether the run is finished, so that `results` can be read."""
        return self._finished

    def results(self) -> Results:
        """The results of the run. Raises ValueError if it is not finished."""
        found = results(self._out)
        if found.state == "unfinished":
            raise ValueError(f"the run in {self._out} is unfinished: the same call continues it")
        return found


def _end(owner: int, processes: Union[Here, Cluster], link: Link) -> None:
    if os.getpid() != owner:
        # Only a fork of the process that called `ask` is ending, not the run.
        return
    processes.stop()
    try:
        link.close()
    finally:
        processes.wait()


def _check_whole(name: str, value: int, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value <= most:
        raise ValueError(f"{name} is {value!r}, but it must be a whole number from {least:,} to {most:,}")


def ask(
    name: str,
    *,
    genome: Union[Part, Mapping[str, Part]],
    objectives: Sequence[str],
    constraints: Sequence[str] = (),
    measures: Sequence[str] = (),
    version: str = "1",
    algorithm: Optional[str] = None,
    evaluations: int = EVALUATIONS,
    replicas: int = 1,
    seed: int = SEED,
    settings: Optional[Mapping[str, object]] = None,
    file: Optional[Place] = None,
    coordinator: Optional[str] = None,
    out: Optional[Place] = None,
    batch: int = BATCH,
    timeout: int = TIMEOUT_SECONDS,
    wait: Optional[float] = None,
    journal: Optional[Place] = None,
) -> Asked:
    """Asks evoxo for candidates and tells it their values: for evaluations by a laboratory, a person or a queue of jobs.

    It starts a run, or continues the one in `out`, and returns its candidates batch by batch until evoxo has all evaluations. Then the
    results are in `out`: the report in report.html, and the best candidates in champions/. `Asked.results` reads them.

        asked = evoxo.ask("dye", genome=evoxo.reals(3, 0, 1), objectives=["max colour"], evaluations=200)
        for batch in asked:
            batch.tell([measure(candidate.genes) for candidate in batch])
        print(asked.results().x)

    name, genome, objectives, constraints, measures: as in `problem`.
    version: change it when the same genes are evaluated differently.
    algorithm, evaluations, replicas, seed, settings: of the experiment; by default evoxo chooses an algorithm.
    file: an experiment file instead of these, with problem = "program:NAME".
    coordinator: HOST:PORT of a coordinator that computes the run; without it, this machine does. Callers on several
        machines may ask for the same run; each then gets a share of each generation's batches.
    out: the directory of the results, out/NAME by default. Its last part gives the name of the run, in lower case and with
        "-" in place of characters that a run's name cannot have.
    batch: the most candidates of a batch, from 1 to 10,000.
    timeout: the time limit for a candidate of a batch, in seconds, from 1 to 604,800. If a batch takes three times as
        long as all its candidates may take together, the run fails; the same call continues it.
    wait: how long to wait for the next batch, in seconds.
    journal: a file that keeps answers. Candidates whose answers it has are not asked again.

    Raises ValueError if an argument is wrong, if an experiment file that this package did not write is in the way, or if `out`
    has the results of a run with other settings; FileNotFoundError if the program evoxo is not found; and `RunFailed` if the
    coordinator rejects the run. Only evoxo knows its algorithms and settings, and reads files. Without a coordinator, the first
    batch raises `RunFailed` if these are wrong.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f"the name is {name!r}, but it must be 1 to 64 of the characters A-Z, a-z, 0-9, _, - and .")
    for what, value, least, most in (
        ("evaluations", evaluations, 1, EVALUATIONS_MAX),
        ("replicas", replicas, 1, REPLICAS_MAX),
        ("seed", seed, 0, SEED_MAX),
        ("batch", batch, 1, BATCH),
        ("timeout", timeout, 1, TIMEOUT_SECONDS),
    ):
        _check_whole(what, value, least, most)
    declaration = Declaration(name, genome, objectives, constraints, measures, version)
    place = Path(out if out is not None else f"out/{name}").absolute()
    values = {key: value if isinstance(value, str) else json.dumps(value) for key, value in (settings or {}).items()}
    if file is None:
        text = experiment(declaration, algorithm, evaluations, replicas, seed, values)
        written = place.with_name(place.name + ".toml")
        evoxo = binary()
        instead = "choose another directory with out=, or run that file with file="
        write(written, text, instead, results=place)
        file = written
    elif values or algorithm is not None:
        raise ValueError("file= cannot be combined with algorithm= or settings=: set them in the file")
    else:
        evoxo = binary()
    link = Link(declaration, Journal(journal) if journal is not None else None)
    relay = [sys.executable, "-I", str(Path(__file__).with_name("_relay.py")), link.path]
    words = [str(file), "--program", f"{name}={shlex.join(relay)}"]
    words += ["--set", f"slice={batch}", "--set", f"timeout={timeout}"]
    processes: Union[Here, Cluster]
    try:
        if coordinator is None:
            processes = Here(evoxo, words, place)
        else:
            processes = Cluster(evoxo, words, place, coordinator)
    except BaseException:
        link.close()
        raise
    return Asked(link, processes, place, wait)
