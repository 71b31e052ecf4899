"""The declaration of a problem, and checks of its numbers, whether a function or a caller of `ask` gives them."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union

from ._channel import VERSION
from ._genome import Part, counted, parts_of

FAIL_CHARACTERS_MAX = 1000
"""The most characters of the reason why a candidate failed; the rest is cut off."""

OBJECTIVES_CHARACTERS_MAX = 400
"""The most characters of all objectives, joined with a comma and a space: the limit of an experiment file."""

CONSTRAINTS_MAX = 100
MEASURES_MAX = 10

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
"""Names of problems, objectives, constraints and measures, and versions."""

_SEED = re.compile("[0-9a-f]{16}")

Numbers = Union[float, Sequence[float]]
Candidate = Dict[str, Any]
Answer = Dict[str, Any]


class Failed(Exception):
    """Raised by a fitness function for a candidate that has no value: ``raise evoxo.Failed("the simulation diverged")``.

    Only this candidate fails, for this reason. Any other exception ends the program.
    """


class WrongAnswer(ValueError):
    """The function returned something that does not fit the declaration of the problem. The text names the candidate."""


@dataclass(frozen=True)
class Result:
    """The return value of a fitness function whose problem has constraints or measures."""

    f: Numbers
    """The objectives: a number, or one for each objective."""
    g: Numbers = ()
    """The constraints, one number for each: 0 or less is feasible."""
    m: Numbers = ()
    """The measures of behaviour, one number for each."""


def _names(what: str, names: Sequence[str], most: int) -> Tuple[str, ...]:
    if isinstance(names, str):
        raise ValueError(f"{what} is the string {names!r}, but it must be a list of strings")
    for name in names:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise ValueError(f"{what} has the name {name!r}, but a name must be 1 to 64 of the characters A-Z, a-z, 0-9, _, - and .")
    if len(set(names)) < len(names):
        raise ValueError(f"{what} has a name twice: {list(names)}")
    if len(names) > most:
        raise ValueError(f"{what} has {len(names)} names, but it can have at most {most}")
    return tuple(names)


def _objectives(objectives: Sequence[str]) -> Tuple[str, ...]:
    if isinstance(objectives, str) or not objectives:
        raise ValueError(f'objectives is {objectives!r}, but it must be a list such as ["min cost"]')
    for objective in objectives:
        goal, _, _ = objective.partition(" ") if isinstance(objective, str) else ("", "", "")
        if goal not in ("min", "max"):
            raise ValueError(f'the objective {objective!r} must be "min NAME" or "max NAME"')
    characters = len(", ".join(objectives))
    if characters > OBJECTIVES_CHARACTERS_MAX:
        raise ValueError(
            f"objectives has {characters} characters in all, but at most {OBJECTIVES_CHARACTERS_MAX} are possible: take"
            " fewer or shorter names"
        )
    _names("objectives", [objective.partition(" ")[2] for objective in objectives], len(objectives))
    return tuple(objectives)


class Declaration:
    """The name, the genome and the numbers of a problem."""

    def __init__(
        self,
        name: str,
        genome: Union[Part, Mapping[str, Part]],
        objectives: Sequence[str],
        constraints: Sequence[str],
        measures: Sequence[str],
        version: str,
    ) -> None:
        self.parts = parts_of(genome)
        """The parts of the genome by name, in the order in which they were declared."""
        self._needed = {part for part, declared in self.parts.items() if declared.when is None}
        self.single = isinstance(genome, Part)
        """Whether the genome was declared as one part without a name."""
        self.objectives = _objectives(objectives)
        """Each "min NAME" or "max NAME"."""
        self.constraints = _names("constraints", constraints, CONSTRAINTS_MAX)
        self.measures = _names("measures", measures, MEASURES_MAX)
        if not isinstance(version, str) or not NAME.fullmatch(version):
            raise ValueError(f"the version is {version!r}, but it must be 1 to 64 of the characters A-Z, a-z, 0-9, _, - and .")
        self.name = name
        self.version: str = version
        self._one_number = len(self.objectives) == 1 and not self.constraints and not self.measures
        self._objective_names = tuple(objective.partition(" ")[2] for objective in self.objectives)

    def introduction(self) -> Dict[str, Any]:
        """The first line that the program writes: everything that a worker must know."""
        line: Dict[str, Any] = {"evoxo": int(VERSION), "name": self.name, "version": self.version}
        line["objectives"] = list(self.objectives)
        if self.constraints:
            line["constraints"] = list(self.constraints)
        if self.measures:
            line["measures"] = list(self.measures)
        line["genome"] = [{"name": name, **part.declaration()} for name, part in self.parts.items()]
        return line

    def read(self, item: Any) -> Tuple[str, Dict[str, Any], int]:
        """The id, the genes by part, and the seed of an item of a request. A part that is not there has None.

        Raises ValueError if the item is wrong.
        """
        try:
            name, genes, text = item["id"], item["genes"], item["seed"]
        except (TypeError, KeyError):
            raise ValueError(f"an item is not an object with id, seed and genes: {item!r:.200}") from None
        if not isinstance(text, str) or not _SEED.fullmatch(text):
            raise ValueError(f"the seed of {name} is not a string of 16 hexadecimal digits: {text!r:.80}")
        if not isinstance(genes, dict) or not self._needed <= genes.keys() <= self.parts.keys():
            have = ", ".join(genes) if isinstance(genes, dict) else repr(genes)
            raise ValueError(f"the genes of {name} have the parts {have:.200} instead of {', '.join(self.parts)}")
        read: Dict[str, Any] = {}
        for part, declared in self.parts.items():
            try:
                read[part] = declared.read(genes[part]) if part in genes else None
            except ValueError as error:
                raise ValueError(f"the part {part} of {name} {error}") from None
        return name, read, int(text, 16)

    def answer(self, candidate: str, value: Any) -> Answer:
        """The answer for a candidate with this value: its numbers, or the reason why it failed.

        value: a number, a sequence of numbers, or a Result.

        Raises WrongAnswer for anything else.
        """
        # A fast path for the usual case: the checks, which it would pass, take as long as a short function.
        if self._one_number and type(value) is float and value - value == 0:
            return {"f": [value]}
        result = value if isinstance(value, Result) else Result(value)
        answer: Answer = {}
        objectives, constraints, measures = self._objective_names, self.constraints, self.measures
        for key, names, given in (("f", objectives, result.f), ("g", constraints, result.g), ("m", measures, result.m)):
            numbers = self._numbers(candidate, key, names, given)
            for name, number in zip(names, numbers):
                if number - number != 0:
                    fail = f"{name} is {number}"
                    print(f"candidate {candidate}: {fail}, which is not a value: the candidate fails", file=sys.stderr)
                    return {"fail": fail}
            if names:
                answer[key] = numbers
        return answer

    @staticmethod
    def failed(why: str) -> Answer:
        """The answer for a candidate that has no value."""
        text = why or "no reason was given"
        # The text must be readable by every JSON parser, so it has no lone surrogates and is not too long.
        return {"fail": text[:FAIL_CHARACTERS_MAX].encode("utf-8", "replace").decode("utf-8")}

    def _numbers(self, candidate: str, key: str, names: Sequence[str], given: Any) -> List[float]:
        """Converts the objectives, constraints or measures that the function returned to numbers, one for each name."""
        what = {"f": "objectives", "g": "constraints", "m": "measures"}[key]
        if isinstance(given, (str, bytes, Mapping, set, frozenset)):
            sentence = f"{self.name} returned {given!r:.80} for its {what}: return numbers"
            raise WrongAnswer(f"candidate {candidate}: {sentence}")
        try:
            values = list(given)
        except TypeError:
            values = [given]
        if len(values) != len(names):
            others = [letter for letter, given in (("g", self.constraints), ("m", self.measures)) if given]
            result = ", ".join(["f", *(f"{letter}=[...]" for letter in others)])
            hint = f": return evoxo.Result({result})" if others else ""
            returned, wanted = counted(len(values), "number"), counted(len(names), what[:-1])
            raise WrongAnswer(f"candidate {candidate}: {self.name} returned {returned} for {wanted}{hint}")
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
                    f"candidate {candidate}: {self.name} returned {value!r:.80} among its {what}, which is not a number"
                ) from None
        return numbers
