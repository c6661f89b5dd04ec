"""Checks of a kernel's arguments before its launch; no GPU is needed.

Tensors are ``View`` values.  The checks that depend on shapes alone return a ``Geometry``, which
the launcher caches; those that depend on addresses are made at every call.
"""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.base.errors import CallError
from gemmgen.base.record import record
from gemmgen.base.source import counted
from gemmgen.calling.requirement_messages import explain
from gemmgen.calling.strides import bounds, is_folded
from gemmgen.ir.blocked_letters import block, count, plain
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.interface import INT_MAX, Interface
from gemmgen.ir.param import Param
from gemmgen.ir.requirement import Aligned
from gemmgen.numerics.formats import NAMES, STORAGE


@record
class View:
    """A tensor in device memory: address, shape, strides in elements, dtype name, device number."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str = "float32"
    device: int = 0


@record
class Footprint:
    """The bytes of a tensor relative to its address: its shape and strides in bytes, those of an
    element last."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def of(param: Param, view: View) -> Footprint:
        size = BYTES[param.dtype]
        strides = tuple(stride * size for stride in view.strides)
        return Footprint(param.name, (*view.shape, size), (*strides, 1))

    def bounds(self, address: int) -> tuple[int, int]:
        """The addresses of its first byte, and past its last."""
        low, high = bounds(self.shape, self.strides)
        return address + low, address + high


@record
class Geometry:
    """Extents, leading dimensions and strides of a call by name, its blocks, and the footprints of
    its tensors."""

    values: Mapping[str, int]
    grid: int
    inputs: tuple[Footprint, ...]
    outputs: tuple[Footprint, ...]


def may_be_absent(param: Param, beta: float | None) -> bool:
    """Whether the launcher may allocate the output: it isn't read, or beta == 0."""
    return param.written and (not param.read or beta == 0.0)


