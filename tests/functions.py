"""The emitted functions that a handwritten kernel calls, above it, as an emitted text has them."""

from __future__ import annotations

import re

from gemmgen.emit.intrinsics import INTRINSICS, shuffle_text

_NAME = re.compile(r"\b(gg_\w+)\(")
FUNCTIONS = (*INTRINSICS, shuffle_text("down", "f32"), shuffle_text("down", "f64"))


def with_functions(text: str) -> str:
    """``text`` under all overloads of the ``gg_*`` functions that it calls."""
    called = set(re.findall(r"\bgg_\w+", text))
    texts = [each for each in FUNCTIONS if _NAME.findall(each)[0] in called]
    missing = called - {_NAME.findall(each)[0] for each in texts}
    assert not missing, missing
    return "\n\n".join((*dict.fromkeys(texts), text))
