"""A schedule of examples/, or a variant of it, its program and its kernel."""

from __future__ import annotations

import functools
from pathlib import Path

from gemmgen.base.source import Source
from gemmgen.ir.text import print_ir
from gemmgen.pipeline import Emitted, compile_source, rewrite
from gemmgen_docs.markdown import difference, fence, folded
from gemmgen_docs.translation import ENGLISH, said

EXAMPLES = Path(__file__).parents[2] / "examples"
BEGIN, END = "// ---- kernel ----\n", "// ---- end of kernel ----"


def text(name: str) -> str:
    """The file of an example."""
    return (EXAMPLES / f"{name}.sched").read_text(encoding="utf-8")


@functools.cache
def emitted(written: str) -> Emitted:
    """The kernel of a schedule's text."""
    return compile_source(Source(written, "my.sched"))


@functools.cache
def program(written: str) -> str:
    """The declared program after the last pass."""
    return print_ir(rewrite(emitted(written).schedule)[-1].program)


def kernel(written: str) -> str:
    """The emitted text between its marks."""
    _, _, rest = emitted(written).text.partition(BEGIN)
    return rest.partition(END)[0].strip() + "\n"


def statements(written: str) -> list[str]:
    """The statements of a schedule."""
    return [line for line in written.splitlines() if line and not line.startswith("#")]


def directive(statement: str) -> str:
    """The first word of a statement."""
    return statement.split()[0]


def without(written: str, *names: str) -> str:
    """A schedule without the statements ``names``, which it must have."""
    lines = statements(written)
    missing = set(names) - {directive(line) for line in lines}
    assert not missing, f"no {missing} in:\n{written}"
    return "".join(f"{line}\n" for line in lines if directive(line) not in names)


def schedule(name: str) -> str:
    """The file as a block of code."""
    return fence(text(name), "sched", f"examples/{name}.sched")


def cuda(name: str, lang: str = ENGLISH) -> str:
    """The whole emitted file, folded."""
    return folded(said("The whole file, as emitted", lang), fence(emitted(text(name)).text, "cuda"))


def replaced(name: str, statement: str) -> str:
    """An example's statements, ``statement`` in the place of its own of that directive; at the end
    if it has none.  Several lines are as many statements."""
    lines = statements(text(name))
    for one in statement.splitlines():
        word = directive(one)
        written = one.replace(word, f"{word:<15}", 1)
        found = [written if directive(line) == word else line for line in lines]
        lines = found if found != lines else [*lines, written]
    return "".join(f"{line}\n" for line in lines)


def variant(name: str, statement: str) -> str:
    """The changes of an example's text by ``statement``, which replaces the example's own of that
    directive if it has one."""
    changes = difference(kernel(text(name)), kernel(replaced(name, statement)), 2)
    return f"`examples/{name}.sched` with\n\n{fence(statement, 'sched')}\n{changes}"
