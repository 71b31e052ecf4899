"""The connection between the programs that workers have started for `evoxo.ask` and the caller who answers."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import socket
import tempfile
import threading
from collections import OrderedDict, deque
from typing import Any, Deque, Dict, List, NamedTuple, Optional, Tuple, Union

from ._declaration import Answer, Declaration, Failed, Numbers, Result
from ._genome import Genes
from ._journal import Journal, key_of

LINE_BYTES_MAX = 16 * 1024 * 1024
"""The most bytes of a line, with its line break."""

REMEMBERED_MAX = 100_000
"""The most answers that are kept in case candidates are requested again. The oldest are dropped first."""

SOCKET_PATH_MAX = 90
"""The longest path of a socket; some systems reject longer ones."""

SEND_SECONDS = 60.0
"""How long to wait for a program to take an answer before giving it up."""


class Candidate:
    """A candidate to be evaluated. It needs one `tell` or `fail`."""

    def __init__(self, name: str, seed: int, genes: Union[Genes, Dict[str, Genes]], key: str, link: Link) -> None:
        self.id = name
        """The candidate's name: the arm, the replica and its number in the search."""
        self.seed = seed
        """A whole number below 2**64, for random numbers that the evaluation needs."""
        self.genes = genes
        """The genes as a fitness function gets them; a dict by name if the genome was declared as a dict, with None for parts
        that are not there."""
        self._key = key
        self._link = link

    def __repr__(self) -> str:
        return f"<evoxo candidate {self.id}>"

    @property
    def told(self) -> bool:
        """Whether the candidate has an answer."""
        return self._link.has(self._key)

    def tell(self, f: Numbers, g: Numbers = (), m: Numbers = ()) -> None:
        """Gives the candidate its value: objectives, constraints and measures, as in `Result`. With a value that is not
        finite, the candidate fails.

        Raises ValueError if the candidate already has an answer, or the numbers do not fit the declaration of the problem.
        """
        self._link.tell([(self, self._link.declaration.answer(self.id, Result(f, g, m)))])

    def fail(self, why: str = "") -> None:
        """Marks the candidate as having no value; the setting `on_failure` says what follows. Raises ValueError as `tell` does."""
        self._link.tell([(self, self._link.declaration.failed(why))])


class Batch(List[Candidate]):
    """Candidates that can be evaluated in any order."""

    def tell(self, values: Any) -> None:
        """Gives all candidates their values, in order: for each a number, a sequence of numbers (with several objectives),
        a `Result`, or an instance of `Failed`.

        Raises ValueError, and takes none of the values, if their number is wrong, one does not fit the declaration of the
        problem, or a candidate already has an answer.
        """
        given = list(values)
        if len(given) != len(self):
            raise ValueError(f"there are {len(given)} values for {len(self)} candidates")
        if not self:
            return
        link = self[0]._link
        link.tell([(candidate, link.answer(candidate, value)) for candidate, value in zip(self, given)])


class _Request(NamedTuple):
    """A request of a program that waits for its answer."""

    batch: int
    keys: List[str]


