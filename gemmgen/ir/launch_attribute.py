"""Attributes of a launch: what its launcher asks of CUDA besides grid, block and shared memory."""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record

AttributeName = Literal["dependent_launch"]


@record
class LaunchAttribute:
    """An attribute that a launch sets to 1.

    ``number``: the driver's.  ``constant`` and ``member``: the runtime's number, and the part of
    its value.  ``variable``: the launcher's, with a ``comment``.  ``sentence``: what a header says.
    """

    number: int
    constant: str
    member: str
    variable: str
    comment: str
    sentence: str


ATTRIBUTES: dict[AttributeName, LaunchAttribute] = {
    "dependent_launch": LaunchAttribute(
        6,
        "cudaLaunchAttributeProgrammaticStreamSerialization",
        "programmaticStreamSerializationAllowed",
        "overlap",
        "start before the preceding kernel has completed (PDL)",
        "programmatic dependent launch: blocks start early and wait for the preceding kernel",
    ),
}


def bits_of_attributes(name: AttributeName | None) -> int:
    """A launch's attributes as bits, by their numbers."""
    return 0 if name is None else 1 << ATTRIBUTES[name].number
