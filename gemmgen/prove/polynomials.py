"""A kernel's integers as polynomials over sizes, with a coefficient for each thread.

``tile_m + A_m`` is ``128 * q + v``: a symbol that all threads share, and a vector with a number
for each thread.  What threads compute from their own numbers alone is such a vector, and needs no
solver: its divisions, remainders and exclusive ors are those of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

import numpy as np

from gemmgen.numerics.operators import Bools, Ints

Monomial = tuple[str, ...]
"""The product of these symbols, sorted; of none: 1."""
Coefficient = int | Ints
ONE: Monomial = ()


class Polynomial:
    """The sum of ``terms``: a coefficient, or a vector with one for each thread, by monomial.

    ``plain`` is the integer that it is in all threads; None if there is no such.
    """

    __slots__ = ("plain", "terms")

    def __init__(self, terms: dict[Monomial, Coefficient]):
        self.terms = terms
        self.plain: int | None = None
        if not terms:
            self.plain = 0
        elif len(terms) == 1:
            value = terms.get(ONE)
            if isinstance(value, int):
                self.plain = value

    def __repr__(self) -> str:
        return text(self)

    @property
    def constant(self) -> Coefficient:
        """What is added to the terms with symbols."""
        return self.terms.get(ONE, 0)

    @property
    def concrete(self) -> bool:
        """Whether it has no symbol."""
        return self.plain is not None or (len(self.terms) == 1 and ONE in self.terms)

    @property
    def uniform(self) -> bool:
        """Whether it is the same for all threads."""
        return all(isinstance(value, int) for value in self.terms.values())

    @property
    def symbols(self) -> set[str]:
        return {name for monomial in self.terms for name in monomial}

    def number(self) -> int | None:
        """``plain``."""
        return self.plain


def fixed(value: Coefficient) -> Polynomial:
    """An integer, or one for each thread."""
    value = _tidy(value)
    return _plain(value) if isinstance(value, int) else Polynomial({ONE: value})


@lru_cache(1 << 14)
def _plain(value: int) -> Polynomial:
    return Polynomial({ONE: value} if value else {})


def symbol(name: str) -> Polynomial:
    return Polynomial({(name,): 1})


ZERO = Polynomial({})


def _tidy(value: Coefficient) -> Coefficient:
    """A vector whose numbers are all the same as that number."""
    if isinstance(value, np.ndarray):
        return int(value[0]) if value.size and bool((value == value[0]).all()) else value
    return int(value)


def _added(terms: dict[Monomial, Coefficient], monomial: Monomial, value: Coefficient) -> None:
    total = _tidy(terms[monomial] + value) if monomial in terms else value
    if isinstance(total, int) and total == 0:
        terms.pop(monomial, None)
    else:
        terms[monomial] = total


def add(left: Polynomial, right: Polynomial) -> Polynomial:
    if left.plain is not None and right.plain is not None:
        return _plain(left.plain + right.plain)
    if not right.terms:
        return left
    terms = dict(left.terms)
    for monomial, value in right.terms.items():
        _added(terms, monomial, value)
    return Polynomial(terms)


def scale(form: Polynomial, by: Coefficient) -> Polynomial:
    if isinstance(by, int):
        if form.plain is not None:
            return _plain(form.plain * by)
        if by == 1:
            return form
        if by == 0:
            return ZERO
    terms: dict[Monomial, Coefficient] = {}
    for monomial, value in form.terms.items():
        _added(terms, monomial, _tidy(value * by))
    return Polynomial(terms)


def subtract(left: Polynomial, right: Polynomial) -> Polynomial:
    return add(left, scale(right, -1))


def multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    if right.concrete:
        return scale(left, right.constant)
    if left.concrete:
        return scale(right, left.constant)
    terms: dict[Monomial, Coefficient] = {}
    for first, x in left.terms.items():
        for second, y in right.terms.items():
            _added(terms, tuple(sorted(first + second)), _tidy(x * y))
    return Polynomial(terms)


def mapped(form: Polynomial, function: Callable[[Ints], Coefficient]) -> Polynomial:
    """``form`` with ``function`` of each vector."""
    if form.uniform:
        return form
    terms: dict[Monomial, Coefficient] = {}
    for monomial, value in form.terms.items():
        _added(terms, monomial, value if isinstance(value, int) else _tidy(function(value)))
    return Polynomial(terms)


def taken(form: Polynomial, places: Ints) -> Polynomial:
    """``form`` of the threads, or the elements, at ``places``."""
    return mapped(form, lambda vector: vector[places])


def chosen(where: Bools, yes: Polynomial, no: Polynomial) -> Polynomial:
    """``yes`` in the threads where it holds, ``no`` in the others."""
    terms: dict[Monomial, Coefficient] = {}
    for monomial in {**yes.terms, **no.terms}:
        both = np.where(where, yes.terms.get(monomial, 0), no.terms.get(monomial, 0))
        _added(terms, monomial, _tidy(both))
    return Polynomial(terms)


def same(left: Polynomial, right: Polynomial) -> bool:
    """Whether they are equal in all threads, term by term."""
    if left is right:
        return True
    if left.plain is not None or right.plain is not None:
        return left.plain == right.plain
    if left.terms.keys() != right.terms.keys():
        return False
    for monomial, value in left.terms.items():
        other = right.terms[monomial]
        if isinstance(value, int) or isinstance(other, int):
            if not (isinstance(value, int) and isinstance(other, int) and value == other):
                return False
        elif value is not other and not np.array_equal(value, other):
            return False
    return True


def differing(left: Polynomial, right: Polynomial) -> Bools | bool:
    """In which threads they differ, term by term."""
    apart: Bools | bool = False
    for monomial in {**left.terms, **right.terms}:
        unequal = np.not_equal(left.terms.get(monomial, 0), right.terms.get(monomial, 0))
        apart = apart | (unequal if unequal.ndim else bool(unequal))
    return apart


def substituted(form: Polynomial, name: str, by: Polynomial) -> Polynomial:
    """``form`` with ``by`` in place of a symbol."""
    if name not in form.symbols:
        return form
    total = ZERO
    for monomial, value in form.terms.items():
        part = Polynomial({tuple(each for each in monomial if each != name): value})
        for _ in range(monomial.count(name)):
            part = multiply(part, by)
        total = add(total, part)
    return total


def evaluated(form: Polynomial, values: Mapping[str, int]) -> Coefficient:
    """``form`` for these values of its symbols; one that has none is 0."""
    total: Coefficient = 0
    for monomial, value in form.terms.items():
        product: Coefficient = value
        for name in monomial:
            product = product * values.get(name, 0)
        total = total + product
    return total


def skeleton(form: Polynomial) -> tuple[Monomial, ...]:
    """Its monomials, without coefficients: forms of one skeleton differ in numbers alone."""
    return tuple(sorted(monomial for monomial in form.terms if monomial != ONE))


def signature(form: Polynomial) -> tuple[object, ...]:
    """What is equal for equal forms, and can be hashed."""
    return tuple(
        (monomial, value if isinstance(value, int) else value.tobytes())
        for monomial, value in sorted(form.terms.items(), key=lambda item: item[0])
    )


def vectors(form: Polynomial) -> Iterator[Ints]:
    return (value for value in form.terms.values() if not isinstance(value, int))


def of_thread(form: Polynomial, thread: int) -> Polynomial:
    """What it is in one thread."""
    return mapped(form, lambda vector: int(vector[thread]))


def text(form: Polynomial) -> str:
    """``128 * q + 3``; a vector is shown by its range."""
    parts: list[str] = []
    for monomial, value in sorted(form.terms.items(), key=lambda item: (item[0] == ONE, item[0])):
        shown = str(value) if isinstance(value, int) else f"{value.min()}..{value.max()}"
        names = " * ".join(monomial)
        parts.append(names if shown == "1" and names else " * ".join(filter(None, (names, shown))))
    return " + ".join(parts) or "0"
