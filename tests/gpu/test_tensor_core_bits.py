"""Random tensor-core kernels on a GPU, of every type and instruction: each bit of C is the table's.

Prints the outputs that were compared, by what multiplies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from gemmgen.gpu.launch import Kernel
from gemmgen.ir.target import offers
from gemmgen.ir.tensor_core_rules import RULES

from .tensor_core_calls import ALL, KINDS, Kind, compiled, drawn, wanted

cp = pytest.importorskip("cupy")

SCHEDULES = 4
"""Random schedules of each kind."""
LARGE = ((512, 768, 64), (72, 104, 4096), (129, 131, 1024))
"""Shapes of the first schedule: most outputs have a small K."""
SMALL = ((200, 264, 144), (65, 72, 2064), (33, 8, 4096), (130, 72, 48))
COUNTED = Counter[str]()


def shapes(number: int) -> Iterator[tuple[int, int, int]]:
    yield from LARGE if number < 2 else SMALL


@pytest.fixture(scope="module", autouse=True)
def report(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():  # type: ignore[union-attr]
        for name, count in COUNTED.items():
            print(f"\n{name:24} {count:12,} outputs with equal bits", end="")
        print(f"\n{'all':24} {sum(COUNTED.values()):12,}")


def target() -> str:
    return f"sm_{cp.cuda.Device().compute_capability}"


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name.replace(" ", "_"))
def test_bits_are_those_of_the_table(kind: Kind) -> None:
    own = target()
    if not RULES[own]["halves"].measured:
        pytest.skip(f"the rules of {own} were not measured")
    if kind.via == "wgmma" and not offers(f"{own}a", "m64nNk16"):
        pytest.skip(f"{own} has no wgmma")
    ran = 0
    for number in range(SCHEDULES):
        seed = 100 * ALL.index(kind) + number
        emitted = compiled(kind, seed)
        if emitted is None:
            continue
        ran += 1
        kernel, problem = Kernel.of(emitted), emitted.program.problem.written
        for at, (m, n, k) in enumerate(shapes(number)):
            what = KINDS[(number + at) % len(KINDS)]
            a = drawn(what, (m, k), problem.a.dtype, seed)
            b = drawn(
                "normal" if what in ("least", "special") else what,
                (n, k),
                problem.b.dtype,
                seed + 1,
            )
            c = cp.full((m, n), cp.nan, "float32")
            kernel(A=cp.asarray(a), B=cp.asarray(b), C=c)
            got, want = cp.asnumpy(c), wanted(emitted, a, b, own)
            same = (got.view(np.uint32) == want.view(np.uint32)) | (np.isnan(got) & np.isnan(want))
            wrong = np.argwhere(~same)
            text = emitted.schedule.source.text
            first = tuple(wrong[0]) if len(wrong) else (0, 0)
            assert not len(wrong), (
                f"{len(wrong)} of {same.size} outputs differ at {(m, n, k)}, {what}: C{first} is "
                f"{float(got[first]).hex()}, should be {float(want[first]).hex()}\n{text}"
            )
            COUNTED[kind.name] += same.size
    assert ran >= SCHEDULES // 2
