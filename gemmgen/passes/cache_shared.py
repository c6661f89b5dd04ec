"""cache_shared: specification; the rewrite follows."""

from __future__ import annotations

from gemmgen.schedule.spec import DirectiveSpec

SPEC = DirectiveSpec("cache_shared", operands=("a", "b"), layout=True)
