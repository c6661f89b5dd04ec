"""pad: specification; the rewrite follows."""

from __future__ import annotations

from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec

SPEC = DirectiveSpec(
    "pad",
    operands=("a", "b"),
    arguments=(ArgumentSpec("by", minimum=0, maximum=1024, required=True, identity=0),),
)
