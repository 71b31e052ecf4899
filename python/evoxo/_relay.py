"""The program that evoxo starts for `evoxo.ask`: it passes lines between a worker and the process of the caller.

It is started by the path of this file, with the path of the caller's socket. It imports nothing of this package, so it
starts quickly and works in any directory.
"""

import os
import socket
import sys
import threading

CHUNK_BYTES = 1 << 16


def _copy(source: int, target: int) -> None:
    """Copies until the source ends or the target is gone."""
    try:
        while True:
            rest = memoryview(os.read(source, CHUNK_BYTES))
            if not rest:
                return
            while rest:
                rest = rest[os.write(target, rest) :]
    except OSError:
        pass


def _end(status: int, sentence: str = "") -> None:
    """Ends the process, even if its threads are blocked."""
    os.write(2, sentence.encode())
    os._exit(status)


def main(path: str) -> None:
    """Connects to the caller and copies in both directions until one side ends."""
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        caller.connect(path)
    except OSError:
        _end(1, "the process that called evoxo.ask has ended\n")

    def from_worker() -> None:
        _copy(0, caller.fileno())
        _end(0)

    threading.Thread(target=from_worker, daemon=True).start()
    _copy(caller.fileno(), 1)
    _end(1, "the process that called evoxo.ask has closed the connection\n")


if __name__ == "__main__":
    main(sys.argv[1])
