"""An edited copy of an emitted file, which is proved in place of it."""

from __future__ import annotations

from gemmgen.base.errors import UsageError
from gemmgen.pipeline import Emitted
from gemmgen.sim.unit import BEGIN, END


def check_edited(emitted: Emitted, text: str, name: str) -> None:
    """Raises ``UsageError`` if ``text``, called ``name``, is not a copy of the emitted file: the
    layers find the kernel by its marks and call it through its launcher."""
    for part in (BEGIN, END, f"launch_{emitted.name}("):
        if part not in text:
            raise UsageError(
                f"{name} lacks `{part}`: it must be a copy of what `gemmgen emit` writes for this "
                "schedule, with changes between the marks of the kernel"
            )
