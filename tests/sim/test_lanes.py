"""Lanes that share accumulators: the order of their additions, and mistakes in it are found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from emitted_kernels import planted

from gemmgen.base.source import Source
from gemmgen.calling.launches import ORDERS, Case
from gemmgen.numerics import reference
from gemmgen.numerics.fma import fma
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.calls import Caller
from gemmgen.sim.failures import KernelFault
from gemmgen.sim.run import CompiledKernel
from gemmgen.sim.unit import BEGIN, located_functions

SCHEDULE = """
gemm y[m, n] = A[m, k] * x[n, k]
tile m=4 n=2 k=256
register_block m=2 n=1
vectorize A.global x.global width=4
split_k within=warp
"""
WIDE = SCHEDULE.replace("m=2 n=1", "m=2 n=2") + "vectorize y width=2\n"
SHAPE = (7, 3, 420)
"""Two steps, the last a partial one; rows and columns past the last."""


def answers(kernel: Emitted, text: str, shape: tuple[int, int, int] = SHAPE) -> dict[str, str]:
    """Per order of threads what is found wrong with ``text``."""
    compiled = CompiledKernel(text, kernel.interface, checked=True, warn=False)
    found: dict[str, str] = {}
    caller = Caller(kernel)
    for order in ORDERS:
        try:
            message = caller.complaint(Case(shape, "normal", 0.7, -1.0, 1, order), compiled)
        except KernelFault as fault:
            kinds = [f"{each.kind}: {each.name}" for each in fault.findings]
            message = "; ".join(kinds) or str(fault)
        found[order] = message or ""
    compiled.close()
    return found


@pytest.mark.by_default("shape0")
@pytest.mark.parametrize("shape", (SHAPE, (1, 1, 4), (4, 2, 256), (9, 1, 0), (8, 2, 1024)))
def test_every_order_is_right(shape: tuple[int, int, int]) -> None:
    kernel = compile_source(Source(SCHEDULE))
    assert answers(kernel, kernel.text, shape) == dict.fromkeys(ORDERS, "")


def test_only_shuffles_are_called_by_all_lanes() -> None:
    """The comment between two functions is not the first one's."""
    text = compile_source(Source(WIDE)).text
    assert "// shfl.sync.bfly" in text and "copy2" in text
    assert [*located_functions(text.partition(BEGIN)[0])] == ["gg_shuffle_xor"]


def test_the_defined_order_is_that_of_the_definition() -> None:
    """One sum, written out: k elements to lanes, lanes to pairs."""
    rng = np.random.default_rng(7)
    depth, step, width = 300, 128, 2
    a, b = (rng.standard_normal(depth).astype(np.float32) for _ in range(2))
    lanes = [np.float32(0)] * 32
    for k in range(depth):
        lane = k % step // width % 32
        lanes[lane] = np.float32(fma(a[k : k + 1], b[k : k + 1], lanes[lane])[0])
    for distance in (16, 8, 4, 2, 1):
        lanes = [lanes[i] + lanes[i ^ distance] for i in range(32)]
    got = reference.lanes(a[None], b[:, None], step, width)
    assert got.dtype == np.float32 and len({float(lane) for lane in lanes}) == 1
    assert float(got[0, 0]) == float(lanes[0])
    assert float(got[0, 0]) != float(reference.sequential(a[None], b[:, None])[0, 0])


@dataclass(frozen=True)
class Plant:
    """``old`` becomes ``new``; every run then finds one of ``finds``: a kind and a name, or what a
    message contains."""

    old: str
    new: str
    finds: tuple[str, ...]


def _adds(distance: int) -> str:
    return f"+= gg_shuffle_xor(acc[reg_m][reg_n], {distance})"


def _lines(*distances: int) -> str:
    return f"\n{' ' * 12}".join(f"acc[reg_m][reg_n] {_adds(d)};" for d in distances)


WRONG = ("y: wrong bits",)
PLANTS = {
    "a distance left out": Plant(_adds(8), "+= 0.0f", WRONG),
    "a distance twice": Plant(_adds(8), _adds(16), WRONG),
    "another order of the distances": Plant(_lines(16, 8), _lines(8, 16), WRONG),
    "half a warp adds": Plant(
        f"acc[reg_m][reg_n] {_adds(16)};",
        f"if (lane < 16) acc[reg_m][reg_n] {_adds(16)};",
        ("divergent warp",),
    ),
    "a lane without k elements leaves": Plant(
        "float acc[TM][TN] = {};",
        "float acc[TM][TN] = {};\n    if (thread_k >= K % BK && K < BK) return;",
        ("divergent warp",),
    ),
    "every lane stores": Plant("if (lane == 0) {", "{", ("two owners: y",)),
    "one warp stores": Plant("if (lane == 0) {", "if (tid == 0) {", WRONG),
    "k elements of one lane are another's too": Plant("lane * PK", "lane / 2 * 2 * PK", WRONG),
    "k elements read twice": Plant("thread_k + reg_k * LK", "thread_k + reg_k % 4 * LK", WRONG),
    "a guard of k left out": Plant(
        "if (i < rows && j + VEC - 1 < cols) return",
        "if (i < rows) return",
        ("out of bounds: ", "y: wrong bits"),
    ),
    "whole steps where the last is ragged": Plant(
        "tile_k + BK <= K", "tile_k < K", ("out of bounds: ", "y: wrong bits")
    ),
}


@pytest.mark.by_default("a distance left out")
@pytest.mark.parametrize("name", PLANTS)
def test_finds(name: str) -> None:
    plant = PLANTS[name]
    kernel = compile_source(Source(SCHEDULE))
    text = planted(kernel.text, plant.old, plant.new)
    shape = (8, 4, 100) if "leaves" in name else (8, 4, 420)
    for order, message in answers(kernel, text, shape).items():
        assert any(found in message for found in plant.finds), f"{order}: {message}"
