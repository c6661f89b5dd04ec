"""``gemmgen bench`` and ``ladder``, on rows that no GPU has measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gemmgen.cli import ladder_counts as counted
from gemmgen.cli import ladder_rungs, timed
from gemmgen.cli.shape_option import Shape, WrittenShape
from gemmgen.gpu import device
from gemmgen.gpu.bench_row import BenchRow
from gemmgen.gpu.setup import Setup
from gemmgen.pipeline import Emitted
from gemmgen.schedule import examples

from .running import EXAMPLES, gemmgen

FILES = [str(EXAMPLES / f"{name}.sched") for name in ("naive", "transposed")]
MARKS = "# Title\n\n<!-- ladder -->\nold\n<!-- /ladder -->\n\nEnd.\n"


def row(name: str, shape: Shape, ms: float | None = 2.0, note: str = "") -> BenchRow:
    named = tuple(zip("MNK", shape, strict=True))
    right = ms is not None and not note
    return BenchRow(name, named, ms, ms, ms, 8.5, 0.5, "slower", 0.1, right, "NVIDIA H200", note)


def rows(kernels: Mapping[str, Emitted], shapes: Sequence[WrittenShape]) -> tuple[BenchRow, ...]:
    names = ("cuBLAS A[m,k] B[k,n] C[m,n]", *kernels)
    return tuple(row(name, shape.matrix or ()) for shape in shapes for name in names)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(timed, "measure", rows)


@pytest.fixture
def uncounted(monkeypatch: pytest.MonkeyPatch, measured: None):
    """Rows without what limits them, which takes most of the time."""
    monkeypatch.setattr(counted, "limits", lambda ladder_rungs, size, gpu: {})


def test_without_a_gpu_nothing_is_timed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(device, "missing", lambda: "there is no GPU here")
    for command in (["bench", *FILES], ["ladder", *FILES, "--markdown"]):
        result = gemmgen(*command)
        assert (result.exit_code, result.stdout) == (3, "")
        assert result.stderr == "gemmgen: there is no GPU here\n"


@pytest.mark.usefixtures("estimated")
def test_without_a_gpu_the_ladder_shows_what_is_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(device, "missing", lambda: "there is no GPU here")
    result = gemmgen("ladder", *FILES, "--size", "64", "--size", "256")
    assert (result.exit_code, result.stderr) == (3, "gemmgen: there is no GPU here\n")
    title, heading, *lines = result.stdout.splitlines()
    assert title.startswith("counted at 256 x 256 x 256 for the H200; nothing is timed; ")
    assert heading.split("  ")[0] == "kernel" and "limited by" in heading
    assert [line.split()[0] for line in lines] == ["naive", "transposed"]
    assert "MNK(1/32 + 1/32)" in lines[1] and "shared memory and L1" in lines[1]
    assert lines[1].endswith("32-way")


@pytest.mark.usefixtures("estimated")
def test_counts_are_asked_for_without_a_complaint():
    result = gemmgen("ladder", *FILES, "--counts", "--size", "256", "--gpu", "A100", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    naive, transposed = json.loads(result.stdout)
    assert (naive["reads"], naive["counted"]["gpu"]) == ("2MNK", "A100")
    assert transposed["counted"]["traffic"][0]["buffer"] == "A" and not transposed["note"]


@pytest.mark.proof
def test_a_kernel_that_does_not_fit_a_gpu_is_a_line_without_figures(tmp_path: Path):
    wide = tmp_path / "wide.sched"
    wide.write_text(
        "target sm_90\ntile m=256 n=128 k=64\ncache_shared A B\nregister_block m=8 n=16\n"
    )
    result = gemmgen("ladder", wide, FILES[0], "--counts", "--size", "256", "--gpu", "A100")
    assert result.exit_code == 0 and result.stderr.startswith("wide: the schedule needs sm_90")
    assert result.stdout.splitlines()[2].split()[-6:] == ["-"] * 6


def test_counts_are_no_table_for_a_readme():
    assert gemmgen("ladder", "--counts", "--markdown").exit_code == 2


@pytest.mark.usefixtures("uncounted")
@pytest.mark.parametrize("flag", [(), ("--prefixes",)])
def test_one_schedule_is_walked_directive_by_directive(flag: tuple[str, ...]):
    result = gemmgen("ladder", *flag, EXAMPLES / "vectorized.sched", "--size", "64")
    names = [line.split("  ")[0] for line in result.stdout.splitlines()[2:]]
    assert names[:2] == ["naive", "+ register_block m=8 n=8"]
    assert names[-2:] == ["+ fuse_epilogue", "cuBLAS"]
    first, *_ = result.stderr.splitlines()
    assert first == "no kernel yet: + tile m=128 n=128 k=8 (the tile needs too many threads)"


def test_prefixes_of_a_mistake_are_refused(tmp_path: Path):
    wrong = tmp_path / "wrong.sched"
    wrong.write_text("tile m=64 n=64\n")
    result = gemmgen("ladder", wrong)
    assert result.exit_code == 2 and "wrong.sched:1:1: error: the tile needs" in result.stderr


@pytest.mark.proof
@pytest.mark.usefixtures("measured")
def test_ladder_has_a_line_per_example_and_the_documents_percentages():
    lines = gemmgen("ladder", "--size", "512", "--size", "1024").stdout.splitlines()
    assert lines[0] == "NVIDIA H200"
    assert lines[1].split("  ")[0] == "kernel" and lines[1].endswith("published")
    assert [line.split()[0] for line in lines[2:]] == [*examples.ladder(), "cuBLAS"]
    naive = ["naive", "50.0%", "50.0%", "2.000", "8.5", "2MNK", "shared", "memory", "and", "L1"]
    (own,) = (line for line in lines if line.startswith("naive "))
    assert own.split() == [*naive, "10%"]
    assert "MNK(1/32 + 1/32)" in lines[4] and lines[10].endswith("89%")


@pytest.mark.usefixtures("measured")
@pytest.mark.usefixtures("estimated")
def test_ladder_of_files_has_no_column_of_the_documents():
    text = gemmgen("ladder", *FILES, "--size", "64").stdout
    assert "published" not in text and "\ntransposed " in text


@pytest.mark.usefixtures("measured")
@pytest.mark.usefixtures("estimated")
def test_markdown_is_between_its_marks():
    text = gemmgen("ladder", *FILES, "--size", "64", "--markdown").stdout
    assert text.startswith("<!-- ladder -->\n| kernel | of cuBLAS, 64 | ms, 64 | TFLOP/s |")
    assert "\n| naive | 50.0% | 2.000 | 8.5 | 2MNK | shared memory and L1 |\n" in text
    assert "on an NVIDIA H200, 20" in text and text.endswith("\n<!-- /ladder -->\n")


@pytest.mark.usefixtures("uncounted")
def test_update_replaces_the_table_alone(tmp_path: Path):
    readme = tmp_path / "README.md"
    readme.write_text(MARKS)
    for _ in range(2):
        result = gemmgen("ladder", *FILES, "--size", "64", "--update", readme)
        assert result.exit_code == 0 and "\nnaive " in result.stdout
        text = readme.read_text()
        assert text.startswith("# Title\n\n<!-- ladder -->\n| kernel |")
        assert text.endswith("\n<!-- /ladder -->\n\nEnd.\n") and text.count("| naive |") == 1


@pytest.mark.parametrize("text", ["no marks", "<!-- /ladder --><!-- ladder -->", MARKS + MARKS])
def test_update_wants_one_place_before_it_measures(tmp_path: Path, text: str):
    readme = tmp_path / "README.md"
    readme.write_text(text)
    result = gemmgen("ladder", "--update", readme)
    assert result.exit_code == 2 and "has no marks for the table" in result.stderr
    assert readme.read_text() == text


@pytest.mark.proof
@pytest.mark.usefixtures("uncounted")
def test_a_refused_file_is_a_line_and_no_failure(tmp_path: Path):
    wrong = tmp_path / "wrong.sched"
    wrong.write_text("tile m=7 n=3 k=8\n")
    for how in ((), ("--counts",)):
        result = gemmgen("ladder", *FILES, wrong, "--size", "64", *how)
        assert result.exit_code == 0 and "\nwrong       refused: " in result.stdout
        assert result.stderr.startswith("refused: wrong (")
    alone = gemmgen("ladder", wrong, wrong, "--size", "64")
    assert (alone.exit_code, alone.stdout) == (2, "") and "error" in alone.stderr


@pytest.mark.usefixtures("uncounted")
def test_a_kernel_that_refuses_a_shape_beside_others_is_a_line(monkeypatch: pytest.MonkeyPatch):
    shape = (64, 64, 64)
    some = (row("naive", shape, None, "M % 128"), row("transposed", shape))
    monkeypatch.setattr(timed, "measure", lambda k, s: some)
    assert gemmgen("ladder", *FILES, "--size", "64").exit_code == 0


@pytest.mark.usefixtures("uncounted")
def test_clock_and_versions_stand_beside_the_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    about = Setup(1980, "580.95.05", "13.0", "13.1.0")
    monkeypatch.setattr(
        timed, "measure", lambda k, s: [replace(each, setup=about) for each in rows(k, s)]
    )
    said = "NVIDIA H200 (SM clock 1980 MHz, driver 580.95.05, CUDA 13.0, cuBLAS 13.1.0)"
    ladder = ("ladder", *FILES, "--size", "64")
    assert gemmgen(*ladder).stdout.startswith(f"{said}\n")
    assert f"f32, on an {said}, 20" in gemmgen(*ladder, "--markdown").stdout
    assert {each["cublas"] for each in json.loads(gemmgen(*ladder, "--json").stdout)} == {"13.1.0"}
    assert said in gemmgen("bench", *FILES, "--shape", "64").stdout


@pytest.mark.usefixtures("uncounted")
def test_json_has_reads_and_percentages():
    found = json.loads(gemmgen("ladder", "--size", "64", "--json").stdout)
    (naive,) = [entry for entry in found if entry["name"] == "naive"]
    assert naive["shape"] == {"M": 64, "N": 64, "K": 64}
    assert (naive["reads"], naive["documents"], naive["share"]) == ("2MNK", 10, 0.5)


@pytest.mark.usefixtures("measured")
@pytest.mark.usefixtures("estimated")
def test_json_has_an_entry_of_a_refused_file(tmp_path: Path):
    wrong = tmp_path / "wrong.sched"
    wrong.write_text("tile m=7 n=3 k=8\n")
    found = json.loads(gemmgen("ladder", *FILES, wrong, "--size", "64", "--json").stdout)
    assert [entry["name"] for entry in found][1:] == ["naive", "transposed", "wrong"]
    assert found[-1]["error"] and all("error" not in entry for entry in found[:-1])


@pytest.mark.usefixtures("estimated")
def test_reads_are_in_a_schedules_own_letters(tmp_path: Path):
    short, long = tmp_path / "short.sched", tmp_path / "long.sched"
    short.write_text("gemm Y[i, j] = X[i, p] * W[p, j]\ntile i=32 j=32 p=32\ncache_shared X W\n")
    long.write_text("gemm Y[row, col] = X[row, t] * W[t, col]\n")
    found = json.loads(gemmgen("ladder", short, long, "--counts", "--size", "64", "--json").stdout)
    assert [entry["reads"] for entry in found] == ["IJP(1/32 + 1/32)", "2*ROW*COL*T"]


def test_prefixes_add_one_directive_each_time():
    whole = ladder_rungs.prefixes(str(EXAMPLES / "vectorized.sched"))
    found = {rung.name: rung.reads for rung in whole.rungs}
    assert next(iter(found)) == "naive" and list(found)[-1] == "+ fuse_epilogue"
    assert found["+ register_block m=8 n=8"] == "MNK(1/128 + 1/128)"
    assert not any(name.startswith("+ tile") for name in found)  # 16,384 threads
    assert ("+ tile m=128 n=128 k=8", "the tile needs too many threads") in whole.left_out


def test_reads_are_counted_by_formula():
    kernels = {rung.name: rung.reads for rung in ladder_rungs.built_in()}
    assert kernels["uncoalesced"] == kernels["naive"] == "2MNK"
    assert kernels["tiled"] == "MNK(1/32 + 1/32)"
    assert kernels["warp_tiled"] == "MNK(1/128 + 1/256)"


@pytest.mark.usefixtures("measured")
def test_bench_prints_a_table_and_json():
    text = gemmgen("bench", *FILES, "--shape", "64x32x16").stdout
    assert "naive" in text and "64x32x16" in text and "0.500" in text
    found = json.loads(gemmgen("bench", *FILES, "--shape", "64", "--json").stdout)
    assert [entry["name"] for entry in found][1:] == ["naive", "transposed"]


@pytest.mark.usefixtures("estimated")
def test_a_wrong_result_is_reported_and_fails(monkeypatch: pytest.MonkeyPatch):
    shape = (64, 64, 64)
    monkeypatch.setattr(timed, "measure", lambda k, s: (row("naive", shape, note="C[0, 0] = 1"),))
    result = gemmgen("ladder", *FILES, "--size", "64")
    assert result.exit_code == 1 and " wrong " in result.stdout
    assert result.stderr == "naive, 64: C[0, 0] = 1\n"


@pytest.mark.usefixtures("estimated")
def test_a_shape_that_is_refused_is_a_wrong_input(monkeypatch: pytest.MonkeyPatch):
    shape = (64, 64, 64)
    monkeypatch.setattr(timed, "measure", lambda k, s: (row("naive", shape, None, "M % 128"),))
    assert gemmgen("ladder", *FILES, "--size", "64").exit_code == 2


def test_files_of_one_name_are_distinguished():
    kernels = [rung.kernel for rung in ladder_rungs.from_files(FILES).rungs]
    assert list(timed.named(["a/x.sched", "b/y.sched"], kernels)) == ["x", "y"]
    assert list(timed.named(["a/x.sched", "b/x.sched"], kernels)) == ["a/x.sched", "b/x.sched"]


@pytest.mark.proof
@pytest.mark.usefixtures("uncounted")
def test_times_are_drawn_beside_the_table(tmp_path: Path):
    out = tmp_path / "out.svg"
    result = gemmgen("ladder", *FILES, "--size", "64", "--size", "128", "--plot", out)
    assert result.exit_code == 0 and "transposed" in result.stdout
    assert "naive at 128: 8.5 TFLOP/s, 50.0% of cuBLAS." in out.read_text()


@pytest.mark.proof
def test_ladder_and_explain_have_one_ceiling() -> None:
    """The last rungs, whose blocks don't divide evenly among the SMs."""
    files = [EXAMPLES / f"{name}.sched" for name in ("vectorized", "warp_tiled")]
    rungs = json.loads(gemmgen("ladder", "--counts", "--size", 4096, "--json", *files).stdout)
    lines = gemmgen("ladder", "--counts", "--size", 4096, *files).stdout.splitlines()
    for file, rung, line in zip(files, rungs, lines[-2:], strict=True):
        found = gemmgen("explain", file, "--shape", 4096)
        (bound,) = (x for x in found.stdout.splitlines() if " TFLOP/s  binds" in x)
        ceiling = bound.partition(" TFLOP/s")[0].split()[-1]
        assert ceiling in line.split()
        assert f"attainable: {ceiling} TFLOP/s" in found.stdout
        assert f"{rung['counted']['roofline']['attainable_flops'] / 1e12:.1f}" == ceiling
