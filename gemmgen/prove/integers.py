"""C's integer arithmetic on forms: division, remainders, choices, and names for their results.

Over 300 lines: divisions by numbers, by symbols and by products, each with its lemmas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd
from typing import cast

import numpy as np

from gemmgen.numerics.operators import Ints
from gemmgen.prove import condition_queries, conditions, polynomials
from gemmgen.prove.conditions import ChosenInteger, Condition, Integer, Truth
from gemmgen.prove.polynomials import Coefficient, Polynomial
from gemmgen.prove.theory import Theory

ONE = polynomials.fixed(1)
BOUND_SECONDS = 2.0
MOST_PLACES = 64
"""Numbers of threads that a quotient of a sum has symbols for."""
MOST_TERMS = 3
"""Of a number that is divided as it is written: a multiple, a rest, and a number."""
LONGEST_TITLE = 45


class Unsupported(Exception):
    """A construct that no fact can be proved of; the message names it."""


def on_leaves(function: Callable[[Polynomial], Integer], value: Integer) -> Integer:
    """``function`` of the forms that ``value`` chooses from."""
    if isinstance(value, Polynomial):
        return function(value)
    yes, no = on_leaves(function, value.yes), on_leaves(function, value.no)
    return ChosenInteger(value.condition, yes, no)


def combined(
    function: Callable[[Polynomial, Polynomial], Integer], left: Integer, right: Integer
) -> Integer:
    return on_leaves(lambda x: on_leaves(lambda y: function(x, y), right), left)


def choose(theory: Theory, condition: Condition, yes: Integer, no: Integer) -> Integer:
    """``condition ? yes : no``: a new symbol if it is the same for all threads."""
    if isinstance(condition, Truth):
        if isinstance(condition.value, bool):
            return yes if condition.value else no
        if isinstance(yes, Polynomial) and isinstance(no, Polynomial):
            return polynomials.chosen(condition.value, yes, no)
    if isinstance(yes, Polynomial) and isinstance(no, Polynomial):
        if polynomials.same(yes, no):
            return yes
        if condition_queries.is_uniform(condition) and yes.uniform and no.uniform:
            key = (
                "?",
                conditions.signature(condition),
                polynomials.signature(yes),
                polynomials.signature(no),
            )
            if key not in theory.shared_names:
                theory.shared_names[key] = _chosen(theory, condition, yes, no)
            return theory.shared_names[key]
    return ChosenInteger(condition, yes, no)


def _chosen(theory: Theory, condition: Condition, yes: Polynomial, no: Polynomial) -> Polynomial:
    name = theory.symbol("choice")
    is_yes = conditions.is_zero(polynomials.subtract(name, yes))
    is_no = conditions.is_zero(polynomials.subtract(name, no))
    theory.known(name, conditions.if_else(condition, is_yes, is_no))

    def value(sample: Mapping[str, int]) -> int | None:
        test = truth_in(sample, condition)
        return None if test is None else number_in(sample, yes if test else no)

    theory.valued(name, value)
    theory.choices[polynomials.text(name)] = condition, yes, no
    bound(theory, name)
    return name


def divided(theory: Theory, x: Polynomial, y: Polynomial) -> tuple[Polynomial, Polynomial]:
    """``x / y`` and ``x % y``, rounded down."""
    divisor = y.plain
    if divisor == 0:
        raise Unsupported("a division by zero")
    if divisor is None and y.concrete and x.concrete:
        top, bottom = x.constant, cast(Ints, y.constant)
        return polynomials.fixed(top // bottom), polynomials.fixed(top % bottom)
    if divisor is None:
        return _by_symbol(theory, x, y)
    whole: dict[polynomials.Monomial, Coefficient] = {}
    rest: dict[polynomials.Monomial, Coefficient] = {}
    for monomial, value in x.terms.items():
        exact = monomial != polynomials.ONE and bool(np.all(np.asarray(value) % divisor == 0))
        if exact:
            whole[monomial] = value // divisor
        else:
            rest[monomial] = value
    quotient, left = Polynomial(whole), Polynomial(rest)
    if left.concrete:
        own = left.constant
        return polynomials.add(quotient, polynomials.fixed(own // divisor)), polynomials.fixed(
            own % divisor
        )
    part = _in_places(theory, left, divisor)
    return polynomials.add(quotient, part), polynomials.subtract(
        left, polynomials.scale(part, divisor)
    )


def _in_places(theory: Theory, x: Polynomial, divisor: int) -> Polynomial:
    """``x / divisor``, for a number of each thread that is added to what all threads share.

    With ``x = g * y + v`` and ``divisor = g * d`` it is ``(y + v / g) / d``, each division rounded
    down: threads whose ``v / g`` are equal share a symbol, which is multiplied by 1 in these
    threads and by 0 in the others.
    """
    symbols = {name: value for name, value in x.terms.items() if name != polynomials.ONE}
    if not all(isinstance(value, int) for value in symbols.values()):
        shown = polynomials.text(x)
        raise Unsupported(f"a division of {shown} by {divisor}, other in each thread")
    common = gcd(divisor, *(cast(int, value) for value in symbols.values()))
    y = Polynomial({name: value // common for name, value in symbols.items()})
    own, left = np.asarray(x.constant) // common, divisor // common
    total, places = polynomials.fixed(own // left), own % left
    each = np.unique(places)
    if each.size > MOST_PLACES:
        shown = polynomials.text(x)
        raise Unsupported(f"a division of {shown} by {divisor}, with {each.size} remainders")
    for place in map(int, each):
        part = _by_number(theory, polynomials.add(y, polynomials.fixed(place)), left)
        here = 1 if each.size == 1 else cast(Ints, (places == place).astype(np.int64))
        total = polynomials.add(total, polynomials.scale(part, here))
    return total


def _by_number(theory: Theory, x: Polynomial, divisor: int) -> Polynomial:
    key = ("/", polynomials.signature(x), divisor)
    if key not in theory.shared_names:
        q = theory.symbol("quotient")
        _entitle(theory, q, x, "/", polynomials.fixed(divisor))
        rest = polynomials.subtract(x, polynomials.scale(q, divisor))
        theory.known(
            q, conditions.not_negative(rest), conditions.less(rest, polynomials.fixed(divisor))
        )
        theory.shared_names[key] = q
        theory.valued(q, lambda sample: _floor(number_in(sample, x), divisor))
        bound(theory, q)
    return theory.shared_names[key]


def permuted(theory: Theory, x: Polynomial, table: Ints) -> Polynomial:
    """``x`` with its place in each row of ``table.size`` numbers exchanged by a table.

    What is known of the new place is its range, and that places differ: a counterexample may name
    another block of the same row.
    """
    if np.any(np.sort(table) != np.arange(table.size)):
        raise Unsupported("a table that has a number twice")
    row, place = divided(theory, x, polynomials.fixed(table.size))
    key = ("table", polynomials.signature(place), table.tobytes())
    if key not in theory.shared_names:
        own = theory.symbol("place")
        last = polynomials.fixed(table.size - 1)
        theory.known(own, conditions.not_negative(own), conditions.at_least(last, own))

        def value(sample: Mapping[str, int]) -> int | None:
            found = number_in(sample, place)
            return None if found is None else int(table[found])

        theory.valued(own, value)
        (name,) = own.symbols
        theory.permutations[name] = place
        theory.shared_names[key] = own
    return polynomials.add(polynomials.scale(row, table.size), theory.shared_names[key])


def _by_symbol(theory: Theory, x: Polynomial, y: Polynomial) -> tuple[Polynomial, Polynomial]:
    """New symbols: ``x = q * y + r``."""
    whole = _whole(theory, x, y)
    if whole is not None:
        return whole
    if not (x.uniform and y.uniform):
        raise Unsupported(f"a division by {polynomials.text(y)}, other in each thread")
    key = ("/", polynomials.signature(x), polynomials.signature(y))
    if key not in theory.shared_names:
        q, r = theory.symbol("quotient"), theory.symbol("remainder")
        _entitle(theory, q, x, "/", y)
        _entitle(theory, r, x, "%", y)
        whole = polynomials.add(polynomials.multiply(q, y), r)
        law = conditions.is_zero(polynomials.subtract(x, whole))
        positive = conditions.at_least(y, ONE)
        facts = [conditions.not_negative(r), conditions.less(r, y)]
        is_positive = theory.holds((), positive, BOUND_SECONDS)
        if not is_positive:
            facts = [conditions.any_of(conditions.negated(positive), fact) for fact in facts]
        theory.known(r, *facts)
        theory.defined(q, law, *facts)
        theory.defined(r, law)

        def quotient(sample: Mapping[str, int]) -> int | None:
            return _floor(number_in(sample, x), number_in(sample, y))

        theory.valued(q, quotient)
        theory.valued(
            r, lambda sample: number_in(sample, polynomials.subtract(x, polynomials.multiply(q, y)))
        )
        if is_positive:
            _lemmas(theory, q, x, y)
        bound(theory, q)
        bound(theory, r)
        theory.shared_names[key] = q
        theory.shared_names[("%", *key[1:])] = r
    return theory.shared_names[key], theory.shared_names[("%", *key[1:])]


def _whole(theory: Theory, x: Polynomial, y: Polynomial) -> tuple[Polynomial, Polynomial] | None:
    """``c`` and the rest, if ``x = c * y + rest`` as it is written, and ``0 <= rest < y``.

    With ``y = g * t`` and ``rest = g * r + v`` for numbers ``0 <= v < g``, other ones in each
    thread (the blocks of a cluster), that is so if ``0 <= r < t``.
    """
    if len(y.terms) != 1 or len(x.terms) > MOST_TERMS:
        return None
    ((symbols, factor),) = y.terms.items()
    times = x.terms.get(symbols, 0)
    if not isinstance(factor, int) or factor < 1 or not isinstance(times, int):
        return None
    rest = polynomials.subtract(x, polynomials.scale(y, times // factor))
    last = np.asarray(rest.constant)
    own = {name: value for name, value in rest.terms.items() if name != polynomials.ONE}
    if not np.all((last >= 0) & (last < factor)) or len(own) > 1:
        return None
    if any(not isinstance(value, int) or value % factor for value in own.values()):
        return None
    first = Polynomial({name: value // factor for name, value in own.items()})
    claims = (conditions.not_negative(first), conditions.less(first, Polynomial({symbols: 1})))
    known = [c for x in first.symbols for c in (*theory.facts[x], *theory.definitions[x])]
    if all(condition_queries.is_stated(known, claim) for claim in claims):
        return polynomials.fixed(times // factor), rest
    return None


def _entitle(theory: Theory, own: Polynomial, x: Polynomial, op: str, y: Polynomial) -> None:
    """Reports show a symbol as ``blockIdx.x / tiles along N``, if that is short."""
    text = f"({theory.titled(polynomials.text(x))} {op} {polynomials.text(y)})"
    if len(text) <= LONGEST_TITLE:
        theory.titles[polynomials.text(own)] = text


def _lemmas(theory: Theory, q: Polynomial, x: Polynomial, y: Polynomial) -> None:
    """``x < c * y`` if and only if ``x / y < c``; where y is a product with a factor in common
    with the limit of x, ``q * (y / f) < limit / f``: both follow from ``q * y <= x``."""
    for count in theory.limits:
        below = conditions.less(x, polynomials.multiply(count, y))
        fits = conditions.less(q, count)
        theory.defined(q, conditions.if_else(below, fits, conditions.negated(fits)))
        for other in theory.limits:
            factor = _quotient(y, other)
            if factor is not None and not factor.concrete:
                below = conditions.less(x, polynomials.multiply(count, other))
                fits = conditions.less(polynomials.multiply(q, factor), count)
                theory.defined(q, conditions.any_of(conditions.negated(below), fits))


def _quotient(form: Polynomial, by: Polynomial) -> Polynomial | None:
    """``form / by`` for a product and one of its factors, a symbol."""
    if len(form.terms) != 1 or len(by.terms) != 1:
        return None
    ((monomial, value),) = form.terms.items()
    ((factor, one),) = by.terms.items()
    if len(factor) != 1 or one != 1 or factor[0] not in monomial:
        return None
    rest = list(monomial)
    rest.remove(factor[0])
    return Polynomial({tuple(rest): value})


def named(theory: Theory, form: Polynomial, name: str) -> Polynomial:
    """``form``, or a symbol in its place: a count of tiles, or a multiple of one, or a new one with
    its bounds if it has products of symbols."""
    if not form.uniform or form.concrete:
        return form
    if len(form.terms) == 1:
        ((monomial, factor),) = form.terms.items()
        count = theory.shared_names.get(("=", polynomials.signature(Polynomial({monomial: 1}))))
        if count is not None:
            return polynomials.scale(count, factor)
    key = ("=", polynomials.signature(form))
    if key not in theory.shared_names and all(len(monomial) < 2 for monomial in form.terms):
        return form
    if key not in theory.shared_names:
        own = theory.symbol(name)
        theory.defined(own, conditions.is_zero(polynomials.subtract(own, form)))
        theory.shared_names[key] = own
        theory.valued(own, lambda sample: number_in(sample, form))
        bound(theory, own)
    return theory.shared_names[key]


def bound(theory: Theory, own: Polynomial) -> None:
    """Adds to the facts of a symbol what can be proved of its range: not negative, positive, less
    than a count of tiles."""
    ranges: list[tuple[Condition, ...]] = [
        (conditions.at_least(own, ONE), conditions.not_negative(own))
    ]
    for limit in theory.limits:
        ranges.append((conditions.less(own, limit), conditions.at_least(limit, own)))
    for claims in ranges:
        for claim in claims:
            if not theory.is_violated(claim) and theory.holds((), claim, BOUND_SECONDS):
                theory.known(own, claim)
                break


def number_in(sample: Mapping[str, int], form: Polynomial) -> int | None:
    """A form in a sampled call; None if that does not say it."""
    if not form.symbols <= sample.keys():
        return None
    found = polynomials.evaluated(form, sample)
    return found if isinstance(found, int) else None


def truth_in(sample: Mapping[str, int], condition: Condition) -> bool | None:
    names = {name for form in conditions.forms_of(condition) for name in form.symbols}
    found = conditions.evaluated(condition, sample) if names <= sample.keys() else None
    return found if isinstance(found, bool) else None


def _floor(x: int | None, y: int | None) -> int | None:
    return None if x is None or not y else x // y


def xor(left: Polynomial, right: Polynomial) -> Polynomial:
    if not (left.concrete and right.concrete):
        if left.concrete or right.concrete:
            raise Unsupported(
                f"{polynomials.text(left)} ^ {polynomials.text(right)}: not of threads alone"
            )
        raise Unsupported(f"{polynomials.text(left)} ^ {polynomials.text(right)}")
    return polynomials.fixed(cast(Coefficient, np.bitwise_xor(left.constant, right.constant)))
