"""``op``: a schedule's kernel registered as a PyTorch operator."""

from __future__ import annotations

import os
import re
import threading
from contextlib import suppress
from typing import Any, cast

from gemmgen.api.kernels import AnySchedule, Settings, check_requirements, compile_any
from gemmgen.base.errors import CannotCheck, ScheduleError, UsageError
from gemmgen.base.record import record
from gemmgen.ir.decompositions import Fast
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule
from gemmgen.torch.backward import Backward, Operator
from gemmgen.torch.derivative import NoDerivative
from gemmgen.torch.forward import Forward
from gemmgen.torch.pytorch import TorchTensor, pytorch
from gemmgen.torch.schema import Signature

_NAME = re.compile(r"([A-Za-z_]\w*)::([A-Za-z_]\w*)", re.ASCII)
DEVICES = ("CUDA", "CPU")


@record
class Defined:
    """An operator and its forward pass.  ``text``: the schedule's; ``library``: the registration,
    which lasts as long as this object."""

    name: str
    text: str
    operator: Operator
    forward: Forward
    library: object

    @property
    def short_name(self) -> str:
        """The name without the namespace."""
        return self.name.split("::")[1]


_defined: dict[str, Defined] = {}
"""By name."""
_lock = threading.RLock()
"""PyTorch refuses a second registration of one name."""


def _renew_lock() -> None:
    """In a fork, where the thread that held the lock does not exist."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


def op(
    schedule: AnySchedule, *, name: str, arch: str | None = None, set: Settings | None = None
) -> Any:
    """The schedule's kernel as the operator ``name`` (``my::fused``) of ``torch.library``.

    It takes the inputs in the order of the gemm line, the epilogue's tensors, its scalars, and
    ``C=None, alpha=1.0, beta=0.0`` if the epilogue has them (C is among the tensors if it is read
    for any beta), and returns a new contiguous tensor.  It has a fake implementation and a backward
    pass, whose products are generated kernels, too; scalars have no gradient.

    It takes every tensor that PyTorch's functions take: if the schedule's own kernel can't (rows
    that are not aligned for its wide accesses, transposed inputs), a sibling of it runs.  On CPU
    tensors the emitted text runs, compiled by g++, which is slow and meant for tests.

    The same name and schedule give the same operator.  Raises ``ScheduleError`` for mistakes and
    for a ``require registers`` or ``require spills`` that does not hold, ``UsageError`` for the
    name of another operator, ``CannotCheck`` if PyTorch is not installed.
    """
    pytorch()
    if not _NAME.fullmatch(name):
        raise UsageError(f"name={name!r}: an operator's name is like my::fused")
    emitted = compile_any(schedule, arch=arch, set=set)
    with suppress(CannotCheck):  # CPU tensors need no compiler of CUDA C
        check_requirements(emitted)
    found = emitted.schedule
    return define(name, found, own=bool(found.directives)).operator


def define(
    name: str, schedule: Schedule, *, own: bool, derived: bool = False, fast: Fast = False
) -> Defined:
    """The operator ``name``, registered when it is first asked for.

    ``own``: the schedule's directives are a user's; ``derived``: its backward pass waits until it
    is needed; ``fast``: f32 may be multiplied as products of bf16 terms, in gradients, too.
    """
    with _lock:
        text = format_schedule(schedule)
        found = _defined.get(name)
        if found is None:
            found = _defined[name] = _registered(name, schedule, own, fast)
            backward = _Lazily(name, schedule, own, fast, found.forward.signature)
            pytorch().library.register_autograd(
                name, backward, setup_context=backward.setup_context, lib=found.library
            )
            if not derived:
                backward.ready()
        if found.text != text:
            raise UsageError(f"{name} is an operator of another schedule already: take a new name")
        return found


def _registered(name: str, schedule: Schedule, own: bool, fast: Fast) -> Defined:
    """The operator with its implementations, without a backward pass."""
    torch = pytorch()
    forward = Forward(schedule, own, fast)
    namespace, short = name.split("::")
    library = torch.library.Library(namespace, "FRAGMENT")
    try:
        library.define(f"{short}{forward.signature.schema()}", tags=(torch.Tag.pt2_compliant_tag,))
    except RuntimeError as error:
        raise UsageError(f"{name} can't be defined: {str(error).splitlines()[0]}") from None
    for device in DEVICES:
        library.impl(short, forward, device)
    torch.library.register_fake(name, forward.fake, lib=library)
    operator = cast(Operator, getattr(getattr(torch.ops, namespace), short).default)
    return Defined(name, format_schedule(schedule), operator, forward, library)


class _Lazily:
    """The backward pass of an operator; it defines its own operators when it is first used."""

    def __init__(self, name: str, schedule: Schedule, own: bool, fast: Fast, signature: Signature):
        self.name, self.schedule, self.signature = name, schedule, signature
        self.own = own
        self.fast: Fast = fast
        self._found: Backward | str | None = None

    def ready(self) -> Backward | str:
        """The backward pass, or why there is none."""
        if self._found is None:
            try:
                self._found = Backward(self.schedule, self.own, self.signature, self._define)
            except (NoDerivative, ScheduleError) as error:
                self._found = f"{self.name} has no backward pass: {error}"
        return self._found

    def _define(self, ending: str, schedule: Schedule, own: bool) -> tuple[Operator, Signature]:
        name = f"{self.name}_{ending}"
        found = define(name, schedule, own=own, derived=True, fast=self.fast)
        return found.operator, found.forward.signature

    def setup_context(self, ctx: Any, inputs: Any, output: TorchTensor) -> None:
        found = self.ready()
        if isinstance(found, Backward):
            found.setup_context(ctx, inputs, output)

    def __call__(self, ctx: Any, grad: TorchTensor) -> Any:
        found = self.ready()
        if isinstance(found, str):
            raise NotImplementedError(found)
        return found(ctx, grad)
