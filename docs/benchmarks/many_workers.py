"""Seconds of one learner by how many learn beside one another, and by how many processes compute, for docs/many-workers.md.

    python3 many_workers.py run      measures; evoxo must be in PATH, and nothing else should run
    python3 many_workers.py table    prints the tables of the page

Every combination is measured ROUNDS times, one after the other in turns, so that what else the machine does falls on all alike.
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
                    assert digests.setdefault(arm, digest) == digest, f"{arm}: another digest"
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


if __name__ == "__main__":
    {"run": run, "table": table}[sys.argv[1]]()
