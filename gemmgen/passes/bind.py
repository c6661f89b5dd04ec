"""bind: specification; the rewrite follows."""

from __future__ import annotations

from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec

SPEC = DirectiveSpec(
    "bind",
    arguments=(
        ArgumentSpec("x", "word", choices=("<m>", "<n>"), required=True),
        ArgumentSpec("y", "word", choices=("<m>", "<n>")),
    ),
)
