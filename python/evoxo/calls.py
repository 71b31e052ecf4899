"""``python3 -m evoxo.calls FILE.py``: the program that serves a file's functions to a worker, for `evoxo.Executor`.

    evoxo worker --coordinator HOST:PORT --program model="python3 -m evoxo.calls model.py"
"""

from __future__ import annotations

import argparse
import shlex
import sys

from ._channel import VERSION, claimed
from ._functions import serve_file, target


def main() -> None:
    """Serves the worker that has started this process. A person is told how to start a worker with this program."""
    parser = argparse.ArgumentParser(prog="python3 -m evoxo.calls", description="Serves a file's functions for evoxo.Executor.")
    parser.add_argument("target", metavar="FILE.py", help="or the name of a module")
    parser.add_argument("--name", help="name of the program; default: that of the file")
    parser.add_argument("--version", help="version of the functions; default: a hash of the file's source")
    typed = parser.parse_args()
    try:
        served = target(typed.target, typed.name, typed.version)
    except ValueError as error:
        sys.exit(f"error: {error}")
    channel = claimed()
    if channel is None:
        command = shlex.join(["python3", "-m", "evoxo.calls", *sys.argv[1:]])
        print(f"start workers with --program {served.name}={shlex.quote(command)}")
        return
    if channel.version != VERSION:
        sys.exit(f"the worker uses version {channel.version} of the protocol, but this package uses version {VERSION}")
    serve_file(served, channel)


if __name__ == "__main__":
    main()
