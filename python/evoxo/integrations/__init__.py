"""Adapters for libraries that do not take an executor as it is. Each is imported only when it is used.

DEAP (``toolbox.register("map", pool.map)``), nevergrad (``executor=pool``), pycma, pyribs and everything with ask and tell
(``list(pool.map(function, points))``) need no adapter.
"""
