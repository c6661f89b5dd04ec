"""A summation order in words and as plain values."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.ir.tensor_core_rules import SumRule
from gemmgen.summation.order_value import SummationOrder

TITLE = "summation order"
SAME = "same summation order: equal bits"
SAME_BUT_ATOMIC = "same summation order, but blocks add as they arrive: bits differ from run to run"
Fact = str | int | bool | list["Fact"] | dict[str, "Fact"]


def rows(order: SummationOrder, rule: SumRule | None = None) -> tuple[tuple[str, str], ...]:
    """What is said of each aspect of the order: its name, and a phrase.  ``rule``: how the tensor
    cores of a target add the products of an instruction."""
    found = tuple(_rows(order))
    return (*found[:1], *_instruction(order, rule), *found[1:])


def _instruction(order: SummationOrder, rule: SumRule | None) -> Iterator[tuple[str, str]]:
    """How the products of an instruction are added, which is not part of the value: one text runs
    on several architectures."""
    if rule is None:
        return
    apart = " (pairs of adjacent k)" if rule.converted else ""
    size = min(rule.group, order.depth)
    some = f"{size} products" + f"{apart} at once"
    added = "from zero" if rule.converted else "with the accumulator"
    kept = f"aligned to the largest exponent and cut off {rule.fraction} bits below it"
    result = f"the sum is cut off to {rule.bits} bits after the leading one"
    after = ", and added to the accumulator, rounded to nearest" if rule.converted else ""
    source = "measured" if rule.measured else "published, not measured by us"
    yield "each instruction", f"{some}, {added}: {kept}; {result}{after} ({source})"


def _rows(order: SummationOrder) -> Iterator[tuple[str, str]]:
    a, b = order.multiplied
    yield "products", f"{_accumulations(order)}; {a} x {b}, accumulated in {order.accumulator}"
    if order.terms:
        pairs = " + ".join(f"A[{i}] * B[{j}]" for i, j in order.terms)
        yield "terms", f"for each {order.pair_extent} k: {pairs}"
    if order.interval:
        from_first = (
            f", counted from a first tile of {order.interval_step} that ends at K mod "
            f"{order.interval_step}"
            if order.interval_step
            else ""
        )
        each = f"a partial accumulator is added every {order.interval} k{from_first}"
        yield "promotion", f"{each}, in {order.accumulator}"
    if order.scales:
        yield "scales", _scales(order)
    if order.lanes[0] > 1:
        count, width = order.lanes
        yield "lanes", (
            f"{count} lanes sum {width} adjacent k each, then the next; added in a butterfly, "
            f"{count // 2} lanes apart first"
        )
    if order.slices.count > 1:
        yield "slices of K", _slices(order)
    if order.recomputed:
        yield "not finite", "a result that is not finite is summed again, one fmaf per k"
    result = f"{order.epilogue} in {order.computed_in}"
    reads = ", ".join(f"{name} in {dtype}" for name, dtype in order.tensors)
    rounded = f", rounded to {order.stored}" if order.stored != order.computed_in else ""
    yield "epilogue", f"{result}{f' ({reads})' if reads else ''}{rounded}"
    yield "depends on", _depends(order)


def _accumulations(order: SummationOrder) -> str:
    if order.instruction == "integers":
        return "integers modulo 2^32: the same bits in every order"
    if order.walk != "ascending":
        return f"{order.instruction}, in an order of k that is not known for all K ({order.walk})"
    if order.lanes[0] > 1:
        return "one fmaf per k, ascending in each lane"
    if order.depth == 1:
        return "one fmaf per k, k ascending"
    start = ", the first accumulation is the short one" if order.aligned == "last" else ""
    return f"{order.depth} k per {order.instruction}, k ascending{start}"


def _scales(order: SummationOrder) -> str:
    if order.interval:
        return f"a partial accumulator times {' * '.join(order.scales)}, added by one fmaf"
    return f"each element times its factor ({', '.join(order.scales)}) before it is multiplied"


def _slices(order: SummationOrder) -> str:
    s = order.slices
    size = f"slice s begins at s * ceil(ceil(K / {s.step}) / {s.count}) * {s.step}"
    if not s.ordered:
        return f"{s.count}; {size}; added as blocks arrive: bits differ from run to run"
    groups = f", in {s.groups} groups, and then the groups" if s.groups > 1 else ""
    return f"{s.count}; {size}; added in the order of s{groups}"


def _depends(order: SummationOrder) -> str:
    """What the order depends on, and so what the bits of an element do."""
    more = (*(f"the extent of {x}" for x in order.depends), *order.unread)
    if not order.slices.ordered:
        more = (*more, "the order in which blocks arrive")
    if more:
        return f"K, {', '.join(more)}"
    if order.instruction == "integers":
        return "nothing"
    return "K alone: the bits of an element do not depend on the number of rows or columns"


def as_json(order: SummationOrder) -> dict[str, Fact]:
    """The value, for programs; ``text`` has the rows."""
    s = order.slices
    return {
        "instruction": order.instruction,
        "depth": order.depth,
        "multiplied": list(order.multiplied),
        "accumulator": order.accumulator,
        "aligned": order.aligned,
        "terms": [list(pair) for pair in order.terms],
        "pair_extent": order.pair_extent,
        "promotion_interval": order.interval,
        "promotion_step": order.interval_step,
        "scales": list(order.scales),
        "lanes": {"count": order.lanes[0], "adjacent": order.lanes[1]},
        "slices": {"count": s.count, "step": s.step, "groups": s.groups, "ordered": s.ordered},
        "recomputed": order.recomputed,
        "epilogue": order.epilogue,
        "computed_in": order.computed_in,
        "tensors": {name: dtype for name, dtype in order.tensors},
        "stored": order.stored,
        "walk": order.walk,
        "depends": list(order.depends),
        "unread": list(order.unread),
        "reproducible": order.reproducible,
        "text": [f"{name}: {text}" for name, text in rows(order)],
    }


def changes(before: SummationOrder, after: SummationOrder) -> tuple[tuple[str, str, str], ...]:
    """The aspects that differ: a name, and the phrase of each; ``-`` where one has none."""
    old, new = dict(rows(before)), dict(rows(after))
    names = dict.fromkeys((*old, *new))
    found = ((name, old.get(name, "-"), new.get(name, "-")) for name in names)
    return tuple(row for row in found if row[1] != row[2])
