"""Runs `evoxo top` in a terminal of 80 columns and 24 lines, presses keys, and ends it in each of three ways.

Arguments: the program, the coordinator's address and its process. Every failure is an AssertionError.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

PATIENCE_S = 60


class Terminal:
    """A terminal with the program in it."""

    def __init__(self, program, address):
        self.master, self.slave = pty.openpty()
        self.resize(24, 80)
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        self.process = os.fork()
        if self.process == 0:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for stream in range(3):
                os.dup2(self.slave, stream)
            os.execve(program, [program, "top", "--coordinator", address], {"TERM": "dumb", "NO_COLOR": "1"})

    def resize(self, lines, columns):
        """Resizes the terminal. The system signals the program (SIGWINCH)."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            self.seen += os.read(self.master, 65536)

    def wait_for(self, text):
        """Waits until the text has been drawn since the last call. Returns and forgets everything drawn so far."""
        start = time.monotonic()
        while text not in self.seen:
            assert time.monotonic() - start < PATIENCE_S, (text, self.seen[-3000:])
            self.read(0.1)
        drawn, self.seen = self.seen, b""
        return drawn

    def press(self, keys):
        os.write(self.master, keys)

    def end(self):
        """Waits for the end and returns the exit status. The terminal must then be restored."""
        start = time.monotonic()
        while True:
            self.read(0.05)
            ended, status = os.waitpid(self.process, os.WNOHANG)
            if ended:
                break
            assert time.monotonic() - start < PATIENCE_S, "it does not end"
        self.read(0.1)
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is not restored"
        assert b"\x1b[?1049l" in self.seen and b"\x1b[?25h" in self.seen, self.seen[-500:]
        os.close(self.master)
        os.close(self.slave)
        return os.waitstatus_to_exitcode(status)


def main():
    program, address, coordinator = sys.argv[1:]

    top = Terminal(program, address)
    first = top.wait_for(b"q quit")
    assert b"\x1b[?1049h" in first and b"RUNS by state" in first and b"WORKERS by name" in first, first
    assert b"long" in first and b"lab-a" in first and b"lab-b" in first, first
    styles = set(re.findall(rb"\x1b\[([0-9;]*)m", first))
    assert styles == {b"7", b"0"}, f"more than reverse: {styles}"
    top.press(b"s")
    top.wait_for(b"RUNS by name")
    # The terminal becomes narrower while the program draws, and wider while it shows a question.
    top.resize(12, 40)
    top.wait_for(b"RUNS by name")
    top.press(b"p")
    top.wait_for(b"pause long? y")
    top.resize(24, 60)
    top.wait_for(b"\x1b[24;1H")
    top.press(b"y")
    top.wait_for(b"long is paused")
    top.press(b"c")
    top.wait_for(b"continue long? y")
    top.press(b"y")
    top.wait_for(b"long continues")
    # Goes to the workers, and to the second one there.
    top.press(b"\t\x1b[B")
    top.press(b"d")
    asked = top.wait_for(b"let worker lab-b")
    assert b"lab-a (" not in asked, asked
    top.press(b"y")
    top.wait_for(b"lab-b is asked to leave")
    top.press(b"q")
    assert top.end() == 0

    top = Terminal(program, address)
    top.wait_for(b"q quit")
    top.press(b"\x03")
    assert top.end() == 0

    top = Terminal(program, address)
    top.wait_for(b"q quit")
    # Keys do not wait for a coordinator that does not answer. It is asked every second and may take ten.
    os.kill(int(coordinator), signal.SIGSTOP)
    time.sleep(2)
    top.press(b"s")
    sorted_anew = top.wait_for(b"RUNS by name")
    assert b"did not answer" not in sorted_anew, sorted_anew
    top.wait_for(b"did not answer")
    os.kill(int(coordinator), signal.SIGCONT)
    os.kill(top.process, signal.SIGTERM)
    assert top.end() == 0


main()
