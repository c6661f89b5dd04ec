"""The model of stmatrix stores, and finds what the hardware would not do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from functions import with_functions

from gemmgen.calling.launches import ORDERS
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.numerics.formats import Stored
from gemmgen.sim.failures import KernelFault
from gemmgen.sim.run import compile_kernel

SOURCE = (Path(__file__).parents[1] / "handwritten" / "stored.cu").read_text(encoding="utf-8")
PLACE = "i % 2 * 8 + lane / 4, n = i / 2 * 8 + lane % 4 * 2"
TRANSPOSED = "i % 2 * 8 + lane % 4 * 2, n = i / 2 * 8 + lane / 4"
CALL = "gg_stmatrix_x4(&tile[lane % 16][lane / 16 * 8], pairs);"
HALF = "gg_stmatrix_x2(&tile[lane % 16][lane / 16 * 8], pairs);"
INTERFACE = Interface(
    "stored",
    (
        *(Param("M", "extent"), Param("N", "extent")),
        *(Param("A", "tensor", ("m", "n"), dtype="bf16"), Param("lda", "ld")),
        *(Param("C", "tensor", ("m", "n"), True, False, "bf16"), Param("ldc", "ld")),
    ),
    *((32, 1), (("M", 16), ("N", 16)), (), 0, 0, (("A", "lda"), ("C", "ldc"))),
)


def run(source: str, order: str = "ascending") -> tuple[Stored, Stored]:
    """What C is, and what it should be."""
    kernel = compile_kernel(with_functions(source), INTERFACE, checked=True)
    a = np.arange(256, dtype=np.uint16).reshape(16, 16)
    c = np.full_like(a, 0x7FFF)
    kernel.run({"M": 16, "N": 16, "A": a, "lda": 16, "C": c, "ldc": 16}, order=order, seed=3)
    return c, a


def transposed(source: str) -> str:
    return (
        source.replace("gg_stmatrix_x4(", "gg_stmatrix_x4_trans(")
        .replace(PLACE, TRANSPOSED)
        .replace("A[m * lda + n + 1]", "A[(m + 1) * lda + n]")
    )


def by_pairs(source: str) -> str:
    calls = (f"gg_stmatrix_x2(&tile[lane % 16][{4 * i}], pairs + {2 * i});" for i in (0, 2))
    return source.replace(CALL, " ".join(calls))


def one_by_one(source: str) -> str:
    one = "gg_stmatrix_x1(&tile[%d + lane %% 8][%d], pairs + %d);"
    calls = (one % (i % 2 * 8, i // 2 * 8, 2 * i) for i in range(4))
    return source.replace(CALL, " ".join(calls))


@pytest.mark.by_default("transposed")
@pytest.mark.parametrize("change", [str, transposed, by_pairs, one_by_one])
def test_stores_what_each_lane_holds(change: Callable[[str], str]) -> None:
    for order in ORDERS:
        got, want = run(change(SOURCE), order)
        assert np.array_equal(got, want)


PLANTS = {
    "a row at no multiple of 16 bytes": ("lane / 16 * 8]", "lane / 16 * 4]", "misaligned: a row"),
    "a row outside the tile": ("tile[lane % 16]", "tile[lane % 16 + 1]", "out of bounds"),
    "a lane that stores nothing": (CALL, f"if (lane != 9) {CALL}", "divergent warp"),
    "no barrier after the stores": ("__syncwarp();", "", "race: "),
    "matrices exchanged": ("pairs[i * 2] =", "pairs[i % 2 * 4 + i / 2 * 2] =", ""),
    "transposed, and not meant so": ("gg_stmatrix_x4(", "gg_stmatrix_x4_trans(", ""),
    "half of the matrices": (CALL, HALF, "never written"),
}


@pytest.mark.by_default("a lane that stores nothing", "matrices exchanged")
@pytest.mark.parametrize("name", PLANTS)
def test_finds(name: str) -> None:
    before, after, message = PLANTS[name]
    assert before in SOURCE
    source = SOURCE.replace(before, after)
    if not message:
        got, want = run(source)
        assert not np.array_equal(got, want)
        return
    with pytest.raises(KernelFault, match=message):
        run(source)
