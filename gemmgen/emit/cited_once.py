"""A directive is cited by the comment that begins a section, and by none within that.

It is cited by its name: the schedule at the top of the file has the rest.  If the schedule has
several directives of a name, each is cited in full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from operator import is_

from gemmgen.ir.control import Block, For, If
from gemmgen.ir.thread_code import Node
from gemmgen.ir.warp_roles import WarpRole, WarpRoles

Body = tuple[Node, ...]
Names = Mapping[str, str]
"""What directives are cited as."""


def short_names(schedule: str) -> Names:
    """What each directive of a canonical schedule is cited as."""
    directives = [" ".join(line.split()) for line in schedule.splitlines() if line]
    count = Counter(directive.partition(" ")[0] for directive in directives)
    return {
        directive: name if count[name] == 1 else directive
        for directive in directives
        for name in (directive.partition(" ")[0],)
    }


def cited(origins: tuple[str, ...], names: Names) -> tuple[str, ...]:
    """What a comment cites directives as."""
    return tuple(names.get(origin, origin) for origin in origins)


def cited_once(
    body: Body,
    names: Names,
    around: frozenset[str] = frozenset(),
    above: frozenset[str] = frozenset(),
) -> Body:
    """``body`` that cites directives by their ``names``; its blocks do not cite those that the
    comments ``around`` them cite.

    The comment of a role is around all that the role does, and that of a block with braces around
    the block.  A block without braces only has its comment ``above`` its statements: it is around
    what these nest in loops and branches, not around another comment below it.
    """
    found = tuple(_node(node, names, around, above) for node in body)
    return body if all(map(is_, found, body)) else found


def _node(node: Node, names: Names, around: frozenset[str], above: frozenset[str]) -> Node:
    nested = around | above
    match node:
        case Block():
            origins = tuple(each for each in cited(node.origins, names) if each not in around)
            known = above.union(origins)
            if node.scoped:
                inner = cited_once(node.body, names, around | known)
            else:
                inner = cited_once(node.body, names, around, known)
            changed = origins != node.origins or inner is not node.body
            return replace(node, origins=origins, body=inner) if changed else node
        case For():
            inner = cited_once(node.body, names, nested)
            return node if inner is node.body else replace(node, body=inner)
        case If():
            then, other = cited_once(node.body, names, nested), cited_once(
                node.otherwise, names, nested
            )
            changed = then is not node.body or other is not node.otherwise
            return replace(node, body=then, otherwise=other) if changed else node
        case WarpRoles():
            return WarpRoles(tuple(_role(role, names, nested) for role in node.roles))
        case _:
            return node


def _role(role: WarpRole[Node], names: Names, around: frozenset[str]) -> WarpRole[Node]:
    origins = cited(role.origins, names)
    inner = cited_once(role.body, names, around.union(origins))
    return replace(role, origins=origins, body=inner)
