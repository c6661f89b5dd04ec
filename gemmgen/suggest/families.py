"""Tiles that are good somewhere, and the schedule of each for a shape, types and a GPU.

The sizes follow the usual strategy, 64 x 64 below 512, 128 x 128 up to 2048, 128 x 256 above; what
is below them (warps, micro-tiles, stages) is what was fastest on an NVIDIA H200 at such sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gemmgen.ir.dtypes import ACCESS, BYTES, DType

Shape = tuple[int, int, int]
Size = Literal["small", "medium", "large", "few rows", "few columns"]

ASYNC, TENSOR = {"f32": 80, "f64": 80, "f16": 80, "bf16": 80}, {"f16": 75, "bf16": 80}
"""The first architecture with cp.async, and with tensor cores for a type."""


@dataclass(frozen=True)
class Family:
    """Sizes of a block, of a warp, and of a thread's micro-tile; None for tensor cores.

    ``blocks`` of a multiprocessor are asked for, where the compiler would else take registers for
    fewer; 0 where it may choose.
    """

    size: Size
    tile: tuple[int, int, int]
    warp: tuple[int, int]
    micro: tuple[int, int] | None
    stages: int
    blocks: int = 0

    @property
    def name(self) -> str:
        return f"{self.tile[0]} x {self.tile[1]}"


_FMA = (
    Family("large", (128, 256, 16), (32, 64), (8, 8), 2),
    Family("large", (128, 256, 8), (64, 64), (8, 16), 4),
    Family("large", (96, 128, 16), (48, 64), (12, 8), 3, blocks=3),
    Family("medium", (128, 128, 8), (32, 64), (8, 8), 4),
    Family("medium", (64, 128, 16), (64, 32), (8, 8), 4),
    Family("small", (64, 64, 32), (32, 32), (8, 4), 3),
    Family("small", (64, 64, 16), (32, 16), (4, 4), 2),
    Family("small", (32, 64, 64), (32, 16), (4, 4), 2),
    Family("small", (32, 64, 32), (32, 16), (4, 4), 2),
    Family("few rows", (8, 256, 16), (8, 32), (2, 4), 3),
    Family("few columns", (256, 8, 16), (32, 8), (4, 2), 3),
)
_DOUBLE = (
    Family("large", (64, 128, 8), (32, 32), (4, 8), 2),
    Family("medium", (64, 64, 16), (32, 32), (4, 8), 2),
    Family("small", (32, 64, 16), (16, 32), (4, 4), 2),
    Family("few rows", (8, 256, 8), (8, 32), (2, 4), 2),
    Family("few columns", (256, 8, 8), (32, 8), (4, 2), 2),
)
_TENSOR = (
    Family("large", (128, 256, 32), (64, 64), None, 3),
    Family("medium", (128, 128, 32), (64, 32), None, 3),
    Family("small", (64, 64, 32), (32, 32), None, 3),
    Family("small", (32, 64, 32), (16, 32), None, 3),
)


def families(dtype: DType, arch: int) -> tuple[Family, ...]:
    """Those for a type on an architecture (90 for sm_90)."""
    if arch >= TENSOR.get(dtype, 1000):
        return _TENSOR
    return _DOUBLE if dtype == "f64" else _FMA


def usual(shape: Shape) -> Size:
    """The size that the strategy by size has for a shape, by its rows and columns."""
    side = min(shape[0], shape[1])
    if side <= 16:
        return "few rows" if shape[0] <= shape[1] else "few columns"
    side = (shape[0] * shape[1]) ** 0.5
    return "small" if side < 512 else "medium" if side <= 2048 else "large"


@dataclass(frozen=True)
class Plan:
    """A family's schedule for a shape: what depends on the shape, the type and the GPU is settled.

    ``rows`` and ``columns`` are the widths of accesses along rows of A, and of B and C, in global
    memory, 1 where they are single; ``groups`` of the ``parts`` of k are added one by one;
    ``ragged``: k is no whole number of tiles.
    """

    family: Family
    dtype: DType
    arch: int
    rows: int
    columns: int
    ragged: bool
    parts: int = 1
    groups: int = 1
    raster: bool = False

    @staticmethod
    def of(family: Family, shape: Shape, dtype: DType, arch: int) -> Plan:
        most = ACCESS // BYTES[dtype]
        rows, columns = (_width(extent, most) for extent in (shape[2], shape[1]))
        if family.micro is not None:
            columns = min(columns, family.micro[1])
        return Plan(family, dtype, arch, rows, columns, shape[2] % family.tile[2] > 0)

    @property
    def asynchronous(self) -> bool:
        """cp.async copies 4 bytes at the least; it turns no tile that moves in wider pieces."""
        if self.arch < ASYNC[self.dtype]:
            return False
        straight = self.family.micro is None
        widths = (self.rows if straight else 1, self.columns)
        return min(widths) * BYTES[self.dtype] >= 4

    @property
    def residue(self) -> bool:
        """Does the ragged tile of k come first?  Where A's elements move one by one, it may."""
        single = self.asynchronous and self.family.micro is not None
        return self.ragged and single and self.parts == 1

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        (m, n, k), (warp_m, warp_n) = self.family.tile, self.family.warp
        yield "gemm C[m, n] = A[m, k] * B[k, n]"
        if self.dtype != "f32":
            sums = "f64" if self.dtype == "f64" else "f32"
            yield f"dtype A={self.dtype} B={self.dtype} C={self.dtype} acc={sums}"
        if self.arch < 80:
            yield f"target sm_{self.arch}"
        yield f"tile m={m} n={n} k={k}"
        yield "cache_shared A B" if self.family.micro is None else "cache_shared A[k, m] B[k, n]"
        yield f"warp_tile m={warp_m} n={warp_n}"
        yield from self._fma() if self.family.micro is not None else self._tensor()
        yield f"double_buffer A B stages={self.family.stages}"
        yield "double_buffer A.register B.register"
        if self.asynchronous:
            yield "async_copy A B via=cp_async"
        if self.residue:
            yield "residue k=first"
        if self.family.blocks:
            yield f"launch_bounds blocks={self.family.blocks}"
        if self.raster:
            yield "raster group=8"
        if self.parts > 1:
            yield f"split_k parts={self.parts} groups={self.groups}"

    def _fma(self) -> Iterator[str]:
        assert self.family.micro is not None
        most = ACCESS // BYTES[self.dtype]
        m, n = self.family.micro
        yield f"register_block m={m} n={n} order=serpentine"
        yield f"vectorize A.shared width={min(most, m)}"
        yield f"vectorize B.shared width={min(most, n)}"
        if not self.asynchronous:
            yield f"vectorize A.global width={self.rows}"
        yield f"vectorize B.global C.global width={self.columns}"
        yield f"pad A by={most}"

    def _tensor(self) -> Iterator[str]:
        yield "tensor_core via=wmma"
        yield f"vectorize A.global width={self.rows}"
        yield f"vectorize B.global C.global width={self.columns}"
        yield "pad A B by=8"


def _width(extent: int, most: int) -> int:
    """The widest access, in elements, whose size divides the rows of a dense matrix."""
    return next(w for w in (8, 4, 2, 1) if w <= most and extent % w == 0)
