"""A launch of a kernel as a test makes it, described: no array is drawn, no memory allocated yet.

Every layer of proof takes its launches as ``Case`` values: the interpreter, the emitted text on the
CPU, the GPU, the fuzzer.  ``calling.sizes`` gives a case its leading dimensions and strides,
``calling.operands`` its numbers.
"""

from __future__ import annotations

from itertools import cycle
from typing import Literal

from gemmgen.base.record import record
from gemmgen.calling.arguments import scalars
from gemmgen.ir.interface import Interface

Shape = tuple[int, ...]
"""Rows, columns, terms; and the number of matrices along each batch letter, in the output's
order."""
Data = Literal[
    "integers",
    "normal",
    "positive",
    "permutation",
    "NaN in A",
    "infinity in B",
    "infinities in A",
    "infinities in B",
]
"""``permutation``: B selects columns of A.  The next two are integers but for one element.  Of the
last two all elements of one operand are infinite, and all of the other positive."""
Order = Literal["ascending", "descending", "shuffled"]
"""The order of blocks, and of a block's threads between two barriers, where they run in turn."""
Landing = Literal["late", "early"]
"""When asynchronous copies land: as they are waited for, or as they are issued."""
LANDINGS: tuple[Landing, ...] = ("late", "early")
Layout = Literal["behind", "within", "shared"]
"""Of the matrices of a batch.  ``behind``: a matrix begins after the end of the one before.
``within``: the matrices' first rows are next to one another, then their second ones.  ``shared``:
an input's matrices are one, and the output's lie behind one another in the reversed order of their
letters."""
LAYOUTS: tuple[Layout, ...] = ("behind", "within", "shared")

OTHER_SCALARS = (0.75, -1.25, 1.75, -2.25)
"""What scalars of an epilogue get in turn, beyond alpha and beta."""

_LAYOUTS = {"behind": "behind one another", "within": "row by row in turn", "shared": "shared"}


@record
class Case:
    """Extents, numbers, and how it is run; rows are ``pad`` elements apart beyond their length.

    ``watched``: each access is looked at.  ``far``: rows and matrices lie so far apart that offsets
    are no ints.  ``skips_product``: where alpha is 0 the call is made by ``Interface.product``'s
    rule, with K = 0 and inputs that may not be read; else the kernel runs with all of K.
    """

    shape: Shape
    data: Data = "integers"
    alpha: float = 1.0
    beta: float = 0.0
    pad: int = 0
    order: Order = "ascending"
    landing: Landing = "late"
    layout: Layout = "behind"
    watched: bool = True
    far: bool = False
    skips_product: bool = False

    def text(self) -> str:
        scaled = f"alpha={self.alpha:g} beta={self.beta:g}"
        padding = f", rows padded by {self.pad}" if self.pad else ""
        padding = ", rows 2^30 elements apart" if self.far else padding
        batches = f", matrices {_LAYOUTS[self.layout]}" if len(self.shape) > 3 else ""
        order = f", threads {self.order}" if self.order != "ascending" else ""
        landing = ", copies landing early" if self.landing == "early" else ""
        skipped = ", K = 0 as alpha is" if self.skips_product else ""
        data = f"{spelled(self.shape)}, {self.data}, {scaled}"
        return f"{data}{padding}{batches}{order}{landing}{skipped}"

    def scalars(self, interface: Interface) -> dict[str, float]:
        """The values of a kernel's scalars."""
        found = {"alpha": self.alpha, "beta": self.beta}
        others = cycle(OTHER_SCALARS)
        names = [param.name for param in scalars(interface)]
        return {name: found[name] if name in found else next(others) for name in names}


def spelled(shape: Shape) -> str:
    """``127x131x257``, ``127x131x257 in 2x3 batches``."""
    matrix, batches = ("x".join(map(str, part)) for part in (shape[:3], shape[3:]))
    return f"{matrix} in {batches} batches" if batches else matrix
