"""Launches that write into the caller's ``out``, which must not overlap an operand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from gemmgen.calling.arguments import View
from gemmgen.calling.scalars import number
from gemmgen.functions.array_kinds import Array, cupy_kernel
from gemmgen.functions.direct import ALIGNED, DirectCall, Selected
from gemmgen.gpu.tensors import checks
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.param import Param
from gemmgen.torch.pytorch import pytorch
from gemmgen.torch.running import loaded

Start = Callable[[Sequence[int], tuple[float, ...]], None]


class WrittenLaunch:
    """A kernel that was chosen for arrays and an ``out``, launched on others at other addresses.

    Addresses are in the order of ``views``, C's last.
    """

    __slots__ = ("_numbers", "_positions", "_sizes", "_start")

    def __init__(
        self,
        start: Start,
        params: Sequence[Param],
        views: Mapping[str, View],
        numbers: tuple[float, ...],
    ) -> None:
        """``start`` takes the addresses of ``params``, and the numbers; ``views`` are the
        caller's arrays as the kernel has them."""
        order = list(views)
        assert order[-1] == "C", "the output is the last array of a call"
        self._start, self._numbers = start, numbers
        self._positions = [order.index(param.name) for param in params]
        size = {param.name: BYTES[param.dtype] for param in params}
        self._sizes = [_span(views[name], size.get(name, 0)) for name in order]

    def __call__(self, addresses: Sequence[int]) -> bool:
        """Launches, unless an address is less aligned or ``out`` may overlap an operand."""
        output = addresses[-1]
        end = output + self._sizes[-1]
        if not output or output % ALIGNED:  # 0: no memory, which a checked call refuses
            return False
        for address, size in zip(addresses[:-1], self._sizes, strict=False):
            if not address or address % ALIGNED:
                return False
            if address < end and output < address + size:
                return False
        self._start([addresses[at] for at in self._positions], self._numbers)
        return True


class CupyWritten:
    """A kernel that was chosen for arrays and an ``out``, launched on others like them."""

    __slots__ = ("_current", "_gpu", "_launch")

    def __init__(self, call: DirectCall, found: Selected) -> None:
        """The device of the arrays must be current."""
        from gemmgen.gpu.device import cupy

        first = call.arrays["A"]
        self._gpu: int = first.data.device_id
        self._current: Callable[[], int] = cupy().cuda.runtime.getDevice
        kernel = cupy_kernel(found.choice.emitted, self._gpu)
        views = {name: found.choice.views[name] for name in call.arrays}
        numbers = tuple(number(p, call.numbers.get(p.name)) for p in kernel.scalars)
        start = kernel.fixed(first, found.choice.views)
        self._launch = WrittenLaunch(start, kernel.tensors, views, numbers)

    def __call__(self, arrays: Sequence[Any]) -> Array | None:
        """``out``, the last array; None if the call must be checked in full."""
        if self._current() != self._gpu or not self._launch([x.data.ptr for x in arrays]):
            return None
        return arrays[-1]


class TorchWritten:
    """A kernel that was chosen for tensors and an ``out``, launched on others like them.

    ``guarded``: a tensor requires a gradient, so that it is for ``no_grad`` alone.
    """

    __slots__ = ("_current", "_device", "_launch", "_matches", "guarded")

    def __init__(self, call: DirectCall, found: Selected, tensors: Sequence[Any]) -> None:
        """``tensors`` are the caller's, ``out`` the last."""
        torch = pytorch()
        self._device = tensors[0].device.index
        self._current, self._matches = torch.cuda.current_device, checks(torch)(tensors)
        self.guarded = any(x.requires_grad for x in tensors)
        with torch.cuda.device(self._device):
            kernel = loaded(found.choice.emitted, self._device)
            start = kernel.fixed(tensors[0], found.choice.views)
        views = {name: found.choice.views[name] for name in call.arrays}
        numbers = tuple(number(p, None) for p in kernel.scalars)
        self._launch = WrittenLaunch(start, kernel.tensors, views, numbers)

    def __call__(self, tensors: Sequence[Any]) -> bool:
        """Whether it launched; else the call must be checked in full."""
        if self._current() != self._device or not self._matches(*tensors):
            return False
        return self._launch([x.data_ptr() for x in tensors])


def _span(view: View, size: int) -> float:
    """Bytes from the address of an array to past its last element; infinite where elements lie
    before the address."""
    if 0 in view.shape:
        return 0
    if any(step < 0 for step in view.strides):
        return inf
    return size * (
        1 + sum((n - 1) * step for n, step in zip(view.shape, view.strides, strict=True))
    )
