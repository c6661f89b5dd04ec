"""What is known of a call like an earlier one, so that it is checked and launched in no time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import lcm

from gemmgen.calling.arguments import Footprint, Geometry
from gemmgen.calling.binding import Binding
from gemmgen.gpu.driver import Starter
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.interface import Aligned, Interface

Limits = tuple[int, int, int]
"""Of a tensor: the bits that its address must not have, and the distances of its address from C's,
exclusive, at which the two could overlap."""


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """A call but for its addresses and scalars.

    ``starter`` launches it; ``without_product`` launches it where no product is needed.
    ``scratch`` has the elements of each memory for the launch alone.  ``allocate`` makes the
    output, and gives its address, where the caller passes none.  ``is_clear``: is each tensor
    aligned, and does C keep its distance from the others?  If not, the exact test is to decide.
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
    """Bounds of the distances from ``output``'s address to ``other``'s at which their ranges of
    bytes meet."""
    if other is output:
        return 0, 0
    (first, end), (start, last) = output.bounds(0), other.bounds(0)
    return first - last, end - start


def clearance(limits: Sequence[Limits], output: int) -> Callable[[Sequence[int]], bool]:
    """The test of addresses by ``limits``; ``output``: which of them is C's."""
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
    """The same for A, B and C, quicker; the strictest alignment is asked of all."""
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
