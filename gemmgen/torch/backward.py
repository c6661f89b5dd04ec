"""The backward pass of an operator: the kernels and tensor operations of each gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from gemmgen.base.record import record
from gemmgen.ir.expr import Element, Expr, walk
from gemmgen.ir.problem import Tensor
from gemmgen.schedule.model import Schedule
from gemmgen.torch.derivative import NoDerivative
from gemmgen.torch.elementwise import broadcast, evaluate, indices
from gemmgen.torch.gradient import (
    Partial,
    Pointwise,
    Product,
    ProductOperand,
    Recomputed,
    Scaled,
    Zero,
    partials,
    product,
)
from gemmgen.torch.pytorch import TorchTensor, torch_dtype
from gemmgen.torch.schema import Signature

Operator = Callable[..., TorchTensor]
Define = Callable[[str, Schedule, bool], tuple[Operator, Signature]]
"""Defines an operator from a suffix of its name, a schedule, and whether its directives are a
user's."""


@record
class BackwardPlan:
    """The parts of a backward pass, with their operators defined.

    ``partials`` are those of acc and the epilogue's tensors; the operators of ``Recomputed`` ones
    are in ``recompute``.  ``products`` are the gradients of the two inputs, by name.
    """

    signature: Signature
    partials: Mapping[str, Partial]
    recompute: Mapping[Schedule, tuple[Operator, Signature]]
    products: Mapping[str, tuple[Product, Operator]]

    @property
    def inputs(self) -> tuple[str, str]:
        a, b = self.signature.tensors[:2]
        return a.name, b.name

    def reads(self, asked: frozenset[str]) -> frozenset[str]:
        """The tensors that the gradients of ``asked`` are computed from."""
        a, b = self.inputs
        found = {other for name, other in ((a, b), (b, a)) if name in asked}
        wanted = (asked - {a, b}) | ({"acc"} if found else set[str]())
        for name in wanted:
            match self.partials.get(name, Zero()):
                case Recomputed(schedule, gradient, old):
                    names = {x.name for x in self.recompute[schedule][1].tensors} - {gradient}
                    found |= {self.signature.output.name if x == old else x for x in names}
                case Pointwise(expression, gradient):
                    found |= _tensors(expression) - {gradient}
                case _:
                    pass
        return frozenset(found)


class Backward:
    """The gradients of an operator's tensors; scalars have none."""

    def __init__(self, schedule: Schedule, own: bool, signature: Signature, define: Define):
        """Defines the operators of the backward pass, which compiled graphs refer to by name.

        Raises ``NoDerivative``, and ``ScheduleError`` for a derivative that is too large.
        """
        self.signature = signature
        problem = signature.problem
        if problem.scales:
            raise NoDerivative(f"{problem.scales[0].tensor.name} scales blocks of an operand")
        products: dict[str, tuple[Product, Operator]] = {}
        for role, argument in zip("ab", signature.tensors, strict=False):
            found = product(schedule, problem, role)
            operator, _ = define(f"grad_{argument.name}", found.schedule, False)
            products[argument.name] = found, operator
        self._plans: dict[bool, BackwardPlan] = {}
        recompute: dict[Schedule, tuple[Operator, Signature]] = {}
        for with_old in (True, False) if signature.old else (True,):
            parts = partials(schedule, problem, with_old)
            for name, partial in parts.items():
                if isinstance(partial, Recomputed) and partial.schedule not in recompute:
                    ending = f"partial_{name}" if with_old else f"partial_{name}_alone"
                    recompute[partial.schedule] = define(ending, partial.schedule, own)
            self._plans[with_old] = BackwardPlan(signature, parts, recompute, products)

    def setup_context(self, ctx: Any, inputs: Sequence[Any], output: TorchTensor) -> None:
        """Saves the tensors that the required gradients are computed from."""
        given = dict(zip(self.signature.names, inputs, strict=True))
        old = self.signature.old
        with_old = old is None or (given[old.name] is not None and given["beta"] != 0.0)
        kept = self._plans[with_old].reads(self._asked(ctx))
        ctx.names = tuple(name for name in self.signature.names if name in kept)
        ctx.save_for_backward(*(given[name] for name in ctx.names))
        ctx.numbers = {name: given[name] for name in self.signature.scalars}
        ctx.with_old = with_old

    def __call__(self, ctx: Any, grad: TorchTensor) -> tuple[TorchTensor | None, ...]:
        tensors = dict(zip(ctx.names, ctx.saved_tensors, strict=True))
        call = _Call(self._plans[ctx.with_old], grad.contiguous(), tensors, ctx.numbers)
        asked = self._asked(ctx)
        names = self.signature.names
        return tuple(call.gradient(name) if name in asked else None for name in names)

    def _asked(self, ctx: Any) -> frozenset[str]:
        needed = zip(self.signature.names, ctx.needs_input_grad, strict=False)
        return frozenset(name for name, asked in needed if asked) - {*self.signature.scalars}


