"""A launch plan: everything about a call except addresses and scalars, so that a call like an
earlier one is checked and launched quickly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import lcm

from gemmgen.calling.arguments import Footprint, Geometry
from gemmgen.calling.binding import Binding
from gemmgen.gpu.driver import Starter
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.interface import Interface
from gemmgen.ir.requirement import Aligned

Limits = tuple[int, int, int]
"""Limits of a tensor's address: the bits that must be 0, and the distances from C's address,
exclusive, at which the two could overlap."""


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """A call except for its addresses and scalars.

    ``starter`` launches it; ``without_product`` launches it if alpha = 0.  ``scratch`` has the
    elements of each scratch memory.  ``allocate`` makes the output if the caller passes none, and
    returns its address.  ``is_clear`` is a sufficient test: each tensor is aligned, and C can't
    overlap the others.  If it fails, an exact test decides.
    """

    geometry: Geometry
    blocks: int
    starter: Starter
    without_product: Starter
    scratch: tuple[int, ...]
    allocate: Callable[[], tuple[object, int]] | None
    is_clear: Callable[[Sequence[int]], bool]


def limits_of(found: Geometry, interface: Interface, binding: Binding) -> tuple[Limits, ...]:
    """The limits of each tensor, in the order of ``binding``."""
    lies = {lie.name: lie for lie in (*found.inputs, *found.outputs)}
    output = lies[binding.tensors[binding.output].name]
    bytes_of = {param.name: BYTES[param.dtype] for param in binding.tensors}
    for requirement in interface.requirements:
        if isinstance(requirement, Aligned):
            bytes_of[requirement.name] = lcm(bytes_of[requirement.name], requirement.bytes)
    return tuple(
        (bytes_of[param.name] - 1, *_too_close(output, lies[param.name]))
        for param in binding.tensors
    )


def _too_close(output: Footprint, other: Footprint) -> tuple[int, int]:
    """Bounds of the distances from ``output``'s address to ``other``'s at which their byte ranges
    overlap."""
    if other is output:
        return 0, 0
    (first, end), (start, last) = output.bounds(0), other.bounds(0)
    return first - last, end - start


def clearance(limits: Sequence[Limits], output: int) -> Callable[[Sequence[int]], bool]:
    """The test of addresses by ``limits``; ``output`` is the index of C's."""
    if len(limits) == 3 and output == 2:
        return _of_three(*limits)

    def is_clear(addresses: Sequence[int]) -> bool:
        base = addresses[output]
        for address, (mask, below, above) in zip(addresses, limits, strict=True):
            if not address or address & mask or below < address - base < above:
                return False
        return True

    return is_clear


def _of_three(one: Limits, other: Limits, output: Limits) -> Callable[[Sequence[int]], bool]:
    """The same for A, B and C, faster; all must have the strictest alignment."""
    mask = one[0] | other[0] | output[0]
    below, above = one[1:]
    under, over = other[1:]

    def is_clear(addresses: Sequence[int]) -> bool:
        a, b, c = addresses
        return not (
            (a | b | c) & mask
            or below < a - c < above
            or under < b - c < over
            or not (a and b and c)
        )

    return is_clear
