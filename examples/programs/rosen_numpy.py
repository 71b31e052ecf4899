"""Rosenbrock's valley (Rosenbrock 1960) with numpy, in 100 dimensions. The cost is 0 where all genes are 1.

The order of additions in numpy's sum depends on the processor. Here the terms are added from the left on every processor.
"""

import sys

import evoxo

try:
    import numpy as np
except ImportError:
    sys.exit("rosen_numpy.py needs the package numpy: pip install numpy")


@evoxo.problem(genome=evoxo.reals(100, -5, 5), objectives=["min cost"])
def rosen(x):
    x = np.array(x)
    a, b = x[:-1], x[1:]
    valley, rest = b - a * a, 1 - a
    return np.cumsum(100 * valley * valley + rest * rest)[-1]


evoxo.main(rosen)
