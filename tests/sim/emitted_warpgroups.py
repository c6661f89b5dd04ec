"""Emitted kernels whose warpgroups multiply tiles in shared memory, and what runs find wrong."""

from __future__ import annotations

import functools
from itertools import product

from gemmgen.base.source import Source
from gemmgen.calling.launches import BOX_LANDINGS, ORDERS, STRICT_ORDERS, Case
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.calls import Caller
from gemmgen.sim.failures import KernelFailure
from gemmgen.sim.run import CompiledKernel

HEAD = """\
gemm C[m, n] = A[m, k] * B[n, k]
dtype A=bf16 B=bf16 C=bf16
target sm_90a
tile m=64 n=16 k=64
cache_shared A B
warp_tile m=64 n=16
tensor_core via=wgmma
swizzle A B
async_copy A B via=tma
"""
TWO, THREE = "double_buffer A B\n", "double_buffer A B stages=3\n"
PRODUCER = "warp_specialize producers=1\n"


@functools.cache
def emitted(schedule: str) -> Emitted:
    return compile_source(Source(schedule, "x.sched"))


def complaint(schedule: str, text: str | None = None) -> str | None:
    """What runs find wrong: several tiles of 4 steps, the last one ragged, in every order; and
    an empty sum.  ``text`` is another one than what is emitted."""
    known = emitted(schedule)
    caller = Caller(known)
    kernel = CompiledKernel(text or known.text, known.interface, checked=True, warn=text is None)
    try:
        for order, landing in product((*ORDERS, *STRICT_ORDERS), BOX_LANDINGS):
            each = Case((131, 40, 200), "normal", 0.7, -1.0, 1, order, landing)
            found = caller.complaint(each, kernel)
            if found is not None:
                return found
        empty = Case((70, 20, 0), "normal", 0.7, -1.0, 1, "ascending", "late")
        return caller.complaint(empty, kernel)
    except KernelFailure as failure:
        return str(failure)
    finally:
        kernel.close()
