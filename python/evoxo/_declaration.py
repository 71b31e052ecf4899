"""What is declared of a problem, and what its numbers must be, for a function and for a caller who is asked."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union

from ._channel import VERSION
from ._genome import Genes, Part, counted, parts_of

FAIL_CHARACTERS_MAX = 1000
"""The most characters of the sentence of a failed candidate; the rest is cut off."""

OBJECTIVES_CHARACTERS_MAX = 400
"""The most characters of all objectives with a comma and a space between them: what an experiment file can say."""

CONSTRAINTS_MAX = 100
MEASURES_MAX = 10

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
"""The names of problems, objectives, constraints and measures, and versions."""

_SEED = re.compile("[0-9a-f]{16}")

Numbers = Union[float, Sequence[float]]
Candidate = Dict[str, Any]
Answer = Dict[str, Any]


class Failed(Exception):
    """Raise it in a fitness function when a candidate has no value: ``raise evoxo.Failed("the simulation diverged")``.

    Only this candidate fails, with the sentence. Any other exception ends the program.
    """


class WrongAnswer(ValueError):
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


def _names(what: str, names: Sequence[str], most: int) -> Tuple[str, ...]:
    if isinstance(names, str):
        raise ValueError(f"{what} is the text {names!r}, but must be a list of texts")
    for name in names:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise ValueError(f"{what} has the name {name!r}, but a name is up to 64 of A-Z, a-z, 0-9, _, - and point")
    if len(set(names)) < len(names):
        raise ValueError(f"{what} has a name twice: {list(names)}")
    if len(names) > most:
        raise ValueError(f"{what} has {len(names)} names, but at most {most} are possible")
    return tuple(names)


def _objectives(objectives: Sequence[str]) -> Tuple[str, ...]:
    if isinstance(objectives, str) or not objectives:
        raise ValueError(f'objectives is {objectives!r}, but must be a list such as ["min cost"]')
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
        self.single = isinstance(genome, Part)
        """Whether the genome was declared as one part without a name."""
        self.objectives = _objectives(objectives)
        """Each "min NAME" or "max NAME"."""
        self.constraints = _names("constraints", constraints, CONSTRAINTS_MAX)
        self.measures = _names("measures", measures, MEASURES_MAX)
        if not isinstance(version, str) or not NAME.fullmatch(version):
            raise ValueError(f"the version is {version!r}, but must be up to 64 of A-Z, a-z, 0-9, _, - and point")
        self.name = name
        self.version: str = version
        self._one_number = len(self.objectives) == 1 and not self.constraints and not self.measures
        self._objective_names = tuple(objective.partition(" ")[2] for objective in self.objectives)

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
        if not isinstance(text, str) or not _SEED.fullmatch(text):
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

    def answer(self, candidate: str, value: Any) -> Answer:
        """The answer for one candidate that has this value: its numbers, or the sentence with which it failed.

        value: a number, a sequence of numbers, or a Result.

        Raises WrongAnswer if it is something else.
        """
        # The usual case, without the checks that it passes anyway: they take as long as a short function.
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
                    print(f"candidate {candidate}: {fail}, which is no value: the candidate fails", file=sys.stderr)
                    return {"fail": fail}
            if names:
                answer[key] = numbers
        return answer

    @staticmethod
    def failed(why: str) -> Answer:
        """The answer for a candidate that has no value."""
        text = why or "no reason was given"
        # A text that every reader of JSON takes: without halves of surrogate pairs, and not too long.
        return {"fail": text[:FAIL_CHARACTERS_MAX].encode("utf-8", "replace").decode("utf-8")}

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
                    f"candidate {candidate}: {self.name} returned {value!r:.80} among its {what}, which is no number"
                ) from None
        return numbers
