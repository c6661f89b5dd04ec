"""Checked runs of right kernels find nothing, for hand-written and emitted ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from emitted_kernels import NAMES, checked, complaint
from handwritten_kernels import NAMES as HANDWRITTEN
from handwritten_kernels import interface, run, text

from gemmgen.calling.launches import LANDINGS, ORDERS, Case
from gemmgen.sim.run import compile_kernel

CASES = (
    Case((1, 1, 1), "normal", 0.7, -1.0),
    Case((33, 35, 45), "normal", 0.7, 0.0, 4),
    Case((64, 36, 32), "normal", 1.0, 1.0, 1),
    Case((130, 131, 19), "normal", 0.7, -1.0, 4),
    Case((3, 5, 0), "normal", 0.7, -1.0),
)


@pytest.mark.by_default("vectorized", "async_copy")
@pytest.mark.parametrize("name", NAMES)
def test_finds_nothing_in_an_example(name: str) -> None:
    kernel = checked(name)
    for i, case in enumerate(CASES):
        ordered = replace(case, order=ORDERS[i % 3], landing=LANDINGS[i % 2])
        assert complaint(name, kernel, ordered) is None


@pytest.mark.by_default("split_k")
@pytest.mark.parametrize("name", HANDWRITTEN)
def test_finds_nothing_in_a_hand_written_kernel(name: str) -> None:
    kernel = compile_kernel(text(name), interface(name), checked=True)
    for case in CASES:
        assert run(kernel, case, with_bias=name == "vectorized").equal


@pytest.mark.proof
def test_portable_fibers_are_checked_too() -> None:
    kernel = compile_kernel(text("tiled"), interface("tiled"), checked=True, ucontext=True)
    assert run(kernel, CASES[1]).equal
