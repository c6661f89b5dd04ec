"""What a kernel is called with, checked before it is launched: no GPU is needed to say no.

Tensors come as ``View`` values.  The checks that depend on shapes alone give a ``Geometry``, which
the launcher keeps; those that depend on addresses are made at every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gemmgen.errors import CallError
from gemmgen.formats import NAMES, STORAGE
from gemmgen.interface import (
    INT_MAX,
    Aligned,
    AtLeast,
    AtMost,
    Equal,
    Interface,
    MultipleOf,
    Param,
    Requirement,
)
from gemmgen.ir.dtypes import BYTES


@dataclass(frozen=True)
class View:
    """A tensor in device memory: address, shape, strides in elements, dtype name, device number."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str = "float32"
    device: int = 0


@dataclass(frozen=True)
class Footprint:
    """The bytes of a tensor from its address on: ``span``, in rows of ``row`` every ``pitch``."""

    name: str
    span: int
    row: int
    pitch: int


@dataclass(frozen=True)
class Geometry:
    """Extents and leading dimensions of a call by name, its blocks, and where its tensors lie."""

    values: Mapping[str, int]
    grid: int
    inputs: tuple[Footprint, ...]
    outputs: tuple[Footprint, ...]


def tensors(interface: Interface) -> tuple[Param, ...]:
    return tuple(param for param in interface.params if param.kind == "tensor")


def scalars(interface: Interface) -> tuple[Param, ...]:
    return tuple(param for param in interface.params if param.kind == "scalar")


def argument_names(interface: Interface) -> tuple[str, ...]:
    """What a caller passes: tensors and scalars, not the extents that follow from them."""
    return tuple(param.name for param in (*tensors(interface), *scalars(interface)))


def may_be_absent(param: Param, beta: float | None) -> bool:
    """Whether the output may be left to the launcher: it's not read, or beta == 0 hides it."""
    return param.written and (not param.read or beta == 0.0)


def output_shape(param: Param, interface: Interface, views: Mapping[str, View]) -> tuple[int, ...]:
    """The shape of an absent output, from the inputs that share its letters."""
    extents = _extents(interface, views)
    names = [interface.extent(letter) for letter in param.indices]
    missing = [name for name in names if name not in extents]
    if missing:
        raise CallError(f"{param.name} must be passed: no input gives its extent {missing[0]}")
    return tuple(extents[name] for name in names)


def geometry(interface: Interface, views: Mapping[str, View]) -> Geometry:
    """The call that ``views`` make; raises ``CallError`` for the first thing wrong with them."""
    for param in tensors(interface):
        _check_kind(param, views[param.name])
    values = _extents(interface, views)
    for name, value in values.items():
        if value > INT_MAX:
            raise CallError(f"{name} = {value} is more than an int holds ({INT_MAX})")
    pitch = dict(interface.pitch)
    lies: dict[str, Footprint] = {}
    for param in tensors(interface):
        step = _check_layout(param, views[param.name])
        name = pitch.get(param.name)
        if name is not None:
            _take_pitch(param, name, step, views[param.name], values)
        lies[param.name] = _footprint(param, views[param.name], step)
    for requirement in interface.requirements:
        if not isinstance(requirement, Aligned) and not requirement.holds(values):
            raise CallError(explain(requirement, interface, values))
    grid = interface.grid(values)
    if grid > INT_MAX:
        raise CallError(f"C has {grid} tiles; a launch has at most {INT_MAX} blocks")
    written = {param.name for param in tensors(interface) if param.written}
    return Geometry(
        values=values,
        grid=grid,
        inputs=tuple(lie for name, lie in lies.items() if name not in written),
        outputs=tuple(lie for name, lie in lies.items() if name in written),
    )


def check_addresses(found: Geometry, interface: Interface, address: Mapping[str, int]) -> None:
    """Refuses unaligned tensors, and an output that overlaps another tensor."""
    for requirement in interface.requirements:
        if isinstance(requirement, Aligned) and address[requirement.name] % requirement.bytes:
            raise CallError(explain(requirement, interface, address))
    for param in tensors(interface):
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
                    f"while it writes {output.name}, so pass memory of its own"
                )


def explain(requirement: Requirement, interface: Interface, values: Mapping[str, int]) -> str:
    """One sentence on a requirement that ``values`` break: what it is, and what it should be."""
    name = requirement.name
    owner = next((tensor for tensor, pitch in interface.pitch if pitch == name), None)
    match requirement:
        case Aligned(bytes=size):
            return (
                f"{name} begins {values[name] % size} bytes past a multiple of {size}, and the "
                f"kernel's wide accesses need {size}-byte alignment: pass an aligned copy, or use "
                "the kernel without vectorize"
            )
        case MultipleOf(divisor=divisor):
            way = f"pad the rows of {owner}, or " if owner else ""
            return (
                f"{name} = {values[name]}, and the kernel needs {requirement.text()}: {way}use the "
                f"kernel without that width ({values[name]} % {divisor} = {values[name] % divisor})"
            )
        case AtLeast(bound=bound):
            return (
                f"{name} = {values[name]} is less than {bound} = {values[bound]}: the rows of "
                f"{owner or 'the tensor'} overlap"
            )
        case AtMost(bound=bound):
            return f"{name} = {values[name]} is more than the {bound} that this kernel can index"
        case Equal(other=other):
            return (
                f"{name} = {values[name]} and {other} = {values[other]}, but the schedule assumes "
                f"{requirement.text()}"
            )


