"""The results of mutants: counted for each kernel, and as a table in a document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gemmgen.base.errors import UsageError
from gemmgen.base.record import record

from .allowed import Allowed
from .mutants import Mutant

BEGIN, END = "<!-- mutants -->", "<!-- /mutants -->"
_HEAD = ("kernel", "mutants", "caught", "equivalent", "survivors")


@record
class Tried:
    """A mutant of the kernel ``name``; ``found`` says how it was detected, None that it wasn't.

    ``same``: it compiles to the same machine code, as if two constants have one value.
    """

    name: str
    mutant: Mutant
    found: str | None
    same: bool


@record
class MutantTally:
    """How many mutants of a kernel were tried, detected and argued to be equivalent."""

    name: str
    tried: int
    caught: int
    equivalent: int

    @property
    def survivors(self) -> int:
        return self.tried - self.caught - self.equivalent


def is_equivalent(tried: Tried, allowed: Sequence[Allowed]) -> bool:
    """Whether a mutant that was not detected has the same machine code, or is argued to be no
    mistake."""
    argued = any(entry.covers(tried.name, tried.mutant) for entry in allowed)
    return tried.found is None and (tried.same or argued)


def tallies(tried: Sequence[Tried], allowed: Sequence[Allowed]) -> tuple[MutantTally, ...]:
    """One for each kernel in the order of their names, and one for all."""
    kernels = [[each for each in tried if each.name == name] for name in sorted(_names(tried))]
    found = tuple(_tally(each[0].name, each, allowed) for each in kernels)
    return (*found, _tally("all", tried, allowed))


def _names(tried: Sequence[Tried]) -> set[str]:
    return {each.name for each in tried}


def _tally(name: str, tried: Sequence[Tried], allowed: Sequence[Allowed]) -> MutantTally:
    caught = sum(each.found is not None for each in tried)
    return MutantTally(
        name, len(tried), caught, sum(is_equivalent(each, allowed) for each in tried)
    )


def table(rows: Sequence[MutantTally]) -> str:
    """The table in Markdown."""
    cells = [[r.name, r.tried, r.caught, r.equivalent, r.survivors] for r in rows]
    lines = [_HEAD, ("---", *("---:" for _ in _HEAD[1:])), *cells]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def write_table(path: Path, rows: Sequence[MutantTally]) -> None:
    """Replaces the text between the two marks of a document."""
    text = path.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise UsageError(f"{path} has no marks for the table between {BEGIN} and {END}")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    path.write_text(f"{before}{BEGIN}\n{table(rows)}{END}{after}", encoding="utf-8")
