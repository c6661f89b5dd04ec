import re

import pytest
from gpu import kernels

from gemmgen.emit.intrinsics import INTRINSICS
from gemmgen.gpu import nvrtc

pytestmark = pytest.mark.skipif(nvrtc.available() is not None, reason=str(nvrtc.available()))

ARCHITECTURES = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_120"]
HANDWRITTEN = sorted(path.stem for path in kernels.FOLDER.glob("*.cu"))


def called(function: str) -> str:
    """The name of an instruction's function, as a call begins."""
    return re.findall(r"gg_\w+\(", function)[0]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", HANDWRITTEN)
def test_a_good_kernel_compiles_without_a_word_or_a_spill(name: str, arch: str) -> None:
    text = kernels.text(name)
    used = [function for function in INTRINSICS if called(function) in text]
    compiled = nvrtc.compile_text("\n\n".join((*used, text)), arch)
    assert compiled.cubin.startswith(b"\x7fELF")
    assert f".target {arch}" in compiled.ptx
    assert compiled.warnings == ""
    assert compiled.registers > 8
    assert (compiled.spills, compiled.stack) == (0, 0)


def test_shared_memory_is_read_from_the_report() -> None:
    assert nvrtc.compile_text(kernels.text("tiled"), "sm_80").shared == 2 * 32 * 32 * 4


def test_spills_are_counted_in_bytes() -> None:
    compiled = nvrtc.compile_text(CROWDED, "sm_90", strict=False)
    assert compiled.spills > 0
    assert "ptxas" in compiled.log


def test_a_warning_is_an_error() -> None:
    text = kernels.text("naive").replace("float acc = 0.0f;", "float acc = 0.0f; int idle;")
    with pytest.raises(nvrtc.CompileError, match="idle") as caught:
        nvrtc.compile_text(text, "sm_80")
    assert "ptxas" not in caught.value.log
    assert nvrtc.compile_text(text, "sm_80", strict=False).warnings


def test_a_refused_text_gives_the_compilers_words() -> None:
    with pytest.raises(nvrtc.CompileError, match='expected a ";"') as caught:
        nvrtc.compile_text(kernels.text("naive").replace("0.0f;", "0.0f", 1), "sm_80")
    assert caught.value.exit_code == 1


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(nvrtc.CompileError, match="gpu-architecture"):
        nvrtc.compile_text(kernels.text("naive"), "sm_7")


def test_bytes_and_report_are_the_same_in_another_folder_and_a_second_time(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = kernels.text("naive")
    first = nvrtc.compile_text(text, "sm_80")
    monkeypatch.chdir(str(tmp_path))
    nvrtc._compile.cache_clear()  # pyright: ignore[reportPrivateUsage]
    second = nvrtc.compile_text(text, "sm_80")
    assert (first.cubin, first.ptx, first.registers) == (
        second.cubin,
        second.ptx,
        second.registers,
    )


def test_a_missing_package_is_one_sentence_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(nvrtc.importlib, "import_module", gone)
    nvrtc._nvrtc.cache_clear()  # pyright: ignore[reportPrivateUsage]
    try:
        why = nvrtc.available()
    finally:
        nvrtc._nvrtc.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert why is not None and nvrtc.INSTALL in why and "\n" not in why


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
