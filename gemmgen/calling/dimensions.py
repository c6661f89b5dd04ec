"""The numbers of a call: its extents, leading dimensions and strides, by the interface's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import lcm, prod

from gemmgen.base.errors import UsageError
from gemmgen.calling.launches import Case, Layout
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.gemm_roles import contraction
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
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

ROW = 2**30 + 8
"""The least leading dimension of a far call: the third row begins beyond 2^31."""
APART = 2**31 + 8
"""The least stride between two matrices of a far call."""
STEP = 8
"""Elements by which the padding grows from tensor to tensor; wide accesses stay legal."""
_ROUNDS = 64


def values_of(interface: Interface, case: Case) -> dict[str, int]:
    """Extents, leading dimensions and strides of a call."""
    letters = contraction(interface).letters
    sizes = {interface.extent(x): size for x, size in zip(letters, case.shape, strict=True)}
    values = solve(interface, sizes, case.pad)
    if case.far:
        return spread(interface, values)
    return lay_out(interface, values, case.pad, case.layout)


def laid_out(
    interface: Interface, param: Param, values: Mapping[str, int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape and the strides, in elements, of a tensor."""
    shape = tuple(interface.size(letter, values) for letter in param.indices)
    return shape, tuple(1 if step is None else values[step] for step in interface.steps(param))


# Extents and leading dimensions.


def solve(interface: Interface, sizes: Mapping[str, int], pad: int) -> dict[str, int]:
    """The least extents and leading dimensions that satisfy all requirements, none below ``sizes``.

    If no requirement forbids it, rows have ``pad`` extra elements, and a few more from tensor to
    tensor, which exposes leading dimensions that were mixed up.
    """
    values = dict(sizes)
    for number, (name, row) in enumerate(_leading(interface)):
        values[name] = interface.size(row, sizes) + (pad + STEP * number if pad else 0)
    rules = tuple(rule for rule in constraints(interface) if rule.name in values)
    broken = [rule for rule in rules if not _holds(rule, values)]
    for _ in range(_ROUNDS):
        for rule in broken:
            _mend(rule, values)
        broken = [rule for rule in rules if not _holds(rule, values)]
        if not broken:
            return values
    listed = ", ".join(rule.text() for rule in broken)
    raise UsageError(f"no shape near {dict(sizes)} satisfies {listed}")


def constraints(interface: Interface) -> Iterator[Requirement]:
    """The requirements on numbers; an extent that is not a parameter equals another."""
    yield from (r for r in interface.requirements if not isinstance(r, Aligned))
    yield from (Equal(name, other) for name, other in interface.equal)


def alignment(interface: Interface, tensor: str) -> int:
    """The alignment of a tensor's address, in elements."""
    aligned = (r for r in interface.requirements if isinstance(r, Aligned))
    sizes = {p.name: BYTES[p.dtype] for p in interface.params}
    return max((r.bytes // sizes[tensor] for r in aligned if r.name == tensor), default=1)


def _leading(interface: Interface) -> Iterator[tuple[str, str]]:
    """Each leading dimension that is a parameter, and the letter of its rows."""
    pitch, extents = dict(interface.pitch), interface.extent_names()
    for param in interface.tensors:
        name = pitch.get(param.name)
        if name is not None and name not in extents:
            yield name, param.indices[-1]


def _holds(rule: Requirement, values: Mapping[str, int]) -> bool:
    """Whether ``rule`` holds; it does if one of its names has no value yet."""
    if isinstance(rule, Equal) and rule.other not in values:
        return True
    return rule.holds(values)


def _mend(rule: Requirement, values: dict[str, int]) -> None:
    """Increases a value to the least that satisfies ``rule``; no value is decreased."""
    value = values[rule.name]
    match rule:
        case AtLeast(name, bound):
            values[name] = max(value, values[bound])
        case AtLeastBlocks(name, bound, elements):
            values[name] = max(value, -(-values[bound] // elements))
        case MultipleOf(name, divisor):
            values[name] = -(-value // divisor) * divisor
        case Equal(name, other):
            values[name] = values[other] = max(value, values[other])
        case AtMost() | Aligned() | Within():
            pass


# Strides of batches.


def lay_out(
    interface: Interface, values: Mapping[str, int], pad: int, layout: Layout
) -> dict[str, int]:
    """``values`` (extents, leading dimensions) with a stride for each batch letter of each tensor.

    Between two matrices are ``pad`` elements, and a few more from tensor to tensor.
    ``interleaved`` lengthens leading dimensions; if one is assumed, the matrices are consecutive.
    """
    found = dict(values)
    for number, param in enumerate(interface.tensors):
        _place(interface, param, found, pad + 3 * number if pad else 0, layout)
    return found


def shared_letters(interface: Interface, param: Param, layout: Layout) -> tuple[str, ...]:
    """The letters along which a tensor's matrices share memory."""
    if layout != "shared" or param.written:
        return ()
    return tuple(letter for letter, _ in _strides(interface, param))


def _strides(interface: Interface, param: Param) -> list[tuple[str, str]]:
    """The batch letters of a tensor that have a stride, and their parameters, outermost first."""
    known = dict(interface.batches)
    steps = zip(param.indices, interface.steps(param), strict=True)
    return [(letter, step) for letter, step in steps if letter in known and step is not None]


def _place(
    interface: Interface, param: Param, values: dict[str, int], pad: int, layout: Layout
) -> None:
    strides = _strides(interface, param)
    ld = dict(interface.pitch).get(param.name)
    batches = [letter for letter, _ in strides]
    sizes = {x: interface.size(x, values) for x in param.indices}
    matrix = [x for x in param.indices[:-1] if x not in dict(interface.batches)]
    span = values[ld] * sizes[matrix[0]] if ld and matrix else sizes[param.indices[-1]]
    if layout == "interleaved" and ld is not None and ld in _free(interface):
        by = lcm(*(interface.divisor(name) for name in (ld, *(name for _, name in strides))))
        row = -(-(values[ld] + pad) // by) * by
        values[ld], span, pad = row * max(prod(sizes[x] for x in batches), 1), row, 0
    if layout == "shared" and not param.written:
        values |= {name: 0 for _, name in strides}
        return
    for letter, name in strides if layout == "shared" else reversed(strides):
        by = interface.divisor(name)
        values[name] = -(-(span + pad) // by) * by
        span = values[name] * sizes[letter]


# Far apart.


def spread(interface: Interface, values: Mapping[str, int]) -> dict[str, int]:
    """``values`` (extents, leading dimensions) with each leading dimension that is free at least
    ``ROW``, unless strides of batches would then be more than a tensor map holds, and with strides
    that are at least ``APART``."""
    found = dict(values)
    for number, name in enumerate(_free(interface)):
        by = lcm(8, interface.divisor(name))
        wider = found | {name: -(-(ROW + STEP * number) // by) * by}
        laid = lay_out(interface, wider, APART, "consecutive")
        if all(_holds(rule, laid) for rule in constraints(interface) if rule.name in laid):
            found = wider
    return lay_out(interface, found, APART, "consecutive")


def can_be_far(interface: Interface) -> bool:
    """Whether a leading dimension or a stride can be chosen."""
    return bool(_free(interface) or interface.strides)


def _free(interface: Interface) -> tuple[str, ...]:
    """The leading dimensions that no requirement equates with another number."""
    tied = {r.name for r in interface.requirements if isinstance(r, Equal)}
    return tuple(p.name for p in interface.params if p.kind == "ld" and p.name not in tied)
