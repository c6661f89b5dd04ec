"""Split f32 (``decompose``) is as accurate as its header says, and no less accurate than f32.

Its sums are modelled with the truncation of tensor cores, on data chosen to be bad for it, and are
compared with the bound and with the sums of a plain f32 kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gemmgen.analyze.explain import explain
from gemmgen.analyze.plain_text import plain
from gemmgen.analyze.tables import report
from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.gpu.gpus import GPUS
from gemmgen.language import parse_schedule
from gemmgen.numerics.formats import Real
from gemmgen.numerics.truncation import GENERATIONS, Numbers, on_tensor_cores
from gemmgen.passes import tensor_core
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.sums import Summation

ROOT = Path(__file__).parents[2]
WORSE = 1.5
"""How many times the error of plain f32 that of split f32 may be, for long sums: one interval alone
may lose more than FMAs do."""

DATA: dict[str, Callable[[np.random.Generator, tuple[int, int]], Numbers]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.random(shape),
    "lognormal": lambda rng, shape: np.exp(4 * rng.standard_normal(shape)),
    "exponents": lambda rng, shape: (
        rng.standard_normal(shape) * np.exp2(rng.integers(-40, 41, shape))
    ),
}
"""Of one sign and of both, and of exponents over 2^80."""


def split_schedules() -> dict[str, Source]:
    """Every schedule of the repository that splits f32, by name."""
    found: dict[str, Source] = {}
    for path in sorted((*ROOT.glob("examples/**/*.sched"), *ROOT.glob("tests/**/*.sched"))):
        text = path.read_text(encoding="utf-8")
        if "decompose" in text:
            found[path.relative_to(ROOT).with_suffix("").as_posix()] = Source(text, path.name)
    return found


SPLIT = split_schedules()


def drawn(data: str, shape: tuple[int, int]) -> tuple[Real, Real]:
    rng = np.random.default_rng(shape[1])
    a, b = (DATA[data](rng, shape).astype(np.float32) for _ in range(2))
    return a, b


@cache
def of_data(data: str, depth: int) -> tuple[Real, Real, Numbers, Numbers]:
    """The rows of A and of B, their exact sums, and the sums of |A * B|."""
    a, b = drawn(data, (max(16, 2**18 // depth), depth))
    products = a.astype(np.float64) * b
    return a, b, products.sum(1), np.abs(products).sum(1)


@cache
def plain_error(data: str, depth: int) -> float:
    """The greatest error of plain f32, as a share."""
    a, b, exact, size = of_data(data, depth)
    return float((np.abs(plain_sums(a, b) - exact) / size).max())


@cache
def split_sums(summation: Summation, data: str, depth: int, generation: str) -> Numbers:
    """A kernel's sums of each row of A and of B, by the model of tensor cores: many schedules add
    in the same order, which is then computed once."""
    a, b, _, _ = of_data(data, depth)
    rows = len(a)
    assert summation.split is not None
    left, right = summation.split.expanded(a[:, None, :], b[:, :, None])
    addends = left[:, 0, :].astype(np.float64) * right[:, :, 0]
    interval = (summation.terms or depth) * summation.split.products
    missing = -addends.shape[1] % interval
    addends = np.pad(addends, ((0, 0), (0, missing))).reshape(-1, interval)
    partial = on_tensor_cores(addends, *GENERATIONS[generation]).reshape(rows, -1)
    total = plain_sums(partial.astype(np.float32), np.ones_like(partial, np.float32))
    whole = total.astype(np.float32)[:, None, None]
    return summation.split.unscaled(whole, a[:, None, :], b[:, :, None])[:, 0, 0].astype(np.float64)


def plain_sums(a: Real, b: Real) -> Numbers:
    """The sums of an f32 kernel: FMAs in the order of k."""
    total = np.zeros(len(a), np.float32)
    for k in range(a.shape[1]):
        total = (a[:, k].astype(np.float64) * b[:, k] + total).astype(np.float32)
    return total.astype(np.float64)


def is_scaled(emitted: Emitted) -> bool:
    """Whether it splits into terms of scaled rows, which are less exact than f32 by design."""
    return any(split.scaled for split in emitted.program.splits)


def errors(emitted: Emitted, data: str, depth: int, generation: str) -> tuple[float, float, float]:
    """The greatest error of split f32 and of plain f32, and the bound of the header, as shares of
    the sum of |A * B|."""
    _, _, exact, size = of_data(data, depth)
    sums = split_sums(Summation.of(emitted.program), data, depth, generation)
    split = np.abs(sums - exact)
    if is_scaled(emitted):
        a, b, _, _ = of_data(data, depth)
        split = np.maximum(0.0, split - depth * 2.0**-38 * np.abs(a).max(1) * np.abs(b).max(1))
    split = split / size
    bound = emitted.interface.arithmetic.split_share(depth)
    return float(split.max()), plain_error(data, depth), bound


@pytest.mark.by_default(
    "*hopper/split_f32-4096-exponents-sm_90*", "*mma/split_f32-4096-normal-sm_80*"
)
@pytest.mark.in_proof(share=4)
@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("depth", (50, 4096, 65536))
@pytest.mark.parametrize("name", SPLIT)
def test_split_f32_is_f32(name: str, depth: int, data: str, generation: str) -> None:
    emitted = compile_source(SPLIT[name])
    split, plain, bound = errors(emitted, data, depth, generation)
    assert split <= bound
    assert depth < 4096 or is_scaled(emitted) or split <= WORSE * plain


@pytest.mark.by_default("exponents-4096")
@pytest.mark.parametrize("depth", (4096, 65536))
@pytest.mark.parametrize("data", [*DATA])
def test_without_promotion_it_is_not(
    data: str, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model and its data show what the refusal prevents."""
    source = SPLIT["examples/mma/split_f32"]
    text = source.text.replace(" promote=32", "")
    assert text != source.text
    with pytest.raises(ScheduleError, match="decompose without promote"):
        compile_source(Source(text))
    monkeypatch.setattr(tensor_core, "check_split", lambda *_: None)
    split, plain, _ = errors(compile_source(Source(text)), data, depth, "sm_90")
    assert split > WORSE * plain


def test_the_header_states_the_bound() -> None:
    for source in SPLIT.values():
        emitted = compile_source(source)
        arithmetic = emitted.interface.arithmetic
        (line,) = (x for x in emitted.text.splitlines() if "the error is at most" in x)
        extent = emitted.program.problem.extent(emitted.program.problem.k)
        formula = line.partition("at most ")[2].partition(" of the")[0]
        for depth in (1, 64, 4096, 65536):
            stated = eval(formula.replace("^", "**").replace(extent, str(depth)))
            assert stated == pytest.approx(arithmetic.split_share(depth))


@pytest.mark.proof
def test_explain_states_the_bound() -> None:
    source = SPLIT["examples/mma/split_f32"]
    explanation = explain(parse_schedule(source), (256, 256, 4096), GPUS["H100"])
    text = "".join(map(plain, report(explanation)))
    assert "an error is at most 705 * 2^-24 of the sum of |A * B|" in text
