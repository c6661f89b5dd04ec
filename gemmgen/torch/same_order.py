"""Kernels of the same order of additions, for operators with ``require same_bits``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gemmgen.base.errors import CallError
from gemmgen.calling.arguments import View
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.decompositions import Fast
from gemmgen.pipeline import Emitted
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule
from gemmgen.summation import SummationOrder, summation_order
from gemmgen.torch.siblings import compiled
from gemmgen.torch.suggested import request_of

Wanted = Callable[[Emitted], bool]
"""Whether a kernel may be chosen."""


def wanted_order(
    schedule: Schedule,
    own: bool,
    views: Mapping[str, View],
    extents: Mapping[str, int],
    gpu: Gpu | None,
    *,
    fast: Fast = False,
) -> Wanted:
    """The kernels that sum as ``schedule`` requires: any without ``require same_bits``, or where
    there is nothing to sum; with a user's ``own`` directives those of its order; on a GPU those of
    the family that ``suggest`` chooses from.  On the CPU (``gpu`` is None) there is one kernel."""
    if schedule.same_bits is None or 0 in extents.values():
        return lambda emitted: True
    if own:
        order = _order_of(compiled(format_schedule(schedule)))
        return lambda emitted: _order_of(emitted) == order
    if gpu is None:
        return lambda emitted: True
    from gemmgen.explore.suggest.order_family import family_of

    request = request_of(schedule.problem_alone, extents, views, gpu, fast=fast)
    family = family_of(request)
    assert family is not None, "the problem has the line"
    return family.made


def _order_of(emitted: Emitted) -> SummationOrder:
    return summation_order(emitted.program, emitted.lowered.kernels[0])


def no_kernel_of_the_order(schedule: Schedule, refusal: CallError | None) -> CallError:
    """What is raised if no kernel of the order takes the tensors; ``refusal``: why the last one
    that adds so does not."""
    asked = schedule.same_bits
    assert asked is not None
    line = f"require same_bits over {' '.join(asked.letters)}"
    why = f": {refusal}" if refusal is not None else ""
    return CallError(
        f"no kernel with the summation order that `{line}` fixes takes these tensors{why}; pass "
        "tensors with rows that begin at multiples of 16 bytes, or leave the line out"
    )
