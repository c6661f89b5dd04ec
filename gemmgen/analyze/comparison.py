"""What changes from one schedule to another: its statements, its text, its figures."""

from __future__ import annotations

from gemmgen.analyze.explain import Explanation
from gemmgen.analyze.figures import as_figures
from gemmgen.base.record import record
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule

ABSENT = "-"


@record
class Change:
    """Something called ``name``: as it was and as it is; ``ABSENT`` if it is not."""

    name: str
    before: str
    after: str


def statements_changed(before: Schedule, after: Schedule) -> tuple[Change, ...]:
    """Statements of the canonical texts that only one of them has, or that differ: in ladder
    order."""
    old, new = _statements(before), _statements(after)
    names = [*old, *(name for name in new if name not in old)]
    changes = (Change(n, old.get(n, ABSENT), new.get(n, ABSENT)) for n in names)
    return tuple(c for c in changes if c.before != c.after)


def _statements(schedule: Schedule) -> dict[str, str]:
    """Each statement by its first word; of the same word all together."""
    found: dict[str, str] = {}
    for line in format_schedule(schedule).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word:
            entry = f"{word} {' '.join(rest.split())}".strip()
            found[word] = f"{found[word]}; {entry}" if word in found else entry
    return found


def figures_changed(before: Explanation, after: Explanation) -> tuple[Change, ...]:
    """All of the figures, those too that stay the same."""
    old, new = as_figures(before), as_figures(after)
    names = [*old, *(name for name in new if name not in old)]
    return tuple(Change(n, old.get(n, ABSENT), new.get(n, ABSENT)) for n in names)
