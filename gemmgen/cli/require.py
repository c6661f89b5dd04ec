"""``require registers`` and ``require spills`` for commands that need no compiler otherwise."""

from __future__ import annotations

from gemmgen.base.errors import CannotCheck
from gemmgen.pipeline import Emitted


def unchecked(emitted: Emitted) -> str:
    """Why the ``require`` lines were not checked; empty if they were, or if there are none.

    Raises ``ScheduleError`` for lines that do not hold.
    """
    if not emitted.schedule.requires:
        return ""
    from gemmgen.proof.gates import check_gates

    try:
        check_gates(emitted)
    except CannotCheck as missing:
        return str(missing)
    return ""
