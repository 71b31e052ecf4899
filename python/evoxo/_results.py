"""Reads the directory of a run into plain lists and dicts."""

from __future__ import annotations

import csv
import html
import io
import json
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from ._genome import PART

Row = Dict[str, Union[str, int, float]]


GENES_SHOWN = 12
"""How many genes of a part the text of results shows."""

_WORDS = re.compile(r'name = "(\w+)", type = (?:"symbols"|"bits", length = (?!1,))')
"""Finds the parts of a genome in a configuration that have one word for all their genes."""


class Plot:
    """A plot, made by `Results.plot`. A notebook displays it."""

    def __init__(self, svg: str) -> None:
        self.svg = svg
        """The SVG as text."""

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the SVG to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<evoxo plot, an SVG of {len(self.svg):,} characters: .save(PATH) writes it>"


class Results:
    """The results of a run, made by `results`."""

    def __init__(
        self, directory: Path, result: Dict[str, Any], history: List[Row], champions: List[Dict[str, Any]]
    ) -> None:
        self.directory = directory
        self.result = result
        """The content of `result.json`: arms with their replicas, figures of the report, and where it was computed."""
        self.history = history
        """The rows of `history.csv`: "arm" is a string, "replica" an int, and all other columns are floats."""
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

    @property
    def best(self) -> Dict[str, Any]:
        """The card of the best candidate of all replicas, judged by the first objective.

        Raises ValueError if there is none.
        """
        candidates = [card for card in self.champions if isinstance(card.get("objectives"), dict)]
        found = [card for card in candidates if "violation" not in card]
        if not found:
            why = "that satisfies all constraints" if candidates else "of a problem: it is a run of another kind"
            raise ValueError(f"{self.directory} has no candidate {why}")

        def less_is_better(card: Dict[str, Any]) -> float:
            objective, value = next(iter(card["objectives"].items()))
            return -float(value) if objective.startswith("max ") else float(value)

        return min(found, key=less_is_better)

    @property
    def x(self) -> Any:
        """The genes of `best` as a fitness function gets them: a list or a string, or a dict by name if there are several parts."""
        genes = self.best["genes"]
        return genes[PART] if list(genes) == [PART] else genes

    @property
    def f(self) -> Union[float, List[float]]:
        """The value of `best`: a number, or a list with a number for each objective."""
        values = list(self.best["objectives"].values())
        return values[0] if len(values) == 1 else values

    @property
    def front(self) -> List[Dict[str, Any]]:
        """The rows of `front.csv`, the non-dominated candidates of all replicas: "arm", "replica", objectives, genes.

        Raises ValueError if the algorithm keeps no front.
        """
        # A champion lacks the parts that are not there.
        genes = [gene for card in self.champions for gene in card.get("genes", {}).items()]
        # Bits and symbols are one word each, in one column.
        words = {"arm"} | {part for part, of in genes if isinstance(of, str) or len(of) != 1}
        words |= set(_WORDS.findall((self.directory / "config.toml").read_text(encoding="utf-8")))
        rows = _rows(self.directory / "front.csv")
        return [{name: text if name in words else _gene(text) for name, text in row.items()} for row in rows]

    @property
    def plots(self) -> List[str]:
        """The names of the plots that `plot` shows."""
        return sorted(file.stem for file in (self.directory / "plots").glob("*.svg"))

    def plot(self, name: Optional[str] = None) -> Plot:
        """A plot of the run as an SVG, which a notebook displays: by default the front if there is one, else how the best value improved.

        Raises ValueError if there is no plot with this name.
        """
        names = self.plots
        chosen = name or next((usual for usual in ("front", "best", *names) if usual in names), "")
        if chosen not in names:
            raise ValueError(f"{self.directory} has no plot {chosen!r}; it has {', '.join(names) or 'none'}")
        return Plot((self.directory / "plots" / f"{chosen}.svg").read_text(encoding="utf-8"))

    def __repr__(self) -> str:
        lines = [f"<evoxo results: {self.state}, in {self.directory}>"]
        try:
            best = self.best
        except ValueError:
            return lines[0]
        lines += [f"  {objective}  {_short(value)}" for objective, value in best["objectives"].items()]
        for part, genes in best["genes"].items():
            words = genes if isinstance(genes, str) else " ".join(_short(gene) for gene in genes[:GENES_SHOWN])
            more = "" if isinstance(genes, str) or len(genes) <= GENES_SHOWN else f" ... ({len(genes)} in all)"
            lines.append(f"  {part}  {words:.{GENES_SHOWN * 12}}{more}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        text = f"<pre>{html.escape(repr(self))}</pre>"
        return text + (self.plot()._repr_html_() if self.plots else "")

    def frame(self) -> Any:
        """The history as a pandas DataFrame. Raises ImportError if pandas is not installed."""
        try:
            import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError:
            raise ImportError("frame() needs the package pandas; .history holds the same rows as plain dicts") from None
        return pandas.DataFrame(self.history)


def results(directory: Union[str, "os.PathLike[str]"]) -> Results:
    """Reads the directory that `evoxo run` or `evoxo fetch` has written.

    Raises ValueError if it has no results, or a file in it is damaged.
    """
    path = Path(directory)
    result = _json(path / "result.json", path)
    if not isinstance(result.get("arms"), list) or not isinstance(result.get("state"), str):
        raise ValueError(f"{path / 'result.json'} is not the result of a run: it lacks arms or a state")
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
        raise ValueError(f"{file} is damaged: it is not a JSON object")
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


def _rows(file: Path) -> Iterator[Dict[str, str]]:
    if not file.is_file():
        raise ValueError(f"{file.parent} has no {file.name}: only algorithms for several objectives keep a front")
    with file.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def _number(text: str) -> Union[int, float]:
    """The number in a field of a table; NaN if the field is empty."""
    return int(text) if text.lstrip("-").isdigit() else float(text or "nan")


def _gene(text: str) -> Union[int, float, str]:
    """The number in a field of a table, NaN if the field is empty, or the word of a choice."""
    try:
        return _number(text)
    except ValueError:
        return text


def _short(value: Any) -> str:
    """A number with four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class _Unreadable(ValueError):
    """A file is missing or cannot be read; the text says why."""


def _text(file: Path, directory: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise _Unreadable(f"{directory} has no {file.name}: it must be the directory of an evoxo run that has ended") from None
    except OSError as error:
        raise _Unreadable(f"cannot read {file}: {error.strerror}") from None
