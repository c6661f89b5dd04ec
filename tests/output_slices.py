"""``python -m tests.output_slices``: random schedules whose C leaves shared memory by TMA, run on
the CPU.  Where each row of a slice starts depends on rows, types, swizzles, layouts, stages and
roles; all of them vary here."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from gemmgen.base.errors import CannotCheck, ScheduleError
from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import cpu
from gemmgen.proof.calls import Caller
from gemmgen.proof.shapes import fit, tile_of
from gemmgen.sim.failures import CompileFailure

MOST_SIDE = 512
"""Elements of C's tile along each side, at most; few of the larger ones run in a second."""
TYPES = {
    "fma": ("f32 f32 f32", "f64 f64 f64 f64", "bf16 bf16 bf16", "f16 f16 f32", "f32 f32 bf16"),
    "mma": ("bf16 bf16 bf16", "f16 f16 f32", "f64 f64 f64 f64", "e4m3 e5m2 bf16", "i8 i8 f32"),
    "wgmma": ("bf16 bf16 bf16", "f16 f16 f32", "e4m3 e4m3 f16", "bf16 bf16 f64"),
}
"""Types of A, B, C and, if they are four, of the accumulators."""


def drawn(dice: random.Random) -> str:
    """A schedule with C by TMA; many are refused."""
    atom = dice.choice(("fma", "fma", "fma", "mma", "wgmma"))
    types = dice.choice(TYPES[atom]).split()
    names = ("A", "B", "C", "acc")
    a, b = dice.choice(("m, k", "k, m")), dice.choice(("k, n", "n, k"))
    if atom == "wgmma" and types[0] != "bf16":
        a, b = "m, k", "n, k"
    c = dice.choice(("m, n", "m, n", "m, n", "n, m"))
    by_tma = atom == "wgmma" or dice.random() < 0.4
    inputs = " A B" if by_tma or atom == "mma" or dice.random() < 0.5 else ""
    lines = [
        f"gemm C[{c}] = A[{a}] * B[{b}]",
        "dtype " + " ".join(f"{x}={t}" for x, t in zip(names, types, strict=False)),
        "target sm_90a",
        f"cache_shared{inputs} C",
        f"async_copy{' A B' if by_tma else ''} C via=tma",
        *_shape(dice, atom),
    ]
    swizzled = (" A B" if by_tma and (atom == "wgmma" or dice.random() < 0.7) else "") + (
        " C" if dice.random() < 0.8 else ""
    )
    lines += [f"swizzle{swizzled}"] if swizzled else []
    lines += ["double_buffer A B stages=" + dice.choice("223")] if by_tma else []
    lines += ["double_buffer C stages=" + dice.choice("224")] if dice.random() < 0.4 else []
    lines += ["persistent"] if dice.random() < 0.4 else []
    if by_tma and dice.random() < 0.6:
        order = dice.choice(("cooperative", "pingpong"))
        lines += [f"warp_specialize producers=1 order={order}"]
        lines += ["persistent"] if order == "pingpong" else []
        lines += ["cluster m=2"] if dice.random() < 0.2 else []
    if dice.random() < 0.4:
        lines += [f"vectorize C width={dice.choice('24')}"]
    lines += [_epilogue(dice)] if dice.random() < 0.6 else []
    return "\n".join(dict.fromkeys(lines)) + "\n"


def _shape(dice: random.Random, atom: str) -> list[str]:
    """Tiles of the block, a warp and a thread: slices of few and of many rows."""

    def power(least: int, most: int) -> int:
        return 1 << dice.randint(least, most)

    if atom == "wgmma":
        m, n = 64 * dice.choice((1, 1, 2)), 8 * dice.randint(1, 32)
        k = 64 if dice.random() < 0.7 else 128
        return [f"tile m={m} n={n} k={k}", f"warp_tile m={m} n={n}", "tensor_core via=wgmma"]
    warps_m, warps_n = power(0, 2), power(0, 2)
    if atom == "mma":
        wm, wn = 16 * dice.randint(1, 4), 8 * dice.randint(1, 12)
        return [
            f"tile m={wm * warps_m} n={wn * warps_n} k={dice.choice((16, 32))}",
            f"warp_tile m={wm} n={wn}",
            "tensor_core via=mma",
        ]
    lanes_m = power(0, 5)
    lanes_n = 32 // lanes_m
    tm, tn = power(0, 4), power(0, 5)
    m, n = warps_m * lanes_m * tm, warps_n * lanes_n * tn
    interleave = f" interleave={power(0, 3)}" if dice.random() < 0.7 else ""
    lines = [
        f"tile m={m} n={n} k={dice.choice((8, 16))}",
        f"register_block m={tm} n={tn}{interleave}",
    ]
    if dice.random() < 0.8:
        lines += [f"warp_tile m={lanes_m * tm} n={lanes_n * tn}"]
    return lines


def _epilogue(dice: random.Random) -> str:
    return "fuse_epilogue " + dice.choice(
        ("acc", "relu(acc + bias[n])", "alpha * acc + beta * C[m, n]", "acc + C[m, n]")
    )


def accepted(seed: int) -> Iterator[tuple[str, Emitted]]:
    """Schedules that compile, without end, and their kernels."""
    dice = random.Random(seed)
    while True:
        text = drawn(dice)
        try:
            emitted = compile_source(Source(text))
        except ScheduleError:
            continue
        m, n, _, _ = tile_of(emitted.program)
        if max(m, n) <= MOST_SIDE:
            yield text, emitted


def complaint(emitted: Emitted) -> str | None:
    """What is wrong at one shape, whose last tiles are partial along each letter."""
    m, n, k, _ = tile_of(emitted.program)
    shape = fit(emitted, (m + 3, n + 5, 2 * k + 1))
    case = Case(shape, "integers", 1.0, 0.0, 1, "descending", "early")
    return cpu.first_complaint(Caller(emitted), emitted.text, (case,))


def kind_of(emitted: Emitted) -> str:
    """What the slice of C is like."""
    slice_ = emitted.program.main.buffer("C_shared")
    rows = "under 8 rows" if slice_.extent(slice_.letters[0]) < 8 else "8 rows or more"
    swizzle = (
        f"swizzled{' atom columns' if slice_.atom_width else ''}"
        if slice_.swizzle
        else "as it lies"
    )
    spare = ", spare rows" if slice_.spare else ""
    stages = f", {slice_.stages} stages" if slice_.stages > 1 else ""
    return f"{slice_.dtype}, {rows}, {swizzle}{stages}{spare}"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every kernel is right, 1 if one is not, 3 if this machine cannot run kernels."""
    parser = argparse.ArgumentParser(prog="python -m tests.output_slices", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="schedules to compile and run")
    parser.add_argument("--seed", type=int, default=0, help="which schedules")
    asked = parser.parse_args(arguments)
    kinds, wrong, begin = Counter[str](), 0, time.monotonic()
    for number, (text, emitted) in enumerate(accepted(asked.seed)):
        if number == asked.count:
            break
        kinds[kind_of(emitted)] += 1
        try:
            found = complaint(emitted)
        except CompileFailure as failure:
            found = str(failure)
        except CannotCheck as missing:
            print(missing, file=sys.stderr)
            return 3
        if found is not None:
            wrong += 1
            print(f"{text}{found}\n", flush=True)
    for kind, count in sorted(kinds.items()):
        print(f"{count:6} {kind}")
    print(f"{kinds.total()} schedules, {wrong} wrong, {time.monotonic() - begin:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
