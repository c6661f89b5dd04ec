"""Many hostile words at once: each place of a schedule gets its own word.

A word is hostile by what else has its name.  What has it follows from words at other places, or
from none; so words share a schedule unless one of them holds the usual word of another's place.
Where the schedule is refused, the others go on without whomever a mistake names; those are tried
once more among themselves, and who is named then is tried alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.ir.identifiers import language_word
from gemmgen.pipeline import Emitted, compile_source

from .words import LETTERS, TEMPLATES, USUAL, identifiers

Words = dict[str, str]
"""A word for each of some places."""
LOOK = 40
"""Groups that a word may still join: the last ones."""


def places(template: str) -> list[str]:
    """The places of a template, in a fixed order."""
    return [place for place in USUAL if f"{{{place}}}" in TEMPLATES[template]]


def compiled(template: str, words: Words) -> Emitted | ScheduleError:
    """The kernel of the template with ``words``, or why not; any other outcome is raised."""
    try:
        return compile_source(Source(TEMPLATES[template].format(**(USUAL | words))))
    except ScheduleError as error:
        assert all(mistake.span is not None and mistake.hint for mistake in error.mistakes)
        return error


def tried(template: str, several: list[Words]) -> dict[str, Emitted]:
    """What is made of the template with each group of words, without those that are mistakes."""
    found, doubtful = _tried(template, several)
    again, alone = _tried(template, packed(doubtful))
    left = [{place: word} for place, word in alone]
    return found | again | _tried(template, left)[0]


def _tried(template: str, several: list[Words]) -> tuple[dict[str, Emitted], list[tuple[str, str]]]:
    """The same, and what else was named by mistakes that speak of other words, too."""
    found: dict[str, Emitted] = {}
    doubtful: list[tuple[str, str]] = []
    left = deque(several)
    while left:
        group = left.popleft()
        outcome = compiled(template, group)
        if isinstance(outcome, Emitted):
            found[f"{template}, {group}"] = outcome
        elif len(group) > 1:
            blamed, settled = _blamed(outcome, group)
            doubtful.extend(blamed.items() - settled.items())
            rest = {place: word for place, word in group.items() if place not in blamed}
            left.extend([rest] if rest else [])
    return found, sorted(doubtful)


def groups(among: Mapping[str, list[str]]) -> list[Words]:
    """Every word of a place's at that place, the words of a group all different.

    A word that holds a place's usual word is not tried there, where nothing else holds it.  Words
    that are refused whatever the others are have their own groups.
    """
    every = list(_interleaved(among))
    hopeless = [pair for pair in every if _is_hopeless(*pair)]
    return packed(hopeless) + packed([pair for pair in every if not _is_hopeless(*pair)])


def _is_hopeless(place: str, word: str) -> bool:
    return language_word(word) is not None or (place in LETTERS and word != word.lower())


def packed(pairs: Iterable[tuple[str, str]]) -> list[Words]:
    """The words at their places, in groups that hide nothing."""
    found: list[Words] = []
    for place, word in pairs:
        group = next((g for g in found[-LOOK:] if _has_room(g, place, word)), None)
        if group is None:
            found.append({place: word})
        else:
            group[place] = word
    return found


def _interleaved(among: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    """The places and words, ordered so that few groups take them."""
    words = sorted({word for some in among.values() for word in some})
    there = {place: {*some} for place, some in among.items()}
    for kind in sorted({tuple(sorted(held(word))) for word in words}):
        same_kind = [word for word in words if tuple(sorted(held(word))) == kind]
        free = [place for place in among if place not in kind]
        step = max(1, len(same_kind) // len(free))
        for number in range(len(same_kind)):
            for shift, place in enumerate(free):
                word = same_kind[(number + shift * step) % len(same_kind)]
                if word in there[place]:
                    yield place, word


def _has_room(group: Words, place: str, word: str) -> bool:
    """Can the word join a group, so that neither hides the other?"""
    if place in group or word in group.values() or held(word) & group.keys():
        return False
    return not any(place in held(other) for other in group.values())


@cache
def held(word: str) -> frozenset[str]:
    """The places whose usual words are in ``word``."""
    return frozenset(place for place, usual in USUAL.items() if usual.lower() in word.lower())


def _blamed(error: ScheduleError, group: Words) -> tuple[Words, Words]:
    """The words that the mistakes name, all where they name none; and those of them that are
    refused whatever the others are, as their mistakes speak of no other word."""
    named: dict[str, bool] = {}
    for mistake in error.mistakes:
        spoken = identifiers(mistake.message)
        for word in spoken & set(group.values()):
            others = {*group.values(), *USUAL.values()} - {word}
            place = mistake.span and error.source.text[mistake.span.start : mistake.span.end]
            named[word] = named.get(word, False) or (place == word and not spoken & others)
    blamed = {place: word for place, word in group.items() if word in named}
    return blamed or group, {place: word for place, word in blamed.items() if named[word]}
