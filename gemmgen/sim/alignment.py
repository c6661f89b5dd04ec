"""Declarations of arrays that a kernel accesses several elements at a time have ``alignas``.

A run cannot detect a missing ``alignas``: compilers align most arrays by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gemmgen.ir.tensor_map import LANDS_AT, REPEATS, TensorMap
from gemmgen.sim.failures import TextFailure
from gemmgen.sim.shared_symbols import ELEMENTS, TYPE

_VECTORS = {"float2": 8, "float4": 16, "double2": 16, "unsigned": 4, "uint2": 8, "uint4": 16}
_WIDE = re.compile(rf"reinterpret_cast<(?:const )?({'|'.join(_VECTORS)}) \*>\(&(\w+)\[")
_COPIES = re.compile(r"\bcopy(\d+)\(\s*&?(\w+)[^,;]*,\s*&?(\w+)")
_BOXES = re.compile(
    r"\bgg_(?:(?:load|multicast)_box_\dd\(|store_box_\dd\(\s*(?P<to>\w+),)\s*"
    r"&?(?P<array>\w+)\b(?! ?\*)(?:[^,;]*,\s*(?P<of>\w+))?"
)
_BODY = r"\([^{]*(?:\{ .*?; \}$|\{$.*?^\})"
"""Parameters and statements of a function: these on the line of a brace, or on their own."""
_FUNCTION = re.compile(rf"__forceinline__ void (\w+){_BODY}", re.DOTALL | re.MULTILINE)
_OWN = re.compile(rf"__forceinline__ \w+ gg_\w+{_BODY}", re.DOTALL | re.MULTILINE)
"""A function of one instruction, whose arrays may have names of the kernel's tensors."""
_DECLARED = re.compile(rf"(?:alignas\((\d+)\)[^;=(]*?)?\b({TYPE}) (\w+)\s*\[")
_LAID = re.compile(rf"\*const (\w+) =\s*reinterpret_cast<({TYPE})\(\*\)[^>]*>\(\s*(\w+)")


def check_alignment(text: str, file: str, maps: tuple[TensorMap, ...] = ()) -> None:
    """Raises TextFailure for an array with wide accesses whose declaration does not align it;
    the boxes of ``maps`` may be swizzled."""
    found = _DECLARED.findall(_OWN.sub("", text))
    declared = {name: int(alignment or ELEMENTS[stored]) for alignment, stored, name in found}
    sizes = {name: ELEMENTS[stored] for _, stored, name in found}
    for name, stored, base in _LAID.findall(text):
        sizes[name] = ELEMENTS[stored]
        if base in declared:
            declared[name] = declared[base]
    lands = {one.parameter: max(LANDS_AT, REPEATS * one.swizzle) for one in maps}
    for at, name, needed in _accesses(text, sizes, lands):
        if declared.get(name, needed) < needed:
            line = text.count("\n", 0, at) + 1
            use = "has boxes" if needed >= LANDS_AT else f"is accessed by {needed} bytes"
            raise TextFailure(
                f"{file}:{line}: {name} {use}, but its declaration lacks alignas({needed})"
            )


def _accesses(
    text: str, sizes: Mapping[str, int], lands: Mapping[str, int]
) -> Iterator[tuple[int, str, int]]:
    """Where an array is accessed by how many bytes: in an expression, by a ``copy4``, by a function
    of the kernel that calls one for its first parameter, or by TMA, whose boxes land at
    multiples of what ``lands`` says of their map."""
    for access in _WIDE.finditer(text):
        yield access.start(), access[2], _VECTORS[access[1]]
    for box in _BOXES.finditer(text):
        yield box.start(), box["array"], lands.get(box["to"] or box["of"], LANDS_AT)
    widths: dict[str, int] = {}
    for function in _FUNCTION.finditer(text):
        if inner := _COPIES.search(function[0], function[0].index("{")):
            widths[function[1]] = int(inner[1])
    for copied in _COPIES.finditer(text):
        for name in copied.groups()[1:]:
            if name in sizes:
                yield copied.start(), name, int(copied[1]) * sizes[name]
    for function, width in widths.items():
        for call in re.finditer(rf"\b{function}\(\s*&?(\w+)", text):
            if call[1] in sizes:
                yield call.start(), call[1], width * sizes[call[1]]
