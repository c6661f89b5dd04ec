"""What the page's worker asks for: texts in, JSON out.

Every answer is an object.  If a schedule or a shape is wrong, it has ``report``: what the command
line prints.  Nothing here needs NumPy, a compiler or a GPU.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from gemmgen.analyze.analyzed_kernel import AnalyzedKernel
from gemmgen.analyze.trace import Compilation, trace
from gemmgen.base.errors import GemmgenError
from gemmgen.base.source import Source
from gemmgen.gpu.gpus import DEFAULT, GPUS
from gemmgen.schedule import examples

NAME = "schedule.sched"
"""The name of the text in reports."""

COMPILED = ("registers",)
"""Drawings that need a compiler."""

Answer = dict[str, Any]


@lru_cache(maxsize=4)
def traced(text: str) -> Compilation:
    """The trace of a text; that of the latest texts is kept for drawings and counts."""
    return trace(Source(text, NAME).cleaned())


def kernel_of(text: str) -> AnalyzedKernel:
    """The kernel of a text; raises ``GemmgenError`` with the report if it has none."""
    found = traced(text)
    if found.kernel is None:
        raise GemmgenError(found.report)
    return found.kernel


def compiled(text: str) -> Answer:
    """The CUDA text, the changes of the passes, and the mistakes with their places."""
    found = traced(text)
    return {
        "cuda": found.kernel.emitted.text if found.kernel else None,
        "changes": [[c.directive, c.text] for c in found.changes],
        "mistakes": [
            {"line": m.line, "column": m.column, "length": m.length, "message": m.message}
            for m in found.mistakes
        ],
        "report": found.report,
    }


def drawn(text: str, kind: str) -> Answer:
    """The drawing of ``gemmgen draw --what KIND``, as SVG."""
    from gemmgen.draw.kinds import draw_scene
    from gemmgen.draw.scene import Scene
    from gemmgen.draw.svg import svg_of

    return {"svg": svg_of(draw_scene(kind, Scene(kernel_of(text), None, GPUS[DEFAULT])))}


def counted(text: str, shape: str) -> Answer:
    """The tables of ``gemmgen explain --shape SHAPE --no-next``, without other pads."""
    from gemmgen.analyze.plain_text import plain
    from gemmgen.analyze.tables import report
    from gemmgen_playground.puzzles import explained

    found = explained(kernel_of(text).emitted.schedule, shape)
    return {"text": "\n".join(plain(section) for section in report(found) if section.rows)}


def kinds() -> Answer:
    """The kinds of drawings, and what each shows; without those of machine code, and without the
    plots that need matplotlib."""
    from gemmgen.draw.kinds import KINDS

    left_out = {*COMPILED, "roofline", "error"}
    return {"kinds": {kind: about for kind, about in KINDS.items() if kind not in left_out}}


def starts() -> Answer:
    """The examples: their names, first sentences and texts."""
    found = [
        {"name": name, "about": examples.about(name), "text": _text(name)}
        for name in examples.names()
        if not name.startswith("spaces/")
    ]
    return {"examples": found}


def _text(name: str) -> str:
    return examples.path_of(name).read_text(encoding="utf-8")


def tasks() -> Answer:
    """The puzzles, without their solutions."""
    from gemmgen_playground import puzzles

    return {
        "puzzles": [
            {
                "name": p.name,
                "title": p.title,
                "text": p.text,
                "start": p.start,
                "shape": p.shape,
                "goals": [goal.text for goal in p.goals],
            }
            for p in puzzles.all_of_them()
        ]
    }


def graded(name: str, text: str) -> Answer:
    """Whether a text solves the puzzle of this name: each goal, what is wanted and what it has."""
    from gemmgen_playground import puzzles

    goals = puzzles.grade(puzzles.named(name), kernel_of(text))
    return {
        "passed": all(goal.passed for goal in goals),
        "goals": [{"text": g.text, "found": g.found, "passed": g.passed} for g in goals],
    }


ANSWERS: dict[str, Callable[..., Answer]] = {
    function.__name__: function
    for function in (compiled, drawn, counted, kinds, starts, tasks, graded)
}


def answer(question: str) -> str:
    """The answer to a question, both in JSON: a name in ``ANSWERS``, then its arguments."""
    name, *arguments = json.loads(question)
    try:
        return json.dumps(ANSWERS[name](*arguments))
    except GemmgenError as error:
        return json.dumps({"report": str(error)})
