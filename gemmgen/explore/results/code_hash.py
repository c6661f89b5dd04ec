"""A hash of a kernel's code, equal for texts that differ in comments, layout or the launcher."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

_PARTS = re.compile(r'("(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')|//[^\n]*|/\*.*?\*/', re.DOTALL)
_HOST = "#ifndef __CUDACC_RTC__"
"""Begins what NVRTC does not see: the launcher, which runs on the host."""
DIGITS = 24


def code_hash(text: str) -> str:
    """Of CUDA C as NVRTC compiles it: comments count as blanks, and each run of blanks as one."""
    code = _PARTS.sub(lambda found: found[1] or " ", text)
    words = " ".join(_device_lines(code)).split()
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:DIGITS]


def _device_lines(code: str) -> Iterator[str]:
    """The lines but for those that only a compiler of host code sees."""
    depth = 0
    for line in code.splitlines():
        word = line.strip()
        if depth:
            depth += word.startswith("#if") - word.startswith("#endif")
        elif word == _HOST:
            depth = 1
        else:
            yield line
