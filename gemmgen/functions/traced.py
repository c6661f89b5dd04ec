"""The product within ``torch.compile``: one operator, found while the graph is traced.

What is traced here is arithmetic on shapes and calls of functions marked constant, which run as
they are when the graph is made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

from gemmgen.functions.arrangement import (
    Letters,
    assigned,
    check_shapes,
    check_weight,
    result_shape,
)
from gemmgen.functions.array_kinds import Array
from gemmgen.functions.call_epilogue import check_given, check_old_values, given, reads
from gemmgen.functions.problems import checked_letters, problem_of, problem_types
from gemmgen.functions.product_operators import NAMESPACE, operator_of, ordered_arguments
from gemmgen.ir.decompositions import Fast

_Function = TypeVar("_Function", bound=Callable[..., object])


def constant(function: _Function) -> _Function:
    """Marks a function that PyTorch's tracer runs as it is; its result is a constant."""
    cast(Any, function)._dynamo_marked_constant = True
    return function


def is_tracing() -> bool:
    """Whether PyTorch traces its caller for a graph."""
    torch: Any = sys.modules["torch"]
    return torch.compiler.is_compiling()


def traced_product(
    a: Array,
    b: Array,
    bias: Array | None,
    epilogue: object,
    out: Array | None,
    fast: Fast,
    same_bits: str | None,
    transposed: bool,
) -> Array:
    """The product of tensors whose numbers, and perhaps extents, are not known yet."""
    text, values = given(bias, epilogue)
    names = ("x", "weight") if transposed else ("a", "b")
    if transposed:
        check_weight(a.shape, b.shape)
        b = b if len(b.shape) == 1 else b.swapaxes(-2, -1)
    check_shapes(a.shape, b.shape, names)
    batches = max(0, len(a.shape) - 2, len(b.shape) - 2)
    given_names = tuple([name for name, _ in values])
    tensors, used = _read(text, batches, given_names, dict(values).get("beta"), out is not None)
    own: dict[str, Array] = {name: value for name, value in values if name in tensors}
    la, lb, lc, sa, sb, sc = assigned(a.shape, b.shape, frozenset(used))
    if len(lb) == 2 and len(la) > 2 and not used:  # the batches of A are rows
        rows = sa[0]
        for size in sa[1:-1]:
            rows = rows * size
        la, lc, sa, sc = ("m", "k"), ("m", "n"), (rows, sa[-1]), (rows, sc[-1])
    dtypes: Any = tuple([(name, value.dtype) for name, value in own.items()])
    stored = None if out is None else out.dtype
    name, order, defaults = _operator(
        la, lb, lc, a.dtype, b.dtype, stored, dtypes, text, fast, same_bits, names
    )
    known = {"A": a.reshape(sa), "B": b.reshape(sb), **own}
    if out is not None and "C" in order:
        known["C"] = out.reshape(sc)
    numbers = {name: value for name, value in values if name not in tensors}
    torch: Any = sys.modules["torch"]
    operator = getattr(getattr(torch.ops, NAMESPACE), name).default
    found = operator(*ordered_arguments(order, defaults, known, numbers))
    found = found.reshape(result_shape(a.shape, b.shape))
    return found if out is None else out.copy_(found)


@constant
def _read(
    text: str | None, batches: int, names: tuple[str, ...], beta: object, has_output: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tensors that an epilogue reads, and the letters that it uses."""
    read = reads(text, batches)
    check_given(text, read, names)
    check_old_values(text, read, () if beta is None else (("beta", beta),), has_output)
    return tuple(name for name, _ in read.tensors), tuple(sorted(read.used))


@constant
def _operator(
    la: Letters,
    lb: Letters,
    lc: Letters,
    a: object,
    b: object,
    out: object,
    own: tuple[tuple[str, object], ...],
    text: str | None,
    fast: Fast,
    same_bits: str | None,
    names: tuple[str, str],
) -> tuple[str, tuple[str, ...], tuple[float | None, ...]]:
    """The operator's name, the order of its arguments, and the defaults of the last ones."""
    stored = None if out is None else _named(out)
    known = tuple((name, _named(dtype)) for name, dtype in own)
    types = problem_types(_named(a), _named(b), stored, known, names)
    problem = problem_of((la, lb, lc), types, text, checked_letters(same_bits))
    found = operator_of(problem, fast)
    signature = found.forward.signature
    return found.short_name, signature.names, signature.defaults


def _named(dtype: object) -> str:
    return str(dtype).removeprefix("torch.")
