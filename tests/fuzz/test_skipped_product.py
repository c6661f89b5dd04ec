"""Where alpha is 0 a call passes K = 0: 0 * 0 is 0, while 0 times a negative sum is -0."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace

import pytest

from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.draw import schedule_at
from gemmgen.fuzz.trial import as_called, cases, compile_text
from gemmgen.pipeline import Emitted
from gemmgen.proof.calls import Caller, Case
from gemmgen.proof.far import far_shapes
from gemmgen.sim.launch import HostKernel
from gemmgen.sim.packing import Argument
from gemmgen.sim.run import CompiledKernel

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="runs kernels, with g++")

SEED = 11


class AsAFunction:
    """The kernel called as a user calls it, who passes neither extents nor strides."""

    def __init__(self, emitted: Emitted):
        self.kernel = HostKernel.of(emitted)
        self.names = [
            p.name for p in self.kernel.interface.params if p.kind in ("tensor", "scalar")
        ]

    def run(self, arguments: Mapping[str, Argument], **_: object) -> None:
        self.kernel(**{name: arguments[name] for name in self.names})


def drawn(index: int) -> tuple[Emitted, tuple[Case, ...]]:
    """The schedule and its calls with alpha = 0 in one order of threads, on integers: their sums
    and old values of C cancel."""
    emitted = compile_text(schedule_at(SEED, index))
    assert emitted is not None
    chosen = (c for c in cases(emitted, Dice(SEED, index)) if c.order == "ascending")
    return emitted, tuple(replace(c, data="integers") for c in chosen if c.alpha == 0)


@pytest.mark.parametrize("index", [104, 122, 182])
def test_a_call_is_held_to_what_its_callers_pass(index: int) -> None:
    emitted, chosen = drawn(index)
    caller, function = Caller(emitted), AsAFunction(emitted)
    assert chosen
    assert any(caller.complaint(case, function) for case in chosen)  # type: ignore[arg-type]
    for case in chosen:
        called = as_called(emitted, case)
        assert caller.complaint(called, function) is None  # type: ignore[arg-type]


def test_the_launcher_skips_the_product_and_the_kernel_alone_does_not() -> None:
    emitted, chosen = drawn(122)
    caller = Caller(emitted)
    kernel = CompiledKernel(emitted.text, emitted.interface, checked=True)
    for case in chosen:
        assert caller.complaint(case, kernel) is None
        assert caller.complaint(as_called(emitted, case), kernel) is None
    kernel.close()


def test_one_of_two_orders_skips_it() -> None:
    emitted = compile_text(schedule_at(SEED, 122))
    assert emitted is not None
    found = cases(emitted, Dice(SEED, 122))
    skipped = [case for case in found if case.skips_product]
    assert skipped and all(case.alpha == 0 for case in skipped)
    assert sum(case.alpha == 0 for case in found) == 2 * len(skipped)


@pytest.mark.parametrize("index", [40, 41, 42, 43])
def test_calls_are_small_or_far(index: int) -> None:
    """What a GPU is spared: memory that is sparse on the CPU alone."""
    emitted = compile_text(schedule_at(SEED, index))
    assert emitted is not None
    caller = Caller(emitted)
    far = tuple(Case(shape, far=True) for shape in far_shapes(emitted))
    assert all(caller.span(case) < 1 << 24 for case in cases(emitted, Dice(0)) if not case.far)
    assert all(caller.span(case) > 1 << 32 for case in far)
