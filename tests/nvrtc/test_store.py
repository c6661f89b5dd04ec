from pathlib import Path

import pytest
from gpu import kernels

from gemmgen.gpu import compiler, store

pytestmark = pytest.mark.skipif(compiler.available() is not None, reason=str(compiler.available()))


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "gemmgen"


def test_the_source_lies_beside_the_cubin(cache: Path) -> None:
    found = store.stored(kernels.text("naive"), "sm_80")
    assert found.cubin.parent == found.source.parent and found.cubin.parent.parent == cache
    assert found.source.read_text() == kernels.text("naive")
    assert found.cubin.read_bytes().startswith(b"\x7fELF")


def test_a_second_call_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first = store.stored(kernels.text("naive"), "sm_80")
    monkeypatch.setattr(store.compiler, "compile_text", None)
    assert store.stored(kernels.text("naive"), "sm_80") == first


def test_a_report_of_what_passed_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    naive, warned = kernels.text("naive"), kernels.text("tiled").replace("float", "int idle; float")
    first = compiler.reported(naive, "sm_80")
    assert first.registers and "ptxas" in first.log
    for _ in range(2):
        with pytest.raises(compiler.CompileError):
            compiler.reported(warned, "sm_80")
    monkeypatch.setattr(compiler, "compile_text", None)
    assert compiler.reported(naive, "sm_80") == first
    with pytest.raises(TypeError):
        compiler.reported(naive, "sm_90")


def test_code_is_kept_for_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("compiled again")

    text = kernels.text("naive")
    compiler._compile.cache_clear()
    first = compiler.compile_text(text, "sm_80")
    compiler._compile.cache_clear()
    monkeypatch.setattr(type(compiler.compiler()), "compile", refuse)
    assert compiler.compile_text(text, "sm_80") == first
    with pytest.raises(AssertionError, match="compiled again"):
        compiler.compile_text(text, "sm_86")


@pytest.mark.parametrize("damage", [b"", b"\x7fELF and no more"])
def test_a_damaged_cubin_is_made_again(damage: bytes) -> None:
    found = store.stored(kernels.text("naive"), "sm_80")
    good = found.cubin.read_bytes()
    found.cubin.write_bytes(damage)
    assert store.stored(kernels.text("naive"), "sm_80").cubin.read_bytes() == good


def test_architectures_do_not_share_a_cubin() -> None:
    text = kernels.text("naive")
    assert store.stored(text, "sm_80").cubin != store.stored(text, "sm_90").cubin


def test_a_cache_that_cannot_be_made_gives_way_to_a_temporary_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert store.stored(kernels.text("naive"), "sm_80").cubin.exists()
