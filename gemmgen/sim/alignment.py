"""Arrays that a kernel reads or writes several elements at a time say so where they are declared.

A run cannot show that an ``alignas`` is missing: compilers place most arrays well by themselves.
"""

from __future__ import annotations

import re

from gemmgen.sim.failures import CompileFailure

_WIDE = re.compile(r"reinterpret_cast<(?:const )?float([24]) \*>\(&(\w+)\[")
_DECLARED = re.compile(r"(?:alignas\((\d+)\)[^;=(]*?)?\b(?:float|unsigned char) (\w+)\s*\[")
_LAID = re.compile(r"\bfloat\(\*const (\w+)\)[^;=]*=\s*reinterpret_cast<[^>]*>\(\s*(\w+)")


def check_alignment(text: str, file: str) -> None:
    """Raises CompileFailure for an array that a wide access goes to and whose declaration does not
    align it so."""
    declared = {name: int(alignment or 4) for alignment, name in _DECLARED.findall(text)}
    for name, base in _LAID.findall(text):
        if base in declared:
            declared[name] = declared[base]
    for access in _WIDE.finditer(text):
        needed, name = 4 * int(access[1]), access[2]
        if declared.get(name, needed) < needed:
            line = text.count("\n", 0, access.start()) + 1
            raise CompileFailure(
                f"{file}:{line}: {name} is accessed by {needed} bytes, but its declaration lacks "
                f"alignas({needed})"
            )
