"""PyTorch's tensors as a kernel's arguments.

Many properties of a tensor depend on the moment of the call (whether it requires a gradient,
whether it is a lazy negation), so they are checked at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, cast

from gemmgen.base.errors import CallError
from gemmgen.base.memo import Memo
from gemmgen.base.record import record
from gemmgen.calling.arguments import View
from gemmgen.gpu.plan import LaunchPlan
from gemmgen.ir.param import Param


class _Device(Protocol):
    type: str
    index: int


class _Tensor(Protocol):
    shape: tuple[int, ...]
    dtype: object
    device: _Device
    layout: object
    requires_grad: bool

    def stride(self) -> tuple[int, ...]: ...
    def data_ptr(self) -> int: ...
    def is_neg(self) -> bool: ...


Torch = Any
"""The module ``torch``, which lint runs without."""
_Check = Callable[..., bool]
"""Whether tensors agree with those of an earlier call in all but their addresses."""


@record
class _Entry:
    matches: _Check
    has_gradients: bool
    plan: LaunchPlan


_SAME_SHAPE = 8
"""Plans that are kept for tensors of the same shapes."""


class TorchPlans:
    """The last plan is tried first, then those of the same shapes.

    Tensors are ``Any`` on the fast path: a ``cast`` costs as much as reading a shape.
    """

    def __init__(self, most: int, torch: Torch) -> None:
        self._entries: Memo[tuple[object, ...], tuple[_Entry, ...]] = Memo(most)
        self._last: _Entry | None = None
        self._forward = torch.autograd.forward_ad
        self._wants_gradients = torch.is_grad_enabled
        self._check = checks(torch)

    def find(
        self, tensors: Sequence[Any], *, checked: bool = False
    ) -> tuple[LaunchPlan, list[int]] | None:
        if self._forward._current_level >= 0 and not checked:
            return None
        try:
            entry = self._last
            if entry is None or not entry.matches(*tensors):
                entry = self._searched(tensors)
                if entry is None:
                    return None
                self._last = entry
            if entry.has_gradients and self._wants_gradients():
                return None
            return entry.plan, [tensor.data_ptr() for tensor in tensors]
        except (AttributeError, TypeError, RuntimeError):  # of another library, or without memory
            return None

    def remember(self, tensors: Sequence[object], plan: LaunchPlan) -> None:
        several = cast(Sequence[_Tensor], tensors)
        has_gradients = any(tensor.requires_grad for tensor in several)
        key = tuple([tensor.shape for tensor in several])
        entry = _Entry(self._check(several), has_gradients, plan)
        self._entries.put(key, (entry, *(self._entries.get(key) or ())[: _SAME_SHAPE - 1]))

    def _searched(self, tensors: Sequence[Any]) -> _Entry | None:
        key = tuple([tensor.shape for tensor in tensors])
        for entry in self._entries.get(key) or ():
            if entry.matches(*tensors):
                return entry
        return None


class TorchArrays:
    """PyTorch's tensors on devices of type ``kind``."""

    name = "PyTorch"

    def __init__(self, torch: Torch, kind: str = "cuda") -> None:
        self._torch, self._kind = torch, kind
        self._plain = frozenset((torch.Tensor, torch.nn.Parameter))
        self._wants_gradients = torch.is_grad_enabled
        self._forward = torch.autograd.forward_ad
        self._current = _raw_stream(torch)
        self._devices: dict[int, object] = {}

    def plans(self, most: int) -> TorchPlans:
        return TorchPlans(most, self._torch)

    def check(self, name: str, value: object) -> None:
        """Refuses tensors without memory that a kernel can read, and with state that a kernel
        would ignore."""
        tensor, kind = cast(_Tensor, value), type(value)
        if _is_wrapped(self._torch, value):
            raise CallError(
                f"{name} is a tensor inside torch.vmap or torch.func, which can't see into a kernel"
            )
        if tensor.layout != self._torch.strided:
            layout = str(tensor.layout).removeprefix("torch.")
            raise CallError(f"{name} is a tensor of layout {layout}; pass .to_dense()")
        if kind not in self._plain and _has_no_memory(self._torch, kind):
            raise CallError(
                f"{name} is a {kind.__module__}.{kind.__qualname__}, which has no memory with "
                "its elements; the kernel takes a plain tensor"
            )
        if tensor.device.type != self._kind:
            raise CallError(f"{name} is a PyTorch tensor on {tensor.device}; move it with .cuda()")
        if tensor.is_neg():
            raise CallError(
                f"{name} is negated when it is read, which a kernel can't see; pass .resolve_neg()"
            )
        if tensor.requires_grad and self._wants_gradients():
            raise CallError(
                f"{name} requires a gradient, which a kernel does not compute; pass .detach()"
            )
        level = self._forward._current_level
        if level >= 0 and self._forward.unpack_dual(value).tangent is not None:
            raise CallError(f"{name} has a tangent, which a kernel would ignore; pass its primal")

    def view(self, value: object) -> View:
        tensor = cast(_Tensor, value)
        dtype = str(tensor.dtype).removeprefix("torch.")
        shape = tuple(tensor.shape)
        return View(tensor.data_ptr(), shape, tensor.stride(), dtype, tensor.device.index or 0)

    def allocator(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        output: Param,
        kind: str,
        gpu: int,
    ) -> Callable[[], tuple[object, int]]:
        dtype: object = getattr(self._torch, kind)
        where, plain = self._device(gpu), self._torch.Tensor
        make = partial(self._torch.empty_strided, shape, strides, dtype=dtype, device=where)

        def allocate() -> tuple[object, int]:
            tensor = make()
            if type(tensor) is not plain:
                name = type(tensor).__qualname__
                raise CallError(f"C can't be allocated: PyTorch is in a mode that gives {name}")
            return tensor, cast(_Tensor, tensor).data_ptr()

        return allocate

    def memory(self, size: int, gpu: int, *, zeroed: bool) -> tuple[object, int]:
        """Within a capture, memory of the graph's pool, which is freed with the graph."""
        where, kind = self._device(gpu), self._torch.uint8
        if zeroed:
            found = self._torch.zeros((size,), dtype=kind, device=where)
        else:
            found = self._torch.empty_strided((size,), (1,), dtype=kind, device=where)
        return found, cast(_Tensor, found).data_ptr()

    def stream(self, gpu: int) -> int:
        return self._current(gpu)

    def stream_object(self, gpu: int) -> object:
        return self._torch.cuda.current_stream(gpu)

    def _device(self, gpu: int) -> object:
        found = self._devices.get(gpu)
        if found is None:
            found = self._devices[gpu] = self._torch.device(self._kind, gpu)
        return found


