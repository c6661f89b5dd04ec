"""The shipped search spaces, and neighbors in them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.explore.autotune import default_spaces
from gemmgen.explore.autotune.default_spaces import default_space, space_of, space_text
from gemmgen.explore.autotune.edits import Place, changed, value_at
from gemmgen.explore.autotune.judged_candidates import judge
from gemmgen.explore.autotune.neighbors import neighbors
from gemmgen.explore.request import Request
from gemmgen.explore.suggest.choose import choose
from gemmgen.explore.tune.legal_points import Legal
from gemmgen.explore.tune.legal_points import judge as judge_point
from gemmgen.explore.tune.space import SearchSpace
from gemmgen.language import fmt_source, parse_schedule
from gemmgen.pipeline import compile_source

FOLDER = Path(default_spaces.__file__).parent / "spaces"
ROWS = "C[m, n] = A[m, k] * B[n, k]"
REQUESTS = {
    "wgmma": Request.of(ROWS, (2048, 2304, 768), dtype="bf16"),
    "wgmma, other names": Request.of(
        "side[r, o] = X[r, i] * W[o, i]",
        (2048, 2304, 768),
        dtype="f16",
        epilogue="relu(acc + bias[o])",
    ),
    "wgmma, FP8": Request.of(ROWS, (2048, 2304, 768), dtype="e4m3"),
    "wgmma, tf32": Request.of(ROWS, (2048, 2304, 768), dtype="tf32"),
    "wgmma, MN-major": Request.of("C[m, n] = A[k, m] * B[k, n]", (2048, 2304, 768), dtype="bf16"),
    "wgmma, C by threads": Request.of(ROWS, (2048, 2300, 768), dtype="bf16", ld={"C": 2301}),
    "wgmma, batches": Request.of(
        "C[b,m,n] = A[b,m,k] * B[b,n,k]", (512, 512, 64, 24), dtype="bf16"
    ),
    "wgmma, split K": Request.of(ROWS, (256, 256, 8192), dtype="bf16"),
    "mma": Request.of(ROWS, (2048, 2304, 768), dtype="bf16", gpu="A100"),
    "mma, no vectors": Request.of(ROWS, (2047, 2303, 767), dtype="bf16"),
    "mma, INT8": Request.of(ROWS, (2048, 2304, 768), dtype="i8", gpu="A100"),
    "CUDA cores": Request.of("C[m, n] = A[m, k] * B[k, n]", (512, 512, 512)),
    "CUDA cores, other names": Request.of("Y[j, i] = V[i, t] * U[t, j]", (512, 512, 512)),
    "lanes": Request.of(ROWS, (2, 4096, 4096)),
}


def each_request(test: Callable[[str], None]) -> Callable[[str], None]:
    some = pytest.mark.by_default("wgmma", "wgmma, other names", "wgmma, FP8", "mma", "lanes")
    return some(pytest.mark.parametrize("name", list(REQUESTS))(test))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.sched")), ids=lambda path: path.stem)
def test_a_shipped_space_is_a_space_file(path: Path) -> None:
    """Each is read by the package, formatted, and small enough for ``tune FILE``."""
    text = path.read_text()
    assert path.stem in default_spaces.NAMES and text.startswith("# ")
    assert fmt_source(Source(text)) == text
    space = SearchSpace(Source(text, path.name))
    assert 1_000 < space.size < 50_000
    assert len(default_space(path.stem).knobs) == len(space.sets)
    assert _some_legal(space, (2048, 2304, 768))


def _some_legal(space: SearchSpace, shape: tuple[int, ...]) -> bool:
    """Whether one of the first of random points is legal: about one in five is."""
    numbers = random.Random(0).sample(range(space.size), 60)
    return any(isinstance(judge_point(space, number, [shape]), Legal) for number in numbers)


@each_request
def test_the_space_shown_for_a_problem_can_be_passed(name: str) -> None:
    """It has the problem's own lines, and points that compile for its shape."""
    request = REQUESTS[name]
    suggested = choose(request, measured=False).schedule
    text = space_text(suggested)
    assert fmt_source(Source(text)) == text
    space = SearchSpace(Source(text))
    assert space.gemm == suggested.gemm
    kind = {"CUDA cores": "CUDA cores", "lanes": "CUDA cores, for few rows"}.get(
        name.partition(",")[0]
    )
    assert text.startswith(f"# {kind or 'Tensor cores by ' + name.partition(',')[0]}")
    if "," not in name:
        assert _some_legal(space, request.shape)


