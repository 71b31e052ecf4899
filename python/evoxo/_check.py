"""The check for purity: candidates must have the same values in any order and in any process."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from types import TracebackType
from typing import IO, Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type, Union

from ._channel import VARIABLE, VERSION
from ._declaration import Answer, Candidate
from ._genome import Choices, Genes, Part, there
from ._problem import Problem
from ._serve import LINE_BYTES_MAX

CANDIDATES = 12
"""The default number of candidates of a check."""

CLOCK_SECONDS = 1.1
"""The last process starts at least this long after the first, so that a clock with a resolution of seconds has advanced."""

ERROR_LINES = 20
"""How many lines of a program's standard error are shown when it ends."""

QUESTIONS = 5
"""How many batches of an algorithm a check asks for."""

FRAME_BYTES = 64
"""The most bytes of a request that do not belong to its candidates."""

_FIRST = "the first run"
_REASONS = {
    "the same process once more": (
        "the function keeps something from one call to the next, or uses a clock or unseeded random numbers"
    ),
    "the same process in reversed order": "the value depends on the candidates before it",
    "a fresh process": "the function uses a clock, unseeded random numbers, or something that differs from start to start",
    "a fresh process in reversed order": "the value depends on the candidates before it",
    "a fresh process, odd numbers first": "the value depends on the candidates before it",
    "a fresh process with another PYTHONHASHSEED": "the function uses the order of a set, or hash() of a text",
}


class _Ended(Exception):
    """The program ended when it should not; the text says how."""


