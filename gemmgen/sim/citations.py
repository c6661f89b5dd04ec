"""The directive that a line of emitted text comes from."""

from __future__ import annotations

import re

_CITATION = re.compile(r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)$")
_ROLE = re.compile(r"// the (producer|consumers): ")
_WALK = "// each of the "
"""Begins the comment over a persistent block's loop over its tiles."""
_EPILOGUE = "// the epilogue: "
"""Begins the comment over an epilogue that takes several steps."""
_CONTRACTION = re.compile(r"for \(int (?:tile_)?k\b")


def blame(text: str, line: int) -> str:
    """The directives that the comment over ``line`` (from 1) cites, such as ``double_buffer A B``.

    A comment applies to what follows it at its own depth, up to an empty line or the loops over k,
    and to everything nested in that.  Where a comment within a section cites nothing, the section's
    does; a step of the epilogue has what the epilogue cites and its own.  What a role does for each
    of its tiles under a comment that cites nothing belongs to the role, whose first comment cites
    its directives.  Code under no comment belongs to the block tile: what the comment over
    ``tile_m`` cites, or the ``gemm`` line if nothing is tiled or the epilogue is plain.

    A comment may cite a directive by its name alone: the schedule at the top has the rest.
    """
    lines = text.split("\n")
    return "; ".join(_in_full(each, lines) for each in _cited(lines, line).split("; "))


def _cited(lines: list[str], line: int) -> str:
    at = line - 1
    if not 0 <= at < len(lines):
        return ""
    depth = _depth(lines[at])
    passed, uncited = _CONTRACTION.match(lines[at].strip()) is not None, False
    for i in range(at - 1, -1, -1):
        above = lines[i].strip()
        if not above:
            passed = True
        elif _depth(lines[i]) > depth or above.startswith("#"):
            continue
        elif _depth(lines[i]) < depth:
            depth = _depth(lines[i])
            passed = _CONTRACTION.match(above) is not None and not uncited
        elif _CONTRACTION.match(above):
            passed = True
        if above.startswith("//") and not passed and _depth(lines[i]) == depth:
            cited = _citation(lines, i)
            if cited:
                role = _role(lines, i) if uncited and above.startswith(_WALK) else ""
                return role or "; ".join(filter(None, (_epilogue(lines, i), cited)))
            if above.endswith("the epilogue"):
                return _gemm(lines)
            uncited = True
    return _fallback(lines)


def _in_full(directive: str, lines: list[str]) -> str:
    """The directive of the header's schedule that has this name, or ``directive`` itself."""
    begins = re.compile(rf"//     {re.escape(directive)}( |$)")
    at = next((i for i, line in enumerate(lines) if begins.match(line)), None)
    if not directive or at is None:
        return directive
    last = at + 1
    while lines[last].startswith("//      "):
        last += 1
    return " ".join(" ".join(line.removeprefix("//") for line in lines[at:last]).split())


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _role(lines: list[str], at: int) -> str:
    """What the comment cites that begins the role around the line ``at``; "" if there is none."""
    depth = _depth(lines[at])
    for i in range(at - 1, -1, -1):
        if lines[i].strip() and _depth(lines[i]) < depth:
            depth = _depth(lines[i])
            if _ROLE.match(lines[i + 1].strip()):
                last = i + 1
                while lines[last + 1].strip().startswith("//"):
                    last += 1
                return _citation(lines, last)
    return ""


def _epilogue(lines: list[str], at: int) -> str:
    """What the comment over an epilogue cites, if ``at`` begins one of its steps; else ""."""
    depth = _depth(lines[at])
    for i in range(at - 1, -1, -1):
        if not lines[i].strip() or _depth(lines[i]) >= depth:
            continue
        depth, above = _depth(lines[i]), i - 1
        if lines[above].strip().startswith("#"):
            above -= 1
        last = above
        while lines[above].strip().startswith("//"):
            if lines[above].strip().startswith(_EPILOGUE):
                return _citation(lines, last)
            above -= 1
    return ""


def _citation(lines: list[str], last: int) -> str:
    """The text in brackets at the end of the comment whose last line is ``last``."""
    first = last
    while first and lines[first - 1].strip().startswith("//"):
        first -= 1
    comment = " ".join(lines[i].strip().removeprefix("//").strip() for i in range(first, last + 1))
    found = _CITATION.search(comment)
    return found[1] if found else ""


def _fallback(lines: list[str]) -> str:
    for i, line in enumerate(lines):
        if "the block's tile of C" in line and line.strip().startswith("// "):
            cited = _citation(lines, i)
            if cited:
                return cited
    return _gemm(lines)


def _gemm(lines: list[str]) -> str:
    """``gemm C[m, n] = A[m, k] * B[k, n]``, from the header."""
    for line in lines:
        if re.match(r"//\s+gemm\s", line):
            return " ".join(line.removeprefix("//").split())
    return ""
