"""Pages as Jinja templates: the functions that they may call."""

from __future__ import annotations

from jinja2 import Environment, StrictUndefined

from gemmgen_docs import commands, documents, ladder, language, schedules, uses

FUNCTIONS = {
    "combinations": language.combinations,
    "command_line": commands.command_line,
    "cuda": schedules.cuda,
    "directives": language.directives,
    "documents": documents.tables,
    "epilogue_functions": language.epilogue_functions,
    "helper": uses.helper,
    "ladder_table": ladder.table,
    "layers": language.layers,
    "output": commands.output,
    "passes": language.passes,
    "quantities": language.quantities,
    "rung": ladder.rung,
    "schedule": schedules.schedule,
    "statements": language.statements,
    "targets": language.targets,
    "use": uses.use,
}


def render(markdown: str) -> str:
    """``markdown`` with its calls replaced; an unknown name is an error."""
    environment = Environment(
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
        comment_start_string="{##",
        comment_end_string="##}",
    )
    return environment.from_string(markdown).render(FUNCTIONS)