def _check_kind(param: Param, view: View) -> None:
    # Where a library has no bfloat16, its bits come as uint16.
    if view.dtype not in (NAMES[param.dtype], STORAGE[param.dtype].name):
        raise CallError(f"{param.name} is {view.dtype}; the kernel takes {NAMES[param.dtype]}")
    if len(view.shape) != len(param.indices):
        raise CallError(
            f"{param.name} has shape {view.shape}; the kernel takes {_spelled(param)}, "
            f"of {len(param.indices)} dimensions"
        )


def _extents(interface: Interface, views: Mapping[str, View]) -> dict[str, int]:
    """Every letter's extent; tensors that disagree are refused with both shapes."""
    extents: dict[str, int] = {}
    origin: dict[str, str] = {}
    for param in tensors(interface):
        if param.name not in views:
            continue
        for letter, size in zip(param.indices, views[param.name].shape, strict=True):
            name = interface.extent(letter)
            if extents.setdefault(name, size) != size:
                first = origin[name]
                raise CallError(
                    f"{param.name} has shape {views[param.name].shape}, so {name} = {size}, but "
                    f"{first} has shape {views[first].shape}, so {name} = {extents[name]}"
                )
            origin.setdefault(name, param.name)
    return extents


def _check_layout(param: Param, view: View) -> int:
    """The leading dimension of a matrix (1 for a vector); refuses strides a kernel can't follow."""
    shape, strides = view.shape, view.strides
    last = param.indices[-1]
    if 0 in shape:  # no element is ever reached, so any leading dimension will do
        return -(-shape[-1] // 16) * 16
    if shape[-1] > 1 and strides[-1] != 1:
        raise CallError(
            f"{param.name} is not contiguous along {last}: its stride there is {strides[-1]} "
            f"elements, and the kernel takes {_spelled(param)} with stride 1"
        )
    if len(shape) == 1:
        return 1
    step = _row_step(view)
    if step < shape[-1]:
        raise CallError(
            f"{param.name} has rows of {shape[-1]} elements that begin {step} elements apart, so "
            "they overlap; pass a copy"
        )
    expected = step
    for axis in range(len(shape) - 3, -1, -1):
        expected *= shape[axis + 1]
        if shape[axis] > 1 and strides[axis] != expected:
            raise CallError(
                f"{param.name} has stride {strides[axis]} along {param.indices[axis]}; the kernel "
                f"takes its matrices {expected} elements apart"
            )
    return step


def _row_step(view: View) -> int:
    """The distance of a matrix's rows; a row alone has none, and gets one that suits wide loads."""
    *outer, row = zip(view.shape, view.strides, strict=True)
    for size, stride in reversed(outer):
        if size > 1:
            return stride
    return min(-(-row[0] // 16) * 16, max(row[0], INT_MAX))


def _take_pitch(param: Param, name: str, step: int, view: View, values: dict[str, int]) -> None:
    """Records ``step`` as the leading dimension ``name``, or compares it with that extent."""
    if name not in values:
        if step > INT_MAX:
            raise CallError(f"{name} = {step} is more than an int holds ({INT_MAX})")
        values[name] = step
    elif values[name] != step and 0 not in view.shape and view.shape[-2] > 1:
        raise CallError(
            f"{param.name} has a leading dimension of {step}, but the schedule assumes "
            f"{name} = {values[name]}"
        )


def _footprint(param: Param, view: View, step: int) -> Footprint:
    if 0 in view.shape:
        return Footprint(param.name, 0, 0, 1)
    last = sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True) if n > 1)
    size = BYTES[param.dtype]
    row = view.shape[-1] * size
    pitch = step * size if len(view.shape) > 1 else row
    return Footprint(param.name, (last + 1) * size, row, pitch)


def _overlap(one: Footprint, other: Footprint, address: Mapping[str, int]) -> bool:
    """Whether two tensors share a byte; columns of one matrix side by side don't."""
    a, b = address[one.name], address[other.name]
    if a + one.span <= b or b + other.span <= a or not (one.span and other.span):
        return False
    if one.pitch != other.pitch:
        return True
    shift = (b - a) % one.pitch
    return shift < one.row or shift + other.row > one.pitch


def _spelled(param: Param) -> str:
    return f"{param.name}[{', '.join(param.indices)}]"


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a tensor stored without gaps."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides))
