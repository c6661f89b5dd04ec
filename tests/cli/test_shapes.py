"""``--shape`` by roles and by letters, of matrices and of batches."""

from __future__ import annotations

import json

import pytest
from passes.equality import difference

from gemmgen.base.source import Source
from gemmgen.cli import timed as timing
from gemmgen.cli.emit import assume_shape
from gemmgen.cli.shape_option import WrittenShape, cube, resolve, shape
from gemmgen.gpu import device
from gemmgen.language import parse_schedule
from gemmgen.pipeline import rewrite
from gemmgen.proof import compiled
from gemmgen.proof.outcome import skipped
from gemmgen.schedule.read import read_source

from .running import EXAMPLES, gemmgen

BATCHED = "gemm S[b, h, i, j] = Q[b, h, i, d] * K[b, h, j, d]\ntile i=16 j=16 d=8\n"
GEMM = parse_schedule(Source(BATCHED)).gemm


@pytest.mark.parametrize(
    ("text", "sizes"),
    (
        ("4x5x6", (4, 5, 6, 1, 1)),
        ("7", (7, 7, 7, 1, 1)),
        ("4x5x6,h=2", (4, 5, 6, 1, 2)),
        ("7, b=3, h=2", (7, 7, 7, 3, 2)),
        ("b=3,i=4,j=5,d=6,h=2", (4, 5, 6, 3, 2)),
        ("d=6,j=5,i=0", (0, 5, 6, 1, 1)),
    ),
)
def test_sizes_are_those_of_the_letters(text: str, sizes: tuple[int, ...]) -> None:
    assert resolve(shape(text), GEMM) == sizes


def test_a_cube_is_written_like_a_number() -> None:
    assert cube(7) == shape("7") == WrittenShape((7, 7, 7))


def test_verify_takes_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "check", lambda _: skipped("C3", "of the text alone"))
    result = gemmgen("verify", "-", "--shape", "b=3,h=2,i=5,j=7,d=3", input=BATCHED)
    assert result.exit_code == 0 and "C2  passed" in result.stdout


@pytest.mark.usefixtures("estimated")
def test_explain_and_diff_take_batches() -> None:
    options = ("--shape", "32,b=3,h=2", "--json")
    figures = json.loads(gemmgen("explain", "-", *options, input=BATCHED).stdout)
    assert figures["shape"]["batches"] == {"b": 3, "h": 2}
    assert figures["flops"] == 2 * 32**3 * 6
    assert figures["waves"]["blocks"] == 2 * 2 * 6
    message = gemmgen("explain", "-", *options[:2], input=BATCHED).stdout
    assert "S is 32 x 32, 3 x 2 matrices" in message and "size_b*size_h*IJ" in message


def test_emit_assumes_nothing_of_batches() -> None:
    fixed = gemmgen("emit", "-", "--shape", "32,b=3,h=2", input=BATCHED).stdout
    assert "assume          I % 32 == 0" in fixed and "size_b %" not in fixed


def test_bench_counts_the_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is timed where there is a GPU: the extents by their parameters."""
    from gemmgen.gpu import bench, launch

    seen: list[dict[str, int]] = []

    def timed(entries: object, sizes: list[dict[str, int]], progress: object) -> tuple[()]:
        seen.extend(sizes)
        return ()

    monkeypatch.setattr(device, "missing", lambda: None)
    monkeypatch.setattr(bench, "bench", timed)
    monkeypatch.setattr(launch.Kernel, "of", lambda kernel: kernel)
    from gemmgen.pipeline import compile_source

    kernels = {"scores": compile_source(Source(BATCHED))}
    assert timing.measure(kernels, [shape("32,b=3,h=2")]) == ()
    assert seen == [{"I": 32, "J": 32, "D": 32, "size_b": 3, "size_h": 2}]


@pytest.mark.parametrize("name", ("tiled", "vectorized"))
def test_a_kernel_for_divisors_computes_what_the_one_for_all_does(name: str) -> None:
    schedule = parse_schedule(read_source(str(EXAMPLES / f"{name}.sched")))
    assumed = assume_shape(schedule, (32, 16, 8))
    assert {a.name: a.divisor for a in assumed.assumes} == {"M": 32, "N": 16, "K": 8}
    programs = (rewrite(each)[-1].program for each in (schedule, assumed))
    assert difference(*programs) is None
