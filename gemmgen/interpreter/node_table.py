"""What each node of the lowered IR does: one function for each kind of node, and for each
instruction, put together from the files that know a mechanism."""

from __future__ import annotations

from gemmgen.interpreter import (
    async_copies,
    async_products,
    barriers,
    box_stores,
    control_flow,
    fragments,
    known_fragments,
    variables,
    warp_roles,
    workspace,
)
from gemmgen.interpreter.code import Code, Statements
from gemmgen.interpreter.machine import Machine

NODES: Statements = {
    **control_flow.NODES,
    **variables.NODES,
    **async_copies.NODES,
    **barriers.NODES,
    **box_stores.NODES,
    **fragments.NODES,
    **known_fragments.NODES,
    **async_products.NODES,
    **workspace.NODES,
    **warp_roles.NODES,
}


def code_for(machine: Machine) -> Code:
    """Compiles any kernel for ``machine``."""
    return Code(machine, NODES)
