"""Terms of elements (``decompose``), and accumulators of their products: a total for each pair."""

from __future__ import annotations

from collections.abc import Callable, Collection

from gemmgen.prove.data import (
    Data,
    Number,
    Pair,
    Pick,
    TensorElement,
    TermTotals,
    Total,
    UnknownData,
    pick,
    shown,
)


def of_term(value: Data, term: int) -> Data:
    """The term of this number of an element, or of what it may be."""
    match value:
        case TensorElement(tensor, at, None):
            return TensorElement(tensor, at, term)
        case Pick(condition, yes, no):
            return pick(condition, of_term(yes, term), of_term(no, term))
        case Number(0.0) | UnknownData():
            return value
        case _:
            return UnknownData(f"a term of {shown(value, 0)}", certain=True)


def totals_of(value: Data) -> tuple[tuple[Pair | None, Total], ...] | None:
    """The totals that an accumulator adds, with their pairs of terms; None of something else."""
    match value:
        case Total():
            return ((None, value),)
        case TermTotals(totals):
            return totals
        case _:
            return None


def with_totals(value: Data, function: Callable[[Total], Total]) -> Data:
    """An accumulator with ``function`` of each of its totals."""
    match value:
        case Total():
            return function(value)
        case TermTotals(totals, scales):
            return TermTotals(tuple((pair, function(own)) for pair, own in totals), scales)
        case _:
            return value


def scaled(left: Data, right: Data, names: Collection[str]) -> Data | None:
    """An accumulator of terms times an element of scales, which are tensors of these ``names``;
    None if it is another product."""
    if not isinstance(left, TermTotals):
        return None
    if not (isinstance(right, TensorElement) and right.tensor in names):
        return None
    return TermTotals(left.totals, (*left.scales, right))
