"""How strong champions of td3d are against alpha-beta of fixed depth, over all champions of an arm.

    python3 strength.py run RUN-DIRECTORY     writes strength.csv; RUN-DIRECTORY is what `evoxo run` wrote
    python3 strength.py tables                prints the table

Each champion plays 100 of the 256 openings of two plies, both sides of each, so that neither side gains by the opening.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

import common

OPPONENTS = ["benchmark", "alpha-beta:1", "alpha-beta:2", "alpha-beta:3", "alpha-beta:4"]
OPENINGS = 100
T = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 10: 2.26}
"""Student's 97.5 % quantile, by the number of champions."""


def run(directory: Path) -> None:
    result = json.loads((directory / "result.json").read_text(encoding="utf-8"))
    rows: List[List[object]] = []
    for arm in result["arms"]:
        for replica in arm["replicas"]:
            for opponent in OPPONENTS:
                champion = str(directory / replica["champion"])
                words = ["evoxo", "match", champion, opponent, "--sample", str(OPENINGS), "--json"]
                told = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)
                score = told["together"]["score"]
                rows.append([arm["name"], replica["replica"], opponent, f"{100 * score:.2f}"])
                print(*rows[-1], file=sys.stderr, flush=True)
    common.write("strength.csv", ["arm", "replica", "opponent", "percent"], rows)


def tables() -> None:
    scores: Dict[str, Dict[str, List[float]]] = {}
    for row in common.read("strength.csv"):
        scores.setdefault(row["arm"], {}).setdefault(row["opponent"], []).append(float(row["percent"]))
    rows = []
    for arm, by in scores.items():
        cells = [arm]
        for opponent in OPPONENTS:
            values = by[opponent]
            half = T[len(values)] * statistics.stdev(values) / len(values) ** 0.5
            cells.append(f"{statistics.mean(values):.1f} ± {half:.1f}")
        rows.append(cells)
    common.table(["arm", *OPPONENTS], rows)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(Path(sys.argv[2]))
    else:
        tables()
