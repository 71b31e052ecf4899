"""Shared by the benchmarks: runs of the program evoxo, intervals, and tables in Markdown."""

from __future__ import annotations

import csv
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Hashable, Iterable, List, Optional, Sequence, Tuple, TypeVar

HERE = Path(__file__).resolve().parent

Name = TypeVar("Name", bound=Hashable)
BOOTSTRAPS = 2000
"""Resamples of a bootstrap interval."""


def evoxo(
    directory: str,
    settings: Dict[str, object],
    replicas: int,
    seed: int,
    *more: str,
    program: Optional[str] = None,
    tables: str = "",
) -> Path:
    """Runs `evolve` on one thread, in an existing directory. Returns the directory of results; exits if the run fails.

    program: the command of the program that has the name in settings["problem"].
    tables: further tables of the experiment file.
    """
    lines = ['experiment = "evolve"', f"seed = {seed}", f"replicas = {replicas}", "[settings]"]
    # One search is measured.
    lines += [f"{key} = {json.dumps(value)}" for key, value in {"baseline": "none", **settings}.items()]
    file, out = Path(directory) / "run.toml", Path(directory) / "out"
    file.write_text("\n".join(lines) + "\n" + tables, encoding="utf-8")
    words = ["evoxo", "run", str(file), "--workers", "0", "--out", str(out), *more]
    if program is not None:
        words += ["--program", f"{str(settings['problem']).partition(':')[2]}={program}"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return out


def cards(out: Path, replica: int) -> List[Dict[str, Any]]:
    """The cards of a replica's last population, for a run with --populations."""
    files = sorted((out / "populations").glob(f"main-{replica}-*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def interval(values: Sequence[float], of: Callable[[Sequence[float]], float] = statistics.median) -> List[float]:
    """The median, or another statistic, with the ends of its 95 % bootstrap interval."""
    rng = random.Random(1)
    again = sorted(of(rng.choices(values, k=len(values))) for _ in range(BOOTSTRAPS))
    return [of(values), again[BOOTSTRAPS * 25 // 1000], again[BOOTSTRAPS * 975 // 1000 - 1]]


def tested(pairs: Dict[Name, Tuple[Sequence[float], Sequence[float]]]) -> Dict[Name, float]:
    """P of each pair by Mann and Whitney's test, with Holm's correction."""
    from scipy.stats import mannwhitneyu

    ps = {name: float(mannwhitneyu(*pair).pvalue) for name, pair in pairs.items()}
    found: Dict[Name, float] = {}
    for place, name in enumerate(sorted(ps, key=lambda name: ps[name])):
        found[name] = min(1.0, max([ps[name] * (len(ps) - place), *found.values()]))
    return found


def write(name: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Writes a CSV into the scripts' directory."""
    with open(HERE / name, "w", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(columns)
        lines.writerows(rows)


def read_file(path: Path) -> List[Dict[str, str]]:
    """The rows of a CSV."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read(name: str) -> List[Dict[str, str]]:
    """The rows of a CSV in the scripts' directory."""
    return read_file(HERE / name)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table in Markdown."""
    print("| " + " | ".join(columns) + " |")
    print("|" + "|".join(["---"] + ["--:"] * (len(columns) - 1)) + "|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()
