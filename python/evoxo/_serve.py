"""Serves a problem, algorithms, or both: the conversation of a program with the worker that has started it."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from ._algorithm import batch, versions
from ._channel import VERSION, Channel
from ._declaration import Answer, WrongAnswer

if TYPE_CHECKING:
    from ._problem import Problem

LINE_BYTES_MAX = 16 * 1024 * 1024
"""The most bytes of a line, with its line break."""

ALONE_S = 60
"""For how many seconds the process goes on computing after its worker has gone."""


class _Stop(Exception):
    """The conversation cannot go on; the text says why."""


def introduction(name: str, problem: Optional[Problem]) -> Dict[str, Any]:
    """The first line of a program: its problem, if it has one, and the algorithms of this process."""
    line = {"evoxo": int(VERSION), "name": name} if problem is None else problem.introduction()
    return {**line, "algorithms": versions()} if versions() else line


def serve(name: str, problem: Optional[Problem], channel: Channel) -> int:
    """Answers requests until the input ends. Returns the exit status: 0, or 1 after a sentence on standard error.

    name: the name of the program, which is that of its problem if it has one.
    """
    # Ctrl-C on a terminal reaches this program too, but the worker decides when it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        if channel.version != VERSION:
            theirs = channel.version
            raise _Stop(f"the worker uses version {theirs} of the protocol, but this package uses version {VERSION}")
        threading.Thread(target=_end_with_worker, args=(name, channel), daemon=True).start()
        _write(channel, introduction(name, problem))
        while True:
            request = _read(channel)
            if request is None:
                return 0
            if request["items"] is None:
                _write(channel, {"batch": request["batch"], **_batch(request["ask"])})
            else:
                _write(channel, {"batch": request["batch"], "items": _answers(problem, request["items"])})
    except _Stop as stop:
        print(f"{name}: {stop}", file=sys.stderr)
        return 1


def _end_with_worker(name: str, channel: Channel) -> None:
    """Ends the process some time after its worker has gone. A function that never returns would keep it alive."""
    poll = select.poll()
    poll.register(channel.reader, select.POLLHUP)
    while not any(event & select.POLLHUP for _, event in poll.poll()):
        pass
    time.sleep(ALONE_S)
    try:
        print(f"{name}: the worker is gone, and the last answer took more than {ALONE_S} s", file=sys.stderr, flush=True)
    finally:  # Standard error is closed too if the worker has read it.
        os._exit(1)


def _read(channel: Channel) -> Optional[Dict[str, Any]]:
    """The next request, or None at the end of the input."""
    line = channel.reader.readline(LINE_BYTES_MAX + 1)
    if not line:
        return None
    if len(line) > LINE_BYTES_MAX:
        raise _Stop(f"the worker sent a line of more than {LINE_BYTES_MAX} bytes")
    try:
        request = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise _Stop(f"the worker sent a line that is not JSON: {line[:200]!r}") from None
    said = request if isinstance(request, dict) else {}
    number, items, asked = said.get("batch"), said.get("items"), said.get("ask")
    if type(number) is not int or not (isinstance(items, list) if asked is None else isinstance(asked, dict)):
        raise _Stop(f"the worker sent a line that is not a request with batch and items: {line[:200]!r}")
    return {"batch": number, "items": items if asked is None else None, "ask": asked}


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _batch(asked: Dict[str, Any]) -> Dict[str, Any]:
    try:
        return batch(asked)
    except ValueError as error:
        raise _Stop(str(error)) from None


def _answers(problem: Optional[Problem], items: List[Any]) -> List[Answer]:
    if problem is None:
        raise _Stop("the worker sent candidates, but this program has only algorithms")
    answers = []
    for item in items:
        try:
            candidate, genes, seed = problem.read(item)
        except ValueError as error:
            raise _Stop(f"the worker sent a candidate that does not fit: {error}") from None
        try:
            answers.append(problem.evaluate(candidate, genes, seed))
        except WrongAnswer as wrong:
            raise _Stop(str(wrong)) from None
        except (Exception, SystemExit) as error:  # A library that exits would end the program silently.
            traceback.print_exc()
            raise _Stop(f"candidate {candidate} ended the program: {type(error).__name__}: {error}") from None
    return answers


def _write(channel: Channel, line: Dict[str, Any]) -> None:
    rest = memoryview(json.dumps(line, allow_nan=False, separators=(",", ":")).encode() + b"\n")
    try:
        while rest:
            rest = rest[channel.writer.write(rest) :]
    except BrokenPipeError:
        raise _Stop("the worker is gone") from None
