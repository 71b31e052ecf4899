"""Adapters for libraries that do not take an executor as it is. Each is imported only when it is used.

DEAP (``toolbox.register("map", pool.map)``), nevergrad (``executor=pool``), pycma, pyribs and everything with ask and tell
(``list(pool.map(function, points))``) need no adapter.
"""

from __future__ import annotations

import warnings
from importlib import metadata


def _warn(library: str, tried: str) -> None:
    """Warns if another version of the library is installed than the one that was tried, apart from its last number."""
    try:
        own = metadata.version(library)
    except metadata.PackageNotFoundError:
        return
    if own.split(".")[:2] != tried.split(".")[:2]:
        text = f"evoxo's adapter was tried with {library} {tried}, not with {own}: compare a short run with the serial one"
        warnings.warn(text, stacklevel=3)
