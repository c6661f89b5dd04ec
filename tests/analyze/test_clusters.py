"""What blocks of a cluster share is counted once: read from L2, and written into each block."""

from __future__ import annotations

import pytest
from passes.schedules import GOLDEN

from gemmgen.analyze.access_counts import Counts
from gemmgen.analyze.analyzed_kernel import compile_kernel
from gemmgen.analyze.copied_boxes import copied_boxes
from gemmgen.analyze.explain import explain
from gemmgen.analyze.formulas import total
from gemmgen.analyze.resources import clusters_at_once
from gemmgen.analyze.tables import report
from gemmgen.base.source import Source
from gemmgen.gpu.gpus import GPUS
from gemmgen.language import parse_schedule

ALONE = GOLDEN["clusters"][1].text.replace("cluster m=2 n=2\n", "")
SHAPES = ((128, 256, 32), (35, 68, 20))


def counts(cluster: str, shape: tuple[int, ...]) -> dict[tuple[str, bool], Counts]:
    schedule = parse_schedule(Source(f"{ALONE}{cluster}\n"))
    launch = explain(schedule, shape, next(iter(GPUS.values()))).launch
    names = ("A", "B", "A_shared", "B_shared")
    return {(x, write): total(launch, (x,), write=write) for x in names for write in (False, True)}


@pytest.mark.proof
@pytest.mark.parametrize(
    ("cluster", "of_a", "of_b"), [("cluster m=2", 1, 2), ("cluster m=2 n=2", 2, 2)]
)
def test_a_shared_tile_is_read_once(cluster: str, of_a: int, of_b: int) -> None:
    alone, together = counts("", SHAPES[0]), counts(cluster, SHAPES[0])
    assert together["A", False].elements * of_a == alone["A", False].elements
    assert together["B", False].elements * of_b == alone["B", False].elements
    for name in ("A_shared", "B_shared"):
        for write in (False, True):
            assert together[name, write] == alone[name, write]


@pytest.mark.proof
def test_tiles_beyond_the_matrix_are_copied_too() -> None:
    """Two tiles along m and two along n are a cluster; one of 4 x 1 has none of its own but two."""
    assert (
        counts("cluster m=2 n=2", SHAPES[1])["A_shared", True]
        == counts("", SHAPES[1])["A_shared", True]
    )
    more, alone = (counts(x, SHAPES[1])["A_shared", True].elements for x in ("cluster m=4", ""))
    assert more == 2 * alone


def test_boxes_of_a_tile_are_those_of_all_blocks() -> None:
    kernel = compile_kernel(parse_schedule(Source(GOLDEN["clusters"][1].text)))
    for tile in copied_boxes(kernel):
        assert [(box.at, box.rows) for box in tile.boxes] == [((0, 0), 4), ((4, 0), 4)]
        assert [box.place for box in tile.boxes] == [0, 4 * tile.shape[1]]


@pytest.mark.parametrize(
    ("sms", "held", "blocks", "clusters"),
    [(132, 1, 2, 66), (132, 1, 4, 32), (132, 1, 8, 16), (132, 2, 4, 66), (132, 2, 8, 32)],
)
def test_a_cluster_lies_in_one_gpc(sms: int, held: int, blocks: int, clusters: int) -> None:
    """132 SMs are 6 GPCs of 16 and 2 of 18."""
    assert clusters_at_once(sms, held, blocks) == clusters


@pytest.mark.proof
def test_sms_without_room_for_a_cluster_have_no_blocks() -> None:
    """With one block on an SM: 32 clusters of 4 blocks, and 4 SMs without one."""
    large = ALONE.replace("m=32 n=64 k=8", "m=64 n=64 k=16").replace("stages=3", "stages=16")
    found = explain(
        parse_schedule(Source(f"{large}cluster m=2 n=2\n")), (4096, 4096, 64), GPUS["H200"]
    )
    assert found.waves.per_wave == found.waves.launched == found.waves.sms == 128
    words = " ".join(" ".join(row) for row in report(found)[0].rows)
    assert "32 at a time, estimated" in words and "128 of the 132 SMs" in words
