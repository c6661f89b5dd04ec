"""Blocks and tiles: each tile of C has exactly one block.

There are as many blocks as tiles, so it is enough that every block's tile exists and that two
blocks never have the same one.
"""

from __future__ import annotations

from collections.abc import Sequence

from gemmgen.prove import conditions, polynomials
from gemmgen.prove.conditions import Condition
from gemmgen.prove.goals import Goal, Where
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.walk_context import WalkContext

OTHER = "'"


def check(context: WalkContext, tile: Sequence[Polynomial], where: Where) -> None:
    """Adds the goals for the ``tile`` of a block, its index along each extent."""
    for own, count in zip(tile, context.grid.counts, strict=True):
        for claim in (conditions.not_negative(own), conditions.less(own, count)):
            about = "a block has a tile that does not exist"
            _goal(context, claim, (), where, about, own)
    _check_injective(context, tile, where)


def _goal(
    context: WalkContext,
    claim: Condition,
    path: tuple[Condition, ...],
    where: Where,
    about: str,
    own: Polynomial,
) -> None:
    context.ledger.goal(Goal("coverage", claim, path, None, where, about, ("tile", (own,))))


def _check_injective(context: WalkContext, tile: Sequence[Polynomial], where: Where) -> None:
    """That equal tiles have equal blocks: of the divisions between a block's number and its tile
    one after another is shown to be equal in both."""
    names = _between(context, tile)
    other = {name: _second(context, name, names) for name in names}

    def primed(form: Polynomial) -> Polynomial:
        for name in names:
            form = polynomials.substituted(form, name, other[name])
        return form

    for name in names:
        symbol = other[name]
        context.theory.known(
            symbol, *(conditions.with_forms(c, primed) for c in context.theory.facts[name])
        )
        context.theory.defined(
            symbol, *(conditions.with_forms(c, primed) for c in context.theory.definitions[name])
        )
    known = [_equal(own, primed(own)) for own in tile]
    known += _lemmas(context, names, other)
    for name, place in context.theory.permutations.items():
        if name in other:
            apart = conditions.negated(_equal(polynomials.symbol(name), other[name]))
            known.append(conditions.any_of(apart, _equal(place, primed(place))))
    (block,) = context.grid.tile.symbols
    left = [name for name in names if name != block]
    moved = True
    while moved and left:
        moved = False
        for name in list(left):
            own = polynomials.symbol(name)
            claim = _equal(own, other[name])
            if context.theory.holds(known, claim, 2.0):
                known.append(claim)
                left.remove(name)
                moved = True
    about = "two blocks have the same tile"
    claim = _equal(context.grid.tile, primed(context.grid.tile))
    _goal(context, claim, tuple(known), where, about, context.grid.tile)


def _equal(left: Polynomial, right: Polynomial) -> Condition:
    return conditions.is_zero(polynomials.subtract(left, right))


def _between(context: WalkContext, tile: Sequence[Polynomial]) -> list[str]:
    """The symbols that depend on the block's number, in the order in which they were made."""
    (block,) = context.grid.tile.symbols
    theory, depends = context.theory, {block}
    found: list[str] = []
    for name in theory.facts:
        own = [*theory.facts[name], *theory.definitions[name]]
        named = {x for c in own for form in conditions.forms_of(c) for x in form.symbols}
        if name in theory.permutations:
            named |= theory.permutations[name].symbols
        if name == block or (named & depends and name not in theory.sizes and _is_own(name, own)):
            depends.add(name)
            found.append(name)
    return found


def _is_own(name: str, own: Sequence[Condition]) -> bool:
    """Whether one of these conditions is about the symbol."""
    return any(name in form.symbols for c in own for form in conditions.forms_of(c))


def _second(context: WalkContext, name: str, names: Sequence[str]) -> Polynomial:
    return context.theory.symbol(name + OTHER)


def _lemmas(
    context: WalkContext, names: Sequence[str], other: dict[str, Polynomial]
) -> list[Condition]:
    """``f * x + r = f * y + s`` with ``0 <= r, s < f`` makes x = y and r = s, for each product of
    two symbols that depends on the block: the uniqueness of division."""
    found: list[Condition] = []
    products = {
        monomial
        for name in names
        for c in context.theory.definitions[name]
        for form in conditions.forms_of(c)
        for monomial in form.terms
        if len(monomial) == 2
    }
    for first, second in sorted(products):
        for x, f in ((first, second), (second, first)):
            if x in names and f not in names:
                one, two, factor = polynomials.symbol(x), other[x], polynomials.symbol(f)
                apart = polynomials.subtract(
                    polynomials.multiply(one, factor), polynomials.multiply(two, factor)
                )
                near = conditions.all_of(
                    conditions.less(apart, factor),
                    conditions.less(polynomials.scale(apart, -1), factor),
                )
                found.append(conditions.any_of(conditions.negated(near), _equal(one, two)))
    return found
