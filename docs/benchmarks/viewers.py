"""What 200 open pages, half of them stalled, cost a run.

    export PATH=$PWD/../../target/release:$PATH
    python3 viewers.py [PAIRS]

There are two runs: one of tasks that do nothing, so that the coordinator is the limit, and one that evolves tables. Each is
measured in many short turns without and with the pages, on one coordinator that is never restarted: processor time per 1,000
tasks, of the coordinator alone and with the worker, and tasks a second. Ratios compare neighbouring turns. The results are
medians with 95 % bootstrap intervals over turns.

Other load on the machine changes tasks a second from turn to turn, but processor time far less. A rate cannot fall by more than
the cost of a task rises: the coordinator's time if the coordinator is the limit; that of both if all wait for the same cores.

A page that is not stalled does what the page of a run does in a browser: it reads the events, and asks for the curves every
2.5 s. A stalled one opens the events and reads nothing. The pages are read on the same machine: their own processor time is
printed, and lowers a run's rate where cores are few, which the coordinator's processor time for a task does not show.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, List, Optional, Tuple

import common

PAGES = 200
MEASURED_S, SETTLING_S = 3.0, 1.0
ASK_EVERY_S = 2.5
"""As in the page's curves.js."""
RUNS = {
    "dispatch": """experiment = "dispatch"
replicas = 4
[settings]
rounds = 1000000
tasks = 1000
payload_bytes = 1024
""",
    "invincible": """experiment = "invincible"
replicas = 4
[settings]
population = 1000
generations = 100000
slice = 20
[arms.one]
penalty = 1
[arms.two]
penalty = 6.5
""",
}


@dataclass
class Turn:
    rate: float
    """Tasks a second."""
    milliseconds: float
    """Milliseconds of the coordinator's processor time per 1,000 tasks."""
    both: float
    """The same of the coordinator and the worker."""
    cores: float
    """The coordinator's processor time a second."""
    reads: float
    """Events and curves read a second."""
    pages: float
    """Cores used to read them."""


