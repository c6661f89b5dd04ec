"""What is kept for the next process: used as this user wrote it or not at all, and never needed."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import patched
import pytest

from gemmgen.base import caches
from gemmgen.base.source import Source
from gemmgen.emit import printing
from gemmgen.pipeline import compile_source
from gemmgen.schedule import examples, grammar
from gemmgen.sim import programs, toolchain
from gemmgen.sim.run import CompiledKernel

from .running import EXAMPLES, fresh

NAIVE = (EXAMPLES / "naive.sched").read_text(encoding="utf-8")
FILES = {"code": bytes(range(256)), "empty": b""}


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def in_a_links_place(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def give_away(path: Path) -> None:
    if os.getuid():
        pytest.skip("only root can give a file to another user")
    os.chown(path, 65534, -1)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a flipped bit": lambda entry: flip(entry / "code"),
    "a flipped bit of the digest": lambda entry: flip(entry / "sha256"),
    "a digest that is not UTF-8": lambda entry: (entry / "sha256").write_bytes(b"\xff" * 40),
    "half a file": lambda entry: (entry / "code").write_bytes(FILES["code"][:128]),
    "a file more": lambda entry: (entry / "more").write_bytes(b""),
    "a file less": lambda entry: (entry / "empty").unlink(),
    "another file's content": lambda entry: (entry / "code").replace(entry / "empty"),
    "a file that others may write": lambda entry: (entry / "code").chmod(0o602),
    "a file that a group may write": lambda entry: (entry / "code").chmod(0o620),
    "a folder that others may write": lambda entry: entry.chmod(0o777),
    "another's file": lambda entry: give_away(entry / "code"),
    "another's folder": give_away,
    "a link to a file": lambda entry: in_a_links_place(entry / "code"),
    "a link to a folder": in_a_links_place,
    "a pipe": lambda entry: pipe(entry / "code"),
    "a file in a folder's place": lambda entry: (shutil.rmtree(entry), entry.touch()),
}


def test_gives_back_what_was_written(home: Path) -> None:
    assert caches.read("an-entry") is None
    assert caches.write("an-entry", FILES) == home / "gemmgen" / "an-entry"
    assert caches.read("an-entry") == FILES


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_was_damaged_is_absent_and_made_again(damage: str, home: Path) -> None:
    entry = caches.write("an-entry", FILES)
    assert entry is not None
    DAMAGE[damage](entry)
    assert caches.read("an-entry") is None
    assert caches.write("an-entry", FILES) == entry
    assert caches.read("an-entry") == FILES
    assert not list((home / "gemmgen").glob(".*.old")), "nothing is left over"


def test_an_entry_of_another_name_is_none(home: Path) -> None:
    entry = caches.write("an-entry", FILES)
    assert entry is not None
    entry.rename(entry.with_name("another"))
    assert caches.read("another") is None


def test_the_folder_is_the_users_own(home: Path) -> None:
    found = caches.folder()
    assert found == home / "gemmgen" and found.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", [lambda f: f.chmod(0o777), lambda f: f.chmod(0o770), give_away])
def test_a_folder_that_others_could_write_is_not_used(
    damage: Callable[[Path], None], home: Path
) -> None:
    (home / "gemmgen").mkdir(mode=0o700)
    damage(home / "gemmgen")
    assert caches.folder() is None
    assert caches.write("an-entry", FILES) is None and caches.read("an-entry") is None


def test_a_link_is_not_used(home: Path) -> None:
    (home / "elsewhere").mkdir(mode=0o700)
    (home / "gemmgen").symlink_to(home / "elsewhere")
    assert caches.folder() is None


def test_can_be_switched_off(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caches.write("an-entry", FILES)
    monkeypatch.setenv("GEMMGEN_CACHE", "0")
    assert caches.read("an-entry") is None and caches.write("an-entry", FILES) is None


def test_keys_tell_parts_apart() -> None:
    keys = {caches.key("a", "b"), caches.key("ab"), caches.key("", "ab"), caches.key("b", "a")}
    assert len(keys) == 4


def test_the_entries_read_last_stay(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(4):
        entry = caches.write(f"entry-{i}", {"data": bytes(1 << 16)})
        assert entry is not None
        os.utime(entry, (1000 + i, 1000 + i))
    assert caches.read("entry-0") is not None
    monkeypatch.setattr(caches, "MOST_BYTES", 150_000)
    (home / "gemmgen" / ".tidied").unlink()
    caches.write("last", {"data": b""})
    assert {path.name for path in (home / "gemmgen").glob("[!.]*")} == {
        "entry-0",
        "entry-3",
        "last",
    }


# Emitting.


def emitted() -> str:
    """The text as a process makes it that has nothing in memory."""
    patched.forget()
    grammar._lark.cache_clear()
    grammar._tree.cache_clear()
    printing._codes.cache_clear()
    printing._template.cache_clear()
    return compile_source(Source(NAIVE, "naive.sched")).text


@pytest.mark.proof
def test_a_flipped_bit_changes_no_text(home: Path) -> None:
    known = emitted()
    kept = [path for path in (home / "gemmgen").glob("*/*")]
    names = {path.parent.name.partition("-")[0] for path in kept}
    assert names == {"grammar", "templates"}
    for path in kept:
        flip(path)
    assert emitted() == known
    assert all(caches.read(path.parent.name) for path in kept), "made again"


def test_a_second_process_builds_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = emitted()
    monkeypatch.setattr(grammar, "Lark", type("Loaded", (), {"load": grammar.Lark.load}))
    monkeypatch.setattr(printing.jinja2.Environment, "compile", None)
    assert emitted() == known


@pytest.mark.proof
def test_emits_where_nothing_can_be_kept() -> None:
    done = fresh(
        "emit", EXAMPLES / "naive.sched", env={**os.environ, "XDG_CACHE_HOME": "/dev/null"}
    )
    assert (done.returncode, done.stderr) == (0, b"") and done.stdout.startswith(b"// ")


# Programs for this machine.


@pytest.fixture
def compiled(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each call of g++ whether it compiled the runner; nothing is compiled before.

    Quickly: a runner with -O2 takes two seconds."""
    calls: list[bool] = []
    gxx = toolchain.gxx

    def counting(*arguments: str, directory: Path | None = None) -> None:
        calls.append("-O0" in arguments)
        gxx(*arguments, directory=directory)

    flags = tuple("-O0" if flag == "-O2" else flag for flag in toolchain.RUNNER_FLAGS)
    assert "-O0" in flags
    monkeypatch.setattr(toolchain, "RUNNER_FLAGS", flags)
    monkeypatch.setattr(toolchain, "gxx", counting)
    monkeypatch.setattr(programs, "_runner_objects", programs._runner_objects.__wrapped__)
    return calls


