"""Products of CuPy arrays: a call like an earlier one is a look-up and a launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gemmgen.base.memo import Memo
from gemmgen.calling.scalars import number
from gemmgen.functions.array_kinds import Array, cupy_kernel
from gemmgen.functions.call_epilogue import given
from gemmgen.functions.direct import ALIGNED, DirectCall, Selected, product, selected
from gemmgen.functions.written import CupyWritten
from gemmgen.ir.decompositions import Fast
from gemmgen.ir.dtypes import DTYPES

_ready: Memo[object, CupyReady | CupyWritten] = Memo(4096)


class CupyReady:
    """A kernel that was chosen for arrays, launched on others that differ in their addresses.

    These have the same types, shapes, strides and device; the result is new.
    """

    __slots__ = ("_current", "_gpu", "_make", "_numbers", "_positions", "_start")

    def __init__(self, call: DirectCall, found: Selected) -> None:
        """The device of the arrays must be current."""
        from gemmgen.gpu.device import cupy

        first = call.arrays["A"]
        self._gpu: int = first.data.device_id
        self._current: Callable[[], int] = cupy().cuda.runtime.getDevice
        kernel = cupy_kernel(found.choice.emitted, self._gpu)
        self._start = kernel.fixed(first, found.choice.views)
        self._numbers = tuple(number(p, call.numbers.get(p.name)) for p in kernel.scalars)
        given = list(call.arrays)
        self._positions = [
            given.index(param.name) if param.name in given else -1 for param in kernel.tensors
        ]
        name, shape = DTYPES[found.plan.dtype].name, found.plan.arrangement.result
        kind = first.dtype if first.dtype.name == name else name
        make = cupy().ndarray

        def allocate() -> Array:
            return make(shape, kind)

        self._make = allocate

    def __call__(self, arrays: Sequence[Any]) -> Array | None:
        """The result; None if an address is less aligned, or another device is current."""
        addresses = [array.data.ptr for array in arrays]
        for address in addresses:
            if not address or address % ALIGNED:
                return None
        if self._current() != self._gpu:
            return None
        output = self._make()
        addresses.append(output.data.ptr)
        self._start([addresses[at] for at in self._positions], self._numbers)
        return output


def cupy_product(
    a: Array,
    b: Array,
    bias: Array | None,
    epilogue: object,
    out: Array | None,
    fast: Fast,
    same_bits: str | None,
    transposed: bool,
) -> Array:
    """The handler of CuPy arrays."""
    key = None
    if epilogue is None or type(epilogue) is str:
        try:
            key = _described(a, b, bias, epilogue, fast, same_bits, transposed)
            if out is not None:
                key = key, _layout(out)
        except AttributeError:  # another library's
            key = None
        ready = _ready.get(key) if key is not None else None
        if ready is not None:
            inputs = (a, b) if bias is None else (a, b, bias)
            found = ready(inputs if out is None else (*inputs, out))
            if found is not None:
                return found
    from gemmgen.gpu.device import cupy

    text, values = given(bias, epilogue)
    call = DirectCall.of(a, b, text, values, out, fast, same_bits, transposed)
    chosen = selected(call)
    with cupy().cuda.Device(a.data.device_id):
        found = product(call)
        if key is not None and chosen.repeatable:
            _ready.put(key, (CupyReady if out is None else CupyWritten)(call, chosen))
    return found


def _described(
    a: Any,
    b: Any,
    bias: Any,
    epilogue: str | None,
    fast: Fast,
    same_bits: str | None,
    transposed: bool,
) -> tuple[object, ...]:
    """All that a launch depends on but addresses."""
    arrays = (
        a.shape,
        b.shape,
        a._c_contiguous or a.strides,
        b._c_contiguous or b.strides,
        a.dtype,
        b.dtype,
        a.data.device_id,
        b.data.device_id,
    )
    if bias is None:
        return (*arrays, epilogue, fast, same_bits, transposed)
    return (*arrays, *_layout(bias), epilogue, fast, same_bits, transposed)


def _layout(array: Any) -> tuple[object, ...]:
    return array.shape, array.strides, array.dtype, array.data.device_id
