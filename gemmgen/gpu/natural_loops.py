"""The natural loops of a flow graph (Aho, Lam, Sethi, Ullman, "Compilers", section 9.6).

A node dominates another if every way from the entry to the other leads through it.  An edge to a
node that dominates where it comes from closes a loop: that node, its header, and all from which
the edge is reached without passing the header again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Graph = Mapping[int, Sequence[int]]


def natural_loops(successors: Graph, entry: int) -> dict[int, frozenset[int]]:
    """The nodes of each loop by its header; loops with one header are one.

    Nodes that cannot be reached from ``entry`` belong to none.
    """
    order = _reverse_postorder(successors, entry)
    predecessors: dict[int, list[int]] = {node: [] for node in order}
    for node in order:
        for after in successors[node]:
            predecessors[after].append(node)
    dominators = _dominators(order, predecessors)
    found: dict[int, frozenset[int]] = {}
    for node in order:
        for header in successors[node]:
            if header in dominators[node]:
                body = _body(node, header, predecessors)
                found[header] = found.get(header, frozenset()) | body
    return found


def _reverse_postorder(successors: Graph, entry: int) -> list[int]:
    """Those that ``entry`` reaches; each before its successors, but for the edges of loops."""
    done: list[int] = []
    seen = {entry}
    path = [(entry, iter(successors[entry]))]
    while path:
        node, rest = path[-1]
        after = next((one for one in rest if one not in seen), None)
        if after is None:
            done.append(node)
            path.pop()
        else:
            seen.add(after)
            path.append((after, iter(successors[after])))
    return done[::-1]


def _dominators(
    order: Sequence[int], predecessors: Mapping[int, Sequence[int]]
) -> dict[int, frozenset[int]]:
    """Of each node, itself among them."""
    entry, *others = order
    known = {entry: frozenset((entry,))}
    changed = True
    while changed:
        changed = False
        for node in others:
            before = [known[one] for one in predecessors[node] if one in known]
            found = frozenset((node,)) | before[0].intersection(*before[1:])
            if known.get(node) != found:
                known[node], changed = found, True
    return known


def _body(end: int, header: int, predecessors: Mapping[int, Sequence[int]]) -> frozenset[int]:
    """All that reach ``end`` without passing ``header``, and both."""
    body, pending = {header}, [end]
    while pending:
        node = pending.pop()
        if node not in body:
            body.add(node)
            pending += predecessors[node]
    return frozenset(body)
