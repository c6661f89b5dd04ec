"""The forward pass of an operator: a kernel is chosen for the tensors and launched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from gemmgen.base.errors import CallError
from gemmgen.base.once import made_once
from gemmgen.calling.arguments import View, contiguous_strides
from gemmgen.gpu.gpu_names import Reported, gpu_of
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.decompositions import Fast
from gemmgen.pipeline import Emitted
from gemmgen.schedule.model import Schedule
from gemmgen.torch.choosing import ChosenKernel, OperatorCall, Order, choose
from gemmgen.torch.pytorch import Device, TorchTensor, pytorch, torch_dtype
from gemmgen.torch.running import launch, loaded
from gemmgen.torch.schema import Signature

if TYPE_CHECKING:
    from gemmgen.torch.ready import Ready

_KEPT = 1024
_READY = 16
"""Cached kinds of calls."""
_KERNELS = 256
"""The most kernels of an operator whose schedule follows from extents."""
_ALIGNED = 16
"""Bytes of the widest access, for the alignment of addresses."""


class Forward:
    """The implementation of an operator on real tensors, and on fake ones.

    ``own``: the schedule has a user's directives; else it only states the problem, and a schedule
    is chosen for the extents.  ``fast``: that one may multiply f32 as products of bf16 terms.
    """

    def __init__(self, schedule: Schedule, own: bool, fast: Fast = False) -> None:
        self.schedule, self.own = schedule, own
        self.fast: Fast = fast
        self.signature = Signature.of(schedule)
        self.dtype = torch_dtype(self.signature.output.dtype)
        self._names = self.signature.names
        self._count = len(self.signature.tensors)
        self._beta = self._names.index("beta") if self.signature.old else None
        self._ready: list[Ready] = []
        self._defaults = self.signature.defaults
        self._forward_mode: Any = pytorch().autograd.forward_ad
        self._kernels: dict[str, tuple[Emitted, dict[str, int]]] = {}
        self._choices: dict[tuple[object, ...], ChosenKernel] = {}

    def __call__(self, *given: Any) -> TorchTensor:
        """The output, in its own memory; ``given`` are the arguments in order."""
        absent = len(self._names) - len(given)
        if absent:  # PyTorch leaves out those at the end that are their defaults
            given = (*given, *self._defaults[-absent:])
        if self._forward_mode._current_level >= 0:
            self._check_tangents(given)
        if self._beta is not None and given[self._beta] != 0.0:
            return self._run(given)
        tensors = given[: self._count]
        for ready in self._ready:
            if ready.matches(*tensors):
                found = ready(tensors, given)
                if found is not None:
                    return found
        return self._run(given)

    def _check_tangents(self, given: tuple[Any, ...]) -> None:
        """Refuses tensors of forward-mode differentiation, whose tangents would be lost."""
        for name, value in zip(self._names, given, strict=True):
            if (
                hasattr(value, "data_ptr")
                and self._forward_mode.unpack_dual(value).tangent is not None
            ):
                raise CallError(
                    f"{name} has a tangent, which a kernel would ignore: differentiate in reverse "
                    "mode, or pass its primal"
                )

    def _run(self, given: tuple[Any, ...]) -> TorchTensor:
        """Runs a call that is the first of its kind, or reads C."""
        arguments = dict(zip(self._names, given, strict=True))
        numbers = {name: arguments.pop(name) for name in self.signature.scalars}
        tensors = cast(dict[str, TorchTensor], arguments)
        old = self._old(tensors, numbers)
        if old is not None:
            tensors[self.signature.output.name] = old
        choice = self.choice(tensors)
        tensors.pop(self.signature.output.name, None)
        if old is None:
            self._prepare(choice, tensors)
        for name, order in choice.orders:
            tensors[name] = _ordered(tensors[name], order, choice.views[name])
        tensors[self.signature.output.name] = output = self._output(choice, tensors, old)
        launch(choice.emitted, tensors, numbers)
        return output

    def _prepare(self, choice: ChosenKernel, tensors: Mapping[str, TorchTensor]) -> None:
        """Caches this kind of call, if the tensors are on a GPU and none is copied."""
        device = next(iter(tensors.values())).device
        aligned = all(tensor.data_ptr() % _ALIGNED == 0 for tensor in tensors.values())
        copied = any(order is None for _, order in choice.orders)
        if device.type != "cuda" or copied or not aligned:
            return
        from gemmgen.torch.ready import Ready

        given = [tensors[argument.name] for argument in self.signature.tensors]
        with pytorch().cuda.device(device):
            kernel = loaded(choice.emitted, cast(int, device.index))
            ready = Ready(kernel, self.signature, given, choice.views)
        self._ready = [ready, *self._ready[: _READY - 1]]

    def fake(self, *given: Any) -> TorchTensor:
        """A fake output with the shape, type and strides of a call's result."""
        # Arguments left out at the end are numbers, which have no shape.
        arguments = dict(zip(self._names, given, strict=False))
        extents = self._extents(arguments)
        first = arguments[self._names[0]]
        shape = [extents[letter] for letter in self.signature.output.letters]
        return cast(TorchTensor, first.new_empty(shape, dtype=self.dtype))

    def _old(
        self, tensors: dict[str, TorchTensor], numbers: Mapping[str, float]
    ) -> TorchTensor | None:
        """The C that the kernel reads, or None."""
        signature = self.signature
        if signature.old is None:
            return tensors.get(signature.output.name)
        old = tensors.pop(signature.old.name, None)
        if numbers["beta"] == 0.0:
            return None
        if old is None:
            raise CallError(f"{signature.old.name} is missing: beta is {numbers['beta']}")
        return old

    def _output(
        self, choice: ChosenKernel, tensors: Mapping[str, TorchTensor], old: TorchTensor | None
    ) -> TorchTensor:
        torch = pytorch()
        device = next(iter(tensors.values())).device
        output = torch.empty(choice.shape, dtype=self.dtype, device=device)
        return cast(TorchTensor, output if old is None else output.copy_(old))

    def choice(self, tensors: Mapping[str, TorchTensor]) -> ChosenKernel:
        """The kernel for these tensors, by name; chosen once."""
        key = tuple(
            [
                (t.shape, t.stride(), t.dtype, t.device, t.data_ptr() % _ALIGNED)
                for t in tensors.values()
            ]
        )
        found = self._choices.get(key)
        if found is None:
            with made_once((id(self), key)):
                found = self._choices.get(key)
                if found is None:
                    found = self._choices[key] = self._choose(tensors)
                    if len(self._choices) > _KEPT:
                        self._choices.pop(next(iter(self._choices)), None)
        return found

    def _choose(self, tensors: Mapping[str, TorchTensor]) -> ChosenKernel:
        devices = dict.fromkeys(tensor.device for tensor in tensors.values())
        device, *others = devices
        if others or device.type not in ("cuda", "cpu"):
            listed = ", ".join(str(device) for device in devices)
            raise CallError(f"tensors are on {listed}; they are to be on one GPU, or on the CPU")
        extents = self._extents(tensors)
        views = {
            name: View(
                tensor.data_ptr() % _ALIGNED,
                tuple(tensor.shape),
                tuple(tensor.stride()),
                str(tensor.dtype).removeprefix("torch."),
                device.index or 0,
            )
            for name, tensor in tensors.items()
            if name != self.signature.output.name
        }
        letters = {x.name: x.letters for x in self.signature.all_tensors}
        enough = not self.own and len(self._kernels) >= _KERNELS
        known = tuple(self._kernels.values()) if enough else ()
        call = OperatorCall(views, letters, extents, gpu_at(device), known, fast=self.fast)
        found = choose(self.schedule, self.own, call)
        self._kernels.setdefault(found.emitted.text, (found.emitted, extents))
        return found

    def _extents(self, tensors: Mapping[str, Any]) -> dict[str, int]:
        """Each letter's extent; raises ``CallError`` for shapes and types that don't agree."""
        given = {x.name: tensors.get(x.name) for x in self.signature.all_tensors}
        there = {name: tensor for name, tensor in given.items() if tensor is not None}
        for x in self.signature.all_tensors:
            tensor = there.get(x.name)
            if tensor is not None and tensor.dtype != torch_dtype(x.dtype):
                raise CallError(f"{x.name} is {tensor.dtype}; it is to be {torch_dtype(x.dtype)}")
        return self.signature.extents({name: tensor.shape for name, tensor in there.items()})


def gpu_at(device: Device) -> Gpu | None:
    """The figures of a tensor's GPU; None for the CPU."""
    if device.type == "cpu":
        return None
    cuda = pytorch().cuda
    has = cuda.get_device_properties(device)
    mhz, bits = getattr(has, "memory_clock_rate", 0), getattr(has, "memory_bus_width", 0)
    reported = Reported(
        has.multi_processor_count,
        1e3 * getattr(has, "clock_rate", 0) or None,
        2e3 * mhz * bits / 8 or None,
        getattr(has, "L2_cache_size", None),
    )
    return gpu_of(has.name, (has.major, has.minor), reported)


def _ordered(tensor: TorchTensor, order: Order, view: View) -> TorchTensor:
    """The tensor as the kernel takes it: its ``view``."""
    if order is not None:
        return tensor.permute(order)
    if view.strides == contiguous_strides(view.shape):
        return tensor.contiguous()
    rows, columns = view.shape
    found = cast(Any, tensor).new_empty((rows, view.strides[0]))[:, :columns]
    return cast(TorchTensor, found.copy_(tensor))
