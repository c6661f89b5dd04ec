"""raster: specification; the rewrite follows."""

from __future__ import annotations

from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec

SPEC = DirectiveSpec(
    "raster", arguments=(ArgumentSpec("group", maximum=1024, required=True, identity=1),)
)
