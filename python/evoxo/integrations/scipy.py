"""scipy: ``differential_evolution(cost, bounds, updating="deferred", workers=scipy.workers(pool))``."""

from __future__ import annotations

from typing import Any, Callable, Iterable, List

from .. import Executor
from . import _warn

TRIED = "1.17.1"
"""The version of scipy with which this is tested. scipy wraps functions in private classes, which other versions may rename."""


def workers(pool: Executor) -> Callable[[Callable[..., Any], Iterable[Any]], List[Any]]:
    """A map for the argument `workers` of scipy's optimisers."""
    _warn("scipy", TRIED)

    def mapped(function: Any, points: Iterable[Any]) -> List[Any]:
        # scipy wraps the objective in an object that has it as `f`, with further arguments as `args`.
        inner, more = getattr(function, "f", None), tuple(getattr(function, "args", None) or ())
        called = function if inner is None else inner
        return [future.result() for future in [pool.submit(called, point, *more) for point in points]]

    return mapped
