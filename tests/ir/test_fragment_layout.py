"""What lanes hold: each element once, and as the PTX ISA has it."""

from __future__ import annotations

import itertools

import pytest

from gemmgen.ir.atoms import ATOMS, VIA, Atom, AtomTraits
from gemmgen.ir.fragment_layout import FragmentLayout
from gemmgen.ir.target import WARP

KNOWN = [atom for atoms in VIA.values() for atom in atoms if ATOMS[atom].holding == "known"]


def matrices(traits: AtomTraits) -> list[tuple[FragmentLayout, int, int]]:
    """Sums, A and B, and their extents."""
    assert traits.accumulators and traits.a and traits.b
    sizes = (traits.m, traits.n), (traits.m, traits.k), (traits.k, traits.n)
    return [
        (layout, *size)
        for layout, size in zip((traits.accumulators, traits.a, traits.b), sizes, strict=True)
    ]


@pytest.mark.parametrize("atom", KNOWN)
def test_every_element_has_one_owner(atom: Atom) -> None:
    for layout, rows, columns in matrices(ATOMS[atom]):
        places = itertools.product(range(WARP), range(layout.registers))
        found = {layout.element(lane, register): (lane, register) for lane, register in places}
        assert set(found) == set(itertools.product(range(rows), range(columns)))
        assert len(found) == layout.lanes * layout.registers == rows * columns
        assert all(layout.owner(*at) == place for at, place in found.items())


def test_a_lanes_share_of_a_side() -> None:
    traits = ATOMS["m16n8k16"]
    assert traits.accumulators and traits.a and traits.b
    assert traits.accumulators.along("row") == (2, 8, 1) and traits.accumulators.along(
        "column"
    ) == (1, 4, 2)
    assert traits.a.along("row") == (2, 8, 1) and traits.a.along("column") == (2, 4, 2)
    assert traits.b.along("row") == (2, 4, 2) and traits.b.along("column") == (1, 8, 1)
    assert traits.share("row") == (8, 1) and traits.share("column") == (4, 2)
    assert ATOMS["wmma"].share("row") == (1, 16) and ATOMS["fma"].share("column") == (1, 1)


# The PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" and "for mma.m16n8k8"
# and "for mma.m16n8k32":
# group = lane / 4, thread = lane % 4, and element i of the fragment.


def a_k16(group: int, thread: int, i: int) -> tuple[int, int]:
    row = group if i < 2 or 4 <= i < 6 else group + 8
    return row, thread * 2 + (i & 1) + (8 if i >= 4 else 0)


def b_k16(group: int, thread: int, i: int) -> tuple[int, int]:
    return thread * 2 + (i & 1) + (8 if i >= 2 else 0), group


def c_n8(group: int, thread: int, i: int) -> tuple[int, int]:
    return group if i < 2 else group + 8, thread * 2 + (i & 1)


def a_k8(group: int, thread: int, i: int) -> tuple[int, int]:
    return group if i < 2 else group + 8, thread * 2 + (i & 1)


def b_k8(group: int, thread: int, i: int) -> tuple[int, int]:
    return thread * 2 + i, group


def a_k32(group: int, thread: int, i: int) -> tuple[int, int]:
    row = group if i < 4 or 8 <= i < 12 else group + 8
    return row, thread * 4 + (i & 3) + (16 if i >= 8 else 0)


def b_k32(group: int, thread: int, i: int) -> tuple[int, int]:
    return thread * 4 + (i & 3) + (16 if i >= 4 else 0), group


def a_tf32(group: int, thread: int, i: int) -> tuple[int, int]:
    return group + (8 if i in (1, 3) else 0), thread + (4 if i >= 2 else 0)


def b_tf32(group: int, thread: int, i: int) -> tuple[int, int]:
    return thread + (4 if i == 1 else 0), group


# With .f64 floating point type:
def c_m8(group: int, thread: int, i: int) -> tuple[int, int]:
    return group, thread * 2 + (i & 1)


def a_m8(group: int, thread: int, i: int) -> tuple[int, int]:
    return group, thread


def a_doubles(group: int, thread: int, i: int) -> tuple[int, int]:
    if i % 2 == 0:
        return group, i * 2 + thread
    return group + 8, i * 2 - 2 + thread


def b_doubles(group: int, thread: int, i: int) -> tuple[int, int]:
    return thread + i * 4, group


# Of f32 as parts in bf16, elements c and c + 4 of 8 are where PTX has columns 2c and 2c + 1.


def permuted(k: int) -> int:
    return k // 8 * 8 + k % 8 // 2 + k % 2 * 4


def a_of_parts(group: int, thread: int, i: int) -> tuple[int, int]:
    row, column = a_k16(group, thread, i)
    return row, permuted(column)


def b_of_parts(group: int, thread: int, i: int) -> tuple[int, int]:
    row, column = b_k16(group, thread, i)
    return permuted(row), column


PUBLISHED = {
    "m16n8k16": (c_n8, a_k16, b_k16),
    "m16n8k8": (c_n8, a_k8, b_k8),
    "m16n8k32": (c_n8, a_k32, b_k32),
    "m16n8k8_tf32": (c_n8, a_tf32, b_tf32),
    "m16n8k16_f64": (c_n8, a_doubles, b_doubles),
    "m16n8k8_f64": (c_n8, a_doubles, b_doubles),
    "m16n8k4_f64": (c_n8, a_doubles, b_doubles),
    "m8n8k4_f64": (c_m8, a_m8, b_doubles),
    "m16n8k16_f32": (c_n8, a_of_parts, b_of_parts),
}


@pytest.mark.parametrize("atom", KNOWN)
def test_lanes_hold_what_is_published(atom: Atom) -> None:
    published = PUBLISHED[atom]
    for (layout, _, _), place in zip(matrices(ATOMS[atom]), published, strict=True):
        for lane, i in itertools.product(range(WARP), range(layout.registers)):
            assert layout.element(lane, i) == place(lane // 4, lane % 4, i), (lane, i)
