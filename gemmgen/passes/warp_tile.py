"""warp_tile: specification; the rewrite follows."""

from __future__ import annotations

from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec

SPEC = DirectiveSpec(
    "warp_tile",
    arguments=(
        ArgumentSpec("<m>", required=True, maximum=1024),
        ArgumentSpec("<n>", required=True, maximum=1024),
    ),
)
