"""Values that differ as they are written and not in what they are: an element that is outside its
tensor is zero, and a choice whose condition cannot hold is the other value."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from gemmgen.prove import condition_queries, conditions, data, picked_values
from gemmgen.prove.conditions import Condition
from gemmgen.prove.data import Data, Number, Pick, TensorElement
from gemmgen.prove.settled_values import inside_tensor
from gemmgen.prove.walk_context import WalkContext

MOST_CASES = 12
"""Pairs of what two values may be that are compared."""


def are_equal(context: WalkContext, path: Sequence[Condition], one: Data, other: Data) -> bool:
    """Whether two values are equal wherever ``path`` holds, one of them being a choice.

    In each case of both they are the same, or one is zero and the other an element that is outside,
    or the case cannot occur.  The numbers in the values may be of elements instead of threads, so
    of ``path`` that is used which is the same for all threads.
    """
    if not (isinstance(one, Pick) or isinstance(other, Pick)):
        return False
    if not all(_is_simple(leaf) for each in (one, other) for _, leaf in picked_values.leaves(each)):
        return False
    cases = [*product(picked_values.leaves(one), picked_values.leaves(other))]
    if len(cases) > MOST_CASES:
        return False
    given = [test for test in path if condition_queries.is_uniform(test)]
    known = tuple(map(conditions.signature, given))
    for (own, leaf), (there, other_leaf) in cases:
        if data.same(leaf, other_leaf):
            continue
        inside = [
            inside_tensor(context, element)
            for element, zero in ((leaf, other_leaf), (other_leaf, leaf))
            if isinstance(element, TensorElement) and zero == data.ZERO
        ]
        never = conditions.negated(conditions.all_of(*own, *there, *inside))
        key = ("equal", known, conditions.signature(never))
        if not context.theory.decided(key, given, never):
            return False
    return True


def _is_simple(leaf: Data) -> bool:
    return isinstance(leaf, TensorElement | Number)
