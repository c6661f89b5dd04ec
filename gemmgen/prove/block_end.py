"""What must not be under way when a block ends: copies, and arrivals of other blocks."""

from __future__ import annotations

import numpy as np

from gemmgen.prove import clusters, shared_state
from gemmgen.prove.state import WalkState
from gemmgen.prove.walk_context import WalkContext


def check(context: WalkContext, state: WalkState) -> None:
    """That no copy is in flight and no arrival to come: shared memory is another block's then."""
    for name, cells in state.cells.items():
        context.ledger.count("races")
        if shared_state.in_flight(cells):
            about = f"a copy to or from {name} is in flight when the block ends"
            context.violated(state, "races", about)
    if state.barriers is not None and state.barriers.numbers:
        context.ledger.count("races")
        if state.barriers.open.any():
            about = "a copy that no thread waits for may be in flight when the block ends"
            context.violated(state, "races", about)
    if state.waiting is not None:
        thread = int(np.argmin(state.waiting))
        context.violated(state, "barriers", clusters.NOT_ALL, thread)
    if context.ranks > 1 and state.barriers is not None:
        context.ledger.count("barriers")
        if state.barriers.numbers and state.barriers.remote.any():
            about = "a block may exit before another block arrives at its mbarrier"
            context.violated(state, "barriers", about)
