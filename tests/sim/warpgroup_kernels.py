"""Handwritten kernels whose warpgroups multiply: their texts, interfaces, and calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from functions import texts_of, with_functions

from gemmgen.ir.arithmetic import Arithmetic
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.requirement import AtLeast, MultipleOf
from gemmgen.ir.tensor_core_rules import rule_of
from gemmgen.ir.tensor_map import TensorMap
from gemmgen.numerics.formats import F32
from gemmgen.sim.packing import Argument
from gemmgen.sim.run import CompiledKernel, compile_kernel

DIRECTORY = Path(__file__).parent.parent / "handwritten"
WRITTEN, COPIED, TRANSPOSED = "warpgroup", "warpgroups", "warpgroup_mn_major"
"""Whose operands threads write, whose TMA does, and whose lie along m and n."""
NAMES = (WRITTEN, COPIED, TRANSPOSED)
ARITHMETIC = Arithmetic(rule_of("sm_90a", "m64nNk16", "bf16"))
Shape = tuple[int, int, int]
Bits = npt.NDArray[np.uint16]


def text(name: str) -> str:
    return with_functions((DIRECTORY / f"{name}.cu").read_text(encoding="utf-8"))


def interface(name: str) -> Interface:
    transposed = name == TRANSPOSED
    a_letters, b_letters = (("k", "m"), ("k", "n")) if transposed else (("m", "k"), ("n", "k"))
    a = Param("A", "tensor", a_letters, dtype="bf16"), Param("lda", "ld")
    b = Param("B", "tensor", b_letters, dtype="bf16"), Param("ldb", "ld")
    c = Param("C", "tensor", ("m", "n"), written=True, read=False), Param("ldc", "ld")
    params = (*(Param(extent, "extent") for extent in "MNK"), *a, *b, *c)
    a_row, b_row = ("M", "N") if transposed else ("K", "K")
    needs = (AtLeast("lda", a_row), AtLeast("ldb", b_row), AtLeast("ldc", "N"))
    needs = (*needs, MultipleOf("lda", 8), MultipleOf("ldb", 8))
    pitch = (("A", "lda"), ("B", "ldb"), ("C", "ldc"))
    if name != COPIED:
        tiles = (("M", 64), ("N", 64 if transposed else 32))
        return Interface(name, params, (128, 1), tiles, needs, 0, 0, pitch, arithmetic=ARITHMETIC)
    maps = (TensorMap("A", (8, 128)), TensorMap("B", (8, 32)))
    tiles = (("M", 128), ("N", 32))
    found = Interface(name, params, (384, 1), tiles, needs, 0, 0, pitch, arithmetic=ARITHMETIC)
    return replace(found, maps=maps)


def compiled(name: str, changed: str | None = None, *, checked: bool = True) -> CompiledKernel:
    whole = text(name) if changed is None else changed
    return compile_kernel(whole, interface(name), checked=checked)


def operand(rows: int, columns: int, seed: int) -> Bits:
    """Small integers as bf16, at an address and with rows that TMA can take."""
    pitch = -(-columns // 8) * 8 + 8
    memory = np.full(rows * pitch + 8, 0x7FFF, np.uint16)
    start = -(memory.ctypes.data // 2) % 8
    whole = memory[start : start + rows * pitch].reshape(rows, pitch)
    values = np.random.default_rng(seed).integers(-4, 5, (rows, columns)).astype(np.float32)
    whole[:, :columns] = values.view(np.uint32) >> 16
    return whole[:, :columns]


def numbers(bits: Bits) -> F32:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def spanning(span: int) -> str:
    """The text of the kernel of transposed operands for rows of other bytes."""
    changed = text(TRANSPOSED).replace("SPAN = 64", f"SPAN = {span}")
    wanted = "\n\n".join(texts_of(f"gg_matrix_{span}B_mn_major"))
    (known,) = texts_of("gg_matrix_64B_mn_major")
    return changed.replace(known, wanted).replace(
        "gg_matrix_64B_mn_major(", f"gg_matrix_{span}B_mn_major("
    )


def call(name: str, shape: Shape) -> tuple[dict[str, Argument], F32]:
    """Arguments, and what C has to be."""
    m, n, k = shape
    transposed = name == TRANSPOSED
    a, b = (
        operand(k, side, seed) if transposed else operand(side, k, seed)
        for side, seed in ((m, 1), (n, 2))
    )
    c = np.full((m, n + 4), np.float32(np.nan))[:, :n]
    found: dict[str, Argument] = {"M": m, "N": n, "K": k, "A": a, "B": b, "C": c}
    found |= {"lda": a.strides[0] // 2, "ldb": b.strides[0] // 2, "ldc": c.strides[0] // 4}
    left, right = (numbers(a).T, numbers(b)) if transposed else (numbers(a), numbers(b).T)
    return found, np.asarray(left @ right, np.float32)


def complaint(
    kernel: CompiledKernel, name: str, shape: Shape, order: str, landing: str, seed: int = 1
) -> str | None:
    """What is wrong with the values of a run, or None."""
    arguments, want = call(name, shape)
    kernel.run(arguments, order=order, landing=landing, seed=seed, seconds=20)
    got = arguments["C"]
    assert isinstance(got, np.ndarray)
    if np.array_equal(got, want):
        return None
    m, n = map(int, np.argwhere(~(got == want))[0])
    return f"C[{m}, {n}] is {got[m, n]}, should be {want[m, n]}"
