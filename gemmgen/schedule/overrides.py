"""Values that ``--set key=value`` replaces: ``tile.m=64`` for ``tile m=128``, ``t=64`` for a
``let``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from gemmgen.schedule.raw import RawArgument, RawDirective, Word
from gemmgen.schedule.sets import Let, Settings


def overridden(
    lets: list[Let], directives: list[RawDirective], settings: Settings
) -> tuple[list[Let], list[RawDirective], Settings]:
    """The statements with the values of ``settings``, and the settings that name no single value:
    those of sets, and unknown ones.

    A key is ``directive.argument``, or ``directive.operand.argument``, which several statements of
    one directive need.  A replaced value keeps its place in the text, where mistakes are reported.
    """
    wanted = {key: str(value) for key, value in settings}
    keys = keys_of_values(lets, directives)

    def chosen(value: Word, key: str) -> Word:
        return replace(value, text=wanted[key]) if key in wanted else value

    def let(one: Let) -> Let:
        if not isinstance(one.value, Word):
            return one
        return replace(one, value=chosen(one.value, one.name.text))

    def argument(one: RawArgument) -> RawArgument:
        for key in keys.get(one, ()):
            if isinstance(one.value, Word) and key in wanted:
                return replace(one, value=chosen(one.value, key))
        return one

    own = [let(one) for one in lets]
    changed = [replace(d, arguments=tuple(map(argument, d.arguments))) for d in directives]
    known = {key for found in keys.values() for key in found}
    known |= {one.name.text for one in lets if isinstance(one.value, Word)}
    return own, changed, tuple((key, value) for key, value in settings if key not in known)


def keys_of_values(
    lets: list[Let], directives: list[RawDirective]
) -> dict[RawArgument, tuple[str, ...]]:
    """The keys of each argument with its own value, the shortest first."""
    names = {one.name.text for one in lets}
    found = [
        (directive, argument)
        for directive in directives
        for argument in directive.arguments
        if isinstance(argument.value, Word) and argument.value.text not in names
    ]
    written = Counter((d.word.text, a.name.text) for d in directives for a in d.arguments)
    keys: dict[RawArgument, tuple[str, ...]] = {}
    for directive, argument in found:
        name = directive.word.text, argument.name.text
        keys[argument] = tuple(_keys(directive, argument, written[name] == 1))
    return keys


def _keys(directive: RawDirective, argument: RawArgument, alone: bool) -> Iterator[str]:
    if alone:
        yield f"{directive.word.text}.{argument.name.text}"
    for operand in directive.operands:
        yield f"{directive.word.text}.{operand.text}.{argument.name.text}"
