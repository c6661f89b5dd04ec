"""``gemmgen help``: the statements of the schedule language."""

from __future__ import annotations

import sys

import click

from gemmgen.base.errors import UsageError
from gemmgen.base.source import shown
from gemmgen.cli.files import put
from gemmgen.cli.group import COMMANDS
from gemmgen.cli.help_statements import DETAILS
from gemmgen.language import VOCABULARY
from gemmgen.passes.fuse_epilogue import FuseEpilogue
from gemmgen.passes.ladder import LADDER
from gemmgen.schedule.words import HEADS, LATER


@click.command("help")
@click.argument("directive", required=False)
def command(directive: str | None) -> None:
    """Explain DIRECTIVE, with the program before and after it; without one, list them all."""
    if directive is None:
        put(_table())
    elif directive in (docs := _docstrings()):
        put(_written(docs[directive].strip(), directive))
    elif directive in HEADS:
        summary = f"{directive}: {HEADS[directive].summary}"
        put(_written("\n\n".join([summary, *_details(directive)]), directive))
    elif directive in COMMANDS:
        put(_usage(directive))
    else:
        hint = LATER[directive].hint if directive in LATER else VOCABULARY.meant(directive)
        hint = hint or f"there are {', '.join((*docs, *HEADS))}"
        raise UsageError(f"there is no directive {shown(directive)}; {hint}")


def _written(text: str, word: str) -> str:
    return f"{text}\n\nwritten:  {VOCABULARY.example(word)}\n"


def _details(word: str) -> tuple[str, ...]:
    return (DETAILS[word],) if word in DETAILS else ()


def _docstrings() -> dict[str, str]:
    """Each directive's docstring, in the order of the passes."""
    rungs = {rung.SPEC.name: rung.__module__ for rung in (*LADDER, FuseEpilogue)}
    return {name: sys.modules[module].__doc__ or name for name, module in rungs.items()}


def _table() -> str:
    rows = [(name, _first_line(name, text)) for name, text in _docstrings().items()]
    heads = [(name, head.summary) for name, head in HEADS.items()]
    width = max(len(name) for name, _ in (*rows, *heads))
    lines = ["directives, in the order of the passes:"]
    lines += [f"  {name:<{width}}  {line}" for name, line in rows]
    lines += ["", "statements that come before them:"]
    lines += [f"  {name:<{width}}  {line}" for name, line in heads]
    lines += ["", "gemmgen help DIRECTIVE explains one.", ""]
    return "\n".join(lines)


def _first_line(name: str, docstring: str) -> str:
    return docstring.strip().splitlines()[0].removeprefix(f"{name}: ").rstrip(".")


def _usage(name: str) -> str:
    """The output of ``gemmgen NAME --help``."""
    group = click.get_current_context().parent
    assert group is not None and isinstance(group.command, click.Group)
    found = group.command.get_command(group, name)
    assert found is not None
    with click.Context(found, parent=group, info_name=name) as context:
        return found.get_help(context) + "\n"
