"""The channel between a worker and this process: standard input and output, protected from all other code."""

from __future__ import annotations

import os
import sys
from io import FileIO
from typing import BinaryIO, NamedTuple, Optional

VARIABLE = "EVOXO_PROTOCOL"
"""The environment variable that a worker sets for a process that it starts. Its value is the version of the protocol."""

VERSION = "1"
"""The version of the protocol that this package uses."""


class Channel(NamedTuple):
    """Connects this process with its worker."""

    version: str
    """The version of the protocol that the worker uses."""
    reader: BinaryIO
    """The original standard input."""
    writer: FileIO
    """The original standard output. It is not buffered, because a forked child would write the rest of a buffer again."""


_channel: Optional[Channel] = None


def claim() -> None:
    """Reserves standard input and output for the protocol, if a worker has started this process.

    Afterwards descriptor 1 is standard error, for C libraries and child processes too, and descriptor 0 is empty, so a child
    process cannot read a request. Neither the variable nor the channel is passed on to child processes.
    """
    global _channel
    version = os.environ.pop(VARIABLE, None)
    if version is None:
        return
    _channel = Channel(version, os.fdopen(os.dup(0), "rb"), FileIO(os.dup(1), "wb"))
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    # The buffer may have text that was printed before this package was imported. It goes to standard error now.
    sys.stdout.flush()
    sys.stdout = sys.stderr


def claimed() -> Optional[Channel]:
    """The channel to the worker; None if a person has started this process."""
    return _channel
