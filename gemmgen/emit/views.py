"""Statements as text: each kind of node has a template, ``nodes/If.j2``, that prints its fields.

A template sees a node's fields, expressions as C, and what ``_MORE`` adds to them.  It decides
nothing: a flag is a list of one item or none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import cast, get_args

from gemmgen.emit.ctext import c_text, factor, increment
from gemmgen.emit.ctypes import REGISTERS, STORED, fragment_type
from gemmgen.emit.line_breaks import comment_lines, plain
from gemmgen.emit.printing import printed
from gemmgen.ir.barriers import BARRIER, BarrierArray
from gemmgen.ir.control import Assign, Block, Define, For, If
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.duties import Duties, SetRegisters
from gemmgen.ir.expr import Binary, Element, Expr, Int, Select, walk
from gemmgen.ir.thread_code import (
    Advance,
    CopyAsync,
    Function,
    Invoke,
    LoadBox,
    Move,
    Node,
    Parameter,
    Point,
    RegisterArray,
    StoreBox,
)
from gemmgen.ir.warp_matrices import FragmentArray

View = dict[str, object]
"""What a template sees, by its names there."""

_EXPRESSIONS = frozenset(get_args(Expr))

SHORT = 76
"""Columns, without its indentation, of a line with two declarations, or with a statement after its
``if`` or ``for``."""


def statements(body: tuple[Node, ...]) -> list[str]:
    """A body's statements as text; a blank line before each part that has a comment of its own."""
    texts: list[str] = []
    together: tuple[Node, ...] = ()
    for node in body:
        if together and _are_alike(together[-1], node):
            text = _text(*together, node)
            if len(plain(text)) <= SHORT:
                texts[-1], together = text, (*together, node)
                continue
        if texts and isinstance(node, Block) and node.note:
            texts.append("")
        texts.append(_text(node))
        together = (node,)
    return texts


def _are_alike(before: Node, node: Node) -> bool:
    """Two declarations, such as a row and a column, that may share a line."""
    if isinstance(before, RegisterArray) and isinstance(node, RegisterArray):
        shareable = before.wide == node.wide and before.dtype == node.dtype
        return shareable and not (before.zero or node.zero)
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


def _text(*nodes: Node) -> str:
    """One statement, or the declarations that share one."""
    kind = type(nodes[0])
    template = f"nodes/{kind.__name__}.j2"
    view = {**fields_view(nodes[0]), **(_MORE[kind](*nodes) if kind in _MORE else {})}
    if (short := view.get("short")) is not None:
        text = printed(template, {**view, "body": short})
        if len(plain(text.rpartition("\n")[2])) <= SHORT + len(" "):
            return text
        if len(plain(str(short))) <= SHORT:
            return printed(template, {**view, "body": printed("below.j2", {"text": short})})
    return printed(template, view)


def fields_view(node: object) -> View:
    """A node's fields as templates see them."""
    return {name: _shown(getattr(node, name)) for name in _names(type(node))}


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _shown(value: object) -> object:
    """An expression as C, a flag as one item or none."""
    if type(value) in _EXPRESSIONS:
        return c_text(cast("Expr", value))
    if isinstance(value, bool):
        return range(value)
    if isinstance(value, tuple):
        return [_shown(part) for part in cast("tuple[object, ...]", value)]
    return value


def _declared(*nodes: Define | RegisterArray) -> View:
    return {"together": [fields_view(node) for node in nodes]}


def _define(*nodes: Define) -> View:
    return {"constant": range(not nodes[0].mutable), **_declared(*nodes)}


def _register_array(*nodes: RegisterArray) -> View:
    return {"type": STORED[nodes[0].dtype], **_declared(*nodes)}


def _fragment_array(node: FragmentArray) -> View:
    return {"type": fragment_type(node.dtype), "registers": REGISTERS[node.dtype]}


def _assign(node: Assign) -> View:
    """``target += value`` where it is added to itself."""
    match node.value:
        case Binary("+", left, right) if c_text(left) == _shown(node.target):
            return {"adds": range(1), "value": c_text(right)}
        case _:
            return {"adds": range(0)}


def _move(node: Move) -> View:
    return {"to": address(node.target), "from": address(node.source)}


def _invoke(node: Invoke) -> View:
    given = zip(node.function.parameters, node.arguments, strict=True)
    shown = (
        address(argument) if isinstance(argument, Element) and not to.shape else c_text(argument)
        for to, argument in given
    )
    return {"name": node.function.name, "arguments": list(shown)}


def address(element: Element) -> str:
    """A pointer to ``element``: an array's name means its first."""
    *outer, last = element.indices
    if last == Int(0):
        return c_text(Element(element.buffer, tuple(outer)))
    return f"&{c_text(element)}"


