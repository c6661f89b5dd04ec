"""The emitted functions that a handwritten kernel calls, above it, as an emitted text has them."""

from __future__ import annotations

import re
from pathlib import Path

from gemmgen.emit import device_functions, warpgroup_functions
from gemmgen.ir.atoms import ATOMS

_NAME = re.compile(r"\b(gg_\w+|copy\d+)(?:\(| \{)")
_SIZES = {"m64nNk16": (32, 64, 128, 256), "m64nNk32": (64, 96, 128, 192, 256), "m64nNk8": (256,)}
"""Columns of further multiplications of warpgroups."""
_LARGER = (
    warpgroup_functions.multiply(n, types)
    for atom, sizes in _SIZES.items()
    for types in ATOMS[atom].products
    for n in sizes
)
_ALL = dict.fromkeys((*device_functions.FUNCTIONS, *_LARGER))
EMITTED = tuple(function.text() for function in _ALL)


def name_of(function: str) -> str:
    """The name of the function, or of the type, of this text."""
    return _NAME.findall(function)[0]


_BY_HAND = tuple(
    path.read_text(encoding="utf-8").rstrip("\n")
    for path in sorted((Path(__file__).parent / "handwritten").glob("*.cuh"))
)
_NAMES = {name_of(text) for text in EMITTED}
BY_HAND = tuple(text for text in _BY_HAND if name_of(text) not in _NAMES)
"""Of further instructions, which handwritten kernels use."""
TYPES = (device_functions.TENSOR_MAP.text(),)
"""Of arguments of the functions."""
FUNCTIONS = (*TYPES, *EMITTED, *BY_HAND)


def texts_of(name: str) -> tuple[str, ...]:
    """All overloads of the function of this name."""
    return tuple(text for text in FUNCTIONS if name_of(text) == name)


def _called(text: str) -> set[str]:
    code = re.sub(r"//.*", "", text)
    return set(re.findall(r"\b(?:gg_\w+|copy\d+)\b", code))


def with_functions(text: str) -> str:
    """``text`` under all overloads of the ``gg_*`` functions that it calls."""
    called = _called(text)
    for each in FUNCTIONS:
        if name_of(each) in called:
            called |= _called(each)
    texts = [each for each in FUNCTIONS if name_of(each) in called]
    missing = called - {name_of(each) for each in texts}
    assert not missing, missing
    return "\n\n".join((*texts, text))
