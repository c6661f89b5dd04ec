"""Typed views of finished text: all that a template sees.

Each lowered node becomes one view; the table ``TEMPLATES`` names the template of each.  No template
holds a decision: what may be there or not is a list, empty or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gemmgen.base.record import record
from gemmgen.emit.ctext import c_text
from gemmgen.emit.ctypes import KINDS, REGISTERS, STORED, vector_type
from gemmgen.ir.control import Assign, Barrier, Block, Break, Commit, Define, For, If, Wait
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.expr import Binary, Element, Expr, Int, Var
from gemmgen.ir.lowered import (
    Advance,
    AtomicAdd,
    Constant,
    CopyAsync,
    CountArrival,
    FragmentArray,
    Leave,
    LoadFragment,
    Move,
    MultiplyFragments,
    Node,
    Point,
    RegisterArray,
    SharedArray,
    StoreFragment,
    WarpBarrier,
)

WIDTH = 100
SHORT = 76
INDENT = "    "


@record
class LineView:
    """One statement on one line, or broken after its ``=``."""

    text: str
    template = "line.j2"


@record
class ForView:
    pragma: list[str]
    head: str
    body: list[str]
    template = "for.j2"


@record
class IfView:
    condition: str
    body: list[str]
    otherwise: list[list[str]]
    template = "if.j2"


@record
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
        case Move():
            return LineView(_move(node))
        case Leave(condition):
            return LineView(f"if ({c_text(condition)}) return;")
        case Advance(tensor, by):
            return LineView(f"{tensor} += {c_text(by)};")
        case Point(name, source, dtype):
            pointer = f"const {STORED[dtype]} *const {name}"
            return LineView(_assignment(pointer, f"gg_base(&{c_text(source)})"))
        case Break(condition):
            return LineView(f"if ({c_text(condition)}) break;")
        case Barrier():
            return LineView("__syncthreads();")
        case CountArrival():
            return LineView(_count_arrival(node))
        case AtomicAdd(target, value):
            return LineView(f"gg_add(&{c_text(target)}, {c_text(value)});")
        case CopyAsync():
            return LineView(_copy_async(node))
        case Commit():
            return LineView("gg_commit_group();")
        case Wait(pending):
            return LineView(f"gg_wait_group<{pending}>();")
        case FragmentArray():
            return LineView(_fragment_array(node))
        case LoadFragment():
            arguments = f"{c_text(node.target)}, &{c_text(node.source)}, {c_text(node.pitch)}"
            return LineView(_call(f"gg_wmma_load_{node.side}_{node.line}_{node.dtype}", arguments))
        case MultiplyFragments():
            arguments = ", ".join(c_text(e) for e in (node.sum, node.a, node.b))
            return LineView(
                _call(f"gg_wmma_multiply_{node.a_line}_{node.b_line}_{node.dtype}", arguments)
            )
        case StoreFragment():
            arguments = f"&{c_text(node.target)}, {c_text(node.source)}, {c_text(node.pitch)}"
            return LineView(_call(f"gg_wmma_store_{node.line}", arguments))
        case WarpBarrier():
            return LineView("__syncwarp();")
        case For():
            return _for(node, render)
        case If(condition, body, otherwise):
            inside = bodies(_unscoped(body), render)
            if not otherwise and _fits(f"if ({c_text(condition)})", inside):
                return LineView(f"if ({c_text(condition)}) {inside[0]}")
            other = [bodies(_unscoped(otherwise), render)] if otherwise else []
            return IfView(c_text(condition), inside, other)
        case Block():
            return _block(node, render)


def bodies(nodes: tuple[Node, ...], render: Render) -> list[str]:
    """The rendered nodes of a body; a blank line before each part that has a comment of its own."""
    texts: list[str] = []
    before: Node | None = None
    for node in nodes:
        if texts and isinstance(node, Block) and node.note:
            texts.append("")
        text = render(view_of(node, render))
        joined = _joined(texts[-1], text) if _are_coordinates(before, node) else None
        if joined is None:
            texts.append(text)
        else:
            texts[-1] = joined
        before = node
    return texts


def _are_coordinates(before: Node | None, node: Node) -> bool:
    """Two declarations alike, such as a place's row and column, may share a line."""
    if isinstance(before, RegisterArray) and isinstance(node, RegisterArray):
        alike = before.wide == node.wide and before.dtype == node.dtype
        return alike and not (before.zero or node.zero)
    return (
        isinstance(before, Define)
        and isinstance(node, Define)
        and not (before.mutable or node.mutable)
        and before.kind == node.kind == "int"
        and _stem(before.name) == _stem(node.name)
    )


def _stem(name: str) -> str:
    """What the names of a row and a column share: ``A`` of ``A_m``, nothing of ``m``."""
    return name.rpartition("_")[0]


def _joined(before: str, text: str) -> str | None:
    """``const int m = ..., k = ...;`` if that is a short line."""
    declared = re.match(r"(alignas\(16\) )?(const )?(unsigned )?\w+ ", text)
    assert declared is not None
    joined = f"{before[:-1]}, {text[declared.end():]}"
    return joined if len(joined) <= SHORT and "\n" not in joined else None


