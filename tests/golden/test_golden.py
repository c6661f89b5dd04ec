"""The emitted text of every example, kept: and each golden is run before it counts (by default
some of them are).

``pytest tests/golden --update-golden`` writes the texts again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from chosen import is_even
from passes import schedules
from passes.schedules import EXAMPLES, ORDERS, in_order
from pipeline.running import call, check, emitted, met

from gemmgen.calling.launches import Case

GOLDENS = Path(__file__).parent
SMALL = ((1, 1, 1), (2, 3, 5), (32, 33, 30), (35, 35, 35))
LARGE = ((127, 131, 257), (128, 128, 128), (130, 260, 40))
VALUES = (0.0, 1.0, -1.0, 0.7)
PAIRS = tuple(itertools.product(VALUES, VALUES))
SAMPLE = ((1.0, 0.0), (0.7, -1.0), (0.0, 0.7))
PADS = (0, 1, 4, 7)
FEWER = 7
"""By default one in this many calls: others of each shape, order, pad and scalar."""
THREADS = ("descending", "shuffled", "ascending")

GOLDEN = EXAMPLES | {name: case for name, (_, case) in schedules.GOLDEN.items()}
"""Examples, and the schedules in this folder."""


def calls(has_scalars: bool) -> list[Case]:
    """All shapes; all pairs of alpha and beta at the small ones; K = 0; padded rows."""
    found = [call(*shape, *pair) for shape in SMALL for pair in PAIRS]
    found += [call(*shape, *pair) for shape in LARGE for pair in SAMPLE]
    found += [call(33, 35, 0, *pair, pad=5) for pair in PAIRS]
    if not has_scalars:
        found = [case for case in found if (case.alpha, case.beta) == SAMPLE[1]]
    return [
        replace(case, pad=case.pad or PADS[i % 4], order=THREADS[i % 3], tight=i % 5 == 0)
        for i, case in enumerate(found)
    ]


@pytest.mark.parametrize("name", GOLDEN)
def test_the_golden_is_what_is_emitted(name: str, golden: Callable[[str, str], str]) -> None:
    kernel = emitted(GOLDEN[name].text)
    assert kernel.text == golden(f"{name}.cu", kernel.text)


@pytest.mark.by_default(
    "async_copy",
    "fused",
    "naive",
    "overlap_launch",
    "split_k",
    "swizzled_atom_columns",
    "tensor_core",
    "tma_persistent",
    "vectorized",
    "warp_specialized",
    "warp_tiled",
)
@pytest.mark.parametrize("name", GOLDEN)
def test_the_golden_is_right(name: str, proof: bool) -> None:
    case = GOLDEN[name]
    kernel, text = emitted(case.text), (GOLDENS / f"{name}.cu").read_text(encoding="utf-8")
    for each in calls(kernel.schedule.epilogue is None)[:: 1 if proof else FEWER]:
        check(kernel, met(each, kernel), case.want, text)


def test_every_golden_belongs_to_a_schedule() -> None:
    assert {path.stem for path in GOLDENS.glob("*.cu")} == set(GOLDEN)


@pytest.mark.by_default("vectorized-km_nk_nm")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize(
    ("name", "order"),
    [
        (name, order)
        for name in ("naive", "tiled", "register_blocked", "vectorized")
        for order in ORDERS
        if name == "vectorized" or is_even(order)
    ],
    ids=lambda each: each if isinstance(each, str) else "_".join(each).replace(", ", ""),
)
def test_every_storage_order_is_right(name: str, order: tuple[str, str, str]) -> None:
    kernel = emitted(in_order(name, order))
    for case in calls(kernel.schedule.epilogue is None):
        check(kernel, case, EXAMPLES[name].want)


@pytest.mark.by_default("naive", "split_k", "persistent")
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_empty_output_launches_nothing(name: str) -> None:
    kernel = emitted(EXAMPLES[name].text)
    for case in (call(0, 5, 3), call(5, 0, 3), call(0, 0, 0)):
        check(kernel, case, EXAMPLES[name].want)
