"""A few blocks and a few trips of their loops count for all: the argument of ``count``, tested."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import numpy as np
import pytest

from gemmgen.analyze import block_classes, count, shared_strips
from gemmgen.analyze.access_counts import AccessCounter, Counts
from gemmgen.analyze.accesses import Site
from gemmgen.analyze.analyzed_kernel import compile_kernel
from gemmgen.analyze.count import count_every_block, count_launch
from gemmgen.analyze.explain import explain
from gemmgen.analyze.launch_arguments import Shape, arguments_of
from gemmgen.analyze.loop_periods import periodic_trips
from gemmgen.base.source import Source
from gemmgen.gpu.gpus import GPUS
from gemmgen.interpreter.simt import Lanes
from gemmgen.language import parse_schedule
from gemmgen.schedule.read import read_source

TILE = "tile m=32 n=64 k={k}\ncache_shared A[k, m] B[k, n]\nregister_block m=4 n=8\n"
ORDERS = [
    f"gemm {c} = {a} * {b}\n"
    for c in ("C[m, n]", "C[n, m]")
    for a in ("A[m, k]", "A[k, m]")
    for b in ("B[k, n]", "B[n, k]")
]
SCHEDULES = [
    *(order + TILE.format(k=8) + "double_buffer A B" for order in ORDERS),
    *ORDERS[:2],
    "bind x=m y=n",
    "tile m=24 n=16\nraster group=3",
    "tile m=16 n=12 k=6\ncache_shared A B\ndouble_buffer A B stages=3",
    TILE.format(k=4) + "vectorize A B C width=4\ndouble_buffer A B A.register B.register",
    TILE.format(k=4) + "double_buffer A B\nunroll tile_k=2",
    TILE.format(k=8) + "double_buffer A B\nsplit_k parts=5",
    TILE.format(k=4) + "split_k parts=12 groups=4",
    TILE.format(k=8) + "split_k parts=3 reduce=atomic\nraster group=2",
    "tile m=8 n=2 k=64\nsplit_k within=warp",
    "gemm C[m, n] = A[m, k] * B[n, k]\ntile m=8 n=4 k=128\nregister_block m=2 n=2\n"
    "vectorize A.global width=4\nsplit_k within=warp",
    TILE.format(k=8) + "assume lda == K\nassume N % 4 == 0\nvectorize A.global width=2",
    TILE.format(k=8) + "assume M == N\nassume lda == K",
    "assume N == K",
    "gemm C[b, m, n] = A[b, m, k] * B[k, n]\n" + TILE.format(k=8) + "raster group=2",
    "gemm C[b, c, m, n] = A[b, c, k, m] * B[b, n, k]\nbind x=m",
    "gemm C[m, b, n] = A[b, m, k] * B[b, k, n]\nassume ldc == N\n" + TILE.format(k=8),
    TILE.format(k=8) + "double_buffer A B\nasync_copy A B via=cp_async\nlaunch_bounds blocks=12",
]
SHAPES: tuple[Shape, ...] = ((64, 64, 320), (35, 132, 334), (299, 452, 22))
SQUARE: tuple[Shape, ...] = ((64, 64, 64), (70, 70, 70), (420, 420, 420))
"""In the last ones periods are left out."""
BATCHES = (3, 5)
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("text", SCHEDULES)
def test_classes_and_periods_count_like_all_blocks_and_trips(text: str) -> None:
    kernel = compile_kernel(parse_schedule(Source(text)))
    problem = kernel.program.problem
    shapes = SQUARE if "assume M ==" in text or "assume N ==" in text else SHAPES
    if (at := SCHEDULES.index(text)) < len(
        ORDERS
    ):  # orders of storage alternate between the shapes
        shapes = shapes[at % 3 : at % 3 + 1]
    for matrix in shapes:
        shape = (*matrix, *BATCHES[: len(problem.batch)])
        values = arguments_of(kernel.lowered.interface, problem, shape, beta=1.0)
        assert count_launch(kernel.lowered, values) == count_every_block(kernel.lowered, values)


@pytest.mark.proof
@pytest.mark.parametrize("batches", [(131, 1), (3, 200)])
def test_matrices_of_a_batch_are_left_out(batches: tuple[int, int]) -> None:
    text = "gemm C[b, c, m, n] = A[b, c, k, m] * B[b, n, k]\ntile m=16 n=8 k=8\ncache_shared A\n"
    kernel = compile_kernel(parse_schedule(Source(text)))
    shape = (33, 9, 11, *batches)
    values = arguments_of(kernel.lowered.interface, kernel.program.problem, shape, beta=1.0)
    assert count_launch(kernel.lowered, values) == count_every_block(kernel.lowered, values)


@pytest.mark.parametrize("text", [TILE.format(k=8), TILE.format(k=8) + "raster group=4"])
def test_counts_of_the_largest_launch_take_no_longer(text: str) -> None:
    """And are exact beyond 64 bits: the same blocks, this many times."""
    kernel = compile_kernel(parse_schedule(Source(text)))
    small, large = (320, 640, 64), (320 * 6000, 640 * 3000, 64 * 300000)
    found: list[Counts] = []
    start = process_time()
    for shape in (small, large):
        values = arguments_of(kernel.lowered.interface, kernel.program.problem, shape)
        launch = count_launch(kernel.lowered, values)
        found.append(sum((launch[s] for s in launch if s.space == "shared"), Counts()))
    assert process_time() - start < 5
    assert found[1].elements == found[0].elements * 6000 * 3000 * 300000 > 1 << 63


def test_a_long_sum_is_not_walked_trip_by_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = 0
    see = AccessCounter.see

    def counting(self: AccessCounter, *access: object) -> None:
        nonlocal seen
        seen += 1
        see(self, *access)  # type: ignore[arg-type]

    monkeypatch.setattr(AccessCounter, "see", counting)
    kernel = compile_kernel(parse_schedule(Source(TILE.format(k=8) + "double_buffer A B")))
    problem = kernel.program.problem
    values = arguments_of(kernel.lowered.interface, problem, (4096, 4096, 1 << 20))
    counts = count_launch(kernel.lowered, values)
    assert seen < 10_000
    reads = sum(c.elements for s, c in counts.items() if s.buffer == "A")
    assert reads == 4096 * 4096 * (1 << 20) // 64


def test_trips_that_do_not_repeat_are_all_made() -> None:
    """A loop whose accesses grow from trip to trip: nothing may be skipped."""
    lanes = Lanes(0, 1, 32, 1)
    counter = AccessCounter(lanes)
    trips = periodic_trips(counter, 32)
    site = Site("A", "global", False, 1, "", ())
    made: list[int] = []

    def run(i: int) -> None:
        made.append(i)
        counter.see(site, np.arange(32) * i, None)

    trips(run, 100, 32, 1)
    assert sorted(made) == list(range(100))


def test_trips_that_repeat_are_counted_without_being_made() -> None:
    counter = AccessCounter(Lanes(0, 1, 32, 1))
    trips = periodic_trips(counter, 32)
    site = Site("A", "global", False, 1, "", ())
    made: list[int] = []

    def run(i: int) -> None:
        made.append(i)
        counter.see(site, np.arange(32) + 8 * i, None)

    trips(run, 1003, 8, 1)
    assert len(made) < 60
    ((_, counts),) = counter.weighted(np.ones(1, np.int64))
    assert (counts.elements, counts.requests, counts.sectors) == (32 * 1003, 1003, 4 * 1003)
    lines = sum(-(-(8 * i % 32 + 32) // 32) for i in range(1003))
    assert counts.lines == lines


def test_blocks_are_walked_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = compile_kernel(parse_schedule(Source("tile m=8 n=32")))
    values = arguments_of(kernel.lowered.interface, kernel.program.problem, (70, 70, 9))
    whole = count_launch(kernel.lowered, values)
    monkeypatch.setattr(count, "MOST_LANES", 256)
    assert count_launch(kernel.lowered, values) == whole


def test_classes_do_not_depend_on_how_many_kinds_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = compile_kernel(parse_schedule(Source(TILE.format(k=8) + "split_k parts=3")))
    values = arguments_of(kernel.lowered.interface, kernel.program.problem, (70, 140, 90))
    whole = count_launch(kernel.lowered, values)
    monkeypatch.setattr(block_classes, "MOST_KINDS", 100)
    assert count_launch(kernel.lowered, values) == whole


def test_a_choice_by_data_reads_both_sides() -> None:
    choosing = "fuse_epilogue where(acc > 0, acc * row[m], where(beta > 0, residual[m, n], 1))"
    kernel = compile_kernel(parse_schedule(Source(TILE.format(k=8) + choosing)))
    interface, problem = kernel.lowered.interface, kernel.program.problem
    for beta in (0.0, 1.0):
        values = arguments_of(interface, problem, (64, 70, 8), beta=beta)
        counts = count_launch(kernel.lowered, values)
        read = {s.buffer: c.elements for s, c in counts.items() if not s.write}
        assert read["row"] == 64 * 70
        assert read.get("residual", 0) == beta * 64 * 70


def test_strips_of_some_waves_are_about_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = compile_kernel(parse_schedule(Source(TILE.format(k=8) + "raster group=4")))
    problem = kernel.program.problem
    values = arguments_of(kernel.lowered.interface, problem, (4096, 8192, 64))
    every = shared_strips.shared_strips(kernel.lowered, values, 132)
    monkeypatch.setattr(shared_strips, "MOST_BLOCKS", 20 * 132)
    some = shared_strips.shared_strips(kernel.lowered, values, 132)
    for name in ("a", "b", "row_by_row"):
        assert getattr(some, name) == pytest.approx(getattr(every, name), rel=0.05)


@pytest.mark.proof
@pytest.mark.parametrize("name", ["vectorized", "best/bf16_8192", "hopper/persistent"])
def test_the_largest_shape_is_explained_in_seconds(name: str) -> None:
    source = read_source(str(EXAMPLES / f"{name}.sched"))
    start = process_time()
    explain(parse_schedule(source), (2_000_000,) * 3, GPUS["H200"])
    assert process_time() - start < 8
