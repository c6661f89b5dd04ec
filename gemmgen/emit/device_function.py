"""A ``gg_*`` function: a file of ``intrinsics/`` and the text of each ``$name`` in it."""

from __future__ import annotations

from pathlib import Path
from string import Template

from gemmgen.base.record import record

FILES = Path(__file__).parent / "intrinsics"


@record
class DeviceFunction:
    """One function: its file, and the text of each ``$name`` in it."""

    file: str
    names: tuple[tuple[str, str], ...] = ()

    def text(self) -> str:
        """Its CUDA C."""
        source = (FILES / f"{self.file}.cuh").read_text(encoding="utf-8")
        return Template(source).substitute(dict(self.names)).rstrip("\n")


def function(file: str, **names: object) -> DeviceFunction:
    """The function of ``file`` with these texts in it."""
    return DeviceFunction(file, tuple((name, str(text)) for name, text in names.items()))
