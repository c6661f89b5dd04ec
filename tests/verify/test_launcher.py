"""What users compile and call, the launcher, is what C2 and C3 look at."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.gpu import compiler
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import compiled, cpu, launcher, launcher_arguments
from gemmgen.proof.calls import Caller
from gemmgen.proof.outcome import Outcome, Subject
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source
from gemmgen.sim.failures import KernelFault
from gemmgen.sim.run import CompiledKernel, compile_kernel

from .subjects import NAIVE, TILED, subject

BATCHED = """\
gemm C[b, m, n] = A[b, m, k] * B[k, n]
tile m=16 n=16 k=8
register_block m=2 n=4
vectorize C width=4
"""
needs_nvcc = pytest.mark.skipif(
    shutil.which("nvcc") is None or compiler.available() is not None, reason="nvcc is not installed"
)


def with_size_t() -> Emitted:
    """A batch's extent by the name of a type that the launcher uses, as a schedule could once name
    it."""
    right = compile_source(Source(BATCHED))
    old = next(name for _, name in right.interface.batches)

    def renamed(text: str) -> str:
        return "size_t" if text == old else text

    interface = right.interface
    params = tuple(replace(p, name=renamed(p.name)) for p in interface.params)
    batches = tuple((letter, renamed(name)) for letter, name in interface.batches)
    text = right.text.replace(old, "size_t")
    return replace(right, text=text, interface=replace(interface, params=params, batches=batches))


def checked_by(layer: str, emitted: Emitted) -> Outcome:
    return {"C2": cpu, "C3": compiled}[layer].check(Subject(emitted))


@pytest.mark.parametrize("layer", ["C2", pytest.param("C3", marks=[needs_nvcc, pytest.mark.proof])])
def test_a_launcher_that_does_not_compile_is_seen(layer: str) -> None:
    outcome = checked_by(layer, with_size_t())
    assert outcome.status == "failed" and "size_t" in outcome.detail


@pytest.mark.proof
@needs_nvcc
def test_nvcc_compiles_the_whole_text() -> None:
    right = subject(NAIVE).emitted
    # NVRTC never sees this line.
    text = right.text.replace("    return cudaGet", "    int x;\n    return cudaGet")
    outcome = compiled.check(Subject(replace(right, text=text)))
    assert outcome.status == "failed" and "declared but never referenced" in outcome.detail


@needs_nvcc
@pytest.mark.proof
@pytest.mark.parametrize("name", ["naive", "async_copy", "tensor_core", "split_k"])
def test_nvcc_takes_the_launchers_of_examples(name: str) -> None:
    right = compile_source(read_source(str(examples.path_of(name))))
    outcome = compiled.check(Subject(right))
    assert outcome.status == "passed" and "compiles the launcher, too" in outcome.detail


@pytest.mark.proof
def test_without_nvcc_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    if compiler.available() is not None:
        pytest.skip("nothing can be compiled here")
    compiler.compiler()
    for variable in ("PATH", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.setenv(variable, "")
    right = subject(TILED + "fuse_epilogue acc + 17\n").emitted
    outcome = compiled.check(Subject(right))
    assert "the launcher was not compiled: nvcc is not installed" in (
        outcome.detail or outcome.reason
    )


def test_a_text_without_a_launcher_is_seen() -> None:
    right = subject(NAIVE).emitted
    text = right.text[: right.text.index("#ifndef __CUDACC_RTC__")]
    outcome = cpu.check(Subject(replace(right, text=text)))
    assert outcome.status == "failed" and "the text has no launch_gemm" in outcome.detail


def test_the_launcher_of_two_programs_is_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def complaint(emitted: Emitted, text: str, kernel: CompiledKernel) -> None:
        asked.append(kernel.checked)

    monkeypatch.setattr(launcher, "complaint", complaint)
    right = subject(NAIVE).emitted
    calls = (Case((3, 2, 1), watched=watched) for watched in (True, False, True))
    assert cpu.first_complaint(Caller(right), right.text, calls) is None
    assert asked == [True]


@pytest.mark.proof
def test_a_launcher_that_disagrees_with_the_interface_is_seen_by_every_run() -> None:
    """Not by the calls of the launcher alone: what reaches the kernel comes from it."""
    right = subject(TILED).emitted
    text = right.text.replace("gemm<<<static_cast<unsigned>(blocks)", "gemm<<<1")
    kernel = compile_kernel(text, right.interface)
    with pytest.raises(KernelFault, match="a grid of 1, where the interface says 4"):
        _run(kernel)


def _run(kernel: CompiledKernel) -> None:
    side = np.ones((20, 20), np.float32)
    numbers = {n: 20 for n in ("M", "N", "K", "lda", "ldb", "ldc")}
    scalars = {"alpha": 1.0, "beta": 0.0}
    kernel.run({**numbers, **scalars, "A": side, "B": side.copy(), "C": side.copy()})


def test_each_requirement_is_met_at_its_bound_and_broken_alone() -> None:
    """The calls that C2 makes reach each condition of the launcher: without it, one is answered
    otherwise."""
    emitted = compile_source(Source(BATCHED))
    interface = emitted.interface
    made = tuple(launcher_arguments.calls(emitted))
    for left_out in interface.requirements:
        rest = tuple(r for r in interface.requirements if r != left_out)
        looser = replace(interface, requirements=rest)
        differing = [
            message
            for message, call in made
            if launcher.expected(interface, call.values) != launcher.expected(looser, call.values)
        ]
        assert differing, left_out.text()
