"""What the value of a summation order depends on: the program, and nothing that leaves bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from gemmgen.expand import expand
from gemmgen.ir.control import Block, Define, For, If
from gemmgen.ir.expanded import ExpandedProgram, Multiply, OneThread, ReadScales, Tiles
from gemmgen.ir.expr import Expr, Int, Var
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.nodes import Contract, Promote
from gemmgen.ir.warp_roles import WarpRoles
from gemmgen.summation import SummationOrder, known_fields, order_reading, summation_order
from gemmgen.summation.order_text import rows
from summation.schedules import F32, compiled, groups, lanes, order_of, tiled

TILES = tiled("m=16 n=16 k=8")
STAGES = tiled("m=16 n=16 k=8", "double_buffer A B stages=3\n")
SLICES = tiled("m=16 n=16 k=8", "split_k parts=3\n")
PROMOTED = lanes("m=16 n=16 k=16", how=" promote=32")
SCALED = "(A[m, k] * SA[k/128, m]) * (B[n, k] * SB[n/128, k/128])"
SCALES = groups("m=64 n=16 k=64", how=" promote=64").replace("A[m, k] * B[n, k]", SCALED)
Rule = Callable[[Any], Any]


def rewritten(body: tuple[Any, ...], rule: Rule) -> tuple[Any, ...]:
    """``body`` with ``rule`` applied to every statement, the inner ones first; None removes it."""

    def inner(node: Any) -> Any:
        match node:
            case For() | Block() | OneThread():
                return replace(node, body=rewritten(node.body, rule))
            case If():
                more = rewritten(node.otherwise, rule)
                return replace(node, body=rewritten(node.body, rule), otherwise=more)
            case Tiles():
                before = rewritten(node.before, rule)
                return replace(node, body=rewritten(node.body, rule), before=before)
            case WarpRoles():
                roles = (replace(x, body=rewritten(x.body, rule)) for x in node.roles)
                return WarpRoles(tuple(roles))
            case _:
                return node

    found = (rule(inner(node)) for node in body)
    return tuple(node for node in found if node is not None)


def planted(
    patch: pytest.MonkeyPatch, text: str, rule: Rule, in_lowered: Rule | None = None
) -> SummationOrder:
    """The value for a program whose expansion, or whose lowered code, has a mistake."""

    def wrong(program: Any) -> ExpandedProgram:
        found = expand(program)
        kernels = (replace(k, body=rewritten(k.body, rule)) for k in found.kernels)
        return replace(found, kernels=tuple(kernels))

    patch.setattr(order_reading, "expand", wrong)
    emitted = compiled(text)
    kernel: LoweredKernel = emitted.lowered.kernels[0]
    if in_lowered is not None:
        kernel = replace(kernel, body=rewritten(kernel.body, in_lowered))
    return summation_order(emitted.program, kernel)


def tiles_backwards(node: Any) -> Any:
    """The loop over tiles begins with the last one."""
    if not isinstance(node, For) or node.variable != "tile_k":
        return node
    last: Expr = (Var("K") - 1) / Var("BK") * Var("BK")
    reversed_k = Define("tile_k", last - Var("up"))
    return For("up", node.start, node.stop, node.step, (reversed_k, *node.body))


def steps_backwards(node: Any) -> Any:
    """The loop over the steps of a tile begins with the last one."""
    if not isinstance(node, For) or node.variable != "k":
        return node
    reversed_k = Define("k", Var("BK") - node.step - Var("up"))
    return For("up", node.start, node.stop, node.step, (reversed_k, *node.body))


def first_step_twice(node: Any) -> Any:
    """A tile's first step is added again after each of its steps."""
    if not isinstance(node, For) or node.variable != "k":
        return node
    again = tuple(replace(x, k=Int(0)) for x in node.body if isinstance(x, Multiply))
    return replace(node, body=(*node.body, *again))


def without_promotion(node: Any) -> Any:
    return None if isinstance(node, Promote) else node


def stale_stage(node: Any) -> Any:
    """Each step reads the stage of the step before."""
    return replace(node, k=node.k + 8) if isinstance(node, Multiply) else node


def scales_of_the_next_block(node: Any) -> Any:
    """Factors are those of two tiles later, in global memory."""
    return replace(node, origin=node.origin + 128) if isinstance(node, ReadScales) else node


def scales_of_the_first_stage(node: Any) -> Any:
    """Factors in shared memory are those of the stage 0."""
    return replace(node, stage=Int(0)) if isinstance(node, ReadScales) else node


def without_scales(node: Any) -> Any:
    return None if isinstance(node, ReadScales) else node