class Pages:
    """Open pages of a run."""

    def __init__(self, port: int, run: str) -> None:
        self.port, self.run, self.reads = port, run, 0
        self.tasks: List[asyncio.Task[None]] = []
        self.stalled: List[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Pages:
        for number in range(PAGES // 2):
            _, writer = await self.connect("/api/events", limit=1)
            self.stalled.append(writer)
            self.tasks.append(asyncio.create_task(self.read_events()))
            self.tasks.append(asyncio.create_task(self.ask(ASK_EVERY_S * number / (PAGES // 2))))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self.tasks:
            if task.done():
                task.result()
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for writer in self.stalled:
            writer.transport.abort()

    async def connect(self, path: str, limit: int = 1 << 20) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        # Bytes beyond twice the limit stay in the sockets, so such a reader stalls.
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=limit)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
        return reader, writer

    async def read_events(self) -> None:
        reader, writer = await self.connect("/api/events")
        try:
            while line := await reader.readline():
                self.reads += line.startswith(b"data: ")
        finally:
            writer.transport.abort()
        raise ConnectionError("a stream of events has ended")

    async def ask(self, later: float) -> None:
        """Requests curves. Data that the browser already has is not sent again."""
        await asyncio.sleep(later)
        path, tag = f"/api/runs/{self.run}/curves?column=0", ""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        try:
            while True:
                known = f"If-None-Match: {tag}\r\n" if tag else ""
                writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{known}\r\n".encode())
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
                status, fields = int(head[0].split()[1]), dict(line.split(": ", 1) for line in head[1:] if line)
                if status not in (200, 304):
                    raise ConnectionError(f"the curves were answered with {status}")
                if status == 200:
                    await reader.readexactly(int(fields["content-length"]))
                tag = fields["etag"]
                self.reads += 1
                await asyncio.sleep(ASK_EVERY_S)
        finally:
            writer.transport.abort()


def tasks_of(port: int, run: str) -> int:
    """The number of tasks computed so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/runs/{run}") as answer:
        found = json.load(answer)
    if found["state"] != "running":
        raise RuntimeError(f"the run should go on: {found}")
    return int(found["tasks_done"])


def processor_s(process: int) -> float:
    """The processor time of a process so far, on Linux."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def turn(port: int, coordinator: int, worker: int, run: str, pages: Optional[Pages]) -> Turn:
    look = lambda: (tasks_of(port, run), processor_s(coordinator), processor_s(worker), time.monotonic())
    await asyncio.sleep(SETTLING_S)
    # The request takes a moment, in which pages are read too.
    began = await asyncio.to_thread(look)
    read, own = pages.reads if pages else 0, time.process_time()
    await asyncio.sleep(MEASURED_S)
    pages_s, read_now = time.process_time() - own, pages.reads if pages else 0
    ended = await asyncio.to_thread(look)
    tasks, processor, workers, seconds = (now - then for now, then in zip(ended, began))
    reads, own_cores = (read_now - read) / seconds, pages_s / seconds
    each, of_both = (1e6 * spent / tasks for spent in (processor, processor + workers))
    return Turn(tasks / seconds, each, of_both, processor / seconds, reads, own_cores)


def with_interval(values: List[float], decimals: int) -> str:
    """The median with its 95 % interval."""
    middle, low, high = common.interval(values)
    return f"{middle:,.{decimals}f} ({low:,.{decimals}f} to {high:,.{decimals}f})"


def memory_mib(process: int) -> float:
    line = next(one for one in Path(f"/proc/{process}/status").read_text().splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


async def compare(name: str, pairs: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        words = ["evoxo-coordinator", "--listen", "127.0.0.1:0", "--announce", "--store", f"{directory}/store"]
        log = open(f"{directory}/log", "w")
        coordinator = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True)
        processes = [coordinator]
        try:
            assert coordinator.stdout
            port = int(coordinator.stdout.readline().rsplit(":", 1)[1])
            address = f"127.0.0.1:{port}"
            words = ["evoxo-worker", "--coordinator", address, "--slots", "1"]
            worker = subprocess.Popen(words, stderr=log)
            processes.append(worker)
            file = Path(directory) / f"{name}.toml"
            file.write_text(RUNS[name])
            subprocess.run(["evoxo", "submit", str(file), "--coordinator", address], check=True, capture_output=True)
            while tasks_of(port, name) == 0:
                time.sleep(0.1)
            without: List[Turn] = []
            viewed: List[Turn] = []
            for pair in range(pairs):
                # Without and with, then with and without: slow changes affect both alike.
                for open_pages in (pair % 2 == 1, pair % 2 == 0):
                    if open_pages:
                        async with Pages(port, name) as pages:
                            viewed.append(await turn(port, coordinator.pid, worker.pid, name, pages))
                    else:
                        without.append(await turn(port, coordinator.pid, worker.pid, name, None))
            print(f"{name}: {pairs} pairs of turns of {MEASURED_S:.0f} s")
            columns: List[Tuple[str, Callable[[Turn], float], int]] = [
                ("ms of the coordinator for 1,000 tasks", lambda turn: turn.milliseconds, 2),
                ("ms of coordinator and worker for 1,000 tasks", lambda turn: turn.both, 2),
                ("tasks a second", lambda turn: turn.rate, 0),
                ("% of a core for the coordinator", lambda turn: 100 * turn.cores, 1),
            ]
            for what, of, decimals in columns:
                ratios = with_interval([of(one) / of(other) for one, other in zip(viewed, without)], 3)
                none, all_pages = (with_interval([of(one) for one in turns], decimals) for turns in (without, viewed))
                print(f"  {what}: {none} without, {all_pages} with {PAGES} pages; ratio {ratios}")
            reads, cores = (sum(of) / pairs for of in ([it.reads for it in viewed], [it.pages for it in viewed]))
            print(f"  {reads:.0f} events and curves were read a second, by {100 * cores:.0f} % of a core")
            print(f"  the coordinator held {memory_mib(coordinator.pid):.0f} MiB at most", flush=True)
        finally:
            for process in processes:
                process.kill()
                process.wait()


if __name__ == "__main__":
    for run in RUNS:
        asyncio.run(compare(run, int(sys.argv[1]) if len(sys.argv) > 1 else 10))
