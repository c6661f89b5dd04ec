"""The counters of split K: a launch has at most 2^31 - 1 tiles times parts, and a tile has a
counter for each group, and one more."""

from __future__ import annotations

import pytest

from gemmgen.base.source import Source
from gemmgen.pipeline import compile_source

WIDE = "arrived[(long long)own_tile * (GROUPS + 1) + own_group]"
SCHEDULE = """\
gemm C[m, n] = A[k, m] * B[n, k]
tile m=32 n=32 k=8
cache_shared A B
register_block m=4 n=2
split_k parts={parts} groups={groups}
"""


@pytest.mark.parametrize(("parts", "groups"), [(2, 2), (4, 4), (4, 2), (6, 3)])
def test_more_counters_than_parts_are_addressed_in_64_bits(parts: int, groups: int) -> None:
    text = compile_source(Source(SCHEDULE.format(parts=parts, groups=groups))).text
    assert (WIDE in text) == (groups == parts)
    assert "own_tile * (GROUPS + 1) + own_group]" in text
