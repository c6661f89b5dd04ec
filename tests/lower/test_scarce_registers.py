"""Where registers are scarce B's fragments are read first, and first tiles wait in registers."""

from __future__ import annotations

from pathlib import Path

import pytest
from passes.equality import difference

from gemmgen.base.source import Source
from gemmgen.ir.occupancy import registers_are_scarce
from gemmgen.pipeline import Emitted, compile_source

EXAMPLES = Path(__file__).parents[2] / "examples"
SCARCE = ("vectorized", "fused", "register_blocked")


def emitted(name: str, more: str = "") -> Emitted:
    return compile_source(Source((EXAMPLES / f"{name}.sched").read_text() + more, name))


@pytest.mark.parametrize("name", SCARCE)
def test_two_blocks_of_eight_by_eight_sums_leave_few_registers(name: str) -> None:
    assert registers_are_scarce(emitted(name).program.main)


@pytest.mark.parametrize("name", ["split_k", "sizes/small", "warp_tiled", "tiled"])
def test_smaller_micro_tiles_and_single_blocks_leave_enough(name: str) -> None:
    assert not registers_are_scarce(emitted(name).program.main)


@pytest.mark.parametrize("name", SCARCE)
def test_the_order_of_fragments_follows(name: str) -> None:
    def b_first(text: str) -> bool:
        loop = text[text.index("// multiply the tile") :]
        return loop.index("B_frag[") < loop.index("A_frag[")

    assert b_first(emitted(name).text)
    assert not b_first(emitted(name, "launch_bounds blocks=1\n").text)


@pytest.mark.proof
@pytest.mark.parametrize("name", SCARCE)
def test_both_orders_give_the_same_bits(name: str) -> None:
    plain, alone = emitted(name), emitted(name, "launch_bounds blocks=1\n")
    assert difference(plain.program, alone.program) is None


def test_the_first_tiles_follow() -> None:
    def waits(text: str) -> bool:
        first = text[text.index("// load the first tile") : text.index("int stage")]
        return "B_next" in first

    assert waits(emitted("vectorized").text)
    assert not waits(emitted("vectorized", "launch_bounds blocks=1\n").text)


def test_what_reads_ahead_across_tiles_is_left_as_it_is() -> None:
    kernel = emitted("swizzled")
    first = kernel.text[
        kernel.text.index("// load the first tile") : kernel.text.index("__syncthreads")
    ]
    assert registers_are_scarce(kernel.program.main) and "B_next" not in first


def test_asynchronous_copies_keep_the_origin_of_their_tile() -> None:
    def keeps(text: str) -> bool:
        return "next_k += BK;" in text

    assert keeps(emitted("best/batched").text)
    assert not keeps(emitted("best/batched", "launch_bounds blocks=1\n").text)
    assert not keeps(emitted("best/batched", "split_k parts=2\n").text)
    assert not keeps(emitted("best/batched", "assume K % 16 == 0\n").text)
