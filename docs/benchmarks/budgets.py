"""What a budget of games, or of processor time, buys in tic-tac-toe: leagues of players of every kind, by budget.

    python3 budgets.py run       writes budgets.csv: minutes of one core
    python3 budgets.py tables    prints the tables of docs/league.md

Every method learns with 10,000, 100,000 and a million games (`nndtf` has boards instead of games), in five replicas. A
method with a player for each side spends half of the games on each. The players of replica r, of all methods and budgets,
play a league with players that need no learning: exact odds from the empty board. So there are five leagues, and a figure
is the mean of five with its 95 % interval: points above the player `perfect` of the same league, 400 of which are odds of
10 to 1. Processor time is that of whole runs, with starting and reports, for one replica.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import common

REPLICAS = 5
GAMES = [10_000, 100_000, 1_000_000]
ITERATIONS = [500, 5_000, 50_000]
"""Of nndtf, which evaluates boards and plays no games: it stands in the table of times alone."""
T_95 = 2.776
"""Student's t for 95 % and five values."""
FIXED = ["random", "filtered", "teacher", "alpha-beta:2", "perfect"]
OPENINGS = 0

Settings = Dict[str, object]
Method = Tuple[str, Callable[[int], Settings], List[str]]
"""The kind of experiment, its settings for a number of games of one player, and the sides ("" for a player of both)."""



METHODS: Dict[str, Method] = {
    "tables (invincible)": (
        "invincible",
        lambda games: {"population": 50, "games": 20, "fathers": 5, "penalty": 100, "generations": games // 1_000},
        ["X", "O"],
    ),
    "strings (ternary)": (
        "ternary",
        lambda games: {"population": 100, "opponents": 25, "random_games": 25, "generations": games // 5_000},
        ["X", "O"],
    ),
    "rules": ("rules", lambda games: {"cycles": games // 100}, [""]),
    "MENACE": ("menace", lambda games: {"games": games, "every": games // 5, "opponent": "itself"}, ["X", "O"]),
    "tuples (td3d)": (
        "td3d",
        lambda games: {
            "game": "tic-tac-toe", "network": "tuples", "opponent": "self", "shared": "yes", "schedule": "linear",
            "alpha": 0.01, "alpha_end": 0.0005, "wins": "exact", "first_move": "alternating", "games": games,
            "test_every": games, "averaging_games": games // 20,
        },
        [""],
    ),
    "nndtf, proposed": ("nndtf", lambda iterations: {"iterations": iterations}, [""]),
}


def evoxo(file: Path, text: str, out: Path) -> float:
    """Runs an experiment on one thread; returns its processor time in seconds."""
    file.write_text(text, encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["evoxo", "run", str(file), "--workers", "0", "--no-page", "--out", str(out)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def learned(directory: Path, name: str, budget: int) -> Tuple[float, Dict[str, List[Path]]]:
    """Players of a method with a budget: their processor time, and the cards for each side by replica."""
    kind, settings, sides = METHODS[name]
    seconds, cards = 0.0, {}
    for side in sides:
        values = settings(budget // len(sides)) | ({"side": side} if side else {})
        lines = [f'experiment = "{kind}"', "seed = 1", f"replicas = {REPLICAS}", "[settings]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        place = directory / f"{kind}-{budget}-{side}"
        seconds += evoxo(directory / "run.toml", "\n".join(lines) + "\n", place)
        cards[side] = [next(place.glob(f"champions/*-{replica}.json")) for replica in range(REPLICAS)]
    return seconds / REPLICAS, cards


def run() -> None:
    rows: List[List[object]] = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        players: List[Tuple[str, int, float, Dict[str, List[Path]]]] = []
        for method in METHODS:
            for budget in ITERATIONS if method.startswith("nndtf") else GAMES:
                players.append((method, budget, *learned(directory, method, budget)))
                print(method, budget, f"{players[-1][2]:.2f} s", file=sys.stderr)
        for replica in range(REPLICAS):
            rows += league(directory, players, replica)
    common.write("budgets.csv", ["player", "budget", "seconds", "replica", "rating", "score"], rows)


def league(directory: Path, players: List[Any], replica: int) -> List[List[object]]:
    lines = ['experiment = "league"', "seed = 1", "replicas = 1", "[settings]", f"openings = {OPENINGS}", 'anchor = "random"']
    for who in FIXED:
        lines += ["[[players]]", f'who = "{who}"']
    for method, budget, _, cards in players:
        lines += ["[[players]]", f'name = "{method}, {budget}"']
        files = [cards[side][replica] for side in cards]
        lines += [f"{key} = {json.dumps(str(file))}" for key, file in zip(["who", "as_o"], files)]
    out = directory / f"league-{replica}"
    evoxo(directory / "league.toml", "\n".join(lines) + "\n", out)
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    (summary,) = result["summary"].values()
    found = {row["player"]: [round(row["rating"], 1), round(row["score"], 4)] for row in summary["ratings"]}
    rows: List[List[object]] = [[who, "", "", replica, *found[who]] for who in FIXED]
    for method, budget, seconds, _ in players:
        rows.append([method, budget, round(seconds, 3), replica, *found[f"{method}, {budget}"]])
    return rows


def mean(values: List[float]) -> str:
    half = T_95 * statistics.stdev(values) / len(values) ** 0.5
    return f"{statistics.mean(values):+,.0f} ± {half:,.0f}"


def tables() -> None:
    rows = common.read("budgets.csv")
    found: Dict[Tuple[str, str], List[Dict[str, str]]] = {}
    for row in rows:
        found.setdefault((row["player"], row["budget"]), []).append(row)

    def above(method: str, budget: object) -> str:
        pairs = zip(found[method, str(budget)], found["perfect", ""])
        return mean([float(row["rating"]) - float(perfect["rating"]) for row, perfect in pairs])

    games = [method for method in METHODS if not method.startswith("nndtf")]
    common.table(
        ["Points above `perfect` after", *(f"{budget:,} games" for budget in GAMES)],
        [[method, *(above(method, budget) for budget in GAMES)] for method in games],
    )
    timed = sorted(
        (float(group[0]["seconds"]), method, budget) for (method, budget), group in found.items() if method in METHODS
    )
    common.table(
        ["Processor seconds", "player", "of games (nndtf: iterations)", "points above `perfect`"],
        [[f"{seconds:.2f}", method, f"{int(budget):,}", above(method, budget)] for seconds, method, budget in timed],
    )
    others = [who for who in FIXED if who != "perfect"]
    common.table(["No learning", "points above `perfect`"], [[who, above(who, "")] for who in others])


if __name__ == "__main__":
    {"run": run, "tables": tables}[sys.argv[1]]()
