"""What was measured is chosen: by ``suggest``, and by an operator of PyTorch."""

from __future__ import annotations

import time
from dataclasses import replace
from math import exp, log
from pathlib import Path

import pytest

from gemmgen.base.source import Source
from gemmgen.calling.arguments import View, contiguous_strides
from gemmgen.explore.request import Request
from gemmgen.explore.results import freshness
from gemmgen.explore.results.measured_result import DENSE, MachineInfo, MeasuredResult
from gemmgen.explore.results.results_store import Results
from gemmgen.explore.suggest import suggest
from gemmgen.explore.suggest.choose import Suggestion
from gemmgen.explore.suggest.measured_plans import FAR, REACH
from gemmgen.explore.suggest.warpgroup_schedules import plan_of
from gemmgen.gpu.gpus import GPUS
from gemmgen.language import parse_schedule
from gemmgen.numerics.formats import NAMES
from gemmgen.torch.choosing import OperatorCall, choose

from .samples import H200

NT = "C[m, n] = A[m, k] * B[n, k]"
SHAPE = (1000, 2000, 520)
SCHEDULE = (
    f"gemm {NT}\ndtype A=f16 B=f16 C=f16\ntarget sm_90a\ntile m=128 n={{0}} k=64\n"
    "cache_shared A B C\nwarp_tile m=64 n={0}\ntensor_core via=wgmma\nvectorize C width=2\n"
    "swizzle A B C\ndouble_buffer A B stages=3\nasync_copy A B C via=tma\n"
    "warp_specialize producers=1 consumers=2\n"
)
"""Not what the model chooses: it gives a block as many stages as fit."""


def measured(n: int, us: float, shape: tuple[int, ...] = SHAPE, **more: object) -> MeasuredResult:
    found = MeasuredResult.of(SCHEDULE.format(n), shape, H200, us * 1e-6, vendor=9e-6)
    return replace(found, date="2026-11-20T01:02:03.000+00:00", **more)


def asked(shape: tuple[int, ...] = SHAPE, **options: object) -> Suggestion:
    return suggest(NT, shape, dtype="f16", **options)  # pyright: ignore[reportArgumentType]


def columns(found: Suggestion) -> int:
    (tile,) = (x for x in found.schedule.directives if x.name == "tile")
    return int(tile.arguments[1].value)


def test_the_fastest_measured_schedule_is_chosen_and_labelled() -> None:
    before = asked()
    assert "An estimate, not measured" in before.text and before.chosen.measured is None
    Results.open().record(measured(96, 12.0), measured(80, 11.0), measured(64, 13.0))
    found = asked()
    assert columns(found) == 80 and "An estimate" not in found.text
    assert found.reasons[0].startswith("Measured: C[1000, 2000] = ")
    said = "Measured: 189 TFLOP/s on NVIDIA H200, 2026-11-20, by tune: 11 us, 0.818 of the vendor"
    assert found.reasons[-1].startswith(said)
    assert asked(measured=False).text == before.text
    assert asked(gpu="A100").chosen.measured is None


def test_a_schedule_of_a_gpu_with_as_many_multiprocessors_is_the_choice() -> None:
    """An H100 has the H200's multiprocessors, and a slower memory: the time is an estimate."""
    Results.open().record(measured(80, 11.0), measured(96, 12.0))
    found = asked(gpu="H100")
    assert columns(found) == 80 and found.chosen.measured is not None
    assert not found.chosen.measured.exact and found.chosen.seconds > 11e-6
    said = " ".join(found.text.replace("\n#  ", "").split())
    assert "fastest schedule on another GPU, with as many multiprocessors: measured: 189" in said
    assert "An estimate, not measured" in said and "on NVIDIA H200" in said
    assert asked(gpu="H100-PCIe").chosen.measured is None


def test_the_gpus_own_result_comes_before_that_of_a_like_one() -> None:
    own = replace(measured(64, 20.0), machine=replace(H200, gpu="NVIDIA H100 80GB HBM3"))
    Results.open().record(measured(80, 11.0), own)
    assert columns(asked(gpu="H100")) == 64
    assert columns(asked()) == 80


