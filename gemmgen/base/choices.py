"""Arguments that are one of a few words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from gemmgen.base.errors import UsageError
from gemmgen.base.source import value_shown


def check_choice(argument: str, value: object, known: Iterable[str]) -> None:
    """Raise ``UsageError`` unless ``value`` is one of the ``known`` words."""
    words = list(known)
    if not (isinstance(value, str) and value in words):
        raise UsageError(f"{argument}={value_shown(value)}: there are {', '.join(words)}")


def check_flag(argument: str, value: object) -> None:
    """Raise ``UsageError`` unless ``value`` is True or False."""
    if not isinstance(value, bool):
        raise UsageError(f"{argument}={value_shown(value)}: it is True or False")


def check_sequence(argument: str, value: object) -> Sequence[object]:
    """``value``; raise ``UsageError`` for a single item in place of a sequence."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise UsageError(f"{argument}={value_shown(value)}: pass a list, of one item say")
    return cast(Sequence[object], value)