class _Call:
    """One backward pass; common parts of gradients are computed once."""

    def __init__(
        self,
        plan: BackwardPlan,
        grad: TorchTensor,
        tensors: Mapping[str, TorchTensor],
        numbers: Mapping[str, float],
    ):
        self.plan, self.grad, self.tensors, self.numbers = plan, grad, tensors, numbers
        letters = plan.signature.output.letters
        self.extents = dict(zip(letters, grad.shape, strict=True))
        self._done: dict[object, TorchTensor] = {}

    def gradient(self, name: str) -> TorchTensor | None:
        return self._of_input(name) if name in self.plan.inputs else self._of_tensor(name)

    def _of_input(self, name: str) -> TorchTensor | None:
        """dA = alpha * D * B, or dB = alpha * A * D."""
        scaled = self._partial("acc")
        if scaled is None:
            return None
        d, alpha = scaled
        a, b = self.plan.inputs
        left, right = (d, self.tensors[b]) if name == a else (self.tensors[a], d)
        found, multiply = self.plan.products[name]
        return multiply(_arranged(left, found.left), _arranged(right, found.right), alpha)

    def _of_tensor(self, name: str) -> TorchTensor | None:
        """The gradient of a tensor of the epilogue, or of C."""
        argument = next(x for x in self.plan.signature.all_tensors if x.name == name)
        scaled = self._partial(name)
        if scaled is None:
            return None
        whole, factor = scaled
        found = self._summed(whole, argument)
        found = found if factor == 1.0 else found * factor
        return found.to(torch_dtype(argument.dtype))

    def _partial(self, name: str) -> tuple[TorchTensor, float] | None:
        """The gradient with all letters of C, and the number it is still to be multiplied by; None
        if it is 0."""
        match self.plan.partials.get(name, Zero()):
            case Zero():
                return None
            case Scaled(number):
                return self.grad, evaluate(number, self.numbers, {})
            case Pointwise() as partial:
                if partial not in self._done:
                    self._done[partial] = self._pointwise(partial)
                return self._done[partial], 1.0
            case Recomputed(schedule) as partial:
                if schedule not in self._done:
                    self._done[schedule] = self._recomputed(partial)
                return self._done[schedule], 1.0

    def _recomputed(self, partial: Recomputed) -> TorchTensor:
        operator, signature = self.plan.recompute[partial.schedule]
        given: dict[str, object] = {**self.tensors, **self.numbers, partial.gradient: self.grad}
        given[partial.old] = self.tensors.get(self.plan.signature.output.name)
        return operator(*(given[name] for name in signature.names))

    def _pointwise(self, partial: Pointwise) -> TorchTensor:
        """Computed in the accumulator's precision, rounded once."""
        problem, output = self.plan.signature.problem, self.plan.signature.output
        precision = torch_dtype(problem.accumulate)
        known = {x.name: x.letters for x in self.plan.signature.all_tensors}
        elements = {partial.gradient: self.grad.to(precision)}
        for name in _tensors(partial.expression) - {partial.gradient}:
            tensor = broadcast(self.tensors[name], known[name], output.letters)
            elements[name] = tensor.to(precision)
        letters = indices(output.letters, self.extents, self.grad.device)
        found = evaluate(partial.expression, {**self.numbers, **letters}, elements)
        return found.to(torch_dtype(output.dtype))

    def _summed(self, whole: TorchTensor, argument: Tensor) -> TorchTensor:
        """The sum over the letters that the tensor lacks, in its own order."""
        letters = self.plan.signature.output.letters
        missing = tuple(i for i, letter in enumerate(letters) if letter not in argument.letters)
        found = whole.sum(missing) if missing else whole
        left = [letter for letter in letters if letter in argument.letters]
        order = tuple(left.index(letter) for letter in argument.letters)
        return found if order == tuple(range(len(order))) else found.permute(order)


def _tensors(expression: Expr) -> set[str]:
    return {part.buffer for part in walk(expression) if isinstance(part, Element)}


def _arranged(tensor: TorchTensor, operand: ProductOperand) -> TorchTensor:
    """The tensor with its dimensions permuted, and those of the contraction merged."""
    if operand.as_it_is:
        return tensor
    permuted = tensor.permute(operand.order)
    return permuted.reshape(tuple(prod(permuted.shape[i:j]) for i, j in operand.groups))
