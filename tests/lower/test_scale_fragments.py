"""Scales of blocks in emitted kernels: which are copied with the tiles, how many registers a thread
has of them, and what a launcher asks of their rows."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gemmgen.base.source import Source
from gemmgen.ir.blocked_letters import block, blocked, count, plain
from gemmgen.ir.requirement import AtLeast, AtLeastBlocks
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import launcher
from gemmgen.sim.run import compile_kernel

SCALES = "(A[m, k] * {a}) * (B[n, k] * {b})"
USUAL = SCALES.format(a="SA[k/128, m]", b="SB[n/128, k/128]")
REST = """\
dtype A=e4m3 B=e4m3 C=bf16
target sm_90a
tile {tile} k=128
cache_shared A B
warp_tile {warp}
tensor_core via=wgmma promote=128{how}
swizzle A B
double_buffer A B
async_copy A B via=tma
"""


def emitted(
    product: str = USUAL, tile: str = "m=64 n=128", warp: str = "m=64 n=128", how: str = ""
) -> Emitted:
    text = f"gemm C[m, n] = {product}\n{REST.format(tile=tile, warp=warp, how=how)}"
    return compile_source(Source(text))


MAPPED = {
    "rows of A alone": (USUAL, {"SA"}),
    "rows of both": (SCALES.format(a="SA[k/128, m]", b="SB[k/128, n]"), {"SA", "SB"}),
    "neighbors along k": (SCALES.format(a="SA[m, k/128]", b="SB[n, k/256]"), set[str]()),
    "blocks of rows": (SCALES.format(a="SA[k/128, m/2]", b="SB[n/128, k/128]"), set[str]()),
    "longer blocks": (SCALES.format(a="SA[k/256, m]", b="SB[n/64, k/128]"), {"SA"}),
}


@pytest.mark.parametrize("name", MAPPED)
def test_neighboring_factors_are_copied_with_their_tile(name: str) -> None:
    product, wanted = MAPPED[name]
    kernel = emitted(product)
    assert {one.tensor for one in kernel.interface.maps} - {"A", "B", "C"} == wanted
    for scales in ("SA", "SB"):
        assert (f"{scales}_shared[stage]" in kernel.text) == (scales in wanted)


def test_factors_stay_in_global_memory_where_threads_copy_the_tile() -> None:
    text = f"gemm C[m, n] = {USUAL}\n{REST.format(tile='m=64 n=64', warp='m=32 n=32', how='')}"
    text = text.replace("wgmma", "mma").replace("via=tma", "via=cp_async")
    text = text.replace("swizzle A B\n", "vectorize A.global B.global width=16\nswizzle A B\n")
    kernel = compile_source(Source(text))
    assert not kernel.interface.maps and "SA_shared" not in kernel.text


REGISTERS = {
    "one block": ({}, {"SA": 2, "SB": 1}),
    "192 columns, in parts of two blocks": (
        {"tile": "m=64 n=192", "warp": "m=64 n=192"},
        {"SA": 2, "SB": 3},
    ),
    "blocks longer than a tile": ({"product": USUAL.replace("n/128", "n/256")}, {"SA": 2, "SB": 1}),
    "two consumers side by side": (
        {"tile": "m=64 n=128", "warp": "m=64 n=64"},
        {"SA": 2, "SB": 1},
    ),
    "exchanged": (
        {"tile": "m=16 n=128", "warp": "m=16 n=64", "how": " rows=n"},
        {"SA": 4, "SB": 1},
    ),
    "blocks of three": ({"product": USUAL.replace("n/128", "n/3")}, {"SA": 2, "SB": 32}),
    "blocks of eight": ({"product": USUAL.replace("n/128", "n/8")}, {"SA": 2, "SB": 16}),
}


@pytest.mark.parametrize("name", REGISTERS)
def test_registers_of_a_block_share_a_factor(name: str) -> None:
    """64 of 192 columns: the greatest common divisor of a block, 128, and a warp's part of C."""
    given, wanted = REGISTERS[name]
    kernel = emitted(**given)
    constants = {c.name: c.value for c in kernel.lowered.kernels[0].constants}
    for scales, registers in wanted.items():
        found = re.search(rf"float {scales}_frag(?:\[(\w+)\])?( =|;)", kernel.text)
        assert found is not None
        size = found[1] or "1"
        assert int(constants.get(size, size)) == registers, scales


def test_the_rows_of_factors_have_a_pitch() -> None:
    kernel = emitted()
    interface = kernel.interface
    assert AtLeast("ldsa", "M") in interface.requirements
    spanned = AtLeastBlocks("ldsb", "K", 128)
    assert spanned in interface.requirements and spanned.text() == "ldsb * 128 >= K"
    assert "//     ldsb * 128 >= K\n" in kernel.text
    assert "(long long)ldsb * 128 < K" in kernel.text
    assert spanned.holds({"ldsb": 3, "K": 384}) and not spanned.holds({"ldsb": 3, "K": 385})


@pytest.mark.parametrize(
    "condition", [" || (long long)ldsb * 128 < K", " || ldsa < M", " || ldsa % 4 != 0"]
)
def test_a_launcher_that_takes_a_short_pitch_is_seen(condition: str) -> None:
    right = emitted()
    assert (
        launcher.complaint(right, right.text, compile_kernel(right.text, right.interface)) is None
    )
    flat = re.sub(r" \|\|\n +", " || ", right.text)
    assert condition in flat
    wrong = replace(right, text=flat.replace(condition, "", 1))
    kernel = compile_kernel(wrong.text, wrong.interface)
    found = launcher.complaint(wrong, wrong.text, kernel)
    assert found is not None


def test_letters_that_number_blocks() -> None:
    assert blocked("k", 128) == "k/128" and blocked("m", 1) == "m"
    assert (plain("k/128"), block("k/128"), plain("m"), block("m")) == ("k", 128, "m", 1)
    assert [count("k/128", extent) for extent in (0, 1, 128, 129)] == [0, 1, 1, 2]
