"""Cached calls on a GPU: recognized by PyTorch's guards in one step, and launched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, cast

from gemmgen.calling.arguments import View, contiguous_strides
from gemmgen.calling.scalars import number
from gemmgen.gpu.launch import Kernel
from gemmgen.gpu.tensors import checks
from gemmgen.torch.pytorch import TorchTensor, pytorch
from gemmgen.torch.schema import Signature

_ALIGNED = 15
"""The address bits that are 0 for the widest accesses."""


class Ready:
    """A kernel that was chosen for tensors, launched on others like them.

    They have the same types, shapes, strides, devices and alignment; no C is read.
    """

    __slots__ = (
        "_current",
        "_device",
        "_guard",
        "_make",
        "_positions",
        "_scalars",
        "_start",
        "matches",
    )

    def __init__(
        self,
        kernel: Kernel,
        signature: Signature,
        tensors: Sequence[TorchTensor],
        views: Mapping[str, View],
        *,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        """``tensors`` are those of ``signature``, or have their memory in other dimensions;
        ``views`` are those that the kernel takes, ``shape`` is the result's if it is reshaped."""
        torch = pytorch()
        output = signature.output.name
        shape = views[output].shape if shape is None else shape
        device = tensors[0].device
        self._current, self._device = torch.cuda.current_device, device.index
        self._guard: Callable[[int | None], AbstractContextManager[None]] = torch.cuda.device
        dtype = getattr(torch, views[output].dtype)
        self._make: Callable[[], TorchTensor] = partial(
            torch.empty_strided, shape, contiguous_strides(shape), dtype=dtype, device=device
        )
        self.matches: Callable[..., bool] = checks(torch)(cast(Any, tensors))
        self._start = kernel.fixed(tensors[0], views)
        given = [x.name for x in signature.tensors]
        names = [param.name for param in kernel.tensors]
        self._positions = [given.index(name) if name != output else -1 for name in names]
        known = list(signature.names)
        self._scalars = [(known.index(param.name), param) for param in kernel.scalars]

    def __call__(self, tensors: Sequence[TorchTensor], given: Sequence[Any]) -> TorchTensor | None:
        """The output of a call with matching tensors; None if an address is less aligned, or 0."""
        addresses = [tensor.data_ptr() for tensor in tensors]
        for address in addresses:
            if not address or address & _ALIGNED:
                return None
        if self._current() != self._device:
            with self._guard(self._device):
                return self._launched(addresses, given)
        return self._launched(addresses, given)

    def _launched(self, addresses: list[int], given: Sequence[Any]) -> TorchTensor:
        output = self._make()
        addresses.append(output.data_ptr())
        values = tuple([number(param, given[at]) for at, param in self._scalars])
        self._start([addresses[at] for at in self._positions], values)
        return output
