"""A library whose products only record how they were called, with the Python package over it.

``bindings.cpp`` is compiled as it is, against a CUDA runtime that keeps a log of its own calls.
"""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from gemmgen.library.chosen_kernels import kernels_of
from gemmgen.library.library_files import files_of
from gemmgen.library.library_spec import parse_spec

SPEC = """\
name = "mini"

[product.linear]
gemm = "C[m, n] = A[m, k] * B[n, k]"
dtype = "bf16"
epilogue = "acc + bias[n]"
shapes = ["16x256x512"]

[product.single]
gemm = "C[m, n] = A[m, k] * B[k, n]"
shapes = ["512x512x512"]

[product.batched]
gemm = "C[b, m, n] = A[b, m, k] * B[k, n]"
dtype = "f16"
epilogue = "acc * scale"
shapes = ["64x64x64,b=3"]

[product.bytes]
gemm = "C[m, n] = A[m, k] * B[n, k]"
dtype = "A=e4m3 B=e4m3 C=bf16"
shapes = ["64x64x64"]

[product.added]
gemm = "C[m, n] = A[m, k] * B[k, n]"
epilogue = "acc + C[m, n]"
shapes = ["512x512x512"]
"""
RUNTIME = Path(__file__).with_name("stub_runtime.h")
STUBS = """\
#include "mini.h"
#include <string>

std::string said;
size_t needed;
int result;
extern "C" {
const char *take_log()
{ static std::string taken; taken = said; said.clear(); return taken.c_str(); }
void set_needed(size_t bytes) { needed = bytes; }
void set_result(int error) { result = error; }
void set_capture(unsigned long long id) { stub::capture = id; }
void end_graph() { stub::end_graph(); }
size_t mini_linear_workspace(int, int, int) { return needed; }
size_t mini_single_workspace(int, int, int) { return 0; }
size_t mini_batched_workspace(int, int, int, int) { return 0; }
size_t mini_bytes_workspace(int, int, int) { return 0; }
size_t mini_added_workspace(int, int, int) { return 0; }
}
namespace stub {
unsigned long long capture;
void (*destroy)(void *);
void *owned;
void log(const std::string &text) { said += text + "\\n"; }
}
template <typename T> std::string shown(T x) { return std::to_string(x); }
template <typename T> std::string shown(T *x)
{ return std::to_string(reinterpret_cast<unsigned long long>(x)); }
template <typename... T> cudaError_t record(const char *name, T... values)
{
    std::string text(name);
    ((text += " " + shown(values)), ...);
    stub::log(text);
    return static_cast<cudaError_t>(result);
}
extern "C" cudaError_t mini_linear(int M, int N, int K, const unsigned short *A, int lda,
    const unsigned short *B, int ldb, unsigned short *C, int ldc, const unsigned short *bias,
    void *workspace, size_t bytes, cudaStream_t stream)
{ return record("linear", M, N, K, A, lda, B, ldb, C, ldc, bias, workspace, bytes, stream); }
extern "C" cudaError_t mini_single(int M, int N, int K, float alpha, const float *A, int lda,
    const float *B, int ldb, float beta, float *C, int ldc, void *, size_t, cudaStream_t stream)
{ return record("single", M, N, K, alpha, A, lda, B, ldb, beta, C, ldc, stream); }
extern "C" cudaError_t mini_batched(int M, int N, int K, int size_b, const unsigned short *A,
    int lda, long long stride_A_b, const unsigned short *B, int ldb, unsigned short *C, int ldc,
    long long stride_C_b, float scale, void *, size_t, cudaStream_t stream)
{
    return record("batched", M, N, K, size_b, A, lda, stride_A_b, B, ldb, C, ldc, stride_C_b, scale,
        stream);
}
extern "C" cudaError_t mini_bytes(int M, int N, int K, float, const unsigned char *A, int lda,
    const unsigned char *B, int ldb, float, unsigned short *C, int ldc, void *, size_t,
    cudaStream_t stream)
{ return record("bytes", M, N, K, A, lda, B, ldb, C, ldc, stream); }
extern "C" cudaError_t mini_added(int M, int N, int K, const float *A, int lda, const float *B,
    int ldb, float *C, int ldc, void *, size_t, cudaStream_t stream)
{ return record("added", M, N, K, A, lda, B, ldb, C, ldc, stream); }
"""


@cache
def texts() -> dict[str, str]:
    """The files of the library."""
    spec = parse_spec(SPEC, "mini.toml")
    return files_of(spec, list(kernels_of(spec)))


class Stub:
    """The package, and what its products were called with."""

    def __init__(self, package: ModuleType, shared: Path) -> None:
        self.package = package
        self._library = ctypes.CDLL(str(shared))
        self._library.take_log.restype = ctypes.c_char_p
        self._library.set_needed.argtypes = (ctypes.c_size_t,)
        self._library.set_capture.argtypes = (ctypes.c_ulonglong,)

    def log(self) -> list[str]:
        """What was called since the last look: products with arguments, functions of CUDA."""
        return self._library.take_log().decode().splitlines()

    def need(self, size: int) -> None:
        """Sets the bytes of workspace that ``linear`` wants."""
        self._library.set_needed(size)

    def fail(self, error: int) -> None:
        """Sets what products return."""
        self._library.set_result(error)

    def capture(self, number: int) -> None:
        """Streams are captured into the graph of this number; 0: they are not."""
        self._library.set_capture(number)

    def end_graph(self) -> None:
        """The last graph that retained something ends."""
        self._library.end_graph()


def built(folder: Path) -> Stub:
    """Compiles the stub in ``folder``, and imports the package from there."""
    package = folder / "python" / "mini"
    package.mkdir(parents=True)
    for name in ("mini.h", "python/bindings.cpp", *(f"python/mini/{x}.py" for x in MODULES)):
        (folder / name).write_text(texts()[name], encoding="utf-8")
    (folder / "stubs.cpp").write_text(STUBS, encoding="utf-8")
    (folder / "cuda_runtime_api.h").write_text(RUNTIME.read_text(encoding="utf-8"))
    shared = package / "libmini_python.so"
    command = ["g++", "-std=c++17", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I."]
    command += ["python/bindings.cpp", "stubs.cpp", "-o", str(shared)]
    subprocess.run(command, cwd=folder, check=True)
    return Stub(imported("mini", package), shared)


MODULES = ("__init__", "_arrays")


def imported(name: str, package: Path) -> ModuleType:
    """The package in that folder."""
    found = importlib.util.spec_from_file_location(name, package / "__init__.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    try:
        found.loader.exec_module(module)
    finally:
        for known in [x for x in sys.modules if x == name or x.startswith(f"{name}.")]:
            del sys.modules[known]
    return module
