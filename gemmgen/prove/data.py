"""What registers and shared memory hold, as elements of tensors and totals of their products.

A value is that of all threads: its polynomials have a number for each.

Over 300 lines: a case for each kind of value, in each thing that is asked of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import numpy as np

from gemmgen.base.record import record
from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove import conditions, polynomials
from gemmgen.prove.conditions import Condition
from gemmgen.prove.polynomials import Polynomial

Place = tuple[tuple[str, Polynomial], ...]
"""The index of an element by letter."""


@record
class Number:
    """A literal."""

    value: float


@record
class TensorElement:
    """The element of ``tensor`` at ``at``; outside the tensor it is zero.  ``term``: not all of it,
    but the term of this number (``decompose``)."""

    tensor: str
    at: Place
    term: int | None = None


@record
class ScalarArgument:
    """A scalar of the call."""

    name: str


@record
class IndexNumber:
    """An index among numbers (``float(n)``)."""

    form: Polynomial


@record
class Total:
    """The sum of the products with the element of C at ``at``, for the contracted index from
    ``low`` to ``high`` (exclusive), and for those in ``extra``; ``scaled_by`` are the tensors by
    whose scales of blocks each product is multiplied."""

    at: Place
    low: Polynomial
    high: Polynomial
    extra: tuple[Polynomial, ...] = ()
    scaled_by: tuple[str, ...] = ()


Pair = tuple[int, int]
"""The numbers of a term of A and of a term of B."""


@record
class TermTotals:
    """The sum of several, each of the products of one pair of terms (``decompose``), times
    ``scales``, which undo those of a pre-pass."""

    totals: tuple[tuple[Pair, Total], ...]
    scales: tuple[TensorElement, ...] = ()


@record
class Pick:
    """``yes`` where the condition holds, else ``no``."""

    condition: Condition
    yes: Data
    no: Data


@record
class Apply:
    """An operation of the epilogue."""

    name: str
    arguments: tuple[Data, ...]


@record
class Kept:
    """What was there before a store that not all threads do."""


@record
class UnknownData:
    """Not known, for a reason; ``certain``: it is known to be wrong."""

    reason: str
    certain: bool = False


Data = (
    Number
    | IndexNumber
    | TensorElement
    | ScalarArgument
    | Total
    | TermTotals
    | Pick
    | Apply
    | Kept
    | UnknownData
)

ZERO = Number(0.0)


def with_forms(data: Data, function: Callable[[Polynomial], Polynomial]) -> Data:
    """``data`` with ``function`` of each of its forms."""
    match data:
        case TensorElement(tensor, at, term):
            return TensorElement(tensor, _place(at, function), term)
        case IndexNumber(form):
            return IndexNumber(function(form))
        case Total(at, low, high, extra, scaled_by):
            own = tuple(map(function, (low, high, *extra)))
            return Total(_place(at, function), own[0], own[1], own[2:], scaled_by)
        case TermTotals(totals, scales):
            return TermTotals(
                tuple((pair, cast(Total, with_forms(own, function))) for pair, own in totals),
                tuple(cast(TensorElement, with_forms(own, function)) for own in scales),
            )
        case Pick(condition, yes, no):
            return pick(
                conditions.with_forms(condition, function),
                with_forms(yes, function),
                with_forms(no, function),
            )
        case Apply(name, arguments):
            return Apply(name, tuple(with_forms(each, function) for each in arguments))
        case _:
            return data


def _place(at: Place, function: Callable[[Polynomial], Polynomial]) -> Place:
    return tuple((letter, function(form)) for letter, form in at)


def forms_of(data: Data) -> Iterator[Polynomial]:
    """The forms of ``data`` in the order in which ``with_forms`` takes them."""
    found: list[Polynomial] = []

    def note(form: Polynomial) -> Polynomial:
        found.append(form)
        return form

    with_forms(data, note)
    yield from found


def skeleton(data: Data) -> tuple[object, ...]:
    """What is equal for values that differ in numbers alone."""
    match data:
        case Number(value):
            return ("number", value)
        case IndexNumber(form):
            return ("index", polynomials.skeleton(form))
        case TensorElement(tensor, at, term):
            return (tensor, term, *(polynomials.skeleton(form) for _, form in at))
        case ScalarArgument(name):
            return ("argument", name)
        case Total(at, low, high, extra, scaled_by):
            own = [form for _, form in at]
            forms = map(polynomials.skeleton, (*own, low, high, *extra))
            return ("total", scaled_by, *forms)
        case TermTotals(totals, scales):
            own = ((pair, skeleton(total)) for pair, total in totals)
            return ("terms", *own, *map(skeleton, scales))
        case Pick(condition, yes, no):
            return ("pick", _shape(condition), skeleton(yes), skeleton(no))
        case Apply(name, arguments):
            return (name, *map(skeleton, arguments))
        case Kept():
            return ("kept",)
        case UnknownData(reason):
            return ("lost", reason)


def _shape(condition: Condition) -> tuple[object, ...]:
    own = tuple(map(polynomials.skeleton, conditions.forms_of(condition)))
    blank = conditions.with_forms(condition, lambda _: polynomials.symbol("any"))
    return (conditions.signature(blank), own)


def same(left: Data, right: Data) -> bool:
    """Whether they are equal in all threads, as written."""
    if left is right:
        return True
    match left, right:
        case IndexNumber(form), IndexNumber(other_form):
            return polynomials.same(form, other_form)
        case TensorElement(tensor, at, term), TensorElement(other, there, of_other):
            return tensor == other and term == of_other and same_place(at, there)
        case Total(), Total():
            return (
                same_place(left.at, right.at)
                and polynomials.same(left.low, right.low)
                and polynomials.same(left.high, right.high)
                and len(left.extra) == len(right.extra)
                and all(map(polynomials.same, left.extra, right.extra))
                and left.scaled_by == right.scaled_by
            )
        case TermTotals(totals, scales), TermTotals(others, of_others):
            if (len(totals), len(scales)) != (len(others), len(of_others)):
                return False
            return all(map(same, scales, of_others)) and all(
                pair == there and same(own, other)
                for (pair, own), (there, other) in zip(totals, others, strict=True)
            )
        case Pick(), Pick():
            conds = conditions.signature(left.condition) == conditions.signature(right.condition)
            return conds and same(left.yes, right.yes) and same(left.no, right.no)
        case Apply(name, own), Apply(other, others):
            return name == other and len(own) == len(others) and all(map(same, own, others))
        case Number() | ScalarArgument() | UnknownData() | Kept(), _:
            return left == right
        case _:
            return False


def same_place(left: Place, right: Place) -> bool:
    return len(left) == len(right) and all(
        a == b and polynomials.same(x, y) for (a, x), (b, y) in zip(left, right, strict=True)
    )


def pick(condition: Condition, yes: Data, no: Data) -> Data:
    """``Pick``, unless the condition or the two values decide it."""
    if isinstance(condition, conditions.Truth):
        if isinstance(condition.value, bool):
            return yes if condition.value else no
        joined = _by_thread(condition.value, yes, no)
        if joined is not None:
            return joined
    if same(yes, no):
        return yes
    if isinstance(no, Pick) and same(yes, no.yes):
        return pick(conditions.any_of(condition, no.condition), yes, no.no)
    if isinstance(yes, Pick) and same(yes.no, no):
        return pick(conditions.all_of(condition, yes.condition), yes.yes, no)
    return Pick(condition, yes, no)


def _by_thread(where: Bools, yes: Data, no: Data) -> Data | None:
    """One value with the numbers of two, if they differ in numbers alone."""
    if not (isinstance(yes, TensorElement) and isinstance(no, TensorElement)):
        return None
    if (yes.tensor, yes.term) != (no.tensor, no.term):
        return None
    pairs = zip(yes.at, no.at, strict=True)
    at = tuple((letter, polynomials.chosen(where, x, y)) for (letter, x), (_, y) in pairs)
    return TensorElement(yes.tensor, at, yes.term)


def taken(data: Data, places: Ints) -> Data:
    """``data`` of the threads, or the elements, at ``places``."""
    return with_forms(data, lambda form: polynomials.taken(form, places))


def gathered(parts: list[tuple[Bools, Data]]) -> Data | None:
    """One value with the numbers of several, each where it holds; None if they differ otherwise."""
    (_, first), *others = parts
    if any(skeleton(first) != skeleton(other) for _, other in others):
        return None
    total = list(forms_of(first))
    for where, other in others:
        total = [
            polynomials.chosen(where, y, x) for x, y in zip(total, forms_of(other), strict=True)
        ]
    left = iter(total)
    return with_forms(first, lambda _: next(left))


def form_at(at: Place, letter: str) -> Polynomial | None:
    return next((form for name, form in at if name == letter), None)


def shown(data: Data, thread: int) -> str:
    """``A[m = 3, k = 7]`` of one thread."""
    match data:
        case TensorElement(tensor, at, term):
            part = "" if term is None else f"term {term} of "
            return f"{part}{tensor}[{_shown_place(at, thread)}]"
        case Total(at, low, high, _, scaled_by):
            ends = f"{_shown(low, thread)} <= k < {_shown(high, thread)}"
            times = f" times {' and '.join(scaled_by)}" if scaled_by else ""
            return f"the sum for [{_shown_place(at, thread)}] over {ends}{times}"
        case TermTotals(totals, scales):
            own = " + ".join(f"{shown(own, thread)} of terms {pair}" for pair, own in totals)
            return " * ".join((f"({own})" if scales else own, *(shown(s, thread) for s in scales)))
        case UnknownData(reason):
            return reason
        case Number(value):
            return str(value)
        case IndexNumber(form):
            return _shown(form, thread)
        case ScalarArgument(name):
            return name
        case Pick(_, yes, no):
            return f"{shown(yes, thread)} or {shown(no, thread)}"
        case Apply(name, arguments):
            return f"{name}({', '.join(shown(each, thread) for each in arguments)})"
        case Kept():
            return "what was there"


def _shown_place(at: Place, thread: int) -> str:
    return ", ".join(f"{letter} = {_shown(form, thread)}" for letter, form in at)


def _shown(form: Polynomial, thread: int) -> str:
    return polynomials.text(polynomials.of_thread(form, thread))


def first_thread(where: Bools | bool) -> int:
    return int(np.argmax(where)) if isinstance(where, np.ndarray) else 0


def numbers(value: polynomials.Coefficient, threads: int) -> Ints:
    """A vector of ``threads`` numbers."""
    return np.broadcast_to(np.asarray(value, np.int64), threads)
