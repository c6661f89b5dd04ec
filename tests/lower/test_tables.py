"""Every expanded node is lowered by one function, whatever holds the sums."""

from __future__ import annotations

from typing import get_args, get_origin

import pytest

from gemmgen.ir.atoms import ATOMS, Holding
from gemmgen.ir.expanded import (
    DescribeOperands,
    Fetch,
    LoadLaneSlice,
    MultiplyAgain,
    Timed,
    Unscale,
    WarpReduce,
)
from gemmgen.lower.kernel import LOWERINGS, NODES

KINDS = {get_origin(kind) or kind for kind in get_args(Timed)}
NEVER_MADE: dict[Holding, set[type]] = {
    "thread": {LoadLaneSlice, WarpReduce, DescribeOperands, MultiplyAgain, Unscale},
    "opaque": {LoadLaneSlice, WarpReduce, DescribeOperands, MultiplyAgain, Unscale},
    "known": {LoadLaneSlice, WarpReduce, DescribeOperands, Unscale},
    "warpgroup": {LoadLaneSlice, WarpReduce, Fetch},
    "lanes": {Fetch, DescribeOperands, MultiplyAgain, Unscale},
}
"""What expansion does not make where the accumulators are held so."""


def test_every_holding_has_a_lowering() -> None:
    assert set(LOWERINGS) == set(get_args(Holding))
    assert {atom.holding for atom in ATOMS.values()} <= set(LOWERINGS)


@pytest.mark.parametrize("holding", NEVER_MADE)
def test_every_node_is_lowered_in_one_place(holding: Holding) -> None:
    own = set(LOWERINGS[holding].nodes)
    assert not own & set(NODES)
    assert own | set(NODES) == KINDS - NEVER_MADE[holding]
