"""register_block: specification; the rewrite follows."""

from __future__ import annotations

from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec

SPEC = DirectiveSpec(
    "register_block",
    arguments=(
        ArgumentSpec("<m>", required=True, maximum=64),
        ArgumentSpec("<n>", required=True, maximum=64),
        ArgumentSpec("interleave", maximum=64),
        ArgumentSpec(
            "order", "word", choices=("rows", "serpentine", "zigzag"), default="rows", identity="rows"
        ),
    ),
)
