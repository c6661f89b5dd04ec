"""What a search asks of a GPU: is this kernel right, and how long does it take?

The search knows a ``Lab`` alone, so that its logic is tested without a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gemmgen.analyze.gpus import Gpu
from gemmgen.base.record import record
from gemmgen.explore.tune.trials import Status
from gemmgen.gpu.store import Stored
from gemmgen.ir.interface import Interface


@record
class Candidate:
    """A compiled point of the space."""

    number: int
    interface: Interface
    target: str
    files: Stored


@record
class Rejection:
    """Why a candidate is no good: ``wrong``, ``refused`` by its launcher, or ``crashed``."""

    status: Status
    reason: str


@record
class Reading:
    """A candidate's time per shape: medians in milliseconds, and cuBLAS's of the same rounds.

    ``rival`` is None where cuBLAS has no such call.  ``finding``: what was wrong with the result
    that it left after it was timed; its times count for nothing then.
    """

    number: int
    ms: tuple[float, ...] = ()
    rival: tuple[float, ...] | None = None
    finding: Rejection | None = None

    @property
    def share(self) -> tuple[float, ...] | None:
        """cuBLAS's time over this one's, per shape."""
        if self.rival is None:
            return None
        return tuple(theirs / mine for mine, theirs in zip(self.ms, self.rival, strict=True))


@record
class Here:
    """Where a lab is: the GPU's name, what to compile for, and its figures."""

    name: str
    arch: str
    gpu: Gpu


SAMPLE = 5.0
"""Milliseconds between two events, at the least, where time is no object."""


@record
class Screen:
    """A first timing: what takes more than ``slowest`` times cuBLAS is timed roughly, and once."""

    slowest: float


class Lab(Protocol):
    """A place where kernels are measured, for given shapes."""

    @property
    def here(self) -> Here: ...

    def check(self, candidates: Sequence[Candidate]) -> tuple[Rejection | None, ...]:
        """Runs each on a poisoned output; None for those whose result is right at every shape."""
        ...

    def time(
        self, candidates: Sequence[Candidate], rounds: int, screen: Screen | None = None
    ) -> tuple[Reading, ...]:
        """Times candidates that were found right, in turns with each other and cuBLAS, and checks
        what they left; with ``screen`` in haste."""
        ...

    def prove(self, candidate: Candidate, text: str) -> Rejection | None:
        """Everything that can be asked of the kernel of the schedule ``text``: every kind of
        numbers, ragged edges."""
        ...
