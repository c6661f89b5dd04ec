"""Where an output may not be written, nothing is, and nothing that was there is lost."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from gemmgen.cli import main

KEPT = "kept\n"


def _missing(folder: Path) -> str:
    return str(folder / "none" / "out.cu")


def _folder(folder: Path) -> str:
    return str(folder)


def _folder_by_a_slash(folder: Path) -> str:
    return f"{folder / 'kept.cu'}/"


def _below_a_file(folder: Path) -> str:
    return str(folder / "kept.cu" / "out.cu")


def _device(folder: Path) -> str:
    return "/dev/full"


def _pipe(folder: Path) -> str:
    os.mkfifo(folder / "pipe")
    return str(folder / "pipe")


def _link_to_a_device(folder: Path) -> str:
    (folder / "link").symlink_to("/dev/null")
    return str(folder / "link")


def _link_to_nowhere(folder: Path) -> str:
    (folder / "link").symlink_to(folder / "none" / "out.cu")
    return str(folder / "link")


def _link_outside(folder: Path) -> str:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "link").symlink_to(folder / "kept.cu")
    return str(inner / "link")


def _link_in_a_ring(folder: Path) -> str:
    (folder / "ring").symlink_to(folder / "ring")
    return str(folder / "ring")


def _link_to_the_schedule(folder: Path) -> str:
    (folder / "link.cu").symlink_to(folder / "x.sched")
    return str(folder / "link.cu")


def _the_schedule_by_another_name(folder: Path) -> str:
    os.link(folder / "x.sched", folder / "same.cu")
    return str(folder / "same.cu")


PLACES: tuple[Callable[[Path], str], ...] = (
    _missing,
    _folder,
    _folder_by_a_slash,
    _below_a_file,
    _device,
    _pipe,
    _link_to_a_device,
    _link_to_nowhere,
    _link_outside,
    _link_in_a_ring,
    _link_to_the_schedule,
    _the_schedule_by_another_name,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "x.sched").write_text("tile m=8 n=32\n")
    (tmp_path / "kept.cu").write_text(KEPT)
    return tmp_path


def _state(folder: Path) -> dict[str, bytes]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path): path.read_bytes() for path in files}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__.strip("_"))
def test_refuses_to_write(place: Callable[[Path], str], folder: Path) -> None:
    path = place(folder)
    before = _state(folder)
    result = CliRunner().invoke(main, ["emit", str(folder / "x.sched"), "-o", path])
    assert isinstance(result.exception, SystemExit)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("gemmgen: ") and result.stderr.count("\n") == 1
    assert _state(folder) == before


def test_a_link_within_its_folder_is_followed_and_stays_one(folder: Path) -> None:
    (folder / "link.cu").symlink_to(folder / "out.cu")
    arguments = ["emit", str(folder / "x.sched"), "-o", str(folder / "link.cu")]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    assert (folder / "link.cu").is_symlink()
    assert (folder / "out.cu").read_text().startswith("// gemm:")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_refuses_a_folder_that_is_read_only(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o555)
    arguments = ["emit", str(folder / "x.sched"), "-o", str(closed / "out.cu")]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, os.listdir(closed)) == (2, [])
    assert "Permission denied" in result.stderr


def test_refuses_a_file_that_is_read_only(folder: Path) -> None:
    kept = folder / "kept.cu"
    kept.chmod(0o444)
    result = CliRunner().invoke(main, ["emit", str(folder / "x.sched"), "-o", str(kept)])
    assert (result.exit_code, kept.read_text()) == (2, KEPT)
    assert "kept.cu can't be written: it is read-only" in result.stderr


def test_what_cannot_be_finished_is_not_begun(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    before = _state(folder)
    arguments = ["emit", str(folder / "x.sched"), "-o", str(folder / "kept.cu")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2 and "No space left on device" in result.stderr
    assert _state(folder) == before


def test_permissions_of_a_replaced_file_stay(folder: Path) -> None:
    kept = folder / "kept.cu"
    kept.chmod(0o640)
    arguments = ["emit", str(folder / "x.sched"), "-o", str(kept)]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640
