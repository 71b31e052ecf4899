"""The program that workers start for `Problem.run`: it serves a problem from a file.

It is started by the path of this file, with the path of the problem's file, the problem's name and the file's own
arguments. Code of that file below ``if __name__ == "__main__"`` does not run.
"""

import os
import runpy
import sys


def main(file: str, name: str) -> None:
    """Serves the problem with this name until the worker is gone."""
    sys.argv = [file, *sys.argv[3:]]
    # Python puts the directory of this file there. Its modules are private and must not be importable.
    sys.path[0] = os.path.dirname(file)
    try:
        import evoxo
    except ImportError:
        sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        import evoxo
    # If the file calls evoxo.main or runs its problem, it serves the worker right there.
    found = runpy.run_path(file, run_name="evoxo_problem").get(name)
    if not isinstance(found, evoxo.Problem):
        sys.exit(f"{file} has no problem {name} at the top level of the module: define it there")
    evoxo.main(found)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
