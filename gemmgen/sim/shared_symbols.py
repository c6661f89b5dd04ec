"""The shared arrays of a kernel: their offsets and shapes."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping

from gemmgen.base.record import record

_CONSTANTS = re.compile(r"constexpr int ([^;]+);")
_SIZES = r"((?:\s*\[[^\]]*\])+)"
ELEMENTS = {
    "float": 4,
    "double": 8,
    "unsigned short": 2,
    "unsigned char": 1,
    "unsigned long long": 8,
}
"""Bytes of the types that shared arrays have."""
TYPE = "|".join(ELEMENTS)
_STATIC = re.compile(rf"__shared__[^;=]*?\b({TYPE}) ((?:\w+{_SIZES}(?:,\s*)?)+);")
_DECLARED = re.compile(rf"(\w+){_SIZES}")
_DYNAMIC = re.compile(
    rf"auto \*const (\w+) =\s*reinterpret_cast<({TYPE})\(\*\){_SIZES}>"
    r"\(\s*(\w+)\s*(?:\+([^;]*))?\);"
)
_SYMBOL = re.compile(
    r"\s*\d+: ([0-9a-f]+)\s+(0x[0-9a-f]+|\d+) TLS .*?(?:_ZZ\d+\w+?E\d+)?(\w+)$", re.MULTILINE
)
"""A line of readelf, which writes sizes from 100,000 in hexadecimal."""
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: int.__add__,
    ast.Sub: int.__sub__,
    ast.Mult: int.__mul__,
    ast.Div: int.__floordiv__,
    ast.Mod: int.__mod__,
}


@record
class SharedSymbol:
    """``offset`` and ``bytes`` are in the segment of shared memory; ``shape`` is empty if it isn't
    known from the text.  ``element`` counts bytes."""

    name: str
    offset: int
    bytes: int
    shape: tuple[int, ...]
    element: int = 4

    def index(self, offset: int) -> tuple[int, ...]:
        """The element that begins ``offset`` bytes into the array."""
        return unravel(offset // self.element, self.shape)


def unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of the ``flat``-th element; the first dimension is as long as need be."""
    index: list[int] = []
    for size in reversed(shape[1:]):
        flat, within = divmod(flat, size)
        index.append(within)
    return (flat, *reversed(index))


def shared_arrays(text: str, symbols: str) -> tuple[SharedSymbol, ...]:
    """The arrays of ``text``, at the offsets that ``symbols``, readelf's list, gives."""
    constants = _constants(text)
    static = {
        one[1]: (_shape(one[2], constants), ELEMENTS[found[1]])
        for found in _STATIC.finditer(text)
        for one in _DECLARED.finditer(found[2])
    }
    arrays: list[SharedSymbol] = []
    for start, size, name in _SYMBOL.findall(symbols):
        whole = SharedSymbol(name, int(start, 16), int(size, 0), *static.get(name, ((), 4)))
        arrays += _within(whole, text, constants) or [whole]
    return tuple(arrays)


def _within(whole: SharedSymbol, text: str, constants: Mapping[str, int]) -> list[SharedSymbol]:
    """The arrays that the text lays into dynamic shared memory, one after another: at an offset in
    bytes, or after a number of stages of another array."""
    begins: list[tuple[int, str, tuple[int, ...], int]] = []
    sizes, starts = dict(constants), {whole.name: 0}
    for name, stored, tail, base, offset in _DYNAMIC.findall(text):
        shape = _shape(tail, constants)
        sizes[f"sizeof_{name}"] = math.prod(shape) * ELEMENTS[stored]
        expression = re.sub(r"sizeof\((\w+)\[0\]\)", r"sizeof_\1", offset)
        further = _evaluate(expression, sizes) if offset else 0
        if base not in starts or further is None or not shape:
            return []
        start = starts[base] + further * sizes.get(f"sizeof_{base}", 1)
        starts[name] = start
        begins.append((start, name, shape, ELEMENTS[stored]))
    arrays: list[SharedSymbol] = []
    for i, (start, name, shape, element) in enumerate(begins):
        end = begins[i + 1][0] if i + 1 < len(begins) else whole.bytes
        if not 0 <= start < end <= whole.bytes:
            return []
        stages = (end - start) // (math.prod(shape) * element)
        whole_shape = (stages, *shape)
        arrays.append(SharedSymbol(name, whole.offset + start, end - start, whole_shape, element))
    return arrays


def _constants(text: str) -> dict[str, int]:
    known: dict[str, int] = {}
    for found in _CONSTANTS.finditer(text):
        for definition in found[1].split(","):
            name, _, expression = definition.partition("=")
            value = _evaluate(expression, known)
            if value is not None:
                known[name.strip()] = value
    return known


def _shape(sizes: str, constants: Mapping[str, int]) -> tuple[int, ...]:
    """``[2][BK][BM + 4]`` -> (2, 8, 132); empty if a size is not understood."""
    values = [_evaluate(size, constants) for size in re.findall(r"\[([^\]]*)\]", sizes)]
    return tuple(value for value in values if value) if all(values) else ()


def _evaluate(expression: str, names: Mapping[str, int]) -> int | None:
    """The value of an expression of ints and names; None if it is another expression."""
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body, names)
    except (SyntaxError, KeyError, ZeroDivisionError):
        return None


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.BinOp):
        apply = _OPERATORS[type(node.op)]
        return apply(_value(node.left, names), _value(node.right, names))
    raise KeyError(ast.dump(node))
