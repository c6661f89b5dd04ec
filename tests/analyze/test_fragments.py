"""Tensor cores in the counts: fragments' accesses by the bank, and the roof over them."""

from __future__ import annotations

from functools import cache

import pytest

from gemmgen.analyze.explain import Explanation, explain
from gemmgen.base.source import Source
from gemmgen.gpu.gpus import GPUS
from gemmgen.language import parse_schedule

SCHEDULE = """\
dtype A=f16 B=f16
tile m=64 n=64 k=32
cache_shared A B
warp_tile m=32 n=32
tensor_core via=wmma
vectorize A.global B.global width=8
vectorize C width=4
pad A by={a}
pad B by={b}
"""


pytestmark = pytest.mark.usefixtures("uncompiled")


@cache
def explained(a: int, b: int, gpu: str = "H200") -> Explanation:
    schedule = parse_schedule(Source(SCHEDULE.format(a=a, b=b)))
    return explain(schedule, (128, 128, 64), GPUS[gpu])


def read(explanation: Explanation, name: str) -> tuple[int, int, int]:
    """Elements, requests and wavefronts of the reads of a shared array."""
    (found,) = (t for t in explanation.traffic if t.buffer == name and not t.write)
    return found.counts.elements, found.counts.requests, found.counts.wavefronts


@pytest.mark.parametrize(
    ("pad", "a_ways", "b_ways"),
    [(0, 4, 8), (8, 1, 1), (16, 2, 2)],
)
def test_lines_of_fragments_meet_in_banks(pad: int, a_ways: int, b_ways: int) -> None:
    """Eight lines of 16 bytes are a phase.  Lines of 64 bytes meet four at a time, of 128 bytes all
    eight; a pad of 16 bytes parts them, one of 32 leaves pairs."""
    found = explained(pad, pad)
    for name, ways in (("A_shared", a_ways), ("B_shared", b_ways)):
        elements, requests, wavefronts = read(found, name)
        # 4 blocks of 4 warps, in 2 tiles of 2 steps each: 2 fragments of 256 elements.
        assert elements == 4 * 4 * 2 * 2 * 2 * 256
        assert requests == elements // 256
        assert wavefronts == 4 * ways * requests


def test_sums_pass_through_shared_memory_once() -> None:
    found = explained(8, 8)
    written = next(t for t in found.traffic if t.buffer == "acc_shared" and t.write)
    assert written.counts.elements == read(found, "acc_shared")[0] == 128 * 128
    assert written.counts.wavefronts == written.counts.phases


def test_the_roof_is_that_of_tensor_cores() -> None:
    for gpu, share in (("H200", 0.66), ("A100", 1.0)):
        found = explained(8, 8, gpu)
        roofline, share = found.roofline, share * found.balance
        (bound,) = (b for b in roofline.bounds if b.name == "tensor cores")
        assert roofline.flops / bound.seconds == pytest.approx(share * roofline.peak)
    assert roofline.peak == pytest.approx(312e12, rel=0.01)


def test_no_swizzle_is_offered_where_fragments_are_loaded() -> None:
    assert all(choice.swizzled is None for choice in explained(0, 0).pads)
    assert {choice.buffer: choice.best.pad for choice in explained(0, 0).pads} == {
        "A_shared": 8,
        "B_shared": 8,
    }
