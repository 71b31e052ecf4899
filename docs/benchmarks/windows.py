"""How busy workers' slots are in a search with generations and in one with a window.

    python3 docs/benchmarks/windows.py EVOXO [SLOTS]

EVOXO is the path of the tool. The function is a sphere with ten genes whose evaluations take 10 ms to 1 s; the times follow a
Pareto law and the candidates' seeds. Each search has SLOTS processes (16) that sleep more than they compute, so a machine with
two cores is enough. Busy is the time that all evaluations take together, divided by the slots and by the time from the first
evaluation to the end of the last. The cost is the median of 20 replicas, which do not sleep. The last column compares the
digest with that of one thread.
"""
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

EVALUATIONS = 1920
# Population and window.
SEARCHES = [(32, 0), (64, 0), (128, 0), (32, 16), (32, 32), (32, 64), (32, 128)]
FIRST_LINE = {
    "evoxo": 1, "name": "slow", "version": "1", "objectives": ["min cost"],
    "genome": [{"name": "x", "type": "real", "length": 10, "low": -5, "high": 5}],
}  # fmt: skip


def serve():
    """The program: one line of JSON in each direction (docs/own-problem.md)."""
    log = os.environ.get("SLOW_LOG")
    print(json.dumps(FIRST_LINE), flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        answers = []
        for item in question["items"]:
            began = time.time()
            if log and item["id"].startswith("main-"):
                time.sleep(min(1.0, 0.01 * random.Random(item["seed"]).paretovariate(0.8)))
                with open(log, "a") as file:
                    file.write(f"{began} {time.time()}\n")
            cost = 0.0
            for gene in item["genes"]["x"]:
                cost += gene * gene
            answers.append({"f": [cost]})
        print(json.dumps({"batch": question["batch"], "items": answers}), flush=True)


def run(evoxo, directory, search, replicas, workers, log=None):
    population, window = search
    file = pathlib.Path(directory) / "slow.toml"
    settings = f'problem = "program:slow"\nalgorithm = "ga"\nevaluations = {EVALUATIONS}\npopulation = {population}\n'
    settings += f"window = {window}\n"
    file.write_text(f'experiment = "evolve"\nseed = 1\nreplicas = {replicas}\n[settings]\n{settings}')
    out = pathlib.Path(directory) / f"out-{population}-{window}-{replicas}-{workers}"
    program = f"slow={sys.executable} {pathlib.Path(__file__).resolve()} serve"
    command = [evoxo, "run", str(file), "--out", str(out), "--workers", str(workers), "--program", program]
    environment = {name: value for name, value in os.environ.items() if name != "SLOW_LOG"}
    if log:
        environment["SLOW_LOG"] = str(log)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    return json.loads((out / "result.json").read_text())


def main():
    evoxo, slots = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 16
    print(f"{'search':<36}{'seconds':>8}{'busy':>7}{'cost':>9}  digest of one thread")
    with tempfile.TemporaryDirectory() as directory:
        for search in SEARCHES:
            log = pathlib.Path(directory) / "log"
            log.unlink(missing_ok=True)
            many = run(evoxo, directory, search, 1, slots, log)
            times = [tuple(map(float, line.split())) for line in log.read_text().splitlines()]
            elapsed = max(end for _, end in times) - min(began for began, _ in times)
            busy = sum(end - began for began, end in times) / elapsed / slots
            same = "the same" if many["digest"] == run(evoxo, directory, search, 1, 0)["digest"] else "ANOTHER"
            cost = statistics.median(run(evoxo, directory, search, 20, 2)["arms"][0]["best"])
            population, window = search
            name = f"population {population}, " + (f"window {window}" if window else "generations")
            print(f"{name:<36}{elapsed:>8.1f}{busy:>7.0%}{cost:>9.4f}  {same}", flush=True)


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
