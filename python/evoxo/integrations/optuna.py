"""Optuna: ``optimize(study, objective, n_trials=100, pool=pool)`` instead of ``study.optimize(objective, n_trials=100)``."""

from __future__ import annotations

import contextlib
import copy
import importlib
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Type

from .. import CallFailed, Executor
from . import _received, _sent, _warn

TRIED = "5.0.0"
"""The version of Optuna with which this is tested."""

BATCH_MAX = 1000
"""The most trials of a batch."""

Asked = Tuple[str, str]
"""A parameter that an objective asks for: its name, and its distribution as JSON."""

Given = List[List[Any]]
"""Parameters with their values: name, distribution and value of each, in the order in which an objective asks for them."""


def optimize(
    study: Any,
    objective: Callable[[Any], Any],
    n_trials: int,
    pool: Executor,
    *,
    batch: int = 16,
    catch: Tuple[Type[BaseException], ...] = (),
) -> None:
    """Runs trials in batches. The study depends on `batch`, but on neither the number of workers nor their speed.

    The sampler is asked for the trials of a batch in their order, and is told their values in the same order when all are there.
    A sampler that does not look at values, such as `RandomSampler`, therefore gives the study of ``study.optimize``. Reported
    values and attributes arrive with a trial's value, so a pruner cannot stop it. Errors are raised when their batch has been told,
    unless `catch` has their types. A sampler that stops the study stops it after a batch.
    """
    _warn("optuna", TRIED)
    if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= BATCH_MAX:
        raise ValueError(f"batch is {batch!r}, but it must be a whole number from 1 to {BATCH_MAX:,}")
    runner = _Runner(study, _sent(pool, objective), pool, catch)
    left = n_trials
    # Some samplers stop the study. Optuna allows that only while it is optimized.
    study._stop_flag, study._thread_local.in_optimize_loop = False, True
    try:
        while left > 0 and not study._stop_flag:
            # One trial shows which parameters the objective asks for, so that the others need no further questions.
            count = min(left, batch if runner.next else 1)
            runner.run(count)
            left -= count
    finally:
        study._thread_local.in_optimize_loop = False


