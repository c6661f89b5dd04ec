"""What is drawn of banks, against addresses that the interpreter logs, counted in another way."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from gemmgen.analyze.analyzed_kernel import AnalyzedKernel
from gemmgen.analyze.maps import NO_THREAD, Picture
from gemmgen.analyze.unpadded import bank_maps
from gemmgen.analyze.whole_tiles import stages_of, whole_tiles
from gemmgen.ir.dtypes import BYTES
from tests.cli.running import gemmgen
from tests.draw.block_zero import compiled, run


def costliest(kernel: AnalyzedKernel, array: str, *, write: bool) -> Fraction:
    """Wavefronts for each phase, of the request of a warp that has the most."""
    size = next(BYTES[a.dtype] for a in kernel.lowered.shared if a.name == array)
    log = run(kernel, whole_tiles(kernel, stages_of(kernel)))
    found = [
        per_phase(warp, width, size)
        for name, written, first, width in log.requests
        if (name, written) == (array, write)
        for warp in first.reshape(-1, 32)
        if (warp >= 0).any()
    ]
    return max(found)


def per_phase(first: np.ndarray, width: int, size: int) -> Fraction:
    """A request's parts of 32 threads, 16 or 8, each with the fullest bank's different words."""
    parts = max(1, width * size // 4)
    wavefronts = 0
    for part in first.reshape(parts, -1):
        words = defaultdict(set)
        for start in part[part >= 0]:
            for byte in range(start * size, (start + width) * size, min(4, size)):
                words[byte // 4 % 32].add(byte // 4)
        wavefronts += max(map(len, words.values()), default=0)
    return Fraction(wavefronts, parts)


def drawn_per_phase(picture: Picture) -> Fraction:
    return Fraction(len(picture.rows), sum(not row.again for row in picture.rows))


NAMES = ["transposed", "padded", "vectorized", "swizzled", "async_row_major", "versions/v5"]


@pytest.mark.by_default("padded")
@pytest.mark.parametrize("name", NAMES)
def test_requests_are_as_costly_as_those_of_the_interpreter(name: str) -> None:
    kernel = compiled(name)
    for maps in bank_maps(kernel):
        for picture, write in zip(maps.now, (True, False), strict=True):
            assert drawn_per_phase(picture) == costliest(kernel, maps.array, write=write)


def test_the_schedule_without_its_pad_is_what_is_drawn_before() -> None:
    """``padded`` is ``transposed`` with a pad."""
    padded, plain = (bank_maps(compiled(name))[0] for name in ("padded", "transposed"))
    assert padded.statements == ("pad A by=1",) and not plain.statements and not plain.before
    assert padded.before == plain.now
    assert [p.ways for p in padded.before] == [32, 1] and [p.ways for p in padded.now] == [1, 1]


def test_a_pad_that_helps_nothing_shows() -> None:
    message = gemmgen("draw", "padded", "--what", "banks").stdout
    assert "32-way conflict without pad and swizzle, no conflict with pad A by=1." in message
    kernel = compiled("transposed")
    assert costliest(kernel, "A_shared", write=True) == 32


def test_each_thread_is_in_a_bank_of_each_word_that_it_accesses() -> None:
    write, _ = bank_maps(compiled("swizzled"))[1].now
    lanes = [lane for row in write.rows for lane in row.lanes if lane != NO_THREAD]
    assert sorted(lanes) == sorted(list(range(32)) * 4)


def test_a_kernel_without_shared_memory_is_refused() -> None:
    result = gemmgen("draw", "naive", "--what", "banks")
    assert result.exit_code == 2 and "cache_shared stages tiles there" in result.stderr
