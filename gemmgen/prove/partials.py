"""What is known of the partial accumulators of one tile."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove.shared_state import NONE, Cells


@dataclass
class Partials:
    """What each part's block has written of its tile; ``part`` is the block that is walked, and
    ``counts`` how often it has counted.  ``ends`` are the variables of each block when it counts,
    by the number of its counter; ``unordered``: it has written since its last barrier;
    ``visible``: the parts whose blocks have counted before.  ``readers`` are the threads that have
    read each element since.

    ``added``: blocks add to one tile that is zero before (``reduce=atomic``).  Then ``zeroed`` are
    the elements that the last block has left at zero for the next call.
    """

    parts: int
    groups: int = 1
    added: bool = False
    part: int = 0
    counts: int = 0
    written: dict[int, Cells] = field(default_factory=dict[int, Cells])
    ends: dict[int, list[dict[str, object]]] = field(
        default_factory=dict[int, list[dict[str, object]]]
    )
    unordered: bool = False
    visible: frozenset[int] = frozenset()
    readers: dict[int, Ints] = field(default_factory=dict[int, Ints])
    zeroed: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))

    @property
    def together(self) -> int:
        """Parts of a group: all, if there is one group."""
        return self.parts // self.groups

    @property
    def group(self) -> int:
        return self.part // self.together

    @property
    def in_group(self) -> bool:
        """Whether the next count is that of a group."""
        return self.groups > 1 and self.counts == 0

    def begin(self, part: int) -> None:
        """The next block is that of ``part``."""
        self.part, self.counts, self.unordered, self.visible = part, 0, False, frozenset()

    def go_on(self) -> None:
        """The block that is walked is the last one that counts, so that what the others wrote is
        ordered before what it does."""
        first = self.part
        known = range(first, first + self.together) if self.in_group else range(self.parts)
        self.visible, self.counts = frozenset(known), self.counts + 1
        self.readers.clear()
        for cells in self.written.values():
            cells.writer.fill(NONE)

    def meet(self) -> None:
        """All threads of the block wait for each other."""
        self.unordered = False
        self.readers.clear()
