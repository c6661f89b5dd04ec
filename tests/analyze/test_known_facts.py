"""What the literature and arithmetic on paper say of a kernel's accesses, counted."""

from __future__ import annotations

from functools import cache

import pytest

from gemmgen.analyze.explain import Explanation, Traffic, explain
from gemmgen.analyze.launch_arguments import Shape
from gemmgen.base.source import Source
from gemmgen.gpu.gpus import GPUS
from gemmgen.language import parse_schedule

NAIVE = "gemm C[m, n] = A[m, k] * B[k, n]"
NEIGHBOURS = "tile m=32 n=32 k=16\ncache_shared A[m, k] B[k, n]\nregister_block m=2 n=2\n"
TRANSPOSED = (
    "tile m=128 n=128 k=8\ncache_shared A[k, m] B[k, n]\nregister_block m=8 n=8\n"
    "vectorize A.global width=4\n"
)


pytestmark = pytest.mark.usefixtures("uncompiled")


@cache
def explained(text: str, shape: Shape = (256, 256, 256)) -> Explanation:
    return explain(parse_schedule(Source(text)), shape, GPUS["H200"])


def traffic(text: str, name: str, shape: Shape = (256, 256, 256)) -> Traffic:
    return next(t for t in explained(text, shape).traffic if t.name == name)


def test_neighbouring_elements_read_a_two_way_and_b_without_conflict():
    """Threads (0..15, 0) and (0..15, 1) of a warp read rows of A that are 2 * 16 words apart."""
    assert traffic(NEIGHBOURS, "A_shared read").counts.ways == 2
    assert traffic(NEIGHBOURS, "A_shared read").counts.wavefronts_per_request == 2
    assert traffic(NEIGHBOURS, "B_shared read").counts.ways == 1


def test_a_pad_of_one_removes_the_conflict_of_the_reads_and_makes_one_of_the_stores():
    """2 * 17 words apart: 1-way.  But the store's two rows of 16 now share bank 0: 0 and 32."""
    padded = NEIGHBOURS + "pad A by=1\npad B by=1"
    assert traffic(padded, "A_shared read").counts.ways == 1
    assert traffic(padded, "B_shared read").counts.ways == 1
    assert traffic(NEIGHBOURS, "A_shared write").counts.ways == 1
    assert traffic(padded, "A_shared write").counts.ways == 2


@pytest.mark.by_default("4-1")
@pytest.mark.parametrize(("pad", "ways"), [(0, 2), (1, 2), (4, 1), (8, 2)])
def test_the_transposing_store_wants_a_pad_of_four(pad: int, ways: int):
    """A warp stores 16 rows of m for k and k + 4: 4 * (128 + pad) words apart, modulo 32 banks."""
    counts = traffic(f"{TRANSPOSED}pad A by={pad}", "A_shared write").counts
    assert counts.ways == counts.wavefronts_per_request == ways


@pytest.mark.proof
def test_the_search_finds_the_pad_of_four():
    choice = next(p for p in explained(TRANSPOSED).pads if p.buffer == "A_shared")
    assert (choice.now.ways, choice.best.pad, choice.best.ways) == (2, 4, 1)


def test_a_pad_keeps_wide_rows_aligned():
    wide = TRANSPOSED.replace("A.global", "A B C")
    choice = next(p for p in explained(wide).pads if p.buffer == "A_shared")
    assert (choice.width, choice.best.pad, choice.best.excess) == (4, 4, 0)


def test_threads_down_a_column_ask_for_thirty_two_sectors():
    assert traffic("bind x=m y=n", "A read").counts.sectors_per_request == 32
    assert traffic("bind x=m y=n", "B read").counts.sectors_per_request == 1
    assert traffic("bind x=m y=n", "C write").counts.sectors_per_request == 32


def test_threads_along_a_row_ask_for_four_sectors():
    assert traffic(NAIVE, "A read").counts.sectors_per_request == 1
    assert traffic(NAIVE, "B read").counts.sectors_per_request == 4


def test_a_square_tile_stored_across_is_thirty_two_way_and_one_element_cures_it():
    tiled = "tile m=32 n=32 k=32\ncache_shared A[k, m] B[k, n]\n"
    assert traffic(tiled, "A_shared write").counts.ways == 32
    assert traffic(tiled + "pad A by=1", "A_shared write").counts.ways == 1


