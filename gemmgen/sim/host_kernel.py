"""A generated kernel as a Python function over NumPy arrays: its text, run by this machine's CPU.

    kernel = HostKernel(emitted.text, emitted.interface)
    c = kernel(A=a, B=b, alpha=2.0)

It is called like the kernel on a GPU: arguments have the schedule's names, extents follow from
shapes and leading dimensions from strides, and the same calls are refused with the same messages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from gemmgen.base.errors import CallError
from gemmgen.calling.arguments import View, geometry, may_be_absent, output_layout
from gemmgen.calling.binding import Binding
from gemmgen.calling.dynamo import leave_untraced, opaque
from gemmgen.calling.element_types import array_type, output_type
from gemmgen.calling.overlaps import check_addresses
from gemmgen.calling.scalars import number
from gemmgen.ir.blocked_letters import plain
from gemmgen.ir.dtypes import DType
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.numerics.formats import Stored, poison
from gemmgen.pipeline import Emitted
from gemmgen.sim.packing import Argument
from gemmgen.sim.poisoned_memory import aligned
from gemmgen.sim.run import compile_kernel


class HostKernel:
    """One emitted text, compiled by g++.

    bf16, e4m3 and e5m2 are arrays of ``ml_dtypes``, or of their bits (uint16, uint8); C is of the
    same kind as the first such input, and of ``ml_dtypes`` if there is none.  Every thread of every
    block is executed, so it is for checks and small sizes.  Raises ``CannotCheck`` if there is no
    g++.
    """

    def __init__(self, text: str, interface: Interface, *, schedule: str = ""):
        """``schedule``: what the text was emitted from."""
        leave_untraced()
        self.text, self.schedule = text, schedule
        self.interface = interface
        self._binding = Binding(interface)
        self._program = compile_kernel(text, interface)

    @classmethod
    def of(cls, emitted: Emitted) -> HostKernel:
        schedule = emitted.schedule.text
        return cls(emitted.text, emitted.interface, schedule=schedule)

    def __repr__(self) -> str:
        return f"<gemmgen kernel {self._binding.signature()} on the CPU>"

    @property
    def name(self) -> str:
        return self.interface.name

    @opaque
    def __call__(self, *tensors: object, **arguments: object) -> Stored:
        """Runs the kernel and returns C, which is allocated if it isn't passed and isn't read.

        The tensors of the ``gemm`` line may be positional: ``kernel(A, B)``, ``kernel(A, B, C)``.
        Raises ``CallError`` with one sentence for arguments that the kernel does not take, and
        ``KernelFault`` if the run is stopped.
        """
        interface, binding = self.interface, self._binding
        bound = binding.bind(tensors, arguments)
        count = len(binding.tensors)
        numbers = {
            p.name: number(p, v) for p, v in zip(binding.scalars, bound[count:], strict=True)
        }
        values = self._gather(bound[:count], numbers)
        views = {name: _view(name, value) for name, value in values.items()}
        output = binding.tensors[binding.output]
        layout = in_numpy = None
        if output.name not in values:
            layout = output_layout(output, interface, views)
            kind = output_type(output, interface, views)
            in_numpy = array_type(output, kind)
            views[output.name] = View(0, *layout, kind)
        found = geometry(interface, views)
        if layout is not None and in_numpy is not None:
            values[output.name] = _unwritten(*layout, output.dtype, in_numpy)
            views[output.name] = _view(output.name, values[output.name])
        check_addresses(found, interface, {name: view.pointer for name, view in views.items()})
        given: dict[str, Argument] = {**found.values, **values, **numbers}
        if interface.skips_product(numbers):
            given |= _without_product(interface, values)
        self._program.run({p.name: given[p.name] for p in interface.params if not p.is_scratch})
        return values[output.name]

    def _gather(self, given: Sequence[object], numbers: Mapping[str, float]) -> dict[str, Stored]:
        """The tensors by name, without an absent output."""
        values: dict[str, Stored] = {}
        for param, value in zip(self._binding.tensors, given, strict=True):
            if value is not None:
                values[param.name] = _array(param, value)
            elif not may_be_absent(param, numbers.get("beta")):
                raise CallError(self._binding.missing(param, given))
        return values


def _without_product(interface: Interface, values: Mapping[str, Stored]) -> dict[str, Argument]:
    """The contracted extent as 0, and the operands sliced to it."""
    assert interface.product is not None
    contracted = interface.product[1]
    found: dict[str, Argument] = {contracted: 0}
    for param in interface.params:
        if interface.is_factor(param):
            depths = (interface.extent(plain(x)) == contracted for x in param.indices)
            cut = [slice(0 if is_depth else None) for is_depth in depths]
            found[param.name] = values[param.name][tuple(cut)]
    return found


def _unwritten(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, kind: np.dtype[np.generic]
) -> Stored:
    """An array of type ``kind`` with NaNs, which expose elements that the kernel leaves out."""
    *outer, columns = shape
    row = strides[-2] if outer else columns
    array = aligned(math.prod(outer) * row, dtype)
    array[:] = poison(array.size, dtype)
    return cast(Stored, array.view(kind).reshape((*outer, row))[..., :columns])


def _array(param: Param, value: object) -> Stored:
    if isinstance(value, np.ma.MaskedArray):
        name = param.name
        other = f"{name}.data" if param.written else f"{name}.filled(0), or {name}.data"
        raise CallError(
            f"{name} is a masked array, and a kernel would ignore its mask; pass {other}"
        )
    if isinstance(value, np.ndarray):
        return cast(Stored, value)
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise CallError(f"{param.name} is a {kind}; a kernel on the CPU takes a NumPy array")


def _view(name: str, value: Stored) -> View:
    item = value.itemsize
    if any(stride % item for stride in value.strides):
        raise CallError(f"{name} has strides of {value.strides} bytes, not multiples of {item}")
    strides = tuple(stride // item for stride in value.strides)
    address = cast(int, value.__array_interface__["data"][0])
    return View(address, value.shape, strides, value.dtype.name)