class Link:
    """Listens for the programs of one `evoxo.ask`, in its own thread."""

    def __init__(self, declaration: Declaration, journal: Optional[Journal]) -> None:
        self.declaration = declaration
        self.changed = threading.Condition()
        """Notified when there is a batch, and when the run cannot go on."""
        self.trouble: Optional[str] = None
        """Why the run cannot go on."""
        self._journal = journal
        self._closed = False
        self._answers: OrderedDict[str, Answer] = OrderedDict(journal.answers if journal else {})
        self._open: Dict[str, Candidate] = {}
        self._fresh: Deque[Batch] = deque()
        self._requests: Dict[socket.socket, _Request] = {}
        self._lines: Dict[socket.socket, bytearray] = {}
        self._directory, self.path, self._listener = _listen()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        # Wakes the thread at the end.
        self._ending, self._end = socket.socketpair()
        self._selector.register(self._ending, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="evoxo.ask", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Closes all connections. The programs end, and there are no further batches."""
        with self.changed:
            self._closed = True
        self._end.close()
        self._thread.join()
        for one in (self._listener, self._ending, *self._lines):
            one.close()
        self._selector.close()
        shutil.rmtree(self._directory, ignore_errors=True)
        if self._journal:
            with self.changed:
                self._journal.close()

    def take(self) -> Optional[Batch]:
        """The next batch, if there is one. The caller must hold `changed`."""
        return self._fresh.popleft() if self._fresh else None

    def something(self) -> bool:
        """Whether there is a batch, or the run cannot go on. The caller must hold `changed`."""
        return bool(self._fresh) or self.trouble is not None

    def has(self, key: str) -> bool:
        """Whether a candidate has an answer."""
        with self.changed:
            return key in self._answers

    def answer(self, candidate: Candidate, value: Any) -> Answer:
        """The answer for a candidate with this value. Raises ValueError if the value does not fit."""
        if isinstance(value, Failed):
            return self.declaration.failed(str(value))
        return self.declaration.answer(candidate.id, value)

    def tell(self, answers: List[Tuple[Candidate, Answer]]) -> None:
        """Takes answers, and replies to programs whose requests are complete. Raises ValueError if a candidate already has an answer."""
        with self.changed:
            for candidate, _ in answers:
                if candidate._key in self._answers:
                    raise ValueError(f"candidate {candidate.id} already has an answer")
            # If the disk is full, all of them can be told again: a line that is in the journal twice counts once.
            if self._journal:
                for candidate, answer in answers:
                    self._journal.add(candidate._key, answer)
            for candidate, answer in answers:
                self._answers[candidate._key] = answer
                self._open.pop(candidate._key, None)
            self._reply()
            # With a journal, all answers are kept.
            while len(self._answers) > REMEMBERED_MAX and not self._journal:
                self._answers.popitem(last=False)

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._ending:
                    return
                with self.changed:
                    if key.fileobj is self._listener:
                        self._accept()
                    else:
                        assert isinstance(key.fileobj, socket.socket)
                        self._receive(key.fileobj)

    def _accept(self) -> None:
        try:
            program, _ = self._listener.accept()
        except OSError:
            return  # The program is gone again.
        program.settimeout(SEND_SECONDS)
        self._lines[program] = bytearray()
        self._selector.register(program, selectors.EVENT_READ)
        # The caller would have to evaluate the fixed candidates of a signature.
        self._send(program, {**self.declaration.introduction(), "canned": 0})

    def _receive(self, program: socket.socket) -> None:
        try:
            received = program.recv(1 << 18)
        except OSError:
            received = b""
        if not received:
            return self._drop(program)
        lines = self._lines[program]
        begin = len(lines)
        lines += received
        end = lines.find(b"\n", begin)
        if end < 0 and len(lines) <= LINE_BYTES_MAX:
            return
        try:
            if end < 0 or end > LINE_BYTES_MAX:
                raise ValueError(f"a batch has more than {LINE_BYTES_MAX} bytes: set a smaller number of candidates with batch=")
            line = bytes(lines[:end])
            del lines[: end + 1]
            self._ask(program, line)
        except ValueError as error:
            self.trouble = str(error)
            self._drop(program)
            self.changed.notify_all()

    def _ask(self, program: socket.socket, line: bytes) -> None:
        """Takes a request. Raises ValueError if it is not valid."""
        request = json.loads(line)
        batch, items = (request.get("batch"), request.get("items")) if isinstance(request, dict) else (None, None)
        if type(batch) is not int or not isinstance(items, list) or program in self._requests:
            raise ValueError(f"a worker sent a line that is not a request with batch and items: {line[:200]!r}")
        keys, fresh = [], Batch()
        for item in items:
            name, genes, seed = self.declaration.read(item)
            key = key_of(self.declaration, item)
            keys.append(key)
            # A candidate can be requested again: its worker was killed, or another worker has a copy of its task.
            if key not in self._answers and key not in self._open:
                whole = next(iter(genes.values())) if self.declaration.single else genes
                self._open[key] = Candidate(name, seed, whole, key, self)
                fresh.append(self._open[key])
        self._requests[program] = _Request(batch, keys)
        if fresh:
            self._fresh.append(fresh)
            self.changed.notify_all()
        self._reply()

    def _reply(self) -> None:
        """Answers all requests whose candidates have answers."""
        for program, request in list(self._requests.items()):
            if all(key in self._answers for key in request.keys):
                del self._requests[program]
                answers = [self._answers[key] for key in request.keys]
                self._send(program, {"batch": request.batch, "items": answers})

    def _send(self, program: socket.socket, line: Dict[str, Any]) -> None:
        try:
            program.sendall(json.dumps(line, allow_nan=False, separators=(",", ":")).encode() + b"\n")
        except OSError:
            # The program is gone or takes nothing. The answers are kept for the next request, and the thread sees the shutdown.
            with contextlib.suppress(OSError):
                program.shutdown(socket.SHUT_RDWR)

    def _drop(self, program: socket.socket) -> None:
        self._selector.unregister(program)
        program.close()
        del self._lines[program]
        request = self._requests.pop(program, None)
        if request is None:
            return
        # Candidates that the caller does not have yet and that no other program waits for need not be evaluated.
        wanted = {key for other in self._requests.values() for key in other.keys}
        for batch in list(self._fresh):
            for candidate in [one for one in batch if one._key not in wanted]:
                batch.remove(candidate)
                del self._open[candidate._key]
            if not batch:
                self._fresh.remove(batch)


def _listen() -> Tuple[str, str, socket.socket]:
    """A directory that only this user can enter, the path of a socket in it, and the listening socket."""
    directory = tempfile.mkdtemp(prefix="evoxo-")
    if len(os.path.join(directory, "ask")) > SOCKET_PATH_MAX:
        os.rmdir(directory)
        directory = tempfile.mkdtemp(prefix="evoxo-", dir="/tmp")
    path = os.path.join(directory, "ask")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen()
    listener.setblocking(False)
    return directory, path, listener
