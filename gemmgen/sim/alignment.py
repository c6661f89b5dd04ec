"""Declarations of arrays that a kernel accesses several elements at a time have ``alignas``.

A run cannot detect a missing ``alignas``: compilers align most arrays by themselves.
"""

from __future__ import annotations

import re

from gemmgen.sim.failures import CompileFailure
from gemmgen.sim.layout import ELEMENTS, TYPE

_VECTORS = {"float2": 8, "float4": 16, "double2": 16, "unsigned": 4, "uint2": 8, "uint4": 16}
_WIDE = re.compile(rf"reinterpret_cast<(?:const )?({'|'.join(_VECTORS)}) \*>\(&(\w+)\[")
_DECLARED = re.compile(rf"(?:alignas\((\d+)\)[^;=(]*?)?\b({TYPE}) (\w+)\s*\[")
_LAID = re.compile(rf"\b(?:{TYPE})\(\*const (\w+)\)[^;=]*=\s*reinterpret_cast<[^>]*>\(\s*(\w+)")


def check_alignment(text: str, file: str) -> None:
    """Raises CompileFailure for an array with wide accesses whose declaration does not align it."""
    declared = {
        name: int(alignment or ELEMENTS[stored])
        for alignment, stored, name in _DECLARED.findall(text)
    }
    for name, base in _LAID.findall(text):
        if base in declared:
            declared[name] = declared[base]
    for access in _WIDE.finditer(text):
        needed, name = _VECTORS[access[1]], access[2]
        if declared.get(name, needed) < needed:
            line = text.count("\n", 0, access.start()) + 1
            raise CompileFailure(
                f"{file}:{line}: {name} is accessed by {needed} bytes, but its declaration lacks "
                f"alignas({needed})"
            )
