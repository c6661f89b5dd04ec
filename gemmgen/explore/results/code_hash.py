"""A hash of a kernel's code, equal for texts that differ in comments and layout alone."""

from __future__ import annotations

import hashlib
import re

_PARTS = re.compile(r'("(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')|//[^\n]*|/\*.*?\*/', re.DOTALL)
DIGITS = 24


def code_hash(text: str) -> str:
    """Of CUDA C: comments count as blanks, and each run of blanks as one."""
    code = _PARTS.sub(lambda found: found[1] or " ", text)
    return hashlib.sha256(" ".join(code.split()).encode()).hexdigest()[:DIGITS]
