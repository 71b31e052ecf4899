"""A person's own algorithm: its class, and the answer to a worker that asks for the next batch."""

from __future__ import annotations

import inspect
import json
import random
import sys
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type, TypeVar, Union

from ._declaration import NAME
from ._genome import Bits, Choices, Integers, Part, Permutation, Reals, Symbols
from ._source import version_of

STATE_BYTES_MAX = 1 << 20
"""The most bytes of a saved state as JSON."""

FAIL_CHARACTERS_MAX = 1000
"""The most characters of the reason why there is no batch."""

_METHODS = ("ask", "tell", "save", "restore")

C = TypeVar("C", bound=type)
Answer = Dict[str, Any]


class Value(float):
    """The value of a candidate: its first objective, to be minimised; infinity if the candidate has no value."""

    f: Tuple[float, ...]
    """All objectives, to be minimised: those to be maximised have the other sign. Empty if the candidate has no value."""
    g: Tuple[float, ...]
    """The constraints, each met if it is 0 or less."""
    m: Tuple[float, ...]
    """The measures of behaviour."""

    def __new__(cls, f: Sequence[float] = (), g: Sequence[float] = (), m: Sequence[float] = ()) -> "Value":
        value = super().__new__(cls, f[0] if f else float("inf"))
        value.f, value.g, value.m = tuple(map(float, f)), tuple(map(float, g)), tuple(map(float, m))
        return value

    def __getnewargs__(self) -> Tuple[Tuple[float, ...], Tuple[float, ...], Tuple[float, ...]]:  # type: ignore[override]
        # For copies and pickles; a float would give its number.
        return self.f, self.g, self.m

    @property
    def failed(self) -> bool:
        """Whether the candidate has no value."""
        return not self.f

    @property
    def violation(self) -> float:
        """The sum of the constraints that are not met."""
        total = 0.0
        for broken in self.g:
            total += max(broken, 0.0)
        return total


class Algorithm(NamedTuple):
    """A class that `algorithm` has registered."""

    made: Callable[..., Any]
    version: str


REGISTERED: Dict[str, Algorithm] = {}
"""The algorithms of this process by name."""


class _NoBatch(Exception):
    """There is no batch; the text says why."""


def algorithm(name: str, *, version: Optional[str] = None) -> Callable[[C], C]:
    """Makes a class an algorithm that evolve can run: `algorithm = "own"` and `own = NAME` in an experiment file.

    version: a string that must change whenever the class returns other batches; by default a hash of its source file, as for
        `problem`.

    The class has these methods, and each batch has a new object of it:

    - ``__init__(self, genome, settings)``: a part of a genome such as `evoxo.reals(...)`, or a dict of parts by name if there
      are several; and the object of `own_settings` as a dict.
    - ``restore(self, saved)``: gets what `save` returned after the last batch. It is not called before the first batch.
    - ``tell(self, candidates, values)``: the last batch, each candidate a list, or a dict of lists if the genome has several
      parts, with its `Value`. It is not called before the first batch either.
    - ``ask(self, rng)``: returns the next batch, a list of one candidate or more. `rng` is a `random.Random`, seeded for this
      batch: the only random numbers that the algorithm may use.
    - ``save(self)``: returns the state, which must be possible as JSON, with at most 1 MiB.

    Raises ValueError if the name, the version or the class is not valid.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(f"the algorithm is called {name!r}: use 1 to 64 of the characters A-Z, a-z, 0-9, _, - and .")

    if name == "auto":
        raise ValueError("the algorithm is called auto, which leaves the choice to evoxo: give it another name")

    def declare(made: C) -> C:
        missing = [method for method in _METHODS if not callable(getattr(made, method, None))]
        if not isinstance(made, type) or missing:
            raise ValueError(f"the algorithm {name} must be a class with the methods {', '.join(_METHODS)}: {made!r:.80}"
                             f" lacks {', '.join(missing) or 'them'}")
        own = _version(name, made) if version is None else version
        if not isinstance(own, str) or not NAME.fullmatch(own):
            raise ValueError(f"the version of {name} is {own!r}: use 1 to 64 of the characters A-Z, a-z, 0-9, _, - and .")
        REGISTERED[name] = Algorithm(made, own)
        return made

    return declare


def _version(name: str, made: Type[Any]) -> str:
    try:
        file = inspect.getsourcefile(made)
    except (OSError, TypeError):
        file = None
    if file is None or not Path(file).is_file():
        raise ValueError(f"the algorithm {name} is not defined in a file: write it into one, or give it a version=")
    return version_of(Path(file).read_bytes())


def versions() -> Dict[str, str]:
    """The algorithms of this process with their versions, for a program's introduction."""
    return {name: REGISTERED[name].version for name in sorted(REGISTERED)}


