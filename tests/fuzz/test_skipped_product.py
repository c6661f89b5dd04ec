"""Where alpha is 0 a call passes K = 0: 0 * 0 is 0, while 0 times a negative sum is -0."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

import pytest

from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.trial_calls import as_called, cases
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.calls import Caller
from gemmgen.proof.default_shapes import far_shapes
from gemmgen.proof.shapes import fit
from gemmgen.sim.host_kernel import HostKernel
from gemmgen.sim.packing import Argument
from gemmgen.sim.run import CompiledKernel

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="runs kernels, with g++")

SCHEDULES = {
    "scaled": "assume ldc == N\ntile m=16 n=8\nfuse_epilogue alpha * acc\n",
    "twice": "gemm S[b, j, i] = Q[b, d, i] * K[b, j, d]\nfuse_epilogue alpha * (alpha * acc)\n",
    "lanes": "tile m=6 n=3 k=128\nsplit_k within=warp\nfuse_epilogue alpha * acc\n",
    "parts": (
        "dtype bf16\ntile m=8 n=24 k=16\ncache_shared A B\ndouble_buffer A B\n"
        "split_k parts=3 reduce=atomic\nfuse_epilogue relu(alpha * acc - residual[m, n])\n"
    ),
}


class AsAFunction:
    """The kernel called as a user calls it, who passes neither extents nor strides."""

    def __init__(self, emitted: Emitted):
        self.kernel = HostKernel.of(emitted)
        self.names = [
            p.name for p in self.kernel.interface.params if p.kind in ("tensor", "scalar")
        ]

    def run(self, arguments: Mapping[str, Argument], **_: object) -> None:
        self.kernel(**{name: arguments[name] for name in self.names})


def emitted_of(name: str) -> Emitted:
    return compile_source(Source(SCHEDULES[name], name))


def calls(emitted: Emitted) -> list[Case]:
    shape = fit(emitted, (13, 9, 20, 2)[: 3 + len(emitted.interface.batches)])
    return [Case(shape, alpha=0.0, beta=beta, pad=5) for beta in (0.0, 0.7, -1.0)]


@pytest.mark.by_default("scaled", "parts")
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_call_is_held_to_what_its_callers_pass(name: str) -> None:
    emitted = emitted_of(name)
    caller, function = Caller(emitted), AsAFunction(emitted)
    complaints = [caller.complaint(case, function) for case in calls(emitted)]  # type: ignore
    assert any("is 0.0, should be -0.0" in complaint for complaint in complaints if complaint)
    for case in calls(emitted):
        called = as_called(emitted, case)
        assert caller.complaint(called, function) is None  # type: ignore[arg-type]


@pytest.mark.by_default("scaled", "parts")
@pytest.mark.parametrize("name", SCHEDULES)
def test_the_launcher_skips_the_product_and_the_kernel_alone_does_not(name: str) -> None:
    emitted = emitted_of(name)
    caller = Caller(emitted)
    kernel = CompiledKernel(emitted.text, emitted.interface, checked=True)
    for case in calls(emitted):
        assert caller.complaint(case, kernel) is None
        assert caller.complaint(as_called(emitted, case), kernel) is None
    kernel.close()


def test_a_kernel_that_reads_its_inputs_all_the_same_is_seen() -> None:
    emitted = emitted_of("scaled")
    text = emitted.text.replace("if (alpha == 0) K = 0;", "")
    assert text != emitted.text
    kernel = CompiledKernel(text, emitted.interface)
    complaint = Caller(emitted).complaint(as_called(emitted, calls(emitted)[0]), kernel)
    assert complaint is not None and "never written" in complaint
    kernel.close()


@pytest.mark.parametrize("name", SCHEDULES)
def test_one_of_two_orders_skips_it(name: str) -> None:
    emitted = emitted_of(name)
    found = [case for seed in range(3) for case in cases(emitted, Dice(seed)) if not case.alpha]
    assert found and 2 * sum(case.skips_product for case in found) == len(found)


@pytest.mark.parametrize("name", SCHEDULES)
def test_calls_are_small_or_far(name: str) -> None:
    """What a GPU is spared: memory that is sparse on the CPU alone."""
    emitted = emitted_of(name)
    caller = Caller(emitted)
    far = tuple(Case(shape, far=True) for shape in far_shapes(emitted))
    assert all(caller.span(case) < 1 << 24 for case in cases(emitted, Dice(0)) if not case.far)
    assert far and all(caller.span(case) > 1 << 32 for case in far)
