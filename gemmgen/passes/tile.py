"""tile: specification; the rewrite follows."""

from __future__ import annotations

from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec

SPEC = DirectiveSpec(
    "tile",
    arguments=(
        ArgumentSpec("<m>", required=True, maximum=4096),
        ArgumentSpec("<n>", required=True, maximum=4096),
        ArgumentSpec("<k>", maximum=4096),
    ),
)
