"""The processes of this machine that compute the calls of an `Executor`."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional

from ._functions import LINE_BYTES_MAX

BATCH_SECONDS = 0.002
"""How long a batch of calls should take. Calls that take longer go one by one."""

AHEAD_SECONDS = 0.05
"""Calls that take longer than this are not sent ahead of the answers before them, so that they do not wait for a slow one."""

BATCH_MAX = 1000
"""The most calls of a batch."""

BATCH_BYTES_MAX = 8 << 20
"""The most bytes of a batch's calls, and of its answers, unless it is only one."""

AHEAD_BYTES_MAX = 32 << 10
"""The most bytes of a batch that is sent ahead: it must fit into a pipe while the process writes."""

LOSSES_MAX = 3
"""How many processes a call may end before it counts as failed."""

START_SECONDS = 120.0
"""How long a process may take to import the file."""


class CallFailed(RuntimeError):
    """A call has no value: its process ended, or raised an error of a type that this process does not know."""


class Call:
    """A call that waits for its answer."""

    __slots__ = ("alone", "future", "key", "losses", "name", "started", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.key = b""
        self.future: "Future[Any]" = Future()
        self.alone = False
        self.losses = 0
        self.started = False

    def starts(self) -> bool:
        """Whether the call is to be computed: it is not cancelled, and cannot be any more."""
        self.started = self.started or self.future.set_running_or_notify_cancel()
        return self.started

    def cancel(self) -> None:
        """Cancels a call that has not begun, and tells those who wait for it."""
        self.future.cancel()
        self.future.set_running_or_notify_cancel()


Took = Callable[[List[Call], List[Dict[str, Any]]], None]


class _Sent(NamedTuple):
    number: int
    calls: List[Call]
    at: float


class _Killed(CallFailed):
    """A process was killed before it served: somebody else did that, or memory is short."""


class _Lost(Exception):
    """A process gives no more answers; the text says why."""


class _Stuck(Exception):
    """A process has not answered in time."""


class _Process:
    """A process that serves the functions, from its start to its end."""

    def __init__(self, command: List[str], environment: Dict[str, str], introduction: Dict[str, Any]) -> None:
        pipe = subprocess.PIPE
        own = {**environment, "EVOXO_PROTOCOL": "1"}
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=own, bufsize=0)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input = self._process.stdin.fileno()
        self._output = self._process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._output, select.POLLIN)
        self._rest = bytearray()
        try:
            said = self.line(time.monotonic() + START_SECONDS)
        except (_Lost, _Stuck) as why:
            self.end()
            killed = self._process.returncode == -signal.SIGKILL and isinstance(why, _Lost)
            failed = f"the file cannot be imported by a process, which {why}; see standard error"
            raise (_Killed if killed else CallFailed)(failed) from None
        if said != introduction:
            self.end()
            raise CallFailed("the file has changed since the Executor was made: start the script again")

    def send(self, line: Dict[str, Any]) -> None:
        rest = memoryview(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._input, rest) :]
        except OSError:
            pass  # The process has ended, which its output will tell.

    def line(self, deadline: float) -> Any:
        """The next line. Raises _Lost or _Stuck."""
        begin = 0
        while True:
            end = self._rest.find(b"\n", begin)
            if end >= 0:
                line = bytes(self._rest[:end])
                del self._rest[: end + 1]
                try:
                    return json.loads(line)
                except ValueError:
                    raise _Lost("wrote a line that is not JSON") from None
            begin = len(self._rest)
            if begin > LINE_BYTES_MAX:
                raise _Lost("wrote too long a line")
            left = deadline - time.monotonic()
            if left <= 0 or not self._poll.poll(1000 * left):
                if time.monotonic() < deadline:
                    continue
                raise _Stuck("did not answer in time")
            more = os.read(self._output, 1 << 18)
            if not more:
                raise _Lost(self._ended())
            self._rest += more

    def _ended(self) -> str:
        try:
            status = self._process.wait(1)
        except subprocess.TimeoutExpired:
            return "closed its output"
        return f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"

    def end(self) -> None:
        """Ends the process, if necessary by force."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class Pool:
    """Processes, each with a thread that gives it calls."""

    def __init__(
        self,
        command: List[str],
        environment: Dict[str, str],
        introduction: Dict[str, Any],
        workers: int,
        timeout: float,
        answer_bytes: int,
        took: Took,
    ) -> None:
        self._start = (command, environment, introduction)
        self._workers = workers
        self._timeout = timeout
        self._answer_bytes = answer_bytes
        self._took = took
        self._queue: Deque[Call] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._seconds: Optional[float] = None
        """How long a call takes, as an average of the last ones."""
        self._trouble: Optional[str] = None
        self._threads = [threading.Thread(target=self._work, name="evoxo.Executor", daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    most = BATCH_BYTES_MAX
    """The most bytes of a call as text."""

    def add(self, call: Call) -> None:
        """Takes a call."""
        with self._changed:
            self._queue.append(call)
            self._changed.notify()

    def close(self, wait: bool, cancel: bool) -> None:
        """Ends the processes after the calls that were added, or, with `cancel`, after those that have begun."""
        with self._changed:
            self._closed = True
            cancelled = [call for call in self._queue if cancel and not call.started]
            for call in cancelled:
                self._queue.remove(call)
            self._changed.notify_all()
        for call in cancelled:
            call.cancel()
        if wait:
            for thread in self._threads:
                thread.join()

    def _take(self, ahead: bool) -> List[Call]:
        """The next calls. Waits for one unless it looks ahead; empty at the end."""
        with self._changed:
            while True:
                while not self._queue:
                    if self._closed or ahead:
                        return []
                    self._changed.wait()
                seconds = self._seconds
                if ahead and (seconds is None or seconds > AHEAD_SECONDS or len(self._queue) < self._workers):
                    return []
                calls = self._batch(AHEAD_BYTES_MAX if ahead else BATCH_BYTES_MAX, seconds)
                if calls or ahead:
                    return calls

    def _batch(self, bytes_max: int, seconds: Optional[float]) -> List[Call]:
        count = 1
        if seconds is not None:
            share = -(-len(self._queue) // (2 * self._workers))
            answers = BATCH_BYTES_MAX // self._answer_bytes
            count = max(1, min(share, answers, BATCH_MAX, int(BATCH_SECONDS / max(seconds, 1e-6))))
        calls: List[Call] = []
        size = 0
        while self._queue and len(calls) < count:
            call = self._queue[0]
            size += len(call.text)
            if calls and (call.alone or size > bytes_max) or (size > bytes_max == AHEAD_BYTES_MAX):
                break
            self._queue.popleft()
            if call.starts():
                calls.append(call)
                if call.alone:
                    break
        return calls

    def _work(self) -> None:
        process: Optional[_Process] = None
        sent: Deque[_Sent] = deque()
        number = 0
        last = 0.0
        while True:
            calls = self._take(ahead=bool(sent)) if len(sent) < 2 else []
            if not calls and not sent:
                break
            if calls:
                try:
                    process = process or self._begin()
                except (CallFailed, OSError) as error:
                    self._fail(calls, str(error))
                    continue
                number += 1
                texts = [call.text for call in calls]
                process.send({"batch": number, "answer_bytes": self._answer_bytes, "calls": texts})
                sent.append(_Sent(number, calls, time.monotonic()))
                if len(sent) == 1:
                    continue
            assert process is not None
            try:
                last = self._receive(process, sent, last)
            except (_Lost, _Stuck) as why:
                process.end()
                process = None
                self._lose(sent, why)
                sent.clear()
        if process is not None:
            process.end()

    def _begin(self) -> _Process:
        if self._trouble is not None:
            raise CallFailed(self._trouble)
        for attempt in range(LOSSES_MAX):
            try:
                return _Process(*self._start)
            except CallFailed as error:
                if not isinstance(error, _Killed) or attempt + 1 == LOSSES_MAX:
                    self._trouble = str(error)
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _receive(self, process: _Process, sent: Deque[_Sent], last: float) -> float:
        """Takes the answer to the first batch. Returns the time."""
        number, calls, at = sent[0]
        begun = max(at, last)
        answer = process.line(begun + self._timeout * len(calls))
        returned = answer.get("returned") if isinstance(answer, dict) and answer.get("batch") == number else None
        if not isinstance(returned, list) or len(returned) != len(calls):
            raise _Lost("gave an answer that does not fit the calls")
        sent.popleft()
        now = time.monotonic()
        seconds = (now - begun) / len(calls)
        self._seconds = seconds if self._seconds is None else 0.8 * self._seconds + 0.2 * seconds
        self._took(calls, returned)
        return now

    def _lose(self, sent: Deque[_Sent], why: Exception) -> None:
        """Gives the calls of an ended process to others. Only the first batch can have ended it."""
        again: List[Call] = []
        for place, (_, calls, _) in enumerate(sent):
            if place == 0 and len(calls) == 1:
                [call] = calls
                call.losses += 1
                if isinstance(why, _Stuck):
                    late = f"{call.name} took more than {self._timeout:g} s and was stopped: give the Executor a greater timeout="
                    call.future.set_exception(TimeoutError(late))
                    continue
                if call.losses >= LOSSES_MAX:
                    self._fail(calls, f"{call.name} ended {LOSSES_MAX} processes with the same arguments; the last one {why}")
                    continue
            for call in calls:
                call.alone = call.alone or place == 0
            again += calls
        with self._changed:
            self._queue.extendleft(reversed(again))
            self._changed.notify_all()

    @staticmethod
    def _fail(calls: List[Call], why: str) -> None:
        for call in calls:
            call.future.set_exception(CallFailed(why))
