"""A kernel's first architecture follows from every instruction of its text: ptxas takes each device
function for the architecture that the table says, and for none before it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.emit import device_functions
from gemmgen.emit.device_function import DeviceFunction
from gemmgen.gpu import compiler
from gemmgen.ir.dtypes import OLDEST
from gemmgen.ir.ptx_targets import first_with
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.compiled import ARCHITECTURES, architectures
from gemmgen.proof.first_architecture import first_architecture
from gemmgen.sim.ptx import instructions_of

ROOT = Path(__file__).parents[2]
NUMBERS = tuple(int(arch.removeprefix("sm_")) for arch in ARCHITECTURES)
OF_90A = ("setmaxnreg", "wgmma")
"""Instructions of sm_90a alone."""
FILES = tuple(dict.fromkeys(each.file for each in device_functions.FUNCTIONS))
OPTIONS = ("--std=c++17", "--relocatable-device-code=true", "--ptxas-options=-v")
INSTANCES = {
    "wait_group": "gg_wait_group<1>()",
    "await_boxes": "gg_await_boxes<1>()",
    "fewer_registers": "gg_fewer_registers<40>()",
    "more_registers": "gg_more_registers<40>()",
    "wgmma_wait": "gg_wgmma_wait<1>()",
    "wgmma_end": "gg_wgmma_end<2, 2>(float (&)[2][2])",
    "wgmma_end_i32": "gg_wgmma_end<2, 2>(int (&)[2][2])",
}
"""Of templates: what makes a compiler generate their code."""
needs_compiler = pytest.mark.skipif(
    compiler.available() is not None, reason=str(compiler.available())
)


def since(function: DeviceFunction) -> int:
    return max([OLDEST, *map(first_with, instructions_of(function.text()))])


def is_assembled(function: DeviceFunction, arch: str) -> bool:
    """Whether a compiler takes a function that it may not leave out."""
    text = function.text().replace("__forceinline__", "__noinline__")
    if "template" in text:
        instance = INSTANCES[function.file].format(**dict(function.names))
        text += f"\ntemplate __device__ void {instance};"
    needed = [helper.text() for helper in (device_functions.TENSOR_MAP, *function.needs)]
    whole = "\n".join((*needed, text, ""))
    try:
        compiler.compiler().compile(whole, "", arch, OPTIONS)
    except compiler.CompileError as refused:
        assert "requires" in refused.log or "not supported" in refused.log, refused
        return False
    return True


def test_the_table_has_every_instruction() -> None:
    """``first_with`` raises for one that it lacks."""
    assert {since(function) for function in device_functions.FUNCTIONS} == {75, 80, 89, 90}
    with pytest.raises(AssertionError, match="tcgen05"):
        first_with("tcgen05.mma.cta_group::1.kind::f16")


@needs_compiler
@pytest.mark.by_default("wait_grid", "test_wait", "to_e4m3", "wgmma_fence")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("file", FILES)
def test_each_function_is_of_its_first_architecture(file: str) -> None:
    for function in (each for each in device_functions.FUNCTIONS if each.file == file):
        first = since(function)
        exact = any(each.startswith(OF_90A) for each in instructions_of(function.text()))
        assert is_assembled(function, f"sm_{first}{'a' * exact}"), function
        before = [number for number in NUMBERS if number < first]
        assert not before or not is_assembled(function, f"sm_{before[-1]}"), function


@cache
def schedules() -> dict[str, Path]:
    folders = (ROOT / "examples", ROOT / "tests" / "golden", ROOT / "tests" / "cases")
    files = (file for folder in folders for file in sorted(folder.rglob("*.sched")))
    return {str(file.relative_to(ROOT)): file for file in files if "{" not in file.read_text()}


def kernel(file: Path) -> Emitted:
    return compile_source(Source(file.read_text(), file.name))


@pytest.mark.by_default(
    "examples/hopper/fp8.sched",
    "examples/hopper/tma.sched",
    "examples/hopper/wgmma.sched",
    "tests/golden/overlap*",
)
@pytest.mark.parametrize("name", [name for name in schedules() if "versions" not in name])
def test_a_kernel_is_of_its_target(name: str) -> None:
    emitted = kernel(schedules()[name])
    assert first_architecture(emitted) <= int(re.findall(r"\d+", emitted.target)[0])


OWN = "/best/bf16_128_rows.sched"
"""Its epilogue has an ``stmatrix`` of two matrices, which no schedule outside has."""


def compiled() -> list[str]:
    """Those of ``best`` are the longest, and all but one have no instruction of their own but for
    the columns of a wgmma."""
    left = [name for name in schedules() if "/best/" in name and not name.endswith(OWN)]
    return [name for name in schedules() if "versions" not in name and name not in left]


@pytest.mark.proof
def test_what_is_not_compiled_has_no_further_instruction() -> None:
    def instructions(names: Iterable[str]) -> set[str]:
        texts = (kernel(schedules()[name]).text for name in names)
        return {re.sub(r"m64n\d+", "m64n", i) for text in texts for i in instructions_of(text)}

    left = schedules().keys() - {*compiled()}
    assert len(left) > 30 and instructions(left) <= instructions(compiled())


@needs_compiler
@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", compiled())
def test_a_kernel_compiles_for_its_first_architecture(name: str) -> None:
    emitted = kernel(schedules()[name])
    compiler.reported(emitted.text, architectures(emitted)[0])


ALONE = {
    "overlap_launch\n": 90,
    "overlap_launch\ntile m=32 n=32 k=8\ncache_shared A B\n": 90,
    "tile m=32 n=32 k=8\ncache_shared A B\ndouble_buffer A B\nasync_copy A B via=cp_async\n": 80,
    "dtype A=f16 B=f16\ntile m=32 n=32 k=16\ncache_shared A B\ntensor_core via=wmma\n": 75,
    "dtype A=bf16 B=bf16\n": 80,
    "dtype bias=bf16\nfuse_epilogue acc + bias[n]\n": 80,
    "dtype C=e4m3\nfuse_epilogue acc\n": 89,
    "": 75,
}


@pytest.mark.parametrize("text", ALONE)
def test_one_directive_alone_counts(text: str) -> None:
    emitted = compile_source(Source(f"target sm_90\n{text}"))
    assert first_architecture(emitted) == ALONE[text]
    numbers = [int(arch.removeprefix("sm_")) for arch in architectures(emitted)]
    assert numbers == [number for number in NUMBERS if number >= ALONE[text]]
