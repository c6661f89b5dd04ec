"""What neither g++ nor a run can detect is checked in the text: declarations, and how ``asm``
statements are constrained."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gemmgen.ir.interface import Interface
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import cpu
from gemmgen.proof.outcome import Subject
from gemmgen.schedule.read import read_source
from gemmgen.sim.declarations import check_declarations, heads
from gemmgen.sim.failures import TextFailure
from gemmgen.sim.ptx import translated
from gemmgen.sim.unit import BEGIN

GOLDEN = Path(__file__).parents[1] / "golden"
SCHEDULES = {path.stem: path for path in sorted(GOLDEN.glob("*.sched"))}
MAPPED = [name for name in SCHEDULES if "via=tma" in SCHEDULES[name].read_text("utf-8")]
SPLIT = Path(__file__).parents[2] / "examples" / "hopper" / "split_f32.sched"


def emitted(path: Path) -> Emitted:
    return compile_source(read_source(str(path)))


def refusal(text: str, interface: Interface) -> str:
    """What the checks of the text alone say: nothing is compiled."""
    try:
        check_declarations(text, interface)
        translated(text[: text.index(BEGIN)], 1)
    except TextFailure as failure:
        return str(failure)
    return ""


@pytest.mark.by_default(*MAPPED[::3])
@pytest.mark.parametrize("name", MAPPED)
def test_each_map_that_is_no_grid_constant_is_found(name: str) -> None:
    known = emitted(SCHEDULES[name])
    places = [found.start() for found in re.finditer("__grid_constant__ ", known.text)]
    assert len(places) == sum(param.kind == "map" for param in known.interface.kernel_params) > 0
    assert refusal(known.text, known.interface) == ""
    for at in places:
        wrong = known.text[:at] + known.text[at + len("__grid_constant__ ") :]
        assert "is not const __grid_constant__" in refusal(wrong, known.interface)


PLANTED = {
    "a copy of a map": ("const __grid_constant__ gg_tensor_map A_parts", "gg_tensor_map A_parts"),
    "a map by reference": ("const __grid_constant__ gg_tensor_map A", "const gg_tensor_map &A"),
    "a function that copies a map": ("const gg_tensor_map &map,", "const gg_tensor_map map,"),
    "a map anywhere": ("struct alignas(128) gg_tensor_map", "struct alignas(16) gg_tensor_map"),
    "no bounds": ("__launch_bounds__(THREADS, 1)", ""),
    "no bounds of the pre-pass": ("__launch_bounds__(256)", ""),
    "other bounds of the pre-pass": ("__launch_bounds__(256)", "__launch_bounds__(128)"),
    "other threads of the pre-pass": ("256, 0, stream>>>", "512, 0, stream>>>"),
    "a name in C++": ('extern "C" __global__ void __cluster', "__global__ void __cluster"),
    "the name of the pre-pass": ('extern "C" __global__ void __launch', "__global__ void __launch"),
    "a device that threads share": ("static thread_local int", "static int"),
    "maps that threads share": ("static thread_local gg_kept_map", "static gg_kept_map"),
    "a wait that may be moved": ('asm volatile("wgmma.wait', 'asm("wgmma.wait'),
    "accumulators that may be read early": ('asm volatile("" : "+f"', 'asm("" : "+f"'),
    "a wait that memory passes": ('0;" ::: "memory"', '0;" ::'),
    "an arrival that memory passes": (
        '"r"(gg_shared(&barrier)), "r"(rank) : "memory"',
        '"r"(at), "r"(rank)',
    ),
    "registers that are set anywhere": ('asm volatile("setmaxnreg', 'asm("setmaxnreg'),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_declaration_is_found(name: str) -> None:
    known = emitted(SPLIT)
    before, after = PLANTED[name]
    assert before in known.text, "mend this test"
    assert refusal(known.text.replace(before, after, 1), known.interface) != ""


def test_memory_that_others_write_is_not_restricted() -> None:
    parts = emitted(SCHEDULES["two_parts"])
    wrong = parts.text.replace("float *workspace", "float *__restrict__ workspace")
    assert "workspace is __restrict__" in refusal(wrong, parts.interface)
    boxes = emitted(SCHEDULES["output_boxes"])
    wrong = boxes.text.replace(
        "gg_tensor_map C_map, float *C", "gg_tensor_map C_map, float *__restrict__ C"
    )
    assert "C is __restrict__" in refusal(wrong, boxes.interface)


def test_c2_says_it() -> None:
    known = emitted(SCHEDULES["pingpong"])
    wrong = known.text.replace("__grid_constant__ ", "", 1)
    outcome = cpu.check(Subject(replace(known, text=wrong)))
    assert outcome.status == "failed"
    assert re.match(r"gemm\.cu:\d+: the tensor map A is not const", outcome.detail)


def test_each_kernel_has_a_head() -> None:
    for path in (SPLIT, *SCHEDULES.values()):
        known = emitted(path)
        first, *rest = heads(known.text)
        assert len(first.parameters) == len(known.interface.kernel_params)
        assert len(rest) == len({launch.interface.name for launch in known.interface.before})
