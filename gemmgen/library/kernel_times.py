"""The time of a library's kernels at any shape: measured, or by the cost model.

``suggest`` gives each candidate with its time at one shape, measured results included.  At another
shape the time is the cost model's, times the ratio of the two at the nearest of these shapes to a
power that falls with the distance, as in ``explore.suggest.measured_plans``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import exp, fsum, inf, log

from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.base.units import duration
from gemmgen.explore.cost import estimate, launched
from gemmgen.explore.request import Request
from gemmgen.explore.suggest import suggest
from gemmgen.explore.suggest.acceptance import accepts
from gemmgen.explore.suggest.measured_plans import REACH
from gemmgen.explore.suggest.warpgroup_schedules import plan_of
from gemmgen.explore.tune.footprint import block_sizes
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.launch_shape import Shape
from gemmgen.library.library_spec import ProductSpec
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.schedule.formatting import format_schedule


@record
class KnownTime:
    """The seconds of a kernel at a shape that ``suggest`` chose it for; ``measured`` there, or
    estimated."""

    shape: Shape
    seconds: float
    measured: bool


@record
class TimedKernel:
    """A kernel by its schedule's text, which states no extents, with its known times."""

    text: str
    known: tuple[KnownTime, ...]

    @cached_property
    def emitted(self) -> Emitted:
        return compile_source(Source(self.text))


def suggested(product: ProductSpec, gpu: Gpu, shape: Shape) -> TimedKernel:
    """The kernel that ``suggest`` chooses for a shape."""
    found = suggest(product.gemm, shape, dtype=product.dtype, epilogue=product.epilogue, gpu=gpu)
    measured = found.chosen.measured
    time = KnownTime(shape, found.chosen.seconds, measured is not None and measured.exact)
    return TimedKernel(format_schedule(replace(found.schedule, assumes=())), (time,))


class KernelTimes:
    """Times of a product's kernels on a GPU."""

    def __init__(self, product: ProductSpec, gpu: Gpu) -> None:
        self._product, self._gpu = product, gpu
        self._found: dict[tuple[str, Shape], float] = {}

    def seconds(self, kernel: TimedKernel, shape: Shape) -> float:
        """The time at ``shape``; infinite if the kernel refuses packed matrices of that shape."""
        for one in kernel.known:
            if one.shape == shape and one.measured:
                return one.seconds
        nearest = min(kernel.known, key=lambda one: distance(one.shape, shape))
        own, there = self._modeled(kernel, shape), self._modeled(kernel, nearest.shape)
        if not 0 < there < inf:
            return own
        return own * (nearest.seconds / there) ** exp(-distance(nearest.shape, shape) / REACH)

    def why(self, kernel: TimedKernel, shape: Shape) -> str:
        """Measured or estimated, and the time."""
        measured = any(one.shape == shape and one.measured for one in kernel.known)
        return f"{'measured' if measured else 'estimated'}, {duration(self.seconds(kernel, shape))}"

    def _modeled(self, kernel: TimedKernel, shape: Shape) -> float:
        found = self._found.get((kernel.text, shape))
        if found is None:
            found = self._found[kernel.text, shape] = self._estimate(kernel.emitted, shape)
        return found

    def _estimate(self, emitted: Emitted, shape: Shape) -> float:
        """The cost model's seconds."""
        own = self._product
        request = Request.of(own.gemm, shape, dtype=own.dtype, epilogue=own.epilogue, gpu=self._gpu)
        if not accepts(emitted, request):
            return inf
        plan = plan_of(emitted.schedule, request)
        if plan is not None:
            return plan.seconds
        sizes = block_sizes(emitted.program, emitted.interface)
        return estimate(launched(sizes, shape, self._gpu), self._gpu)


def distance(one: Shape, other: Shape) -> float:
    """The sum of the logarithms of the extents' ratios: the dispatcher's."""
    return fsum(abs(log(x / y)) for x, y in zip(one, other, strict=True))
