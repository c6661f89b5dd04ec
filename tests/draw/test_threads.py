"""Threads as drawn are those that compute and store the elements when the kernel runs."""

from __future__ import annotations

import re

import numpy as np
import pytest
from chosen import with_every_word

from gemmgen.draw import owners
from gemmgen.draw.marks import Drawing
from gemmgen.draw.scene import Scene
from gemmgen.draw.threads import draw as draw_threads
from gemmgen.fuzz.random_schedules import schedule_at
from gemmgen.interpreter.checked_memory import elements
from gemmgen.interpreter.interpret import run_kernel, run_pre_passes
from gemmgen.ir.edit import copy_outward
from gemmgen.ir.fragment_layout import FragmentLayout
from gemmgen.ir.lane_matrices import MATRIX
from gemmgen.ir.target import WARP
from gemmgen.numerics.formats import STORAGE, numbers
from gemmgen.numerics.operators import Ints
from gemmgen.schedule.examples import path_of
from tests.draw.reading import ALL, described, drawn, scene_of, scene_of_text
from tests.draw.running import ACC_BEGINS, arguments, of_tile, run_text

NO_THREAD = -1
OF_TENSOR_CORES = ("best/large_f16", "tensor_core")
_LEAVES = re.compile(r"^async_copy\b.* C\b.*via=tma", re.MULTILINE)
BY_ENGINE = [name for name in ALL if _LEAVES.search(path_of(name).read_text())]
BY_MATRICES = ["hopper/few_rows", *(n for n in BY_ENGINE if n.startswith("best/bf16_"))]
"""stmatrix: a lane writes what other lanes have; of the first one's, columns are rows of C."""


def warps(drawing: Drawing, shape: tuple[int, ...], problem: Scene) -> Ints:
    """The warp of each element as drawn; 0 where the block has one."""
    m, n = problem.written.m, problem.written.n
    found = np.full(shape, NO_THREAD)
    for (number, _), ranges in described(drawing, r"warp (\d+)"):
        here = np.ix_(ranges[m], ranges[n])
        assert (found[here] == NO_THREAD).all(), "drawn twice"
        found[here] = int(number)
    return found if (found >= 0).any() else np.zeros(shape, np.int64)


def threads(drawing: Drawing, shape: tuple[int, ...], scene: Scene) -> Ints:
    """The thread of each element of warp 0 as drawn, of lanes that share a sum the first."""
    found = np.full(shape, NO_THREAD)
    for (number, name), ranges in described(drawing, r"threads? (\d+)(?: to \d+)?"):
        if name == scene.problem.c.name:
            here = np.ix_(ranges[scene.written.m], ranges[scene.written.n])
            assert (found[here] == NO_THREAD).all(), "drawn twice"
            found[here] = int(number)
    return found


