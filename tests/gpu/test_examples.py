"""Every example and storage order on a GPU: right against cuBLAS, and the bits of the CPU run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gemmgen import reference
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.sim.memory import Matrix
from gemmgen.source import Source
from gemmgen.verify import gpu as layer
from gemmgen.verify.outcome import Subject

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.sched"))
ORDERED = ("naive", "tiled", "register_blocked", "vectorized")
ORDERS = {
    "NN": "A[m, k] * B[k, n]",
    "NT": "A[m, k] * B[n, k]",
    "TN": "A[k, m] * B[k, n]",
    "TT": "A[k, m] * B[n, k]",
}
SHAPES = (
    (1, 1, 1),
    (2, 3, 5),
    (32, 33, 30),
    (35, 35, 35),
    (127, 131, 257),
    (128, 128, 128),
    (130, 260, 40),
    (130, 260, 0),
)
LARGE = ((1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096))
SCALES = [(alpha, beta) for alpha in (0.0, 1.0, -1.0, 0.7) for beta in (0.0, 1.0, -1.0, 0.7)]


def emitted(name: str, order: str = "NN") -> Emitted:
    text = (EXAMPLES / f"{name}.sched").read_text()
    turned = text.replace(ORDERS["NN"], ORDERS[order])
    assert (turned != text) == (order != "NN")
    return compile_source(Source(turned, name))


BY_BITS = [name for name in NAMES if name != "tensor_core"]
"""Tensor cores sum in an order of their own."""
EVERY = [(name, "NN") for name in NAMES] + [
    (name, order) for name in ORDERED for order in ORDERS if order != "NN"
]


@pytest.mark.parametrize(("name", "order"), EVERY)
def test_is_right_against_cublas_and_exact_integers(name: str, order: str) -> None:
    outcome = layer.check(Subject(emitted(name, order), SHAPES))
    assert outcome.status == "passed", outcome.detail or outcome.reason


@pytest.mark.parametrize("name", NAMES)
def test_is_right_at_large_sizes(name: str) -> None:
    from gemmgen.gpu.launch import Kernel
    from gemmgen.gpu.verify import Case, verify

    kernel = Kernel.of(emitted(name))
    cases = [Case((("M", m), ("N", n), ("K", k)), "normal", 0.7, 0.0) for m, n, k in LARGE]
    given = layer.reference_of(emitted(name))
    for outcome in verify(kernel, cases, reference=given, exact=False):
        assert outcome.status == "passed", outcome


@pytest.mark.parametrize(("name", "order"), [pair for pair in EVERY if pair[0] in BY_BITS])
def test_gives_the_bits_of_the_cpu_run(name: str, order: str) -> None:
    import cupy as cp  # pyright: ignore[reportMissingImports]

    from gemmgen.gpu.launch import Kernel
    from gemmgen.sim.run import compile_kernel

    kernel = emitted(name, order)
    on_gpu, on_cpu = Kernel.of(kernel), compile_kernel(kernel.text, kernel.interface)
    names = {p.name for p in kernel.interface.params}
    for m, n, k in SHAPES:
        made = reference.normal(m, n, k, seed=m + n)
        for alpha, beta in SCALES if (m, n) == (35, 35) else [(0.7, -1.0), (1.0, 0.0)]:
            a = made.a.T if order[0] == "T" else made.a
            b = made.b.T if order[1] == "T" else made.b
            bias = np.linspace(-3, 3, n, dtype=np.float32)
            placed = {
                key: Matrix.holding(np.ascontiguousarray(x), -(-x.shape[1] // 4) * 4 + 4)
                for key, x in (("A", a), ("B", b), ("C", made.c))
            }
            gpu: dict[str, object] = {}
            for key, matrix in placed.items():
                rows, columns = matrix.view.shape
                whole = matrix.memory[matrix.start :][: rows * matrix.pitch]
                gpu[key] = cp.asarray(whole.reshape(rows, matrix.pitch))[:, :columns]
            scalars = {"alpha": alpha, "beta": beta}
            gpu |= {key: v for key, v in scalars.items() if key in names}
            gpu |= {"bias": cp.asarray(bias)} if "bias" in names else {}
            result = cp.asnumpy(on_gpu(**gpu))
            values: dict[str, object] = {"M": m, "N": n, "K": k, **scalars, "bias": bias}
            for key, matrix in placed.items():
                values |= {key: matrix.view, f"ld{key.lower()}": matrix.pitch}
            on_cpu.run({p.name: values[p.name] for p in kernel.interface.params})
            want = placed["C"].view
            assert np.array_equal(result.view(np.uint32), want.copy().view(np.uint32)), (m, n, k)
