"""Tiles for warpgroups whose columns follow from the matrix."""

from __future__ import annotations

import random
from math import ceil

import pytest

from gemmgen.base.source import Source
from gemmgen.explore.request import Request
from gemmgen.explore.suggest.warpgroup_plans import warpgroup_plans
from gemmgen.explore.suggest.warpgroup_ranking import fastest
from gemmgen.explore.suggest.warpgroup_tiles import tiles
from gemmgen.ir.atoms import ATOMS
from gemmgen.limits import box_addresses
from gemmgen.pipeline import compile_source

BF16, I8 = ATOMS["m64nNk16"], ATOMS["m64nNk32_i8"]
ORDERS = ("A[m, k] * B[n, k]", "A[m, k] * B[k, n]", "A[k, m] * B[k, n]", "A[k, m] * B[n, k]")
SMS = 132


def test_columns_fill_the_waves() -> None:
    """16 bands of 128 rows have 8 tiles each in a wave of 132 blocks: 1464 / 8 columns, up to a
    multiple of 8."""
    found = tiles(1968, 1464, 1, sms=SMS, traits=BF16, lines=8)
    assert (128, 184, 2, False) in found
    for rows, columns, _, _ in found:
        assert columns % 8 == 0 and 8 <= columns <= 256 and rows % 64 == 0
    assert len(found) == len(set(found))


@pytest.mark.parametrize("lines", (8, 16))
def test_columns_are_those_of_an_instruction(lines: int) -> None:
    draw = random.Random(lines)
    for _ in range(40):
        m, n = (draw.randrange(8, 8192, 8) for _ in "mn")
        for traits in (BF16, I8):
            fixed = set(tiles(1 << 20, 1 << 20, 1, sms=SMS, traits=traits, lines=lines))
            for tile in set(tiles(m, n, 1, sms=SMS, traits=traits, lines=lines)) - fixed:
                assert traits.columns(tile[1]) == tile[1] and tile[1] % lines == 0, tile


def test_no_tile_has_more_accumulators_than_a_launch_allows() -> None:
    """Three consumers and a producer leave 128 registers for a thread: 200 columns."""
    draw = random.Random(3)
    widest = dict[int, int]()
    for _ in range(200):
        m, n = (draw.randrange(64, 8192, 8) for _ in "mn")
        for _, columns, consumers, _ in tiles(m, n, 1, sms=SMS, traits=BF16, lines=8):
            widest[consumers] = max(widest.get(consumers, 0), columns)
    assert widest == {1: 256, 2: 256, 3: 200}


@pytest.mark.by_default("0", "1", "2")
@pytest.mark.parametrize("seed", range(8))
def test_the_first_plans_of_any_shape_are_legal(seed: int) -> None:
    """``suggest`` tries a few until one compiles; that must not be needed for wgmma."""
    draw = random.Random(seed)
    shape = tuple(int(2 ** draw.uniform(5, 13)) // 8 * 8 for _ in "mnk")
    request = Request.of(f"C[m, n] = {draw.choice(ORDERS)}", shape, dtype="bf16")
    found = fastest(request, 6)
    assert found
    for plan in found:
        (kernel,) = compile_source(Source(plan.text)).lowered.kernels
        assert not list(box_addresses.unfit(kernel))


def test_narrow_rows_of_c_are_not_swizzled() -> None:
    """TMA stores 80 columns in one box, not in five of 32 bytes; it can't swizzle 184."""
    plans = list(
        warpgroup_plans(Request.of(f"C[m, n] = {ORDERS[0]}", (1968, 1464, 512), dtype="bf16"))
    )
    seen = set[tuple[bool, bool]]()
    for plan in plans:
        if not plan.form.swapped:
            columns = plan.form.tile[1]
            assert plan.sizes.staged
            assert plan.sizes.plain == (columns % (16 if plan.form.pingpong else 32) != 0)
            assert ("swizzle A B C" in plan.text) != plan.sizes.plain
            seen.add((plan.form.pingpong, plan.sizes.plain))
    assert len(seen) == 4


def test_either_operand_has_the_rows_of_the_instruction() -> None:
    plans = list(
        warpgroup_plans(Request.of(f"C[m, n] = {ORDERS[1]}", (3920, 1200, 7608), dtype="bf16"))
    )
    for swapped in (False, True):
        sides = {plan.form.sides for plan in plans if plan.form.swapped == swapped}
        assert len(sides) >= 4
    blocks = {
        ceil(3920 / m) * ceil(1200 / n) for m, n in {x.form.sides for x in plans if x.form.swapped}
    }
    assert any(0.97 * SMS <= count <= SMS for count in blocks)
