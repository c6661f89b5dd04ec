"""Emitted kernels beside those of the same rung of siboehm/SGEMM_CUDA, in lines of code.

Counted alike on both sides: lines that are neither blank nor comment, ``#include`` nor a guard of
a file or a compiler (``#pragma once``, ``#ifndef``, ``#endif``); of the kernel with its constants
and device functions, and of the host's function that launches it.
"""

from __future__ import annotations

import re

import pytest
from passes.schedules import EXAMPLES
from pipeline.running import emitted

from gemmgen.emit.kernel_view import END

MOST = 1.5
"""Lines of ours to one of theirs: ours check bounds, have leading dimensions, and are launched
after checks of all arguments."""

SGEMM_CUDA = {
    1: (12, 6),
    2: (14, 7),
    3: (30, 10),
    5: (62, 21),
    6: (62, 21),
    10: (123, 41),
    11: (159, 41),
}
"""Lines of ``src/kernels/<number>_*.cuh``, and of the function of ``src/runner.cu`` that launches
it: https://github.com/siboehm/SGEMM_CUDA/tree/60cba6f."""

RUNG = {
    "uncoalesced": 1,
    "naive": 2,
    "tiled": 3,
    "transposed": 3,
    "padded": 3,
    "register_blocked": 5,
    "fused": 5,
    "vectorized": 6,
    "warp_tiled": 10,
    "async_copy": 11,
}
"""The kernel of theirs that has the same idea; several of ours are double-buffered or fused, too.
Only 11 of theirs is double-buffered, by warps of two kinds."""

FURTHER = {
    "register_blocked": ("double_buffer",),
    "fused": ("double_buffer", "fuse_epilogue"),
    "vectorized": ("double_buffer", "fuse_epilogue"),
}
"""What these have that theirs lack: their kernels are compared without it."""


def lines_of_code(text: str) -> int:
    lines = (line.partition("//")[0].strip() for line in text.splitlines())
    skipped = re.compile("#(include|pragma once|ifndef|endif)")
    return sum(bool(line) and not skipped.match(line) for line in lines)


def kernel_and_launcher(name: str, without: tuple[str, ...] = ()) -> tuple[int, int]:
    lines = EXAMPLES[name].text.splitlines()
    kept = [line for line in lines if not line.startswith(without)] if without else lines
    assert len(lines) - len(kept) == len(without)
    kernel, _, launcher = emitted("\n".join(kept) + "\n").text.partition(END)
    return lines_of_code(kernel), lines_of_code(launcher)


@pytest.mark.parametrize("name", [name for name, rung in RUNG.items() if rung >= 3])
def test_a_kernel_and_its_launcher_are_at_most_half_as_long_again(name: str) -> None:
    """Of the first rungs the launcher's checks are longer than the whole kernel."""
    ours, theirs = sum(kernel_and_launcher(name)), sum(SGEMM_CUDA[RUNG[name]])
    assert ours <= MOST * theirs, f"{ours} lines to {theirs}: {ours / theirs:.2f}"


@pytest.mark.parametrize("name", RUNG)
def test_a_kernel_is_at_most_half_as_long_again(name: str) -> None:
    """Without its launcher, and without what theirs lacks."""
    ours = kernel_and_launcher(name, FURTHER.get(name, ()))[0]
    theirs = SGEMM_CUDA[RUNG[name]][0]
    assert ours <= MOST * theirs, f"{ours} lines to {theirs}: {ours / theirs:.2f}"