def function_text(function: Function) -> str:
    """A function of the kernel, under its comment."""
    view: View = {
        "comment": comment_lines(function.note, function.origins),
        "name": function.name,
        "parameters": [_parameter(parameter) for parameter in function.parameters],
        "body": _function_body(function.body),
    }
    return printed("function.j2", view)


def _function_body(body: tuple[Node, ...]) -> list[str]:
    """Statements; of a choice between one and others, the one returns."""
    if len(body) == 1 and isinstance(body[0], If) and len(body[0].body) == 1:
        choice = body[0]
        (text,) = statements(choice.body)
        view: View = {"condition": c_text(choice.condition), "statement": text}
        return [printed("early_return.j2", view), *statements(choice.otherwise)]
    return statements(body)


def _parameter(parameter: Parameter) -> str:
    view: View = {"name": parameter.name}
    if parameter.dtype is None:
        return printed("parameters/extent.j2", view)
    view |= {"type": STORED[parameter.dtype], "constant": range(not parameter.written)}
    if parameter.shape:
        shape = [c_text(extent) for extent in parameter.shape]
        return printed("parameters/array.j2", {**view, "shape": shape})
    return printed("parameters/tensor.j2", {**view, "restrict": range(0)})


def _advance(node: Advance) -> View:
    return {"sign": "-" if node.back else "+"}


def _point(node: Point) -> View:
    return {"type": STORED[node.dtype]}


def _copy_async(node: CopyAsync) -> View:
    size = BYTES[node.dtype]
    return {
        "bytes": size * node.width,
        "type": STORED[node.dtype],
        "valid": factor(node.valid),
        **_hint(node),
    }


def _hint(node: CopyAsync | LoadBox) -> View:
    return {"evict": [] if node.evict == "normal" else [node.evict]}


def _barrier_array(_node: BarrierArray) -> View:
    return {"alignment": BARRIER}


def _load_box(node: LoadBox) -> View:
    return {"to": _begin(node.target), "rank": len(node.at), **_hint(node)}


def _store_box(node: StoreBox) -> View:
    return {"from": _begin(node.source), "rank": len(node.at)}


def _begin(element: Element) -> str:
    """The address of a box in shared memory: ``A_shared[stage]`` where it begins with the tile."""
    begin = element
    while begin.indices[-1:] == (Int(0),):
        begin = Element(begin.buffer, begin.indices[:-1])
    return c_text(begin) if len(begin.indices) < len(element.indices) else address(begin)


def _for(node: For[Node]) -> View:
    stop = c_text(node.stop)
    chosen = any(isinstance(part, Select) for part in walk(node.stop))
    times = "" if node.unroll is True else str(node.unroll)
    return {
        "stop": f"({stop})" if chosen else stop,
        "next": increment(node.variable, node.step),
        "unroll": [times] if node.unroll else [],
        **_body(statements(node.body)),
    }


def _if(node: If[Node]) -> View:
    body = _body(statements(_unscoped(node.body)))
    if not node.otherwise:
        return body
    other = _body(statements(_unscoped(node.otherwise)))
    return {"body": body["body"], "otherwise": [other["body"]]}


def _unscoped(body: tuple[Node, ...]) -> tuple[Node, ...]:
    """A branch that is one scope needs no braces but its own."""
    if len(body) == 1 and isinstance(body[0], Block) and body[0].scoped:
        return body[0].body
    return body


def _body(texts: list[str]) -> View:
    """Statements in braces; also, as ``short``, one that takes one line and could do without."""
    body: View = {"body": printed("braces.j2", {"body": texts})}
    return {**body, "short": texts[0]} if len(texts) == 1 and "\n" not in texts[0] else body


def _block(node: Block[Node]) -> View:
    body = statements(node.body)
    return {
        "comment": comment_lines(node.note, node.origins),
        "body": [printed("braces.j2", {"body": body})] if node.scoped else body,
    }


def _duties(node: Duties[Node]) -> View:
    """One branch for each duty, which begins with its comment."""
    branches: list[View] = []
    for duty in node.duties:
        body = statements((Block(duty.note, duty.origins, duty.body),))
        condition = [] if duty.condition is None else [c_text(duty.condition)]
        branch: View = {"condition": condition, "body": printed("braces.j2", {"body": body})}
        branches.append(branch)
    return {"first": branches[:1], "others": branches[1:]}


def _set_registers(node: SetRegisters) -> View:
    return {"way": "more" if node.more else "fewer"}


_MORE: dict[type, Callable[..., View]] = {
    Assign: _assign,
    Define: _define,
    RegisterArray: _register_array,
    FragmentArray: _fragment_array,
    Move: _move,
    Invoke: _invoke,
    Advance: _advance,
    Point: _point,
    CopyAsync: _copy_async,
    LoadBox: _load_box,
    StoreBox: _store_box,
    BarrierArray: _barrier_array,
    For: _for,
    If: _if,
    Block: _block,
    Duties: _duties,
    SetRegisters: _set_registers,
}
"""What a template needs besides the fields of its node."""
