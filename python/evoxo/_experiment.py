"""The experiment file of a problem, for evoxo's kind `evolve`."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Union

from ._algorithm import REGISTERED
from ._declaration import Declaration
from ._genome import plain

EVALUATIONS = 10_000
"""The default number of evaluations of a replica."""

REPLICAS = 5
"""The default number of replicas."""

SEED = 1
"""The default seed of an experiment."""

ALGORITHM = "auto"
"""The default algorithm: evoxo chooses one that fits the problem, and says why."""

DECLARED = ("problem", "objectives", "constraints", "measures")
"""Settings that come from the problem."""

WRITTEN = "# The Python package evoxo has written this file and writes it again: copy it to change it.\n"
"""The first line of files that `write` may overwrite."""

_BARE = re.compile(r"-?[0-9]+(\.[0-9]+)?|true|false|\[[-0-9., ]*\]")
Value = Union[str, int, float]


def experiment(
    problem: Declaration,
    algorithm: Optional[str] = None,
    evaluations: int = EVALUATIONS,
    replicas: int = REPLICAS,
    seed: int = SEED,
    settings: Optional[Mapping[str, str]] = None,
) -> str:
    """The text of the experiment file.

    algorithm: the name of one, also of an own one, which this process has registered; by default evoxo chooses.
    evaluations: the evaluations of each replica.
    settings: further settings, as strings. What looks like a number, true, false or a list of numbers is written as such.

    Raises ValueError for a setting that comes from the problem.
    """
    chosen = algorithm or ALGORITHM
    own = chosen in REGISTERED
    values: Dict[str, str] = {
        "problem": _text(f"program:{problem.name}"),
        "algorithm": _text("own" if own else chosen),
        **({"own": _text(chosen)} if own else {}),
        "evaluations": str(evaluations),
        "objectives": _text(", ".join(problem.objectives)),
    }
    for name, numbers in (("constraints", problem.constraints), ("measures", problem.measures)):
        if numbers:
            values[name] = str(len(numbers))
    for key, value in (settings or {}).items():
        if key in DECLARED:
            raise ValueError(f"the setting {key} comes from the problem: change it in the source of {problem.name}")
        values[key] = value if _BARE.fullmatch(value) else _text(value)
    lines = ['experiment = "evolve"', f"seed = {seed}", f"replicas = {replicas}", "", "[settings]"]
    lines += [f"{key} = {value}" for key, value in values.items()]
    for name, part in problem.parts.items():
        lines += ["", "[[genome]]", f"name = {_text(name)}"]
        for key, said in part.declaration().items():
            lines.append(f"{key} = {_text(said) if isinstance(said, str) else plain(said)}")
    return "\n".join(lines) + "\n"


def write(file: Path, text: str, instead: str, results: Optional[Path] = None) -> None:
    """Writes an experiment file. It may overwrite a file that this function wrote earlier.

    Raises ValueError, which says what to do `instead`, if another file is there, or one with other settings whose run has
    `results`. Raises OSError if the file cannot be written.
    """
    file = file.resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists():
        there = file.read_text(encoding="utf-8", errors="replace")
        if there == WRITTEN + text:
            return
        # A full disk can leave an empty file.
        if there not in ("", text) and not there.startswith(WRITTEN):
            raise ValueError(f"{file} was not written by evoxo's Python package, so it is not overwritten: {instead}")
        # The number of replicas may change. The command that continues the run needs all other settings.
        if results and (results / "config.toml").exists() and there and _settings(there) != _settings(WRITTEN + text):
            raise ValueError(f"{results} has a run with other settings, those of {file}, which is not overwritten: {instead}")
    staged = file.with_name(f"{file.name}.new-{os.getpid()}")
    try:
        with staged.open("w", encoding="utf-8") as out:
            out.write(WRITTEN + text)
            out.flush()
            os.fsync(out.fileno())
        if file.exists():
            shutil.copymode(file, staged)
        os.replace(staged, file)
    finally:
        staged.unlink(missing_ok=True)


def _settings(text: str) -> List[str]:
    return [line for line in text.splitlines() if not line.startswith("replicas = ")]


def _text(value: str) -> str:
    """A basic string of TOML, which has the same escapes as JSON."""
    return json.dumps(value, ensure_ascii=False)
