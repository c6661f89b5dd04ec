"""double_buffer: specification; the rewrite follows."""

from __future__ import annotations

from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec

SPEC = DirectiveSpec(
    "double_buffer",
    operands=("a", "b"),
    hops=(("a", ("shared", "register")), ("b", ("shared", "register"))),
    bare="shared",
    arguments=(ArgumentSpec("stages", maximum=16, default=2, identity=1),),
)
