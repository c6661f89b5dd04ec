"""A role's directives are cited by the comment that begins it, and by none within it."""

from __future__ import annotations

from dataclasses import replace
from operator import is_

from gemmgen.ir.control import Block, For, If
from gemmgen.ir.thread_code import Node
from gemmgen.ir.warp_roles import WarpRole, WarpRoles

Body = tuple[Node, ...]


def cited_once(body: Body, by_role: frozenset[str] = frozenset()) -> Body:
    """``body`` without the citations of blocks that come from no other directives than the role
    around them."""
    found = tuple(_node(node, by_role) for node in body)
    return body if all(map(is_, found, body)) else found


def _node(node: Node, by_role: frozenset[str]) -> Node:
    match node:
        case Block():
            origins = () if by_role.issuperset(node.origins) else node.origins
            inner = cited_once(node.body, by_role)
            changed = origins != node.origins or inner is not node.body
            return replace(node, origins=origins, body=inner) if changed else node
        case For():
            inner = cited_once(node.body, by_role)
            return node if inner is node.body else replace(node, body=inner)
        case If():
            then, other = cited_once(node.body, by_role), cited_once(node.otherwise, by_role)
            changed = then is not node.body or other is not node.otherwise
            return replace(node, body=then, otherwise=other) if changed else node
        case WarpRoles():
            return WarpRoles(tuple(map(_role, node.roles)))
        case _:
            return node


def _role(role: WarpRole[Node]) -> WarpRole[Node]:
    return replace(role, body=cited_once(role.body, frozenset(role.origins)))
