"""Whether a kernel is one for a request: it accepts the tensors, and adds as was asked."""

from __future__ import annotations

from gemmgen.explore.request import Request
from gemmgen.explore.suggest.order_family import family_of
from gemmgen.pipeline import Emitted
from gemmgen.schedule.roles import extents


def accepts(emitted: Emitted, request: Request) -> bool:
    """Whether the kernel accepts the request's tensors, at aligned addresses, and with ``require
    same_bits`` has the summation order of its family."""
    interface, family = emitted.interface, family_of(request)
    if family is not None and not family.made(emitted):
        return False
    values = dict(zip(extents(request.problem.gemm).values(), request.shape, strict=True))
    values |= {param.name: 0 for param in interface.tensors}
    for role in "abc":
        name = request.access[role].tensor
        param = next(p for p in interface.params if p.name == name)
        for step, size in zip(interface.steps(param), request.strides(role), strict=True):
            if step is not None:
                values.setdefault(step, size)
    known = set(values)
    asked = (r for r in interface.requirements if r.name in known)
    return all(r.holds(values) for r in asked)
