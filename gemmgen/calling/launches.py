"""Descriptions of test launches, without arrays or memory.

Every layer of proof takes its launches as ``Case`` values: the interpreter, the emitted text on the
CPU, the GPU, the fuzzer.  ``calling.dimensions`` derives a case's leading dimensions and strides,
``calling.inputs`` its numbers.
"""

from __future__ import annotations

from itertools import cycle
from typing import Literal

from gemmgen.base.record import record
from gemmgen.ir.interface import Interface
from gemmgen.ir.launch_shape import Shape, spelled

Data = Literal[
    "integers",
    "normal",
    "positive",
    "permutation",
    "NaN in A",
    "infinity in B",
    "infinities in A",
    "infinities in B",
    "wide integers",
]
"""``permutation``: B selects columns of A.  The next two are integers except for one element.  In
the two after them all elements of one operand are infinite, and all of the other positive.  Some of
the last ones have more bits than one part has, or two (``decompose``)."""
Order = Literal["ascending", "descending", "shuffled", "by priority", "issuers last"]
"""The order of blocks, and of a block's threads between two barriers, on a CPU.  In the last two
orders, of the warps that can go on only the first does, until it waits; the blocks are ascending.
"""
ORDERS: tuple[Order, ...] = ("ascending", "descending", "shuffled")
"""All that a kernel needs whose threads wait only for all of their block, or of their warp."""
STRICT_ORDERS: tuple[Order, ...] = ("by priority", "issuers last")
"""For others: the warps' priorities are random, or put those last that issue copies."""
Landing = Literal["late", "early", "random"]
"""When asynchronous copies complete: when they are waited for, when they are issued, or, if TMA
does them, some time in between (others are early)."""
LANDINGS: tuple[Landing, ...] = ("late", "early")
"""All that a kernel needs whose threads wait for their own copies."""
BOX_LANDINGS: tuple[Landing, ...] = (*LANDINGS, "random")
"""For others: TMA's boxes land in any order."""
Layout = Literal["consecutive", "interleaved", "shared"]
"""Of the matrices of a batch.  ``consecutive``: a matrix begins after the end of the one before.
``interleaved``: the matrices' first rows are next to one another, then their second ones.
``shared``: an input's matrices are one, and the output's are consecutive in the reversed order of
their letters."""
LAYOUTS: tuple[Layout, ...] = ("consecutive", "interleaved", "shared")

OTHER_SCALARS = (0.75, -1.25, 1.75, -2.25)
"""The values of an epilogue's scalars, in order, besides alpha and beta."""


@record
class Case:
    """Extents, numbers, and how it is run; ``pad`` elements separate rows.

    ``watched``: each access is checked.  ``far``: rows and matrices are so far apart that offsets
    don't fit an int.  ``tight``: on the CPU, a tensor's memory ends with its last element, so that
    a read past it is seen even if its value is not used.  ``skips_product``: if alpha is 0 the call
    follows ``Interface.product``, with K = 0 and inputs that may not be read; else the kernel runs
    with all of K.  ``held``: the multiprocessors of the GPU, if not a few.
    """

    shape: Shape
    data: Data = "integers"
    alpha: float = 1.0
    beta: float = 0.0
    pad: int = 0
    order: Order = "ascending"
    landing: Landing = "late"
    layout: Layout = "consecutive"
    watched: bool = True
    far: bool = False
    tight: bool = False
    skips_product: bool = False
    held: int = 0

    @property
    def multiprocessors(self) -> int:
        """Of the GPU that a run on the CPU simulates, which runs as many clusters at a time: 1, 2
        or 3 unless ``held`` says otherwise, so few that a persistent block has several tiles."""
        return self.held or 1 + (sum(self.shape) + self.pad) % 3

    @property
    def finite(self) -> bool:
        """Whether no element is an infinity or a NaN."""
        return not any(word in self.data for word in ("NaN", "infinit"))

    def text(self) -> str:
        scaled = f"alpha={self.alpha:g} beta={self.beta:g}"
        padding = f", rows padded by {self.pad}" if self.pad else ""
        padding = ", rows 2^30 elements apart" if self.far else padding
        batches = f", matrices {self.layout}" if len(self.shape) > 3 else ""
        order = f", threads {self.order}" if self.order != "ascending" else ""
        landing = ", copies landing early" if self.landing == "early" else ""
        held = f", {self.held} multiprocessors" if self.held else ""
        skipped = ", K = 0 as alpha is" if self.skips_product else ""
        data = f"{spelled(self.shape)}, {self.data}, {scaled}"
        return f"{data}{padding}{batches}{order}{landing}{held}{skipped}"

    def scalars(self, interface: Interface) -> dict[str, float]:
        """The values of a kernel's scalars."""
        found = {"alpha": self.alpha, "beta": self.beta}
        others = cycle(OTHER_SCALARS)
        names = [param.name for param in interface.scalars]
        chosen = {name: found[name] if name in found else next(others) for name in names}
        whole = {param.name for param in interface.scalars if param.dtype == "i32"}
        return {n: float(round(4 * x)) if n in whole and x % 1 else x for n, x in chosen.items()}
