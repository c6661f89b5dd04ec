"""A product of arrays by a kernel chosen for them: NumPy, CuPy, and tensors with ``out``."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

from gemmgen.base.errors import CallError, UsageError
from gemmgen.base.memo import Memo
from gemmgen.base.once import made_once
from gemmgen.base.record import record
from gemmgen.calling.arguments import View
from gemmgen.functions.arrangement import (
    Arrangement,
    arranged,
    check_shapes,
    check_weight,
    result_shape,
)
from gemmgen.functions.array_kinds import Array, Kind, check_devices, kind_of
from gemmgen.functions.call_epilogue import Reads, Values, check_given, check_old_values, reads
from gemmgen.functions.problems import (
    MatmulProblem,
    checked_letters,
    problem_of,
    problem_types,
)
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.decompositions import Fast, allowed_terms
from gemmgen.ir.dtypes import DTYPES, DType
from gemmgen.pipeline import Emitted
from gemmgen.torch.choosing import ChosenKernel, OperatorCall, choose

ALIGNED = 16
"""Bytes of the widest access, for the alignment of addresses."""
_KERNELS = 256
"""The most kernels of a problem; other shapes then use the nearest of them."""
_selected: Memo[object, Selected] = Memo(4096)
_kernels: Memo[object, dict[str, tuple[Emitted, Mapping[str, int]]]] = Memo(512)
"""Kernels that were chosen for a problem on a GPU, by their texts."""


@record
class DirectCall:
    """The arguments of a call.  ``arrays`` are by the problem's names, A, B, the epilogue's own and
    C; ``names`` are the caller's names of A and B, ``given`` all but C as the caller has them;
    ``transposed``: its B is the transpose of the problem's."""

    arrays: Mapping[str, Array]
    text: str | None
    read: Reads
    numbers: Mapping[str, object]
    fast: Fast
    same_bits: str | None
    names: tuple[str, str]
    given: tuple[Array, ...]
    transposed: bool

    @staticmethod
    def of(
        a: object,
        b: object,
        text: str | None,
        values: Values,
        out: object,
        fast: Fast,
        same_bits: str | None,
        transposed: bool,
    ) -> DirectCall:
        """Checks the names of a call; raises ``CallError`` for arrays of several libraries.

        ``transposed``: ``b`` is the weight of a linear layer, (N, K).
        """
        names = ("x", "weight") if transposed else ("a", "b")
        kind_of({names[0]: a, names[1]: b})
        left, right = cast(Array, a), cast(Array, b)
        if transposed:
            check_weight(left.shape, right.shape)
            right = right if len(right.shape) == 1 else right.swapaxes(-2, -1)
        read = reads(text, max(0, len(left.shape) - 2, len(right.shape) - 2))
        check_given(text, read, tuple(name for name, _ in values))
        check_old_values(text, read, values, out is not None)
        tensors = {name for name, _ in read.tensors}
        own = {name: value for name, value in values if name in tensors}
        arrays = {"A": left, "B": right, **own} | ({} if out is None else {"C": out})
        numbers = {name: value for name, value in values if name not in tensors}
        whole = (a, b, *own.values())
        asked = checked_letters(same_bits)
        split = checked_fast(fast)
        return DirectCall(arrays, text, read, numbers, split, asked, names, whole, transposed)

    def shown(self, name: str) -> str:
        """The caller's name of a tensor."""
        return {"A": self.names[0], "B": self.names[1], "C": "out"}.get(name, name)

    @property
    def kind(self) -> Kind:
        return kind_of({self.shown(name): value for name, value in self.arrays.items()})


def checked_fast(fast: object) -> Fast:
    """``fast`` as a call means it; ``CallError`` for a type that terms do not have."""
    if not isinstance(fast, str):
        return bool(fast)
    try:
        allowed_terms(fast)
    except UsageError as error:
        raise CallError(str(error)) from None
    return cast(Fast, fast)


@record
class Plan:
    """A problem, the shapes to which arrays are reshaped, and the tensors as the problem has them:
    C only if the caller passes it.  ``dtype`` is the result's."""

    problem: MatmulProblem
    arrangement: Arrangement
    views: Mapping[str, View]
    extents: Mapping[str, int]
    dtype: DType
    fast: Fast

    def choice(self, gpu: Gpu | None) -> ChosenKernel:
        """The kernel for the tensors."""
        schedule, signature = self.problem.schedule, self.problem.signature
        kernels = _kernels.get((schedule, gpu, self.fast))
        if kernels is None:
            _kernels.put((schedule, gpu, self.fast), kernels := {})
        known = tuple(kernels.values()) if len(kernels) >= _KERNELS else ()
        views = dict(self.views)
        output = views.pop("C", None)
        letters = {x.name: x.letters for x in signature.all_tensors}
        found = choose(
            schedule,
            False,
            OperatorCall(views, letters, self.extents, gpu, known, output, self.fast),
        )
        kernels.setdefault(found.emitted.text, (found.emitted, self.extents))
        return found


