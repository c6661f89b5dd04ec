"""What a check of machine code finds: errors, which fail the layer, and notes about speed."""

from __future__ import annotations

from gemmgen.base.record import record


@record
class Findings:
    """``errors`` say that the code is not what the schedule means or a GPU runs; ``notes`` that it
    may be slower than it could be.  A note never fails a layer."""

    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: Findings) -> Findings:
        return Findings(self.errors + other.errors, self.notes + other.notes)
