"""``gemmgen suggest``: its schedules compile and are right, and its reasons are what they say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from math import ceil

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from gemmgen.base.errors import ScheduleError, UsageError
from gemmgen.base.source import Source
from gemmgen.cli import main
from gemmgen.explore.request import Request
from gemmgen.explore.suggest import suggest
from gemmgen.explore.suggest.acceptance import accepts
from gemmgen.explore.suggest.choose import Suggestion
from gemmgen.explore.suggest.forms import forms
from gemmgen.explore.suggest.schedules import Form, SettledForm
from gemmgen.explore.suggest.size_classes import size_class
from gemmgen.explore.suggest.sizes import residents
from gemmgen.language import fmt_source
from gemmgen.pipeline import Emitted, Step, compile_source
from gemmgen.proof import meaning
from gemmgen.proof.outcome import Subject

TYPES = ("f32", "f64", "f16", "bf16", "tf32")
"""For which there is a schedule on each GPU that has the type, with any epilogue."""
ORDERS = (
    "C[m, n] = A[m, k] * B[k, n]",
    "C[m, n] = A[m, k] * B[n, k]",
    "C[m, n] = A[k, m] * B[k, n]",
    "C[m, n] = A[k, m] * B[n, k]",
    "C[b, m, n] = A[b, m, k] * B[b, n, k]",
    "C[b, m, n] = A[m, k] * B[b, k, n]",
    "Y[n, m] = X[m, k] * W[k, n]",
    "S[i, h, j] = Q[i, h, d] * K[j, h, d]",
)
EPILOGUES = (None, "relu(acc + bias)", "2 * acc")
EXTENTS = st.one_of(st.integers(1, 40), st.integers(1, 20000), st.sampled_from((64, 1024, 4096)))

cached = cache(suggest)


def of(*shape: int, gemm: str = ORDERS[0], **options: str) -> Suggestion:
    return cached(gemm, shape, **options)  # pyright: ignore[reportArgumentType]


def lines(*shape: int, gemm: str = ORDERS[0], **options: str) -> dict[str, str]:
    """The statements by their first words; of several with one word, all."""
    found: dict[str, str] = {}
    for line in of(*shape, gemm=gemm, **options).text.splitlines():
        if not line.startswith("#"):
            word, *rest = line.split()
            found[word] = " ".join(filter(None, (found.get(word), *rest)))
    return found


def comments(*shape: int, gemm: str = ORDERS[0], **options: str) -> str:
    """The comments in one line."""
    text = of(*shape, gemm=gemm, **options).text
    return " ".join(x.lstrip("# ") for x in text.splitlines() if x.startswith("#"))


def means_what_it_should(emitted: Emitted) -> None:
    """C1 of the whole schedule, past a tile and past the stages; ``passes`` looks at each pass."""
    last = Step("last", emitted.program)
    assert meaning.difference(last, meaning.shapes_of(Subject(emitted))) is None


@pytest.mark.proof
@given(
    shape=st.tuples(EXTENTS, EXTENTS, EXTENTS, st.integers(1, 30)),
    gemm=st.sampled_from(ORDERS),
    dtype=st.sampled_from(TYPES),
    gpu=st.sampled_from(("H200", "A100", "RTX4090", "T4")),
    epilogue=st.sampled_from(EPILOGUES),
    gap=st.integers(0, 5),
)
def test_every_request_gets_a_schedule_that_compiles_and_takes_it(
    shape: tuple[int, ...], gemm: str, dtype: str, gpu: str, epilogue: str | None, gap: int
) -> None:
    """``gap``: elements after each row of A, so that leading dimensions are not multiples."""
    if dtype in ("bf16", "tf32") and gpu == "T4":
        return
    batched = gemm.count(",") > 5
    ld = None if batched else {re.findall(r"= (\w)", gemm)[0]: max(shape) + gap}
    wanted = shape if batched else shape[:3]
    found = suggest(gemm, wanted, dtype=dtype, gpu=gpu, epilogue=epilogue, ld=ld)
    emitted = compile_source(Source(found.text))
    assert accepts(emitted, found.request)
    assert emitted.schedule == found.schedule
    assert fmt_source(Source(found.text)) == found.text
    assert max(map(len, found.text.splitlines())) <= 100


def _plans() -> list[SettledForm]:
    """Each form, by turns where rows allow wide accesses and where they don't, storage orders by
    turns."""
    found: list[SettledForm] = []
    requests = [
        Request.of(ORDERS[at % 4], shape, dtype=dtype)
        for at, shape in enumerate(((256, 256, 256), (257, 255, 251)) * 2)
        for dtype in ("f32", "f64", "f16")
    ]
    for at, request in enumerate(requests):
        own = forms(request)
        found += [SettledForm(form, request) for form in own[at % 4 :: 4]]
    found = [plan for plan in found if residents(plan)]
    return found


@pytest.mark.by_default("lanes * f32", "direct * f32", "block *6 * f32")
@pytest.mark.parametrize(
    "plan", _plans(), ids=lambda p: f"{p.form.kind} {p.form.name} {p.request.dtype['a']}"
)
def test_every_form_compiles_in_each_storage_order(plan: SettledForm) -> None:
    compile_source(Source(plan.text))


MEANT: tuple[tuple[Form, str, int], ...] = (
    (Form("block", (16, 32, 16), (2, 2), (8, 16), 3), ORDERS[1], 2),
    (Form("block", (32, 16, 16), (2, 2), (16, 8), 3), ORDERS[2], 1),
    (Form("lanes", (4, 2, 64), (2, 2)), ORDERS[1], 1),
    (Form("direct", (8, 32, 4), (1, 1)), ORDERS[3], 1),
)


@pytest.mark.by_default("lanes-*")
@pytest.mark.parametrize(("form", "gemm", "parts"), MEANT, ids=lambda x: getattr(x, "kind", None))
def test_every_kind_means_what_it_should(form: Form, gemm: str, parts: int) -> None:
    """C1 at a shape a little past a tile and past the stages."""
    plan = SettledForm(form, Request.of(gemm, (100, 100, 101)), parts=parts)
    means_what_it_should(compile_source(Source(plan.text)))


def test_small_matrices_get_small_tiles_and_large_ones_large() -> None:
    areas: list[int] = []
    for size in (256, 1024, 4096):
        m, n, *_ = map(int, re.findall(r"[mn]=(\d+)", lines(size, size, size)["tile"]))
        areas.append(m * n)
    assert areas == sorted(areas) and areas[0] <= 64 * 64 and areas[-1] >= 128 * 128


def test_waves_are_the_blocks_by_the_places_for_them() -> None:
    found = re.search(
        r"tile: (\d+) x (\d+) tiles of (\d+) x (\d+) are ([\d.]+) waves, at (\d+) block",
        comments(1024, 1024, 1024),
    )
    assert found is not None
    rows, columns, m, n, held = (int(found[at]) for at in (1, 2, 3, 4, 6))
    assert (rows, columns) == (ceil(1024 / m), ceil(1024 / n))
    assert float(found[5]) == pytest.approx(rows * columns / (132 * held), abs=0.005)


def test_a_long_sum_of_a_small_result_is_split() -> None:
    assert "parts=" in lines(64, 64, 65536)["split_k"]
    assert "split_k" not in lines(4096, 4096, 65536)
    assert "parts=" not in lines(64, 64, 64).get("split_k", "")


def test_odd_rows_move_one_by_one() -> None:
    assert lines(4097, 4097, 4097)["vectorize"] == "A.shared B.shared width=4"
    assert "4097 elements, an odd number" in comments(4097, 4097, 4097)
    assert "C" in lines(4096, 4096, 4096)["vectorize"].split()


def test_single_stores_of_a_warp_lie_side_by_side() -> None:
    """Where C has odd rows and the sum is short, so that stores take much of the time."""
    assert "interleave=1" in lines(1221, 3319, 95)["register_block"]
    assert "interleave: adjacent threads own" in comments(1221, 3319, 95)
    assert "interleave" not in lines(1221, 3320, 95)["register_block"]


def test_extents_that_a_tile_divides_are_assumed() -> None:
    assert {"M", "N", "K"} <= set(lines(1024, 1024, 1024)["assume"].split())
    assert "assume" not in lines(1021, 1024, 1024)
    assert "no access has a guard" in comments(1024, 1024, 1024)


@pytest.mark.proof
def test_as_many_blocks_with_parts_fit_as_run_at_once() -> None:
    """Adding parts takes what registers there are, unless the compiler is asked to leave some."""
    found = of(333, 777, 1555)
    held = min(residents(found.chosen.plan), ceil(found.blocks / found.request.gpu.sms))
    assert found.chosen.plan.parts > 1 and held > 2
    assert f"launch_bounds   blocks={held}\n" in found.text
    assert "launch_bounds" not in of(64, 4096, 4096).text


def test_a_leading_dimension_that_is_no_multiple_is_read_one_by_one() -> None:
    dense = suggest(ORDERS[0], (1024, 1024, 1024))
    apart = suggest(ORDERS[0], (1024, 1024, 1024), ld={"B": 1025, "C": 1026})
    assert apart.chosen.plan.load("b") == 1 and dense.chosen.plan.load("b") == 4
    assert apart.chosen.plan.load("c") == 2
    assert not accepts(dense.emitted, apart.request) and accepts(apart.emitted, apart.request)


def test_a_gpu_without_asynchronous_copies_gets_none() -> None:
    found = lines(1024, 1024, 1024, gpu="T4")
    assert found["target"] == "sm_75" and "async_copy" not in found


def test_halves_use_tensor_cores() -> None:
    found = lines(4096, 4096, 4096, dtype="f16", gpu="A100")
    assert found["tensor_core"] == "via=mma" and found["dtype"] == "A=f16 B=f16 C=f16"
    assert "async_copy" in found
    odd = lines(4096, 4096, 4097, dtype="f16", gpu="A100")
    assert "async_copy" not in odd


@pytest.mark.parametrize(
    ("dtype", "gpu", "word"),
    [
        ("i8", "H200", "tensor_core"),
        ("e4m3", "RTX4090", "tensor_core"),
        ("tf32", "A100", "tensor_core"),
        ("f64", "A100", "tensor_core"),
        ("f64", "RTX4090", "register_block"),
        ("f32", "H200", "register_block"),
    ],
)
def test_tensor_cores_multiply_what_they_are_better_at(dtype: str, gpu: str, word: str) -> None:
    """Tiles of types that they take along k alone are transposed on the way in."""
    found = lines(1024, 1024, 1024, dtype=dtype, gpu=gpu)
    assert word in found
    if word == "tensor_core":
        assert found["tensor_core"] == "via=mma"
        transposed = dtype != "f64"
        assert found["cache_shared"] == f"A[m, k] B[{'n, k' if transposed else 'k, n'}]"


def test_f64_on_hopper_is_for_its_larger_instructions() -> None:
    assert lines(1024, 1024, 1024, dtype="f64")["target"] == "sm_90"
    assert "16 x 8 x 16 at a time" in comments(1024, 1024, 1024, dtype="f64")


def test_vectors_along_k_are_assumed_whole() -> None:
    """On tensor cores, where the tile does not divide the extents but a vector does."""
    halves = {"dtype": "f16", "gpu": "A100"}
    assert lines(1021, 1024, 1032, gemm=ORDERS[1], **halves)["assume"] == "K % 8 == 0"
    assert "assume" not in lines(1021, 1024, 1032, gemm=ORDERS[2], **halves)
    assert "assume" not in lines(1021, 1024, 1031, gemm=ORDERS[1], **halves)


def test_the_problem_is_kept_as_it_was_written() -> None:
    found = lines(
        *(512, 256, 64, 24),
        gemm="S[h, i, j] = Q[h, i, d] * K[h, j, d]",
        epilogue="scale * acc + mask[i, j]",
        dtype="Q=bf16 K=bf16 S=f32",
        kernel="scores",
    )
    assert found["gemm"] == "S[h, i, j] = Q[h, i, d] * K[h, j, d]"
    assert found["dtype"] == "Q=bf16 K=bf16 mask=f32" or found["dtype"] == "Q=bf16 K=bf16"
    assert found["fuse_epilogue"] == "scale * acc + mask[i, j]"
    assert found["kernel"] == "scores"


def test_extents_go_by_letter_too() -> None:
    gemm = "C[b, m, n] = A[b, m, k] * B[b, n, k]"
    by_letter = suggest(gemm, {"k": 64, "m": 512, "b": 24, "n": 500})
    assert by_letter.text == of(512, 500, 64, 24, gemm=gemm).text


REFUSED: tuple[tuple[str, Mapping[str, object]], ...] = (
    (r"the shape has no letter q", {"shape": {"m": 1, "n": 2, "k": 3, "q": 4}}),
    (r"the shape lacks k", {"shape": {"m": 1, "n": 2}}),
    (r"extents of m, n, k", {"shape": (4, 4)}),
    (r"at least 1", {"shape": (64, 0, 64)}),
    (r"there are H200, H100", {"gpu": "H900"}),
    (r"lda = 3: a row of A has 64 elements", {"ld": {"A": 3}}),
    (r"leading dimension of 'X'", {"ld": {"X": 64}}),
    (r"bf16 on T4: sm_75 has no bf16 conversions", {"dtype": "bf16", "gpu": "T4"}),
    (r"one line", {"epilogue": "acc\ntile m=3"}),
)


@pytest.mark.by_default(but=("bf16 on T4*",))
@pytest.mark.parametrize(("message", "options"), REFUSED, ids=[m[:20] for m, _ in REFUSED])
def test_refuses(message: str, options: Mapping[str, object]) -> None:
    with pytest.raises(UsageError, match=message):
        suggest(**{"shape": (64, 64, 64), **options})  # pyright: ignore[reportArgumentType]


def test_a_mistake_in_a_line_is_located() -> None:
    with pytest.raises(ScheduleError, match="unknown function `foo`"):
        suggest(shape=(64, 64, 64), epilogue="foo(acc)")


def command(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["suggest", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_the_command_prints_the_schedule() -> None:
    done = command("--shape", "512x256x128", "--gpu", "a100", "--dtype", "f64")
    assert done.exit_code == 0
    assert done.stdout == of(512, 256, 128, dtype="f64", gpu="A100").text


def test_the_command_takes_storage_orders_batches_and_an_epilogue() -> None:
    gemm, epilogue = "C[b,m,n] = A[b,m,k] * B[b,n,k]", "relu(acc + bias[n])"
    done = command(
        *("--shape", "512x256x64,b=24", "--gemm", gemm, "--epilogue", epilogue, "--ld", "A=68")
    )
    assert done.exit_code == 0, done.output
    wanted = suggest(gemm, (512, 256, 64, 24), epilogue=epilogue, ld={"A": 68})
    assert done.stdout == wanted.text


@pytest.mark.parametrize(
    "arguments",
    [
        ("--shape", "m=5,n=5"),
        ("--shape", "5x5x5,b=3"),
        ("--shape", "0"),
        ("--shape", "5x5"),
        ("--shape", "5", "--gemm", "C[m] = A"),
        ("--shape", "5", "--ld", "A"),
        ("--shape", "5", "--dtype", "f33"),
    ],
)
def test_the_command_refuses(arguments: tuple[str, ...]) -> None:
    done = command(*arguments)
    assert done.exit_code == 2 and done.stdout == ""


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((511, 511, 64), "small"),
        ((512, 512, 64), "medium"),
        ((2048, 2048, 64), "medium"),
        ((2049, 2049, 64), "large"),
        ((64, 4095, 64), "small"),
        ((64, 4096, 64), "medium"),
    ],
)
def test_a_size_is_the_side_of_a_square(shape: tuple[int, int, int], name: str) -> None:
    assert size_class(shape).name == name


def said_of_size(*shape: int, **more: str) -> str:
    (found,) = (x for x in of(*shape, **more).reasons if x.startswith("size: "))
    return found


def test_a_suggestion_says_why_it_departs_from_the_usual_rule() -> None:
    """By the estimate of the rule's own tile, and the multiprocessors without a block."""
    found = of(256, 256, 256)
    rule = min(o.seconds for o in found.options if o.plan.form.tile[:2] == (64, 64))
    said = said_of_size(256, 256, 256)
    assert said.startswith(
        "size: 256 x 256 is small by the usual rule (below 512: tiles of 64 x 64"
    )
    assert "not followed: 16 tiles of 64 x 64" in said and "on 132 multiprocessors" in said
    assert said.endswith(f"estimated {rule / found.chosen.seconds:.2f} times as long.")


