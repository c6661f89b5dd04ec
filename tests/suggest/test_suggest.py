"""``gemmgen suggest``: its schedules compile and are right, and its reasons are what they say."""

from __future__ import annotations

import re
from math import ceil

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmgen.analyze.gpus import GPUS
from gemmgen.cli import main
from gemmgen.errors import UsageError
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.pipeline import Emitted, Step, compile_source
from gemmgen.schedule.fmt import fmt_source
from gemmgen.source import Source
from gemmgen.suggest.choose import suggest
from gemmgen.suggest.families import Plan, families
from gemmgen.suggest.reasons import schedule_text
from gemmgen.tune.legal import Shape
from gemmgen.verify import meaning
from gemmgen.verify.outcome import Subject

H200, T4 = GPUS["H200"], GPUS["T4"]
TYPES: tuple[DType, ...] = tuple(BYTES)
EXTENTS = st.one_of(st.integers(1, 300), st.integers(1, 20000), st.sampled_from((64, 1024, 4096)))


def text(shape: Shape, dtype: DType = "f32", gpu: str = "H200") -> str:
    m, n, k = shape
    return schedule_text(suggest((m, n, k), dtype, GPUS[gpu]))


def lines(shape: Shape, dtype: DType = "f32", gpu: str = "H200") -> dict[str, str]:
    """The statements by their first words."""
    found = [line for line in text(shape, dtype, gpu).splitlines() if not line.startswith("#")]
    return {line.split()[0]: " ".join(line.split()[1:]) for line in found}


def takes(emitted: Emitted, shape: Shape) -> bool:
    """Does the kernel take dense matrices of this shape?"""
    m, n, k = shape
    values = {"M": m, "N": n, "K": k, "lda": k, "ldb": n, "ldc": n, "A": 0, "B": 0, "C": 0}
    return not emitted.interface.violated(values)


def means_what_it_should(emitted: Emitted) -> None:
    """C1 of the whole schedule, past a tile and past the stages; ``passes`` looks at each pass."""
    last = Step("last", emitted.program)
    assert meaning.difference(last, meaning.shapes_of(Subject(emitted))) is None


@settings(max_examples=30, deadline=None)
@given(
    shape=st.tuples(EXTENTS, EXTENTS, EXTENTS),
    dtype=st.sampled_from(TYPES),
    gpu=st.sampled_from(sorted(GPUS)),
)
def test_every_shape_gets_a_schedule_that_compiles_and_takes_it(
    shape: Shape, dtype: DType, gpu: str
) -> None:
    if dtype == "bf16" and gpu == "T4":
        return
    found = text(shape, dtype, gpu)
    assert takes(compile_source(Source(found)), shape)
    assert fmt_source(Source(found)) == found
    assert max(map(len, found.splitlines())) <= 100


def _plans() -> list[Plan]:
    """Each family, by turns where rows allow wide accesses and where they don't."""
    found: list[Plan] = []
    shapes = ((1024, 1024, 1024), (1023, 1021, 1019))
    for dtype, arch, turn in (("f32", 90, 0), ("f32", 75, 1), ("f64", 80, 1), ("f16", 90, 0)):
        for at, family in enumerate(families(dtype, arch)):
            found.append(Plan.of(family, shapes[(at + turn) % 2], dtype, arch))
    return found


@pytest.mark.parametrize("plan", _plans(), ids=lambda p: f"{p.dtype} {p.arch} {p.family.name}")
def test_every_family_means_what_it_should(plan: Plan) -> None:
    """C1 at a shape a little past a tile and past the stages."""
    try:
        emitted = compile_source(Source(plan.text))
    except Exception as refusal:
        assert plan.arch == 75 and "shared memory" in str(refusal)
        return
    means_what_it_should(emitted)


@pytest.mark.parametrize("shape", [(1, 4096, 4096), (300, 200, 5000)])
def test_parts_mean_what_they_should(shape: Shape) -> None:
    assert "split_k" in lines(shape)
    means_what_it_should(compile_source(Source(text(shape))))


def test_small_matrices_get_small_tiles_and_large_ones_large() -> None:
    areas: list[int] = []
    for size in (256, 512, 1024, 2048, 4096):
        m, n = map(int, re.findall(r"[mn]=(\d+)", lines((size, size, size))["tile"]))
        areas.append(m * n)
    assert areas == sorted(areas) and areas[0] <= 64 * 64 and areas[-1] == 128 * 256


def test_waves_are_the_blocks_by_the_places_for_them() -> None:
    found = text((1024, 1024, 1024))
    told = re.search(
        r"tile: (\d+) x (\d+) tiles of (\d+) x (\d+) are ([\d.]+) waves, at (\d+) block", found
    )
    assert told is not None
    rows, columns, m, n, held = (int(told[at]) for at in (1, 2, 3, 4, 6))
    assert (rows, columns) == (ceil(1024 / m), ceil(1024 / n))
    assert float(told[5]) == pytest.approx(rows * columns / (132 * held), abs=0.005)


def test_a_long_sum_of_a_small_result_is_split() -> None:
    assert lines((64, 64, 65536))["split_k"] == "parts=64 groups=8"
    assert "split_k" not in lines((4096, 4096, 65536))
    assert "split_k" not in lines((64, 64, 64))


def test_odd_rows_move_one_by_one() -> None:
    assert lines((4097, 4097, 4097))["vectorize"] == "A.shared B.shared width=4"
    assert "4097 elements, an odd number" in text((4097, 4097, 4097)).replace("\n#  ", "")
    assert lines((4096, 4096, 4096))["vectorize"] == "A.shared B C width=4"
    assert "vectorize       B.global C width=2\n" in text((4096, 4098, 4096))


def test_a_gpu_without_asynchronous_copies_gets_none() -> None:
    found = lines((1024, 1024, 1024), "f32", "T4")
    assert found["target"] == "sm_75" and "async_copy" not in found
    assert "this GPU has no cp.async" in text((1024, 1024, 1024), "f32", "T4").replace("\n#  ", "")


def test_halves_use_tensor_cores() -> None:
    found = lines((4096, 4096, 4096), "f16")
    assert found["tensor_core"] == "via=wmma" and found["dtype"] == "A=f16 B=f16 C=f16"
    assert "async_copy" in found and "async_copy" not in lines((4096, 4096, 4097), "f16")


def test_the_usual_tile_is_named_where_another_is_taken() -> None:
    assert "The usual size above 2048 it is." in text((8192, 8192, 8192)).replace("\n#  ", "")
    told = text((512, 512, 512)).replace("\n#  ", "")
    assert re.search(r"The usual size from 512 to 2048 would be \d+ x \d+: \d+ tiles", told)


def test_refuses_what_has_no_schedule() -> None:
    with pytest.raises(UsageError, match="bf16 on T4: bf16 is not there on sm_75"):
        suggest((64, 64, 64), "bf16", T4)
    with pytest.raises(UsageError, match="extents of at least 1"):
        suggest((64, 0, 64), "f32", H200)


def command(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["suggest", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_the_command_prints_the_schedule() -> None:
    done = command("--shape", "512x256x128", "--gpu", "a100", "--dtype", "f64")
    assert done.exit_code == 0
    assert done.stdout == text((512, 256, 128), "f64", "A100")


@pytest.mark.parametrize("shape", ["m=5,n=5,k=5", "5x5x5,b=3", "0", "5x5"])
def test_the_command_refuses(shape: str) -> None:
    done = command("--shape", shape)
    assert done.exit_code == 2 and done.stdout == ""
