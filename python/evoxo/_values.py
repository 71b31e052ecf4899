"""How arguments and returned values travel: as JSON in base64, with arrays as bytes. No code travels, and nothing is pickled."""

from __future__ import annotations

import array
import base64
import json
import math
import sys
from typing import Any, Callable, Dict, List

_TAG = "~"
"""Begins the only key of an object that stands for a value which JSON lacks."""

_ARRAYS = "biufcSUmM"
"""The kinds of numpy's types whose arrays are their bytes."""

_CAN = "only None, bools, numbers, texts, bytes, lists, tuples, dicts and arrays of numpy do"


class CannotTravel(TypeError):
    """A value that cannot be sent to a worker or back."""


def encode(value: Any) -> str:
    """The text of a value. Raises CannotTravel if it has a part of another type, or refers to itself."""
    try:
        text = json.dumps(_pack(value), separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise CannotTravel("a value refers to itself or is nested too deeply, so it cannot travel") from None
    except ValueError as error:  # Python limits the digits of an int.
        raise CannotTravel(f"a value cannot travel: {error}") from None
    return base64.b64encode(text.encode()).decode()


def decode(text: str) -> Any:
    """The value of a text. Raises ValueError if it is not one of `encode`."""
    try:
        return _unpack(json.loads(base64.b64decode(text, validate=True)))
    except (KeyError, TypeError, IndexError, RecursionError, AttributeError) as error:
        raise ValueError(f"the text of a value is damaged: {error}") from None


def _pack(value: Any) -> Any:
    kind = type(value)
    if kind is float:
        return value if math.isfinite(value) else {"~f": repr(value)}
    if kind is int or kind is str or kind is bool or value is None:
        return value
    if kind is list:
        return [_pack(one) for one in value]
    if kind is tuple:
        return {"~t": [_pack(one) for one in value]}
    if kind is dict:
        return _pack_dict(value)
    if kind is bytes:
        return {"~b": base64.b64encode(value).decode()}
    if kind is complex:
        return {"~c": [_pack(value.real), _pack(value.imag)]}
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _pack_array(numpy, value)
    # A subclass, such as DEAP's individuals, arrives as what it is based on.
    bases: List[Any] = [list, tuple, dict, float, int, str, bytes, complex]
    for base in bases:
        if isinstance(value, base):
            return _pack(base(value))
    if isinstance(value, bytearray):
        return {"~b": base64.b64encode(value).decode()}
    if isinstance(value, array.array):
        return {"~r": [value.typecode, [_pack(one) for one in value]]}
    raise CannotTravel(f"a value of the type {kind.__module__}.{kind.__qualname__} cannot travel to or from a worker: {_CAN}")


def _pack_dict(value: Dict[Any, Any]) -> Any:
    if all(type(key) is str and not key.startswith(_TAG) for key in value):
        return {key: _pack(one) for key, one in value.items()}
    return {"~d": [[_pack(key), _pack(one)] for key, one in value.items()]}


def _pack_array(numpy: Any, value: Any) -> Any:
    if value.dtype.kind not in _ARRAYS:
        raise CannotTravel(f"an array of the type {value.dtype} cannot travel to or from a worker: use numbers or texts")
    raw = base64.b64encode(value.tobytes()).decode()
    if isinstance(value, numpy.generic):
        return {"~n": [value.dtype.str, raw]}
    return {"~a": [value.dtype.str, list(value.shape), raw]}


def _unpack(value: Any) -> Any:
    if type(value) is list:
        return [_unpack(one) for one in value]
    if type(value) is not dict:
        return value
    if len(value) == 1:
        [(tag, said)] = value.items()
        if tag.startswith(_TAG):
            return _TAGGED[tag](said)
    return {key: _unpack(one) for key, one in value.items()}


def _array(said: List[Any]) -> Any:
    kind, shape, raw = said
    import numpy

    return numpy.frombuffer(base64.b64decode(raw), dtype=kind).reshape(shape).copy()


def _scalar(said: List[Any]) -> Any:
    kind, raw = said
    import numpy

    return numpy.frombuffer(base64.b64decode(raw), dtype=kind)[0]


_TAGGED: Dict[str, Callable[[Any], Any]] = {
    "~f": float,
    "~t": lambda said: tuple(_unpack(one) for one in said),
    "~d": lambda said: {_unpack(key): _unpack(one) for key, one in said},
    "~b": base64.b64decode,
    "~c": lambda said: complex(_unpack(said[0]), _unpack(said[1])),
    "~r": lambda said: array.array(said[0], [_unpack(one) for one in said[1]]),
    "~n": _scalar,
    "~a": _array,
}
