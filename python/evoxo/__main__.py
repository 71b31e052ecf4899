"""``python -m evoxo``: runs the program evoxo, found as `binary` does."""

from __future__ import annotations

import os
import sys

from ._binary import binary

if __name__ == "__main__":
    try:
        program = binary()
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"error: {error}")