def name_of(made: object) -> Optional[str]:
    """The name of a class that is an algorithm; None for anything else."""
    return next((name for name, other in REGISTERED.items() if other.made is made), None)


def batch(asked: Mapping[str, Any]) -> Answer:
    """The answer to a question: the new state and the next batch, or why there is none.

    Raises ValueError if the question does not fit the protocol.
    """
    try:
        name, parts = asked["algorithm"], {one["name"]: _part(one) for one in asked["genome"]}
        rng, state, settings = random.Random(int(asked["seed"], 16)), asked["state"], asked["settings"]
        told = [(_read(parts, one["genes"]), _value(one)) for one in asked["told"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the worker sent a question that cannot be read: {type(error).__name__}: {error}") from None
    try:
        if name not in REGISTERED:
            raise _NoBatch(f"the program has no algorithm of this name: it has {', '.join(REGISTERED) or 'none'}")
        genome = parts if len(parts) > 1 else next(iter(parts.values()))
        own = _call("__init__", lambda: REGISTERED[name].made(genome, settings))
        if state is not None:
            _call("restore", lambda: own.restore(json.loads(state)))
            _call("tell", lambda: own.tell([genes for genes, _ in told], [value for _, value in told]))
        candidates = _call("ask", lambda: list(own.ask(rng)))
        items = [_item(parts, number, one) for number, one in enumerate(candidates, start=1)]
        return {"state": _state(_call("save", own.save)), "items": items}
    except _NoBatch as why:
        # Lone surrogates are no UTF-8.
        return {"fail": str(why)[:FAIL_CHARACTERS_MAX].encode("utf-8", "replace").decode("utf-8")}


def _call(method: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (Exception, SystemExit) as error:  # A library that exits would end the program silently.
        traceback.print_exc(file=sys.stderr)
        raise _NoBatch(f"{method} raised {type(error).__name__}: {error}") from None


def _part(said: Mapping[str, Any]) -> Part:
    """The part that a worker describes. Raises KeyError, TypeError or ValueError if there is no such part."""
    if "when" in said:
        on, _, values = said["when"].partition("=")
        return _part({key: one for key, one in said.items() if key != "when"}).only({on.strip(): values.strip().split(", ")})
    kind, length = said["type"], said["length"]
    if kind in ("real", "integer"):
        made: Callable[..., Part] = Reals if kind == "real" else Integers
        return made(length, said["low"], said["high"], said.get("scale") == "log", said.get("step", 0))
    if kind == "symbols":
        return Symbols(length, said["alphabet"])
    if kind == "choice":
        return Choices(length, tuple(said["choices"]))
    return {"bits": Bits, "permutation": Permutation}[kind](length)


def _read(parts: Mapping[str, Part], genes: Mapping[str, Any]) -> Any:
    read = {name: part.read(genes[name]) for name, part in parts.items()}
    return read if len(read) > 1 else next(iter(read.values()))


def _value(told: Mapping[str, Any]) -> Value:
    return Value() if "fail" in told else Value(told["f"], told["g"], told["m"])


def _item(parts: Mapping[str, Part], number: int, candidate: Any) -> Dict[str, Any]:
    """A candidate as the worker gets it. Raises _NoBatch if it cannot be one."""
    if not isinstance(candidate, Mapping):
        if len(parts) > 1:
            raise _NoBatch(f"candidate {number} of its batch is {candidate!r:.80}, but must be a dict with the parts"
                           f" {', '.join(parts)}")
        candidate = {next(iter(parts)): candidate}
    if candidate.keys() != parts.keys():
        raise _NoBatch(f"candidate {number} of its batch has the parts {', '.join(map(str, candidate))}, not {', '.join(parts)}")
    return {name: _genes(f'candidate {number} of its batch: part "{name}"', genes) for name, genes in candidate.items()}


def _genes(where: str, genes: Any) -> Union[str, List[Any]]:
    plain = genes.tolist() if hasattr(genes, "tolist") else genes
    if isinstance(plain, str):
        return plain
    if not isinstance(plain, (list, tuple)):
        raise _NoBatch(f"{where} is {plain!r:.80}, but must be a list of genes")
    plain = [gene.item() if hasattr(gene, "item") else gene for gene in plain]
    for number, gene in enumerate(plain, start=1):
        if not isinstance(gene, (str, bool, int, float, type(None))) or gene != gene or gene in (float("inf"), float("-inf")):
            raise _NoBatch(f"{where}: gene {number} is {gene!r:.80}, which is no gene")
    return plain


def _state(saved: Any) -> str:
    try:
        text = json.dumps(saved, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise _NoBatch(f"save returned something that cannot be JSON: {error}") from None
    if len(text) > STATE_BYTES_MAX:
        raise _NoBatch(f"its saved state has {len(text)} bytes, more than {STATE_BYTES_MAX}: save less")
    return text
