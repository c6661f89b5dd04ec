"""A requirement that a call breaks, explained."""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.ir.interface import Interface
from gemmgen.ir.requirement import (
    Aligned,
    AtLeast,
    AtLeastBlocks,
    AtMost,
    Equal,
    MultipleOf,
    Requirement,
    Within,
)


def explain(requirement: Requirement, interface: Interface, values: Mapping[str, int]) -> str:
    """A sentence on a requirement that ``values`` break, with a remedy."""
    name = requirement.name
    owner = next((tensor for tensor, pitch in interface.pitch if pitch == name), None)
    parted = next((tensor for tensor, _, stride in interface.strides if stride == name), None)
    mapped = {one.tensor for one in interface.maps}
    match requirement:
        case Aligned(bytes=size):
            user = "tensor map needs" if name in mapped else "wide accesses need"
            lacking = "async_copy via=tma" if name in mapped else "vectorize"
            return (
                f"{name} begins {values[name] % size} bytes past a multiple of {size}, and the "
                f"kernel's {user} {size}-byte alignment: pass an aligned copy, or use "
                f"the kernel without {lacking}"
            )
        case MultipleOf(divisor=divisor) if (
            stored := _stored_by_boxes(interface, name)
        ) is not None:
            return (
                f"{name} = {values[name]}, and the kernel needs {requirement.text()}: "
                f"TMA stores rows of {stored} in units of 16 bytes, and would write zeros "
                f"after them: use the kernel without async_copy {stored} "
                f"({values[name]} % {divisor} = {values[name] % divisor})"
            )
        case MultipleOf(divisor=divisor):
            way = f"pad the rows of {owner}, or " if owner else ""
            way = f"pad the matrices of {parted}, or " if parted else way
            lacking = "async_copy via=tma" if (parted or owner) in mapped else "that width"
            return (
                f"{name} = {values[name]}, and the kernel needs {requirement.text()}: {way}use the "
                f"kernel without {lacking} ({values[name]} % {divisor} = {values[name] % divisor})"
            )
        case AtLeast(bound=bound):
            return (
                f"{name} = {values[name]} is less than {bound} = {values[bound]}: the rows of "
                f"{owner or 'the tensor'} overlap"
            )
        case AtLeastBlocks(bound=bound, block=elements):
            return (
                f"{name} = {values[name]}, and {bound} = {values[bound]} elements are "
                f"{-(-values[bound] // elements)} blocks of {elements}: the rows of "
                f"{owner or 'the tensor'} overlap"
            )
        case AtMost(bound=bound):
            return f"{name} = {values[name]} is more than the {bound} that this kernel can index"
        case Equal(other=other):
            return (
                f"{name} = {values[name]} and {other} = {values[other]}, but the schedule assumes "
                f"{requirement.text()}"
            )
        case Within(least=least, most=most):
            return (
                f"{name} = {values[name]}, and the tensor map of {parted} holds strides from "
                f"{least} to {most}: pass a contiguous copy of {parted}"
            )


def _stored_by_boxes(interface: Interface, extent: str) -> str | None:
    """The output whose rows have ``extent`` elements, if TMA stores it."""
    mapped = {one.tensor for one in interface.maps}
    return next(
        (
            param.name
            for param in interface.tensors
            if param.written and param.name in mapped
            if interface.extent(param.indices[-1]) == extent
        ),
        None,
    )
