"""``gemmgen tune --gemm``: what it prints and stores, its exit codes, and mistakes."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner, Result

import gemmgen
from gemmgen.base.source import Source
from gemmgen.cli import main
from gemmgen.explore.autotune import gpu_tuning, keeping
from gemmgen.explore.autotune.default_spaces import space_text
from gemmgen.explore.request import Request
from gemmgen.explore.results.measured_result import ProblemKey
from gemmgen.explore.results.results_store import Results
from gemmgen.explore.suggest.choose import choose
from gemmgen.explore.tune.gpu_measuring import strided
from gemmgen.explore.tune.measuring import Candidate
from gemmgen.explore.tune.remote import RemoteRunner
from gemmgen.gpu import compiler, device
from gemmgen.language import parse_schedule
from gemmgen.schedule.formatting import format_schedule

from . import fakes
from .gemm_fakes import GEMM, HERE, FakeLab, MemoryKeeper, StubRunner, cost

SHAPE = ("--shape", "2048x2304x768")
BASE = ("--gemm", GEMM, "--dtype", "bf16")


def tune(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(main, ["tune", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


class OnFakes:
    """The command with a fake lab, the store in memory, and a clock of the lab's own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **measuring: object):
        self.lab, self.keeper = FakeLab(**measuring), MemoryKeeper()  # type: ignore[arg-type]
        self.lab.end = lambda: None  # type: ignore[attr-defined]
        self.stores: list[bool] = []

        def keeper(store: bool) -> Callable[[object], object]:
            self.stores.append(store)
            return lambda info: self.keeper if store else keeping.NoKeeper()

        monkeypatch.setattr(gpu_tuning, "GpuLab", lambda *_: self.lab)
        monkeypatch.setattr(gpu_tuning, "compiler", lambda: None)
        monkeypatch.setattr(gpu_tuning, "time", SimpleNamespace(monotonic=self.lab.clock))
        monkeypatch.setattr(keeping, "keeper", keeper)


@pytest.mark.proof
def test_a_single_shapes_winner_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    on = OnFakes(monkeypatch)
    done = tune(*BASE, *SHAPE, "--budget", "10")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("# Tuned by gemmgen on an Fake GPU, results checked:\n#   2048x")
    assert parse_schedule(Source(done.stdout)).directives
    assert "tuned on an Fake GPU" in done.stderr and "search" in done.stderr
    assert on.stores == [True] and min(on.keeper.kept.values()) < 0.05
    assert 8 < on.lab.clock.now < 11


@pytest.mark.proof
def test_several_shapes_are_a_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    on = OnFakes(monkeypatch)
    listed = tmp_path / "shapes.txt"
    listed.write_text("# of a model\n\n512x512x512  # small\nm=256,n=128,k=64\n512\n")
    done = tune(*BASE, *SHAPE, "--shapes", listed, "--budget", "9", "--no-store")
    assert done.exit_code == 0, done.stderr
    rows = [line.split()[0] for line in done.stdout.splitlines()[2:]]
    assert rows == ["2048x2304x768", "512x512x512", "256x128x64"]
    assert on.stores == [False] and not on.keeper.kept
    found = json.loads(tune(*BASE, "--shapes", listed, "--budget", "9", "--json").stdout)
    assert [x["shape"] for x in found["shapes"]] == [[512, 512, 512], [256, 128, 64]]


@pytest.mark.proof
def test_the_winner_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    OnFakes(monkeypatch)
    out = tmp_path / "best.sched"
    done = tune(*BASE, *SHAPE, "--budget", "5", "-o", out)
    assert done.exit_code == 0 and done.stdout.startswith("tuned on an Fake GPU")
    assert parse_schedule(Source(out.read_text())).directives


