"""A directive is cited by the comment that begins a section, and by none within that."""

from __future__ import annotations

from dataclasses import replace
from operator import is_

from gemmgen.ir.control import Block, For, If
from gemmgen.ir.thread_code import Node
from gemmgen.ir.warp_roles import WarpRole, WarpRoles

Body = tuple[Node, ...]


def cited_once(
    body: Body, around: frozenset[str] = frozenset(), above: frozenset[str] = frozenset()
) -> Body:
    """``body`` whose blocks do not cite the directives that the comments ``around`` them cite.

    The comment of a role is around all that the role does, and that of a block with braces around
    the block.  A block without braces only has its comment ``above`` its statements: it is around
    what these nest in loops and branches, not around another comment below it.
    """
    found = tuple(_node(node, around, above) for node in body)
    return body if all(map(is_, found, body)) else found


def _node(node: Node, around: frozenset[str], above: frozenset[str]) -> Node:
    nested = around | above
    match node:
        case Block():
            origins = tuple(origin for origin in node.origins if origin not in around)
            cited = above.union(origins)
            if node.scoped:
                inner = cited_once(node.body, around | cited)
            else:
                inner = cited_once(node.body, around, cited)
            changed = origins != node.origins or inner is not node.body
            return replace(node, origins=origins, body=inner) if changed else node
        case For():
            inner = cited_once(node.body, nested)
            return node if inner is node.body else replace(node, body=inner)
        case If():
            then, other = cited_once(node.body, nested), cited_once(node.otherwise, nested)
            changed = then is not node.body or other is not node.otherwise
            return replace(node, body=then, otherwise=other) if changed else node
        case WarpRoles():
            return WarpRoles(tuple(_role(role, nested) for role in node.roles))
        case _:
            return node


def _role(role: WarpRole[Node], around: frozenset[str]) -> WarpRole[Node]:
    return replace(role, body=cited_once(role.body, around.union(role.origins)))
