"""vectorize: specification; the rewrite follows."""

from __future__ import annotations

from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec

SPEC = DirectiveSpec(
    "vectorize",
    operands=("a", "b", "c"),
    hops=(("a", ("global", "shared")), ("b", ("global", "shared")), ("c", ("global",))),
    arguments=(ArgumentSpec("width", required=True, maximum=16, identity=1),),
)