def output_layout(
    param: Param, interface: Interface, views: Mapping[str, View]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides, in elements, of an output that the launcher allocates.

    The shape follows from the inputs that share its letters.  Rows are dense, or padded for the
    kernel's wide accesses: rows of N = 45 elements that are accessed by fours are 48 apart.
    """
    extents = _checked_extents(interface, views)
    names = [interface.extent(letter) for letter in param.indices]
    missing = [name for name in names if name not in extents]
    if missing:
        raise CallError(f"{param.name} must be passed: no input gives its extent {missing[0]}")
    shape = tuple(extents[name] for name in names)
    pitch = dict(interface.pitch).get(param.name)
    free = any(other.kind == "ld" and other.name == pitch for other in interface.params)
    apart = interface.divisor(pitch) if pitch and free else 1
    row = -(-shape[-1] // apart) * apart
    return shape, contiguous_strides((*shape[:-1], row))


def geometry(interface: Interface, views: Mapping[str, View], held: int = 1) -> Geometry:
    """The geometry of a call with ``views`` on a GPU that has ``held`` multiprocessors, or runs
    ``held`` clusters at a time; raises ``CallError`` for their first mistake."""
    values = _checked_extents(interface, views)
    footprints: dict[str, Footprint] = {}
    for param in interface.tensors:
        view = views[param.name]
        _check_contiguous(param, view)
        _take_steps(interface, param, view, values)
        footprints[param.name] = Footprint.of(param, view)
        if param.written and is_folded(view.shape, view.strides):
            raise CallError(
                f"{param.name} has strides {view.strides}, so two of its elements have "
                "one address; the kernel writes each of them, so pass separate memory"
            )
    for requirement in interface.requirements:
        if not isinstance(requirement, Aligned) and not requirement.holds(values):
            raise CallError(explain(requirement, interface, values))
    if interface.is_too_large(values):
        raise CallError(too_many_tiles(interface, values))
    written = {param.name for param in interface.tensors if param.written}
    return Geometry(
        values=values,
        grid=interface.grid(values, held),
        inputs=tuple(footprint for name, footprint in footprints.items() if name not in written),
        outputs=tuple(footprint for name, footprint in footprints.items() if name in written),
    )


def too_many_tiles(interface: Interface, values: Mapping[str, int]) -> str:
    """A sentence about extents for which C has more tiles than a launch can have."""
    who, what = "a launch has at most", " blocks"
    if interface.resident:
        who, what = "persistent blocks compute at most", ""
    tiles = interface.tile_count(values) * interface.parts
    return f"C has {tiles} tiles; {who} {interface.most_tiles}{what}"


def _check_kind(param: Param, view: View) -> None:
    # Libraries without bfloat16 pass its bits as uint16.
    if view.dtype not in (NAMES[param.dtype], STORAGE[param.dtype].name):
        raise CallError(f"{param.name} is {view.dtype}; the kernel takes {NAMES[param.dtype]}")
    if len(view.shape) != len(param.indices):
        raise CallError(
            f"{param.name} has shape {view.shape}; the kernel takes {param.text}, "
            f"of {len(param.indices)} dimensions"
        )


def _checked_extents(interface: Interface, views: Mapping[str, View]) -> dict[str, int]:
    """Every letter's extent; raises ``CallError`` for a tensor of another type or number of
    dimensions, and for an extent that does not fit an int."""
    for param in interface.tensors:
        if param.name in views:
            _check_kind(param, views[param.name])
    extents = _extents(interface, views)
    for name, value in extents.items():
        if value > INT_MAX:
            raise CallError(f"{name} = {value} is more than an int holds ({INT_MAX})")
    return extents


def _extents(interface: Interface, views: Mapping[str, View]) -> dict[str, int]:
    """Every letter's extent; tensors that disagree are refused with both shapes."""
    extents: dict[str, int] = {}
    origin: dict[str, str] = {}
    for param in interface.tensors:
        if param.name not in views:
            continue
        for letter, size in zip(param.indices, views[param.name].shape, strict=True):
            name = interface.extent(letter)
            if block(letter) > 1:
                continue
            if extents.setdefault(name, size) != size:
                first = origin[name]
                raise CallError(
                    f"{param.name} has shape {views[param.name].shape}, so {name} = {size}, but "
                    f"{first} has shape {views[first].shape}, so {name} = {extents[name]}"
                )
            origin.setdefault(name, param.name)
    for param in interface.tensors:
        if param.name in views:
            _check_blocks(interface, param, views[param.name], extents)
    return extents


def _check_blocks(
    interface: Interface, param: Param, view: View, extents: Mapping[str, int]
) -> None:
    """Raises ``CallError`` if a tensor has not one element for each block of a letter."""
    for letter, size in zip(param.indices, view.shape, strict=True):
        elements, name = block(letter), interface.extent(plain(letter))
        if elements > 1 and name in extents and count(letter, extents[name]) != size:
            raise CallError(
                f"{param.name} has shape {view.shape}, so {counted(size, 'block')} of {elements} "
                f"along {plain(letter)}, but {name} = {extents[name]} has "
                f"{count(letter, extents[name])}"
            )


def _check_contiguous(param: Param, view: View) -> None:
    if 0 not in view.shape and view.shape[-1] > 1 and view.strides[-1] != 1:
        raise CallError(
            f"{param.name} is not contiguous along {param.indices[-1]}: its stride there is "
            f"{view.strides[-1]} elements, and the kernel takes {param.text} with stride 1"
        )


def _take_steps(interface: Interface, param: Param, view: View, values: dict[str, int]) -> None:
    """Records a tensor's leading dimension and strides; refuses what a kernel can't follow."""
    ld = dict(interface.pitch).get(param.name)
    for name, size, stride in zip(interface.steps(param), view.shape, view.strides, strict=True):
        if name is None:
            continue
        apart = size > 1 and 0 not in view.shape
        if name == ld:
            _take_pitch(param, name, stride if apart else None, view, values)
        else:
            # The stride of one matrix, or none, is not used; 0 is a multiple of all widths.
            values[name] = stride if apart else 0


def _take_pitch(
    param: Param, name: str, step: int | None, view: View, values: dict[str, int]
) -> None:
    """Records the distance of a matrix's rows as ``name``, or compares it with that extent.

    A single row has none (``step`` is None), and gets one that is legal for wide accesses.
    """
    row = view.shape[-1]
    if step is not None and step < row:
        why = "so they overlap" if step >= 0 else "each before the last, and a kernel goes forward"
        raise CallError(
            f"{param.name} has rows of {row} elements that begin {step} elements apart, {why}; "
            "pass a copy"
        )
    if name not in values:
        step = min(-(-row // 16) * 16, max(row, INT_MAX)) if step is None else step
        if step > INT_MAX:
            raise CallError(f"{name} = {step} is more than an int holds ({INT_MAX})")
        values[name] = step
    elif step is not None and values[name] != step:
        raise CallError(
            f"{param.name} has a leading dimension of {step}, but the schedule assumes "
            f"{name} = {values[name]}"
        )


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a tensor stored without gaps."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides)) if shape else ()
