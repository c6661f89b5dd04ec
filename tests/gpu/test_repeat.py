"""The same inputs give the same bits, again and again and on several streams at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.pipeline import compile_source

EXAMPLES = Path(__file__).parents[2] / "examples"
LADDER = ("double_buffered", "vectorized", "warp_tiled", "split_k", "tensor_core", "async_copy")
BEST = ("large_mk_kn", "medium_mk_nk", "odd_mk_kn", "small_mk_kn", "deep", "large_f16")
NAMES = (*LADDER, *(f"best/{name}" for name in BEST))


@pytest.mark.parametrize("name", NAMES)
def test_gives_the_same_bits_100_times_on_four_streams(name: str) -> None:
    import cupy as cp  # pyright: ignore[reportMissingImports]

    from gemmgen.gpu.elements import bits, elements, nan, storage
    from gemmgen.gpu.launch import Kernel

    kernel = Kernel.of(compile_source(Source((EXAMPLES / f"{name}.sched").read_text(), name)))
    size = {"m": 700, "n": 904, "k": 616}
    rng = cp.random.default_rng(7)
    given, (output,) = {}, [p for p in kernel.interface.params if p.written]
    for param in kernel.interface.params:
        if param.kind == "tensor" and not param.written:
            drawn = rng.standard_normal([size[i] for i in param.indices], dtype=cp.float32)
            given[param.name] = elements(drawn, param.dtype)

    def c() -> object:
        return cp.full((size["m"], size["n"]), nan(output.dtype), storage(output.dtype))

    first = kernel(**given, C=c())
    cp.cuda.Device().synchronize()
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(4)]
    outputs = []
    for turn in range(100):
        with streams[turn % 4]:
            outputs.append(kernel(**given, C=c()))
    cp.cuda.Device().synchronize()
    assert all((bits(first) == bits(out)).all() for out in outputs)
