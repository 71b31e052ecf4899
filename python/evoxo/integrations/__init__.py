"""Adapters for libraries that do not take an executor as it is. Each is imported only when it is used.

DEAP (``toolbox.register("map", pool.map)``), pycma, pyribs and everything with ask and tell (``list(pool.map(function, points))``)
need no adapter.
"""

from __future__ import annotations

import functools
import warnings
from importlib import metadata
from typing import Any, Callable, Dict, Sequence

from .. import Executor
from .._functions import function_of, named


def _warn(library: str, tried: str) -> None:
    """Warns if another version of the library is installed than the one that was tried, apart from its last number."""
    try:
        own = metadata.version(library)
    except metadata.PackageNotFoundError:
        return
    if own.split(".")[:2] != tried.split(".")[:2]:
        text = f"evoxo's adapter was tried with {library} {tried}, not with {own}: compare a short run with the serial one"
        warnings.warn(text, stacklevel=3)


def _sent(pool: Executor, function: Callable[..., Any]) -> Sequence[Any]:
    """A function of the file as it travels: its name, and what `functools.partial` has fixed. Raises ValueError if it has no name there."""
    return named(function, pool.file)


def _received(namespace: Dict[str, Any], sent: Sequence[Any]) -> Callable[..., Any]:
    """The function that `_sent` has named, in the namespace of the file."""
    name, arguments, keywords = sent
    return functools.partial(function_of(namespace, name), *arguments, **keywords)
