"""Gymnasium: ``rollouts(pool, "CartPole-v1", policy, candidates, seeds)``, the returns of seeded episodes."""

from __future__ import annotations

import importlib
from typing import Any, Callable, Dict, Iterable, List, Sequence, Union

from .. import Executor
from . import _received, _sent, _warn

TRIED = "1.4.0"
"""The version of Gymnasium with which this is tested."""


def rollouts(
    pool: Executor,
    environment: Union[str, Callable[..., Any]],
    policy: Callable[[Any, Any], Any],
    candidates: Iterable[Any],
    seeds: Iterable[int],
    **options: Any,
) -> List[List[float]]:
    """For each candidate, the sum of rewards of an episode for each seed.

    A candidate is what `policy` gets before an observation to return an action, such as weights. The environment is a name for
    `gymnasium.make`, or a function of the file that returns one; `options` are its arguments. Each episode has a new one, so its
    return depends on nothing else.
    """
    _warn("gymnasium", TRIED)
    made = environment if isinstance(environment, str) else _sent(pool, environment)
    called, numbers = _sent(pool, policy), list(seeds)
    calls = [[pool.submit(_episode, made, options, called, one, seed) for seed in numbers] for one in candidates]
    return [[call.result() for call in each] for each in calls]


def _episode(
    namespace: Dict[str, Any],
    made: Union[str, Sequence[Any]],
    options: Dict[str, Any],
    called: Sequence[Any],
    candidate: Any,
    seed: int,
) -> float:
    """What a worker computes: the return of an episode."""
    policy = _received(namespace, called)
    make = importlib.import_module("gymnasium").make
    environment = make(made, **options) if isinstance(made, str) else _received(namespace, made)(**options)
    try:
        observation, _ = environment.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            observation, reward, terminated, truncated, _ = environment.step(policy(candidate, observation))
            total += float(reward)
            ended = terminated or truncated
    finally:
        environment.close()
    return total
