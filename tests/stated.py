"""What tests expect of examples and cannot derive: ``examples.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
KEYS = {"formula": str, "spills": int, "lines": int, "unmeasured": str, "miscounted": str}
EXAMPLES: dict[str, dict[str, Any]] = tomllib.loads(
    (HERE / "examples.toml").read_text(encoding="utf-8")
)


def stated(key: str) -> dict[str, Any]:
    """By name the value of ``key`` of the examples that have one."""
    assert key in KEYS
    return {name: facts[key] for name, facts in EXAMPLES.items() if key in facts}
