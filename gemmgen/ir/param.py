"""One parameter of a kernel."""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record
from gemmgen.base.source import indexed
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.planes import Planes, Scales


@record
class Param:
    """One kernel parameter, in the order of the parameter list.

    ``kind``: ``extent`` (M, N, K; int), ``ld`` (a leading dimension in elements; int), ``stride``
    (between the matrices of a tensor, in elements; long long), ``scalar`` (alpha, beta, names of
    the epilogue), ``tensor`` (a pointer; ``indices`` are its letters, in storage order; ``written``
    for the output), ``workspace`` (memory that blocks share, of ``per_tile`` elements for each tile
    of C, at an address that is a multiple of ``align`` bytes), ``counter`` (the same, of unsigned
    ints) and, of the kernel alone, ``map`` (a tensor map).  ``dtype`` is that of a tensor's or a
    workspace's elements, or of a scalar.
    What is ``zeroed`` must hold zeros before the first launch, and each launch leaves zeros.
    A workspace with ``planes`` has the parts of a tensor, and one with ``scales`` the scales of its
    rows; a pre-pass writes them.
    """

    SYNTAX = "{kind} {name}"

    name: str
    kind: Literal["extent", "ld", "stride", "scalar", "tensor", "workspace", "counter", "map"]
    indices: tuple[str, ...] = ()
    written: bool = False
    read: bool = True
    dtype: DType = "f32"
    per_tile: int = 0
    zeroed: bool = False
    align: int = 4
    planes: Planes | None = None
    scales: Scales | None = None

    @property
    def text(self) -> str:
        """``A[m, k]``: a tensor and its letters."""
        return indexed(self.name, self.indices)

    @property
    def is_scratch(self) -> bool:
        """Whether it is scratch memory, which callers neither fill nor read."""
        return self.kind in ("workspace", "counter")

    @property
    def is_prepared(self) -> bool:
        """Whether a pre-pass writes it, and the kernel only reads."""
        return self.planes is not None or self.scales is not None

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return 4 if self.kind == "counter" else BYTES[self.dtype]
