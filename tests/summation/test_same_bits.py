"""``require same_bits``: what is refused, and schedules that are chosen for any number of rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from cli.running import gemmgen as command

import gemmgen
from gemmgen.base.errors import CallError, ScheduleError, UsageError
from gemmgen.base.source import Source
from gemmgen.calling.arguments import View
from gemmgen.explore.autotune.first_candidates import seeds
from gemmgen.explore.autotune.gpu_tuning import requests_of
from gemmgen.explore.autotune.judged_candidates import judge
from gemmgen.explore.autotune.keeping import StoreKeeper
from gemmgen.explore.results.measured_result import MachineInfo
from gemmgen.explore.results.results_store import Results
from gemmgen.explore.results.shipped_table import shipped
from gemmgen.explore.suggest import suggest
from gemmgen.explore.tune.legal_points import census
from gemmgen.explore.tune.space import SearchSpace
from gemmgen.functions.direct import DirectCall, planned, viewed
from gemmgen.gpu.gpus import GPUS
from gemmgen.language import parse_schedule
from gemmgen.numerics.formats import NAMES
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.schedule.model import SameBits
from gemmgen.summation import SummationOrder, summation_order
from gemmgen.torch.choosing import OperatorCall, choose
from gemmgen.torch.gradient import product
from gemmgen.torch.schema import Signature
from summation.schedules import F32, order_of
from summation.test_bits import padded

GEMM = "C[m, n] = A[m, k] * B[n, k]"
ROWS = (1, 7, 64, 300, 8192)
H200 = MachineInfo("NVIDIA H200", "sm_90", "580", "13.2")


def order(emitted: Emitted) -> SummationOrder:
    return summation_order(emitted.program, emitted.lowered.kernels[0])


def orders(found: Iterable[Emitted]) -> set[SummationOrder]:
    return set(map(order, found))


# The statement.


def test_a_schedule_whose_order_follows_from_k_alone_is_accepted() -> None:
    text = f"{F32}require same_bits over m n\ntile m=16 n=16 k=8\ncache_shared A B\nsplit_k parts=3"
    assert not order_of(text).varies_with("m")


def test_a_refusal_is_located_and_ends_the_command_with_2(tmp_path: Path) -> None:
    path = tmp_path / "atomic.sched"
    path.write_text(
        f"{F32}require same_bits over m\ntile m=16 n=16 k=8\ncache_shared A B\n"
        "split_k parts=3 reduce=atomic\n",
        encoding="utf-8",
    )
    result = command("check", path)
    assert result.exit_code == 2 and "Traceback" not in result.stderr
    assert f"{path}:2:1: error: require same_bits: the bits of an element of C" in result.stderr
    assert "3 slices of K are added as blocks arrive" in result.stderr
    assert "hint: split_k parts=3, whose slices are added in their order" in result.stderr


def test_two_slices_may_be_added_as_blocks_arrive() -> None:
    compile_source(
        Source(
            f"{F32}require same_bits over m\ntile m=16 n=16 k=8\ncache_shared A B\n"
            "split_k parts=2 reduce=atomic\n"
        )
    )


def test_help_describes_it() -> None:
    said = command("help", "require").stdout
    assert "require same_bits over m" in said and "batch invariance" in said


def test_the_fuzzer_writes_it() -> None:
    """And what it writes compiles, or is refused like any other statement."""
    from gemmgen.fuzz.dice import Dice
    from gemmgen.fuzz.heads import DrawnHead

    plan = dict.fromkeys(("epilogue", "reads", "batch", "assume", "target"), "none")
    plan |= {"names": "usual", "types": "f32", "order A": "mk", "order B": "kn", "order C": "mn"}
    found = set[str]()
    for seed in range(400):
        found.update(DrawnHead(Dice(seed), plan).optional())
    written = {line for line in found if "same_bits" in line}
    assert written == {"require same_bits over m", "require same_bits over m n"}
    for line in written:
        compile_source(Source(f"{F32}{line}\n"))


# Schedules that are suggested.

REQUESTS = {
    "f32": ("f32", "H200", (96, 200), "fma"),
    "bf16": ("bf16", "H200", (4096, 4096), "wgmma k16"),
    "bf16, rows that TMA does not take": ("bf16", "H200", (100, 1001), "mma.sync m16n8k16"),
    "f32 from bf16": ("f32", "H200", (4096, 4096), "wgmma k16"),
    "e4m3": ("e4m3", "H200", (512, 1024), "wgmma k32"),
    "i8": ("i8", "H200", (512, 1024), "integers"),
    "f64": ("f64", "H200", (96, 200), "mma.sync m16n8k16"),
    "bf16 on Ampere": ("bf16", "A100", (1, 512), "mma.sync m16n8k16"),
}


def suggested(name: str, rows: int, same_bits: str | None = "m", gemm: str = GEMM) -> Emitted:
    dtype, gpu, (n, k), _ = REQUESTS[name]
    fast, shape = name == "f32 from bf16", (rows, n, k)
    found = suggest(gemm, shape, dtype=dtype, gpu=gpu, fast=fast, same_bits=same_bits)
    return found.emitted


@pytest.mark.by_default("bf16", "f64")
@pytest.mark.parametrize("name", REQUESTS)
def test_all_numbers_of_rows_get_one_order(name: str) -> None:
    chosen = [suggested(name, rows) for rows in ROWS]
    (found,) = orders(chosen)
    assert found.instruction == REQUESTS[name][3]
    assert not found.varies_with("m")
    assert all(emitted.schedule.same_bits == SameBits(("m",)) for emitted in chosen)
    assert len({emitted.text for emitted in chosen}) > 1, "one kernel for all says nothing"


def test_without_the_line_they_get_several() -> None:
    assert len(orders(suggested("f64", rows, None) for rows in ROWS)) > 1


STORED = {
    "C[m, n] = A[k, m] * B[k, n]": "mma.sync m16n8k16",  # rows of A end anywhere
    "C[n, m] = A[m, k] * B[n, k]": "mma.sync m16n8k16",
    "C[m, n] = A[m, k] * B[k, n]": "wgmma k16",
}


@pytest.mark.by_default("C?n, m? = *")
@pytest.mark.parametrize("gemm", STORED)
def test_the_order_does_not_follow_from_how_rows_are_aligned(gemm: str) -> None:
    (found,) = orders(suggested("bf16", rows, gemm=gemm) for rows in ROWS)
    assert found.instruction == STORED[gemm]


@pytest.mark.proof
def test_columns_have_their_own_family() -> None:
    found = (
        suggest(GEMM, (64, columns, 512), same_bits="n", measured=False).emitted
        for columns in (1, 100, 4096)
    )
    assert len(orders(found)) == 1


@pytest.mark.proof
@pytest.mark.parametrize("name", ["f32", "bf16, rows that TMA does not take", "f64"])
def test_rows_have_equal_bits_on_the_cpu(name: str) -> None:
    """Of kernels that are chosen for few rows and for many, each run on few."""
    dtype, _, (n, k), _ = REQUESTS[name]
    kind = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}[dtype]
    dice = np.random.default_rng(7)
    b, a = (dice.standard_normal((size, k)).astype(kind) for size in (n, 64))
    kernels = {1: suggested(name, 1), 7: suggested(name, 7), 64: suggested(name, 8192)}
    assert len({kernel.text for kernel in kernels.values()}) > 1
    results = {rows: run(kernel, a[:rows], b) for rows, kernel in kernels.items()}
    for rows, result in results.items():
        assert result.tobytes() == results[64][:rows].tobytes(), f"{rows} rows"


def run(emitted: Emitted, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The product by the CPU's run; what its schedule assumes of extents is left out."""
    kernel = gemmgen.compile(replace(emitted.schedule, assumes=()), device="cpu")
    return np.ascontiguousarray(kernel(A=padded(a), B=padded(b)))