class _Runner:
    """Workers do not have the sampler. So a copy of the study guesses the parameters of a batch, and workers compute with them. Then the
    study itself is asked for what each objective did ask for. What was guessed wrong is computed again: guesses cost or save only time."""

    def __init__(self, study: Any, objective: Sequence[Any], pool: Executor, catch: Tuple[Type[BaseException], ...]) -> None:
        self._optuna = importlib.import_module("optuna")
        self._study, self._objective, self._pool, self._catch = study, objective, pool, catch
        self.next: Dict[Any, Optional[Asked]] = {}
        """What objectives asked for next, after these parameters: with the values of choices and whole numbers, and with names only."""

    def run(self, count: int) -> None:
        """Asks for the trials of a batch, and tells their values."""
        done: List[Tuple[Any, Dict[str, Any]]] = []
        while len(done) < count:
            guesses = self._guesses(count - len(done))
            calls = [self._call(*guess) for guess in guesses]
            for guess, call in zip(guesses, calls):
                trial = self._study.ask()
                answer, wrong = self._settle(trial, guess, call)
                done.append((trial, answer))
                if wrong:  # So are the guesses after it, in most cases.
                    break
            for call in calls:
                call.cancel()
        failed = [error for trial, answer in done if (error := self._tell(trial, answer)) is not None]
        if failed:
            raise failed[0]

    def _guesses(self, count: int) -> List[Tuple[int, Given]]:
        """The numbers of the next trials, and the parameters that the study would give them."""
        shadow: Any = None
        with contextlib.suppress(Exception):  # A sampler that cannot be copied.
            shadow = self._shadow()
        if shadow is None:
            return [(len(self._study.get_trials(deepcopy=False)), [])]
        guesses: List[Tuple[int, Given]] = []
        for _ in range(count):
            trial = shadow.ask()
            given: Given = []
            while (asked := self._foreseen(given)) is not None:
                given.append([*asked, self._draw(trial, asked)])
            guesses.append((trial.number, given))
        return guesses

    def _shadow(self) -> Any:
        if isinstance(self._study._storage, self._optuna.storages.InMemoryStorage):
            return copy.deepcopy(self._study)
        memory = self._optuna.create_study(directions=self._study.directions, sampler=copy.deepcopy(self._study.sampler))
        memory.add_trials(self._study.trials)
        return memory

    def _foreseen(self, given: Given) -> Optional[Asked]:
        exact, names = _paths(given)
        return self.next.get(exact, self.next.get(names))

    def _draw(self, trial: Any, asked: Asked) -> Any:
        return trial._suggest(asked[0], self._optuna.distributions.json_to_distribution(asked[1]))

    def _call(self, number: int, given: Given, fails: bool = False) -> Any:
        prunes = not isinstance(self._study.pruner, self._optuna.pruners.NopPruner)
        return self._pool.submit(_evaluate, self._objective, number, given, prunes, fails)

    def _settle(self, trial: Any, guess: Tuple[int, Given], call: Any) -> Tuple[Dict[str, Any], bool]:
        """Gives a trial its parameters until its objective has all. Returns its answer, and whether the guess was wrong."""
        number, given = guess
        wrong = trial.number != number
        if wrong:
            call = self._call(trial.number, given)
        while True:
            answer = self._answer(call, trial.number, given)
            drawn: Given = []
            for name, said in answer["asked"]:
                for path in _paths(drawn):
                    self.next[path] = (name, said)
                drawn.append([name, said, self._draw(trial, (name, said))])
                if drawn != given[: len(drawn)]:  # What the objective asked for next depends on a wrong value.
                    break
            if not answer.get("needs") and drawn == given[: len(drawn)]:
                for path in _paths(drawn):
                    self.next[path] = None
                return answer, wrong or len(drawn) < len(given)
            wrong, given = True, drawn
            call = self._call(trial.number, given)

    def _answer(self, call: Any, number: int, given: Given) -> Dict[str, Any]:
        """What an objective returned. If it failed, also which parameters it had asked for before, because the study has those too."""
        try:
            answer: Dict[str, Any] = call.result()
        except (CallFailed, TimeoutError) as error:  # Its process ended.
            answer = {"asked": [one[:2] for one in given], "error": error}
        except Exception as error:
            answer = {**self._call(number, given, fails=True).result(), "error": error}
        return answer

    def _tell(self, trial: Any, answer: Dict[str, Any]) -> Optional[BaseException]:
        """Tells the study about a trial. Returns an error that is to be raised."""
        states = self._optuna.trial.TrialState
        for value, step in answer.get("reported", []):
            trial.report(value, step)
        for key, value in answer.get("attributes", {}).items():
            trial.set_user_attr(key, value)
        for key, value in answer.get("constraints", {}).items():
            trial.set_constraint(key, value)
        error: Optional[BaseException] = answer.get("error")
        if error is not None or answer.get("pruned"):
            self._study.tell(trial, state=states.FAIL if error is not None else states.PRUNED)
        else:
            self._study.tell(trial, answer["value"])
        return None if error is None or isinstance(error, self._catch) else error


def _paths(given: Given) -> Tuple[Any, Any]:
    """Two keys of the parameters so far: with the values of choices and whole numbers, on which further ones may depend, and without."""
    return tuple((one[0], repr(one[2]) if type(one[2]) is not float else "") for one in given), tuple(one[0] for one in given)


class _Needs(BaseException):
    """An objective asks for a parameter that it was not given. It is no Exception, because an objective may catch those."""


def _evaluate(
    namespace: Dict[str, Any], objective: Sequence[Any], number: int, given: Given, prunes: bool, fails: bool
) -> Dict[str, Any]:
    """What a worker computes: the value of a trial, or which parameter it needs."""
    optuna = importlib.import_module("optuna")
    asked: List[Asked] = []
    reported: List[List[Any]] = []

    class Trial(optuna.trial.FixedTrial):  # type: ignore[misc, name-defined]
        def _suggest(self, name: str, distribution: Any) -> Any:
            if name not in self._suggested_params:
                said = optuna.distributions.distribution_to_json(distribution)
                asked.append((name, said))
                if len(asked) > len(given) or given[len(asked) - 1][:2] != [name, said]:
                    raise _Needs
            return super()._suggest(name, distribution)

        def report(self, value: float, step: int) -> None:
            reported.append([float(value), step])

        def should_prune(self) -> bool:
            if prunes:
                raise RuntimeError("a worker cannot ask the study's pruner: create the study with pruner=NopPruner()")
            return False

    trial = Trial({name: value for name, _, value in given}, number)
    answer: Dict[str, Any] = {"asked": asked}
    try:
        answer["value"] = _received(namespace, objective)(trial)
    except _Needs:
        return {"asked": asked, "needs": True}
    except optuna.TrialPruned:
        answer["pruned"] = True
    except Exception:
        if not fails:
            raise
        return {"asked": asked}
    return {**answer, "reported": reported, "attributes": trial.user_attrs, "constraints": trial.constraints}
