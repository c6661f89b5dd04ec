"""What the template of an instruction sees: a call of its device function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gemmgen.emit.ctext import c_text
from gemmgen.emit.device_functions import function_of
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.instruction_table import Kind

_TEXTS: Mapping[Kind, Callable[[Any], str]] = {
    "value": c_text,
    "constant": c_text,
    "barrier": c_text,
    "array": c_text,
}
"""An operand of each kind as an argument."""


def instruction_view(node: Instruction) -> dict[str, object]:
    """Its device function with the arguments for it, and what is around the call."""
    row = node.row
    constants, arguments = list[str](), list[str]()
    for (_, kind), operand in zip(row.operands, node.operands, strict=True):
        (constants if kind == "constant" else arguments).append(_TEXTS[kind](operand))
    predicate = [] if node.predicate is None else [c_text(node.predicate)]
    return {
        "function": row.builtin or function_of(node).name,
        "constants": constants,
        "arguments": arguments,
        "results": [{"type": row.result, "name": node.result}] if row.result else [],
        "guards": predicate if row.result else [],
        "conditions": [] if row.result else predicate,
        "spins": range(row.spins),
        "once": range(not row.spins),
    }