def test_a_mistake_in_the_letters_is_located() -> None:
    result = command("suggest", "--shape", "64", "--same-bits", "k")
    assert result.exit_code == 2 and "k is summed over" in result.stderr
    with pytest.raises(ScheduleError, match="not a letter of the output"):
        suggest(GEMM, 64, same_bits="q")
    with pytest.raises(UsageError, match="one line"):
        suggest(GEMM, 64, same_bits="m\npersistent")


def test_why_a_result_is_not_chosen_is_said() -> None:
    shape = ("--shape", "1x4096x4096", "--dtype", "bf16", "--gemm", GEMM)
    said = command("cache", "explain", *shape, "--same-bits", "m").stdout
    assert "require         same_bits over m" in said


# Searches.


def candidates(rows: int) -> list[str]:
    """The first candidates of ``gemmgen tune --gemm``."""
    shapes, gpu = [(rows, 4096, 4096)], GPUS["H200"]
    (wanted,) = requests_of(GEMM, shapes, "bf16", None, None, gpu, fast=False, same_bits="m")
    stored = StoreKeeper(Results(None, shipped()), H200).stored(wanted)
    found = seeds(wanted, stored, lambda some: tuple(judge(each, wanted) for each in some))
    return [seed.text for seed in found]


@pytest.mark.proof
def test_candidates_of_a_search_have_one_order() -> None:
    texts = [*candidates(8), *candidates(512)]
    assert len(texts) > 10
    assert all("require         same_bits over m" in text for text in texts)
    assert len(orders(compile_source(Source(text)) for text in texts)) == 1


