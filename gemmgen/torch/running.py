"""Launches of a kernel on PyTorch tensors, on the tensors' device.

On CUDA tensors it is ``gemmgen.gpu``'s kernel; on CPU tensors the emitted text, compiled by g++,
which is slow and meant for trying and testing an operator without a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from gemmgen.pipeline import Emitted
from gemmgen.torch.pytorch import TorchTensor, pytorch

if TYPE_CHECKING:
    from gemmgen.gpu.launch import Kernel
    from gemmgen.sim.host_kernel import HostKernel

_KEPT = 512
_loaded: dict[tuple[str, int], Kernel] = {}
"""Kernels by text and GPU."""


def launch(
    emitted: Emitted, tensors: Mapping[str, TorchTensor], numbers: Mapping[str, float]
) -> None:
    """Runs the kernel; one of the tensors is its output."""
    device = next(iter(tensors.values())).device
    if device.type == "cpu":
        arrays = {name: _array(tensor) for name, tensor in tensors.items()}
        _on_cpu(emitted)(**arrays, **numbers)
        return
    torch, index = pytorch(), cast(int, device.index)
    with torch.no_grad(), torch.cuda.device(index):
        loaded(emitted, index)(**tensors, **numbers)


def loaded(emitted: Emitted, index: int) -> Kernel:
    """The kernel on the GPU ``index``, which must be current."""
    found = _loaded.get((emitted.text, index))
    if found is None:
        from gemmgen.gpu.capturing import loading_allowed
        from gemmgen.gpu.launch import Kernel

        with loading_allowed():
            found = Kernel.of(emitted)
        while len(_loaded) >= _KEPT:
            _loaded.pop(next(iter(_loaded)))
        _loaded[emitted.text, index] = found
    return found


def _on_cpu(emitted: Emitted) -> HostKernel:
    """g++'s program for the text, cached in the process."""
    from gemmgen.sim.host_kernel import HostKernel

    return HostKernel.of(emitted)


def _array(tensor: TorchTensor) -> np.ndarray:
    """The tensor's memory as a NumPy array; bf16 and FP8 as their bits.

    It is a view of one flat array, whatever the strides, as ``CompiledKernel.run`` requires.
    """
    torch = pytorch()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    elif str(tensor.dtype).startswith("torch.float8"):
        tensor = tensor.view(torch.uint8)
    flat = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage()).numpy()
    flat = cast(np.ndarray, flat)
    if tensor.dtype == torch.int16:
        flat = flat.view(np.uint16)
    strides = tuple(stride * flat.itemsize for stride in tensor.stride())
    start = flat[tensor.storage_offset() :]
    return np.lib.stride_tricks.as_strided(start, tuple(tensor.shape), strides)
