"""A reader edits a constant of an emitted kernel: it stays right, or no compiler takes it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from golden.test_golden import GOLDEN
from pipeline.running import call, check, emitted

from gemmgen.ir.interface import Interface
from gemmgen.pipeline import Emitted
from gemmgen.sim.failures import CompileFailure
from gemmgen.sim.run import compile_kernel


def edited(golden: str, old: str, new: str, interface: Interface | None = None) -> Emitted:
    """The golden's kernel with another value of a constant."""
    kernel = emitted(GOLDEN[golden].text)
    assert kernel.text.count(old) == 1
    interface = interface or kernel.interface
    return replace(kernel, text=kernel.text.replace(old, new), interface=interface)


def is_right(kernel: Emitted, golden: str) -> None:
    for shape in ((35, 33, 37), (130, 260, 40)):
        check(kernel, call(*shape, 0.7, -1.0, pad=4), GOLDEN[golden].want, kernel.text)


@pytest.mark.by_default("2")
@pytest.mark.parametrize("stages", (2, 3))
def test_fewer_stages_of_a_ring_are_right(stages: int) -> None:
    interface = emitted(GOLDEN["async_copy"].text).interface
    bytes_of_each = interface.static_shared // 4
    interface = replace(interface, static_shared=bytes_of_each * stages)
    is_right(edited("async_copy", "STAGES = 4;", f"STAGES = {stages};", interface), "async_copy")


def test_a_smaller_tile_is_right() -> None:
    interface = emitted(GOLDEN["async_copy"].text).interface
    interface = replace(
        interface,
        tiles=(("M", 64), ("N", 256)),
        block=(128, 1),
        static_shared=4 * 8 * (64 + 256) * 4,
    )
    is_right(edited("async_copy", "BM = 128,", "BM = 64,", interface), "async_copy")


@pytest.mark.parametrize(
    ("golden", "old", "new", "message"),
    [
        ("async_copy", "STAGES = 4;", "STAGES = 5;", "static shared memory: 48 KiB"),
        ("matvec", "TM = 1,", "TM = 2,", "the micro-tiles fill the tile"),
        ("vectorized", "BM = 128,", "BM = 100,", "the micro-tiles fill the tile"),
        ("vectorized", "BK = 8;", "BK = 16;", "the threads copy whole tiles"),
        ("warp_tiled", "BN = 256,", "BN = 2048,", "a block has at most 1024 threads"),
    ],
)
def test_what_would_be_wrong_does_not_compile(
    golden: str, old: str, new: str, message: str
) -> None:
    kernel = edited(golden, old, new)
    with pytest.raises(CompileFailure, match=message):
        compile_kernel(kernel.text, kernel.interface)
