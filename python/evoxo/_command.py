"""The command line of a problem's file: it serves a worker, or lets a person check, run and submit the problem."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Union

from ._algorithm import REGISTERED, name_of
from ._binary import binary
from ._channel import claimed
from ._check import CANDIDATES, check, check_algorithm
from ._experiment import ALGORITHM, EVALUATIONS, REPLICAS, SEED, experiment, write
from ._genome import Reals
from ._problem import Problem
from ._processes import run_name
from ._serve import serve


def main(problem: Union[Problem, type], arguments: Optional[Sequence[str]] = None) -> None:
    """The last line of a problem's file. If a worker has started the process, it serves the worker; otherwise it runs the command.

    problem: a problem, whose program also has the algorithms that this process has registered; or the class of an algorithm, if
    the program has no problem.

    arguments: the command-line arguments, by default those of this process. A program that has its own arguments passes the others
    here, for example those that `argparse.ArgumentParser.parse_known_args` returns. Workers start the program with its own arguments.

    It ends the process (SystemExit): with status 0, with 1 if something failed, or with 2 if the command is wrong. In a
    child of the module multiprocessing, which imports the file again, it does nothing.
    """
    name = problem.name if isinstance(problem, Problem) else name_of(problem)
    if name is None:
        raise TypeError(f"evoxo.main needs a function decorated with @evoxo.problem or a class decorated with @evoxo.algorithm, not"
                        f" {problem!r:.80}")
    function = problem.function if isinstance(problem, Problem) else problem
    if function.__module__ == "__mp_main__":
        return
    channel = claimed()
    if channel is not None:
        sys.exit(serve(name, problem if isinstance(problem, Problem) else None, channel))
    own = [] if arguments is None else _own(sys.argv[1:], arguments)
    typed = sys.argv[1:] if arguments is None else arguments
    try:
        sys.exit(_do(problem, typed, command() + own) if isinstance(problem, Problem) else _do_algorithm(name, typed, command() + own))
    except KeyboardInterrupt:
        sys.exit(130)


def _own(typed: Sequence[str], arguments: Sequence[str]) -> List[str]:
    """The arguments of the program itself, which it did not pass to `main`. Workers start it with them, too."""
    rest, own = list(arguments), []
    for word in reversed(typed):
        if rest and rest[-1] == word:
            rest.pop()
        else:
            own.append(word)
    return list(typed) if rest else own[::-1]


def command() -> List[str]:
    """The command that starts this process's file again, without arguments. Raises ValueError if there is no file."""
    started = sys.modules["__main__"]
    spec = getattr(started, "__spec__", None)
    if spec is not None and spec.name != "__main__":
        return [sys.executable, "-m", spec.name]
    file = getattr(started, "__file__", None)
    if file is None:
        raise ValueError("a worker starts a problem from its file: write this into a file, and start that file")
    return [sys.executable, str(Path(file).resolve())]


def _do_algorithm(name: str, arguments: Sequence[str], again: Sequence[str]) -> int:
    """The command of a file that has only algorithms. Returns the exit status."""
    about = (f"The algorithm {name}. An experiment file chooses it with algorithm = \"own\" and own = \"{name}\", and"
             f" evoxo starts it with --program {shlex.quote(f'{name}={shlex.join(again)}')}.")
    parser = argparse.ArgumentParser(description=about)
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND")
    verbs.add_parser("check", help="test whether equal questions always have equal batches")
    if parser.parse_args(arguments).verb is None:
        parser.print_help()
        return 0
    return check_algorithm(name, again, {"x": Reals(5, -5, 5)})


