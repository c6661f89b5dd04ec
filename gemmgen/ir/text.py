"""Every level of the IR as text and back: ``parse_ir(print_ir(program), Program) == program``.

A node is a line: the name of its class, its operands, its options; nodes in it follow indented.
Options at their default are left out.  What follows ``#`` are the origins of the line's node, the
directives that shaped it, and part of the IR.  All of it comes from the fields of the classes
(``texttypes``), so a new field or a new node needs nothing here.

    program sm_80
      problem C[m, n] = A[m, k] * B[k, n] over m, n, k epilogue=(alpha * acc + beta * C[m, n])
      kernel gemm
        work [m=8, n=32]
        tensor A[m, k] f32
        tensor B[k, n] f32
        tensor C[m, n] f32
        accumulator acc[m=8, n=32] f32 spread [m=1x1x8x1, n=1x1x32x1] x=n
        init acc
        loop k
          contract acc += A * B
        map C = alpha * acc + beta * C[m, n]

A spread's axis ``m=1x2x16x4`` is warps x pieces x lanes x width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING
from typing import TypeVar, cast

from gemmgen.ir.instruction import InstructionError
from gemmgen.ir.textcursor import NAME, Cursor, IRTextError
from gemmgen.ir.textnotation import Child, Notation
from gemmgen.ir.texttypes import notation_of

T = TypeVar("T")
_INDENT = "  "


def print_ir(node: object) -> str:
    """A program of any level, or a part of one, ended by a newline."""
    return "\n".join(_lines(node)) + "\n"


def _lines(node: object) -> Iterator[str]:
    notation = notation_of(type(node))
    origins = notation.comment(node)
    assert not any("; " in origin or "\n" in origin for origin in origins), origins
    comment = f"   # {'; '.join(origins)}" if origins else ""
    keyword = "" if notation.words else next(iter(notation.keywords))
    yield f"{keyword} {notation.write(node, comment=True)}".strip() + comment
    for child in notation.children:
        value = getattr(node, child.name)
        if value == child.default:
            continue
        if child.label:
            yield child.name
        for part in value if child.is_tuple else (value,):
            yield from (_INDENT + line for line in _lines(part))


def parse_ir(text: str, kind: type[T]) -> T:
    """The node of class ``kind`` that prints as ``text``.

    ``IRTextError`` names line, column and what was expected.
    """
    reader = _Reader(text)
    if not reader.lines:
        raise IRTextError(1, 1, f"expected a {kind.__name__}, found nothing")
    found = reader.node((kind,))
    if (following := reader.next()) is not None:
        following.fail(f"expected nothing after the {kind.__name__}")
    return cast(T, found)


class _Reader:
    """Reads the lines of a text, each with those indented below it."""

    def __init__(self, text: str):
        numbered = enumerate(text.split("\n"), 1)
        self.lines = [Cursor(line.rstrip(), number) for number, line in numbered if line.strip()]
        self.at = 0

    def next(self) -> Cursor | None:
        return self.lines[self.at] if self.at < len(self.lines) else None

    def node(self, kinds: tuple[type, ...], body: tuple[type, ...] = ()) -> object:
        """The node of the next line and all below it; it is one of ``kinds``, and what is in its
        body one of ``body``, or of ``kinds`` too."""
        cursor = self.lines[self.at]
        self.at += 1
        depth = cursor.at
        known = {keyword: kind for kind in kinds for keyword in notation_of(kind).keywords}
        word = cursor.match(NAME)
        if word not in known:
            cursor.fail(f"expected one of {', '.join(known)}", at=depth)
        notation = notation_of(known[word])
        if notation.words:
            cursor.at = depth
        values = notation.read(cursor)
        origins = tuple(cursor.rest().split("; ")) if notation.cited and cursor.has("#") else ()
        if not cursor.is_done:
            options = ", ".join(slot.name for slot in notation.options)
            cursor.fail(
                f"expected an option of {notation.kind.__name__} ({options}) or the end of the line"
            )
        children = self._children(notation, cursor, depth, body or kinds)
        try:
            node = notation.kind(**values, **children)
        except InstructionError as wrong:
            cursor.fail(str(wrong), at=depth)
        return notation.commented(node, origins) if origins else node

    def _children(
        self, notation: Notation, above: Cursor, depth: int, body: tuple[type, ...]
    ) -> dict[str, object]:
        """The fields that the lines below the line ``above`` give."""
        found: dict[str, list[object]] = {}
        label: Child | None = None
        inner: int | None = None
        while (line := self.next()) is not None and line.at >= depth:
            if line.at == depth:
                label = notation.labelled(line.text[depth:])
                if label is None or label.name in found:
                    break
                found[label.name], inner = [], None
                self.at += 1
                continue
            inner = line.at if inner is None else inner
            if line.at != inner:
                line.fail(f"expected {inner} spaces of indentation")
            word = NAME.match(line.text, line.at)
            child = label or _child(notation, word[0] if word else "", body)
            if child is None:
                line.fail(f"expected what belongs below {notation.kind.__name__}")
            within = body if child.passes_on else ()
            found.setdefault(child.name, []).append(self.node(child.kinds or body, within))
        return {
            child.name: _given(notation, child, found.get(child.name), above)
            for child in notation.children
        }


def _child(notation: Notation, keyword: str, body: tuple[type, ...]) -> Child | None:
    """The field that a line of ``keyword`` below belongs to, if no label says which."""
    for child in notation.children:
        kinds = body if child.kinds is None else child.kinds
        if not child.label and any(keyword in notation_of(kind).keywords for kind in kinds):
            return child
    return None


def _given(notation: Notation, child: Child, found: list[object] | None, above: Cursor) -> object:
    """The value of the field ``child``, for which these nodes were read."""
    if found is None and child.default is not MISSING:
        return child.default
    if child.is_tuple:
        return tuple(found or ())
    if found is None or len(found) != 1:
        above.fail(f"expected one line for {child.name} below {notation.kind.__name__}", at=0)
    return found[0]
