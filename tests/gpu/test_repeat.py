"""The same inputs give the same bits, again and again and on several streams at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmgen.pipeline import compile_source
from gemmgen.source import Source

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("double_buffered", "split_k", "vectorized", "warp_tiled")


@pytest.mark.parametrize("name", NAMES)
def test_gives_the_same_bits_100_times_on_four_streams(name: str) -> None:
    import cupy as cp  # pyright: ignore[reportMissingImports]

    from gemmgen.gpu.launch import Kernel

    kernel = Kernel.of(compile_source(Source((EXAMPLES / f"{name}.sched").read_text(), name)))
    m, n, k = 700, 900, 612
    rng = cp.random.default_rng(7)
    given = {
        "A": rng.standard_normal((m, k), dtype=cp.float32),
        "B": rng.standard_normal((k, n), dtype=cp.float32),
    }
    if any(p.name == "bias" for p in kernel.interface.params):
        given["bias"] = rng.standard_normal((n,), dtype=cp.float32)
    first = kernel(**given, C=cp.zeros((m, n), cp.float32))
    cp.cuda.Device().synchronize()
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(4)]
    outputs = []
    for turn in range(100):
        with streams[turn % 4]:
            outputs.append(kernel(**given, C=cp.full((m, n), cp.nan, cp.float32)))
    cp.cuda.Device().synchronize()
    assert all((first.view(cp.uint32) == out.view(cp.uint32)).all() for out in outputs)