def run_naive() -> None:
    kernel = compile_source(Source((examples.path_of("naive")).read_text(encoding="utf-8")))
    CompiledKernel(kernel.text, kernel.interface).close()


@pytest.mark.proof
@pytest.mark.skipif(shutil.which("g++") is None, reason="compiles, with g++")
def test_a_kernel_and_the_runner_are_compiled_once(home: Path, compiled: list[bool]) -> None:
    run_naive()
    assert compiled == [False, True, False]  # the kernel, the runner, and both linked
    run_naive()
    assert len(compiled) == 3
    (program,) = (home / "gemmgen").glob("host-*/kernel")
    flip(program)
    run_naive()
    assert len(compiled) == 5 and sum(compiled) == 1
    (fibers,) = (home / "gemmgen").glob("runner-*/fibers.o")
    flip(fibers)
    program.chmod(0o722)
    run_naive()
    assert len(compiled) == 8 and sum(compiled) == 2


@pytest.mark.proof
@pytest.mark.skipif(shutil.which("g++") is None, reason="compiles, with g++")
def test_a_process_links_the_runner_after_the_cache_has_evicted_it(
    home: Path, compiled: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_runner_objects", functools.cache(programs._runner_objects))
    run_naive()
    for entry in (home / "gemmgen").glob("*-*"):
        shutil.rmtree(entry)
    run_naive()
    assert compiled == [False, True, False, False, False]  # the kernel and the link again
