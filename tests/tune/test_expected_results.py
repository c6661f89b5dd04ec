"""What a search compares kernels of one problem with, without a GPU."""

from __future__ import annotations

import pytest

from gemmgen.base.source import Source
from gemmgen.explore.request import Request
from gemmgen.explore.suggest.choose import choose
from gemmgen.explore.tune import gpu_measuring
from gemmgen.gpu.bench import timed_case
from gemmgen.ir.interface import Interface
from gemmgen.pipeline import compile_source
from gemmgen.schedule.formatting import format_schedule

SHAPE = (512, 512, 4096)


@pytest.mark.parametrize("dtype", ["e4m3", "bf16", "f32"])
def test_the_bound_is_that_of_the_kernels_own_arithmetic(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """wgmma adds as tensor cores do, the naive kernel in f32: one problem, two bounds."""
    request = Request.of("C[m, n] = A[m, k] * B[n, k]", SHAPE, dtype=dtype)
    naive = compile_source(Source(format_schedule(request.problem))).interface
    chosen = choose(request, measured=False).emitted.interface
    assert (naive.arithmetic != chosen.arithmetic) == (dtype != "f32")
    assert [p.name for p in naive.tensors] == [p.name for p in chosen.tensors]
    assert [p.name for p in naive.scalars] == [p.name for p in chosen.scalars]
    asked: list[Interface] = []

    def wanted(interface: Interface, *_: object) -> object:
        asked.append(interface)
        return interface.arithmetic

    monkeypatch.setattr(gpu_measuring, "wanted", wanted)
    monkeypatch.setattr(gpu_measuring, "inputs", lambda *_: {})
    problem = gpu_measuring._Problem(naive, timed_case(SHAPE), None, {})
    for interface in (naive, chosen, naive, chosen):
        assert problem.expected(interface) == interface.arithmetic
    assert len(asked) == 1 + (dtype != "f32")
