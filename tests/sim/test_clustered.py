"""Emitted kernels with a producer stay right, and as small, when their blocks share tiles."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
from clustered import RELEASED, clustered
from passes import schedules

from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.gpu import compiler
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.calls import Caller, landings_of, orders_of
from gemmgen.proof.cpu import first_complaint
from gemmgen.schedule import examples
from gemmgen.schedule.read import read_source

CLUSTERS = [(2, 1), (1, 2), (2, 2)]
SHAPES = ((35, 68, 44), (1, 1, 1), (100, 140, 20), (40, 70, 0))
"""With a tile beyond C in some clusters, along m, along n and along both."""
WHOLE_RELEASE = "if (threadIdx.x % 32 < CLUSTER) gg_arrive_at(empty[stage], threadIdx.x % 32);"


@cache
def ring() -> Emitted:
    return compile_source(Source(schedules.GOLDEN["warp_specialized"][1].text))


def complaint(kernel: Emitted, text: str) -> str | None:
    """What is first found in ``text``, which is launched by its launcher."""
    runs = [*product(landings_of(kernel), orders_of(kernel))]
    cases = [
        Case(shape, "normal", 0.7, -1.0, 4, order=order, landing=landing)
        for shape in SHAPES
        for landing, order in runs
    ]
    return first_complaint(Caller(kernel), text, cases, warn=False)


@pytest.mark.proof
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_is_right_in_all_orders_and_landings(cluster: tuple[int, int]) -> None:
    kernel = clustered(ring(), *cluster)
    assert complaint(kernel, kernel.text) is None


@pytest.mark.proof
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (WHOLE_RELEASE, RELEASED),
        ("CLUSTER * (CONSUMERS / 32)", "CONSUMERS / 32"),
        ("    gg_sync_cluster();\n}\n", "}\n"),
        ("STAGE_BYTES);", "STAGE_BYTES / 2);"),
        ("blocks = 1LL * CLUSTER *", "blocks = 1LL *"),
        ("{BN, BK / CLUSTER_M}", "{BN, BK}"),
    ],
)
def test_finds(old: str, new: str) -> None:
    kernel = clustered(ring(), 2, 1)
    assert kernel.text.count(old) == 1
    assert complaint(kernel, kernel.text.replace(old, new)) is not None


@pytest.mark.skipif(compiler.available() is not None, reason=str(compiler.available()))
@pytest.mark.proof
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_an_example_takes_no_more_registers(cluster: tuple[int, int]) -> None:
    example = compile_source(read_source(str(examples.path_of("hopper/warp_specialized"))))
    alone = compiler.compile_text(example.text, "sm_90a")
    together = compiler.compile_text(clustered(example, *cluster).text, "sm_90a")
    assert together.registers <= alone.registers and together.spills == 0
