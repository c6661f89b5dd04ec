"""Warp stalls: what ncu prints is read, and a machine without it says so in one line."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from gemmgen.analyze import stall_table
from gemmgen.base.errors import CannotCheck
from gemmgen.base.source import Source
from gemmgen.cli import main
from gemmgen.gpu import device, stalls
from gemmgen.pipeline import Emitted, compile_source

from .test_loop import missing

VECTORIZED = Path(__file__).parents[2] / "examples/vectorized.sched"
needs_tool = pytest.mark.skipif(bool(missing()), reason=missing())
METRIC = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
VALUES = {
    "long_scoreboard": "1.50",
    "selected": "1",
    "barrier": "0.25",
    "gmma": "1,002.25",
    "sleeping": "0",
    "membar": "4.0e-03",
    "misc": "n/a",
    "barrier_not_issued": "0.2",
}


def printed(**values: str) -> str:
    """What ``ncu --csv --page raw`` prints: names, units, and a row for each kernel."""
    about = ["ID", "Process ID", "Kernel Name", "Block Size", "CC"]
    names = [*about, *map(METRIC.format, values), "smsp__issue_active.avg.per_cycle_active"]
    units = [""] * len(about) + ["inst"] * len(values) + [""]
    row = ["0", "71", "gemm", "(256, 1, 1)", "9.0", *values.values(), "0.83"]
    table = (",".join(f'"{cell}"' for cell in cells) for cells in (names, units, row))
    return "\n".join(
        (
            "==PROF== Connected to process 71 (/usr/bin/python3.12)",
            '==PROF== Profiling "gemm": 0%....50%....100% - 1 pass',
            "==PROF== Disconnected from process 71",
            *table,
        )
    )


REFUSED = """\
==PROF== Connected to process 71 (/usr/bin/python3.12)
==WARNING== Found outstanding GPU clock reset
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance
==PROF== Disconnected from process 71
"""


def emitted() -> Emitted:
    return compile_source(Source(VECTORIZED.read_text(), "vectorized"))


def test_the_reasons_are_read_the_most_first() -> None:
    found = stalls.parse(printed(**VALUES))
    assert [(stall.reason, stall.warps) for stall in found] == [
        ("gmma", 1002.25),
        ("long_scoreboard", 1.5),
        ("selected", 1.0),
        ("barrier", 0.25),
        ("membar", 0.004),
        ("sleeping", 0.0),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    (
        ("", "ncu reported no stalls"),
        (printed(), "ncu reported no stalls"),
        (printed(selected="n/a"), "ncu reported no stalls"),
        (REFUSED, "ncu says: ERR_NVGPUCTRPERM - The user does not have permission"),
        ("not launched: the kernel needs a GPU of sm_90 only", "the kernel needs a GPU of sm_90"),
        ("==WARNING== No kernels were profiled.", "ncu says: No kernels were profiled."),
    ),
)
def test_why_nothing_was_measured(text: str, why: str) -> None:
    with pytest.raises(CannotCheck) as said:
        stalls.parse(text)
    assert str(said.value).startswith(why) and "\n" not in str(said.value)


def test_the_table_adds_up_what_is_rare() -> None:
    found = stalls.parse(printed(long_scoreboard="1.5", selected="1", barrier="1.5", membar="0.01"))
    section = stall_table.table(stalls.Stalls("NVIDIA H200", found), (4096, 512, 1000))
    assert section.title == "warp stalls by reason, measured by ncu on NVIDIA H200 at 4096x512x1000"
    assert [row[:3] for row in section.rows] == [
        ("barrier", "1.50", "37.4%"),
        ("long_scoreboard", "1.50", "37.4%"),
        ("selected", "1.00", "24.9%"),
        ("others", "0.01", "0.2%"),
    ]
    assert section.notes == ("a warp issues an instruction every 4.0 clocks, and waits in between",)


def runtime() -> SimpleNamespace:
    return SimpleNamespace(getDevice=lambda: 0)


def with_gpu(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str | None) -> None:
    """A machine that has a GPU and this script as its ``ncu``, or none."""
    monkeypatch.setattr(
        device, "cupy", lambda: SimpleNamespace(cuda=SimpleNamespace(runtime=runtime()))
    )
    monkeypatch.setattr(device, "name", lambda number: f"GPU {number}")
    monkeypatch.setattr(stalls.nvcc, "folders", lambda: [str(folder)])
    if script is not None:
        ncu = folder / "ncu"
        ncu.write_text(f"#!/bin/sh\n{script}\n")
        ncu.chmod(0o755)


def test_ncu_watches_one_launch_of_the_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "printed").write_text(printed(selected="1", wait="2"))
    script = f'echo "$@" > {tmp_path}/asked; cat "$(echo "$@" | sed s/.*launch_once.//'
    script += f" | cut -d' ' -f1)\" > {tmp_path}/schedule; cat {tmp_path}/printed"
    with_gpu(monkeypatch, tmp_path, script)
    found = stalls.measured(emitted(), (64, 32, 16))
    assert found.gpu == "GPU 0" and [stall.reason for stall in found.reasons] == [
        "wait",
        "selected",
    ]
    asked = (tmp_path / "asked").read_text()
    assert "--page raw" in asked and "--kernel-name gemm " in asked
    assert asked.endswith(" 64 32 16\n")
    given = compile_source(Source((tmp_path / "schedule").read_text()))
    assert given.text == emitted().text


@pytest.mark.skipif(Path("/usr/local/cuda/bin/ncu").exists(), reason="ncu is here")
def test_without_ncu_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with_gpu(monkeypatch, tmp_path, None)
    line = stall_table.stall_table(emitted(), (64, 64, 64))
    why = "ncu (Nsight Compute) is not on PATH, and not in CUDA_HOME"
    assert line == f"warp stalls were not measured: {why}"


@pytest.mark.proof
@needs_tool
def test_explain_has_the_table_or_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown() -> str:
        return CliRunner().invoke(main, ["explain", str(VECTORIZED), "--sass"]).stdout

    measured = stalls.Stalls("NVIDIA H200", stalls.parse(printed(selected="1", wait="2")))
    monkeypatch.setattr(stalls, "measured", lambda *_: measured)
    text = shown()
    assert "measured by ncu on NVIDIA H200 at 4096x4096x4096" in text
    assert "  wait       2.00  66.7%  a fixed latency" in text

    def nothing(*_: object) -> stalls.Stalls:
        raise CannotCheck("ncu is not here")

    monkeypatch.setattr(stalls, "measured", nothing)
    assert "\n  (warp stalls were not measured: ncu is not here)\n" in shown()