@record
class Selected:
    """A plan with its kernel.  ``repeatable``: nothing is copied, and all is aligned."""

    plan: Plan
    choice: ChosenKernel

    @property
    def repeatable(self) -> bool:
        copies = any(order is None for _, order in self.choice.orders)
        return not copies and not any(view.pointer for view in self.plan.views.values())


def selected(call: DirectCall) -> Selected:
    """The plan and the kernel of a call, found once for all that are like it."""
    kind = call.kind
    for name, value in call.arrays.items():
        kind.check(call.shown(name), value)
    views = viewed(call, kind)
    # The library's name: equal views of two libraries are on other devices.
    key = kind.name, call.text, call.fast, call.same_bits, call.names, tuple(views.items())
    found = _selected.get(key)
    if found is None:
        with made_once(("selected", key)):
            found = _selected.get(key)
            if found is None:
                plan = planned(call, views)
                gpu = kind.gpu(call.arrays["A"])
                with named_arguments(call):
                    found = Selected(plan, plan.choice(gpu))
                _selected.put(key, found)
    return found


def product(call: DirectCall) -> Array:
    """The result of a call, in ``out`` if that is passed."""
    kind, found = call.kind, selected(call)
    plan, choice = found.plan, found.choice
    tensors = shaped(plan, call.arrays)
    output = call.arrays.get("C")
    if output is None:
        name = DTYPES[plan.dtype].name
        output = tensors["C"] = kind.empty(plan.arrangement.shapes[2], name, call.arrays["A"])
    for name, order in choice.orders:
        tensors[name] = kind.ordered(tensors[name], order)
    with named_arguments(call):
        kind.run(choice.emitted, tensors, call.numbers)
    return output if "C" in call.arrays else output.reshape(plan.arrangement.result)


def viewed(call: DirectCall, kind: Kind) -> dict[str, View]:
    """The tensors of a call, with addresses that are right modulo ``ALIGNED``."""
    found = {name: kind.view(call.shown(name), value) for name, value in call.arrays.items()}
    return {name: replace(view, pointer=view.pointer % ALIGNED) for name, view in found.items()}


def planned(call: DirectCall, views: Mapping[str, View]) -> Plan:
    """The plan of a call, from its views; ``CallError`` for what can't be multiplied."""
    check_devices({call.shown(name): value for name, value in call.arrays.items()})
    a, b, out = views["A"], views["B"], views.get("C")
    own = tuple((name, views[name].dtype) for name, _ in call.read.tensors)
    types = problem_types(a.dtype, b.dtype, None if out is None else out.dtype, own, call.names)
    check_shapes(a.shape, b.shape, call.names)
    if out is not None and out.shape != result_shape(a.shape, b.shape):
        wanted = result_shape(a.shape, b.shape)
        raise CallError(f"out has shape {out.shape}, and the product has shape {wanted}")
    sides = [(view.shape, view.strides) for view in (a, b)]
    whole = None if out is None else (out.shape, out.strides)
    found = arranged(sides[0], sides[1], whole, call.read.used)
    problem = problem_of(found.letters, types, call.text, call.same_bits)
    shapes = dict(zip("ABC", found.shapes, strict=True))
    reshaped = {
        name: _reshaped(view, shapes[name]) if name in shapes else view
        for name, view in views.items()
    }
    extents = problem.signature.extents({name: view.shape for name, view in reshaped.items()})
    return Plan(problem, found, reshaped, extents, dict(types)["C"], call.fast)


def shaped(plan: Plan, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays as the problem's tensors: views of them."""
    shapes = dict(zip("ABC", plan.arrangement.shapes, strict=True))
    return {
        name: value.reshape(shapes[name]) if shapes.get(name, value.shape) != value.shape else value
        for name, value in arrays.items()
    }


def _reshaped(view: View, shape: tuple[int, ...]) -> View:
    """The view with dimensions of size 1 left out or added, and adjacent ones merged."""
    if view.shape == shape:
        return view
    if 0 in shape:
        return replace(view, shape=shape, strides=(1,) * len(shape))
    left = [(n, step) for n, step in zip(view.shape, view.strides, strict=True) if n != 1]
    strides: list[int] = []
    for size in reversed(shape):
        step, whole = 1 if not strides else 0, 1
        while whole < size:
            n, longer = left.pop()
            step, whole = longer if whole == 1 else step, whole * n
        strides.append(step)
    return replace(view, shape=shape, strides=tuple(reversed(strides)))


@contextmanager
def named_arguments(call: DirectCall) -> Generator[None]:
    """Says of an error which argument a tensor's name means."""
    try:
        yield
    except CallError as error:
        listed = ", ".join(f"{name} is {call.shown(name)}" for name in "ABC" if name in call.arrays)
        raise CallError(f"{error} ({listed})") from None
