"""Products of PyTorch's tensors, by operators: gradients, ``torch.compile`` and CUDA graphs.

A call like an earlier one without gradients skips PyTorch's dispatcher: it is a look-up in a
dictionary, PyTorch's own check that the tensors are such, and the launch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from gemmgen.base.errors import CallError
from gemmgen.base.memo import Memo
from gemmgen.calling.arguments import View
from gemmgen.functions.array_kinds import Array
from gemmgen.functions.call_epilogue import given
from gemmgen.functions.direct import (
    ALIGNED,
    DirectCall,
    Plan,
    planned,
    product,
    selected,
)
from gemmgen.functions.product_operators import checked_numbers, operator_of, ordered_arguments
from gemmgen.functions.traced import is_tracing, traced_product
from gemmgen.functions.written import TorchWritten
from gemmgen.ir.decompositions import Fast
from gemmgen.torch.operator import Defined
from gemmgen.torch.pytorch import pytorch
from gemmgen.torch.running import loaded

if TYPE_CHECKING:
    from gemmgen.torch.ready import Ready

LAUNCHED = "cuda"
"""The devices whose kernels are launched without an operator."""
_READY = 4
"""Launches that are kept for tensors of the same shapes, strides and types, whose other state
(inference mode, autocast) differs."""


class OperatorState:
    """What PyTorch does with the tensors of this moment, as far as its guards don't see it."""

    def __init__(self) -> None:
        torch = pytorch()
        self._wants_gradients: Callable[[], bool] = torch.is_grad_enabled
        self._modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
        self._wrapped: Callable[[Any], bool] = torch._C._functorch.is_functorch_wrapped_tensor
        self._forward = torch.autograd.forward_ad

    def is_plain(self, guarded: bool) -> bool:
        """Whether a launch needs no gradient and no tangent, and no mode (FakeTensor's, a counter
        of operations) is to see it; ``guarded``: a tensor requires a gradient."""
        if guarded and self._wants_gradients():
            return False
        return self._modes() == 0 and self._forward._current_level < 0

    def is_followed(self, tensor: Any) -> bool:
        """Whether a tensor is one of ``torch.func``, or a lazy negation."""
        return self._wrapped(tensor) or tensor.is_neg()


@cache
def _state() -> OperatorState:
    return OperatorState()


class Route:
    """What is known of calls like an earlier one: their operator, and launches that skip it.

    ``guarded``: a tensor requires a gradient, so that launches are for ``no_grad`` alone.
    """

    __slots__ = ("guarded", "names", "operator", "plan", "ready", "tail", "transposed")

    def __init__(self, call: DirectCall, plan: Plan, operator: Defined) -> None:
        self.plan, self.operator, self.transposed = plan, operator, call.transposed
        self.guarded = any(x.requires_grad for x in call.given)
        self.names = operator.forward.signature.names
        self.ready: tuple[Ready, ...] = ()
        self.tail: Sequence[object] = operator.forward.signature.defaults

    def __call__(self, tensors: Sequence[Any], numbers: Mapping[str, object]) -> Array:
        """The result, by the operator; ``tensors`` are the caller's A and B and the epilogue's."""
        inputs, tail = self._shaped(tensors), self.tail
        if numbers:
            names = self.names[len(inputs) :]
            tail = ordered_arguments(names, self.tail, {}, checked_numbers(numbers))
        found: Any = self.operator.operator(*inputs, *tail)
        shape = self.plan.arrangement.result
        return found if found.shape == shape else found.reshape(shape)

    def _shaped(self, tensors: Sequence[Any]) -> list[Any]:
        """The operator's tensors, in order."""
        a, b, *own = tensors
        left, right, _ = self.plan.arrangement.shapes
        b = b.swapaxes(-2, -1) if self.transposed and b.ndim > 1 else b
        a = a if a.shape == left else a.reshape(left)
        return [a, b if b.shape == right else b.reshape(right), *own]

    def prepare(self, tensors: Sequence[Any]) -> None:
        """Adds a launch for tensors in the present state, if they are plain ones on a GPU, aligned,
        and nothing is copied."""
        torch = pytorch()
        if len(self.ready) == _READY or not _state().is_plain(self.guarded):
            return
        if not _is_plain(tensors) or any(x.data_ptr() % ALIGNED for x in tensors):
            return
        shaped = dict(zip(self.names, self._shaped(tensors), strict=False))
        choice = self.operator.forward.choice(shaped)
        if any(order is None for _, order in choice.orders):
            return
        from gemmgen.torch.ready import Ready

        device, shape = tensors[0].device, self.plan.arrangement.result
        with torch.cuda.device(device):
            kernel = loaded(choice.emitted, device.index)
            signature = self.operator.forward.signature
            found = Ready(kernel, signature, tensors, choice.views, shape=shape)
        self.ready = (found, *self.ready)


_written: Memo[object, TorchWritten] = Memo(4096)
_routes: Memo[object, Route] = Memo(4096)
_of_calls: Memo[object, Route] = Memo(4096)
"""By what a call of any kind has, the values of an epilogue among it."""


