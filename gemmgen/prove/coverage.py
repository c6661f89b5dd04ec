"""Each element of C is written exactly once: by one thread of the block that has its tile, and
there is one such block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations

import numpy as np

from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove import block_map, conditions, data, polynomials
from gemmgen.prove.conditions import Condition
from gemmgen.prove.data import numbers
from gemmgen.prove.goals import Goal, KnownViolation
from gemmgen.prove.integers import Unsupported
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.settled_values import inside_tensor
from gemmgen.prove.walk_context import OutputStore, WalkContext

NO_THREAD = -1


def check(context: WalkContext) -> None:
    """Adds the goals of the fact ``coverage`` to the ledger."""
    if not context.stores:
        context.ledger.violated(
            KnownViolation("coverage", "no element of C is stored", (), 0, context.where)
        )
        return
    tile = _tile_indices(context)
    block_map.check(context, tile, context.stores[0].where)
    offsets, sides = _offsets(context), context.grid.sides
    count = int(np.prod(sides))
    owner = np.full(count, NO_THREAD, np.int64)
    storing: dict[int, list[int]] = {}
    for number, (store, local) in enumerate(zip(context.stores, offsets, strict=True)):
        threads = context.every if store.mask is None else np.flatnonzero(store.mask)
        flat = np.zeros(threads.size, np.int64)
        for own, side in zip(local, sides, strict=True):
            each = own[threads]
            wrong = (each < 0) | (each >= side)
            if wrong.any():
                at = int(threads[int(np.argmax(wrong))])
                _violate(context, store, at, "an element outside the block's tile is stored")
                return
            flat = flat * side + each
        twice = (owner[flat] != NO_THREAD) & (owner[flat] != threads)
        owner[flat] = threads
        twice |= owner[flat] != threads
        if twice.any():
            at = int(threads[int(np.argmax(twice))])
            _violate(context, store, at, "two threads store one element of C")
            return
        for cell in flat:
            storing.setdefault(int(cell), []).append(number)
    if (owner == NO_THREAD).any():
        index = np.unravel_index(int(np.argmax(owner == NO_THREAD)), sides)
        at = ", ".join(str(int(i)) for i in index)
        _violate(context, context.stores[0], 0, f"no thread stores element ({at}) of a tile of C")
        return
    _once(context, storing, owner)


def is_alike(stores: Sequence[OutputStore], others: Sequence[OutputStore]) -> bool:
    """Whether these are the same stores, but for the values: then they cover the same elements."""

    def same(one: OutputStore, two: OutputStore) -> bool:
        paths = ([*map(conditions.signature, each.path)] for each in (one, two))
        masks = (None if each.mask is None else each.mask.tobytes() for each in (one, two))
        return data.same_place(one.at, two.at) and _are_equal(paths) and _are_equal(masks)

    return len(stores) == len(others) and all(map(same, stores, others))


def _are_equal(two: Iterable[object]) -> bool:
    one, other = two
    return one == other


def _violate(context: WalkContext, store: OutputStore, thread: int, about: str) -> None:
    context.ledger.violated(
        KnownViolation("coverage", about, store.path, thread, store.where, context.exact)
    )


def _letters(context: WalkContext) -> list[str]:
    """The letters of C that are tiled, in the order of the interface's tiles.

    Two letters may have one extent: then those come first for which tiles begin at multiples of
    their sides.  Either order has as many tiles, so what is shown of one of them is coverage."""
    names = [name for name, _ in context.interface.tiles]
    own = [x for x in context.output.indices if context.interface.extent(x) in names]
    orders = [
        order
        for order in permutations(own, len(names))
        if [context.interface.extent(x) for x in order] == names
    ]
    first = context.stores[0]
    for order in orders:
        pairs = zip(order, context.grid.sides, strict=True)
        if all(_begins_at(first, letter, side) is not None for letter, side in pairs):
            return list(order)
    return list(orders[0])


def _begins_at(store: OutputStore, letter: str, side: int) -> Polynomial | None:
    """The number of the tile in which a store is; None if tiles begin elsewhere."""
    origin = _origin(store, letter)
    if any(np.any(np.asarray(value) % side != 0) for value in origin.terms.values()):
        return None
    return Polynomial({name: value // side for name, value in origin.terms.items()})


def _tile_indices(context: WalkContext) -> list[Polynomial]:
    """The index of the block's tile, by extent, then those of its matrix."""
    first = context.stores[0]
    found: list[Polynomial] = []
    letters = _letters(context)
    for letter, size in zip(letters, context.grid.sides, strict=True):
        own = _begins_at(first, letter, size)
        if own is None:
            origin = polynomials.text(_origin(first, letter))
            raise Unsupported(f"a tile along {letter} that begins at {origin}")
        found.append(own)
    for letter, _ in context.interface.batches:
        own = data.form_at(first.at, letter)
        assert own is not None
        found.append(own)
    for store in context.stores[1:]:
        for letter in letters:
            if not polynomials.same(_origin(store, letter), _origin(first, letter)):
                raise Unsupported("stores that count from different elements of C")
        for letter, _ in context.interface.batches:
            own, other = data.form_at(store.at, letter), data.form_at(first.at, letter)
            if own is None or other is None or not polynomials.same(own, other):
                raise Unsupported("stores to different matrices of C")
    return found


def _origin(store: OutputStore, letter: str) -> Polynomial:
    """What a store's index has of symbols: the first element of the tile."""
    own = data.form_at(store.at, letter)
    assert own is not None
    origin = Polynomial(
        {name: value for name, value in own.terms.items() if name != polynomials.ONE}
    )
    if not origin.uniform:
        raise Unsupported(f"an index along {letter} that depends on sizes, other in each thread")
    return origin


def _offsets(context: WalkContext) -> list[list[Ints]]:
    """For each store the indices of its threads in the tile."""
    letters, found = _letters(context), list[list[Ints]]()
    for store in context.stores:
        own = [data.form_at(store.at, letter) for letter in letters]
        found.append([numbers(form.constant, context.threads) for form in own if form is not None])
    return found


def _once(context: WalkContext, storing: dict[int, list[int]], owner: Ints) -> None:
    """Of the stores to one element exactly one is done if it is in C, and none if it is not."""
    patterns: dict[tuple[int, ...], list[int]] = {}
    for cell, numbers_ in storing.items():
        patterns.setdefault(tuple(numbers_), []).append(cell)
    for pattern, cells in patterns.items():
        mask: Bools = np.zeros(context.threads, np.bool_)
        mask[owner[cells]] = True
        stores = [context.stores[number] for number in pattern]
        entry = data.TensorElement(context.output.name, stores[0].at)
        inside = inside_tensor(context, entry)
        address = (entry.tensor, tuple(form for _, form in entry.at))
        paths = [conditions.all_of(*store.path) for store in stores]
        given = inside.parts if isinstance(inside, conditions.All) else (inside,)

        def goal(claim: Condition, path: Sequence[Condition], about: str) -> None:
            where = stores[0].where  # noqa: B023  # called in this trip alone
            full = Goal("coverage", claim, tuple(path), mask, where, about, address)  # noqa: B023
            context.ledger.goal(full)

        goal(conditions.any_of(*paths), given, "an element of C is not stored")
        for i, path in enumerate(paths):
            for other in paths[:i]:
                goal(conditions.negated(other), (path,), "an element of C is stored twice")