def test_a_near_shape_of_a_like_gpu_is_an_option() -> None:
    Results.open().record(measured(80, 1.0, (1024, 2000, 520)))
    found = asked(gpu="H100")
    assert columns(found) == 80 and "schedule of a near shape, 1024x2000x520" in found.text


def test_shapes_types_and_epilogues_of_others_are_not_it() -> None:
    other = suggest(NT, SHAPE, dtype="bf16").text
    epilogue = asked(epilogue="relu(acc)").text
    Results.open().record(measured(80, 11.0))
    assert suggest(NT, SHAPE, dtype="bf16").text == other
    assert asked(epilogue="relu(acc)").text == epilogue
    assert columns(asked()) == 80 and asked((64, 64, 8192)).chosen.measured is None


def test_leading_dimensions() -> None:
    """A schedule that takes the tensors is taken, and it is said that others were measured."""
    Results.open().record(measured(80, 11.0))
    padded = asked(ld={"A": 528})
    assert columns(padded) == 80 and "with other leading dimensions" in padded.reasons[-1]
    assert "via=wgmma" not in asked(ld={"A": 521}).text
    Results.open().record(
        replace(m := measured(96, 12.0), problem=replace(m.problem, pitches=(528, 0, 0)))
    )
    assert columns(asked(ld={"A": 528})) == 96 and columns(asked()) == 80
    assert "other leading" not in asked(ld={"A": 528}).text


def test_a_stale_result_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    stale = replace(measured(80, 11.0), code="0" * 24)
    Results.open().record(stale)
    assert asked().chosen.measured is None
    Results.open().record(measured(96, 12.0))
    assert columns(asked()) == 96


def estimated_seconds(shape: tuple[int, int, int]) -> float:
    """The model's estimate of the schedule with 80 columns."""
    plan = plan_of(parse_schedule(Source(SCHEDULE.format(80))), Request.of(NT, shape, dtype="f16"))
    assert plan is not None
    return plan.seconds


def test_a_result_of_a_near_shape_is_an_option_with_its_ratio() -> None:
    near = (1000, 2000, 512)
    model = asked(measured=False).chosen.seconds * 1e6
    assert columns(asked(measured=False)) != 80
    Results.open().record(measured(80, model / 2, near))
    fast = asked()
    assert columns(fast) == 80
    assert fast.reasons[0].startswith("An estimate") and "Estimated: " in fast.reasons[-1]
    assert "near shape, 1000x2000x512 (measured: " in fast.reasons[-2]
    known, here = (estimated_seconds(shape) for shape in (near, SHAPE))
    share = (model / 2 * 1e-6 / known) ** exp(-log(SHAPE[2] / near[2]) / REACH)
    assert fast.chosen.seconds == pytest.approx(here * share, rel=1e-6)
    Results.open().record(
        replace(measured(80, model * 4, near), date="2026-11-21T00:00:00.000+00:00")
    )
    assert columns(asked()) == columns(asked(measured=False))


def test_a_ratio_counts_less_the_further_shapes_are_apart() -> None:
    there = (1000, 2000, 1400)
    known, here = (estimated_seconds(shape) for shape in (there, SHAPE))
    Results.open().record(measured(80, known / 9 * 1e6, there))
    found = asked().chosen
    power = exp(-log(1400 / 520) / REACH)
    assert found.measured is not None and 0.5 < power < 0.8
    assert found.seconds == pytest.approx(here * (1 / 9) ** power, rel=1e-6)


def test_far_shapes_say_nothing() -> None:
    model = asked(measured=False)
    Results.open().record(measured(80, 0.01, (1000, 2000, 5200)))
    assert asked().text == model.text and log(10) > FAR


@pytest.mark.proof
def test_a_schedule_outside_the_models_forms_is_chosen_too() -> None:
    text = (
        "tile m=64 n=64 k=16\ncache_shared A[k, m] B[k, n]\nregister_block m=4 n=4\n"
        "vectorize A.shared B.shared width=4\npad A B by=4\n"
    )
    shape = 333, 333, 333
    Results.open().record(MeasuredResult.of(text, shape, H200, 1e-6))
    found = suggest(shape=shape)
    assert (
        "register_block  m=4 n=4" in found.text and "tile: 6 x 6 tiles of 64 x 64." in found.reasons
    )
    near = suggest(shape=(333, 333, 350))
    assert near.chosen.measured is not None and not near.chosen.measured.exact


