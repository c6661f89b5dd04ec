"""Sets: ``tile m={64, 128}`` and ``let t = {64, 128}``, their keys, and the values chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gemmgen.base.errors import Mistake, Mistakes, Refusal
from gemmgen.base.record import record
from gemmgen.base.source import Source, Span, shown
from gemmgen.schedule.model import Choice
from gemmgen.schedule.raw import RawDirective, RawSet, Word
from gemmgen.schedule.words import close

_MOST_SHOWN = 12

Settings = tuple[tuple[str, int | str], ...]


@record
class Let:
    """``let name = value``."""

    name: Word
    value: Word | RawSet
    span: Span


@record
class Knob:
    """A set that a search, or ``--set key=value``, fixes.  ``label`` is its name in messages."""

    key: str
    label: str
    items: tuple[Word, ...]
    span: Span

    @property
    def text(self) -> str:
        texts = [shown(item.text) for item in self.items]
        if len(texts) > _MOST_SHOWN:
            texts[_MOST_SHOWN - 1 : -1] = ["..."]
        return "{" + ", ".join(texts) + "}"

    @property
    def choice(self) -> Choice:
        """The values, as integers if they are."""
        texts = (item.text for item in self.items)
        return Choice(tuple(int(t) if t.isdecimal() and len(t) < 19 else t for t in texts))


def find_knobs(lets: list[Let], directives: list[RawDirective]) -> tuple[Knob, ...]:
    """A file's sets in its order.

    A key is ``directive.argument``; if several statements of one directive have a set for the
    argument, the key includes the first operand: ``vectorize.A.width``.
    """
    knobs = [
        Knob(let.name.text, f"let {let.name.text}", let.value.items, let.value.span)
        for let in lets
        if isinstance(let.value, RawSet)
    ]
    found = [
        (d, a, a.value) for d in directives for a in d.arguments if isinstance(a.value, RawSet)
    ]
    times = Counter((d.word.text, a.name.text) for d, a, _ in found)
    for directive, argument, value in found:
        word, name = directive.word.text, argument.name.text
        several = times[word, name] > 1 and directive.operands
        parts = [word, directive.operands[0].text, name] if several else [word, name]
        knobs.append(Knob(".".join(parts), " ".join(parts), value.items, value.span))
    return tuple(sorted(knobs, key=lambda knob: knob.span.start))


class Values:
    """The possible values of arguments, and the chosen ones."""

    def __init__(self, source: Source, lets: list[Let], chosen: dict[Span, Word]):
        self._source = source
        self._lets = {let.name.text: let for let in lets}
        self._chosen = chosen
        self.used: set[str] = set()

    def candidates(self, value: Word | RawSet) -> tuple[Word, ...]:
        """Every possible value of ``value``."""
        there, _ = self._resolved(value)
        return there.items if isinstance(there, RawSet) else (there,)

    def chosen(self, value: Word | RawSet) -> str:
        """The chosen value; of an open set the first, whose mistake is recorded elsewhere."""
        there, _ = self._resolved(value)
        if isinstance(there, RawSet):
            return self._chosen.get(there.span, there.items[0]).text
        return there.text

    def origin(self, value: Word | RawSet) -> tuple[str, ...]:
        """A note with the line of the ``let`` that gives the value."""
        _, let = self._resolved(value)
        if let is None:
            return ()
        line, _ = self._source.position(let.span.start)
        return (f"let {let.name.text} on line {line} gives the value",)

    def _resolved(self, value: Word | RawSet) -> tuple[Word | RawSet, Let | None]:
        if isinstance(value, Word) and value.text in self._lets:
            self.used.add(value.text)
            let = self._lets[value.text]
            return let.value, let
        return value, None


def choose(
    knobs: tuple[Knob, ...],
    settings: Settings,
    mistakes: Mistakes,
    fixed: bool = True,
    others: Sequence[str] = (),
) -> dict[Span, Word]:
    """The chosen item of each set, by the set's span; records the sets that ``settings`` leave
    open, and keys that are neither of a set nor among the ``others``."""
    wanted = {key: str(value) for key, value in settings}
    chosen: dict[Span, Word] = {}
    for key in wanted.keys() - {knob.key for knob in knobs}:
        mistakes.append(_unknown_key(key, wanted[key], [*(knob.key for knob in knobs), *others]))
    for knob in knobs:
        with mistakes.caught():
            _check_items(knob)
            if knob.key in wanted:
                chosen[knob.span] = _item(knob, wanted[knob.key])
            elif fixed:
                raise _open(knob)
    return chosen


def _check_items(knob: Knob) -> None:
    if not knob.items:
        raise Refusal("a set has at least one value", at=knob.span, hint="{64, 128}, or 64 alone")
    seen: set[str] = set()
    for item in knob.items:
        if item.text in seen:
            raise Refusal(
                f"{shown(item.text)} occurs twice in the set", at=item.span, hint="once is enough"
            )
        seen.add(item.text)


def _item(knob: Knob, wanted: str) -> Word:
    for item in knob.items:
        if item.text == wanted:
            return item
    raise Refusal(
        f"--set {knob.key}={shown(wanted)}: the set has no such value",
        at=knob.span,
        hint=f"one of {knob.text}",
    )


def _open(knob: Knob) -> Refusal:
    first = shown(knob.items[0].text)
    return Refusal(
        f"{knob.label} is a set {knob.text}: choose one with --set {knob.key}={first}",
        at=knob.span,
        hint=f"--set {knob.key}={first}, or write {first} in place of the set",
    )


def _unknown_key(key: str, value: str, keys: list[str]) -> Mistake:
    near = close(key, keys)
    hint = f"did you mean --set {near}={shown(value)}? " if near else ""
    known = f"the keys of this file are {', '.join(keys)}" if keys else "this file has no argument"
    message = f"--set {shown(key)}={shown(value)}: no argument of this file has that key"
    return Mistake(message, None, hint + known)


def check_lets(lets: list[Let], used: set[str], kept: dict[str, str], mistakes: Mistakes) -> None:
    """Checks that each ``let`` has a distinct name and is used; ``kept`` are names with another
    meaning."""
    seen: dict[str, Let] = {}
    for let in lets:
        name = shown(let.name.text)
        first = seen.setdefault(let.name.text, let)
        if first is not let:
            line, _ = mistakes.source.position(first.span.start)
            message, hint = f"let {name} is given twice", "two things need two names"
            notes = (f"first given on line {line}",)
        elif let.name.text in kept:
            message = f"`{name}` can't be a let's name: it is {kept[let.name.text]}"
            hint, notes = "any other name will do", ()
        elif let.name.text not in used:
            message = f"let {name} is never used"
            hint, notes = f"use it, as in `tile m={name}`, or leave it out", ()
        else:
            continue
        mistakes.append(Mistake(message, let.name.span, hint, notes))
