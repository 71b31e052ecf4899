"""Seconds that one learner takes, by the number of parallel learners and processes, for docs/many-workers.md.

    python3 many_workers.py run      measures; evoxo must be in PATH, and nothing else should run
    python3 many_workers.py table    prints the table of the measurements
    python3 many_workers.py hosts    prints the tables of simulated hosts, from many-hosts.csv, which is the output of
                                     cargo sim one_learner_on_many_hosts --ignored

Every combination is measured ROUNDS times, in turns, so that other load on the machine affects all of them alike.
"""

import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FILE = HERE / "many-workers.csv"
ARMS = ["serial", "1 worker", "2 workers", "4 workers", "8 workers", "16 workers"]
PROCESSES = [0, 1, 2]
GAMES = 20480
ROUNDS = 2


def seconds(arm, processes):
    """The time of one trial with a single test, from the start of the command to its end."""
    with tempfile.TemporaryDirectory() as out:
        command = ["evoxo", "run", "experiments/td3d-many-workers.toml", "--arm", arm, "--replicas", "1", "--no-page"]
        command += ["--set", f"test_every={GAMES}", "--workers", str(processes), "--out", f"{out}/x"]
        began = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        took = time.monotonic() - began
        if done.returncode:
            sys.exit(done.stderr)
        digest = json.loads(pathlib.Path(f"{out}/x/result.json").read_text())["digest"]
    return took, digest


def run():
    digests = {}
    with FILE.open("w", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["arm", "processes", "seconds"])
        for _ in range(ROUNDS):
            for arm in ARMS:
                for processes in PROCESSES:
                    took, digest = seconds(arm, processes)
                    assert digests.setdefault(arm, digest) == digest, f"{arm}: the digests differ"
                    lines.writerow([arm, processes, f"{took:.2f}"])
                    file.flush()


def table():
    took = {}
    for line in csv.DictReader(FILE.open()):
        took.setdefault((line["arm"], int(line["processes"])), []).append(float(line["seconds"]))
    print("| Learner | one thread | 1 process | 2 processes |")
    print("|---|---|---|---|")
    for arm in ARMS:
        cells = []
        for processes in PROCESSES:
            times = took[arm, processes]
            middle = statistics.median(times)
            cells.append(f"{GAMES / middle:,.0f} ({middle:.1f} s; {min(times):.1f} to {max(times):.1f})")
        print(f"| {arm} | {' | '.join(cells)} |")


# Thousands of games to 95 and to 98 % by the number of learners (0 is the serial one): medians of the page's first table.
# Numbers are missing where too few trials reached the percentage.
TO_95 = {0: 10.752, 2: 8.96, 4: 6.912, 8: 7.424, 16: 8.96}
TO_98 = {2: 18.432, 4: 13.568, 8: 15.872, 16: 15.36}


def hosts():
    rates = {}
    for line in csv.DictReader((HERE / "many-hosts.csv").open()):
        key = tuple(int(line[name]) for name in ["learners", "hosts", "gigabits", "more_ms_a_game"])
        rates.setdefault(key, []).append(float(line["games_a_second"]))
    rates = {key: statistics.median(found) for key, found in rates.items()}
    print("| Learner | hosts | 1 Gbit/s | 10 Gbit/s | a free network | seconds to 98 % at 10 Gbit/s |\n|---|--:|--:|--:|--:|--:|")
    for learners in [1, 2, 4, 8, 16]:
        cells = [rates[learners, learners, gigabits, 0] for gigabits in [1, 10, 0]]
        to_98 = TO_98.get(learners)
        seconds = "" if to_98 is None else f"{1000 * to_98 / cells[1]:.1f}"
        print(f"| {learners} | {learners} | {' | '.join(f'{cell:,.0f}' for cell in cells)} | {seconds} |")
    print("\n| Hosts | games/s of 16 learners at 10 Gbit/s |\n|--:|--:|")
    for count in [1, 2, 4, 8, 16]:
        print(f"| {count} | {rates[16, count, 10, 0]:,.0f} |")
    serial = rates[0, 1, 0, 0]
    print(f"\nserial: {serial:,.0f} games/s, {1000 / serial:.2f} ms a game")
    columns = [(2, 10), (4, 10), (8, 10), (16, 10), (16, 1), (16, 0)]
    networks = {1: "1 Gbit/s", 10: "10 Gbit/s", 0: "a free network"}
    print("| More time a game | " + " | ".join(f"{learners} hosts, {networks[gigabits]}" for learners, gigabits in columns) + " |")
    print("|---|" + len(columns) * "--:|")
    for more_ms in [0, 1, 10, 100]:
        alone = TO_95[0] * (1000 / serial + more_ms)
        speed_ups = [alone / (TO_95[k] * 1000 / rates[k, k, gigabits, more_ms]) for k, gigabits in columns]
        print(f"| {more_ms or 'none'}{' ms' if more_ms else ''} | " + " | ".join(f"{speed_up:.2g}" for speed_up in speed_ups) + " |")


if __name__ == "__main__":
    {"run": run, "table": table, "hosts": hosts}[sys.argv[1]]()
