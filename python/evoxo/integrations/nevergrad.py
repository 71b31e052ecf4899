"""nevergrad: ``optimizer.minimize(f, executor=in_order(pool), batch_mode=True)``."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Callable, Optional

from .. import Executor
from . import _warn

TRIED = "1.0.12"
"""The version of nevergrad with which this is tested."""


class _Call:
    """A call that is done once the call before it has been seen to be done."""

    def __init__(self, future: Future[Any], before: Optional[_Call]) -> None:
        self._future = future
        self._before = before
        self._seen = False

    def done(self) -> bool:
        if self._before is not None and not self._before._seen:
            return False
        self._before = None
        self._seen = self._seen or self._future.done()
        return self._seen

    def result(self) -> Any:
        return self._future.result()


class InOrder:
    """An executor for nevergrad whose calls end in the order in which they began."""

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._last: Optional[_Call] = None

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> _Call:
        self._last = _Call(self._pool.submit(function, *arguments, **keywords), self._last)
        return self._last


def in_order(pool: Executor) -> InOrder:
    """The executor for ``minimize``, which tells its optimizer the results in the order in which it finds them.

    The next points depend on that order, so a script does the same as serially only if the results come as the calls began, and with
    ``batch_mode=True``.
    """
    _warn("nevergrad", TRIED)
    return InOrder(pool)