def _parser(problem: Problem) -> argparse.ArgumentParser:
    declared = [{"part": name, **part.declaration()} for name, part in problem.parts.items()]
    parts = [" ".join(f"{key} {value}" for key, value in part.items()) for part in declared]
    about = f"The problem {problem.name}: {', '.join(problem.objectives)}. Genome: {'; '.join(parts)}."
    parser = argparse.ArgumentParser(description=about)
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND")

    checking = verbs.add_parser("check", help="test whether equal candidates always have equal values")
    checking.add_argument(
        "--candidates", type=_whole(1), default=CANDIDATES, metavar="N", help=f"default: {CANDIDATES}"
    )
    running = verbs.add_parser("run", help="evolve on this machine, with a worker for each core")
    running.add_argument("--workers", type=_whole(0), metavar="N", help="worker processes; default: that of evoxo")
    running.add_argument("--out", metavar="DIR", help=f"directory for the results; default: out/{run_name(problem.name)}, with a"
                         " number if it has a run of another version or with other settings")
    submitting = verbs.add_parser("submit", help="give the experiment to a coordinator")
    submitting.add_argument("--coordinator", metavar="ADDRESS", help="default: that of evoxo")
    submitting.add_argument("--name", metavar="N", help=f"name of the run; default: {run_name(problem.name)}")
    printing = verbs.add_parser("file", help="print the experiment file")
    for verb in (running, submitting, printing):
        verb.add_argument("--algorithm", metavar="NAME", help=f"default: {ALGORITHM}, one that fits the problem")
        verb.add_argument("--evaluations", type=_whole(1), default=EVALUATIONS, metavar="N",
                          help=f"of each replica; default: {EVALUATIONS}")
        verb.add_argument("--replicas", type=_whole(1), default=REPLICAS, metavar="N",
                          help=f"independent repetitions; default: {REPLICAS}")
        verb.add_argument("--seed", type=_whole(0), default=SEED, metavar="N", help=f"default: {SEED}")
        verb.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the algorithm")
    return parser


def _whole(least: int) -> "type[int]":
    """A type for argparse: whole numbers from `least`."""

    def read(text: str) -> int:
        if not re.fullmatch("[0-9]{1,19}", text) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least}")
        return int(text)

    return read  # type: ignore[return-value]


def _do(problem: Problem, arguments: Sequence[str], again: Sequence[str]) -> int:
    """Runs a command. Returns the exit status.

    again: the command that starts the problem's program.
    """
    parser = _parser(problem)
    typed = parser.parse_args(arguments)
    if typed.verb is None:
        parser.print_help()
        return 0
    if typed.verb == "check":
        found = [check(problem, again, typed.candidates)]
        return max(found + [check_algorithm(name, again, problem.parts) for name in REGISTERED])
    settings: Dict[str, str] = {}
    for pair in typed.set:
        key, equals, value = pair.partition("=")
        if not equals or not re.fullmatch("[a-z][a-z0-9_]*", key):
            parser.error(f"--set {pair}: must be KEY=VALUE")
        settings[key] = value
    try:
        text = experiment(problem, typed.algorithm, typed.evaluations, typed.replicas, typed.seed, settings)
    except ValueError as error:
        parser.error(str(error))
    if typed.verb == "file":
        sys.stdout.write(text)
        return 0
    return _start(problem, typed, text, again)


def _start(problem: Problem, typed: argparse.Namespace, text: str, again: Sequence[str]) -> int:
    """Writes the experiment file next to the directory of the results and replaces this process with evoxo. Returns only on failure."""
    try:
        evoxo = binary()
    except FileNotFoundError as error:
        return _fail(str(error))
    program = f"{problem.name}={shlex.join(again)}"
    chosen = typed.out if typed.verb == "run" else typed.name and f"out/{typed.name}"
    out = Path(chosen or f"out/{run_name(problem.name)}")
    if out.name in ("", ".."):
        out = out.resolve()
    file = out.with_name(out.name + ".toml")
    if typed.verb == "run":
        words = [evoxo, "run", str(file), "--program", program]
        # If no directory is given, evoxo chooses another one if a run with other settings is there.
        words += ["--out", str(out)] if typed.out else []
        words += [] if typed.workers is None else ["--workers", str(typed.workers)]
    else:
        words = [evoxo, "submit", str(file), "--program", program]
        words += [] if typed.coordinator is None else ["--coordinator", typed.coordinator]
        words += [] if typed.name is None else ["--name", typed.name]
    other = "another directory with --out" if typed.verb == "run" else "another name with --name"
    try:
        results = out if typed.verb == "run" and typed.out else None
        write(file, text, f"choose {other}, or start evoxo with that file: {shlex.join(words)}", results=results)
    except ValueError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"cannot write {file}: {error.strerror}")
    print(f"wrote {file}", file=sys.stderr)
    if typed.verb == "submit":
        print(f"start workers for it with --program {shlex.quote(program)}", file=sys.stderr)
    sys.stdout.flush()
    try:
        os.execv(evoxo, words)
    except OSError as error:
        return _fail(f"cannot start {evoxo}: {error.strerror}")


def _fail(sentence: str) -> int:
    print(f"error: {sentence}", file=sys.stderr)
    return 1
