"""What an operator computes: a kernel chosen for the tensors, launched on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from gemmgen.analyze.gpus import Gpu
from gemmgen.errors import CallError
from gemmgen.gpu.arguments import View
from gemmgen.pipeline import Emitted
from gemmgen.schedule.model import Schedule
from gemmgen.torch.choosing import Call, Choice, Order, choose
from gemmgen.torch.pytorch import Device, Tensor, pytorch, torch_dtype
from gemmgen.torch.running import launch
from gemmgen.torch.signature import Signature
from gemmgen.torch.suggested import gpu_of

_KEPT = 1024
_KERNELS = 32
"""From so many kernels on, an operator whose schedule follows from extents makes no new ones."""
_ALIGNED = 16
"""Bytes of the widest access, which addresses are compared with."""


class Forward:
    """The implementation of an operator on real tensors, and on fake ones.

    ``own``: the schedule has directives of a user's; else only the problem is stated, and the
    schedule is chosen for the extents.
    """

    def __init__(self, schedule: Schedule, own: bool) -> None:
        self.schedule, self.own = schedule, own
        self.signature = Signature.of(schedule)
        self.dtype = torch_dtype(self.signature.output.dtype)
        self._names = self.signature.names
        self._defaults = self.signature.defaults
        self._kernels: dict[str, tuple[Emitted, dict[str, int]]] = {}
        self._choices: dict[tuple[object, ...], Choice] = {}

    def __call__(self, *given: Any) -> Tensor:
        """The output, in memory of its own; ``given`` are the arguments in order."""
        arguments = self._named(given)
        numbers = {name: arguments.pop(name) for name in self.signature.scalars}
        tensors = cast(dict[str, Tensor], arguments)
        old = self._old(tensors, numbers)
        if old is not None:
            tensors[self.signature.output.name] = old
        choice = self._choice(tensors)
        tensors.pop(self.signature.output.name, None)
        for name, order in choice.orders:
            tensors[name] = _ordered(tensors[name], order)
        tensors[self.signature.output.name] = output = self._output(choice, tensors, old)
        launch(choice.emitted, tensors, numbers)
        return output

    def fake(self, *given: Any) -> Tensor:
        """An output without contents, of the shape, type and strides that a call gives."""
        arguments = self._named(given)
        extents = self._extents(arguments)
        first = arguments[self._names[0]]
        shape = [extents[letter] for letter in self.signature.output.letters]
        return cast(Tensor, first.new_empty(shape, dtype=self.dtype))

    def _named(self, given: tuple[Any, ...]) -> dict[str, Any]:
        """All arguments by name; PyTorch leaves out those at the end that are their defaults."""
        absent = len(self._names) - len(given)
        filled = (*given, *self._defaults[-absent:]) if absent else given
        return dict(zip(self._names, filled, strict=True))

    def _old(self, tensors: dict[str, Tensor], numbers: Mapping[str, float]) -> Tensor | None:
        """The C that the kernel reads; None where it reads none."""
        signature = self.signature
        if signature.old is None:
            return tensors.get(signature.output.name)
        old = tensors.pop(signature.old.name, None)
        if numbers["beta"] == 0.0:
            return None
        if old is None:
            raise CallError(f"{signature.old.name} is missing: beta is {numbers['beta']}")
        return old

    def _output(self, choice: Choice, tensors: Mapping[str, Tensor], old: Tensor | None) -> Tensor:
        torch = pytorch()
        device = next(iter(tensors.values())).device
        output = torch.empty(choice.shape, dtype=self.dtype, device=device)
        return cast(Tensor, output if old is None else output.copy_(old))

    def _choice(self, tensors: Mapping[str, Tensor]) -> Choice:
        key = tuple(
            [
                (t.shape, t.stride(), t.dtype, t.device, t.data_ptr() % _ALIGNED)
                for t in tensors.values()
            ]
        )
        found = self._choices.get(key)
        if found is None:
            found = self._choose(tensors)
            if len(self._choices) >= _KEPT:
                self._choices.pop(next(iter(self._choices)))
            self._choices[key] = found
        return found

    def _choose(self, tensors: Mapping[str, Tensor]) -> Choice:
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
            )
            for name, tensor in tensors.items()
            if name != self.signature.output.name
        }
        letters = {x.name: x.letters for x in self.signature.all_tensors}
        enough = not self.own and len(self._kernels) >= _KERNELS
        known = tuple(self._kernels.values()) if enough else ()
        call = Call(views, letters, extents, _gpu(device), known)
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


def _gpu(device: Device) -> Gpu | None:
    """What is known of a tensor's GPU; None for the CPU."""
    if device.type == "cpu":
        return None
    cuda = pytorch().cuda
    return gpu_of(cuda.get_device_name(device), cuda.get_device_capability(device))


def _ordered(tensor: Tensor, order: Order) -> Tensor:
    return tensor.permute(order) if order is not None else tensor.contiguous()