def test_a_shown_space_for_a_leading_dimension_keeps_the_layout() -> None:
    text = space_text(choose(REQUESTS["wgmma, C by threads"], measured=False).schedule)
    assert "async_copy      A B via=tma\n" in text and "vectorize" not in text


def test_a_let_avoids_the_names_of_the_problem() -> None:
    text = space_text(choose(REQUESTS["wgmma, other names"], measured=False).schedule)
    assert "let             side_ = {" in text and "n=side" not in text


@pytest.mark.by_default("wgmma", "lanes")
@each_request
def test_neighbors_are_near_and_some_are_legal(name: str) -> None:
    """Each differs from the schedule in one or two knobs, stages aside, and keeps the problem."""
    request = REQUESTS[name]
    schedule = choose(request, measured=False).schedule
    knobs = space_of(schedule).knobs_for(schedule)
    found = list(neighbors(schedule, request))
    assert 10 < len(found) < 300
    for (text, *_) in found:
        try:
            other = parse_schedule(Source(text))
        except ScheduleError:
            continue
        assert other.problem_alone == schedule.problem_alone
        differing = [
            knob
            for knob in knobs
            if not knob.is_stages
            and value_at(other, knob.places[0]) != value_at(schedule, knob.places[0])
        ]
        assert len(differing) <= 2, text
    few = found[:: max(1, len(found) // 12)]
    assert any(judge(each, request) for each in few)


@pytest.mark.proof
def test_a_neighbor_with_a_larger_tile_has_fewer_stages() -> None:
    request = REQUESTS["wgmma"]
    text = (
        "gemm C[m, n] = A[m, k] * B[n, k]\ndtype A=bf16 B=bf16 C=bf16\ntarget sm_90a\n"
        "tile m=128 n=128 k=64\ncache_shared A B\nwarp_tile m=64 n=128\ntensor_core via=wgmma\n"
        "swizzle A B\ndouble_buffer A B stages=6\nasync_copy A B via=tma\npersistent\n"
        "warp_specialize producers=1\n"
    )
    schedule = parse_schedule(Source(text))
    judged = [judge(each, request) for each in neighbors(schedule, request)]
    wide = next(x for x in judged if x and "tile            m=128 n=144 k=64" in x.text)
    assert "stages=6" in wide.text
    deep = next(x for x in judged if x and "tile            m=128 n=128 k=128" in x.text)
    assert "stages=3" in deep.text


def test_neighbors_keep_what_extents_are_multiples_of() -> None:
    """Accesses without guards: the assumptions follow the tile if it divides the extents."""
    request = REQUESTS["mma"]
    schedule = choose(request, measured=False).schedule
    assert any(assume.divisor for assume in schedule.assumes)
    extents = dict(zip("MNK", request.shape, strict=True))
    before = {assume.name: assume.divisor or 1 for assume in schedule.assumes}
    more = 0
    for text, *_ in neighbors(schedule, request):
        other = parse_schedule(Source(text))
        tile = {x.upper(): value_at(other, Place("tile", (), x)) for x in "mnk"}
        divides = all(extents[x] % int(tile[x] or 1) == 0 for x in "MNK")
        for assume in other.assumes:
            divisor = assume.divisor or 1
            assert extents[assume.name] % divisor == 0 and divisor % before[assume.name] == 0
            assert not divides or divisor % int(tile[assume.name] or 1) == 0
            more += divisor > before[assume.name]
    assert more


@each_request
def test_a_change_reads_back_and_changes_nothing_else(name: str) -> None:
    """For each knob of the space and each of its values."""
    schedule = choose(REQUESTS[name], measured=False).schedule
    for knob in space_of(schedule).knobs_for(schedule):
        for place in knob.places:
            for value in knob.values:
                other = changed(schedule, place, value)
                assert value_at(other, place) == value
                before = value_at(schedule, place)
                if before is not None:
                    back = changed(other, place, before)
                    assert all(
                        value_at(back, p) == value_at(schedule, p)
                        for k in space_of(schedule).knobs
                        for p in k.places
                    )


@pytest.mark.proof
def test_the_fused_suggestion_compiles_from_its_shown_space() -> None:
    """The first values of the sets with the epilogue of the request: the text is whole."""
    request = REQUESTS["wgmma, other names"]
    space = SearchSpace(Source(space_text(choose(request, measured=False).schedule)))
    numbers = random.Random(1).sample(range(space.size), 80)
    legal = [x for n in numbers if isinstance(x := judge_point(space, n, [request.shape]), Legal)]
    assert "bias[o]" in legal[0].text and compile_source(Source(legal[0].text)).text
