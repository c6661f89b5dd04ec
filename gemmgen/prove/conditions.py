"""Truths of a kernel: comparisons of forms, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

import numpy as np

from gemmgen.base.record import record
from gemmgen.numerics.operators import Bools
from gemmgen.prove import polynomials
from gemmgen.prove.polynomials import Polynomial


@record
class Truth:
    """Known: for all threads, or for each."""

    value: bool | Bools


@record
class NotNegative:
    """``form >= 0``."""

    form: Polynomial


@record
class IsZero:
    """``form == 0``."""

    form: Polynomial


@record
class All:
    parts: tuple[Condition, ...]


@record
class AnyOf:
    parts: tuple[Condition, ...]


@record
class Not:
    part: Condition


@record
class Flag:
    """A truth that depends on no size (``beta != 0.0``), the same for all threads."""

    name: str


@record
class Multiple:
    """``form`` is a multiple of ``divisor``."""

    form: Polynomial
    divisor: int


Condition = Truth | NotNegative | IsZero | All | AnyOf | Not | Flag | Multiple

YES, NO = Truth(True), Truth(False)


@record
class ChosenInteger:
    """An integer: ``yes`` where the condition holds, else ``no``."""

    condition: Condition
    yes: Integer
    no: Integer


Integer = Polynomial | ChosenInteger


def truth(value: bool | Bools) -> Truth:
    """A known truth; a vector that is the same in all threads is one truth."""
    if isinstance(value, np.ndarray):
        if bool(value.all()):
            return YES
        return Truth(value) if bool(value.any()) else NO
    return YES if value else NO


def not_negative(form: Polynomial) -> Condition:
    if form.concrete:
        return truth(form.constant >= 0)
    return NotNegative(form)


def is_zero(form: Polynomial) -> Condition:
    if form.concrete:
        return truth(cast("bool | Bools", form.constant == 0))
    return IsZero(form)


def at_least(left: Polynomial, right: Polynomial) -> Condition:
    return not_negative(polynomials.subtract(left, right))


def less(left: Polynomial, right: Polynomial) -> Condition:
    return not_negative(
        polynomials.subtract(polynomials.subtract(right, left), polynomials.fixed(1))
    )


def over_choices(value: Integer, claim: Callable[[Polynomial], Condition]) -> Condition:
    """``claim`` of the form that ``value`` is."""
    if isinstance(value, Polynomial):
        return claim(value)
    yes, no = over_choices(value.yes, claim), over_choices(value.no, claim)
    return if_else(value.condition, yes, no)


def if_else(condition: Condition, yes: Condition, no: Condition) -> Condition:
    return any_of(all_of(condition, yes), all_of(negated(condition), no))


def all_of(*parts: Condition) -> Condition:
    return _joined(parts, All, YES, NO, np.logical_and)


def any_of(*parts: Condition) -> Condition:
    return _joined(parts, AnyOf, NO, YES, np.logical_or)


def _joined(
    parts: tuple[Condition, ...],
    kind: type[All] | type[AnyOf],
    neutral: Truth,
    decides: Truth,
    both: Callable[[bool | Bools, bool | Bools], Bools],
) -> Condition:
    known, left = neutral, list[Condition]()
    for part in parts:
        for each in part.parts if isinstance(part, kind) else (part,):
            if isinstance(each, Truth):
                known = truth(both(known.value, each.value)) if each is not neutral else known
            else:
                left.append(each)
    if known.value is decides.value or not left:
        return known
    if known.value is not neutral.value:
        left.insert(0, known)
    return left[0] if len(left) == 1 else kind(tuple(left))


def negated(condition: Condition) -> Condition:
    match condition:
        case Truth(value):
            return truth(~value if isinstance(value, np.ndarray) else not value)
        case Not(part):
            return part
        case NotNegative(form):
            return NotNegative(polynomials.subtract(polynomials.fixed(-1), form))
        case _:
            return Not(condition)


def forms_of(condition: Condition) -> Iterator[Polynomial]:
    match condition:
        case NotNegative(form) | IsZero(form) | Multiple(form):
            yield form
        case All(parts) | AnyOf(parts):
            for part in parts:
                yield from forms_of(part)
        case Not(part):
            yield from forms_of(part)
        case Truth() | Flag():
            return


def with_forms(condition: Condition, function: Callable[[Polynomial], Polynomial]) -> Condition:
    """``condition`` with ``function`` of each of its forms; of a vector of truths too."""
    match condition:
        case Truth(value):
            if isinstance(value, bool):
                return condition
            changed = function(polynomials.fixed(value.astype(np.int64))).constant
            return truth(bool(changed) if isinstance(changed, int) else changed != 0)
        case NotNegative(form):
            return not_negative(function(form))
        case IsZero(form):
            return is_zero(function(form))
        case Multiple(form, divisor):
            return Multiple(function(form), divisor)
        case All(parts):
            return all_of(*(with_forms(part, function) for part in parts))
        case AnyOf(parts):
            return any_of(*(with_forms(part, function) for part in parts))
        case Not(part):
            return negated(with_forms(part, function))
        case Flag():
            return condition


def with_flags(condition: Condition, flags: Mapping[str, bool]) -> Condition:
    """``condition`` in calls where these flags are so."""
    match condition:
        case Flag(name):
            return truth(flags[name]) if name in flags else condition
        case All(parts):
            return all_of(*(with_flags(part, flags) for part in parts))
        case AnyOf(parts):
            return any_of(*(with_flags(part, flags) for part in parts))
        case Not(part):
            return negated(with_flags(part, flags))
        case _:
            return condition


def flags_of(condition: Condition) -> set[str]:
    """The flags that ``condition`` depends on."""
    match condition:
        case Flag(name):
            return {name}
        case All(parts) | AnyOf(parts):
            return {name for part in parts for name in flags_of(part)}
        case Not(part):
            return flags_of(part)
        case _:
            return set()


def evaluated(condition: Condition, values: Mapping[str, int]) -> bool | Bools:
    """In which threads it holds for these values of the symbols and the flags."""
    match condition:
        case Truth(value):
            return value
        case NotNegative(form):
            return polynomials.evaluated(form, values) >= 0
        case IsZero(form):
            return cast("bool | Bools", polynomials.evaluated(form, values) == 0)
        case Multiple(form, divisor):
            return cast("bool | Bools", polynomials.evaluated(form, values) % divisor == 0)
        case All(parts):
            found: bool | Bools = True
            for part in parts:
                found = found & evaluated(part, values)
            return found
        case AnyOf(parts):
            found = False
            for part in parts:
                found = found | evaluated(part, values)
            return found
        case Not(part):
            found = evaluated(part, values)
            return ~found if isinstance(found, np.ndarray) else not found
        case Flag(name):
            return bool(values.get(name, 0))


def signature(condition: Condition) -> tuple[object, ...]:
    """What is equal for equal conditions, and can be hashed."""
    match condition:
        case Truth(value):
            return ("truth", value if isinstance(value, bool) else value.tobytes())
        case NotNegative(form):
            return (">=", polynomials.signature(form))
        case IsZero(form):
            return ("==", polynomials.signature(form))
        case Multiple(form, divisor):
            return ("%", divisor, polynomials.signature(form))
        case All(parts):
            return ("all", *map(signature, parts))
        case AnyOf(parts):
            return ("any", *map(signature, parts))
        case Not(part):
            return ("not", signature(part))
        case Flag(name):
            return ("flag", name)
