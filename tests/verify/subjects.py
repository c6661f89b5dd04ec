"""Kernels to prove, and to break."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.base.source import Source
from gemmgen.ir.launch_shape import Shape
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_schedule
from gemmgen.proof.outcome import Subject
from gemmgen.sim.unit import BEGIN

NAIVE = "gemm C[m, n] = A[m, k] * B[k, n]\n"
TILED = "tile m=16 n=16 k=8\ncache_shared A[k, m] B\npad A by=1\n"
DOUBLE = f"{TILED}double_buffer A B\n"
LADDER = """\
tile            m=64 n=32 k=8
cache_shared    A[k, m] B
register_block  m=4 n=4
vectorize       A B C width=4
pad             A by=4
double_buffer   A B
"""


def subject(schedule: str, *shapes: Shape) -> Subject:
    return Subject(compile_schedule(parse_schedule(Source(schedule))), shapes)


def mutant(schedule: str, before: str, after: str, times: int = 1) -> Subject:
    """The kernel of ``schedule`` with its first ``before``, or ``times`` of them, replaced."""
    right = subject(schedule)
    header, begin, kernel = right.emitted.text.partition(BEGIN)
    found = kernel.count(before)
    assert found >= times, f"the emitted text has {before!r} {found} times: mend this test"
    text = header + begin + kernel.replace(before, after, times)
    return Subject(replace(right.emitted, text=text))


def without_the_last_barrier(schedule: str) -> Subject:
    right = subject(schedule)
    first, barrier, last = right.emitted.text.rpartition("__syncthreads();")
    assert barrier
    return Subject(replace(right.emitted, text=first + last))
