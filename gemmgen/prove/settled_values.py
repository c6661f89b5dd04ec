"""What a value is known to be: an element of a tensor or, outside of it, zero."""

from __future__ import annotations

import numpy as np

from gemmgen.prove import (
    condition_queries,
    conditions,
    data,
    picked_values,
)
from gemmgen.prove.conditions import Condition
from gemmgen.prove.data import (
    Data,
    Number,
    Pick,
    TensorElement,
    UnknownData,
)
from gemmgen.prove.state import WalkState, under
from gemmgen.prove.walk_context import WalkContext

Leaves = list[tuple[tuple[Condition, ...], Data]]
"""What a value can be, with the conditions for it."""


def settled(context: WalkContext, state: WalkState, value: Data, used: bool = False) -> Data:
    """``value`` as one element of a tensor, where it is that or, outside the tensor, zero.

    The claim is that it is zero only outside, and the element everywhere inside.  If it is not
    ``used`` yet, it may be zero also beyond the block's part of the sum.  Scales of blocks stay as
    they are.
    """
    value = _of_active(state, value)
    if not isinstance(value, Pick) or picked_values.flags_of(value):
        return value
    found = [*picked_values.leaves(value)]
    entries = [leaf for _, leaf in found if isinstance(leaf, TensorElement)]
    if not entries or any(leaf.tensor in context.scale_tensors for leaf in entries):
        return value  # a scale may be zero where its block is inside, but what it multiplies is not
    if not all(data.same(entries[0], other) for other in entries[1:]):
        decided = _decided(context, state, value) if used else value
        if decided is not value:
            return settled(context, state, decided, used)
        return _settled_sides(context, state, _rotated(value), used)
    first = entries[0]
    own = inside_tensor(context, first)
    if not used and context.partials is not None and not _is_known(context, state, found, own):
        nested = isinstance(value.yes, Pick) or isinstance(value.no, Pick)
        return _settled_sides(context, state, value, used) if nested else value
    for path, leaf in found:
        if isinstance(leaf, TensorElement):
            continue
        zero = isinstance(leaf, Number) and leaf.value == 0.0
        never = conditions.negated(
            conditions.all_of(*path, own) if zero else conditions.all_of(*path)
        )
        what = "0" if zero else data.shown(leaf, 0)
        about = f"{what} in place of an element of {first.tensor} that is inside it"
        address = (first.tensor, tuple(form for _, form in first.at))
        # what is not known may never be used; of a part of the sum loops leave little known
        certain = not isinstance(leaf, UnknownData)
        certain &= context.exact or context.partials is None
        context.claim(state, "products", never, about, address, certain=certain)
    return first


def _of_active(state: WalkState, value: Data) -> Data:
    """``value`` without a side that none of the active threads takes."""
    while isinstance(value, Pick) and isinstance(value.condition, conditions.Truth):
        yes = np.asarray(value.condition.value)
        active = yes[state.mask] if yes.ndim and state.mask is not None else yes
        if active.any() and not active.all():
            break
        value = value.yes if active.all() else value.no
    return value


def _rotated(value: Pick) -> Pick:
    """``value`` with the choice of an element before the one between it and zero."""
    test, own, zero = value.condition, value.yes, value.no
    if own == data.ZERO:
        test, own, zero = conditions.negated(test), zero, own
    if zero != data.ZERO or not isinstance(own, Pick):
        return value
    return Pick(own.condition, data.pick(test, own.yes, zero), data.pick(test, own.no, zero))


def _settled_sides(context: WalkContext, state: WalkState, value: Pick, used: bool) -> Data:
    yes = settled(context, under(state, value.condition), value.yes, used)
    no = settled(context, under(state, conditions.negated(value.condition)), value.no, used)
    return data.pick(value.condition, yes, no)


def _decided(context: WalkContext, state: WalkState, value: Data) -> Data:
    """``value`` without what the path rules out."""
    if not isinstance(value, Pick):
        return value
    for test, side in (
        (value.condition, value.yes),
        (conditions.negated(value.condition), value.no),
    ):
        if condition_queries.is_stated(state.path, test):
            return _decided(context, state, side)
    yes, no = _decided(context, state, value.yes), _decided(context, state, value.no)
    if yes is value.yes and no is value.no:
        return value
    return data.pick(value.condition, yes, no)


def _is_known(context: WalkContext, state: WalkState, found: Leaves, inside: Condition) -> bool:
    """Whether leaves that are zero are never inside, and no others but elements can occur."""
    for path, leaf in found:
        if not isinstance(leaf, TensorElement):
            where = (*path, inside) if leaf == data.ZERO else path
            never = conditions.negated(conditions.all_of(*where))
            given = tuple(map(conditions.signature, state.path))
            key = ("settled", given, conditions.signature(never))
            if not context.theory.decided(key, state.path, never):
                return False
    return True


def inside_tensor(context: WalkContext, entry: TensorElement) -> Condition:
    parts: list[Condition] = []
    for letter, own in entry.at:
        parts.append(conditions.not_negative(own))
        parts.append(conditions.less(own, context.extent(letter)))
    return conditions.all_of(*parts)
