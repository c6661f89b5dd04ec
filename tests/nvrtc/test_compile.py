import re
import shutil

import compilers
import pytest
from functions import with_functions
from gpu import kernels

from gemmgen.base.errors import CannotCheck, UsageError
from gemmgen.gpu import compiler

pytestmark = pytest.mark.skipif(compiler.available() is not None, reason=str(compiler.available()))

ARCHITECTURES = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_120"]
NEEDS = {
    "cluster": ["sm_90a"],
    "copied_in": ARCHITECTURES[4:6],
    "copied_out": ARCHITECTURES[4:],
    "ring": ["sm_90a"],
    "stored": ARCHITECTURES[4:],
    "warpgroup": ["sm_90a"],
    "warpgroup_mn_major": ["sm_90a"],
    "warpgroups": ["sm_90a"],
}
"""The architectures that have multicasts, TMA, setmaxnreg, stmatrix and wgmma."""
HANDWRITTEN = sorted(path.stem for path in kernels.FOLDER.glob("*.cu"))


@pytest.mark.by_default("vectorized-sm_80", "naive-sm_80")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize(
    ("name", "arch"),
    [(name, arch) for name in HANDWRITTEN for arch in NEEDS.get(name, ARCHITECTURES)],
)
def test_a_good_kernel_compiles_without_a_word_or_a_spill(name: str, arch: str) -> None:
    text = kernels.text(name)
    compiled = compiler.compile_text(with_functions(text), arch)
    assert compiled.cubin.startswith(b"\x7fELF")
    assert f".target {arch}" in compiled.ptx
    assert compiled.warnings == ""
    assert compiled.registers > 8
    assert (compiled.spills, compiled.stack) == (0, 0)


def test_shared_memory_is_read_from_the_report() -> None:
    assert compiler.compile_text(kernels.text("tiled"), "sm_80").shared == 2 * 32 * 32 * 4


def test_spills_are_counted_in_bytes() -> None:
    compiled = compiler.compile_text(CROWDED, "sm_90", strict=False)
    assert compiled.spills > 0
    assert "ptxas" in compiled.log


def test_a_warning_is_an_error() -> None:
    text = kernels.text("naive").replace("float acc = 0.0f;", "float acc = 0.0f; int idle;")
    with pytest.raises(compiler.CompileError, match="idle") as caught:
        compiler.compile_text(text, "sm_80")
    assert "ptxas" not in caught.value.log
    assert compiler.compile_text(text, "sm_80", strict=False).warnings


def test_a_refused_text_gives_the_compilers_words() -> None:
    with pytest.raises(compiler.CompileError, match='expected a ";"') as caught:
        compiler.compile_text(kernels.text("naive").replace("0.0f;", "0.0f", 1), "sm_80")
    assert caught.value.exit_code == 1


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(compiler.CompileError, match="gpu-architecture"):
        compiler.compile_text(kernels.text("naive"), "sm_7")


def test_bytes_and_report_are_the_same_in_another_folder_and_a_second_time(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = kernels.text("naive")
    first = compiler.compile_text(text, "sm_80")
    monkeypatch.chdir(str(tmp_path))
    compiler._compile.cache_clear()  # pyright: ignore[reportPrivateUsage]
    second = compiler.compile_text(text, "sm_80")
    assert (first.cubin, first.ptx, first.registers) == (
        second.cubin,
        second.ptx,
        second.registers,
    )


def test_a_missing_compiler_is_one_sentence_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with compilers.none_at_all(monkeypatch):
        why = compiler.available()
    assert why is not None and compiler.INSTALL in why and "\n" not in why


needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not here")


@pytest.mark.proof
@needs_nvcc
def test_nvcc_compiles_where_nvrtc_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = kernels.text("naive")
    with compilers.only(monkeypatch, compilers.hide_nvrtc):
        found = compiler.compile_text(text, "sm_90")
        assert compiler.identity().startswith(found.compiler)
    assert re.fullmatch(r"nvcc \d+\.\d+\.\d+", found.compiler)
    assert found.cubin.startswith(b"\x7fELF") and ".target sm_90" in found.ptx
    assert found.registers > 8 and (found.spills, found.shared, found.warnings) == (0, 0, "")


@pytest.mark.proof
@needs_nvcc
def test_nvcc_refuses_and_warns_as_nvrtc_does(monkeypatch: pytest.MonkeyPatch) -> None:
    naive = kernels.text("naive")
    idle = naive.replace("float acc", "int idle; float acc", 1)
    with compilers.only(monkeypatch, compilers.hide_nvrtc):
        with pytest.raises(compiler.CompileError, match='expected a ";"'):
            compiler.compile_text(naive.replace("0.0f;", "0.0f", 1), "sm_80")
        with pytest.raises(compiler.CompileError, match="idle"):
            compiler.compile_text(idle, "sm_80")


@needs_nvcc
@pytest.mark.proof
def test_nvcc_gives_the_same_bytes_twice_and_the_path_of_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = kernels.text("naive")
    with compilers.only(monkeypatch, compilers.hide_nvrtc):
        found = compiler.compiler()
        first = found.compile(text, "", "sm_80", compiler.OPTIONS)
        again = found.compile(text, "", "sm_80", compiler.OPTIONS)
        lines = found.compile(text, "/some/where.cu", "sm_80", compiler.OPTIONS)
    assert first.cubin == again.cubin and b"where.cu" in lines.cubin


@needs_nvcc
def test_a_variable_names_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiler.CHOICE, "nvcc")
    assert compiler.compiler().name.startswith("nvcc ")
    monkeypatch.setenv(compiler.CHOICE, "nvrtc")
    assert compiler.compiler().name.startswith("NVRTC ")
    missing = pytest.raises(CannotCheck, match=r"^nvrtc is not here, so nothing")
    with compilers.only(monkeypatch, compilers.hide_nvrtc), missing:
        compiler.compiler()
    monkeypatch.setenv(compiler.CHOICE, "clang\n")
    with pytest.raises(UsageError, match=r"^GEMMGEN_COMPILER=clang.: it is nvrtc or nvcc$"):
        compiler.compiler()


CROWDED = """
extern "C" __global__ void __maxnreg__(32) crowded(const float *in, float *out) {
  float value[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) value[i] = in[i * 256 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 64; ++i) out[(63 - i) * 256 + threadIdx.x] = value[i] * value[(i + 7) % 64];
}
"""
