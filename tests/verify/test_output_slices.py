"""C by TMA, in slices of few rows and of many: right where every atom column, stage and warp
begins."""

from __future__ import annotations

from itertools import islice

import pytest
from output_slices import accepted, complaint, kind_of, main

from gemmgen.base.source import Source
from gemmgen.ir.boxes import lands_at
from gemmgen.pipeline import Emitted, compile_source

FOUR_ROWS = """\
target sm_90a
tile m=64 n=64 k=8
warp_tile m=64 n=64
register_block m=16 n=8 interleave=1
cache_shared A[m, k] B[k, n] C
async_copy C via=tma
swizzle C
"""
OTHERS = {
    "four warps": "tile m=128 n=128 k=8\nwarp_tile m=128 n=32\n"
    "register_block m=32 n=4 interleave=1",
    "f64": "dtype A=f64 B=f64 C=f64 acc=f64\ntile m=16 n=32 k=8\nwarp_tile m=16 n=32\n"
    "register_block m=4 n=4 interleave=1",
    "bf16": "dtype A=bf16 B=bf16 C=bf16\ntile m=16 n=128 k=8\nwarp_tile m=16 n=128\n"
    "register_block m=4 n=16 interleave=1\nfuse_epilogue acc",
}
SHAPE = "tile m=64 n=64 k=8\nwarp_tile m=64 n=64\nregister_block m=16 n=8 interleave=1"
TWO_STAGES = f"{FOUR_ROWS}double_buffer C\n"


def kernel(text: str) -> Emitted:
    return compile_source(Source(text))


FEW_ROWS = {
    "f32": FOUR_ROWS,
    "f32, two stages": TWO_STAGES,
    **{name: FOUR_ROWS.replace(SHAPE, shape) for name, shape in OTHERS.items()},
}


@pytest.mark.by_default("f32")
@pytest.mark.parametrize("name", FEW_ROWS)
def test_atom_columns_of_few_rows_are_right(name: str) -> None:
    emitted = kernel(FEW_ROWS[name])
    slice_ = emitted.program.main.buffer("C_shared")
    assert slice_.atom_columns > 1 and slice_.extent(slice_.letters[0]) < 8 and slice_.spare
    assert complaint(emitted) is None


@pytest.mark.proof
@pytest.mark.parametrize("count", [12, pytest.param(40, marks=pytest.mark.exhaustive)])
def test_random_slices_are_right(count: int) -> None:
    for text, emitted in islice(accepted(7), count):
        slice_ = emitted.program.main.buffer("C_shared")
        assert slice_.bytes % lands_at(slice_) == 0 or slice_.atom_columns * slice_.stages == 1
        assert (found := complaint(emitted)) is None, f"{text}{found}"


@pytest.mark.proof
def test_they_are_of_many_kinds() -> None:
    kinds = {kind_of(emitted) for _, emitted in islice(accepted(1), 60)}
    for word in (
        "f32",
        "f64",
        "bf16",
        "under 8 rows",
        "atom columns",
        "as it lies",
        "stages",
        "spare",
    ):
        assert any(word in kind for kind in kinds), kinds


@pytest.mark.proof
def test_the_command_counts_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "1", "--seed", "3"]) == 0
    assert "1 schedules, 0 wrong" in capsys.readouterr().out
