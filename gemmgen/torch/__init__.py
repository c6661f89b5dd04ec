"""Schedules as PyTorch operators, with gradients, for ``torch.compile`` and CUDA graphs.

    fused = gemmgen.torch.op("fused.sched", name="my::fused")
    c = fused(a, b, bias)

PyTorch is imported when the first operator is made.
"""

from __future__ import annotations

from gemmgen.torch.operator import op

__all__ = ["op"]
