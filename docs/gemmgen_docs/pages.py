"""Pages as Jinja templates: the functions that they may call."""

from __future__ import annotations

from jinja2 import Environment, StrictUndefined

from gemmgen_docs import (
    commands,
    cublas,
    documents,
    drawings,
    fusion,
    ladder,
    language,
    schedules,
    uses,
)

FUNCTIONS = {
    "beyond_table": ladder.beyond_table,
    "changes": ladder.changes,
    "combinations": language.combinations,
    "command_line": commands.command_line,
    "cublas_about": cublas.about,
    "cublas_grid": cublas.grid,
    "cublas_listed": cublas.listed,
    "cublas_orders": cublas.orders,
    "cublas_others": cublas.others,
    "cublas_parts": cublas.parts,
    "cublas_short": cublas.short,
    "cuda": schedules.cuda,
    "directives": language.directives,
    "documents": documents.tables,
    "drawing": drawings.drawing,
    "epilogue_functions": language.epilogue_functions,
    "fusion": fusion.fusion,
    "helper": uses.helper,
    "ladder_table": ladder.table,
    "layers": language.layers,
    "limits": ladder.limits,
    "output": commands.output,
    "passes": language.passes,
    "quantities": language.quantities,
    "rung": ladder.rung,
    "schedule": schedules.schedule,
    "statements": language.statements,
    "targets": language.targets,
    "times": ladder.times,
    "use": uses.use,
    "variant": schedules.variant,
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
