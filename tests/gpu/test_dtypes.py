"""Kernels of every type on a GPU: right against cuBLAS, and the bits of the CPU run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gemmgen.base.errors import CallError
from gemmgen.base.source import Source
from gemmgen.calling.inputs import drawn
from gemmgen.calling.launches import Case
from gemmgen.gpu import bench, elements
from gemmgen.gpu.launch import Kernel
from gemmgen.gpu.verify_cases import verify
from gemmgen.ir.dtypes import DType
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.numerics import formats
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import gpu as layer
from gemmgen.proof.outcome import Subject
from gemmgen.sim.allocation import allocated, arguments_of
from gemmgen.sim.run import compile_kernel

cp = pytest.importorskip("cupy")

FOLDER = Path(__file__).parents[2] / "examples" / "types"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.sched"))
BLOCKED = "tile m=64 n=64 k=16\ncache_shared A[k, m] B[k, n]\nregister_block m=8 n=8\n"
ASYNCHRONOUS = (
    "tile m=64 n=64 k=16\ncache_shared A B\nregister_block m=8 n=8\n"
    "vectorize A.global B.global width={}\ndouble_buffer A B stages=3\nasync_copy A B via=cp_async"
)
KERNELS = {
    "f16 to f32": f"dtype A=f16 B=f16\n{BLOCKED}vectorize A B width=8\nvectorize C width=4",
    "bf16 blocked": f"dtype A=bf16 B=bf16 C=bf16\n{BLOCKED}vectorize A B C width=8",
    "f16 times bf16": f"dtype A=f16 B=bf16 C=f16\n{BLOCKED}vectorize A B C width=2",
    "f32 to bf16": f"dtype C=bf16\n{BLOCKED}vectorize A B C width=4\ndouble_buffer A B",
    "f64 by columns": "gemm C[n, m] = A[k, m] * B[n, k]\ndtype A=f64 B=f64 C=f64 acc=f64\n"
    "tile m=32 n=32 k=8\ncache_shared A[k, m] B[k, n]\nregister_block m=4 n=4\n"
    "vectorize A C width=2",
    "e4m3": "target sm_89\ndtype e4m3",
    "e4m3 times e5m2": f"target sm_89\ndtype A=e4m3 B=e5m2 C=f16\n{BLOCKED}"
    "vectorize A B C width=8\nfuse_epilogue acc * SA[m] * SB[n]",
    "e5m2 to e4m3": f"target sm_89\ndtype A=e5m2 B=e5m2 C=e4m3\n{BLOCKED}vectorize C width=8",
    "asynchronous e4m3": f"target sm_89\ndtype e4m3\n{ASYNCHRONOUS.format(16)}",
    "i8": "dtype i8",
    "i8 blocked": f"dtype i8\n{BLOCKED}vectorize A B C width=4\ndouble_buffer A B",
    "i8 to f32": f"dtype A=i8 B=i8\n{BLOCKED}fuse_epilogue acc * SA[m] * SB[n]",
    "i8 to i8": f"dtype A=i8 B=i8 C=i8\n{BLOCKED}vectorize A B C width=8",
    "i8 in parts": f"dtype i8\n{BLOCKED}split_k parts=2 reduce=atomic",
    "i8 by warps": "gemm C[m, n] = A[m, k] * B[n, k]\ndtype i8\ntile m=4 n=4 k=128\n"
    "split_k within=warp\nvectorize A B width=4",
    "asynchronous i8": f"dtype i8\n{ASYNCHRONOUS.format(16)}",
    "asynchronous f16": f"dtype A=f16 B=f16 C=f16\n{ASYNCHRONOUS.format(8)}",
    "asynchronous f64": f"dtype A=f64 B=f64 C=f64 acc=f64\n{ASYNCHRONOUS.format(2)}",
    "two-byte f16 in dynamic memory": "dtype A=f16 B=f16\ntile m=128 n=256 k=27\n"
    "cache_shared A[k, m] B\nregister_block m=8 n=16\npad A by=1\nvectorize B width=8\n"
    "double_buffer A B stages=3",
}
SHAPES = ((1, 1, 1), (35, 37, 33), (127, 131, 257), (130, 260, 0))


def example(name: str) -> Emitted:
    return compile_source(Source((FOLDER / f"{name}.sched").read_text(), name))


def every() -> dict[str, Emitted]:
    found = {name: example(name) for name in EXAMPLES}
    return found | {name: compile_source(Source(text)) for name, text in KERNELS.items()}


EVERY = every()


@pytest.mark.parametrize("name", EVERY)
def test_is_right_against_cublas_and_exact_integers(name: str) -> None:
    outcome = layer.check(Subject(EVERY[name], SHAPES))
    assert outcome.status == "passed", outcome.detail or outcome.reason


@pytest.mark.parametrize("name", EXAMPLES)
def test_is_right_at_a_large_size(name: str) -> None:
    kernel = Kernel.of(EVERY[name])
    shape = (2048, 1984, 2048)
    cases = [Case(shape, "normal", 0.7, 0.0), Case(shape, "positive"), Case(shape)]
    given = layer.reference_of(EVERY[name])
    cases = cases if given is None else cases[:1]
    for outcome in verify(kernel, cases, reference=given, exact=False):
        assert outcome.status == "passed", outcome


@pytest.mark.parametrize("name", [n for n in EVERY if EVERY[n].schedule.epilogue is None])
def test_gives_the_bits_of_the_cpu_run(name: str) -> None:
    emitted = EVERY[name]
    interface, c = emitted.interface, emitted.program.problem.c.name
    on_gpu, on_cpu = Kernel.of(emitted), compile_kernel(emitted.text, interface)
    for shape in SHAPES:
        case = Case(shape, "normal", 0.7, -1.0, pad=8)
        memory = allocated(interface, case, drawn(interface, case))
        gpu: dict[str, object] = {}
        for tensor, matrix in memory.items():
            *rows, columns = matrix.view.shape
            padded = cp.zeros((*rows, matrix.pitch if rows else columns), matrix.view.dtype)
            padded[..., :columns] = cp.asarray(matrix.view)
            gpu[tensor] = padded[..., :columns]
        result = cp.asnumpy(on_gpu(**gpu, **case.scalars(interface)))
        on_cpu.run(arguments_of(interface, case, memory))
        assert np.array_equal(formats.bits(result), formats.bits(memory[c].view)), shape


def converter(name: str, source: DType, target: DType) -> Kernel:
    """``gg_to_f16`` and the like, an element a thread."""
    types = {"f32": "float", "f16": "unsigned short", "bf16": "unsigned short"}
    types |= dict.fromkeys(("e4m3", "e5m2"), "unsigned char")
    whole = next(e.text for e in EVERY.values() if f"{name}(" in e.text)
    function = whole[: whole.index("// ---- kernel ----")]
    function = function[function.rindex("__device__", 0, function.index(f" {name}(")) :]
    function = function[: function.index("\n}") + 2]
    a = Param("A", "tensor", ("n",), dtype=source)
    c = Param("C", "tensor", ("n",), written=True, read=False, dtype=target)
    block, tiles = (256, 1), (("N", 256),)
    interface = Interface("apply", (Param("N", "extent"), a, c), block, tiles, (), 0, 0, ())
    text = f"""{function}