def check(drawing: Drawing, scene: Scene, stored: Ints) -> None:
    """``stored``: by which thread each element is stored."""
    lanes = scene.main.spread.lanes_per_sum
    assert (warps(drawing, stored.shape, scene) == stored // WARP).all()
    first = np.where(stored < WARP, stored // lanes * lanes, NO_THREAD)
    assert (threads(drawing, stored.shape, scene) == first).all()


def stored_by(scene: Scene) -> Ints:
    """The interpreter runs all threads on memory, and says who wrote which element."""
    given = arguments(scene, elements)
    flat = {k: v.reshape(-1) if isinstance(v, np.ndarray) else v for k, v in given.items()}
    flat |= run_pre_passes(scene.kernel.lowered, flat)
    c = scene.problem.c.name
    written = run_kernel(scene.kernel.lowered, flat)[c].reshape(given[c].shape)
    return of_tile(scene, (written - 1) % scene.kernel.lowered.interface.threads)


OF_THREADS = [x for x in ALL if x not in (*OF_TENSOR_CORES, *BY_ENGINE)]
USUAL = ("naive", "uncoalesced", "tiled", "register_blocked", "vectorized", "warp_tiled", "matvec")


@pytest.mark.by_default("warp_tiled", "matvec", "uncoalesced")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", dict.fromkeys((*USUAL, *with_every_word(OF_THREADS))))
def test_a_thread_stores_the_elements_drawn_as_its_own(name: str) -> None:
    """Of tensor cores, and of TMA, who stores a sum did not compute it."""
    scene = scene_of(name)
    assert scene.main.spread.holding != "opaque"
    check(drawn(name, "threads"), scene, stored_by(scene))


def computed_by(scene: Scene) -> Ints:
    """The accumulators of the emitted text begin with the number of their thread, and C has nothing
    else."""
    x, lanes = scene.kernel.lowered.interface.block[0], scene.main.spread.lanes_per_piece
    own = f"(threadIdx.y * {x} + threadIdx.x) / {lanes} * {lanes}"
    fill = r"\1; for (auto *x = reinterpret_cast<float *>(&acc); x < reinterpret_cast<float *>"
    fill += rf"(&acc + 1); ++x) *x = {own};"
    return run_text(scene, lambda text: ACC_BEGINS.sub(fill, text)) // scene.main.work.parts


@pytest.mark.by_default("uncoalesced")
@pytest.mark.parametrize(
    "name",
    ["uncoalesced", "warp_tiled", "fused", "tensor_core", "best/batched", "best/small_mk_nk"],
)
def test_a_thread_computes_the_elements_drawn_as_its_own(name: str) -> None:
    scene, drawing = scene_of(name), drawn(name, "threads")
    found = computed_by(scene)
    assert (warps(drawing, found.shape, scene) == found // WARP).all()
    if scene.main.spread.holding != "opaque":
        check(drawing, scene, found)


def had_by(scene: Scene) -> Ints:
    """Whose accumulators come to C by stmatrix: the lanes and the warps, one after the other, as
    their numbers are exact in bf16; C has nothing else."""

    def owners_by(number: str) -> Ints:
        sums = re.compile(
            r"\bacc\[reg_m\]\[reg_n \+ matrix_n \* VEC \+ e\]"
            r"|\bacc\[reg_n \+ matrix_n\]\[piece_m \* PM \+ e\]"
        )
        own = f"static_cast<float>(threadIdx.x {number})"
        bits = run_text(scene, lambda text: sums.sub(own, text)).astype(STORAGE["bf16"])
        return numbers(bits, "bf16").astype(np.int64)

    return owners_by(f"/ {WARP}") * WARP + owners_by(f"% {WARP}")


@pytest.mark.proof
@pytest.mark.parametrize("name", BY_MATRICES)
def test_lanes_have_the_sums_that_others_write_as_matrices(name: str) -> None:
    scene = scene_of(name)
    check(drawn(name, "threads"), scene, had_by(scene))


@pytest.mark.proof
@pytest.mark.parametrize("name", ["best/bf16_1024", "hopper/few_rows"])
def test_a_lane_that_is_taken_for_the_one_that_names_the_row_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = scene_of(name)
    monkeypatch.setattr(
        owners, "MATRIX", FragmentLayout(((8, "row", 1), (4, "column", 2)), MATRIX.register)
    )
    with pytest.raises(AssertionError):
        check(draw_threads(scene), scene, had_by(scene))


@pytest.mark.proof
def test_tma_stores_what_threads_have_that_would_store_it() -> None:
    texts = [drawn(name, "threads").text for name in ("hopper/tma_store", "hopper/persistent")]
    assert texts[0] == texts[1]


def test_lanes_that_share_a_sum_are_all_of_it() -> None:
    """Each sum of ``matvec`` is that of its lanes' numbers."""
    scene, drawing = scene_of("matvec"), drawn("matvec", "threads")
    first = warps(drawing, (8, 1), scene) * WARP
    assert (computed_by(scene) == WARP * first + WARP * (WARP - 1) // 2).all()


def test_a_lane_reads_what_is_drawn_along_k() -> None:
    """The text reads 16 bytes a lane, of neighbours in neighbouring lanes."""
    drawing = drawn("matvec", "threads")
    found = {
        k: int(n) for (n, t), r in described(drawing, r"thread (\d+)") if t == "A" for k in r["k"]
    }
    assert found == {k: k // 4 for k in range(128)}


@pytest.mark.by_default("tensor_core")
@pytest.mark.parametrize("name", OF_TENSOR_CORES)
def test_fragments_fill_what_a_warp_has(name: str) -> None:
    scene = scene_of(name)
    found = {
        int(n): r for (n, _), r in described(drawn(name, "threads"), r"fragment (\d+) of warp 0")
    }
    assert sorted(found) == list(range(len(found)))
    assert all(len(r["m"]) == len(r["n"]) == 16 for r in found.values())
    places = {(r["m"].start, r["n"].start) for r in found.values()}
    assert len(places) == len(found) == scene.main.spread.registers * WARP // 256


@pytest.mark.by_default("naive")
@pytest.mark.parametrize("name", ["warp_tiled", "naive"])
def test_a_wrong_owner_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = owners._Followed.owners

    def wrong(self: owners._Followed, values: object) -> owners.Owners:
        found = right(self, values)
        found.threads[0, 0], found.threads[-1, -1] = found.threads[-1, -1], found.threads[0, 0]
        return found

    scene = scene_of(name)
    stored = stored_by(scene)
    check(drawn(name, "threads"), scene, stored)
    monkeypatch.setattr(owners._Followed, "owners", wrong)
    with pytest.raises(AssertionError):
        check(drawn(name, "threads"), scene, stored)


@pytest.mark.proof
@pytest.mark.parametrize("index", range(12))
def test_random_schedules_are_drawn_as_they_run(index: int) -> None:
    scene = scene_of_text(schedule_at(11, index))
    drawing = draw_threads(scene)
    if scene.main.spread.holding == "opaque":
        found = {int(n) for (n, _), _ in described(drawing, r"fragment (\d+) of warp 0")}
        assert found == set(range(scene.main.spread.registers * WARP // 256))
        return
    outward = copy_outward(scene.main)
    if outward is not None and outward.mode == "tma":  # TMA stores C, no thread does
        check_partition(drawing, scene)
    else:
        check(drawing, scene, stored_by(scene))


def check_partition(drawing: Drawing, scene: Scene) -> None:
    """Each accumulator of the tile is one warp's, and each of warp 0's one lane's of its 32."""
    letters = scene.written.m, scene.written.n
    shape = tuple(map(scene.main.work.size, letters))
    by_warp = warps(drawing, shape, scene)
    assert (by_warp != NO_THREAD).all()
    by_thread = threads(drawing, shape, scene)
    assert ((by_thread != NO_THREAD) == (by_warp == 0)).all()
    counts = np.unique(by_thread[by_warp == 0], return_counts=True)[1]
    assert len(set(counts)) == 1 and len(counts) * scene.main.spread.lanes_per_sum == WARP


def test_all_warps_have_a_role_where_a_producer_is() -> None:
    """Two ping-pong consumers of four warps, and a producer warpgroup: 384 threads."""
    drawing = drawn("hopper/pingpong", "threads")
    roles = [cell.about for cell in drawing.cells if cell.about.endswith(("consumer", "producer"))]
    turns = [
        cell.about for cell in drawing.cells if re.fullmatch(r"warp \d+: consumer \d", cell.about)
    ]
    assert roles == [f"warp {number}: producer" for number in range(8, 12)]
    assert turns == [f"warp {number}: consumer {number // 4 + 1}" for number in range(8)]
    assert drawing.description.startswith(
        "A block of 384 threads, 12 warps: each of 2 ping-pong consumers of"
    )
