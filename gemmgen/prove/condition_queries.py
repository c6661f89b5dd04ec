"""Questions about conditions that need no solver."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gemmgen.numerics.operators import Ints
from gemmgen.prove import conditions, polynomials
from gemmgen.prove.conditions import (
    All,
    AnyOf,
    Condition,
    Flag,
    IsZero,
    Multiple,
    Not,
    NotNegative,
    Truth,
    signature,
)


def is_uniform(condition: Condition, group: int = 0) -> bool:
    """Whether it is the same for all threads of a block, or for all of each ``group`` threads."""
    match condition:
        case Truth(value):
            return isinstance(value, bool) or _is_alike(np.asarray(value, np.int64), group)
        case NotNegative(form) | IsZero(form) | Multiple(form):
            return all(_is_alike(vector, group) for vector in polynomials.vectors(form))
        case All(parts) | AnyOf(parts):
            return all(is_uniform(part, group) for part in parts)
        case Not(part):
            return is_uniform(part, group)
        case Flag():
            return True


def _is_alike(vector: Ints, group: int) -> bool:
    """Whether a vector has one number for each ``group`` threads; it differs among a block's."""
    if not group or vector.size % group:
        return False
    rows = vector.reshape(-1, group)
    return bool((rows == rows[:, :1]).all())


def is_stated(path: Sequence[Condition], claim: Condition) -> bool:
    """Whether ``path`` has the claim, or one that differs from it in a constant and is stronger."""
    if isinstance(claim, Truth):
        return claim.value is True
    parts = [each for one in path for each in (one.parts if isinstance(one, All) else (one,))]
    if isinstance(claim, All):
        return all(is_stated(path, part) for part in claim.parts)
    if not isinstance(claim, NotNegative):
        own = signature(claim)
        return any(signature(part) == own for part in parts)
    for part in parts:
        if isinstance(part, NotNegative):
            apart = polynomials.subtract(claim.form, part.form)
            if apart.concrete and bool(np.all(np.asarray(apart.constant) >= 0)):
                return True
    return False


def decided(path: Sequence[Condition], condition: Condition) -> Condition:
    """``condition`` without the parts that ``path`` states, or states the contrary of."""
    match condition:
        case Truth():
            return condition
        case All(parts):
            return conditions.all_of(*(decided(path, part) for part in parts))
        case AnyOf(parts):
            return conditions.any_of(*(decided(path, part) for part in parts))
        case _ if is_stated(path, condition):
            return conditions.YES
        case _ if is_stated(path, conditions.negated(condition)):
            return conditions.NO
        case _:
            return condition
