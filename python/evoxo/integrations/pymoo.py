"""pymoo: ``problem.elementwise_runner = pymoo.runner(pool)``, for an elementwise problem at the top level of the file."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List

from .. import Executor
from .._functions import global_name
from . import _warn

TRIED = "0.6.2"
"""The version of pymoo with which this is tested."""


def runner(pool: Executor) -> Callable[[Any, Iterable[Any]], List[Any]]:
    """A runner of elementwise evaluations."""
    _warn("pymoo", TRIED)

    def run(function: Any, points: Iterable[Any]) -> List[Any]:
        name = global_name(function.problem)
        if name is None:
            raise ValueError("the problem has no name at the top level of its file: write `problem = ...` there, above the Executor")
        return list(pool.map(_evaluate, [name] * len(list(points)), points))

    return run


def _evaluate(namespace: Dict[str, Any], problem: str, point: Any) -> Dict[str, Any]:
    """What a worker computes: the evaluation of one point by the problem with this name."""
    out: Dict[str, Any] = {}
    namespace[problem]._evaluate(point, out)
    return out
