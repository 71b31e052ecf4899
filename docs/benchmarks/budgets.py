"""How strong players of every kind become with a budget of games or processor time: one league per budget.

    python3 budgets.py run [score-four]       writes budgets.csv or budgets-score-four.csv: minutes of one core
    python3 budgets.py tables [score-four]    prints the tables of docs/league.md

Every method learns with 10,000, 100,000 and a million games, or 1,000, 10,000 and 100,000 in Score Four, in five replicas
(`nndtf` evaluates boards instead of games). A method with a player per side spends half of the games on each. The players of
replica r, of all methods and budgets, play a league with players that need no learning: tic-tac-toe by exact odds from the
empty board, Score Four (4x4x4) by games from random openings. So there are five leagues. A rating is the mean of five with its
95 % interval, in points above one player of the same league; 400 points are odds of 10 to 1. Processor time is that of whole
runs, including start and reports, for one replica.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import common

REPLICAS = 5
ITERATIONS = [500, 5_000, 50_000]
"""The budgets of nndtf, which evaluates boards and plays no games. It is only in the table of times."""
T_95 = 2.776
"""Student's t for a 95 % interval of five values."""
Settings = Dict[str, object]
Method = Tuple[str, Callable[[int], Settings], List[str]]
"""The kind of experiment, its settings for a player's number of games, and the sides ("" for a player of both sides)."""

OF_TIC_TAC_TOE: Dict[str, Method] = {
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


def of_paper(network: str) -> Method:
    """A network of td3d-paper.toml, by self-play."""
    return (
        "td3d",
        lambda games: {"reading": "nearest", "opponent": "self", "network": network, "games": games, "test_every": games},
        [""],
    )


OF_SCORE_FOUR: Dict[str, Method] = {
    network.replace("-", " "): of_paper(network)
    for network in ["deep-structured", "wide", "deep", "small-structured", "small"]
} | {
    # The arm of td3d-best.toml.
    "linear tuples": (
        "td3d",
        lambda games: {
            "network": "linear-tuples", "opponent": "self", "shared": "yes", "schedule": "linear", "alpha": 0.02,
            "alpha_end": 0.0003, "wins": "exact", "first_move": "alternating", "games": games, "test_every": games,
            "averaging_games": games // 20,
        },
        [""],
    ),
}


class Game(NamedTuple):
    """A game: budgets in games, methods, players without learning, the one that ratings are relative to, and the league."""

    csv: str
    budgets: List[int]
    methods: Dict[str, Method]
    fixed: List[str]
    above: str
    league: Settings


GAMES_BY_NAME = {
    "tic-tac-toe": Game(
        "budgets.csv",
        [10_000, 100_000, 1_000_000],
        OF_TIC_TAC_TOE,
        ["random", "filtered", "teacher", "alpha-beta:2", "perfect"],
        "perfect",
        {"openings": 0, "anchor": "random"},
    ),
    "score-four": Game(
        "budgets-score-four.csv",
        [1_000, 10_000, 100_000],
        OF_SCORE_FOUR,
        ["random", "filtered", "benchmark", "alpha-beta:1", "alpha-beta:2", "alpha-beta:3"],
        "benchmark",
        {"game": "score-four", "openings": 4, "pairs": 8, "anchor": "benchmark"},
    ),
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


def learned(directory: Path, name: str, method: Method, budget: int) -> Tuple[float, Dict[str, List[Path]]]:
    """Trains a method with a budget. Returns the processor time, and each side's cards by replica."""
    kind, settings, sides = method
    seconds, cards = 0.0, {}
    for side in sides:
        values = settings(budget // len(sides)) | ({"side": side} if side else {})
        lines = [f'experiment = "{kind}"', "seed = 1", f"replicas = {REPLICAS}", "[settings]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        place = directory / f"{name}-{budget}-{side}".replace(" ", "-")
        seconds += evoxo(directory / "run.toml", "\n".join(lines) + "\n", place)
        cards[side] = [next(place.glob(f"champions/*-{replica}.json")) for replica in range(REPLICAS)]
    return seconds / REPLICAS, cards


def run(game: Game) -> None:
    rows: List[List[object]] = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        players: List[Tuple[str, int, float, Dict[str, List[Path]]]] = []
        for method, how in game.methods.items():
            for budget in ITERATIONS if method.startswith("nndtf") else game.budgets:
                players.append((method, budget, *learned(directory, method, how, budget)))
                print(method, budget, f"{players[-1][2]:.2f} s", file=sys.stderr)
        for replica in range(REPLICAS):
            rows += league(game, directory, players, replica)
    common.write(game.csv, ["player", "budget", "seconds", "replica", "rating", "score"], rows)


def league(game: Game, directory: Path, players: List[Any], replica: int) -> List[List[object]]:
    lines = ['experiment = "league"', "seed = 1", "replicas = 1", "[settings]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in game.league.items()]
    for who in game.fixed:
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
    rows: List[List[object]] = [[who, "", "", replica, *found[who]] for who in game.fixed]
    for method, budget, seconds, _ in players:
        rows.append([method, budget, round(seconds, 3), replica, *found[f"{method}, {budget}"]])
    return rows


def mean(values: List[float]) -> str:
    half = T_95 * statistics.stdev(values) / len(values) ** 0.5
    return f"{statistics.mean(values):+,.0f} ± {half:,.0f}"


def tables(game: Game) -> None:
    rows = common.read(game.csv)
    found: Dict[Tuple[str, str], List[Dict[str, str]]] = {}
    for row in rows:
        found.setdefault((row["player"], row["budget"]), []).append(row)

    def above(method: str, budget: object) -> str:
        pairs = zip(found[method, str(budget)], found[game.above, ""])
        return mean([float(row["rating"]) - float(other["rating"]) for row, other in pairs])

    games = [method for method in game.methods if not method.startswith("nndtf")]
    common.table(
        [f"Points above `{game.above}` after", *(f"{budget:,} games" for budget in game.budgets)],
        [[method, *(above(method, budget) for budget in game.budgets)] for method in games],
    )
    timed = sorted(
        (float(group[0]["seconds"]), method, budget) for (method, budget), group in found.items() if method in game.methods
    )
    common.table(
        ["Processor seconds", "player", "of games (nndtf: iterations)", f"points above `{game.above}`"],
        [[f"{seconds:.2f}", method, f"{int(budget):,}", above(method, budget)] for seconds, method, budget in timed],
    )
    others = [who for who in game.fixed if who != game.above]
    common.table(["No learning", f"points above `{game.above}`"], [[who, above(who, "")] for who in others])


if __name__ == "__main__":
    {"run": run, "tables": tables}[sys.argv[1]](GAMES_BY_NAME[(sys.argv + ["tic-tac-toe"])[2]])
