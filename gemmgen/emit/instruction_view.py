"""What the template of an instruction sees: a call of its device function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from gemmgen.emit.ctext import c_text, factor
from gemmgen.emit.ctypes import STORED
from gemmgen.emit.device_functions import function_of, policy_of
from gemmgen.emit.pointers import address, begin_address
from gemmgen.ir.dtypes import DType
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.instruction_table import Kind

_TEXTS: Mapping[Kind, Callable[[Any], str]] = {
    **dict.fromkeys(("value", "constant", "barrier", "array", "map"), c_text),
    **dict.fromkeys(("global", "shared"), lambda element: f"&{c_text(element)}"),
    "elements": factor,
    "pointer": address,
    "tile": begin_address,
}
"""An operand of each kind as an argument."""


def instruction_view(node: Instruction) -> dict[str, object]:
    """Its device function with the arguments for it, and what is around the call."""
    row, policy = node.row, policy_of(node)
    constants, arguments = list[str](), list[dict[str, object]]()
    for (_, kind), operand in zip(node.described(), node.operands, strict=True):
        text = _TEXTS[kind](operand)
        if kind == "constant":
            constants.append(text)
            continue
        types = [STORED[cast(DType, node.get("dtype"))]] if kind == "elements" else []
        arguments.append({"text": text, "types": types})
    if policy:
        arguments.append({"text": f"{policy.name}()", "types": ()})
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
