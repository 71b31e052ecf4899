"""Where the program evoxo is."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path
from typing import Iterator

PROGRAM = "EVOXO"
"""The environment variable with the path of the program evoxo, which comes before the wheel's own and before the PATH."""


def _scripts() -> Iterator[Path]:
    """Where a wheel's programs are: in this environment, of this user, and beside packages that pip has put into a directory."""
    yield Path(sysconfig.get_path("scripts"))
    user = f"{os.name}_user"
    if user in sysconfig.get_scheme_names():
        yield Path(sysconfig.get_path("scripts", user))
    yield Path(__file__).parent.parent / "bin"


def binary() -> str:
    """The path of the program evoxo. Raises FileNotFoundError with a sentence."""
    named = os.environ.get(PROGRAM)
    own = next(filter(None, (shutil.which(str(place / "evoxo")) for place in _scripts())), None)
    found = shutil.which(named) if named else own or shutil.which("evoxo")
    if found is None:
        where = f"{PROGRAM}={named} names no program" if named else "there is no program evoxo here or on the PATH"
        raise FileNotFoundError(f"{where}: install the wheel, or build evoxo and set {PROGRAM}=/path/to/evoxo")
    return found
