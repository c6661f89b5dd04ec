"""What is known of the partial accumulators of one tile."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove.shared_state import NONE, SEVERAL, Cells
from gemmgen.prove.state import WalkState


@dataclass
class Partials:
    """What each part's block has written of its tile; ``part`` is the block that is walked, and
    ``counts`` how often it has counted.  ``ends`` are the states in which blocks count, by the
    number of the counter.  ``visible``: the parts whose blocks have counted before.  ``readers``
    are the threads that have read each element since.  The block of part ``last`` is the last one
    to count, in its group and of all.

    Of each thread: ``written_since`` its last barrier, the number of that one in ``barriers``, and
    whether it has ``acquired`` what others wrote before they counted.

    ``added``: blocks add to one tile that is zero before (``reduce=atomic``).  Then ``zeroed`` are
    the elements that the last block has left at zero for the next call.
    """

    parts: int
    threads: int
    groups: int = 1
    added: bool = False
    part: int = 0
    last: int = 0
    counts: int = 0
    written: dict[int, Cells] = field(default_factory=dict[int, Cells])
    ends: dict[int, list[WalkState]] = field(default_factory=dict[int, list[WalkState]])
    visible: frozenset[int] = frozenset()
    readers: dict[int, Ints] = field(default_factory=dict[int, Ints])
    zeroed: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    met: int = 0

    def __post_init__(self) -> None:
        self.begin(0)

    @property
    def is_pair(self) -> bool:
        """Whether the last block, whichever it is, adds the other one's accumulators to its own."""
        return self.parts == 2 and self.groups == 1 and not self.added

    @property
    def goes_on(self) -> bool:
        """Whether the block that is walked is the last one to count."""
        own = self.part % self.together if self.in_group else self.part
        return own == self.last

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

    def restart(self, last: int) -> None:
        """Nothing is written yet, and the block of part ``last`` will be the last one to count."""
        self.last = last
        for known in (self.written, self.ends, self.readers):
            known.clear()

    def begin(self, part: int) -> None:
        """The next block is that of ``part``."""
        self.part, self.counts, self.visible = part, 0, frozenset()
        self.written_since: Bools = np.zeros(self.threads, np.bool_)
        self.has_written: Bools = np.zeros(self.threads, np.bool_)
        self.barriers: Ints = np.zeros(self.threads, np.int64)
        self.acquired: Bools = np.zeros(self.threads, np.bool_)

    def go_on(self, acquired: Bools) -> None:
        """The block that is walked is the last one that counts: what the others wrote is ordered
        before what the ``acquired`` threads do."""
        first = self.part
        known = range(first, first + self.together) if self.in_group else range(self.parts)
        self.visible, self.counts = frozenset(known), self.counts + 1
        self.acquired = acquired.copy()
        self.has_written[:] = False
        self.readers.clear()
        for cells in self.written.values():
            cells.writer.fill(NONE)

    def meet(self, threads: Ints, whole: bool = False) -> None:
        """Some threads of a block, or all of the ``whole`` block, wait for each other."""
        self.met += 1
        self.barriers[threads] = self.met
        self.written_since[threads] = False
        if self.acquired[threads].any():
            self.acquired[threads] = True
        for readers in self.readers.values():
            readers[np.isin(readers, [*threads, *([SEVERAL] if whole else [])])] = NONE

    def wrote(self, threads: Ints) -> None:
        self.written_since[threads] = self.has_written[threads] = True

    def is_ordered(self, chosen: int, block: Bools) -> bool:
        """Whether all that the threads of ``block`` have written is ordered before what the
        ``chosen`` one does next, by one barrier."""
        others = self.barriers[block & self.has_written]
        late = self.written_since[block].any()
        return not late and bool((others == self.barriers[chosen]).all())
