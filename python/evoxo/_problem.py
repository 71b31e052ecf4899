"""A problem: a fitness function with its genome and objectives, and what becomes of one candidate."""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._channel import VERSION
from ._genome import Genes, Part, parts_of

FAIL_CHARACTERS_MAX = 1000
"""The most characters of the sentence of a failed candidate; the rest is cut off."""

VERSION_DIGITS = 12
"""Digits of the version that is made from a source file."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")

Numbers = Union[float, Sequence[float]]
Candidate = Dict[str, Any]
Answer = Dict[str, Any]


class Failed(Exception):
    """Raise it in a fitness function when a candidate has no value: ``raise evoxo.Failed("the simulation diverged")``.

    Only this candidate fails, with the sentence. Any other exception ends the program.
    """


class WrongAnswer(Exception):
    """The function returned something that does not fit what the problem declares. The text names the candidate."""


@dataclass(frozen=True)
class Result:
    """What a fitness function returns if its problem has constraints or measures."""

    f: Numbers
    """The objectives: a number, or one for each objective."""
    g: Numbers = ()
    """The constraints, one number for each: 0 or less is feasible."""
    m: Numbers = ()
    """The measures of behaviour, one number for each."""


def _source(function: Callable[..., Any]) -> Path:
    """The file that defines a function. Raises ValueError if there is none."""
    file = inspect.getsourcefile(function)
    if file is None or not Path(file).is_file():
        raise ValueError("the function has no source file that a version could be made from: give it a version=")
    return Path(file)


def _names(what: str, names: Sequence[str]) -> Tuple[str, ...]:
    if isinstance(names, str):
        raise ValueError(f"{what} is the text {names!r}, but must be a list of texts")
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"{what} has the name {name!r}, but a name is up to 64 of A-Z, a-z, 0-9, _, - and point")
    if len(set(names)) < len(names):
        raise ValueError(f"{what} has a name twice: {list(names)}")
    return tuple(names)


def _objectives(objectives: Sequence[str]) -> Tuple[str, ...]:
    if isinstance(objectives, str) or not objectives:
        raise ValueError(f'objectives is {objectives!r}, but must be a list such as ["min cost"]')
    for objective in objectives:
        goal, _, _ = objective.partition(" ") if isinstance(objective, str) else ("", "", "")
        if goal not in ("min", "max"):
            raise ValueError(f'the objective {objective!r} must be "min NAME" or "max NAME"')
    _names("objectives", [objective.partition(" ")[2] for objective in objectives])
    return tuple(objectives)


class Problem:
    """A fitness function with its declaration, made by `problem`. It can be called like the function itself."""

    def __init__(
        self,
        function: Callable[..., Any],
        parts: Dict[str, Part],
        single: bool,
        objectives: Sequence[str],
        constraints: Sequence[str] = (),
        measures: Sequence[str] = (),
        version: Optional[str] = None,
    ) -> None:
        self.function = function
        self.parts = parts
        """The parts of the genome by name, in the order in which they were declared."""
        self.objectives = _objectives(objectives)
        """Each "min NAME" or "max NAME"."""
        self.constraints = _names("constraints", constraints)
        self.measures = _names("measures", measures)
        self.name: str = getattr(function, "__name__", "")
        """The function's name, which is the problem's."""
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"the function is called {self.name!r}, and a problem cannot be: define it with def NAME")
        if version is None:
            version = hashlib.sha256(_source(function).read_bytes()).hexdigest()[:VERSION_DIGITS]
        elif not isinstance(version, str) or not _NAME.fullmatch(version):
            raise ValueError(f"the version is {version!r}, but must be up to 64 of A-Z, a-z, 0-9, _, - and point")
        self.version: str = version
        self._objective_names = tuple(objective.partition(" ")[2] for objective in self.objectives)
        self._single = single
        self._takes_seed = self._check_parameters()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Calls the function as it is."""
        return self.function(*arguments, **named)

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
            want = "one list" if self._single else "the parts " + ", ".join(self.parts) + " by name"
            raise ValueError(f"{self.name}{signature} cannot be called with {want}: {error}") from None
        return takes_seed

    def _arguments(self, genes: Mapping[str, Genes], seed: Optional[int]) -> Tuple[List[Any], Dict[str, Any]]:
        arguments: List[Any] = list(genes.values()) if self._single else []
        named: Dict[str, Any] = {} if self._single else dict(genes)
        if seed is not None:
            named["seed"] = seed
        return arguments, named

    def introduction(self) -> Dict[str, Any]:
        """The first line of the program: everything that a worker must know."""
        line: Dict[str, Any] = {"evoxo": int(VERSION), "name": self.name, "version": self.version}
        line["objectives"] = list(self.objectives)
        if self.constraints:
            line["constraints"] = list(self.constraints)
        if self.measures:
            line["measures"] = list(self.measures)
        line["genome"] = [{"name": name, **part.declaration()} for name, part in self.parts.items()]
        return line

    def read(self, item: Any) -> Tuple[str, Dict[str, Genes], int]:
        """The id, the genes by part, and the seed of an item of a request. Raises ValueError with a sentence."""
        try:
            name, genes, text = item["id"], item["genes"], item["seed"]
        except (TypeError, KeyError):
            raise ValueError(f"an item is no object with id, seed and genes: {item!r:.200}") from None
        if not isinstance(text, str) or not re.fullmatch("[0-9a-f]{16}", text):
            raise ValueError(f"the seed of {name} is no text of 16 hexadecimal digits: {text!r:.80}")
        if not isinstance(genes, dict) or genes.keys() != self.parts.keys():
            have = ", ".join(genes) if isinstance(genes, dict) else repr(genes)
            raise ValueError(f"the genes of {name} have the parts {have:.200} instead of {', '.join(self.parts)}")
        read: Dict[str, Genes] = {}
        for part, declared in self.parts.items():
            try:
                read[part] = declared.read(genes[part])
            except ValueError as error:
                raise ValueError(f"the part {part} of {name} {error}") from None
        return name, read, int(text, 16)

    def evaluate(self, candidate: str, genes: Mapping[str, Genes], seed: int) -> Answer:
        """The answer for one candidate: its numbers, or the sentence with which it failed.

        Raises WrongAnswer if the function returned something else, and whatever the function raises but Failed.
        """
        arguments, named = self._arguments(genes, seed if self._takes_seed else None)
        try:
            value = self.function(*arguments, **named)
        except Failed as failed:
            return {"fail": _sentence(str(failed) or "the function says no reason")}
        result = value if isinstance(value, Result) else Result(value)
        answer: Answer = {}
        objectives, constraints, measures = self._objective_names, self.constraints, self.measures
        for key, names, given in (("f", objectives, result.f), ("g", constraints, result.g), ("m", measures, result.m)):
            numbers = self._numbers(candidate, key, names, given)
            for name, number in zip(names, numbers):
                if number - number != 0:
                    fail = f"{name} is {number}"
                    print(f"candidate {candidate}: {fail}, which is no value: the candidate fails", file=sys.stderr)
                    return {"fail": fail}
            if names:
                answer[key] = numbers
        return answer

    def _numbers(self, candidate: str, key: str, names: Sequence[str], given: Any) -> List[float]:
        """What the function returned for objectives, constraints or measures, one number for each name."""
        what = {"f": "objectives", "g": "constraints", "m": "measures"}[key]
        if isinstance(given, (str, bytes, Mapping, set, frozenset)):
            sentence = f"{self.name} returned {given!r:.80} for its {what}: return numbers"
            raise WrongAnswer(f"candidate {candidate}: {sentence}")
        try:
            values = list(given)
        except TypeError:
            values = [given]
        if len(values) != len(names):
            hint = "" if key == "f" else f": return evoxo.Result(f, {key}=[...])"
            raise WrongAnswer(
                f"candidate {candidate}: {self.name} returned {len(values)} numbers for {len(names)} {what}{hint}"
            )
        numbers = []
        for value in values:
            try:
                if isinstance(value, (str, bytes)):
                    raise TypeError
                numbers.append(float(value))
            except OverflowError:
                numbers.append(float("inf") if value > 0 else float("-inf"))
            except (TypeError, ValueError):
                raise WrongAnswer(
                    f"candidate {candidate}: {self.name} returned {value!r:.80} among its {what}, which is no number"
                ) from None
        return numbers


def _sentence(text: str) -> str:
    """A text that every reader of JSON takes: without halves of surrogate pairs, and not too long."""
    return text[:FAIL_CHARACTERS_MAX].encode("utf-8", "replace").decode("utf-8")


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
    parts, single = parts_of(genome), isinstance(genome, Part)

    def declare(function: Callable[..., Any]) -> Problem:
        return Problem(function, parts, single, objectives, constraints, measures, version)

    return declare
