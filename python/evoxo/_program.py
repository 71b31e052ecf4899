"""The program that workers start for `Problem.run`: it serves a problem of a file.

It is started by the path of this file, with the path of the problem's file, the problem's name and the file's own arguments. What the file does as a script, below
``if __name__ == "__main__"``, is not done.
"""

import os
import runpy
import sys


def main(file: str, name: str) -> None:
    """Serves the problem of this name, until the worker has gone."""
    sys.argv = [file, *sys.argv[3:]]
    # The directory of this file, which Python has put there, has modules that are no others' business.
    sys.path[0] = os.path.dirname(file)
    try:
        import evoxo
    except ImportError:
        sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        import evoxo
    # A file that ends with evoxo.main, or runs its problem, serves itself.
    found = runpy.run_path(file, run_name="evoxo_problem").get(name)
    if not isinstance(found, evoxo.Problem):
        sys.exit(f"{file} has no problem {name} that can be imported: define it where its name can be imported")
    evoxo.main(found)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