def test_less_precise_products_are_chosen_only_if_asked_for() -> None:
    text = (
        f"gemm {NT}\ntarget sm_90a\ntile m=128 n=128 k=32\ncache_shared A B\n"
        "warp_tile m=64 n=128\ndecompose into=bf16\ntensor_core via=wgmma promote=32\nswizzle A B\n"
        "double_buffer A B stages=2\nasync_copy A B via=tma\n"
        "warp_specialize producers=1 consumers=2\n"
    )
    Results.open().record(MeasuredResult.of(text, (2048, 2048, 2048), H200, 1e-6))
    assert suggest(NT, 2048).chosen.measured is None
    assert "decompose" in suggest(NT, 2048, fast=True).text
    assert suggest(NT, 2048, fast=True).chosen.measured is not None


def test_results_of_f32_leave_products_split_open() -> None:
    """They are faster where they are allowed, unless a time that was measured is less."""
    text = f"gemm {NT}\ntile m=64 n=64 k=16\ncache_shared A[k, m] B[k, n]\nregister_block m=4 n=4\n"
    Results.open().record(MeasuredResult.of(text, (2048, 2048, 2048), H200, 4e-4))
    assert suggest(NT, 2048).chosen.measured is not None
    assert "decompose" in suggest(NT, 2048, fast=True).text
    Results.open().record(MeasuredResult.of(text, (2048, 2048, 2048), H200, 1e-5))
    found = suggest(NT, 2048, fast=True)
    assert "decompose" not in found.text and "Measured: 1,720 TFLOP/s" in found.text


def test_suggest_goes_on_without_a_damaged_store(store: Path) -> None:
    before = asked().text
    store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    store.write_bytes(b"x" * 100)
    store.chmod(0o600)
    with pytest.warns(UserWarning, match="is damaged"):
        assert asked().text == before


def test_choosing_a_measured_schedule_takes_little() -> None:
    Results.open().record(measured(80, 11.0))
    asked()
    times: list[float] = []
    for _ in range(3):
        begin = time.process_time()
        asked()
        times.append(time.process_time() - begin)
    assert min(times) < 0.05, times


def operator(text: str, gpu: str = "H200", **extents: int) -> str:
    """The schedule that an operator of PyTorch runs on dense tensors."""
    schedule = parse_schedule(Source(text))
    gemm, types = schedule.gemm, dict(schedule.dtypes)
    views: dict[str, View] = {}
    for access in (gemm.a, gemm.b):
        shape = tuple(extents[x] for x in access.indices)
        dtype = NAMES[types[access.tensor]]
        views[access.tensor] = View(0, shape, contiguous_strides(shape), dtype)
    letters = {x.tensor: x.indices for x in (gemm.a, gemm.b)}
    call = OperatorCall(views, letters, extents, GPUS[gpu])
    return choose(schedule, False, call).emitted.text


def test_an_operator_runs_the_measured_schedule_in_its_own_names() -> None:
    text = "gemm Y[r, o] = X[r, i] * W[o, i]\ndtype X=f16 W=f16 Y=f16\n"
    Results.open().record(measured(80, 11.0))
    found = operator(text, r=1000, o=2000, i=520)
    assert "tile            r=128 o=80 i=64" in found
    assert "o=80" not in operator(text, r=1000, o=2000, i=2080)
    assert "o=80" not in operator(text, "A100", r=1000, o=2000, i=520)


def test_the_drivers_name_finds_results_of_a_gpu_that_is_not_in_the_table() -> None:
    machine = MachineInfo("NVIDIA Some New GPU", "sm_90")
    Results.open().record(replace(measured(80, 11.0), machine=machine))
    mine = replace(GPUS["H200"], name=machine.gpu)
    assert columns(asked(gpu=mine)) == 80 and asked().chosen.measured is None


def test_results_of_other_tensors_orders_are_others() -> None:
    found = measured(80, 11.0)
    assert found.problem.pitches == DENSE
    Results.open().record(found)
    swapped = suggest("C[m, n] = A[k, m] * B[n, k]", SHAPE, dtype="f16")
    assert swapped.chosen.measured is None and freshness.stale(found) == ""
