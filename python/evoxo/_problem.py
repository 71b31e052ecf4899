"""A problem: a fitness function with its genome and objectives, and what becomes of one candidate."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._declaration import NAME, Answer, Declaration, Failed
from ._genome import Genes, Part, parts_of

VERSION_DIGITS = 12
"""Digits of the version that is made from a source file."""


def _source(function: Callable[..., Any]) -> Path:
    """The file that defines a function. Raises ValueError if there is none."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:  # It is an object, or written in C.
        file = None
    if file is None or not Path(file).is_file():
        raise ValueError("the function has no source file that a version could be made from: give it a version=")
    return Path(file)


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
            raise ValueError(f"the function is called {name!r}, and a problem cannot be: define it with def NAME")
        if version is None:
            version = hashlib.sha256(_source(function).read_bytes()).hexdigest()[:VERSION_DIGITS]
        super().__init__(name, genome, objectives, constraints, measures, version)
        self._takes_seed = self._check_parameters()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Calls the function as it is."""
        return self.function(*arguments, **named)

    def introduction(self) -> Dict[str, Any]:
        """See Declaration. With another seed a function that takes one may have another value."""
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

    def evaluate(self, candidate: str, genes: Mapping[str, Genes], seed: int) -> Answer:
        """The answer for one candidate: its numbers, or the sentence with which it failed.

        Raises WrongAnswer if the function returned something else, and whatever the function raises but Failed.
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
    """Makes a problem of a fitness function.

    genome: one part, which the function gets as its first argument, or a dict of parts, which it gets as keyword
        arguments by their names.
    objectives: one or several, each "min NAME" or "max NAME".
    constraints: names of numbers that must be 0 or less.
    measures: names of numbers that describe behaviour, for quality diversity.
    version: a text that changes whenever the function computes something else. By default it is a hash of the
        function's source file; a file that is imported by that file does not change it.

    The function also gets the candidate's seed, a whole number from 0 to 2**64 - 1, if it has a parameter `seed`. It
    returns a number, a sequence of numbers (of several objectives) or a `Result`, or raises `Failed`. Everything that
    it returns must follow from its arguments.

    Raises ValueError with a sentence if one of these does not fit.
    """
    parts_of(genome)  # Its errors belong to this line, not to the function below it.

    def declare(function: Callable[..., Any]) -> Problem:
        return Problem(function, genome, objectives, constraints, measures, version)

    return declare
