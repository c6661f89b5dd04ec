"""The interface between a search and a GPU: ``Runner`` checks candidates and times them.

The search depends on ``Runner`` alone, so that its logic is tested without a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gemmgen.base.record import record
from gemmgen.explore.tune.trials import Status
from gemmgen.gpu.gpus import Gpu
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
    """Why a candidate is rejected: ``wrong``, ``refused`` by its launcher, or ``crashed``."""

    status: Status
    reason: str


@record
class Reading:
    """A candidate's time per shape: medians in milliseconds, and cuBLAS's of the same rounds
    (cublasLt's of the types that it alone multiplies).

    ``rival`` is None if neither has such a call.  ``finding``: what was wrong with its result after
    it was timed; its times are then ignored.
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
class DeviceInfo:
    """A runner's GPU: its name, the architecture to compile for, and its figures; the versions of
    its driver and of CUDA, if they are known."""

    name: str
    arch: str
    gpu: Gpu
    driver: str = ""
    cuda: str = ""


@record
class Screen:
    """A first timing: a kernel over ``slowest`` times cuBLAS's time is timed once and roughly."""

    slowest: float


class Runner(Protocol):
    """Checks and times kernels at given shapes."""

    @property
    def device_info(self) -> DeviceInfo: ...

    def check(self, candidates: Sequence[Candidate]) -> tuple[Rejection | None, ...]:
        """Runs each on a poisoned output; None for those whose result is right at every shape."""
        ...

    def time(
        self, candidates: Sequence[Candidate], rounds: int, screen: Screen | None = None
    ) -> tuple[Reading, ...]:
        """Times candidates that were found right, interleaved with each other and cuBLAS, and
        checks their last results; with ``screen`` in less time."""
        ...

    def prove(self, candidate: Candidate, text: str) -> Rejection | None:
        """All GPU checks of the kernel of the schedule ``text``: every kind of numbers, ragged
        edges."""
        ...