class _Program:
    """The problem's program as a worker starts it, with a given hash seed. It ends with its `with` block."""

    def __init__(self, command: Sequence[str], hash_seed: int) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()
        environment = {**os.environ, VARIABLE: VERSION, "PYTHONHASHSEED": str(hash_seed)}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors, env=environment)
        self._batches = 0

    def __enter__(self) -> _Program:
        self._line()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], at: Optional[TracebackType]
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _line(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._errors.seek(0)
            last = self._errors.read().decode("utf-8", "replace").splitlines()[-ERROR_LINES:]
            raise _Ended("\n".join([*last, f"the program ended with status {status}"]))
        return json.loads(line)

    def ask(self, items: Sequence[Candidate]) -> List[Answer]:
        """The answers to these candidates, in the order of the candidates."""
        assert self._process.stdin is not None
        answers: List[Answer] = []
        for texts in _requests([json.dumps(item) for item in items]):
            self._batches += 1
            request = f'{{"batch": {self._batches}, "items": [{", ".join(texts)}]}}\n'
            try:
                self._process.stdin.write(request.encode())
                self._process.stdin.flush()
            except BrokenPipeError:
                pass  # Reading the answer fails, too, and reports why.
            answers += self._line()["items"]
        return answers

    def batch(self, question: Mapping[str, Any]) -> Any:
        """The answer to a question about an algorithm."""
        assert self._process.stdin is not None
        self._batches += 1
        self._process.stdin.write(json.dumps({"batch": self._batches, "ask": question}).encode() + b"\n")
        self._process.stdin.flush()
        return self._line()


def _requests(texts: Sequence[str]) -> Iterator[List[str]]:
    """Splits the texts of candidates into requests, because a line has at most LINE_BYTES_MAX bytes."""
    request: List[str] = []
    size = FRAME_BYTES
    for text in texts:
        size += len(text) + 2
        if request and size > LINE_BYTES_MAX:
            yield request
            request, size = [], FRAME_BYTES + len(text) + 2
        request.append(text)
    yield request


class _Run(NamedTuple):
    name: str
    answers: List[Answer]


def candidates(problem: Problem, count: int) -> List[Candidate]:
    """The candidates of a check, the same for each run: all genes low, all high, in the middle, then random ones."""
    rng = random.Random(json.dumps(problem.introduction()["genome"]))
    items = []
    for index in range(count):
        genes = {name: _genes(part, index, rng) for name, part in problem.parts.items()}
        items.append({"id": f"check-{index}", "seed": f"{rng.getrandbits(64):016x}", "genes": there(problem.parts, genes)})
    return items


def _genes(part: Part, index: int, rng: random.Random) -> Genes:
    if index < 2:
        return part.corner(high=index == 1)
    return part.middle() if index == 2 else part.draw(rng)


def _kind(index: int) -> str:
    """Describes the candidate with this index."""
    return ("all genes low", "all genes high", "all genes in the middle")[index] if index < 3 else "random genes"


def check(problem: Problem, command: Sequence[str], count: int = CANDIDATES) -> int:
    """Prints whether `count` candidates have the same values in all runs. Returns the exit status, which is 0 if so.

    command: starts the problem's program if EVOXO_PROTOCOL is set.
    """
    items = candidates(problem, count)
    try:
        runs, seconds = _runs(command, items)
    except _Ended as ended:
        print(f"{ended}\n{problem.name} cannot be checked: see the lines above", file=sys.stderr)
        return 1
    expected = runs[0].answers
    failed = [(index, answer["fail"]) for index, answer in enumerate(expected) if "fail" in answer]
    impure = False
    for run in runs[1:]:
        differing = [index for index in range(count) if not _same(run.answers[index], expected[index])]
        if differing:
            impure = True
            _tell(run, expected, differing)
    for index, why in failed:
        print(f"candidate {index} ({_kind(index)}) failed: {why}")
    if len(failed) == count:
        print(f"{problem.name} has no value for any of the {count} candidates: nothing can be evolved with it")
        return 1
    if impure:
        print(f"{problem.name} is not pure: its values must follow from the genes and the seed alone")
        return 1
    print(f"{problem.name} is pure as far as {count} candidates show; one candidate takes {_duration(seconds)}")
    return 0


def _runs(command: Sequence[str], items: Sequence[Candidate]) -> Tuple[List[_Run], float]:
    """All runs, the first of which is the reference for the others, and the seconds that a candidate takes."""
    began = time.monotonic()
    again, reversed_, fresh, *orders, other = _REASONS
    with _Program(command, 1) as program:
        runs = [_Run(_FIRST, program.ask(items))]
        start = time.perf_counter()
        runs.append(_Run(again, program.ask(items)))
        seconds = (time.perf_counter() - start) / len(items)
        runs.append(_Run(reversed_, program.ask(items[::-1])[::-1]))
    with _Program(command, 1) as program:
        runs.append(_Run(fresh, program.ask(items)))
    # State that a process keeps from the first candidates shows only in a process that sees others first.
    every = list(range(len(items)))
    for name, order in zip(orders, (every[::-1], every[1::2] + every[::2])):
        with _Program(command, 1) as program:
            answers = dict(zip(order, program.ask([items[number] for number in order])))
            runs.append(_Run(name, [answers[number] for number in every]))
    time.sleep(max(0.0, began + CLOCK_SECONDS - time.monotonic()))
    # A set of two strings has the same order under two hash seeds half of the time, so three more are tried.
    for hash_seed in (2, 3, 4):
        with _Program(command, hash_seed) as program:
            runs.append(_Run(other, program.ask(items)))
        if not _same(runs[-1].answers, runs[0].answers):
            break
    return runs, seconds


def check_algorithm(name: str, command: Sequence[str], parts: Mapping[str, Part]) -> int:
    """Asks an algorithm the same questions in several processes and prints what differs. Returns the exit status.

    command: starts the program. parts: the genome that is searched, where every value is a random number.
    """
    first = ""
    for number, hash_seed in enumerate((1, 1, 2, 3, 4)):
        # A clock with a resolution of seconds has advanced then.
        time.sleep(CLOCK_SECONDS if number == 1 else 0)
        try:
            with _Program(command, hash_seed) as program:
                said = _conversation(name, program, parts)
        except (_Ended, ValueError) as error:
            print(f"{name}: {error}")
            return 1
        first = first or said
        if said != first:
            place = next(at for at, pair in enumerate(zip(first, said)) if pair[0] != pair[1])
            print(f"{name} returns other batches in {'a fresh process' if hash_seed == 1 else 'one with another PYTHONHASHSEED'}:"
                  " they must follow from the saved state, the values and rng alone")
            print(f"  the first: {first[max(place - 40, 0):place + 40]}\n  then: {said[max(place - 40, 0):place + 40]}")
            return 1
    print(f"{name} is pure as far as {QUESTIONS} batches show")
    return 0


def _conversation(name: str, program: _Program, parts: Mapping[str, Part]) -> str:
    """The first batches of a search. Raises ValueError if there is none."""
    rng, all_, questions = random.Random(1), [], []
    told: List[Dict[str, Any]] = []
    genome: List[Dict[str, Any]] = [{"name": part, **declared.declaration()} for part, declared in parts.items()]
    for one, declared in zip(genome, parts.values()):
        if isinstance(declared, Choices):
            one["choices"] = list(declared.options)
    state = None
    for _ in range(QUESTIONS):
        asked = {"algorithm": name, "settings": {}, "genome": genome, "seed": f"{rng.getrandbits(64):016x}"}
        question: Dict[str, Any] = {**asked, "state": state, "told": told}
        answer = program.batch(question)
        if "fail" in answer:
            raise ValueError(answer["fail"])
        state = answer["state"]
        told = [{"genes": genes, "f": [rng.random()], "g": [], "m": []} for genes in answer["items"]]
        all_.append((answer["items"], state))
        questions.append(question)
    for question, (items, state) in reversed(list(zip(questions, all_))):
        answer = program.batch(question)
        if (answer.get("items"), answer.get("state")) != (items, state):
            raise ValueError("it returns another batch when it is asked the same again: it keeps something that save does not return,"
                             " or uses a clock or other random numbers")
    return json.dumps(all_)


def _same(one: Union[Answer, List[Answer]], other: Union[Answer, List[Answer]]) -> bool:
    """Whether these are equal in every bit; 0.0 and -0.0 are not."""
    return json.dumps(one) == json.dumps(other)


def _tell(run: _Run, expected: Sequence[Answer], differing: Sequence[int]) -> None:
    index = differing[0]
    more = f", and {len(differing) - 1} more" if len(differing) > 1 else ""
    print(f"candidate {index} ({_kind(index)}){more}: other values in {run.name}: {_REASONS[run.name]}")
    print(f"  {_FIRST}: {json.dumps(expected[index])}")
    print(f"  {run.name}: {json.dumps(run.answers[index])}")


def _duration(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"
