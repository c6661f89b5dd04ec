"""Kernels fed by the copy engine are right whoever goes first and whenever boxes land."""

from __future__ import annotations

import pytest
from box_kernels import NAMES, Shape, compiled, complaint, runs

SHAPES: dict[str, tuple[Shape, ...]] = {
    "copied_in": ((32, 64, 0), (37, 100, 0), (1, 4, 0), (70, 200, 0)),
    "copied_out": ((32, 64, 0), (37, 100, 0), (1, 4, 0), (70, 200, 0)),
    "ring": ((32, 32, 8), (35, 37, 43), (64, 40, 100), (5, 6, 0), (1, 1, 1)),
}


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_is_right_in_all_orders_and_landings(name: str, checked: bool) -> None:
    kernel = compiled(name, checked=checked)
    for shape in SHAPES[name]:
        for order, landing in runs():
            wrong = complaint(kernel, name, shape, order, landing)
            assert wrong is None, (shape, order, landing, wrong)


def test_random_landings_differ_by_seed() -> None:
    kernel = compiled("ring", checked=False)
    for seed in range(20):
        wrong = complaint(kernel, "ring", (35, 37, 100), "shuffled", "random", seed)
        assert wrong is None, (seed, wrong)
