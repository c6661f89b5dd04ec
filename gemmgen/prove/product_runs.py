"""Products of consecutive elements along k, which a tensor core adds to one accumulator.

An instruction multiplies 8 to 64 elements of a row by those of a column.  Where both are the same
consecutive elements of their tensors, their products are added as one range of k: what is checked
of the first product, the tensors, their terms and their other indices, is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gemmgen.base.record import record
from gemmgen.numerics.operators import Bools
from gemmgen.prove import data, polynomials
from gemmgen.prove.data import Data, TensorElement
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.products import multiply_add
from gemmgen.prove.state import WalkState
from gemmgen.prove.walk_context import WalkContext


@record
class ElementsAlongK:
    """What each thread multiplies: ``each`` by k; ``first``, if the others are the elements after
    it along k."""

    each: Callable[[int], Data]
    first: Data | None


def add_along_k(
    context: WalkContext,
    state: WalkState,
    left: ElementsAlongK,
    right: ElementsAlongK,
    depth: int,
    sum_: Data,
) -> Data:
    """``sum_`` with ``depth`` products of elements, in the order of k."""
    if left.first is not None and right.first is not None:
        return multiply_add(context, state, left.first, right.first, sum_, depth)
    for k in range(depth):
        sum_ = multiply_add(context, state, left.each(k), right.each(k), sum_)
    return sum_


def is_run(context: WalkContext, values: Sequence[Data]) -> bool:
    """Whether ``values`` are elements of one tensor, each the one after the last along k."""
    first = values[0]
    return isinstance(first, TensorElement) and all(
        _is_next(context, first, value, k) for k, value in enumerate(values)
    )


def _is_next(context: WalkContext, first: TensorElement, value: Data, k: int) -> bool:
    """Whether ``value`` is the element ``k`` places after ``first``."""
    if not isinstance(value, TensorElement):
        return False
    if (value.tensor, value.term) != (first.tensor, first.term):
        return False
    for (letter, own), (other, form) in zip(first.at, value.at, strict=True):
        step = k if [letter] == context.contracted else 0
        after = polynomials.add(own, polynomials.fixed(step)) if step else own
        if letter != other or not polynomials.same(form, after):
            return False
    return [letter for letter, _ in first.at if letter in context.contracted] == context.contracted


def first_of_run(
    context: WalkContext, whole: Data, depth: int, mask: Bools | None
) -> TensorElement | None:
    """The first of each thread's elements; None if they are not a run in the threads of ``mask``.
    ``whole`` has ``depth`` elements of each thread: those of all threads for the first k, then for
    the next k, and so on."""
    if not isinstance(whole, TensorElement):
        return None
    letters = [letter for letter, _ in whole.at]
    if [letter for letter in letters if letter in context.contracted] != context.contracted:
        return None
    for letter, form in whole.at:
        step = int(letter in context.contracted)
        if not _grows(form, depth, step, mask):
            return None
    size = next(
        (value.size // depth for _, form in whole.at for value in polynomials.vectors(form)), 1
    )
    found = data.taken(whole, np.arange(size))
    assert isinstance(found, TensorElement)
    return found


def _grows(form: Polynomial, depth: int, step: int, mask: Bools | None) -> bool:
    """Whether each thread's number grows by ``step`` from one k to the next."""
    if step and depth > 1 and polynomials.ONE not in form.terms:
        return False
    for monomial, value in form.terms.items():
        own = step if monomial == polynomials.ONE else 0
        if isinstance(value, int):
            if own and depth > 1:
                return False
            continue
        each = value.reshape(depth, -1)
        each = each if mask is None else each[:, mask]
        if not np.array_equal(each, each[0] + own * np.arange(depth)[:, None]):
            return False
    return True
