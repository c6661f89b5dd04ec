"""``gemmgen help``: the statements of the schedule language."""

from __future__ import annotations

import sys

import click

from gemmgen.base.errors import UsageError
from gemmgen.base.source import shown
from gemmgen.cli.files import put
from gemmgen.cli.group import COMMANDS
from gemmgen.passes.fuse_epilogue import FuseEpilogue
from gemmgen.passes.ladder import LADDER
from gemmgen.schedule.words import EPILOGUE, EXAMPLES, LATER, statement_meant

HEADS = {
    "gemm": "what is computed, in index notation; index order is storage order, last contiguous",
    "kernel": "the kernel's name; gemm where it is left out",
    "dtype": "element types: f32 where they are left out, f16, bf16, or f64 (all or nothing)",
    "target": "the oldest architecture that must run it; sm_80 where it is left out",
    "assume": "a fact about the arguments, checked at launch: it removes guards and parameters",
    "require": "a bound on shared memory (bytes or KiB), threads, registers or spills",
    "let": "a name for a value or a set that stands in several places",
}
"""The statements that are no directive; what they say in a line."""


@click.command("help")
@click.argument("directive", required=False)
def command(directive: str | None) -> None:
    """Explain DIRECTIVE, with the program before and after it; without one, list them all."""
    if directive is None:
        put(_table())
    elif directive in (docs := _docstrings()):
        put(f"{docs[directive].strip()}\n\nwritten:  {EXAMPLES[directive]}\n")
    elif directive in HEADS:
        put(f"{directive}: {HEADS[directive]}\n\nwritten:  {EXAMPLES[directive]}\n")
    elif directive in COMMANDS:
        put(_usage(directive))
    else:
        known = (*docs, *HEADS)
        hint = LATER.get(directive) or statement_meant(directive, known)
        told = hint or f"there are {', '.join(known)}"
        raise UsageError(f"there is no directive {shown(directive)}; {told}")


def _docstrings() -> dict[str, str]:
    """Each directive's docstring, in ladder order."""
    rungs = {rung.SPEC.name: rung.__module__ for rung in LADDER}
    rungs[EPILOGUE] = FuseEpilogue.__module__
    return {name: sys.modules[module].__doc__ or name for name, module in rungs.items()}


def _table() -> str:
    rows = [(name, _first_line(name, text)) for name, text in _docstrings().items()]
    width = max(len(name) for name, _ in (*rows, *HEADS.items()))
    lines = ["directives, in ladder order:"]
    lines += [f"  {name:<{width}}  {line}" for name, line in rows]
    lines += ["", "statements that stand before them:"]
    lines += [f"  {name:<{width}}  {line}" for name, line in HEADS.items()]
    lines += ["", "gemmgen help DIRECTIVE tells more.", ""]
    return "\n".join(lines)


def _first_line(name: str, docstring: str) -> str:
    return docstring.strip().splitlines()[0].removeprefix(f"{name}: ").rstrip(".")


def _usage(name: str) -> str:
    """What ``gemmgen NAME --help`` prints."""
    group = click.get_current_context().parent
    assert group is not None and isinstance(group.command, click.Group)
    found = group.command.get_command(group, name)
    assert found is not None
    with click.Context(found, parent=group, info_name=name) as context:
        return found.get_help(context) + "\n"
