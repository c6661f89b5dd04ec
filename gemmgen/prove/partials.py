"""What is known of the partial accumulators of one tile."""

from __future__ import annotations

from dataclasses import dataclass, field

from gemmgen.prove.shared_state import Cells


@dataclass
class Partials:
    """What each part's block has written of its tile; ``part`` is the block that is walked.
    ``ends`` are the variables of each block when it counts; ``unordered``: it has written since
    its last barrier; ``complete``: all have counted."""

    parts: int
    part: int = 0
    written: dict[int, Cells] = field(default_factory=dict[int, Cells])
    ends: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    unordered: bool = False
    complete: bool = False
