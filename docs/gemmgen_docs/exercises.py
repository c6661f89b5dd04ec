"""Answers of exercises: what a command prints of an example with one statement changed."""

from __future__ import annotations

from gemmgen_docs import commands, schedules
from gemmgen_docs.compared import stem
from gemmgen_docs.markdown import difference, fence

MINE = "mine.sched"
_SAME = "  (the same:"
_WHOLE = 100
"""Lines of context: all of a schedule."""


def answer(
    name: str, statement: str, command: str, *holds: str, parts: tuple[str, ...] = ()
) -> str:
    """An example with ``statement`` in place of its own of that directive, and what ``command``
    prints of it, which has each text of ``holds``: what the page concludes from it.

    The command names the example's file and ``mine.sched``.  Of what it prints the paragraphs are
    shown that begin with ``parts``; all if there are none.
    """
    changed = schedules.replaced(name, statement)
    files = ((f"{stem(name)}.sched", schedules.text(name)), (MINE, changed))
    ran = commands.run(command, files)
    said = ran.out + ran.err
    words = " ".join(said.split())
    for held in holds:
        assert held in words, f"{command} of {name} with {statement} lacks {held!r}:\n{said}"
    shown = [p for p in _paragraphs(said) if not parts or p.startswith(parts)]
    assert shown, f"{command} prints none of {parts}:\n{said}"
    before = "\n".join(schedules.statements(schedules.text(name)))
    printed = "\n\n".join([f"$ {command}", *shown])
    return f"{difference(before, changed, _WHOLE)}\n{fence(printed, 'console')}"


def _paragraphs(said: str) -> list[str]:
    """Runs of lines between empty ones, without what a comparison finds unchanged."""
    lines = (line for line in said.splitlines() if not line.startswith(_SAME))
    return [part.strip("\n") for part in "\n".join(lines).split("\n\n")]
