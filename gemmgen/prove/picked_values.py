"""Values that depend on conditions: what they may be, and what they are in some calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gemmgen.prove import conditions
from gemmgen.prove.conditions import Condition
from gemmgen.prove.data import Apply, Data, Pick, pick


def with_flags(data: Data, flags: Mapping[str, bool]) -> Data:
    """``data`` in calls where these flags are so."""
    match data:
        case Pick(condition, yes, no):
            test = conditions.with_flags(condition, flags)
            return pick(test, with_flags(yes, flags), with_flags(no, flags))
        case Apply(name, arguments):
            return Apply(name, tuple(with_flags(each, flags) for each in arguments))
        case _:
            return data


def flags_of(data: Data) -> set[str]:
    """The flags that ``data`` depends on."""
    found: set[str] = set()
    for each in inside(data):
        if isinstance(each, Pick):
            found |= conditions.flags_of(each.condition)
    return found


def leaves(data: Data) -> Iterator[tuple[tuple[Condition, ...], Data]]:
    """What ``data`` can be, with the conditions for it."""
    if isinstance(data, Pick):
        for path, leaf in leaves(data.yes):
            yield (data.condition, *path), leaf
        for path, leaf in leaves(data.no):
            yield (conditions.negated(data.condition), *path), leaf
    else:
        yield (), data


def inside(data: Data) -> Iterator[Data]:
    """``data`` and its parts."""
    yield data
    match data:
        case Pick(_, yes, no):
            yield from inside(yes)
            yield from inside(no)
        case Apply(_, arguments):
            for each in arguments:
                yield from inside(each)
        case _:
            return
