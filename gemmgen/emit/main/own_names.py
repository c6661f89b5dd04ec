"""Names that a program around a kernel can't take from a schedule."""

from __future__ import annotations

import errno

_NAMES = """
    argc argv launch handle one zero prod product type gpu flops ms found totals total every
    compared at
    """
VARIABLES = frozenset(_NAMES.split())
"""The variables of ``main``; functions and types are in a namespace, where no name hides them."""
_MACROS = frozenset(dir(errno)) | {"EHWPOISON", "IF_DEVICE_OR_CUDACC", "WEOF"}
_PREFIXES = ("LC_", "NV_")


def is_own(name: str) -> bool:
    """Whether ``name`` is a variable of the program, or a macro of a header that it includes; other
    macros are not names of schedules in any case."""
    return name in VARIABLES or name in _MACROS or name.startswith(_PREFIXES)
