"""Evolve your own problem with evoxo: describe it, check it, run it on all cores or on a cluster.

    import math
    import evoxo

    @evoxo.problem(genome=evoxo.reals(30, -5, 5), objectives=["min cost"])
    def sphere(x):
        return math.fsum(a * a for a in x)

    evoxo.main(sphere)

In a script or a notebook, ``sphere.run(evaluations=20_000)`` does the same and returns the results.

A worker of evoxo starts such a file as a program and talks to it over standard input and output; a person types
``python3 sphere.py check``, ``run`` or ``submit``. `results` reads the directory of a run.

`algorithm` makes a class one more algorithm, which experiments compare with the built-in ones.

`Executor` computes the calls of any function on all cores or a cluster, for scripts that have their own algorithm.

If the environment variable EVOXO_PROTOCOL is set, a worker has started this process. Importing this package then reserves
standard output for the protocol, and everything that is printed goes to standard error.
"""

from ._channel import claim as _claim

_claim()

from ._algorithm import Value, algorithm  # noqa: E402
from ._ask import Asked, ask  # noqa: E402
from ._command import main  # noqa: E402
from ._genome import (  # noqa: E402
    Bits,
    Choices,
    Integers,
    Part,
    Permutation,
    Reals,
    Symbols,
    bits,
    choices,
    integers,
    permutation,
    reals,
    symbols,
)
from ._declaration import Failed, Result  # noqa: E402
from ._executor import Executor  # noqa: E402
from ._link import Batch, Candidate  # noqa: E402
from ._local import CallFailed  # noqa: E402
from ._problem import Problem, problem  # noqa: E402
from ._processes import RunFailed  # noqa: E402
from ._results import Plot, Results, results  # noqa: E402

__version__ = "0.1.0"

__all__ = [
    "Asked",
    "Batch",
    "Bits",
    "CallFailed",
    "Candidate",
    "Choices",
    "Executor",
    "Failed",
    "Integers",
    "Part",
    "Plot",
    "Permutation",
    "Problem",
    "Reals",
    "Result",
    "Results",
    "RunFailed",
    "Symbols",
    "Value",
    "algorithm",
    "ask",
    "bits",
    "choices",
    "integers",
    "main",
    "permutation",
    "problem",
    "reals",
    "results",
    "symbols",
]
