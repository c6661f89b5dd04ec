"""What a kernel says that may begin before the preceding kernel has ended."""

from __future__ import annotations

from gemmgen.base.record import record


@record
class WaitGrid:
    """Until the preceding kernel has ended, and its writes are visible (PTX:
    griddepcontrol.wait)."""

    SYNTAX = ""


@record
class LaunchDependents:
    """The dependent kernel may begin as soon as every block has come here, or ended (PTX:
    griddepcontrol.launch_dependents)."""

    SYNTAX = ""