def test_nothing_right_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    OnFakes(monkeypatch, wrong=lambda text: True)
    out = tmp_path / "best.sched"
    done = tune(*BASE, *SHAPE, "--budget", "1", "-o", out)
    assert done.exit_code == 1 and not out.exists()
    assert "an error of gemmgen, please report it" in done.stderr and "none" in done.stdout


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_ends_with_the_table_so_far(
    number: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def interrupt(text: str) -> None:
        calls.append(text)
        if len(calls) == 20 and number == signal.SIGINT:
            raise KeyboardInterrupt  # a shell's background jobs ignore the signal
        if len(calls) == 20:
            os.kill(os.getpid(), number)

    on = OnFakes(monkeypatch, before=interrupt)
    done = tune(*BASE, *SHAPE, "--shape", "512", "--budget", "20")
    assert done.exit_code == code and "interrupted" in done.stderr
    assert "so far" in done.stdout and "not reached" in done.stdout
    assert on.keeper.kept and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_leading_dimensions_and_epilogues_reach_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    on = OnFakes(monkeypatch, real=True)
    more = ("--epilogue", "relu(acc + bias[n])", "--ld", "A=1031", "--budget", "0.1")
    done = tune(*BASE, *SHAPE, *more)
    assert done.exit_code == 0, done.stderr
    assert "fuse_epilogue   relu(acc + bias[n])" in done.stdout and "wgmma" not in done.stdout
    assert on.lab.runners[0].pitches == (("A", 1031),)


@pytest.mark.skipif(device.missing() is None, reason="a GPU is here")
def test_without_a_gpu_one_message_says_so(tmp_path: Path) -> None:
    out = tmp_path / "best.sched"
    done = tune(*BASE, *SHAPE, "-o", out, "--jobs", "1")
    (why,) = done.stderr.splitlines()
    assert done.exit_code == 3 and "no kernel can be launched" in why
    assert not out.exists() and done.stdout == ""


def test_another_gpu_is_refused_where_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    OnFakes(monkeypatch)
    done = tune(*BASE, *SHAPE, "--gpu", "A100")
    assert done.exit_code == 2
    assert "is sm_80, and the GPU here, an Fake GPU, is sm_90: leave --gpu out" in done.stderr
    assert tune(*BASE, *SHAPE, "--gpu", "H100", "--budget", "0.1").exit_code == 0


@pytest.mark.proof
def test_the_space_is_shown_and_can_be_passed(tmp_path: Path) -> None:
    done = tune("--show-space", *BASE, *SHAPE, "--gpu", "H200")
    request = Request.of(GEMM, (2048, 2304, 768), dtype="bf16")
    assert done.exit_code == 0 and done.stdout == space_text(
        choose(request, measured=False).schedule
    )
    space = tmp_path / "space.sched"
    space.write_text(done.stdout)
    fixed = ("side=128", "tile.k=64", "double_buffer.stages=4", "raster.group=8", "cluster.n=1")
    sets = [word for one in fixed for word in ("--set", one)]
    listed = tune(space, *SHAPE, "--list", "--json", "--jobs", "1", *sets)
    assert listed.exit_code == 0 and json.loads(listed.stdout)["legal"] > 5, listed.stderr
    assert "via=mma" in tune("--show-space", "--dtype", "bf16", "--gpu", "A100").stdout
    assert "register_block" in tune("--show-space").stdout


MISTAKES: tuple[tuple[list[str], str], ...] = (
    ([], "tune takes what to tune: --gemm"),
    ([*SHAPE], "tune takes what to tune: --gemm"),
    (["{space}", "--gemm", GEMM, *SHAPE], "tune takes a space or --gemm, not both"),
    ([*BASE], "Missing option '--shape': name a shape, --shape 2048x2304x768 say"),
    ([*BASE, "--shape", "2048x"], "Invalid value for '--shape': a shape is MxNxK"),
    ([*BASE, "--shape", "2048x0x768"], "--shape 2048x0x768: an extent is 0"),
    ([*BASE, "--shape", "64,q=3"], "--shape: there is no letter q; there are m, n, k"),
    ([*BASE, *SHAPE, "--budget", "0"], "0 is not a number of seconds above 0; write 60, say"),
    ([*BASE, *SHAPE, "--budget", "-3"], "-3 is not a number of seconds above 0"),
    ([*BASE, *SHAPE, "--budget", "nan"], "nan is not a number of seconds above 0"),
    ([*BASE, *SHAPE, "--budget", "soon"], "soon is not a number of seconds above 0"),
    (["{space}", *SHAPE, "--budget", "2"], "--budget 2: the search of a space takes 5 s or more"),
    (["--gemm", GEMM, "--dtype", "bf61", *SHAPE], "bf61"),
    (["--gemm", "C[m, n] = A[m, k] + B", *SHAPE], "<request>:1:"),
    ([*BASE, *SHAPE, "--epilogue", "relu(acc + "], "<request>:"),
    ([*BASE, *SHAPE, "--ld", "A"], "a leading dimension is TENSOR=ELEMENTS"),
    ([*BASE, *SHAPE, "--ld", "A=5"], "a row of A has 768 elements"),
    ([*BASE, *SHAPE, "--trials", "{out}"], "--trials goes with a search space: leave it out"),
    ([*BASE, *SHAPE, "--set", "tile.m=64"], "--set goes with a search space"),
    ([*BASE, *SHAPE, "--list"], "--list goes with a search space"),
    (["{space}", *SHAPE, "--dtype", "bf16"], "--dtype goes with --gemm, and {space} is a search"),
    (["{space}", *SHAPE, "--show-space"], "--show-space goes with --gemm"),
    (
        [*BASE, *SHAPE, "--shape", "512", "-o", "{out}"],
        "has room for one schedule, and there are 2",
    ),
    ([*BASE, *SHAPE, "-o", "{folder}"], "is a folder; name a file in it"),
    ([*BASE, "--shapes", "{folder}/none.txt"], "none.txt: no such file; it has a shape a line"),
    ([*BASE, "--shapes", "{listed}"], "{listed}:2:1: error: 12xx4: a shape is MxNxK"),
    ([*BASE, "--shapes", "{listed}"], "{listed}:3:3: error: q=4: the shape"),
    ([*BASE, "--shapes", "{listed}"], "{listed}:5:1: error: 8x0x8: an extent is 0"),
    ([*BASE, "--shapes", "{empty}"], "{empty}:1:1: error: the file has no shape"),
    ([*BASE, "--shapes", "{binary}"], "is not UTF-8"),
    (["{space}", "--shapes", "{listed}"], "{listed}:2:1: error: 12xx4: a shape is MxNxK"),
)


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_a_mistake_is_one_error_and_writes_nothing(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names = {
        "folder": tmp_path,
        "space": tmp_path / "space.sched",
        "out": tmp_path / "out.sched",
        "listed": tmp_path / "listed.txt",
        "empty": tmp_path / "empty.txt",
        "binary": tmp_path / "binary.txt",
    }
    names["space"].write_text("tile m={64, 128} n=64 k=8\n")
    names["listed"].write_text("512  # fine\n12xx4\n  q=4\n\n8x0x8 # none\n")
    names["empty"].write_text("\n# nothing\n")
    names["binary"].write_bytes(b"512\n\xff\xfe\n")
    before = sorted(tmp_path.iterdir())
    done = tune(*(argument.format(**names) for argument in arguments))
    assert done.exit_code == 2, done.output
    assert message.format(**names) in done.stderr and done.stdout == ""
    assert sorted(tmp_path.iterdir()) == before


def test_a_shape_is_what_the_hint_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hints of a shapes file work when they are followed."""
    OnFakes(monkeypatch)
    listed = tmp_path / "listed.txt"
    listed.write_text("2048x2304x768\nm=64,n=64,k=64\n")
    assert tune(*BASE, "--shapes", listed, "--budget", "0.1").exit_code == 0


def test_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    on = OnFakes(monkeypatch)
    found = gemmgen.tune(gemm=GEMM, dtype="bf16", shape=(2048, 2304, 768), shapes=[512], budget=8)
    assert [result.outcome for result in found.results] == ["proved", "proved"]
    assert found.text == found.results[0].text and cost(found.text or "") == found.results[0].ms
    assert str(found).startswith("tuned on an Fake GPU") and len(found.figures()["shapes"]) == 2  # type: ignore[arg-type]
    assert on.stores == [True]
    gemmgen.tune(gemm=GEMM, dtype="bf16", shape="64", budget=0.1, store=False)
    assert on.stores == [True, False]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gemmgen.tune(), "tune takes what to tune"),
        (lambda: gemmgen.tune("tile m={8, 16}\n", gemm=GEMM), "not both"),
        (lambda: gemmgen.tune(gemm=GEMM), "tune needs a shape"),
        (lambda: gemmgen.tune(gemm=GEMM, shape=64, budget=0), "a number of seconds above 0"),
        (lambda: gemmgen.tune(gemm=GEMM, shape=64, budget="60"), "a number of seconds above 0"),
        (lambda: gemmgen.tune(gemm=GEMM, shape=64, seed=3), "seed= goes with a search space"),
        (lambda: gemmgen.tune(gemm=GEMM, shape=64, gpu="H900"), "H900"),
        (lambda: gemmgen.tune(gemm=GEMM, shape=0), "extents of at least 1"),
        (lambda: gemmgen.tune(gemm=GEMM, shapes=64), "shapes"),
        (lambda: gemmgen.tune(gemm=3, shape=64), "gemm= is a text"),
        (lambda: gemmgen.tune("tile m={8, 16}\n", [64], gpu="H200"), "go with gemm="),
    ],
)
def test_a_mistake_in_python_is_an_error_of_usage(call: Callable[[], object], message: str) -> None:
    with pytest.raises(gemmgen.UsageError, match=message):
        call()


def test_the_store_has_each_result_in_the_problems_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one problem stored is a candidate for another with other names, and for near shapes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    mine = Request.of(GEMM, (2048, 2304, 768), dtype="bf16", epilogue="relu(acc + bias[n])")
    other = Request.of(
        "Y[r, o] = X[r, i] * W[o, i]", (2048, 2304, 1024), dtype="bf16", epilogue="relu(acc + b[o])"
    )
    text = format_schedule(choose(mine, measured=False).schedule)
    keep = keeping.keeper(True)(HERE)
    assert keep.stored(mine) == [] or "X[" not in keep.stored(mine)[0]
    keep.keep(mine, text, 0.011, 0.012)
    again = keeping.keeper(True)(HERE)
    assert again.stored(mine)[0] == text
    renamed = again.stored(other)[0]
    assert "gemm            Y[r, o] = X[r, i] * W[o, i]" in renamed
    assert renamed == format_schedule(parse_schedule(Source(renamed)))


def test_a_dropped_result_leaves_what_was_stored_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A brief timing that a race does not confirm replaces no earlier result; a wrong one does."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    mine = Request.of(GEMM, (2048, 2304, 768), dtype="bf16")
    text = format_schedule(choose(mine, measured=False).schedule)

    def seconds() -> list[float]:
        found = Results.open().exact(ProblemKey.of_request(mine), HERE.name)
        return [result.seconds for result in found]

    keeping.keeper(True)(HERE).keep(mine, text, 11.0, 12.0)
    later = keeping.keeper(True)(HERE)
    later.keep(mine, text, 9.0, None)
    later.keep(mine, text, 8.0, None)
    assert seconds() == [0.008]
    later.drop(mine, text, wrong=False)
    assert seconds() == [0.011]
    later.drop(mine, text, wrong=False)
    assert seconds() == [0.011]
    later.drop(mine, text, wrong=True)
    assert seconds() == []


def test_a_copy_has_the_strides_that_are_asked_for() -> None:
    array = np.arange(24, dtype="uint16").reshape(2, 3, 4)
    found = strided(array, (60, 10, 1), np)
    assert (found == array).all() and found.strides == (120, 20, 2)
    between = np.lib.stride_tricks.as_strided(found, (10,), (2,))
    assert (between[4:] == 0xFFFF).all()


@pytest.mark.proof
def test_a_runner_is_changed_in_its_process() -> None:
    """One process measures one request after the other; also one that ended starts again."""
    others = set(multiprocessing.active_children())

    def processes() -> list[BaseProcess]:
        return [one for one in multiprocessing.active_children() if one not in others]

    runner = RemoteRunner(partial(fakes.FragileRunner, frozenset({4})))
    four, six = (Candidate(n, fakes.interface(), "sm_80", fakes.FILES) for n in (4, 6))
    try:
        assert runner.device_info == fakes.HERE
        (process,) = processes()
        runner.change(partial(fakes.FragileRunner, frozenset({6})))
        (reading,) = runner.time([four], rounds=1)
        assert reading.ms and processes() == [process]
        (reading,) = runner.time([six], rounds=1)  # ends the process
        assert reading.finding is not None and reading.finding.status == "crashed"
        assert runner.check([four]) == (None,)
        (process,) = processes()
        process.kill()
        process.join()
        runner.change(partial(fakes.FragileRunner, frozenset()))
        assert [reading.ms for reading in runner.time([four, six], rounds=1)].count(()) == 0
    finally:
        runner.end()


@pytest.mark.proof
@pytest.mark.skipif(compiler.available() is not None, reason="compiles")
def test_processes_judge_compile_and_measure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All but the GPU itself: two shapes, kernels of two targets, a leading dimension."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(gpu_tuning, "GpuRunner", StubRunner)
    begin = time.monotonic()
    call = (*BASE, "--shape", "2x512x512", "--shape", "256x512x256", "--ld", "A=512")
    done = tune(*call, "--budget", "8", "--jobs", "2", "--json")
    assert done.exit_code == 0, done.stderr
    assert time.monotonic() - begin < 40
    found = json.loads(done.stdout)["shapes"]
    assert [x["outcome"] for x in found] == ["proved", "proved"]
    assert all(x["tried"] >= 8 for x in found) and "error of gemmgen" not in done.stderr
    wanted = Request.of(GEMM, (256, 512, 256), dtype="bf16", gpu=HERE.gpu, ld={"A": 512})
    texts = keeping.keeper(True)(HERE).stored(wanted)
    assert found[1]["schedule"].endswith(texts[0])
