"""The order in which points are tried: Optuna's TPE sampler over the legal points.

The sampler does not know which points are legal, so each of its proposals is mapped to the nearest
legal point that was not tried: as many sets as possible keep their value, and the others are close
to it.  Its proposals alternate with the next points by the estimate's rank, with which a search
begins.  With time for all points the search is exhaustive.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gemmgen.base.errors import CannotCheck
from gemmgen.base.installing import install
from gemmgen.explore.tune.legal_points import Legal
from gemmgen.explore.tune.space import SearchSpace, Value

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.distributions import BaseDistribution

INSTALL = install("tune")
OPENING = 64
"""The first points, by rank, before the sampler has data."""
EVERY = 4
"""Every N later points, one is the next by rank."""


class Explorer:
    """Proposes points of ``ranked`` (the likeliest first), each once; the same for one ``seed``."""

    def __init__(self, space: SearchSpace, ranked: Sequence[Legal], seed: int):
        self._ranked = ranked
        axes = {key: _ordered(space.sets[key]) for key in space.open_keys}
        # Each point as positions in its sets.
        self._positions = np.array(
            [[a.index(dict(point.settings)[k]) for k, a in axes.items()] for point in ranked],
            dtype=np.int64,
        ).reshape(len(ranked), len(axes))
        # What one position's difference costs, relative to that of any difference.
        self._scale = np.array([1 / len(a) if _are_numbers(a) else 0.0 for a in axes.values()])
        self._free = np.ones(len(ranked), dtype=bool)
        self._next = 0
        self._rank = {point.number: at for at, point in enumerate(ranked)}
        self._asked: dict[int, Trial] = {}
        self._count = 0
        require_optuna()
        import optuna

        self._space = {key: _distribution(values) for key, values in axes.items()}
        self._study = optuna.create_study(
            sampler=optuna.samplers.TPESampler(
                seed=seed, multivariate=True, constant_liar=True, n_startup_trials=OPENING // 2
            )
        )

    @property
    def left(self) -> int:
        """Points that were not proposed."""
        return int(self._free.sum())

    def ask(self, count: int) -> tuple[Legal, ...]:
        """The next points, at most ``count`` of them; none if all were proposed."""
        return tuple(self._one() for _ in range(min(count, self.left)))

    def tell(self, number: int, value: float | None) -> None:
        """The objective of a proposed point, to be minimized; None for one that failed."""
        from optuna.trial import TrialState

        trial = self._asked.pop(number)
        if value is None:
            self._study.tell(trial, state=TrialState.PRUNED)
        else:
            self._study.tell(trial, value)

    def known(self, number: int, value: float | None) -> None:
        """A point that was tried before: it is not proposed again."""
        at = self._rank[number]
        if self._free[at]:
            self._take(at)
            self.tell(number, value)

    def _one(self) -> Legal:
        from optuna.trial import TrialState

        self._count += 1
        if self._count <= OPENING or self._count % EVERY == 0 or not self._space:
            return self._take(self._by_rank())
        trial = self._study.ask(self._space)
        at = self._nearest(trial.params)
        if self._params(at) != trial.params:
            self._study.tell(trial, state=TrialState.FAIL)
            return self._take(at)
        return self._take(at, trial)

    def _by_rank(self) -> int:
        while not self._free[self._next]:
            self._next += 1
        return self._next

    def _take(self, at: int, trial: Trial | None = None) -> Legal:
        """Marks the point at this rank as running, for the sampler too."""
        if trial is None:
            self._study.enqueue_trial(self._params(at))
            trial = self._study.ask(self._space)
        self._free[at] = False
        point = self._ranked[at]
        self._asked[point.number] = trial
        return point

    def _params(self, at: int) -> dict[str, int]:
        return dict(zip(self._space, self._positions[at].tolist(), strict=True))

    def _nearest(self, params: Mapping[str, int]) -> int:
        """The untried point that agrees with ``params`` in most sets; of equals the first."""
        wanted = np.array([params[key] for key in self._space])
        off = np.abs(self._positions - wanted) * self._scale
        far = np.where(self._positions != wanted, 1.0 + off, 0.0).sum(axis=1)
        return int(np.argmin(np.where(self._free, far, np.inf)))


def _are_numbers(values: Sequence[Value]) -> bool:
    return all(isinstance(value, int) for value in values)


def _ordered(values: Sequence[Value]) -> list[Value]:
    """Numbers are ordered, words are categories in the text's order."""
    return sorted(values, key=int) if _are_numbers(values) else list(values)


def _distribution(values: Sequence[Value]) -> BaseDistribution:
    """Of positions in ``values``."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if _are_numbers(values):
        return IntDistribution(0, len(values) - 1)
    return CategoricalDistribution(range(len(values)))


def require_optuna() -> None:
    """Optuna without its log; ``CannotCheck`` if it is not installed."""
    try:
        import optuna
    except ImportError:
        raise CannotCheck(f"tune searches with Optuna, which is not installed: {INSTALL}") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