def checks(torch: Torch) -> Callable[[Sequence[_Tensor]], _Check]:
    """A function that makes the check for given tensors.

    PyTorch's own guards compare type, layout, dtype, device, shape, strides and dispatch keys
    (negation, ``vmap``, modes) in one call; without them the comparison is here.
    """
    dynamo = getattr(getattr(torch, "_C", None), "_dynamo", None)
    guards = getattr(getattr(dynamo, "guards", None), "TensorGuards", None)

    def of_pytorch(tensors: Sequence[_Tensor]) -> _Check:
        shapes = [list(tensor.shape) for tensor in tensors]
        strides = [list(tensor.stride()) for tensor in tensors]
        assert guards is not None
        made = guards(*tensors, dynamic_dims_sizes=shapes, dynamic_dims_strides=strides)
        return cast(_Check, made.check)

    def of_our_own(tensors: Sequence[_Tensor]) -> _Check:
        wanted = [_described(torch, tensor) for tensor in tensors]

        def matches(*others: _Tensor) -> bool:
            return [_described(torch, tensor) for tensor in others] == wanted

        return matches

    try:
        probe = cast(_Tensor, torch.empty_strided((2, 1), (1, 1), dtype=torch.uint8, device="cpu"))
        trusted = guards is not None and of_pytorch([probe])(probe)
    except (TypeError, RuntimeError, SystemError):
        trusted = False
    return of_pytorch if trusted else of_our_own


def _described(torch: Torch, tensor: _Tensor) -> tuple[object, ...]:
    state = tensor.is_neg(), _is_wrapped(torch, tensor), tensor.requires_grad
    return type(tensor), tensor.shape, tensor.stride(), tensor.dtype, tensor.device, *state


def _raw_stream(torch: Torch) -> Callable[[int], int]:
    """PyTorch's fast function for the current stream's handle, or the documented one."""
    quick = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
    if quick is not None:
        return cast(Callable[[int], int], quick)
    return lambda gpu: torch.cuda.current_stream(gpu).cuda_stream


def _is_wrapped(torch: Torch, value: object) -> bool:
    """Whether it is a wrapper tensor of ``torch.func`` (vmap, grad, jvp)."""
    functorch = getattr(getattr(torch, "_C", None), "_functorch", None)
    asks = getattr(functorch, "is_functorch_wrapped_tensor", None)
    return asks is not None and bool(asks(value))


def _has_no_memory(torch: Torch, kind: type) -> bool:
    """Whether it is a subclass that implements its operations itself, as FakeTensor and DTensor."""
    own = getattr(kind, "__torch_dispatch__", None)
    return own is not getattr(torch.Tensor, "__torch_dispatch__", None)
