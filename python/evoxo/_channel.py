"""The channel between a worker and this process: its standard input and output, kept away from everything else."""

from __future__ import annotations

import os
import sys
from io import FileIO
from typing import BinaryIO, NamedTuple, Optional

VARIABLE = "EVOXO_PROTOCOL"
"""The environment variable by which a worker says that it has started this process. Its value is the version."""

VERSION = "1"
"""The version of the protocol that this package speaks."""


class Channel(NamedTuple):
    """What connects this process with its worker."""

    version: str
    """The version of the protocol that the worker speaks."""
    reader: BinaryIO
    """What was standard input."""
    writer: FileIO
    """What was standard output, not buffered: what is left in a buffer would be written again at the end."""


_channel: Optional[Channel] = None


def claim() -> None:
    """Takes standard input and output for the protocol, if a worker has started this process.

    Afterwards descriptor 1 is standard error, for C libraries and child processes too, and descriptor 0 is empty, so
    that a child process cannot eat a request. Neither the variable nor the channel is passed on to child processes.
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
    # What was printed before this package was imported is still in the buffer: it goes to standard error now.
    sys.stdout.flush()
    sys.stdout = sys.stderr


def claimed() -> Optional[Channel]:
    """The channel to the worker; None if a person has started this process."""
    return _channel
