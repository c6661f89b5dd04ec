"""What ``swizzle`` takes for the banks that are touched is what the lowered code touches."""

from __future__ import annotations

import pytest

from gemmgen.analyze.analyzed_kernel import compile_kernel
from gemmgen.analyze.count import count_launch
from gemmgen.analyze.launch_arguments import arguments_of
from gemmgen.analyze.pads import pad_choices
from gemmgen.base.source import Source
from gemmgen.ir.buffers import Swizzle
from gemmgen.language import parse_schedule
from gemmgen.passes.banks import candidates, conflicts, phases
from gemmgen.pipeline import rewrite

BLOCKED = "tile m=64 n=64 k=16\ncache_shared A[{a}] B[{b}]\nregister_block m=4 n=4\n"
SCHEDULES = {
    "an element a thread, A transposed": "tile m=32 n=32 k=32\ncache_shared A[k, m] B\n",
    "an element a thread, B transposed": "tile m=32 n=32 k=8\ncache_shared A B[n, k]\n",
    "A along k": BLOCKED.format(a="m, k", b="k, n") + "vectorize A.global B C width=4\n",
    "A along m": BLOCKED.format(a="k, m", b="k, n") + "vectorize A B C width=4\n",
    "A along m, element by element": BLOCKED.format(a="k, m", b="k, n"),
    "pairs": BLOCKED.format(a="k, m", b="k, n") + "vectorize A B C width=2\n",
    "x along m": "bind x=m\n" + BLOCKED.format(a="m, k", b="k, n"),
    "warps": "tile m=128 n=64 k=16\ncache_shared A[k, m] B\nwarp_tile m=64 n=32\n"
    "register_block m=8 n=8\nvectorize A B C width=4\n",
    "few threads along a row": "gemm C[m, n] = A[k, m] * B[n, k]\ntile m=64 n=64 k=32\n"
    "cache_shared A[k, m] B[k, n]\nregister_block m=4 n=8\ndouble_buffer A B\n"
    "async_copy A B via=cp_async\n",
    "uneven pieces": "tile m=24 n=32 k=12\ncache_shared A[k, m] B[n, k]\nregister_block m=2 n=4\n",
}
SHAPE = (256, 256, 96)


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_pattern_without_conflicts_has_none_in_the_lowered_code(name: str) -> None:
    text = SCHEDULES[name]
    kernel = rewrite(parse_schedule(Source(text)))[-1].program.main
    for tensor in ("A", "B"):
        tile = kernel.buffer(f"{tensor}_shared")
        found, row = phases(kernel, tile), tile.extent(tile.letters[-1])
        tried = (None, *candidates(kernel, tile)[::5])
        free = {s: conflicts(found, row, s) == 0 for s in tried}
        assert free == {s: counted(text, tensor, s) == 0 for s in tried}


def counted(text: str, tensor: str, swizzle: Swizzle | None) -> int:
    """Wavefronts that bank conflicts add, of a whole launch."""
    if swizzle is not None:
        said = f"by={swizzle.by} every={swizzle.every} chunk={swizzle.chunk}"
        text += f"swizzle {tensor} {said}\n"
    kernel = compile_kernel(parse_schedule(Source(text)))
    values = arguments_of(kernel.lowered.interface, kernel.program.problem, SHAPE)
    launch = count_launch(kernel.lowered, values)
    return sum(c.conflicts for site, c in launch.items() if site.buffer == f"{tensor}_shared")


@pytest.mark.by_default("A along k", "warps")
@pytest.mark.parametrize("name", ["A along k", "A along m", "pairs", "warps"])
def test_the_pattern_chosen_is_the_best_that_explain_finds(name: str) -> None:
    plain, chosen = (
        next(
            p for p in pad_choices(kernel.program, kernel.lowered, values) if p.buffer == "A_shared"
        )
        for text in (SCHEDULES[name], SCHEDULES[name] + "swizzle A\n")
        for kernel in (compile_kernel(parse_schedule(Source(text))),)
        for values in (arguments_of(kernel.lowered.interface, kernel.program.problem, SHAPE),)
    )
    assert plain.swizzled is not None and plain.now.excess > plain.swizzled.excess
    assert chosen.now.excess == plain.swizzled.excess == 0
