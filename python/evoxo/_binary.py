"""Where the program evoxo is."""

from __future__ import annotations

import os
import shutil

PROGRAM = "EVOXO"
"""The environment variable with the path of the program evoxo; without it, evoxo is looked for on the PATH."""


def binary() -> str:
    """The path of the program evoxo. Raises FileNotFoundError with a sentence."""
    named = os.environ.get(PROGRAM)
    found = shutil.which(named or "evoxo")
    if found is None:
        where = f"{PROGRAM}={named} names no program" if named else "there is no program evoxo on the PATH"
        raise FileNotFoundError(f"{where}: build evoxo, and set {PROGRAM}=/path/to/evoxo")
    return found
