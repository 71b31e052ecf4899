"""Turns a function that was typed into a notebook into the text of a file from which a worker can start it."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from types import CodeType, FunctionType, ModuleType
from typing import Any, Callable, Dict, List, Set

from ._declaration import Declaration

_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_INSTEAD = "write the function into a file, for example by starting the cell with %%writefile NAME.py, and import it"

_NO_SOURCE = f"the function has no source file from which to make a version: give it a version=, or {_INSTEAD}"


def file_of(function: Callable[..., Any], declaration: Declaration) -> str:
    """The text of a file with this function, everything that it uses, and its declaration.

    Raises ValueError if it uses something that cannot be written to a file.
    """
    parts: Dict[str, str] = {}
    _write(function, parts, {declaration.name})
    genome = ", ".join(f"{name!r}: evoxo.{part!r}" for name, part in declaration.parts.items())
    single = f"evoxo.{next(iter(declaration.parts.values()))!r}" if declaration.single else f"{{{genome}}}"
    said = [f"genome={single}", f"objectives={list(declaration.objectives)!r}"]
    for key, names in (("constraints", declaration.constraints), ("measures", declaration.measures)):
        said += [f"{key}={list(names)!r}"] if names else []
    made = f"{declaration.name} = evoxo.problem({', '.join(said)})({declaration.name})"
    return "\n\n".join(["import evoxo", *parts.values(), made, f"evoxo.main({declaration.name})"]) + "\n"


def _write(function: Callable[..., Any], parts: Dict[str, str], begun: Set[str]) -> None:
    """Adds a function, after everything that it uses."""
    name = getattr(function, "__name__", "")
    if not isinstance(function, FunctionType):
        raise ValueError(_NO_SOURCE)
    if function.__closure__:
        raise ValueError(f"{name} uses variables of the function around it: {_INSTEAD}")
    try:
        text = textwrap.dedent(inspect.getsource(function))
        node = ast.parse(text).body[0]
    except (OSError, SyntaxError, IndexError):
        raise ValueError(_NO_SOURCE) from None
    if not isinstance(node, ast.FunctionDef):
        raise ValueError(f"{name} is not defined with def: {_INSTEAD}")
    for used in sorted(_used(function, node)):
        if used in begun or used not in function.__globals__:
            continue
        begun.add(used)
        value = function.__globals__[used]
        if isinstance(value, ModuleType):
            parts[used] = f"import {value.__name__} as {used}" if value.__name__ != used else f"import {used}"
        elif isinstance(value, FunctionType) and value.__module__ == function.__module__:
            _write(value, parts, begun)
            if value.__name__ != used:
                parts[used] = f"{used} = {value.__name__}"
        elif _is_plain(value):
            parts[used] = f"{used} = {value!r}"
        elif getattr(value, "__module__", None) and _is_importable(value):
            parts[used] = f"from {value.__module__} import {value.__qualname__} as {used}"
        else:
            raise ValueError(f"{name} uses {used}, {type(value).__name__}, which cannot be written to a file: {_INSTEAD}")
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    parts[name] = "\n".join(lines)


def _used(function: FunctionType, node: ast.FunctionDef) -> Set[str]:
    """The global names that a function uses, in its body or in the declaration of its parameters."""
    names: Set[str] = set()
    codes: List[CodeType] = [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    read = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    declared: Set[str] = set()
    returns = [node.returns] if node.returns else []
    for part in [node.args, *returns]:
        declared.update(each.id for each in ast.walk(part) if isinstance(each, ast.Name))
    return (names & read) | declared


def _is_plain(value: Any) -> bool:
    """Whether evaluating the `repr` of a value gives an equal value."""
    if isinstance(value, (tuple, list, set, frozenset)):
        return type(value) in (tuple, list) and all(map(_is_plain, value))
    if type(value) is dict:
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    return type(value) in _PLAIN and value == value and value not in (float("inf"), float("-inf"))


def _is_importable(value: Any) -> bool:
    """Whether a worker can import a class or function by its name."""
    module, name = value.__module__, getattr(value, "__qualname__", ".")
    if module == "__main__" or "." in name:
        return False
    return getattr(sys.modules.get(module), name, None) is value
