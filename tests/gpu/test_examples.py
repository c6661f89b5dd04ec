"""Every example and storage order on a GPU: right against cuBLAS, and the bits of the CPU run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.calling import launches
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import gpu as layer
from gemmgen.proof.outcome import Subject
from gemmgen.proof.shapes import fit

from .sides import Sides

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(
    str(path.relative_to(EXAMPLES).with_suffix(""))
    for folder in (EXAMPLES, *(EXAMPLES / part for part in ("types", "mma", "hopper", "steps")))
    for path in folder.glob("*.sched")
)
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
    transposed = text.replace(ORDERS["NN"], ORDERS[order])
    assert (transposed != text) == (order != "NN")
    return compile_source(Source(transposed, name))


BY_BITS = [name for name in NAMES if "tensor_core" not in (EXAMPLES / f"{name}.sched").read_text()]
"""Tensor cores sum in their own order."""
EVERY = [(name, "NN") for name in NAMES] + [
    (name, order) for name in ORDERED for order in ORDERS if order != "NN"
]


@pytest.mark.parametrize(("name", "order"), EVERY)
def test_is_right_against_cublas_and_exact_integers(name: str, order: str) -> None:
    kernel = emitted(name, order)
    shapes = tuple(dict.fromkeys(fit(kernel, shape) for shape in SHAPES))
    outcome = layer.check(Subject(kernel, shapes))
    assert outcome.status == "passed", outcome.detail or outcome.reason


@pytest.mark.parametrize("name", NAMES)
def test_is_right_at_large_sizes(name: str) -> None:
    from gemmgen.gpu.launch import Kernel
    from gemmgen.gpu.verify_cases import verify

    kernel = Kernel.of(emitted(name))
    cases = [launches.Case(shape, "normal", 0.7, 0.0) for shape in LARGE]
    given = layer.reference_of(emitted(name))
    for outcome in verify(kernel, cases, reference=given, exact=False):
        assert outcome.status == "passed", outcome


@pytest.mark.parametrize(("name", "order"), [pair for pair in EVERY if pair[0] in BY_BITS])
def test_gives_the_bits_of_the_cpu_run(name: str, order: str) -> None:
    kernel = emitted(name, order)
    sides = Sides(kernel)
    for shape in SHAPES:
        for alpha, beta in SCALES if shape == (35, 35, 35) else [(0.7, -1.0), (1.0, 0.0)]:
            sides.check(launches.Case(fit(kernel, shape), "normal", alpha, beta, pad=4), name)
    sides.close()
