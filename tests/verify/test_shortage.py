"""What this machine lacks is not a mistake of a kernel's: a layer that could not run is skipped,
and a shape that was asked for and not run is a check not made."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from cli.running import gemmgen

from gemmgen.base import shortage, temporary
from gemmgen.base.errors import CannotCheck
from gemmgen.gpu import nvcc
from gemmgen.proof import cpu, gpu, layers
from gemmgen.proof.outcome import passed, skipped
from gemmgen.sim import programs, toolchain

from .subjects import NAIVE, TILED, subject

NO_ROOM = os.strerror(errno.ENOSPC)


@pytest.fixture
def uncached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs and verdicts are made again."""
    monkeypatch.setenv("GEMMGEN_CACHE", "0")
    programs._runner_objects.cache_clear()
    temporary._of_process.cache_clear()


def gxx(monkeypatch: pytest.MonkeyPatch, folder: Path, says: str) -> None:
    """A g++ that fails with these words."""
    tool = folder / "g++"
    tool.write_text(f'#!/bin/sh\necho "{says}" >&2\nexit 1\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.usefixtures("uncached")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE])
def test_a_compiler_without_room_checks_nothing(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gxx(monkeypatch, tmp_path, f"fatal error: error writing to /tmp/x.s: {os.strerror(number)}")
    outcome = cpu.check(subject(TILED))
    assert outcome.status == "skipped" and os.strerror(number) in outcome.reason


@pytest.mark.usefixtures("uncached")
def test_a_compiler_on_a_full_disk_checks_nothing_whatever_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gxx(monkeypatch, tmp_path, "collect2: file truncated")
    assert cpu.check(subject(TILED)).status == "failed"
    monkeypatch.setattr(shortage, "LEAST_FREE", 1 << 62)
    outcome = cpu.check(subject(TILED))
    assert outcome.status == "skipped" and "bytes left" in outcome.reason


@pytest.mark.usefixtures("uncached")
def test_a_text_that_a_compiler_refuses_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gxx(monkeypatch, tmp_path, "kernel.cpp:1: error: x was not declared")
    outcome = cpu.check(subject(TILED))
    assert outcome.status == "failed" and "was not declared" in outcome.detail


def no_room(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, NO_ROOM)


@pytest.mark.usefixtures("uncached")
@pytest.mark.parametrize("where", ["folder", "compile_unit"])
def test_files_that_cant_be_written_check_nothing(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temporary if where == "folder" else toolchain, where, no_room)
    assert cpu.check(subject(NAIVE)).status == "skipped"
    with pytest.raises(CannotCheck, match=NO_ROOM):
        programs.program(subject(NAIVE).emitted.text, subject(NAIVE).emitted.interface)


@pytest.mark.parametrize("layer", layers.LAYERS)
def test_no_layer_fails_for_want_of_room(layer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = __import__(f"gemmgen.proof.{layers.LAYERS[layer]}", fromlist=["check"])
    monkeypatch.setattr(module, "check", no_room)
    others = {name: file for name, file in layers.LAYERS.items() if name == layer}
    monkeypatch.setattr(layers, "LAYERS", others)
    (outcome,) = layers.verify(subject(NAIVE))
    assert (outcome.layer, outcome.status) == (layer, "skipped") and NO_ROOM in outcome.reason


def test_nvcc_without_room_compiles_nothing(tmp_path: Path) -> None:
    with pytest.raises(CannotCheck, match=NO_ROOM):
        nvcc.check_machine(f"<built-in>: fatal error: when writing: {NO_ROOM}", str(tmp_path))
    with pytest.raises(CannotCheck, match="host compiler"):
        nvcc.check_machine("nvcc fatal: Cannot find a host compiler", str(tmp_path))
    nvcc.check_machine("kernel.cu(3): error: identifier is undefined", str(tmp_path))


ASKED = ["--shape", "3000"]


@pytest.mark.parametrize(
    ("on_gpu", "shapes", "code"),
    [
        (skipped("G2", "no GPU"), ASKED, 3),
        (skipped("G2", "no GPU"), [*ASKED, "--shape", "2x3x5"], 3),
        (skipped("G2", "no GPU"), ["--shape", "2x3x5"], 0),
        (passed("G2", "7 cases"), ASKED, 0),
    ],
)
def test_a_shape_that_was_not_run_is_not_proved(
    on_gpu: layers.Outcome, shapes: list[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "check", lambda subject: on_gpu)
    path = Path(__file__).parents[2] / "examples" / "naive.sched"
    result = gemmgen("verify", path, *shapes)
    assert result.exit_code == code, result.stdout
    assert ("not run at 3000x3000x3000: C2 runs at most" in result.stdout) == (code == 3)
