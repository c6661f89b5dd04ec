"""Checks of addresses, made at every call: memory, alignment, and tensors that overlap."""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.base.errors import CallError
from gemmgen.calling.arguments import Footprint, Geometry
from gemmgen.calling.requirement_messages import explain
from gemmgen.calling.strides import may_meet
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.interface import Interface
from gemmgen.ir.requirement import Aligned
from gemmgen.numerics.formats import NAMES


def check_memory(found: Geometry, address: Mapping[str, int]) -> None:
    """Refuses a tensor with elements but without an address."""
    for tensor in (*found.inputs, *found.outputs):
        if not address[tensor.name] and 0 not in tensor.shape:
            raise CallError(
                f"{tensor.name} has no memory: its storage was freed, or never allocated"
            )


def check_addresses(found: Geometry, interface: Interface, address: Mapping[str, int]) -> None:
    """Refuses unaligned tensors, and an output that overlaps another tensor."""
    for requirement in interface.requirements:
        if isinstance(requirement, Aligned) and address[requirement.name] % requirement.bytes:
            raise CallError(explain(requirement, interface, address))
    for param in interface.tensors:
        size = BYTES[param.dtype]
        if address[param.name] % size:
            raise CallError(
                f"{param.name} begins {address[param.name] % size} bytes past a multiple of "
                f"{size}, where no {NAMES[param.dtype]} begins: pass an aligned copy"
            )
    for output in found.outputs:
        for other in (*found.inputs, *found.outputs):
            if other is not output and _overlap(output, other, address):
                raise CallError(
                    f"{output.name} overlaps {other.name} in memory; the kernel reads its inputs "
                    f"while it writes {output.name}, so pass separate memory"
                )


def _overlap(one: Footprint, other: Footprint, address: Mapping[str, int]) -> bool:
    """Whether two tensors share a byte; disjoint columns of one matrix don't."""
    a, b = address[one.name], address[other.name]
    (first, end), (start, last) = one.bounds(a), other.bounds(b)
    if end <= start or last <= first:
        return False
    return may_meet((one.shape, one.strides), (other.shape, other.strides), b - a)
