"""Typed views of finished text: all that a template sees.

Each lowered node becomes one view; the table ``TEMPLATES`` names the template of each.  No template
holds a decision: what may be there or not is a list, empty or not.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from gemmgen.emit.ctext import c_text
from gemmgen.ir.expr import Element, Expr, Var
from gemmgen.ir.lowered import (
    Assign,
    Barrier,
    Block,
    Constant,
    Define,
    For,
    If,
    Leave,
    Move,
    Node,
    RegisterArray,
    SharedArray,
)

C_TYPES = {"f32": "float", "int": "int", "float": "float", "bool": "bool"}
WIDTH = 100
INDENT = "    "


@dataclass(frozen=True)
class LineView:
    """One statement on one line, or broken after its ``=``."""

    text: str
    template = "line.j2"


@dataclass(frozen=True)
class ForView:
    pragma: list[str]
    head: str
    body: list[str]
    template = "for.j2"


@dataclass(frozen=True)
class IfView:
    condition: str
    body: list[str]
    otherwise: list[list[str]]
    template = "if.j2"


@dataclass(frozen=True)
class BlockView:
    comment: list[str]
    opening: list[str]
    body: list[str]
    closing: list[str]
    template = "block.j2"


View = LineView | ForView | IfView | BlockView
Render = Callable[[View], str]


def view_of(node: Node, render: Render) -> View:
    """The view of one node; bodies are rendered first."""
    match node:
        case RegisterArray():
            return LineView(_register_array(node))
        case Define():
            return LineView(_define(node))
        case Assign(target, value):
            return LineView(_assignment(_target(target), c_text(value)))
        case Move(target, source, width):
            return LineView(_move(target, source, width))
        case Leave(condition):
            return LineView(f"if ({c_text(condition)}) return;")
        case Barrier():
            return LineView("__syncthreads();")
        case For():
            return _for(node, render)
        case If(condition, body, otherwise):
            other = [bodies(otherwise, render)] if otherwise else []
            return IfView(c_text(condition), bodies(body, render), other)
        case Block():
            return _block(node, render)


def bodies(nodes: tuple[Node, ...], render: Render) -> list[str]:
    """The rendered nodes of a body; a blank line before each part that has a comment of its own."""
    texts: list[str] = []
    for node in nodes:
        if texts and isinstance(node, Block) and node.note:
            texts.append("")
        texts.append(render(view_of(node, render)))
    return texts


def _target(target: Element | str) -> str:
    return target if isinstance(target, str) else c_text(target)


def _assignment(target: str, value: str) -> str:
    text = f"{target} = {value};"
    return text if len(text) <= WIDTH - 16 else f"{target} =\n{INDENT}{value};"


def _define(node: Define) -> str:
    constant = "" if node.mutable else "const "
    return _assignment(f"{constant}{C_TYPES[node.kind]} {node.name}", c_text(node.value))


def _register_array(node: RegisterArray) -> str:
    shape = "".join(f"[{c_text(extent)}]" for extent in node.shape)
    aligned = "alignas(16) " if node.wide else ""
    zero = " = {}" if node.zero else ""
    return f"{aligned}{C_TYPES[node.dtype]} {node.name}{shape}{zero};"


def shared_text(array: SharedArray) -> str:
    """A shared array's declarator: name and extents."""
    return array.name + "".join(f"[{c_text(extent)}]" for extent in array.shape)


def _move(target: Element, source: Element, width: int) -> str:
    vector = f"float{width}"
    return _assignment(
        f"*reinterpret_cast<{vector} *>(&{c_text(target)})",
        f"*reinterpret_cast<const {vector} *>(&{c_text(source)})",
    )


def _for(node: For, render: Render) -> ForView:
    variable = node.variable
    pragma = ["#pragma unroll"] if node.unroll else []
    step = f"++{variable}" if c_text(node.step) == "1" else f"{variable} += {c_text(node.step)}"
    head = f"int {variable} = {c_text(node.start)}; {variable} < {_bound(node.stop)}; {step}"
    return ForView(pragma, head, bodies(node.body, render))


def _bound(stop: Expr) -> str:
    text = c_text(stop)
    return text if isinstance(stop, Var) or " ? " not in text else f"({text})"


def _block(node: Block, render: Render) -> BlockView:
    comment = comment_lines(node.note, node.origins)
    body = bodies(node.body, render)
    if node.scoped:
        return BlockView(comment, ["{"], [_indent(text) for text in body], ["}"])
    return BlockView(comment, [], body, [])


def comment_lines(note: str, origins: tuple[str, ...]) -> list[str]:
    """``// note``, and the directives that it comes from."""
    if not note:
        return []
    cited = f" ({'; '.join(origins)})" if origins else ""
    return textwrap.wrap(note + cited, WIDTH - 16, initial_indent="// ", subsequent_indent="// ")


def _indent(text: str) -> str:
    return "\n".join(INDENT + line if line else line for line in text.split("\n"))


def constant_lines(constants: tuple[Constant, ...]) -> list[str]:
    """``constexpr`` lines: literals of one note share a line."""
    lines: list[str] = []
    group: list[Constant] = []

    def flush() -> None:
        if group:
            names = ", ".join(f"{c.name} = {_value(c)}" for c in group)
            note = f"  // {group[0].note}" if group[0].note else ""
            lines.append(f"constexpr int {names};{note}")
            group.clear()

    for constant in constants:
        if group and constant.note != group[0].note:
            flush()
        group.append(constant)
    flush()
    return lines


def _value(constant: Constant) -> str:
    return str(constant.value) if constant.definition is None else c_text(constant.definition)