@pytest.mark.by_default("shape0")
@pytest.mark.parametrize("shape", [(256, 384, 512), (1024, 1024, 1024)])
def test_where_tiles_divide_the_formulas_hold_exactly(shape: Shape):
    m, n, k = shape
    reads = {"2MNK": 2 * m * n * k, "MNK(1/BM + 1/BN)": m * n * k // 64, "MN": m * n}
    found = {f.text: f for f in explained(TRANSPOSED, shape).formulas}
    assert found["MNK(1/BM + 1/BN)"].counted == reads["MNK(1/BM + 1/BN)"]
    assert found["MNK(1/TM + 1/TN)"].counted == m * n * k // 4
    assert found["MN"].counted == reads["MN"]
    assert all(f.ratio == 1 for text, f in found.items() if text[0] != "2")
    assert found["2*BM*BN*BK"].ratio == 1 / 8
    (naive,) = (f for f in explained(NAIVE, shape).formulas if f.text == "2MNK")
    assert naive.counted == reads["2MNK"]


def test_one_staged_operand_has_a_formula_of_its_own():
    formulas = explained("tile m=32 n=32 k=16\ncache_shared A").formulas
    found = next(f for f in formulas if f.text == "MNK(1 + 1/BN)")
    assert found.ratio == 1


def test_ragged_edges_read_no_more_than_there_is():
    """The naive kernel's threads outside C leave; those inside read 2K elements each."""
    naive, _ = explained(NAIVE, (33, 45, 7)).formulas
    assert naive.counted == 2 * 33 * 45 * 7


def test_operations_are_those_of_the_products_and_of_the_epilogue():
    """K multiplications and K - 1 additions an element; alpha, beta and an addition."""
    work = explained(NAIVE, (8, 4, 16)).operations
    assert (work.product, work.product_formula) == (8 * 4 * (2 * 16 - 1), "MN(2K - 1)")
    assert (work.epilogue, work.epilogue_formula) == (3 * 8 * 4, "3MN")
    assert (work.total, work.formula) == (2 * 8 * 4 * (16 + 1), "MN(2K + 2)")
    assert work.spelled == "2 multiplications and 1 addition"


@pytest.mark.parametrize(
    ("expression", "formula", "each"),
    [
        ("acc", "MN(2K - 1)", 31),
        ("alpha * acc", "MN(2K)", 32),
        ("relu(acc + bias[n])", "MN(2K + 1)", 33),
    ],
)
def test_operations_of_an_epilogue_are_counted_in_it(expression: str, formula: str, each: int):
    work = explained(f"{NAIVE}\nfuse_epilogue {expression}", (8, 4, 16)).operations
    assert (work.formula, work.total) == (formula, 8 * 4 * each)


def test_operations_have_the_names_of_a_schedules_own_letters():
    text = "gemm Y[b, row, j] = X[b, row, t] * W[t, j]\nfuse_epilogue relu(acc)"
    work = explained(text, (8, 4, 16, 3)).operations
    assert work.product_formula == "size_b*ROW*J(2T - 1)" and work.total == 3 * 8 * 4 * 32


def test_a_block_reads_what_its_tile_is_wide_and_high():
    found = {f.text: f for f in explained(TRANSPOSED).formulas}
    block = found["K(BM + BN)"]
    assert block.counted == block.value == 256 * (128 + 128) and block.name.endswith(", a block")
    assert found["2*BM*BN*BK"].value == 2 * 128 * 128 * 8
    step = found["BM*BN*BK(1/TM + 1/TN)"]
    assert step.counted == step.value == 128 * 128 * 8 // 4
    assert step.name == "shared reads, a block and step"


def test_blocks_that_share_a_tile_read_a_part_of_k_each():
    text = "tile m=32 n=32 k=8\ncache_shared A B\nsplit_k parts=2"
    found = {f.text: f for f in explained(text).formulas}
    assert found["K/2(BM + BN)"].counted == 128 * (32 + 32)
    assert found["2*BM*BN*BK"].ratio == 1


def test_fusion_saves_a_read_and_a_write_of_c_for_each_operation():
    fused = explained(f"{NAIVE}\nfuse_epilogue relu(acc + bias[n])", (8, 4, 16)).unfused
    assert fused is not None and fused.names == ("addition", "relu")
    assert (fused.elements, fused.bytes) == (2 * 2 * 8 * 4, 4 * 2 * 2 * 8 * 4)
    assert explained(NAIVE).unfused is None
    assert explained(f"{NAIVE}\nfuse_epilogue acc + 2 * exp(bias[n])").unfused.kernels == 1