extern "C" __global__ void
apply(int N, const {types[source]} *__restrict__ A, {types[target]} *__restrict__ C)
{{
    const int n = blockIdx.x * 256 + threadIdx.x;
    if (n < N) C[n] = {name}(A[n]);
}}
"""
    return Kernel(text, interface)


def same(one: npt.NDArray[np.generic], other: npt.NDArray[np.generic], dtype: DType) -> bool:
    """Bit for bit, but that any NaN is as good as another."""
    nan = formats.is_nan(one, dtype) & formats.is_nan(other, dtype)
    return bool((nan | (formats.bits(one) == formats.bits(other))).all())


@pytest.mark.parametrize("dtype", ("f16", "bf16"))
def test_conversions_are_those_of_the_models(dtype: DType) -> None:
    """G1: every one of the 65,536 patterns, and ten million bits of f32."""
    every = np.arange(1 << 16).astype(np.uint16).view(formats.STORAGE[dtype])
    wide = cp.empty((every.size,), "float32")
    converter(f"gg_from_{dtype}", dtype, "f32")(A=cp.asarray(every), C=wide)
    assert same(cp.asnumpy(wide), formats.numbers(every, dtype).astype(np.float32), "f32")
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 1 << 32, 10_000_000, dtype=np.uint64).astype(np.uint32)
    held = formats.numbers(every, dtype).astype(np.float32).view(np.uint32)
    steps = (0, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001)
    near = np.concatenate([held + np.uint32(step) for step in steps])
    values = np.concatenate((bits, near)).view(np.float32)
    narrow = cp.empty((values.size,), formats.STORAGE[dtype].name)
    converter(f"gg_to_{dtype}", "f32", dtype)(A=cp.asarray(values), C=narrow)
    assert same(cp.asnumpy(narrow), formats.stored(values, dtype), dtype)
    again = elements.elements(cp.asarray(values), dtype)
    assert same(cp.asnumpy(again), formats.stored(values, dtype), dtype)


def test_an_absent_output_is_allocated_in_its_type() -> None:
    for name, dtype in (("f16", "float16"), ("f64", "float64"), ("bf16", "float32")):
        kernel = Kernel.of(EVERY[name])
        kind = {"f16": "float16", "f64": "float64", "bf16": "uint16"}[name]
        c = kernel(A=cp.ones((3, 4), kind), B=cp.ones((4, 5), kind))
        assert (c.dtype, c.shape) == (dtype, (3, 5))


def test_refuses_other_types() -> None:
    kernel = Kernel.of(EVERY["f16"])
    with pytest.raises(CallError, match="A is float32; the kernel takes float16"):
        kernel(A=cp.ones((3, 4), "float32"), B=cp.ones((4, 5), "float16"))


@pytest.mark.parametrize(
    ("name", "kind"), (("f16", "float16"), ("bf16", "bfloat16"), ("f64", "float64"))
)
def test_takes_and_gives_pytorch_tensors(name: str, kind: str) -> None:
    """Integers exactly, and in f64 more than f32 could hold."""
    torch = pytest.importorskip("torch")
    kernel, dtype = Kernel.of(EVERY[name]), getattr(torch, kind)
    a, b = (torch.randint(-4, 5, size, device="cuda").to(dtype) for size in ((33, 40), (40, 50)))
    c = kernel(A=a, B=b)
    assert c.dtype == (torch.float32 if name == "bf16" else dtype)
    assert torch.equal(c.double(), a.double() @ b.double())
    if name == "f64":
        a, b = (torch.randn(size, device="cuda", dtype=dtype) for size in ((33, 40), (40, 50)))
        bound = 2 * 40 * torch.finfo(dtype).eps * (a.abs() @ b.abs())
        assert bool(((kernel(A=a, B=b) - a @ b).abs() <= bound).all())


def test_bench_checks_and_compares_with_cublas() -> None:
    entries = [bench.Entry(name, Kernel.of(EVERY[name])) for name in ("f16_fast", "f64_fast")]
    for entry in entries:
        rows = bench.bench([entry], [{"M": 512, "N": 512, "K": 512}], warmup=0.1, rounds=3)
        assert rows[0].name.startswith("cuBLAS ") and rows[-1].name == entry.name, rows
        assert len(rows) <= 3 and all(row.checked for row in rows), rows


@pytest.mark.parametrize("dtype", ("e4m3", "e5m2"))
def test_conversions_of_bytes_are_those_of_the_models(dtype: DType) -> None:
    if int(cp.cuda.Device().compute_capability) < 89:
        pytest.skip("bytes are converted from sm_89 on")
    every = np.arange(256).astype(np.uint8)
    wide = cp.empty((every.size,), "float32")
    converter(f"gg_from_{dtype}", dtype, "f32")(A=cp.asarray(every), C=wide)
    assert same(cp.asnumpy(wide), formats.numbers(every, dtype).astype(np.float32), "f32")
    bits = np.random.default_rng(1).integers(0, 1 << 32, 10_000_000, dtype=np.uint64)
    values = np.concatenate(
        (bits.astype(np.uint32).view(np.float32), formats.numbers(every, dtype))
    )
    narrow = cp.empty((values.size,), "uint8")
    converter(f"gg_to_{dtype}", "f32", dtype)(A=cp.asarray(values), C=narrow)
    assert (cp.asnumpy(narrow) == formats.stored(values, dtype)).all()
    again = elements.elements(cp.asarray(values), dtype)
    assert (cp.asnumpy(again) == formats.stored(values, dtype)).all()
