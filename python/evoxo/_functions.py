"""A file with functions: how workers start a program that serves them, how they are named, and the conversation with a worker."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import json
import os
import re
import signal
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ._channel import VERSION, Channel
from ._declaration import NAME
from ._source import version_of
from ._values import CannotTravel, decode, encode

LINE_BYTES_MAX = 16 * 1024 * 1024
"""The most bytes of a line, with its line break."""

TRACEBACK_CHARACTERS_MAX = 4000
"""The most characters of a traceback that travels; the beginning is cut off."""

ERROR_CHARACTERS_MAX = 1000
"""The most characters of an error's text that travels."""

_SERVED = "evoxo_function"
"""The name under which a file is imported to serve its functions, so that code below ``if __name__ == "__main__"`` does not run."""

_OWN = "evoxo.integrations."
"""Begins the names of functions of this package, which get the namespace of the file as their first argument."""

_ADDRESS = re.compile("0x[0-9a-f]{6,}")


class Target(NamedTuple):
    """A file whose functions are called."""

    file: Path
    name: str
    """The program's name."""
    version: str
    module: Optional[str]
    """The module's name, if it is not a script."""

    def command(self) -> List[str]:
        """The command of a program that serves the file."""
        what = self.module or str(self.file)
        return [sys.executable, "-m", "evoxo.calls", what, "--name", self.name, "--version", self.version]

    def introduction(self) -> Dict[str, Any]:
        """The first line of the program."""
        return {"evoxo": int(VERSION), "serves": "calls", "name": self.name, "version": self.version}

    def signature(self) -> str:
        """The hash with which coordinators compare programs."""
        said = json.dumps(["calls", self.name, self.version], separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(said.encode()).hexdigest()


def target(what: Optional[str], name: Optional[str], version: Optional[str]) -> Target:
    """The file of "module:function", "file.py:function", the same without a function, or, by default, of the script that runs.

    Raises ValueError if there is no such file, or its name cannot be that of a program.
    """
    said = (what or "").partition(":")[0]
    module = None
    if not said:
        started = getattr(sys.modules["__main__"], "__file__", None)
        if started is None:
            raise ValueError("a notebook has no file from which workers can start: write the function into a file, and give FILE.py")
        file = Path(started)
    elif said.endswith(".py") or os.sep in said:
        file = Path(said)
    else:
        try:
            found = importlib.util.find_spec(said)
        except (ImportError, ValueError):
            found = None
        if found is None or not (found.origin or "").endswith(".py"):
            raise ValueError(f"there is no module {said} here that is a Python file: give MODULE:FUNCTION or FILE.py:FUNCTION")
        file, module = Path(str(found.origin)), said
    file = file.resolve()
    if not file.is_file():
        raise ValueError(f"there is no file {file}: give MODULE:FUNCTION or FILE.py:FUNCTION")
    name = name or re.sub(r"[^A-Za-z0-9_.-]", "-", file.stem)
    if not NAME.fullmatch(name):
        raise ValueError(f"the name is {name!r}, but it must be 1 to 64 of the characters A-Z, a-z, 0-9, _, - and .")
    version = version_of(file.read_bytes()) if version is None else version
    if not isinstance(version, str) or not NAME.fullmatch(version):
        raise ValueError(f"the version is {version!r}, but it must be 1 to 64 of the characters A-Z, a-z, 0-9, _, - and .")
    return Target(file, name, version, module)


def named(function: Callable[..., Any], file: Path) -> Tuple[str, Tuple[Any, ...], Dict[str, Any]]:
    """The name of a function in this file, and the arguments that `functools.partial` has fixed.

    Raises ValueError if workers would not find it there.
    """
    arguments: Tuple[Any, ...] = ()
    fixed: Dict[str, Any] = {}
    while isinstance(function, functools.partial):
        arguments, fixed = (*function.args, *arguments), {**function.keywords, **fixed}
        function = function.func
    return _name_in(function, str(file)), arguments, fixed


@functools.lru_cache(maxsize=256)
def _name_in(function: Callable[..., Any], file: str) -> str:
    own = getattr(function, "__self__", None)
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    name = getattr(function, "__qualname__", "")
    if module is not None and own is not None and not isinstance(own, (type, ModuleType)):
        name = f"{global_name(own, module) or '<locals>'}.{getattr(function, '__name__', '')}"
    if module is not None and name.startswith("_") and module.__name__.startswith(_OWN):
        return f"{module.__name__}:{name}"
    place = getattr(module, "__file__", None)
    if place is None or str(Path(place).resolve()) != file or "<" in name or _find(vars(module), name) != function:
        raise ValueError(
            f"{name or function!r} is not a function at the top level of {file}: write it there, or give the Executor its file"
        )
    return name


def global_name(value: Any, module: Optional[ModuleType] = None) -> Optional[str]:
    """The global name of an object in a module, by default in that of its class."""
    module = module or sys.modules.get(type(value).__module__)
    return next((name for name, one in vars(module).items() if one is value), None) if module else None


def module_of(file: Path) -> Optional[ModuleType]:
    """The module of this process that was made from a file."""
    places = ((module, getattr(module, "__file__", None)) for module in list(sys.modules.values()))
    return next((module for module, place in places if place is not None and Path(place).resolve() == file), None)


def _find(namespace: Dict[str, Any], name: str) -> Any:
    first, *rest = name.split(".")
    return functools.reduce(lambda value, part: getattr(value, part, None), rest, namespace.get(first))


_serving: Optional[Tuple[Target, Channel]] = None
_calling = False
"""Whether this process computes calls of a worker."""


def serve_file(served: Target, channel: Channel) -> None:
    """Imports the file and serves its functions until the worker is gone. Ends the process."""
    global _serving
    _serving = served, channel
    if served.module is not None:
        module = importlib.import_module(served.module)
    else:
        sys.path[0] = str(served.file.parent)
        spec = importlib.util.spec_from_file_location(_SERVED, served.file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[_SERVED] = module
        spec.loader.exec_module(module)
    serve_here(vars(module))


def serve_here(namespace: Optional[Dict[str, Any]] = None) -> None:
    """If a worker has started this process, serves the functions that the file has defined so far, and ends the process."""
    global _calling
    if _serving is None:
        return
    if _calling:
        raise RuntimeError("a function that an Executor calls cannot make another Executor: make it in the script")
    _calling = True
    served, channel = _serving
    found = sys.modules.get(served.module or _SERVED)
    values = namespace if namespace is not None else vars(found) if found else {}
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(_converse(served, channel, values))


def _converse(served: Target, channel: Channel, namespace: Dict[str, Any]) -> int:
    try:
        _write(channel, served.introduction())
        while True:
            line = channel.reader.readline(LINE_BYTES_MAX + 1)
            if not line:
                return 0
            request = json.loads(line)
            returned = [_call(namespace, call, request["answer_bytes"]) for call in request["calls"]]
            _write(channel, {"batch": request["batch"], "returned": returned})
    except BrokenPipeError:
        return 1
    except (ValueError, KeyError, TypeError) as error:
        print(f"{served.name}: the worker sent a line that is not a request: {error}", file=sys.stderr)
        return 1


def _write(channel: Channel, line: Dict[str, Any]) -> None:
    rest = memoryview(json.dumps(line, separators=(",", ":")).encode() + b"\n")
    while rest:
        rest = rest[channel.writer.write(rest) :]


def _call(namespace: Dict[str, Any], call: str, most: int) -> Dict[str, Any]:
    name = "?"
    try:
        name, arguments, keywords = decode(call)
        text = encode(function_of(namespace, name)(*arguments, **keywords))
    except CannotTravel as error:
        return _raised(TypeError(f"{name} returned something else: {error}"), most)
    except (Exception, SystemExit) as error:  # A library that exits would end the program silently.
        return _raised(error, most)
    if len(text) > most:
        size = f"{name} returned a value of {len(text):,} bytes as text, but at most {most:,} may travel"
        return _raised(ValueError(f"{size}: return less, or give the Executor a greater answer_bytes="), most)
    return {"text": text, "raised": False}


def function_of(namespace: Dict[str, Any], name: str) -> Callable[..., Any]:
    """The function with this name in a file that a worker has imported. Raises NameError if it is not there."""
    if name.startswith(_OWN):
        module, _, inner = name.partition(":")
        return functools.partial(getattr(importlib.import_module(module), inner), namespace)
    function = _find(namespace, name)
    # Whoever may submit calls must not reach what the file has imported, such as os.system.
    if function is None or getattr(function, "__module__", None) != namespace.get("__name__"):
        raise NameError(f"{name} is not there when a worker imports the file: define it in the file, above the Executor")
    return function  # type: ignore[no-any-return]


def _raised(error: BaseException, most: int) -> Dict[str, Any]:
    kind = f"{type(error).__module__}.{type(error).__qualname__}"
    text = _plain(str(error))[:ERROR_CHARACTERS_MAX]
    lines = traceback.extract_tb(error.__traceback__)
    # Frames of this package say nothing, and directories differ between hosts.
    frames = [frame for frame in lines if Path(frame.filename).parent != Path(__file__).parent]
    said = [f'  File "{Path(frame.filename).name}", line {frame.lineno}, in {frame.name}\n    {frame.line}' for frame in frames]
    trace = _plain("\n".join(["Traceback (most recent call last, on the worker):", *said]))[-TRACEBACK_CHARACTERS_MAX:]
    for cut in ([kind, text, trace], [kind, text, ""], [kind, text[:100], ""], ["", "", ""]):
        if len(encode(cut)) <= most:
            break
    return {"text": encode(cut), "raised": True}


def _plain(text: str) -> str:
    """A text without addresses, which differ from one process to the next."""
    return _ADDRESS.sub("0x...", text)
