"""Handwritten kernels whose tiles TMA copies: their texts, interfaces, and calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from functions import with_functions

from gemmgen.calling.launches import BOX_LANDINGS, ORDERS, STRICT_ORDERS
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.requirement import AtLeast, MultipleOf
from gemmgen.ir.tensor_map import TensorMap
from gemmgen.numerics.formats import F32
from gemmgen.sim.packing import Argument
from gemmgen.sim.run import CompiledKernel, compile_kernel

DIRECTORY = Path(__file__).parent.parent / "handwritten"
NAMES = ("copied_in", "copied_out", "ring", "cluster")
PRODUCTS = ("ring", "cluster")
ALL_ORDERS = (*ORDERS, *STRICT_ORDERS)
Shape = tuple[int, int, int]
"""M, N and, of a product, K."""

_EXTENTS = tuple(Param(extent, "extent") for extent in "MN")
_LDS = Param("lda", "ld"), Param("ldb", "ld"), Param("ldc", "ld")
_C = Param("C", "tensor", ("m", "n"), written=True, read=False)


def text(name: str) -> str:
    return with_functions((DIRECTORY / f"{name}.cu").read_text(encoding="utf-8"))


def clustered(blocks_m: int, blocks_n: int) -> str:
    """The text of ``cluster`` for clusters of other dimensions."""
    whole, dims = text("cluster"), "CLUSTER_M = 2, CLUSTER_N = 1"
    assert dims in whole
    return whole.replace(dims, f"CLUSTER_M = {blocks_m}, CLUSTER_N = {blocks_n}")


def interface(name: str, cluster: tuple[int, int] = (2, 1)) -> Interface:
    lda, ldb, ldc = _LDS
    if name in PRODUCTS:
        a, b = Param("A", "tensor", ("k", "m")), Param("B", "tensor", ("k", "n"))
        params = (*_EXTENTS, Param("K", "extent"), a, lda, b, ldb, _C, ldc)
        needs = (AtLeast("lda", "M"), AtLeast("ldb", "N"), AtLeast("ldc", "N"))
        needs = (*needs, MultipleOf("lda", 4), MultipleOf("ldb", 4))
        pitch = (("A", "lda"), ("B", "ldb"), ("C", "ldc"))
        tiles = (("M", 32), ("N", 32))
        if name == "ring":
            maps = (TensorMap("A", (32, 8)), TensorMap("B", (32, 8)))
            return Interface(name, params, (256, 1), tiles, needs, 0, 0, pitch, maps=maps)
        maps = (TensorMap("A", (32, 8 // cluster[1])), TensorMap("B", (32, 8 // cluster[0])))
        found = Interface(name, params, (96, 1), tiles, needs, 0, 0, pitch, maps=maps)
        return replace(found, cluster=cluster)
    params = (*_EXTENTS, Param("A", "tensor", ("m", "n")), lda, _C, ldc)
    needs = (AtLeast("lda", "N"), AtLeast("ldc", "N"))
    mapped = "A" if name == "copied_in" else "C"
    needs = (*needs, MultipleOf(f"ld{mapped.lower()}", 4))
    pitch = (("A", "lda"), ("C", "ldc"))
    maps = (TensorMap(mapped, (32, 32)),)
    return Interface("copied", params, (128, 1), (("M", 32),), needs, 0, 0, pitch, maps=maps)


def compiled(
    name: str,
    changed: str | None = None,
    *,
    checked: bool = True,
    cluster: tuple[int, int] = (2, 1),
) -> CompiledKernel:
    whole = text(name) if changed is None else changed
    return compile_kernel(whole, interface(name, cluster), checked=checked)


def matrix(rows: int, columns: int, seed: int) -> F32:
    """Small integers, at an address and with rows that TMA can take."""
    pitch = -(-columns // 4) * 4 + 4
    memory = np.full(rows * pitch + 4, np.float32(np.nan))
    start = -(memory.ctypes.data // 4) % 4
    whole = memory[start : start + rows * pitch].reshape(rows, pitch)
    values = np.random.default_rng(seed).integers(-4, 5, (rows, columns))
    whole[:, :columns] = values
    return whole[:, :columns]


def call(name: str, shape: Shape) -> tuple[dict[str, Argument], F32]:
    """Arguments, and what C has to be."""
    m, n, k = shape
    c = matrix(m, n, 3)
    c[...] = np.nan
    found: dict[str, Argument] = {"M": m, "N": n, "C": c, "ldc": c.strides[0] // 4}
    if name not in PRODUCTS:
        a = matrix(m, n, 1)
        return {**found, "A": a, "lda": a.strides[0] // 4}, a
    a, b = matrix(k, m, 1), matrix(k, n, 2)
    lds = {"lda": a.strides[0] // 4, "ldb": b.strides[0] // 4}
    want = np.asarray(a.T @ b, np.float32)
    return {**found, "K": k, "A": a, "B": b, **lds}, want


def runs() -> Iterator[tuple[str, str]]:
    """All orders, and all times at which copies land."""
    return product(ALL_ORDERS, BOX_LANDINGS)


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
