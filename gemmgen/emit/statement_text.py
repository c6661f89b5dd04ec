"""Statements as text, with those within them.

Each kind of node has a template, ``nodes/If.j2``, that prints its view.  Two short declarations may
share a line, and a short statement that of its ``if`` or ``for``.
"""

from __future__ import annotations

from collections.abc import Callable

from gemmgen.emit.ctext import c_text, increment
from gemmgen.emit.ctypes import STORED
from gemmgen.emit.instruction_view import instruction_view
from gemmgen.emit.line_breaks import WIDTH, comment_lines, plain
from gemmgen.emit.printing import printed
from gemmgen.emit.views import VIEWS, View, fields_view
from gemmgen.ir.barriers import BarrierArray
from gemmgen.ir.control import Assign, Block, Define, For, If
from gemmgen.ir.expr import Select, walk
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.thread_code import (
    Function,
    Node,
    Parameter,
    RegisterArray,
)
from gemmgen.ir.warp_roles import WarpRoles

SHORT = 80
"""Columns, without its indentation, of a line with two declarations, or with a statement after its
``if`` or ``for``."""


def statements(body: tuple[Node, ...]) -> list[str]:
    """A body's statements as text; a blank line before each part that has its own comment, and
    before the roles of warps."""
    texts: list[str] = []
    together: tuple[Node, ...] = ()
    for node in body:
        if together and _are_alike(together[-1], node):
            text = _text(*together, node)
            if len(plain(text)) <= SHORT:
                texts[-1], together = text, (*together, node)
                continue
        if texts and (isinstance(node, WarpRoles) or (isinstance(node, Block) and node.note)):
            texts.append("")
        texts.append(_text(node))
        together = (node,)
    return texts


def _are_alike(before: Node, node: Node) -> bool:
    """Two declarations, such as a row and a column, that may share a line."""
    if isinstance(before, BarrierArray):
        return isinstance(node, BarrierArray)
    if isinstance(before, RegisterArray) and isinstance(node, RegisterArray):
        shareable = before.wide == node.wide and before.dtype == node.dtype
        return shareable and not (before.zero or node.zero)
    return (
        isinstance(before, Define)
        and isinstance(node, Define)
        and before.mutable == node.mutable
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
    view = _view(*nodes)
    if (short := view.get("short")) is not None:
        text = printed(template, {**view, "body": short})
        if len(plain(text.rpartition("\n")[2])) <= SHORT + len(" "):
            return text
        if len(plain(str(short))) <= SHORT:
            return printed(template, {**view, "body": printed("below.j2", {"text": short})})
    return printed(template, view)


def _view(*nodes: Node) -> View:
    kind = type(nodes[0])
    if isinstance(nodes[0], Instruction):
        return instruction_view(nodes[0])
    return {**fields_view(nodes[0]), **(_MORE[kind](*nodes) if kind in _MORE else {})}


def function_text(function: Function) -> str:
    """A function of the kernel, under its comment."""
    results = [printed("parameters/result.j2", {"name": name}) for name in function.results]
    parameters = [*map(_parameter, function.parameters), *results]
    signature = printed("signature.j2", {"name": function.name, "parameters": parameters})
    view: View = {
        "comment": comment_lines(function.note, function.origins),
        "signature": signature,
        "short": range(len(plain(signature)) + len(" {") <= WIDTH),
        "long": range(len(plain(signature)) + len(" {") > WIDTH),
        "body": _function_body(tuple(_result_assigned(node, function) for node in function.body)),
    }
    return printed("function.j2", view)


def _result_assigned(node: Node, function: Function) -> Node:
    """A result is defined by an assignment to the caller's variable."""
    if isinstance(node, Define) and node.name in function.results:
        return Assign(node.name, node.value)
    return node


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


def _roles(node: WarpRoles[Node]) -> View:
    """One branch for each role, which begins with its comment."""
    branches: list[View] = []
    for role in node.roles:
        body = statements((Block(role.note, role.origins, role.body),))
        condition = [] if role.condition is None else [c_text(role.condition)]
        branch: View = {"condition": condition, "body": printed("braces.j2", {"body": body})}
        branches.append(branch)
    return {"first": branches[:1], "others": branches[1:]}


_MORE: dict[type, Callable[..., View]] = {
    **VIEWS,
    For: _for,
    If: _if,
    Block: _block,
    WarpRoles: _roles,
}
"""What a template needs besides the fields of its node."""
