"""neat-python: ``Evaluator(pool, eval_genome)`` instead of ``neat.ParallelEvaluator(workers, eval_genome)``."""

from __future__ import annotations

import functools
import importlib
import math
import random
import tempfile
from numbers import Real
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

from .. import Executor
from . import _received, _sent, _warn

TRIED = "2.0.0"
"""The version of neat-python with which this is tested."""

_TYPES = ("genome_type", "reproduction_type", "species_set_type", "stagnation_type")
_CONFIG = "neat.cfg"


class Evaluator:
    """Evaluates the genomes of a generation: ``population.run(Evaluator(pool, eval_genome).evaluate, 300)``.

    The configuration travels as the text that neat saves, and genomes as their genes. With a `seed`, Python's random numbers begin
    for each genome as neat's own evaluator begins them.
    """

    def __init__(self, pool: Executor, function: Callable[[Any, Any], float], seed: Optional[int] = None) -> None:
        _warn("neat-python", TRIED)
        self._pool = pool
        self._function = _sent(pool, function)
        self._seed = seed

    def evaluate(self, genomes: Iterable[Tuple[int, Any]], config: Any) -> None:
        """Sets the fitness of each genome. Raises ValueError if one is not a number."""
        every = [genome for _, genome in genomes]
        said = _said(config)
        calls = [self._pool.submit(_evaluate, self._function, self._seed, said, _genes(genome)) for genome in every]
        for genome, call in zip(every, calls):
            genome.fitness = call.result()


def _said(config: Any) -> List[Any]:
    """A configuration as it travels: the names of its types, and its text with all changes that the script made."""
    with tempfile.TemporaryDirectory(prefix="evoxo-") as directory:
        config.save(Path(directory) / _CONFIG)
        return [[getattr(config, one).__name__ for one in _TYPES], (Path(directory) / _CONFIG).read_text(encoding="utf-8")]


def _genes(genome: Any) -> Dict[str, Any]:
    nodes, connections = ({key: dict(vars(gene)) for key, gene in genes.items()} for genes in (genome.nodes, genome.connections))
    return {**vars(genome), "nodes": nodes, "connections": connections}


def _evaluate(namespace: Dict[str, Any], function: Sequence[Any], seed: Optional[int], said: List[Any], genes: Dict[str, Any]) -> Any:
    """What a worker computes: the fitness of a genome."""
    names, text = said
    neat = importlib.import_module("neat")
    types: List[Any] = []
    for name in names:
        if name not in namespace and not hasattr(neat, name):
            raise NameError(f"{name} is neither in the file nor in neat: import it at the top level of the file, above the Executor")
        types.append(namespace.get(name, getattr(neat, name, None)))
    config = _config(text, *types)
    genome = types[0].__new__(types[0])
    vars(genome).update(genes)
    shared = config.genome_config
    for part, kind in (("nodes", shared.node_gene_type), ("connections", shared.connection_gene_type)):
        setattr(genome, part, {key: _gene(kind, values) for key, values in getattr(genome, part).items()})
    if seed is not None:
        random.seed(seed + genome.key)
    fitness = _received(namespace, function)(genome, config)
    if not isinstance(fitness, Real) or math.isnan(fitness):
        raise ValueError(f"{function[0]} returned {fitness!r:.80} for genome {genome.key}, but a fitness must be a number")
    return fitness


def _gene(kind: Any, values: Dict[str, Any]) -> Any:
    gene = kind.__new__(kind)
    vars(gene).update(values)
    return gene


@functools.lru_cache(maxsize=1)
def _config(text: str, *types: Any) -> Any:
    """The configuration with this text. A worker reads it once."""
    with tempfile.TemporaryDirectory(prefix="evoxo-") as directory:
        path = Path(directory) / _CONFIG
        path.write_text(text, encoding="utf-8")
        return importlib.import_module("neat").Config(*types, str(path))
