"""Whether a kernel accepts the tensors of a request."""

from __future__ import annotations

from gemmgen.explore.request import Request
from gemmgen.pipeline import Emitted
from gemmgen.schedule.roles import extents


def accepts(emitted: Emitted, request: Request) -> bool:
    """Whether the kernel accepts the request's tensors, at aligned addresses."""
    interface = emitted.interface
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
