"""A ``gg_*`` function: a file of ``intrinsics/`` and the text of each ``$name`` in it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from string import Template

from gemmgen.base.record import record

FILES = Path(__file__).parent / "intrinsics"


_HELPERS = ("shared",)
"""Files of functions that others call."""


@record
class DeviceFunction:
    """One function: its file, and the text of each ``$name`` in it."""

    file: str
    names: tuple[tuple[str, str], ...] = ()

    def text(self) -> str:
        """Its CUDA C."""
        return Template(_source(self.file)).substitute(dict(self.names)).rstrip("\n")

    @property
    def needs(self) -> tuple[DeviceFunction, ...]:
        """The functions that it calls: they come before it."""
        return tuple(map(DeviceFunction, _needed(self.file)))

    @property
    def name(self) -> str:
        """The name by which kernels call it."""
        return Template(_declared_name(self.file)).substitute(dict(self.names))


@cache
def _source(file: str) -> str:
    return (FILES / f"{file}.cuh").read_text(encoding="utf-8")


@cache
def _needed(file: str) -> tuple[str, ...]:
    """The helpers that a file's function calls."""
    others = (helper for helper in _HELPERS if helper != file)
    return tuple(helper for helper in others if f"gg_{helper}(" in _source(file))


@cache
def _declared_name(file: str) -> str:
    """The name of a file's function, with the ``$names`` in it."""
    found = re.search(r"device__ [^(]*?(\w*gg_[\w${}]+)\(", _source(file))
    assert found, file
    return found[1]


def function(file: str, **names: object) -> DeviceFunction:
    """The function of ``file`` with these texts in it."""
    return DeviceFunction(file, tuple((name, str(text)) for name, text in names.items()))
