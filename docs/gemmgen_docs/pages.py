"""Pages as Jinja templates: the functions that they may call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial

from jinja2 import Environment, StrictUndefined

from gemmgen_docs import (
    commands,
    cublas,
    documents,
    drawings,
    exercises,
    fusion,
    gain,
    groups,
    ladder,
    language,
    notebooks,
    orders,
    profiled,
    quoted,
    records,
    schedules,
    steps,
    teaching,
    tma_shares,
    translation,
    uses,
)
from gemmgen_docs.translation import ENGLISH

FUNCTIONS: Mapping[str, Callable[..., str]] = {
    "accumulation": teaching.accumulation,
    "answer": exercises.answer,
    "beyond_table": ladder.beyond_table,
    "changes": ladder.changes,
    "combinations": language.combinations,
    "command_line": commands.command_line,
    "tma_fastest": tma_shares.fastest,
    "tma_share": tma_shares.share,
    "cublas_about": cublas.about,
    "cublas_grid": cublas.grid,
    "cublas_listed": cublas.listed,
    "cublas_orders": cublas.orders,
    "cublas_others": cublas.others,
    "cublas_parts": cublas.parts,
    "cublas_short": cublas.short,
    "tensor_cores": cublas.tensor_cores,
    "cublas_wmma": cublas.wmma,
    "cuda": schedules.cuda,
    "cuts": teaching.cuts,
    "directives": language.directives,
    "documents": documents.tables,
    "documents_figures": quoted.documents_figures,
    "drawing": drawings.drawing,
    "epilogue_functions": language.epilogue_functions,
    "fusion": fusion.fusion,
    "gain": gain.gain,
    "helper": uses.helper,
    "hopper_table": ladder.hopper_table,
    "ladder_table": ladder.table,
    "latencies": teaching.latencies,
    "layers": language.layers,
    "facts": language.facts,
    "limits": ladder.limits,
    "memory_latencies": teaching.memory,
    "micro_tile": teaching.micro_tile,
    "naive_rates": ladder.naive_rates,
    "most": language.most,
    "decisions": records.decisions,
    "root_page": records.root_page,
    "speeds": records.speeds,
    "notebook": notebooks.notebook,
    "ncu_about": profiled.about,
    "ncu_command": profiled.command,
    "ncu_metrics": profiled.metrics,
    "ncu_shape": profiled.shape,
    "ncu_versions": profiled.versions,
    "order_before_the_last": orders.before_the_last,
    "order_pairs": orders.pairs,
    "order_rungs": orders.rungs,
    "order_table": orders.side_by_side,
    "output": commands.output,
    "passes": language.passes,
    "plot": drawings.plot,
    "quantities": language.quantities,
    "row_times_column": teaching.row_times_column,
    "rung": ladder.rung,
    "schedule": schedules.schedule,
    "sizes_counted": partial(groups.counted, groups.SIZES),
    "sizes_timed": partial(groups.timed, groups.SIZES),
    "statements": language.statements,
    "sum_by_hand": teaching.sum_by_hand,
    "steps_command": steps.command,
    "steps_table": steps.steps_table,
    "taken": steps.taken,
    "step": ladder.step,
    "targets": language.targets,
    "times": ladder.times,
    "use": uses.use,
    "variant": schedules.variant,
    "versions_counted": partial(groups.counted, groups.VERSIONS),
    "versions_timed": partial(groups.timed, groups.VERSIONS),
}


NEUTRAL = ("answer", "output", "schedule", "sum_by_hand")
"""Functions that give code alone, the same in each language."""


def functions(lang: str) -> Mapping[str, Callable[..., str]]:
    """What a page in ``lang`` may call: all, or what says its sentences in ``lang``."""
    if lang == ENGLISH:
        return FUNCTIONS
    known = {
        name: partial(function, lang=lang)
        for name, function in FUNCTIONS.items()
        if "lang" in inspect.signature(function).parameters
    }
    return {**known, **{name: FUNCTIONS[name] for name in NEUTRAL}}


def render(markdown: str, lang: str = ENGLISH) -> str:
    """``markdown`` with its calls replaced; an unknown name is an error, and so is a sentence that
    has no translation."""
    environment = Environment(
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
        comment_start_string="{##",
        comment_end_string="##}",
    )
    return environment.from_string(translation.joined(markdown, lang)).render(functions(lang))
