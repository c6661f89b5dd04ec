"""Random tensor-core kernels, operands for them, and the accumulators that a rule states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np

from gemmgen.base.errors import ScheduleError
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.ir.dtypes import DType
from gemmgen.ir.tensor_core_rules import rule_of
from gemmgen.numerics.formats import F32, Stored, held, numbers, stored
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.sums import Summation

T = TypeVar("T")
GEMM = "gemm C[m, n] = A[m, k] * B[n, k]\n"
KINDS = ("normal", "wide", "least", "special")
LEAST: dict[DType, int] = {
    **{"f32": -126, "tf32": -126, "bf16": -126},
    **{"f16": -14, "e4m3": -6, "e5m2": -14},
}
"""The exponents of the least normal numbers."""


@record
class Kind:
    """What multiplies: the type line of a schedule, and how it gets its instruction."""

    name: str
    dtypes: str
    via: str
    tile_k: int
    more: str = ""


def _kinds() -> Iterator[Kind]:
    for dtype in ("f16", "bf16"):
        yield Kind(f"wmma {dtype}", f"A={dtype} B={dtype} C=f32", "wmma", 32)
    for via in ("mma", "wgmma"):
        for dtype in ("f16", "bf16"):
            yield Kind(f"{via} {dtype}", f"A={dtype} B={dtype} C=f32", via, 64)
        yield Kind(f"{via} tf32", "A=tf32 B=tf32 C=f32", via, 32)
        for a in ("e4m3", "e5m2"):
            for b in ("e4m3", "e5m2"):
                yield Kind(f"{via} {a} x {b}", f"A={a} B={b} C=f32", via, 128)
        yield Kind(f"{via} bf16x3", "", via, 64, "decompose into=bf16\n")


ALL = tuple(_kinds())


def schedule(kind: Kind, seed: int) -> str:
    """A schedule of this kind: tiles, promotion, exchanged operands and stages at random."""
    dice = np.random.default_rng(seed)

    def pick(*of: T) -> T:
        return of[int(dice.integers(len(of)))]

    k = kind.tile_k * pick(1, 1, 2) if kind.via == "mma" else kind.tile_k
    promote = pick("", "", f" promote={pick(1, 2, 4) * max(k, 128)}")
    if kind.more:
        promote = f" promote={max(64, k)}"
    head = GEMM + (f"dtype {kind.dtypes}\n" if kind.dtypes else "")
    if kind.via == "wgmma":
        m, n = pick(64, 128), pick(8, 16, 64, 128, 256)
        text = f"{head}target sm_90a\ntile m={m} n={n} k={k}\ncache_shared A B\n"
        text += f"warp_tile m={m} n={n}\n"
        text += f"tensor_core via=wgmma{promote}\n{kind.more}swizzle A B\n"
        return text + "double_buffer A B stages=3\nasync_copy A B via=tma\n"
    m, n = pick(16, 32, 64), pick(16, 32, 64)
    rows = pick("", " rows=n") if kind.via == "mma" else ""
    promote = promote if kind.via == "mma" else ""
    text = f"{head}tile m={m} n={n} k={k}\ntarget sm_90\ncache_shared A B\nwarp_tile m={m} n={n}\n"
    text += f"tensor_core via={kind.via}{rows}{promote}\n{kind.more}"
    return text + pick("", "double_buffer A B\n")


def compiled(kind: Kind, seed: int) -> Emitted | None:
    """The kernel of a random schedule; None if it is refused."""
    try:
        return compile_source(Source(schedule(kind, seed)))
    except ScheduleError:
        return None


def drawn(what: str, shape: tuple[int, int], dtype: DType, seed: int) -> Stored:
    """Elements: of unit size; of many sizes, zeros and subnormal numbers among them; of the least
    ones; of unit size with some infinities and NaNs."""
    dice = np.random.default_rng(seed)
    found, least = dice.standard_normal(shape), LEAST[dtype]
    if what == "wide":
        spread = min(30, -least + 3)
        found = np.ldexp(
            found, dice.integers(-spread, min(spread, 14 if least > -126 else 60), shape)
        )
        found[dice.random(shape) < 0.2] = 0
        most = {"e4m3": 448.0, "e5m2": 57344.0, "f16": 65504.0}.get(dtype)
        found = found if most is None else np.clip(found, -most, most)
    if what == "least":
        found = np.ldexp(found, least + dice.integers(-4, 2, shape))
    if what == "special":
        some = dice.random(shape) < 0.25 / max(1, shape[1])
        found[some] = dice.choice([np.inf, -np.inf, np.nan, 0.0], int(some.sum()))
    with np.errstate(over="ignore"):
        return stored(held(found.astype(np.float32), dtype), dtype)


def wanted(emitted: Emitted, a: Stored, b: Stored, target: str) -> F32:
    """The accumulators of A (M, K) times B (N, K) on ``target``."""
    problem = emitted.program.problem.written
    with np.errstate(all="ignore"):
        left = numbers(a, problem.a.dtype).astype(np.float32)
        right = numbers(b, problem.b.dtype).astype(np.float32)
    return np.asarray(Summation.of(emitted.program, target).sums(left, right.T), np.float32)


def as_on(emitted: Emitted, target: str) -> Emitted:
    """The same, whose models on the CPU add as tensor cores of ``target``."""
    core = Summation.of(emitted.program, target).core
    assert core is not None
    atom = emitted.program.main.spread.atom
    rule = rule_of(target, atom, core.a)
    interface = emitted.interface
    return replace(
        emitted,
        interface=replace(interface, arithmetic=replace(interface.arithmetic, rule=rule)),
    )