def torch_product(
    a: Array,
    b: Array,
    bias: Array | None,
    epilogue: object,
    out: Array | None,
    fast: Fast,
    same_bits: str | None,
    transposed: bool,
) -> Array:
    """The handler of PyTorch's tensors."""
    if is_tracing():
        return traced_product(a, b, bias, epilogue, out, fast, same_bits, transposed)
    if out is not None:
        return _into(a, b, bias, epilogue, out, fast, same_bits, transposed)
    key = None
    if epilogue is None or type(epilogue) is str:
        try:
            key = _described(a, b, bias, epilogue, fast, same_bits, transposed)
            route = _routes.get(key)
        except (AttributeError, RuntimeError, TypeError):  # another library's, sparse, symbolic
            key = route = None
        if route is not None:
            return _repeated(route, (a, b) if bias is None else (a, b, bias))
    text, values = given(bias, epilogue)
    call = DirectCall.of(a, b, text, values, None, fast, same_bits, transposed)
    route = _route(call)
    found = route(call.given, call.numbers)
    if key is not None:
        _routes.put(key, route)
        route.prepare(call.given)
    return found


def _into(
    a: Array,
    b: Array,
    bias: Array | None,
    epilogue: object,
    out: Any,
    fast: Fast,
    same_bits: str | None,
    transposed: bool,
) -> Array:
    """``out`` with the result."""
    key, tensors = None, (a, b, out) if bias is None else (a, b, bias, out)
    if epilogue is None or type(epilogue) is str:
        try:
            own = out.shape, out.stride(), out.dtype, out.device, out.requires_grad
            key = (_described(a, b, bias, epilogue, fast, same_bits, transposed), own)
            ready = _written.get(key)
        except (AttributeError, RuntimeError, TypeError):  # another library's, sparse, symbolic
            key = ready = None
        if ready is not None and _state().is_plain(ready.guarded) and ready(tensors):
            return out
    text, values = given(bias, epilogue)
    call = DirectCall.of(a, b, text, values, out, fast, same_bits, transposed)
    _check_gradients(call)
    found = product(call)
    if key is not None and _is_plain(tensors) and (chosen := selected(call)).repeatable:
        _written.put(key, TorchWritten(call, chosen, tensors))
    return found


def _is_plain(tensors: Sequence[Any]) -> bool:
    """Whether these are plain tensors on a GPU, whose launch nothing is to see."""
    torch, state = pytorch(), _state()
    plain = torch.Tensor, torch.nn.Parameter
    if any(type(x) not in plain or x.device.type != LAUNCHED for x in tensors):
        return False
    return state.is_plain(False) and not any(state.is_followed(x) for x in tensors)


def _repeated(route: Route, tensors: tuple[Any, ...]) -> Array:
    """The result of a call like an earlier one."""
    if route.ready and _state().is_plain(route.guarded):
        for ready in route.ready:
            if ready.matches(*tensors):
                found = ready(tensors, (*tensors, *route.tail))
                if found is not None:
                    return found
    found = route(tensors, {})
    route.prepare(tensors)
    return found


def _route(call: DirectCall) -> Route:
    """The route of a call, found once for all that are like it."""
    tensors = [(name, x, _view(call.shown(name), x)) for name, x in call.arrays.items()]
    described = tuple([(name, x.requires_grad, x.device, view) for name, x, view in tensors])
    key = call.text, call.fast, call.same_bits, call.names, described
    try:
        found = _of_calls.get(key)
    except TypeError:  # symbolic extents
        found = key = None
    if found is None:
        plan = planned(call, {name: view for name, _, view in tensors})
        found = Route(call, plan, operator_of(plan.problem, call.fast))
        if key is not None:
            _of_calls.put(key, found)
    return found


def _view(name: str, tensor: Any) -> View:
    """A tensor's view without its address, which fake ones lack."""
    if tensor.layout != pytorch().strided:
        layout = str(tensor.layout).removeprefix("torch.")
        raise CallError(f"{name} is a tensor of layout {layout}; pass .to_dense()")
    dtype = str(tensor.dtype).removeprefix("torch.")
    return View(0, tuple(tensor.shape), tuple(tensor.stride()), dtype, tensor.device.index or 0)


def _check_gradients(call: DirectCall) -> None:
    """Refuses ``out`` where a gradient is wanted."""
    if not pytorch().is_grad_enabled():
        return
    for name, tensor in call.arrays.items():
        if getattr(tensor, "requires_grad", False):
            raise CallError(
                f"{call.shown(name)} requires a gradient, which a call with out= has none of: "
                "leave out= out, or call it within torch.no_grad()"
            )


def _described(
    a: Any,
    b: Any,
    bias: Any,
    epilogue: str | None,
    fast: Fast,
    same_bits: str | None,
    transposed: bool,
) -> tuple[object, ...]:
    """All that a choice depends on but addresses."""
    arrays = (
        a.shape,
        b.shape,
        a.stride(),
        b.stride(),
        a.dtype,
        b.dtype,
        a.device,
        b.device,
        a.requires_grad,
        b.requires_grad,
    )
    if bias is None:
        return (*arrays, epilogue, fast, same_bits, transposed)
    own = bias.shape, bias.stride(), bias.dtype, bias.device, bias.requires_grad
    return (*arrays, *own, epilogue, fast, same_bits, transposed)
