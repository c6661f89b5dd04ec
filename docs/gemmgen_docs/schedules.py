"""A schedule of examples/, and what becomes of it."""

from __future__ import annotations

import functools
from pathlib import Path

from gemmgen.ir.text import print_program
from gemmgen.pipeline import Emitted, compile_source, rewrite
from gemmgen.source import Source
from gemmgen_docs.markdown import fence, folded

EXAMPLES = Path(__file__).parents[2] / "examples"
BEGIN, END = "// ---- kernel ----\n", "// ---- end of kernel ----"


def text(name: str) -> str:
    """The file of an example."""
    return (EXAMPLES / f"{name}.sched").read_text(encoding="utf-8")


@functools.cache
def emitted(name: str) -> Emitted:
    return compile_source(Source(text(name), f"{name}.sched"))


def program(name: str) -> str:
    """The declared program after the last pass."""
    return print_program(rewrite(emitted(name).schedule)[-1].program)


def kernel(name: str) -> str:
    """The emitted text between its marks."""
    _, _, rest = emitted(name).text.partition(BEGIN)
    return rest.partition(END)[0].strip() + "\n"


def schedule(name: str) -> str:
    """The file as a block of code."""
    return fence(text(name), "sched", f"examples/{name}.sched")


def cuda(name: str) -> str:
    """The whole emitted file, folded."""
    return folded("The whole file, as emitted", fence(emitted(name).text, "cuda"))