def _target(target: Element | str) -> str:
    return target if isinstance(target, str) else c_text(target)


def _assignment(target: str, value: str) -> str:
    text = f"{target} = {value};"
    return text if len(text) <= WIDTH - 16 else f"{target} =\n{INDENT}{value};"


def _define(node: Define) -> str:
    constant = "" if node.mutable else "const "
    return _assignment(f"{constant}{KINDS[node.kind]} {node.name}", c_text(node.value))


def _register_array(node: RegisterArray) -> str:
    shape = "".join(f"[{c_text(extent)}]" for extent in node.shape)
    aligned = "alignas(16) " if node.wide else ""
    zero = " = {}" if node.zero else ""
    return f"{aligned}{STORED[node.dtype]} {node.name}{shape}{zero};"


def _fragment_array(node: FragmentArray) -> str:
    shape = "".join(f"[{c_text(extent)}]" for extent in node.shape)
    held = "float" if node.dtype == "f32" else "unsigned"
    zero = " = {}" if node.zero else ""
    aligned = "alignas(16) " if node.wide else ""
    return f"{aligned}{held} {node.name}{shape}[{REGISTERS[node.dtype]}]{zero};"


def _call(function: str, arguments: str) -> str:
    return f"{function}({arguments});"


def shared_text(array: SharedArray) -> str:
    """A shared array's declaration: its type, name and extents."""
    shape = "".join(f"[{c_text(extent)}]" for extent in array.shape)
    return f"{STORED[array.dtype]} {array.name}{shape}"


def _move(node: Move) -> str:
    vector = vector_type(node.dtype, node.width)
    return _assignment(
        f"*reinterpret_cast<{vector} *>(&{c_text(node.target)})",
        f"*reinterpret_cast<const {vector} *>(&{c_text(node.source)})",
    )


def _count_arrival(node: CountArrival) -> str:
    last = c_text(node.last)
    counted = f"gg_count_in(&{c_text(node.counter)}, {last}) == {last}"
    return _assignment(
        f"const bool {node.name}", f"__syncthreads_or({c_text(node.chosen)} && {counted})"
    )


def _copy_async(node: CopyAsync) -> str:
    size = BYTES[node.dtype]
    arguments = f"&{c_text(node.target)}, &{c_text(node.source)}, {_bytes(node.valid, size)}"
    return f"gg_copy_async_{node.width * size}({arguments});"


def _bytes(elements: Expr, size: int) -> str:
    """A count of elements of ``size`` bytes, in bytes."""
    if isinstance(elements, Int):
        return c_text(Int(size * elements.value))
    return c_text(Binary("*", Int(size), elements))


def _for(node: For[Node], render: Render) -> ForView | LineView:
    variable = node.variable
    pragma = _unroll(node.unroll)
    step = f"++{variable}" if c_text(node.step) == "1" else f"{variable} += {c_text(node.step)}"
    head = f"int {variable} = {c_text(node.start)}; {variable} < {_bound(node.stop)}; {step}"
    body = bodies(node.body, render)
    if _fits(f"for ({head})", body):
        return LineView("\n".join([*pragma, f"for ({head}) {body[0]}"]))
    return ForView(pragma, head, body)


def _unscoped(body: tuple[Node, ...]) -> tuple[Node, ...]:
    """A branch that is one scope needs no braces but its own."""
    if len(body) == 1 and isinstance(body[0], Block) and body[0].scoped:
        return body[0].body
    return body


def _fits(head: str, body: list[str]) -> bool:
    """Is the body one short statement, which may stand behind its head?"""
    return len(body) == 1 and "\n" not in body[0] and len(head) + len(body[0]) <= SHORT


def _unroll(unroll: bool | int) -> list[str]:
    if unroll is True or not unroll:
        return ["#pragma unroll"] if unroll else []
    return [f"#pragma unroll {unroll}"]


def _bound(stop: Expr) -> str:
    text = c_text(stop)
    return text if isinstance(stop, Var) or " ? " not in text else f"({text})"


def _block(node: Block[Node], render: Render) -> BlockView:
    comment = comment_lines(node.note, node.origins)
    body = bodies(node.body, render)
    if node.scoped:
        return BlockView(comment, ["{"], [_indent(text) for text in body], ["}"])
    return BlockView(comment, [], body, [])


def comment_lines(note: str, origins: tuple[str, ...]) -> list[str]:
    """``// note``, and the directives that it comes from."""
    if not note:
        return []
    lines, room = [f"// {note}"], WIDTH - 16
    for number, origin in enumerate(origins):
        text = ("(" if number == 0 else "") + origin + (")" if origin == origins[-1] else ";")
        if len(lines[-1]) + 1 + len(text) <= room:
            lines[-1] += f" {text}"
        else:
            lines.append(f"// {text}")
    return lines


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
