"""What ptxas said of the registers of kernels of every atom, tile and role agrees with gemmgen's
arithmetic: what gemmgen takes compiles, and what it refuses for its registers does not."""

from __future__ import annotations

from collections import Counter

import pytest
from register_table import Row, arithmetic, keys, mistakes_of, read_table, row_of, unchecked

from gemmgen.gpu import compiler
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.occupancy import BESIDE_WGMMA, blocks_per_multiprocessor, can_multiply

ROWS = read_table()
COMPILED_BY = "NVRTC 13.0"
FOR_WGMMA = ("registers of each thread at the launch", "too few registers for wgmma")


def sample(count: int) -> tuple[Row, ...]:
    """This many rows, of all atoms, and as many again that ptxas refuses."""
    refused = [row for row in ROWS if row.needs]
    return (*ROWS[:: len(ROWS) // count], *refused[:: max(1, len(refused) // count)])


def test_the_table_is_of_every_kind_of_kernel() -> None:
    known = set(keys())
    assert len(ROWS) > 800 and all(row.key in known for row in ROWS)
    kinds = Counter(row.atom for row in ROWS)
    types = {
        t for atom in ATOMS.values() if atom.in_place for a, _, _ in atom.products for t in [a]
    }
    assert {f"wgmma {dtype}" for dtype in types - {"e5m2"}} <= kinds.keys()
    assert {atom.split()[0] for atom in kinds} == {"fma", "wmma", "mma", "wgmma"}
    assert sum(row.needs > 0 for row in ROWS) > 50


def test_what_a_wgmma_needs_is_the_same_beside_all_accumulators() -> None:
    """64 x n of 128 threads are n / 2 registers."""
    for row in ROWS:
        columns = int(row.share.partition("n=")[2])
        if row.needs:
            assert row.atom.startswith("wgmma")
            assert row.needs == columns // 2 + BESIDE_WGMMA > row.had
        elif row.atom.startswith("wgmma"):
            assert columns // 2 + BESIDE_WGMMA <= row.had


def agrees(row: Row) -> None:
    """gemmgen knows what ptxas compiles, and refuses the rest; nothing else for its registers."""
    found = unchecked(row.key)
    assert found is not None, row
    kernel = found[0].main
    had, needs = arithmetic(found[0])
    assert had == row.had and (needs > had) == bool(row.needs) and row.needs in (0, needs), row
    assert row.compiles == can_multiply(kernel, blocks_per_multiprocessor(kernel)), row
    said = [mistake.message for mistake in mistakes_of(row.key)]
    assert row.compiles or said, row
    if row.compiles and row.atom.startswith("wgmma"):
        assert not [each for each in said if each.endswith(FOR_WGMMA)], (row, said)


@pytest.mark.proof
@pytest.mark.parametrize("part", range(2))
def test_arithmetic_agrees_with_ptxas(part: int) -> None:
    """Every fifth row and each that ptxas refuses: neighbors differ by eight columns."""
    rows = sample(len(ROWS) // 5)
    assert {row.atom for row in rows} == {row.atom for row in ROWS}
    for row in rows[part::2]:
        agrees(row)


@pytest.mark.proof
@pytest.mark.skipif(compiler.available() is not None, reason=str(compiler.available()))
def test_ptxas_says_what_the_table_says() -> None:
    if compiler.compiler().name != COMPILED_BY:
        pytest.skip(f"the table is of {COMPILED_BY}")
    for row in sample(12):
        assert row_of(row.key) == row
