"""What TMA requires of every address in shared memory, checked on the lowered program.

Passes refuse what they know to be unaligned, with sizes that fit.  This is the check on the result:
whatever chose a layout, each box of each stage, atom column and warp starts where TMA and the
pattern of its swizzle require (PTX ISA, cp.async.bulk.tensor; CUDA driver API,
cuTensorMapEncodeTiled).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd, prod

from gemmgen.base.errors import Mistake, ScheduleError
from gemmgen.base.record import record
from gemmgen.base.source import Span, remainder
from gemmgen.ir.divisors import Divisors
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.expr import Element, Expr, Var
from gemmgen.ir.exprtext import format_expression
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.lowered import LoweredKernel, SharedArray, ends_at
from gemmgen.ir.requirement import Aligned
from gemmgen.ir.tensor_map import ALIGNMENT, LANDS_AT, LONGEST_SIDE, RANKS, REPEATS, TensorMap
from gemmgen.ir.traversal import inside
from gemmgen.schedule.model import Schedule


@record
class Unfit:
    """A box that TMA would copy wrongly or not at all: what is wrong, and the arithmetic."""

    tensor: str
    message: str
    note: str


def check_box_addresses(schedule: Schedule, kernel: LoweredKernel) -> None:
    """Raises ``ScheduleError`` if TMA would get an address or a box that it does not take."""
    found = {one.tensor: one for one in unfit(kernel)}
    if found:
        raise ScheduleError(
            schedule.source,
            tuple(
                Mistake(
                    f"async_copy {one.tensor} via=tma: {one.message}",
                    _span(schedule, one.tensor),
                    f"leave {one.tensor} out of swizzle, or out of async_copy",
                    (one.note,),
                )
                for one in found.values()
            ),
        )


def unfit(kernel: LoweredKernel) -> Iterator[Unfit]:
    """Every rule of TMA that a kernel breaks."""
    if not kernel.interface.maps:
        return
    divisors = Divisors(kernel)
    maps = {one.parameter: one for one in kernel.interface.maps}
    maps |= {one.tensor: one for one in kernel.interface.maps}
    for node in inside(kernel.body):
        if isinstance(node, Instruction) and any(kind == "map" for _, kind in node.row.operands):
            place, one, at = _box_copy(node)
            yield from _copied(kernel, divisors, maps[one.name], place, at)
    for one in kernel.interface.maps:
        yield from _map(kernel, one)


def _box_copy(node: Instruction) -> tuple[Element, Var, tuple[Expr, ...]]:
    """The place in shared memory, the map, and where the box begins in the tensor."""
    described = tuple(zip(node.described(), node.operands, strict=True))
    (place,) = (operand for (_, kind), operand in described if kind == "tile")
    (one,) = (operand for (_, kind), operand in described if kind == "map")
    assert isinstance(place, Element) and isinstance(one, Var)
    return place, one, tuple(operand for (name, _), operand in described if name == "*at")


def repeat_of(one: TensorMap) -> int:
    """Bytes: the boxes of a map start at their multiples in shared memory, where the pattern of
    their swizzle starts: 1,024, 512 or 256, and 128 without a swizzle."""
    return max(LANDS_AT, REPEATS * one.swizzle)


def _copied(
    kernel: LoweredKernel, divisors: Divisors, one: TensorMap, place: Element, at: tuple[Expr, ...]
) -> Iterator[Unfit]:
    """The rules of one copy between ``place`` in shared memory and the box at ``at``."""
    array = next(a for a in kernel.shared if a.name == place.buffer)
    size, least = BYTES[array.dtype], repeat_of(one)
    terms = [
        divisors.of(index) * step * size
        for index, step in zip(place.indices, _steps(array), strict=False)
    ]
    kind = f"a box with swizzled rows of {one.swizzle} bytes" if one.swizzle else "a box"
    tiles = gcd(*terms[:-2], *terms[-1:])  # the pattern is one of addresses, so any row will do
    for apart, lands in ((tiles, least), (gcd(*terms), LANDS_AT)):
        if apart % lands:
            yield Unfit(
                one.tensor,
                f"{kind} starts at a multiple of {lands} bytes",
                f"{format_expression(place)}: starts are {apart} bytes apart, and "
                f"{remainder(apart, lands)}",
            )
            break
    begin = _begin_of(kernel, array)
    if array.aligned % least or begin % least:
        yield Unfit(
            one.tensor,
            f"{kind} starts at a multiple of {least} bytes",
            f"{array.name} starts at byte {begin} of shared memory, aligned to {array.aligned}",
        )
    bytes_of_box, row = prod(one.box) * size, array.sizes[-1]
    if row % one.box[0] or (row > one.box[0] and prod(one.box[1:]) > 1):
        yield Unfit(
            one.tensor,
            "the rows of a box have no gaps between them",
            f"the box is {_sides(one)}; {array.name} has rows of {row} elements",
        )
    if bytes_of_box > array.bytes:
        yield Unfit(
            one.tensor,
            "a box is larger than its tile",
            f"{_sides(one)} x {size} = {bytes_of_box} bytes; {array.name} has {array.bytes}",
        )
    first = divisors.of(at[0]) * size
    if first % ALIGNMENT:
        yield Unfit(
            one.tensor,
            f"a box starts at a multiple of {ALIGNMENT} bytes of a row",
            f"{format_expression(at[0])} x {size} is a multiple of {first}, and "
            f"{remainder(first, ALIGNMENT)}",
        )


def _map(kernel: LoweredKernel, one: TensorMap) -> Iterator[Unfit]:
    """The rules of a map: sides of its boxes, and the alignment of the tensor."""
    param = kernel.interface.mapped(one)
    row = one.box[0] * param.item
    if len(one.box) not in RANKS:
        yield Unfit(
            one.tensor,
            f"a tensor map has {RANKS.start} to {RANKS.stop - 1} dimensions",
            f"{one.tensor} has {len(one.box)}",
        )
    if not all(1 <= side <= LONGEST_SIDE for side in one.box):
        message = f"each side of a box has 1 to {LONGEST_SIDE} elements"
        yield Unfit(one.tensor, message, f"the box is {_sides(one)}")
    if row % ALIGNMENT or (one.swizzle and row != one.swizzle):
        swizzled = f", and its swizzle is one of {one.swizzle}" if one.swizzle else ""
        yield Unfit(
            one.tensor,
            f"a row of a box is a multiple of {ALIGNMENT} bytes, and as long as its swizzle",
            f"{one.box[0]} x {param.item} = {row} bytes{swizzled}",
        )
    if param.planes is None and len(one.box) == len(param.indices):
        yield from _in_global(kernel, one)


def _in_global(kernel: LoweredKernel, one: TensorMap) -> Iterator[Unfit]:
    """The launcher checks that the tensor and its strides are multiples of 16 bytes."""
    interface = kernel.interface
    param = interface.mapped(one)
    rules = interface.requirements
    known = (r.bytes for r in rules if isinstance(r, Aligned) and r.name == param.name)
    if max(known, default=1) % ALIGNMENT:
        note = f"no call is checked for {param.name}'s address"
        yield Unfit(one.tensor, f"a mapped tensor is aligned to {ALIGNMENT} bytes", note)
    for dimension in interface.map_dimensions(one):
        if dimension.stride is None:
            continue
        stride = interface.divisor(dimension.stride) * param.item
        if stride % ALIGNMENT:
            yield Unfit(
                one.tensor,
                f"strides of a mapped tensor are multiples of {ALIGNMENT} bytes",
                f"{dimension.stride} x {param.item} is known to be a multiple of {stride} bytes",
            )


def _steps(array: SharedArray) -> tuple[int, ...]:
    """Elements from one value of each index to the next."""
    return tuple(prod(array.sizes[i + 1 :]) for i in range(len(array.sizes)))


def _begin_of(kernel: LoweredKernel, array: SharedArray) -> int:
    """The array's first byte in dynamic shared memory, which starts where any array may; 0 of a
    static array, which is declared with its alignment."""
    begin = 0
    if kernel.interface.dynamic_shared:
        for other, unit in zip(kernel.shared, ends_at(kernel.shared), strict=True):
            if other.name == array.name:
                break
            begin += other.bytes + -other.bytes % unit
    return begin


def _sides(one: TensorMap) -> str:
    return " x ".join(map(str, one.box))


def _span(schedule: Schedule, tensor: str) -> Span | None:
    """Where ``async_copy`` names the tensor."""
    operands = (o for d in schedule.directives if d.name == "async_copy" for o in d.operands)
    return next((o.span for o in operands if o.tensor == tensor), None)
