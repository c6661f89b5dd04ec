"""Every address that TMA gets is checked in the lowered program: each rule, broken, is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.ir import bufferrules, validate
from gemmgen.ir.expr import Element, Int, Var
from gemmgen.ir.instruction import Instruction, is_instruction
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.requirement import Aligned, MultipleOf
from gemmgen.ir.tensor_map import TensorMap
from gemmgen.ir.traversal import rebuilt
from gemmgen.limits import box_addresses
from gemmgen.passes import async_copy
from gemmgen.pipeline import compile_source

ATOM_COLUMNS = """\
target sm_90a
tile m=64 n=64 k=8
cache_shared A[m, k] B[k, n] C
warp_tile m=64 n=64
register_block m=16 n=8 interleave=1
async_copy C via=tma
swizzle C
"""
STAGES = """\
gemm C[m, n] = A[m, k] * B[n, k]
dtype A=bf16 B=bf16 C=bf16
target sm_90a
tile m=64 n=64 k=64
cache_shared A B C
warp_tile m=64 n=64
tensor_core via=wgmma
swizzle A B C
double_buffer A B stages=3
double_buffer C stages=2
async_copy A B C via=tma
fuse_epilogue acc
"""
CLUSTER = STAGES.replace("double_buffer C stages=2\n", "persistent\ncluster m=2\n") + (
    "warp_specialize producers=1\n"
)
DYNAMIC = STAGES.replace("k=64", "k=128")


def kernel_of(text: str) -> LoweredKernel:
    (kernel,) = compile_source(Source(text)).lowered.kernels
    return kernel


@pytest.mark.parametrize("text", [ATOM_COLUMNS, STAGES, CLUSTER, DYNAMIC])
def test_a_right_kernel_breaks_no_rule(text: str) -> None:
    kernel = kernel_of(text)
    assert kernel.interface.maps and not list(box_addresses.unfit(kernel))
    assert bool(kernel.interface.dynamic_shared) == (text is not ATOM_COLUMNS)


def test_a_box_begins_at_any_row_of_128_bytes() -> None:
    """The pattern is one of addresses: what begins amid 8 rows lies as the whole tile does."""
    assert not list(box_addresses.unfit(in_boxes(kernel_of(STAGES), any_row)))


def in_array(kernel: LoweredKernel, name: str, **changes: Any) -> LoweredKernel:
    arrays = (replace(a, **changes) if a.name == name else a for a in kernel.shared)
    return replace(kernel, shared=tuple(arrays))


def in_maps(kernel: LoweredKernel, change: Callable[[TensorMap], TensorMap]) -> LoweredKernel:
    interface = kernel.interface
    maps = tuple(map(change, interface.maps))
    return replace(kernel, interface=replace(interface, maps=maps))


def in_boxes(kernel: LoweredKernel, change: Callable[[Any], Any]) -> LoweredKernel:
    def rule(node: Any) -> Any:
        return change(node) if is_instruction(node, *BOX_COPIES) else rebuilt(node, rule)

    return replace(kernel, body=rebuilt(kernel.body, rule))


def without(kernel: LoweredKernel, kind: type) -> LoweredKernel:
    interface = kernel.interface
    rules = tuple(r for r in interface.requirements if not isinstance(r, kind))
    return replace(kernel, interface=replace(interface, requirements=rules))


BOX_COPIES = ("load_box", "multicast_box", "store_box")


def place_at(node: Any, *indices: Any) -> Any:
    kinds = [kind for _, kind in node.described()]
    operands = list(node.operands)
    at = kinds.index("tile")
    operands[at] = replace(operands[at], indices=indices)
    return replace(node, operands=tuple(operands))


def begins_anywhere(node: Any) -> Any:
    *before, _, row = node.operands
    return replace(node, operands=(*before, Var("threadIdx.x"), row))


def any_row(node: Any) -> Any:
    return place_at(node, Int(0), Var("threadIdx.x"), Int(0))


PLANTS: dict[str, tuple[str, Callable[[LoweredKernel], LoweredKernel], str]] = {
    "atom columns of four rows": (
        ATOM_COLUMNS,
        lambda k: in_array(k, "C_shared", sizes=(2, 4, 32)),
        "C_shared[box_n / C_ATOM, 0, 0]: starts are 512 bytes apart, and 512 % 1024 = 512",
    ),
    "stages of seven rows": (
        STAGES,
        lambda k: in_array(k, "C_shared", sizes=(2, 31, 64)),
        "starts are 3968 bytes apart, and 3968 % 1024 = 896",
    ),
    "stages of padded rows": (
        STAGES,
        lambda k: in_array(k, "A_shared", sizes=(3, 64, 72)),
        "A_shared has rows of 72 elements",
    ),
    "a box amid a row": (
        STAGES,
        lambda k: in_boxes(k, lambda node: place_at(node, Int(0), Int(0), Var("threadIdx.x"))),
        "starts are 2 bytes apart",
    ),
    "any row of 64 bytes": (
        STAGES,
        lambda k: in_boxes(in_array(k, "C_shared", sizes=(2, 64, 32)), any_row),
        "starts are 64 bytes apart, and 64 % 128 = 64",
    ),
    "an array that starts anywhere": (
        ATOM_COLUMNS,
        lambda k: in_array(k, "C_shared", aligned=128),
        "aligned to 128",
    ),
    "an array after odd ones": (
        DYNAMIC,
        lambda k: in_array(
            replace(k, shared=tuple(replace(a, aligned=128) for a in k.shared)),
            "A_shared",
            sizes=(3, 2, 64, 65),
        ),
        "starts at byte",
    ),
    "rows of another swizzle": (
        ATOM_COLUMNS,
        lambda k: in_maps(k, lambda one: replace(one, swizzle=64)),
        "32 x 4 = 128 bytes, and its swizzle is one of 64",
    ),
    "boxes of 512 rows": (
        ATOM_COLUMNS,
        lambda k: in_maps(k, lambda one: replace(one, box=(32, 512))),
        "the box is 32 x 512",
    ),
    "rows of 8 bytes": (
        ATOM_COLUMNS,
        lambda k: in_maps(k, lambda one: replace(one, box=(2, 4), swizzle=0)),
        "2 x 4 = 8 bytes",
    ),
    "six dimensions": (
        ATOM_COLUMNS,
        lambda k: in_maps(k, lambda one: replace(one, box=(*one.box, 1, 1, 1, 1))),
        "has 6",
    ),
    "a box larger than its tile": (
        ATOM_COLUMNS,
        lambda k: in_maps(k, lambda one: replace(one, box=(32, 64))),
        "C_shared has",
    ),
    "columns that begin anywhere": (
        STAGES,
        lambda k: in_boxes(k, begins_anywhere),
        "threadIdx.x x 2 is a multiple of 2",
    ),
    "an address of any alignment": (ATOM_COLUMNS, lambda k: without(k, Aligned), "C's address"),
    "any leading dimension": (ATOM_COLUMNS, lambda k: without(k, MultipleOf), "ldc x 4"),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_mistake_is_found(plant: str) -> None:
    text, change, note = PLANTS[plant]
    found = list(box_addresses.unfit(change(kernel_of(text))))
    assert any(note in one.note for one in found), found


def test_a_share_of_a_clusters_tile_is_checked() -> None:
    """Each block of a cluster asks for its own rows of a tile, which start there in every block."""
    kernel = kernel_of(CLUSTER)
    target = next(
        node.operands[0]
        for node in box_addresses.inside(kernel.body)
        if isinstance(node, Instruction) and node.name == "multicast_box"
    )
    assert isinstance(target, Element)
    divisors = box_addresses.Divisors(kernel)
    assert divisors.of(target.indices[1]) * 64 * 2 % 1024 == 0
    half = in_array(kernel, target.buffer, sizes=(3, 64, 31))
    assert any("apart" in one.note for one in box_addresses.unfit(half))


def test_what_no_pass_refuses_is_refused_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the passes' own care undone, ``compile_source`` still gives no text."""
    monkeypatch.setattr(async_copy, "spare_rows", lambda tile: 0)
    use = tuple(rule for rule in validate.USE if rule is not bufferrules.boxes_land_as_tiles_lie)
    monkeypatch.setattr(validate, "USE", use)
    with pytest.raises(ScheduleError) as refused:
        compile_source(Source(ATOM_COLUMNS))
    (mistake,) = refused.value.mistakes
    assert mistake.span and ATOM_COLUMNS[mistake.span.start : mistake.span.end] == "C"
    assert mistake.message == (
        "async_copy C via=tma: a box with swizzled rows of 128 bytes starts at a multiple of 1024 "
        "bytes"
    )
    for without_line in ("swizzle C\n", "async_copy C via=tma\nswizzle C\n"):  # as the hint says
        compile_source(Source(ATOM_COLUMNS.replace(without_line, "")))