def test_a_search_space_has_the_order_of_its_first_point() -> None:
    text = (
        f"{F32}require same_bits over m\ntile m={{16, 32}} n=16 k=8\ncache_shared A B\n"
        "split_k parts={1, 2}\n"
    )
    found = census(SearchSpace(Source(text)), [(64, 64, 64)])
    assert [dict(point.settings)["split_k.parts"] for point in found.legal] == [1, 1]
    assert [reason for reason in found.refused if "another one: slices" in reason]
    free = census(SearchSpace(Source(text.replace("require same_bits over m\n", ""))), [])
    assert len(free.legal) == 4


# Operators and functions.


def chosen(text: str, own: bool, rows: int, pitch: int = 512) -> Emitted:
    """The kernel of an operator on an H200 for A (rows, 500), in memory with this ``pitch``."""
    schedule = parse_schedule(Source(text))
    extents = {"m": rows, "n": 256, "k": 500}
    views: dict[str, View] = {}
    for x in Signature.of(schedule).tensors:
        shape = tuple(extents[letter] for letter in x.letters)
        views[x.name] = View(0, shape, (pitch, 1), NAMES[x.dtype])
    letters = {x.name: x.letters for x in Signature.of(schedule).tensors}
    return choose(schedule, own, OperatorCall(views, letters, extents, GPUS["H200"])).emitted


BF16 = f"gemm {GEMM}\ndtype A=bf16 B=bf16 C=bf16\nrequire same_bits over m\n"
GROUPS = (
    "target sm_90a\ntile m=64 n=64 k=64\ncache_shared A B\nwarp_tile m=64 n=64\n"
    "tensor_core via=wgmma\nswizzle A B\ndouble_buffer A B stages=3\nasync_copy A B via=tma\n"
)


@pytest.mark.proof
@pytest.mark.parametrize("pitch", [512, 501])
def test_an_operator_without_directives_has_one_order(pitch: int) -> None:
    (found,) = orders(chosen(BF16, False, rows, pitch) for rows in (1, 7, 300))
    assert found.instruction == ("wgmma k16" if pitch == 512 else "mma.sync m16n8k16")


def test_an_operator_with_directives_has_their_order_or_refuses() -> None:
    assert order(chosen(BF16 + GROUPS, True, 7)).instruction == "wgmma k16"
    with pytest.raises(CallError, match="no kernel with the summation order that `require same_"):
        chosen(BF16 + GROUPS, True, 7, pitch=501)
    plain = chosen((BF16 + GROUPS).replace("require same_bits over m\n", ""), True, 7, pitch=501)
    assert order(plain).instruction == "fma"


def test_the_gradient_of_rows_keeps_the_line() -> None:
    schedule = parse_schedule(Source(BF16))
    problem = Signature.of(schedule).problem
    assert product(schedule, problem, "a").schedule.same_bits == SameBits(("m",))
    assert product(schedule, problem, "b").schedule.same_bits is None


def kernel_of(a: npt.NDArray[Any], weight: npt.NDArray[Any], same_bits: str | None) -> Emitted:
    """What ``gemmgen.linear`` would run on an H200."""
    call = DirectCall.of(a, weight, None, (), None, False, same_bits, True)
    return planned(call, viewed(call, call.kind)).choice(GPUS["H200"]).emitted


@pytest.mark.proof
@pytest.mark.parametrize("kind", [np.float32, ml_dtypes.bfloat16])
def test_calls_of_a_layer_have_one_order(kind: type) -> None:
    weight = np.zeros((256, 512), kind)
    layers = [np.zeros((rows, 512), kind) for rows in (1, 7, 300)]
    assert len(orders(kernel_of(x, weight, "m") for x in layers)) == 1
    assert len(orders(kernel_of(x, weight, None) for x in layers)) > 1


@pytest.mark.proof
def test_matmul_takes_letters() -> None:
    a, b = (np.random.default_rng(3).standard_normal((5, 5)).astype(np.float32) for _ in "ab")
    whole = gemmgen.matmul(a, b, same_bits="m n")
    assert gemmgen.matmul(a[:2], b, same_bits="m").tobytes() == whole[:2].tobytes()
    assert "require" in gemmgen.explain_matmul(a, b, same_bits="m", gpu="H200")
    for wrong in ("k", "", "mm", 3):
        with pytest.raises(CallError, match="same_bits="):
            gemmgen.matmul(a, b, same_bits=wrong)
