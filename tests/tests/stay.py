"""Runs `evoxo run` in a terminal, with and without its page open, and ends it in each way; then `evoxo view`.

Arguments: the program and an experiment file. Every failure is an AssertionError.
"""

import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

PATIENCE_S = 120


class Terminal:
    """A terminal with the program in it."""

    def __init__(self, *words):
        self.seen = ""
        self.process, self.master = pty.fork()
        if self.process == 0:
            os.execv(words[0], list(words))

    def wait_for(self, pattern):
        """Waits until the pattern has been printed. Returns the match; None if the program has ended."""
        start = time.monotonic()
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() - start < PATIENCE_S, (pattern, self.seen[-3000:])
            if not self.read():
                return None
        return found

    def read(self):
        """Whether the program may print more."""
        if select.select([self.master], [], [], 0.1)[0]:
            try:
                read = os.read(self.master, 65536)
            except OSError:
                return False
            self.seen += read.decode("utf-8", "replace")
        return True

    def press(self, keys):
        os.write(self.master, keys)

    def end(self):
        """Waits for the end. Returns the exit status."""
        start = time.monotonic()
        while self.read():
            assert time.monotonic() - start < PATIENCE_S, self.seen[-3000:]
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


def get(address, path):
    with urllib.request.urlopen(address + path, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def run(program, file, out, looks):
    """Runs to the end, with its page open if `looks`. Returns the terminal, the page's address and the viewer."""
    # Long enough that the page can be opened before the end.
    more = ["--set", "evaluations=50000"] if looks else []
    terminal = Terminal(program, "run", file, "--workers", "1", "--out", out, *more)
    address = terminal.wait_for(r"watch it at (http://[0-9.:]+)/")[1]
    viewer = urllib.request.urlopen(address + "/api/events") if looks else None
    assert terminal.wait_for("results are in"), terminal.seen
    return terminal, address, viewer


def main(program, file):
    # Nobody has the page open, so the command ends at once.
    terminal, _, _ = run(program, file, "unseen", looks=False)
    assert terminal.end() == 0 and "the page stays" not in terminal.seen, terminal.seen
    assert "view unseen` opens the page again" in terminal.seen, terminal.seen

    for out in ("closed", "interrupted"):
        terminal, address, viewer = run(program, file, out, looks=True)
        assert terminal.wait_for("the page stays available at"), terminal.seen
        # Results are printed first, and the page says that the run is finished.
        assert terminal.seen.index("results are in") < terminal.seen.index("the page stays"), terminal.seen
        assert [one["state"] for one in get(address, "/api/runs")["runs"]] == ["finished"]
        assert get(address, "/api/seen") == {"seen": True}
        viewer.close() if out == "closed" else terminal.press(b"\x03")
        assert terminal.end() == 0, terminal.seen

    # If the output is not a terminal, the command does not wait, whoever has the page open.
    for more in ((), ("--no-page",)):
        words = [program, "run", file, "--workers", "1", "--out", f"piped{len(more)}", *more]
        piped = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S)
        assert piped.returncode == 0 and "opens the page again" not in piped.stdout, piped.stdout

    view = Terminal(program, "view", ".")
    address = view.wait_for(r"the page is at (http://[0-9.:]+)/")[1]
    runs = {one["name"]: one["state"] for one in get(address, "/api/runs")["runs"]}
    assert set(runs) >= {"unseen", "closed", "interrupted"} and set(runs.values()) == {"finished"}, runs
    assert get(address, "/api/runs/closed/report")["conclusion"], "its report is there"
    os.kill(view.process, signal.SIGINT)
    assert view.end() == 0, view.seen
    assert not list(pathlib.Path(tempfile.gettempdir()).glob(f"evoxo-view-{view.process}.*"))


main(*sys.argv[1:])
