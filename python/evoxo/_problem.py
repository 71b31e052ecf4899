"""A problem: a fitness function with its genome and objectives, and the evaluation of a candidate."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._declaration import NAME, Answer, Declaration, Failed
from ._experiment import EVALUATIONS, REPLICAS, SEED
from ._genome import Genes, Part, parts_of
from ._results import Results
from ._run import run
from ._source import version_of
from ._typed import file_of

UNKNOWN = "unknown"
"""The version of a problem until its source is known."""


def _source(function: Callable[..., Any]) -> Optional[Path]:
    """The file that defines a function, if there is one."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:  # An object, or a function written in C.
        file = None
    return Path(file) if file is not None and Path(file).is_file() else None


class Problem(Declaration):
    """A fitness function with its declaration, made by `problem`. It can be called like the function itself."""

    def __init__(
        self,
        function: Callable[..., Any],
        genome: Union[Part, Mapping[str, Part]],
        objectives: Sequence[str],
        constraints: Sequence[str] = (),
        measures: Sequence[str] = (),
        version: Optional[str] = None,
    ) -> None:
        self.function = function
        name: str = getattr(function, "__name__", "")
        if not NAME.fullmatch(name):
            raise ValueError(f"the function is called {name!r}, which cannot be the name of a problem: define it with def NAME")
        self.file = _source(function)
        """The file that defines the function; None if it was typed into a notebook or a prompt."""
        self.typed: Optional[str] = None
        """The text of the file that `run` writes, if the function has neither a file nor a given version."""
        if version is None and self.file is not None:
            version = version_of(self.file.read_bytes())
        super().__init__(name, genome, objectives, constraints, measures, UNKNOWN if version is None else version)
        if version is None:
            self.typed = file_of(function, self)
            self.version = version_of(self.typed.encode())
        self._takes_seed = self._check_parameters()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Calls the function directly."""
        return self.function(*arguments, **named)

    def introduction(self) -> Dict[str, Any]:
        """See Declaration. A function that takes a seed is noisy: its value may differ for another seed."""
        line = super().introduction()
        return {**line, "noisy": True} if self._takes_seed else line

    def __repr__(self) -> str:
        return f"<evoxo problem {self.name}, version {self.version}>"

    def _check_parameters(self) -> bool:
        """Whether the function takes a seed. Raises ValueError if it cannot be called with the parts of the genome."""
        signature = inspect.signature(self.function)
        takes_seed = "seed" in signature.parameters
        genes: Dict[str, Genes] = {name: [] for name in self.parts}
        arguments, named = self._arguments(genes, 0 if takes_seed else None)
        try:
            signature.bind(*arguments, **named)
        except TypeError as error:
            want = "one list" if self.single else "the parts " + ", ".join(self.parts) + " by name"
            raise ValueError(f"{self.name}{signature} cannot be called with {want}: {error}") from None
        return takes_seed

    def _arguments(self, genes: Mapping[str, Genes], seed: Optional[int]) -> Tuple[List[Any], Dict[str, Any]]:
        arguments: List[Any] = list(genes.values()) if self.single else []
        named: Dict[str, Any] = {} if self.single else dict(genes)
        if seed is not None:
            named["seed"] = seed
        return arguments, named

    def run(
        self,
        *,
        evaluations: int = EVALUATIONS,
        algorithm: Optional[str] = None,
        replicas: int = REPLICAS,
        seed: int = SEED,
        settings: Optional[Mapping[str, object]] = None,
        start: Optional[object] = None,
        workers: Optional[int] = None,
        out: Union[str, "os.PathLike[str]", None] = None,
        quiet: bool = False,
    ) -> Results:
        """Evolves on this machine, in a script or a notebook, and returns the results: `.best`, `.x`, `.f`, `.history`, `.plot()`.

        evaluations, algorithm, replicas, seed, settings: of the experiment; by default evoxo chooses an algorithm.
        start: candidates with which the search begins: one as the function gets it, a list of them, or the card of another run's
            best, `start=earlier.best`.
        workers: the number of worker processes, by default one for each core; 0 computes on one thread.
        out: the directory of the results; by default out/ and the problem's name, with a number if that directory has a run of
            another version or with other settings. The same call reads finished results again, and continues an interrupted run.
        quiet: whether to hide the progress, which is otherwise shown on standard error.

        A function that was typed into a notebook is written to a file, from which the workers start it.

        Raises ValueError if an argument is wrong, FileNotFoundError if the program evoxo is not found, and `RunFailed` with
        evoxo's message if there are no results.
        """
        return run(self, evaluations, algorithm, replicas, seed, settings, start, workers, out, quiet)

    def evaluate(self, candidate: str, genes: Mapping[str, Genes], seed: int) -> Answer:
        """The answer for one candidate: its numbers, or the reason why it failed.

        Raises WrongAnswer if the function returned anything else, and passes on all exceptions but Failed.
        """
        arguments, named = self._arguments(genes, seed if self._takes_seed else None)
        try:
            value = self.function(*arguments, **named)
        except Failed as failed:
            return self.failed(str(failed))
        return self.answer(candidate, value)


def problem(
    *,
    genome: Union[Part, Mapping[str, Part]],
    objectives: Sequence[str],
    constraints: Sequence[str] = (),
    measures: Sequence[str] = (),
    version: Optional[str] = None,
) -> Callable[[Callable[..., Any]], Problem]:
    """Makes a fitness function a problem.

    genome: one part, which the function gets as its first argument, or a dict of parts, which it gets as keyword
        arguments by their names.
    objectives: one or more, each "min NAME" or "max NAME".
    constraints: names of numbers that must be 0 or less.
    measures: names of numbers that describe behaviour, for quality diversity.
    version: a string that must change whenever the function computes something else. By default it is a hash of the function's
        source file without comments, docstrings and empty lines. Changes in files that this file imports do not affect it.

    If the function has a parameter `seed`, it also gets the candidate's seed, a whole number from 0 to 2**64 - 1. It
    returns a number, a sequence of numbers (with several objectives) or a `Result`, or raises `Failed`. Everything that
    it returns must depend only on its arguments.

    Raises ValueError if an argument is wrong.
    """
    parts_of(genome)  # Report errors of the genome at this line, not at the function below it.

    def declare(function: Callable[..., Any]) -> Problem:
        return Problem(function, genome, objectives, constraints, measures, version)

    return declare
