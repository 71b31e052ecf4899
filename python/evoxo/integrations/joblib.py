"""joblib and scikit-learn: ``register(pool)``, then ``with joblib.parallel_config(backend="evoxo"):``."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence

from .. import Executor
from .._functions import function_of, module_of
from .._values import encode
from . import _received, _sent, _warn

TRIED = "1.6.0"
"""The version of joblib with which this is tested."""

TRIED_WITH = "1.9.1"
"""The version of scikit-learn with which this is tested."""

AHEAD = 500
"""How many jobs joblib is told that there are. It sends twice as many calls ahead, so that those of a coordinator become one run."""

_MARK = "\0evoxo"
"""The only key of an object that stands for a value which does not travel as it is."""

_LONG = 4096
"""Arrays of more bytes travel by the name that they have in the file, if they have one there."""

_FIT = "sklearn.model_selection._validation:_fit_and_score"
"""What scikit-learn calls in searches and cross validation. Everything else stays in the script, or has to be a function of the file."""


def register(pool: Executor) -> None:
    """Makes "evoxo" a backend of joblib, whose calls the pool computes.

    Functions must be at the top level of the file. Of scikit-learn's own calls, those of searches and cross validation travel;
    their times are 0, because a call has the same value everywhere.
    """
    _warn("joblib", TRIED)
    _warn("scikit-learn", TRIED_WITH)
    parallel = importlib.import_module("joblib.parallel")
    backends = importlib.import_module("joblib._parallel_backends")

    class Backend(parallel.ParallelBackendBase):  # type: ignore[misc, name-defined]
        supports_retrieve_callback = True
        default_n_jobs = -1

        def configure(self, n_jobs: int = 1, parallel: Any = None, prefer: Optional[str] = None, **_: Any) -> int:
            self.parallel = parallel
            if prefer == "threads":  # The calls share memory, so they cannot travel.
                raise backends.FallbackToBackend(backends.ThreadingBackend(nesting_level=self.nesting_level))
            self.calls: List[Any] = []
            return self.effective_n_jobs(n_jobs)

        def effective_n_jobs(self, n_jobs: Optional[int]) -> int:
            if n_jobs == 0:
                raise ValueError("n_jobs is 0, but it must be another number or None")
            return 1 if n_jobs == 1 else AHEAD

        def submit(self, func: Any, callback: Optional[Callable[[Any], None]] = None) -> Any:
            call = pool.submit(_call, [_item(pool, *item) for item in func.items])
            self.calls.append(call)
            if callback is not None:
                call.add_done_callback(callback)
            return call

        def retrieve_result_callback(self, out: Any) -> List[Any]:
            return list(out.result())

        def abort_everything(self, ensure_ready: bool = True) -> None:
            for call in self.calls:
                call.cancel()

    parallel.register_parallel_backend("evoxo", Backend)


def _item(pool: Executor, function: Any, arguments: Sequence[Any], keywords: Dict[str, Any]) -> List[Any]:
    """A call of joblib as it travels: function, arguments, and the configuration of scikit-learn."""
    config = None
    if type(function).__module__ == "sklearn.utils.parallel":
        config, function = function.config, function.function
    sent: Any = _FIT
    if f"{function.__module__}:{function.__qualname__}" != _FIT:
        sent = _sent(pool, function)
    else:  # Callbacks of scikit-learn are called in the script.
        keywords = {**keywords, "caller": None, "callback_ctx": None}
    return [sent, _pack(pool, list(arguments)), _pack(pool, keywords), config]


def _call(namespace: Dict[str, Any], items: List[List[Any]]) -> List[Any]:
    """What a worker computes: a batch of joblib, which is one call unless the script asks for more."""
    return [_value(namespace, *item) for item in items]


def _value(namespace: Dict[str, Any], sent: Any, arguments: Any, keywords: Any, config: Optional[Dict[str, Any]]) -> Any:
    """The value of a call, which makes no further processes."""
    joblib = importlib.import_module("joblib")
    function = _found(sent) if sent == _FIT else _received(namespace, sent)
    with contextlib.ExitStack() as stack:
        stack.enter_context(joblib.parallel_config(backend="sequential"))
        if config is not None:
            stack.enter_context(importlib.import_module("sklearn").config_context(**config))
        value = function(*_unpack(namespace, arguments), **_unpack(namespace, keywords))
    if sent == _FIT:  # Times are not the same everywhere.
        value.update({name: 0.0 for name in ("fit_time", "score_time") if name in value})
    return value


def _found(name: str) -> Any:
    module, _, inner = name.partition(":")
    return getattr(importlib.import_module(module), inner)


def _pack(pool: Executor, value: Any) -> Any:
    """A value with its estimators and scorers as names and parameters, and with long arrays as their names in the file."""
    kind = type(value)
    if kind in (list, tuple):
        return kind(_pack(pool, one) for one in value)
    if kind is dict:
        return {key: _pack(pool, one) for key, one in value.items()}
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray) and value.nbytes > _LONG:
        name = next((name for name, one in vars(module_of(pool.file) or sys).items() if one is value), None)
        return value if name is None else {_MARK: ["array", name, _hash(value)]}
    if hasattr(value, "get_params") and not isinstance(value, type):
        fitted = [name for name in vars(value) if name.endswith("_") and not name.startswith("_")]
        if fitted:
            raise TypeError(f"{kind.__name__} is fitted ({fitted[0]}), so it cannot travel: fit it in the function that is called")
        return {_MARK: ["estimator", _class(pool, kind), _pack(pool, value.get_params(deep=False))]}
    if kind.__module__ == "sklearn.metrics._scorer":
        return _pack_scorer(pool, value)
    return value


def _class(pool: Executor, kind: Any) -> Any:
    named = f"{kind.__module__}:{kind.__qualname__}"
    return named if named.startswith("sklearn.") else _sent(pool, kind)


def _pack_scorer(pool: Executor, value: Any) -> Any:
    metrics = importlib.import_module("sklearn.metrics")
    kind = type(value).__name__
    if kind == "_PassthroughScorer":
        return {_MARK: ["passthrough", _pack(pool, value._estimator)]}
    if kind == "_MultimetricScorer":
        return {_MARK: ["several", _pack(pool, value._scorers), value._raise_exc]}
    known = (name for name in metrics.get_scorer_names() if repr(metrics.get_scorer(name)) == repr(value))
    name = next(known, None)
    if name is None:
        raise TypeError(f"the scorer {value!r} cannot travel: give the name of one of scikit-learn's scorers")
    return {_MARK: ["scorer", name]}


def _unpack(namespace: Dict[str, Any], value: Any) -> Any:
    kind = type(value)
    if kind in (list, tuple):
        return kind(_unpack(namespace, one) for one in value)
    if kind is not dict:
        return value
    if list(value) != [_MARK]:
        return {key: _unpack(namespace, one) for key, one in value.items()}
    what, *more = value[_MARK]
    if what == "array":
        found = namespace.get(more[0])
        if found is None or _hash(found) != more[1]:
            raise ValueError(f"the array {more[0]} is not the same on the worker: make it above the Executor, from a seed or a file")
        return found
    if what == "estimator":
        named = more[0]
        made = _found(named) if isinstance(named, str) and named.startswith("sklearn.") else function_of(namespace, named[0])
        if not isinstance(made, type) or not hasattr(made, "get_params"):
            raise TypeError(f"{named} is not a class of estimators")
        return made(**_unpack(namespace, more[1]))
    metrics = importlib.import_module("sklearn.metrics")
    if what == "scorer":
        return metrics.get_scorer(more[0])
    scorers = importlib.import_module("sklearn.metrics._scorer")
    if what == "passthrough":
        return scorers._PassthroughScorer(_unpack(namespace, more[0]))
    return scorers._MultimetricScorer(scorers=_unpack(namespace, more[0]), raise_exc=more[1])


def _hash(value: Any) -> str:
    return hashlib.sha256(encode(value).encode()).hexdigest()
