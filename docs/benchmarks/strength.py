"""How strong td3d's champions are against alpha-beta of fixed depth, for all champions of an arm.

    python3 strength.py run RUN-DIRECTORY...  writes strength.csv; a RUN-DIRECTORY was written by `evoxo run`
    python3 strength.py tables                prints the tables

Each champion plays the same 100 of the 256 openings of two plies, each opening once as each side. So an opening that favours
one side helps neither player.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Dict, List, Tuple

import common

OPPONENTS = ["benchmark", "alpha-beta:1", "alpha-beta:2", "alpha-beta:3", "alpha-beta:4"]
OPENINGS = 100
Scores = Dict[str, List[float]]
"""The scores of an arm's champions, by the opponent."""


def run(directories: List[Path]) -> None:
    rows: List[List[object]] = []
    for directory in directories:
        result = json.loads((directory / "result.json").read_text(encoding="utf-8"))
        for arm in result["arms"]:
            for opponent in OPPONENTS:
                percents = []
                for replica in arm["replicas"]:
                    champion = str(directory / replica["champion"])
                    words = ["evoxo", "match", champion, opponent, "--sample", str(OPENINGS), "--json"]
                    told = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)
                    percents.append(f"{100 * told['together']['score']:g}")
                rows.append([arm["settings"]["games"], arm["name"], opponent, " ".join(percents)])
                print(*rows[-1], file=sys.stderr, flush=True)
    common.write("strength.csv", ["games", "arm", "opponent", "percents"], rows)


def quantile(freedom: float) -> float:
    """Student's 97.5 % quantile by the Cornish-Fisher expansion; accurate to 0.01 from five degrees of freedom."""
    z = 1.959964
    terms = [z, (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384]
    return sum(term / freedom**power for power, term in enumerate(terms))


def half(values: List[float]) -> float:
    """Half of the 95 % interval of the mean."""
    return quantile(len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5


def difference(one: List[float], other: List[float]) -> str:
    """The difference of two means, with its 95 % interval after Welch."""
    parts = [statistics.variance(values) / len(values) for values in (one, other)]
    freedom = sum(parts) ** 2 / sum(part**2 / (len(one) - 1) for part in parts)
    between = statistics.mean(one) - statistics.mean(other)
    return f"{between:+.1f} ± {quantile(freedom) * sum(parts) ** 0.5:.1f}"


def tables() -> None:
    scores: Dict[Tuple[int, str], Scores] = {}
    for row in common.read("strength.csv"):
        by = scores.setdefault((int(row["games"]), row["arm"]), {})
        by[row["opponent"]] = [float(percent) for percent in row["percents"].split()]
    for games in sorted({games for games, _ in scores}):
        print(f"After {games:,} games\n")
        arms = {arm: by for (of, arm), by in scores.items() if of == games}
        rows = [[arm, *(f"{statistics.mean(by[o]):.1f} ± {half(by[o]):.1f}" for o in OPPONENTS)] for arm, by in arms.items()]
        common.table(["arm", *OPPONENTS], rows)
        pairs = combinations(reversed(arms), 2)
        rows = [[f"{one} - {other}", *(difference(arms[one][o], arms[other][o]) for o in OPPONENTS)] for one, other in pairs]
        common.table(["difference", *OPPONENTS], rows)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run([Path(directory) for directory in sys.argv[2:]])
    else:
        tables()