def test_a_suggestion_says_that_it_follows_the_usual_rule() -> None:
    found = of(1408, 1536, 1408, gemm=ORDERS[1], gpu="RTX3080")
    assert found.chosen.plan.form.tile[:2] == (128, 128)
    said = said_of_size(1408, 1536, 1408, gemm=ORDERS[1], gpu="RTX3080")
    assert said.endswith("all optimizations), which this follows.")


def test_its_tile_with_several_stages_is_a_departure() -> None:
    said = said_of_size(511, 511, 512)
    assert "its tile, but 3 stages: with one, each of 16 steps along k waits" in said


def test_a_tile_without_a_form_is_reported() -> None:
    assert "no schedule with tiles of 64 x 64 fits" in said_of_size(1, 4096, 4096)


@pytest.mark.by_default("shape0-*")
@pytest.mark.parametrize("dtype", ("i8", "e4m3", "e5m2", "f64", "f32"))
@pytest.mark.parametrize("shape", ((3, 5, 7), (511, 513, 515), (30000, 30000, 30000)))
def test_only_16_bit_types_are_called_halves(dtype: str, shape: tuple[int, int, int]) -> None:
    """And times have a unit that keeps them short, not a power of ten."""
    text = suggest(ORDERS[1], shape, dtype=dtype).text
    assert "halves" not in text and " half" not in text and not re.search(r"\de[+-]\d", text)
