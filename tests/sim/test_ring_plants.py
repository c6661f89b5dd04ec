"""Mistakes planted in the emitted ring of TMA are found; the ring as it is has none."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
from passes.schedules import CASES

from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.calls import Caller, landings_of
from gemmgen.proof.cpu import first_complaint

SHAPE = (35, 68, 44)
"""Ragged tiles, and twice as many steps along k as there are stages."""

LOOP_WAIT = "if (!landed) while (!gg_try_wait(full[stage], phase)) {}"
ASKED = "gg_test_wait(full[next_stage], phase)"
FIRST_WAIT = "while (!gg_try_wait(full[0], 0)) {}"
EXPECTED = "full[write_stage], STAGE_BYTES)"
TURN = "if (stage == STAGES - 1) phase ^= 1;"
PUBLISHED = "gg_fence_barrier_init();\n    }\n    __syncthreads();"

PLANTS = {
    "the wait in the loop dropped": (LOOP_WAIT, "", ("under way", "race")),
    "the answer taken for a wait": (
        LOOP_WAIT,
        LOOP_WAIT.replace("!", "", 1),
        ("under way", "race"),
    ),
    "the present stage asked for": (
        ASKED,
        ASKED.replace("next_stage", "stage"),
        ("under way", "race"),
    ),
    "the other parity asked for": (
        ASKED,
        ASKED.replace("phase", "1 - phase"),
        ("under way", "race"),
    ),
    "reads that TMA may overtake": ("gg_fence_async();\n", "\n", ("not fenced",)),
    "the first wait dropped": (FIRST_WAIT, "", ("under way", "race")),
    "the parity never turns": (TURN, "", ("deadlock",)),
    "too few bytes": (EXPECTED, "full[write_stage], STAGE_BYTES - 16)", ("deadlock",)),
    "the bytes of one tile": (EXPECTED, "full[write_stage], BK * BM * 4)", ("race", "deadlock")),
    "too many bytes": (EXPECTED, "full[write_stage], STAGE_BYTES + 16)", ("deadlock",)),
    "no bytes expected": (f"gg_expect_bytes({EXPECTED};", "", ("deadlock",)),
    "a stage overwritten before it is read": (
        f"gg_fence_async();\n                    __syncthreads();\n                    {TURN}",
        TURN,
        ("race", "under way"),
    ),
    "the present stage overwritten": (
        "stage > 0 ? stage - 1 : STAGES - 1",
        "stage",
        ("race", "under way"),
    ),
    "coordinates exchanged": (
        "full[write_stage], tile_m, next_k)",
        "full[write_stage], next_k, tile_m)",
        ("wrong bits",),
    ),
    "barriers not fenced": ("gg_fence_barrier_init();\n", "\n", ("without a fence",)),
    "barriers not published": (
        PUBLISHED,
        PUBLISHED.partition("\n    __")[0],
        ("race", "no barrier"),
    ),
    "a tile past the end": ("tid == 0 && next_k < K", "tid == 0", ("not waited for",)),
    "all threads ask": ("if (tid == 0 && next_k < K)", "if (next_k < K)", ("too many", "deadlock")),
}


@cache
def ring() -> Emitted:
    return compile_source(Source(CASES["TMA, read ahead"].text))


def complaint(text: str) -> str | None:
    """What is first found in ``text``."""
    orders = product(landings_of(ring()), ("ascending", "descending"))
    cases = [Case(SHAPE, "normal", 0.7, -1.0, 4, order=order, landing=at) for at, order in orders]
    return first_complaint(Caller(ring()), text, cases, warn=False)


@pytest.mark.proof
def test_nothing_is_found_in_the_ring_as_it_is() -> None:
    assert complaint(ring().text) is None


@pytest.mark.by_default("a stage overwritten before it is read")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", PLANTS)
def test_finds(name: str) -> None:
    old, new, kinds = PLANTS[name]
    text = ring().text.replace(old, new)
    assert text != ring().text
    found = complaint(text)
    assert found is not None and any(kind in found for kind in kinds), found
