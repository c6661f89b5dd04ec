"""C by TMA: right in every order, and what goes wrong in its store is found."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import pytest
from emitted_kernels import planted
from passes.schedules import CASES

from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.ir.launch_shape import Shape
from gemmgen.ir.requirement import MultipleOf
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.calls import Caller, landings_of, orders_of
from gemmgen.proof.cpu import first_complaint
from gemmgen.proof.shapes import fit

SHAPE = (67, 68, 12)
"""3 x 2 tiles with ragged edges, of several slices each: more than there are blocks at a time."""
BLOCK, WARPS, ROLES, SLICES, ONCE, THREADS = (
    "C by TMA",
    "C by TMA, rows of warps",
    "consumers that store by TMA",
    "consumers that alternate slices of C",
    "two slices of C by TMA",
    "C by way of two slices",
)


@cache
def emitted(name: str) -> Emitted:
    return compile_source(Source(CASES[name].text))


def complaint(name: str, text: str) -> str | None:
    """What is first found in ``text``, in any order and at any time of the stores."""
    known = emitted(name)
    cases = [
        Case(fit(known, SHAPE), "normal", 0.7, -1.0, 4, order=order, landing=landing)
        for order, landing in product(orders_of(known), landings_of(known))
    ]
    return first_complaint(Caller(known), text, cases, warn=False)


@pytest.mark.proof
@pytest.mark.parametrize("name", [BLOCK, WARPS, ROLES, SLICES, ONCE, THREADS])
def test_every_order_is_right(name: str) -> None:
    assert complaint(name, emitted(name).text) is None


FENCE, COMMIT = "gg_fence_async();\n", "gg_commit_boxes();"
AWAIT = "if (tid == 0) gg_await_boxes<0>();"
MEET, SYNC = "gg_sync_warps(CONSUMER_BARRIER, CONSUMERS);", "__syncthreads();"
FREED = f"if (threadIdx.x == 0) gg_await_boxes<1>();\n                {MEET}"
"""Before a slice of two is written again."""
STORE = "gg_store_box_2d(C_map, C_shared[box_m], tile_n, tile_m + box_m * TM + reg_m);"
PLANTS: dict[str, tuple[str, str, str, int, tuple[str, ...]]] = {
    "no fence": (BLOCK, f"        {FENCE}", "", 1, ("fence",)),
    "a fence by one thread": (BLOCK, FENCE, f"if (tid == 0) {FENCE}", 1, ("fence",)),
    "a fence after the barrier": (
        BLOCK,
        f"{FENCE}        {SYNC}",
        f"{SYNC}\n{FENCE}",
        1,
        ("fence",),
    ),
    "no barrier before the store": (BLOCK, f"{FENCE}        {SYNC}", FENCE, 1, ("race",)),
    "no wait before the slice is written again": (
        BLOCK,
        f"{AWAIT}\n        {SYNC}",
        SYNC,
        1,
        ("race", "wrong bits"),
    ),
    "no barrier after the wait": (BLOCK, f"{AWAIT}\n        {SYNC}", AWAIT, 1, ("race",)),
    "a group too few is waited for": (
        BLOCK,
        f"{AWAIT}\n        {SYNC}",
        f"{AWAIT.replace('0>', '1>')}\n        {SYNC}",
        1,
        ("race", "wrong bits"),
    ),
    "another thread waits": (
        BLOCK,
        f"{AWAIT}\n        {SYNC}",
        f"{AWAIT.replace('== 0', '== 1')}\n        {SYNC}",
        1,
        ("race", "wrong bits"),
    ),
    "no group": (BLOCK, COMMIT, "", 1, ("race", "not waited for")),
    "no wait at the end": (BLOCK, f"    {AWAIT}\n}}", "}", 1, ("not waited for",)),
    "all threads store": (
        BLOCK,
        "if (tid == 0) {\n            for (int box_m",
        "{\n            for (int box_m",
        1,
        ("two owners",),
    ),
    "a row too few": (BLOCK, "box_m < LM", "box_m < LM - 1", 1, ("wrong bits",)),
    "a row too many": (
        BLOCK,
        "box_m < LM",
        "box_m <= LM",
        1,
        ("race", "two owners", "never written"),
    ),
    "another row of the micro-tiles": (
        BLOCK,
        STORE,
        STORE.replace("reg_m)", "(reg_m + 1) % TM)"),
        1,
        ("wrong bits", "race"),
    ),
    "coordinates exchanged": (
        BLOCK,
        STORE,
        STORE.replace("tile_n, tile_m + box_m * TM + reg_m", "tile_m + box_m * TM + reg_m, tile_n"),
        1,
        ("misaligned",),
    ),
    "a row within the tile's columns": (
        BLOCK,
        STORE,
        STORE.replace("C_shared[box_m]", "&C_shared[box_m][4]"),
        1,
        ("past a multiple of 128",),
    ),
    "the tile before is stored yet": (
        WARPS,
        f"{AWAIT}\n            {SYNC}",
        "",
        1,
        ("race", "wrong bits"),
    ),
    "a box of one row for many": (
        WARPS,
        "box_n += LN",
        "box_n += 2 * LN",
        1,
        ("wrong bits",),
    ),
    "the consumers' barrier before the store": (ROLES, MEET, "", 2, ("race",)),
    "the consumers' barrier after the wait": (ROLES, MEET, "", 1, ("race",)),
    "the block's barrier among consumers": (ROLES, MEET, SYNC, 2, ("divergent barrier",)),
    "no wait before a slice of two is written again": (
        SLICES,
        FREED,
        MEET,
        1,
        ("race", "wrong bits"),
    ),
    "a slice too few of two is waited for": (
        SLICES,
        FREED,
        FREED.replace("<1>", "<2>"),
        1,
        ("race", "wrong bits"),
    ),
    "no barrier after the wait for a slice of two": (
        SLICES,
        FREED,
        FREED.replace(MEET, ""),
        1,
        ("race",),
    ),
    "no barrier before a slice of two is stored": (SLICES, MEET, "", 2, ("race",)),
    "the same slice of two is written each time": (
        SLICES,
        "copy4(&C_shared[reg_m % 2]",
        "copy4(&C_shared[0]",
        1,
        ("race", "wrong bits", "never written"),
    ),
    "the other slice of two is stored": (
        SLICES,
        "C_map, C_shared[reg_m % 2]",
        "C_map, C_shared[(reg_m + 1) % 2]",
        1,
        ("race", "wrong bits", "never written", "fence"),
    ),
    "no wait at the border of two tiles": (
        SLICES,
        FREED,
        f"if (reg_m >= 2) {{ {FREED} }}",
        1,
        ("race", "wrong bits"),
    ),
    "no wait for two slices at the end": (
        SLICES,
        "if (threadIdx.x == 0) gg_await_boxes<0>();",
        "if (threadIdx.x == 0) gg_await_boxes<1>();",
        1,
        ("not waited for",),
    ),
    "two slices of one tile are not waited for": (
        ONCE,
        "if (reg_m >= 2)",
        "if (reg_m > 2)",
        1,
        ("race", "wrong bits"),
    ),
    "no barrier before threads store a slice of two": (
        THREADS,
        "__syncthreads();\n\n            // store it",
        "// store it",
        1,
        ("race", "wrong bits"),
    ),
    "threads write one slice of two each time": (
        THREADS,
        "copy4(&C_shared[reg_m % 2]",
        "copy4(&C_shared[0]",
        1,
        ("race", "wrong bits", "never written"),
    ),
    "a producer's thread waits": (
        ROLES,
        "if (threadIdx.x == 0) gg_await_boxes<0>();",
        "if (threadIdx.x == CONSUMERS) gg_await_boxes<0>();",
        1,
        ("race", "wrong bits"),
    ),
}


@pytest.mark.by_default("a fence by one thread")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("plant", PLANTS)
def test_finds(plant: str) -> None:
    name, old, new, nth, wanted = PLANTS[plant]
    found = complaint(name, planted(emitted(name).text, old, new, nth))
    assert found is not None and any(words in found for words in wanted), found


def test_a_box_that_is_too_large_is_found() -> None:
    """The launcher says what a box is: with a row more it stores rows of other threads."""
    text = emitted(BLOCK).text
    found = complaint(BLOCK, planted(text, "{BN, 1}", "{BN, 2}", 1))
    assert found is not None


def without_whole_units(name: str) -> tuple[Emitted, str]:
    """A kernel without a request for rows of C that end with 16 bytes, and its text."""
    known, rule = emitted(name), MultipleOf("N", 4)
    assert rule in known.interface.requirements
    others = tuple(each for each in known.interface.requirements if each != rule)
    looser = replace(known, interface=replace(known.interface, requirements=others))
    return looser, planted(known.text, rule.text().replace("==", "!="), "false", 1)


@pytest.mark.by_default("unwatched-shape1")
@pytest.mark.parametrize("shape", [(35, 68, 12), (35, 69, 12), (3, 5, 9), (33, 62, 8)])
@pytest.mark.parametrize("watched", [True, False], ids=["watched", "unwatched"])
def test_zeros_after_rows_are_found(shape: Shape, watched: bool) -> None:
    """TMA stores whole units of 16 bytes: what is after a row in its last one, too."""
    looser, text = without_whole_units(BLOCK)
    _, n, _ = shape
    found = first_complaint(
        Caller(looser), text, [Case(shape, "normal", 0.7, -1.0, 4, watched=watched)], warn=False
    )
    if n % 4 == 0:
        assert found is None
    elif watched:
        assert found is not None and f"write C[0, {n}] by {(-n) % 4 * 4} bytes" in found, found
        assert "gg_store_box_2d(" in found
    else:
        assert found is not None and "padding" in found and "was written" in found, found


@pytest.mark.proof
def test_a_box_that_begins_within_16_bytes_is_found() -> None:
    found = complaint(
        BLOCK,
        planted(
            emitted(BLOCK).text,
            "(C_map, C_shared[box_m], tile_n,",
            "(C_map, C_shared[box_m], tile_n + 1,",
            1,
        ),
    )
    assert found is not None and "a box that begins with element 1 of a row" in found, found
    assert "gg_store_box_2d(" in found
