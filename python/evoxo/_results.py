"""Reading what a run has left in its directory, as plain lists and dicts."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple, Union

Row = Dict[str, Union[str, int, float]]


class Results:
    """The results of a run, made by `results`."""

    def __init__(
        self, directory: Path, result: Dict[str, Any], history: List[Row], champions: List[Dict[str, Any]]
    ) -> None:
        self.directory = directory
        self.result = result
        """What `result.json` holds: arms with their replicas, figures of the report, where it was computed."""
        self.history = history
        """The rows of `history.csv`: "arm" is a text, "replica" an int, and all other columns are floats."""
        self.champions = champions
        """The cards of `champions/`, by arm (in the order of the experiment file) and replica."""

    @property
    def digest(self) -> Optional[str]:
        """The digest of the run; None while it is unfinished."""
        digest: Optional[str] = self.result.get("digest")
        return digest

    @property
    def state(self) -> str:
        """"finished", "unfinished" or "in doubt"."""
        state: str = self.result["state"]
        return state

    @property
    def arms(self) -> List[str]:
        """The names of the arms, in the order of the experiment file."""
        return [arm["name"] for arm in self.result["arms"]]

    def frame(self) -> Any:
        """The history as a DataFrame of pandas. Raises ImportError with a sentence if pandas is not installed."""
        try:
            import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError:
            raise ImportError("frame() needs the package pandas; .history holds the same rows as plain dicts") from None
        return pandas.DataFrame(self.history)


def results(directory: Union[str, "os.PathLike[str]"]) -> Results:
    """Reads the directory that `evoxo run` or `evoxo fetch` has made.

    Raises ValueError with a sentence if it holds no results, or a file in it is damaged.
    """
    path = Path(directory)
    result = _json(path / "result.json", path)
    if not isinstance(result.get("arms"), list) or not isinstance(result.get("state"), str):
        raise ValueError(f"{path / 'result.json'} is no result of a run: it has no arms or no state")
    order = {arm.get("name"): index for index, arm in enumerate(result["arms"])}

    def place(card: Dict[str, Any]) -> Tuple[int, str, int]:
        arm = str(card.get("arm"))
        return order.get(arm, len(order)), arm, int(card.get("replica", 0))

    cards = [_json(file, path) for file in sorted((path / "champions").glob("*.json"))]
    return Results(path, result, _history(path / "history.csv", path), sorted(cards, key=place))


def _json(file: Path, directory: Path) -> Dict[str, Any]:
    try:
        value = json.loads(_text(file, directory))
    except ValueError as error:
        if isinstance(error, _Unreadable):
            raise
        raise ValueError(f"{file} is damaged: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{file} is damaged: it holds no object")
    return value


def _history(file: Path, directory: Path) -> List[Row]:
    lines = csv.reader(io.StringIO(_text(file, directory), newline=""))
    columns = next(lines, [])
    if columns[:2] != ["arm", "replica"]:
        raise ValueError(f"{file} is damaged: its first columns are not arm and replica")
    rows = []
    for number, line in enumerate(lines, 2):
        try:
            if len(line) != len(columns):
                raise ValueError(f"{len(line)} values for {len(columns)} columns")
            row: Row = {"arm": line[0], "replica": int(line[1])}
            row.update(zip(columns[2:], map(float, line[2:])))
        except ValueError as error:
            raise ValueError(f"{file}:{number} is damaged: {error}") from None
        rows.append(row)
    return rows


class _Unreadable(ValueError):
    """A file is not there or cannot be read; the text is a sentence."""


def _text(file: Path, directory: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise _Unreadable(f"{directory} has no {file.name}: is it the directory of a run of evoxo that has ended?") from None
    except OSError as error:
        raise _Unreadable(f"cannot read {file}: {error.strerror}") from None