MISTAKES = {
    "tiles backwards": (TILES, tiles_backwards),
    "tiles of slices backwards": (SLICES, tiles_backwards),
    "steps backwards": (groups("m=64 n=16 k=64"), steps_backwards),
    "steps of lanes backwards": (lanes("m=16 n=16 k=32"), steps_backwards),
    "a step twice": (f"{F32}tile m=4 n=8 k=8\ncache_shared A B\n", first_step_twice),
    "no promotion": (PROMOTED, without_promotion),
    "scales of the next block": (SCALES, scales_of_the_next_block),
    "scales of the first stage": (SCALES, scales_of_the_first_stage),
    "no scales": (SCALES, without_scales),
    "elements of another tile": (f"{F32}tile m=4 n=8 k=8\ncache_shared A B\n", stale_stage),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_the_expanded_program_changes_the_value(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, rule = MISTAKES[name]
    assert order_of(text).walk == "ascending"
    found = planted(monkeypatch, text, rule)
    assert found != order_of(text)
    assert found.walk != "ascending"
    assert found.varies_with("m")


def test_unchanged_programs_keep_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, _ in MISTAKES.values():
        assert planted(monkeypatch, text, lambda node: node) == order_of(text)


def test_slices_that_depend_on_rows_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the number of slices followed from the tiles that there are."""

    def by_tiles(node: Any) -> Any:
        if isinstance(node, Define) and node.name == "chunk_k":
            return replace(node, value=Var("M") * Var("BK"))
        return node

    found = planted(monkeypatch, SLICES, lambda node: node, by_tiles)
    assert found.depends == ("m",)
    assert found.varies_with("m") == (
        "which products an accumulator adds depends on the extent of m",
    )

    def by_grid(node: Any) -> Any:
        if isinstance(node, Define) and node.name == "chunk_k":
            return replace(node, value=Var("gridDim.x") * Var("BK"))
        return node

    found = planted(monkeypatch, SLICES, lambda node: node, by_grid)
    assert found.depends == ("m", "n")


def test_a_field_that_is_not_known_is_part_of_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    text = TILES.replace("n=2\n", "n=2 order=serpentine\n")
    emitted, order = compiled(text), order_of(text)
    undeclared = next(field for field in fields(Contract) if field.name == "order")
    kept = known_fields.is_order_kept
    monkeypatch.setattr(
        known_fields, "is_order_kept", lambda field: field is not undeclared and kept(field)
    )
    found = summation_order(emitted.program, emitted.lowered.kernels[0])
    assert found.unread == ("Contract.order='serpentine'",)
    assert found != order
    assert found.varies_with("n")


def test_a_field_that_is_read_is_not_declared_to_keep_the_order() -> None:
    for kind, read in known_fields.READ.items():
        for field in fields(kind):
            assert not (field.name in read and known_fields.is_order_kept(field)), field.name
        assert read <= {*(field.name for field in fields(kind)), "origins"}


DIFFERENT = {
    "tile along k, for slices": (SLICES, tiled("m=16 n=16 k=16", "split_k parts=3\n"), "slices"),
    "number of slices": (SLICES, tiled("m=16 n=16 k=8", "split_k parts=4\n"), "slices"),
    "groups": (
        tiled("m=16 n=16 k=8", "split_k parts=6\n"),
        tiled("m=16 n=16 k=8", "split_k parts=6 groups=2\n"),
        "slices",
    ),
    "as blocks arrive": (
        SLICES,
        tiled("m=16 n=16 k=8", "split_k parts=3 reduce=atomic\n"),
        "slices",
    ),
    "scales": (SCALES, groups("m=64 n=16 k=64", how=" promote=64"), "scales"),
    "blocks of scales": (SCALES, SCALES.replace("SA[k/128", "SA[k/64"), "scales"),
    "interval": (PROMOTED, lanes("m=16 n=16 k=16", how=" promote=48"), "interval"),
    "instruction": (lanes("m=16 n=16 k=16"), groups("m=64 n=16 k=64"), "instruction"),
    "type of C": (TILES, f"{TILES}dtype C=bf16\n", "stored"),
    "epilogue": (TILES, f"{TILES}fuse_epilogue relu(acc)\n", "epilogue"),
    "terms": (
        groups("m=64 n=16 k=64", "decompose into=bf16\n", " promote=64", F32),
        groups("m=64 n=16 k=64", "decompose into=bf16 products=9\n", " promote=64", F32),
        "terms",
    ),
    "terms in registers": (
        groups("m=64 n=16 k=64", "decompose into=bf16\n", " promote=64", F32),
        lanes("m=16 n=16 k=32", "decompose into=bf16\n", " promote=64").replace(
            "dtype A=bf16 B=bf16 C=f32\n", ""
        ),
        "pair_extent",
    ),
    "adjacent elements of lanes": (
        f"{F32}tile m=4 n=1 k=64\nsplit_k within=warp\n",
        f"{F32}tile m=4 n=1 k=64\nvectorize A.global B.global width=2\nsplit_k within=warp\n",
        "lanes",
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_orders_differ_in_is_named(name: str) -> None:
    first, second, field = DIFFERENT[name]
    assert field in order_of(first).differences(order_of(second))


def test_integers_have_one_order() -> None:
    types = "dtype A=i8 B=i8 C=i32 acc=i32\n"
    plain = order_of(f"{F32}{types}")
    sliced = f"{F32}{types}tile m=16 n=16 k=8\ncache_shared A B\nsplit_k parts=3"
    assert plain == order_of(sliced) == order_of(f"{sliced} reduce=atomic")
    assert plain.reproducible


@pytest.mark.proof
def test_every_schedule_of_the_examples_has_a_known_order() -> None:
    examples = Path(__file__).parents[2] / "examples"
    for path in examples.rglob("*.sched"):
        if "spaces" not in path.parts:
            found = order_of(path.read_text(encoding="utf-8"))
            assert (found.walk, found.depends, found.unread) == ("ascending", (), ()), path


def test_scales_have_one_order_wherever_they_are_read() -> None:
    """Those of rows along k are read from global memory, and the others from the stage."""
    order = order_of(SCALES)
    assert order.scales == ("SA[k/128, m]", "SB[n/128, k/128]")
    assert not order.varies_with("m") and not order.varies_with("n")
    assert "times SA[k/128, m] * SB[n/128, k/128], added by one fmaf" in dict(rows(order))["scales"]
    wide = groups("m=64 n=8 k=128", "warp_specialize producers=1\npersistent\n", " promote=64")
    assert order_of(wide.replace("A[m, k] * B[n, k]", SCALED)) == order
    each = order_of(f"gemm C[m, n] = {SCALED}\n")
    assert each.interval == 0 and "each element" in dict(rows(each))["scales"]
