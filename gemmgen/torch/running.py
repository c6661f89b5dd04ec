"""A kernel launched on PyTorch tensors, on the device that they are on.

On CUDA tensors it is ``gemmgen.gpu``'s kernel; on CPU tensors the emitted text, compiled by g++,
runs on their memory: slow, and right to try and to test an operator without a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import numpy as np

from gemmgen.pipeline import Emitted
from gemmgen.torch.pytorch import Device, Tensor, pytorch, torch_dtype

_KEPT = 512
_loaded: dict[tuple[str, int | None], Callable[..., object]] = {}
"""Kernels by text and GPU (None: the CPU)."""


def launch(emitted: Emitted, tensors: Mapping[str, Tensor], numbers: Mapping[str, float]) -> None:
    """Runs the kernel; one of the tensors is its output."""
    device = next(iter(tensors.values())).device
    if device.type == "cpu":
        arrays = {name: _array(tensor) for name, tensor in tensors.items()}
        _kernel(emitted, None)(**arrays, **numbers)
        return
    torch = pytorch()
    with torch.no_grad(), torch.cuda.device(device.index):
        scratch = _captured(emitted, tensors, device)
        _kernel(emitted, device.index)(**tensors, **numbers, **scratch)


def _captured(
    emitted: Emitted, tensors: Mapping[str, Tensor], device: Device
) -> Mapping[str, Tensor]:
    """Memory for a launch that a graph captures, from the graph's own pool, which frees it with
    the graph; nothing where no graph does: the kernel has memory for each stream."""
    torch, interface = pytorch(), emitted.interface
    if not interface.scratch or not torch.cuda.is_current_stream_capturing():
        return {}
    extents: dict[str, int] = {}
    for param in interface.params:
        if param.kind == "tensor":
            shape = tensors[param.name].shape
            extents |= {interface.extent(x): n for x, n in zip(param.indices, shape, strict=True)}
    found: dict[str, Tensor] = {}
    for param in interface.scratch:
        dtype = torch.int32 if param.kind == "counter" else torch_dtype(param.dtype)
        make = torch.zeros if param.zeroed else torch.empty
        size = max(1, interface.scratch_elements(param, extents))
        found[param.name] = make((size,), dtype=dtype, device=device)
    return found


def _kernel(emitted: Emitted, index: int | None) -> Callable[..., object]:
    key = (emitted.text, index)
    found = _loaded.get(key)
    if found is None:
        found = _load(emitted, index)
        while len(_loaded) >= _KEPT:
            _loaded.pop(next(iter(_loaded)))
        _loaded[key] = found
    return found


def _load(emitted: Emitted, index: int | None) -> Callable[..., object]:
    """``index``: that of the current GPU; None for the CPU."""
    if index is None:
        from gemmgen.sim.launch import HostKernel

        return HostKernel(emitted.text, emitted.interface)
    from gemmgen.gpu.launch import Kernel

    return Kernel.of(emitted)


def _array(tensor: Tensor) -> np.ndarray:
    """The tensor's memory as NumPy sees it; bf16 is its bits.

    It is a view of one flat array, whatever the strides, as ``CompiledKernel.run`` asks.
    """
    torch = pytorch()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    flat = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage()).numpy()
    flat = cast(np.ndarray, flat)
    if tensor.dtype == torch.int16:
        flat = flat.view(np.uint16)
    strides = tuple(stride * flat.itemsize for stride in tensor.stride())
    start = flat[tensor.storage_offset() :]
    return np.lib.stride_tricks.as_strided(start, tuple(tensor.shape), strides)
