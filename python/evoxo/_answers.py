"""The journal of an `Executor`: a file of what calls returned, so that a repeated script does not compute them again."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import Dict, List, Optional, Tuple

JOURNAL_BYTES_MAX = 1 << 30
"""The most bytes of a journal. Further answers are not kept."""


def key_of(call: str, number: int) -> bytes:
    """The key of the call with this text that is made for this time, counted from 0."""
    return hashlib.sha256(f"{number} {call}".encode()).digest()[:16]


class Answers:
    """A file of texts by key. A first line says whose they are. Only one process may have it open.

    What is written survives the end of this process, but the last answers may be lost if the machine loses power.
    """

    def __init__(self, path: Path, owner: str) -> None:
        """Opens or creates the file. Answers of another owner, a function or version, are dropped.

        Raises ValueError if the file is not a journal of calls, or is in use.
        """
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "a+b")
        self._places: Dict[bytes, Tuple[int, int]] = {}
        self._head = json.dumps({"evoxo-calls": 1, "of": owner}).encode() + b"\n"
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise ValueError(f"the journal {path} is in use by another process: give another journal=, or None") from None
        try:
            self._size = self._read()
        except ValueError:
            self._file.close()
            raise

    def _read(self) -> int:
        self._file.seek(0)
        head = self._file.readline()
        if not head.startswith(b'{"evoxo-calls": 1') and not self._head.startswith(head):
            raise ValueError(f"{self.path} is not a journal of an Executor: give another journal=")
        if head != self._head:
            self._file.truncate(0)
            self._file.write(self._head)
            self._file.flush()
            return len(self._head)
        size = len(head)
        for line in self._file:
            if not line.endswith(b"\n") or len(line) < 34:
                # The process was killed while it wrote this line, so the call is computed again.
                self._file.truncate(size)
                break
            try:
                self._places[bytes.fromhex(line[:32].decode())] = (size + 33, len(line) - 34)
            except ValueError:
                raise ValueError(f"{self.path} has a line that is not an answer: delete the file, or give another journal=") from None
            size += len(line)
        return size

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: bytes) -> Optional[str]:
        """The text with this key, if it is there."""
        place = self._places.get(key)
        return None if place is None else os.pread(self._file.fileno(), place[1], place[0]).decode()

    def add(self, entries: List[Tuple[bytes, str]]) -> None:
        """Adds texts. Beyond the most bytes of a journal, and if the disk is full, they are only not kept."""
        lines = b"".join(f"{key.hex()} {text}\n".encode() for key, text in entries)
        if not lines or self._file.closed:
            return
        try:
            if self._size + len(lines) > JOURNAL_BYTES_MAX:
                raise OSError(f"it has {self._size:,} bytes")
            rest = memoryview(lines)
            while rest:
                rest = rest[os.write(self._file.fileno(), rest) :]
        except OSError as error:
            os.ftruncate(self._file.fileno(), self._size)
            warnings.warn(f"the journal {self.path} takes no more answers: {error}", stacklevel=2)
            return
        for key, text in entries:
            self._places[key] = (self._size + 33, len(text))
            self._size += 34 + len(text)

    def close(self) -> None:
        """Closes the file, so that other processes can open it."""
        self._file.close()
