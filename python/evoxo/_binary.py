"""Finds the program evoxo."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path
from typing import Iterator

PROGRAM = "EVOXO"
"""The environment variable with the path of the program evoxo. It takes precedence over the wheel's program and the PATH."""


def _scripts() -> Iterator[Path]:
    """Where a wheel's programs can be: in this environment, in the user's, and next to packages that pip installed into a directory."""
    yield Path(sysconfig.get_path("scripts"))
    user = f"{os.name}_user"
    if user in sysconfig.get_scheme_names():
        yield Path(sysconfig.get_path("scripts", user))
    yield Path(__file__).parent.parent / "bin"


def binary() -> str:
    """The path of the program evoxo. Raises FileNotFoundError if there is none."""
    named = os.environ.get(PROGRAM)
    own = next(filter(None, (shutil.which(str(place / "evoxo")) for place in _scripts())), None)
    found = shutil.which(named) if named else own or shutil.which("evoxo")
    if found is None:
        where = f"{PROGRAM}={named} is not a program" if named else "there is no program evoxo here or on the PATH"
        raise FileNotFoundError(f"{where}: install the wheel, or build evoxo and set {PROGRAM}=/path/to/evoxo")
    return found
