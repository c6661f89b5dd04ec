"""Mistakes in the functions above a kernel and in the launcher below it: C2 finds each."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pytest

from gemmgen.proof import cpu
from gemmgen.proof.outcome import Subject
from gemmgen.sim.unit import BEGIN, END

from .subjects import SCHEDULES, emitted


@dataclass(frozen=True)
class Plant:
    """In the text of ``kernel``, ``old`` becomes ``new``; what C2 says contains ``finds``."""

    kernel: str
    old: str
    new: str
    finds: str


BOUNDS = "((M - 1) / BM + 1LL) * ((N - 1) / BN + 1LL)"
ARGUMENTS = "M, N, K, A, lda, B, ldb, C, ldc, bias);"
COPY = 'asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"'
SHARED = "const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(target));"
LAUNCHERS = {
    "a tile too many": Plant(
        "vectorized", "(N - 1) / BN + 1LL", "N / BN + 1LL", "launches a grid of"
    ),
    "a tile too few": Plant("vectorized", "(M - 1) / BM + 1LL", "(M - 1) / BM", "launches"),
    "another tile": Plant("vectorized", "/ BN + 1LL", "/ BM + 1LL", "launches a grid of"),
    "blocks wrap": Plant(
        "vectorized", f"long long blocks = {BOUNDS}", f"int blocks = {BOUNDS}", ""
    ),
    "parts left out": Plant("split_k", "1LL) * PARTS", "1LL)", "launches a grid of"),
    "batches left out": Plant("batched", "= tiles * size_b", "= tiles", "launches a grid of"),
    "threads swapped": Plant(
        "vectorized", "dim3(LN, LM)", "dim3(LM, LN)", "launches blocks of 8 x 16"
    ),
    "half the threads": Plant(
        "lanes", "THREADS, 0, stream", "THREADS / 2, 0, stream", "launches blocks of 64"
    ),
    "extents swapped": Plant(
        "vectorized", f"\n        {ARGUMENTS}", f"N, M, {ARGUMENTS[6:]}", "pass M"
    ),
    "lda and ldb swapped": Plant(
        "vectorized", ARGUMENTS, ARGUMENTS.replace("A, lda, B, ldb", "A, ldb, B, lda"), "pass lda"
    ),
    "A and B swapped": Plant(
        "vectorized", ARGUMENTS, ARGUMENTS.replace("A, lda, B", "B, lda, A"), "pass A"
    ),
    "alpha and beta swapped": Plant(
        "split_k", "K, alpha, A, lda, B, ldb, beta", "K, beta, A, lda, B, ldb, alpha", "pass alpha"
    ),
    "strides swapped": Plant(
        "batched", "stride_A_b, B, ldb, stride_B_b", "stride_B_b, B, ldb, stride_A_b", "pass stride"
    ),
    "no stream": Plant("vectorized", "0, stream>>>", "0, nullptr>>>", "on stream"),
    "no shared memory": Plant(
        "async_copy", "SHARED_BYTES, stream>>>", "0, stream>>>", "passes 0 bytes"
    ),
    "less shared memory": Plant(
        "async_copy", "SHARED_BYTES, stream>>>", "SHARED_BYTES - 4, stream>>>", "passes 65532 bytes"
    ),
    "no attribute": Plant(
        "async_copy",
        "cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES)",
        "cudaSuccess",
        "cudaErrorInvalidValue",
    ),
    "a smaller attribute": Plant(
        "async_copy", "Size, SHARED_BYTES)", "Size, SHARED_BYTES - 1)", "cudaErrorInvalidValue"
    ),
    "a refused attribute": Plant(
        "async_copy",
        "if (error != cudaSuccess) return error;",
        "(void)error;",
        "where shared memory is refused: returns cudaErrorInvalidValue",
    ),
    "an error not asked for": Plant(
        "vectorized",
        "return cudaGetLastError();",
        "return cudaSuccess;",
        "the launch's error 0 times",
    ),
    "a bound left out": Plant("vectorized", " || N > 2147483567", "", "N <= 2147483567"),
    "a bound one off": Plant("vectorized", "M > 2147483599", "M >= 2147483599", "M <= 2147483599"),
    "a pitch left out": Plant("vectorized", "ldb < N || ", "", "ldb >= N"),
    "a pitch one off": Plant("vectorized", "ldc < N", "ldc <= N", "returns cudaErrorInvalidValue"),
    "a divisor left out": Plant("vectorized", " || ldc % 4 != 0", "", "ldc % 4 == 0"),
    "half a divisor": Plant("vectorized", "lda % 4", "lda % 2", "lda % 4 == 0"),
    "twice a divisor": Plant(
        "vectorized", "ldb % 4", "ldb % 8", "returns cudaErrorInvalidValue, not"
    ),
    "an alignment left out": Plant(
        "vectorized", "reinterpret_cast<size_t>(B) % 16 != 0 ||", "", "B is 16-byte aligned"
    ),
    "half an alignment": Plant("vectorized", "(C) % 16", "(C) % 8", "C is 16-byte aligned"),
    "twice an alignment": Plant("vectorized", "(A) % 16", "(A) % 32", "A is 16-byte aligned"),
    "scratch anywhere": Plant(
        "split_k", "(workspace) % 16", "(workspace) % 4", "workspace 8 bytes"
    ),
    "negative rows": Plant("vectorized", "M < 0 || ", "", "M negative"),
    "negative K": Plant("vectorized", "K < 0 || ", "", "K negative"),
    "an assumption left out": Plant("assumed", " || N % 4 != 0", "", "N % 4 == 0"),
    "another error": Plant(
        "vectorized",
        "return cudaErrorMisalignedAddress",
        "return cudaErrorInvalidValue",
        "not cuda",
    ),
    "no rows launch": Plant("vectorized", "M == 0 || N == 0", "N == 0", "M = 0"),
    "K = 0 does not": Plant(
        "vectorized", "M == 0 || N == 0", "M == 0 || N == 0 || K == 0", "K = 0"
    ),
    "no matrices launch": Plant("batched", " || size_b == 0", "", "2147483647 / 0"),
    "any number of blocks": Plant(
        "vectorized", "if (blocks > 2147483647)", "if (blocks < 0)", "tiles"
    ),
    "a product not left out": Plant("split_k", "if (alpha == 0) K = 0;", "", "alpha = 0.0"),
    "a product left out": Plant(
        "split_k", "alpha == 0", "alpha < 1", "does not pass K in its position"
    ),
    "no launcher": Plant(
        "vectorized", "launch_gemm(int M", "launches_gemm(int M", "no launch_gemm"
    ),
    "it launches twice": Plant(
        "vectorized",
        "return cudaGetLastError",
        f"gemm<<<1, 1>>>({ARGUMENTS} return cudaGetLastError",
        "",
    ),
}
FUNCTIONS = {
    "no zeros after a copy": Plant("async_copy", "16, %2;", "16;", "out of bounds: thread"),
    "a copy of 8 bytes": Plant("async_copy", "16, %2;", "8, %2;", "copies 16 bytes"),
    "a copy through L1 of 4": Plant(
        "narrow copies", "ca.shared.global [%0], [%1], 4", "ca.shared.global [%0], [%1], 8", ""
    ),
    "a copy the other way": Plant(
        "async_copy", '"r"(to), "l"(source)', '"l"(to), "r"(source)', "deleted function"
    ),
    "another count of bytes": Plant("async_copy", '"r"(valid)', '"r"(valid / 2)', "C: wrong bits"),
    "a generic address": Plant(
        "async_copy",
        "__cvta_generic_to_shared(target)",
        "reinterpret_cast<unsigned long long>(target)",
        "memory that is not shared",
    ),
    "a copy without a clobber": Plant(
        "async_copy", '"r"(valid) : "memory"', '"r"(valid)', "clobbers do not say"
    ),
    "a copy that may be dropped": Plant(
        "async_copy", COPY, COPY.replace(" volatile", ""), "asm volatile"
    ),
    "no copy": Plant("async_copy", COPY, 'asm volatile("" ', "line"),
    "no commit": Plant(
        "async_copy", 'asm volatile("cp.async.commit_group;" ::: "memory");', "", "under way"
    ),
    "one group more may be under way": Plant(
        "async_copy", '"n"(pending)', '"n"(pending + 1)', "under way"
    ),
    "a wait without a clobber": Plant(
        "async_copy", '"n"(pending) : "memory"', '"n"(pending)', "clobbers"
    ),
    "a wait for none": Plant("async_copy", '"n"(pending)', '"n"(7)', "under way"),
    "an unordered count": Plant("split_k", "atom.acq_rel", "atom.relaxed", "race: thread"),
    "a count of the block alone": Plant("split_k", "acq_rel.gpu", "acq_rel.cta", "not a member"),
    "a count to one more": Plant("split_k", '"r"(last)', '"r"(last + 1)', ""),
    "a count that only adds": Plant("split_k", "gpu.inc.u32", "gpu.add.u32", "not a member"),
    "an addition of the block alone": Plant(
        "atomic", "red.relaxed.gpu", "red.relaxed.cta", "not a member"
    ),
    "the larger one": Plant("atomic", "gpu.add.f32", "gpu.max.f32", "not a member"),
    "an addition elsewhere": Plant(
        "atomic", '"l"(target), "f"(value)', '"l"(target + 1), "f"(value)', ""
    ),
    "a shuffle up": Plant("lanes", "shfl.sync.bfly", "shfl.sync.up", "wrong bits"),
    "half a warp": Plant("lanes", "0x1f, 0xffffffff", "0x0f, 0xffffffff", "wrong bits"),
    "segments of 16": Plant("lanes", "0x1f, 0xffffffff", "0x101f, 0xffffffff", "wrong bits"),
    "16 members": Plant("lanes", "0x1f, 0xffffffff", "0x1f, 0xffff", "signal"),
    "a shuffle that may be moved": Plant("lanes", "asm volatile", "asm", "asm volatile"),
    "one half alone": Plant("lanes f64", "shfl.sync.bfly.b32 high, high", "mov.b32 high, high", ""),
    "halves exchanged": Plant(
        "lanes f64", "mov.b64 %0, {low, high}", "mov.b64 %0, {high, low}", "y: "
    ),
    "halves read exchanged": Plant(
        "lanes f64", "mov.b64 {low, high}", "mov.b64 {high, low}", "y: "
    ),
    "an output too early": Plant(
        "lanes f64",
        "mov.b64 {low, high}, %1",
        "mov.b64 %0, {low, high}; mov.b64 {low, high}, %1",
        "written early",
    ),
    "A by columns": Plant(
        "tensor_core", "wmma.load.a.sync.aligned.row", "wmma.load.a.sync.aligned.col", "C: "
    ),
    "B by columns": Plant(
        "tensor_core", "wmma.load.b.sync.aligned.row", "wmma.load.b.sync.aligned.col", "C: "
    ),
    "A loaded as B": Plant("tensor_core", "wmma.load.a.sync", "wmma.load.b.sync", "C: "),
    "products by columns": Plant(
        "tensor_core", "wmma.mma.sync.aligned.row.row", "wmma.mma.sync.aligned.row.col", "C: "
    ),
    "both by columns": Plant(
        "tensor_core", "wmma.mma.sync.aligned.row.row", "wmma.mma.sync.aligned.col.col", "C: "
    ),
    "by rows": Plant(
        "tensor_core bf16", "wmma.mma.sync.aligned.col.col", "wmma.mma.sync.aligned.row.col", "C: "
    ),
    "accumulators by columns": Plant(
        "tensor_core", "wmma.store.d.sync.aligned.row", "wmma.store.d.sync.aligned.col", "C: "
    ),
    "accumulators by rows": Plant(
        "tensor_core bf16", "wmma.store.d.sync.aligned.col", "wmma.store.d.sync.aligned.row", "C: "
    ),
    "halves of another type": Plant(
        "tensor_core", "m16n16k16.shared.f16", "m16n16k16.shared.bf16", "error"
    ),
    "products of another type": Plant("tensor_core bf16", "f32.bf16.bf16.f32", "f32.f32", "error"),
    "accumulators restart": Plant(
        "tensor_core", '"+f"(sum[0])', '"=f"(sum[0])', 'constrained by "="'
    ),
    "registers exchanged": Plant("tensor_core", '"r"(a[0]), "r"(a[1])', '"r"(a[1]), "r"(a[0])', ""),
    "a register twice": Plant("tensor_core", '"r"(b[4]), "r"(b[5])', '"r"(b[4]), "r"(b[4])', ""),
    "A times A": Plant(
        "tensor_core",
        "{%16, %17, %18, %19, %20, %21, %22, %23}",
        "{%8, %9, %10, %11, %12, %13, %14, %15}",
        "C: ",
    ),
    "another pitch": Plant("tensor_core", '"r"(from), "r"(pitch)', '"r"(from), "r"(pitch + 8)', ""),
    "a load without a clobber": Plant(
        "tensor_core", '"r"(pitch) : "memory"', '"r"(pitch)', "clobbers"
    ),
    "another type": Plant("bf16", "cvt.rn.bf16.f32", "cvt.rn.f16.f32", "C: wrong bits"),
    "towards zero": Plant("bf16", "cvt.rn.bf16.f32", "cvt.rz.bf16.f32", "not a member"),
    "bits in the lower half": Plant("bf16", "{%1, %2}", "{%2, %1}", "C: "),
    "f16 for bf16": Plant("tensor_core", "cvt.f32.f16", "cvt.f32.bf16", "not a member"),
}
PLANTS = LAUNCHERS | FUNCTIONS
SAMPLE = (
    "a tile too many",
    "lda and ldb swapped",
    "no attribute",
    "scratch anywhere",
    "one group more may be under way",
    "no zeros after a copy",
    "A by columns",
    "an unordered count",
    "half a warp",
)


def code(text: str) -> str:
    """``text`` with blanks for its comments, which name instructions too."""
    return re.sub(r"//[^\n]*", lambda comment: " " * len(comment[0]), text)


def planted(plant: Plant, text: str) -> str:
    """``text`` with the change in the first place that is not a comment."""
    at = code(text).find(plant.old)
    assert at >= 0, f"the text has no {plant.old!r} any more: mend this test"
    return text[:at] + plant.new + text[at + len(plant.old) :]


def found(plant: Plant) -> str:
    """What C2 says of the changed text."""
    right = emitted(plant.kernel)
    above, begin, rest = right.text.partition(BEGIN)
    kernel, end, launcher = rest.partition(END)
    header, first, functions = above.partition("__device__")
    if plant.old in code(functions):
        functions = planted(plant, functions)
    else:
        launcher = planted(plant, launcher)
    text = "".join((header, first, functions, begin, kernel, end, launcher))
    outcome = cpu.check(Subject(replace(right, text=text)))
    assert outcome.status == "failed", outcome.detail
    return outcome.detail


def _marked(name: str) -> object:
    return name if name in SAMPLE else pytest.param(name, marks=pytest.mark.proof)


@pytest.mark.by_default("one group more *")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", [*map(_marked, PLANTS)])
def test_it_is_found(name: str) -> None:
    assert PLANTS[name].finds in found(PLANTS[name])


def test_the_plants_are_in_every_kernel_and_function() -> None:
    assert len(PLANTS) >= 60
    assert {plant.kernel for plant in PLANTS.values()} >= set(SCHEDULES) - {"warp_tiled", "odd"}


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_the_texts_themselves_are_right(name: str) -> None:
    outcome = cpu.check(Subject(emitted(name)))
    assert outcome.status == "passed", outcome.detail
