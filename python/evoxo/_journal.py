"""A file of answers, with a line for each candidate, so that nothing is asked again after a crash."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from pathlib import Path
from typing import Any, Dict, Union

from ._declaration import Answer, Declaration


def key_of(declaration: Declaration, item: Dict[str, Any]) -> str:
    """A hash of everything that a candidate's answer depends on: the problem, the seed and the genes."""
    said = [declaration.introduction(), item["seed"], item["genes"]]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


class Journal:
    """A file of answers by key, open for appending. Only one process may have it open."""

    def __init__(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Opens or creates the file. Raises ValueError if it is not a journal or is in use."""
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise ValueError(f"the journal {self.path} is in use by another process") from None
        self.answers: Dict[str, Answer] = {}
        """The answers that were in the file when it was opened."""
        try:
            self._read()
        except ValueError:
            self._file.close()
            raise

    def _read(self) -> None:
        self._file.seek(0)
        whole = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                # The process was killed while it wrote this line, so the candidate is asked again.
                self._file.truncate(whole)
                return
            whole += len(line)
            try:
                entry = json.loads(line)
                self.answers[entry["key"]] = dict(entry["answer"])
            except (ValueError, KeyError, TypeError):
                raise ValueError(f"{self.path}:{number} is not a line of a journal of evoxo.ask") from None

    def add(self, key: str, answer: Answer) -> None:
        """Adds an answer, which is on the disk when this returns. It also works after `close`, but raises ValueError if another
        process has the file open by then."""
        if self._file.closed:
            late = Journal(self.path)
            try:
                late.add(key, answer)
            finally:
                late.close()
            return
        line = memoryview(json.dumps({"key": key, "answer": answer}, allow_nan=False).encode() + b"\n")
        file = self._file.fileno()
        whole = os.fstat(file).st_size
        try:
            while line:
                line = line[os.write(file, line) :]
            os.fsync(file)
        except OSError:
            # Remove the incomplete line, or the next one would be appended to it.
            os.ftruncate(file, whole)
            raise

    def close(self) -> None:
        """Closes the file, so that other processes can open it."""
        self._file.close()
