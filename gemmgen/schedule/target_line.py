"""Checks ``target``: an architecture that is known."""

from __future__ import annotations

import re

from gemmgen.base.errors import Refusal
from gemmgen.base.source import shown
from gemmgen.ir.target import TARGETS
from gemmgen.schedule.raw import Word


def check_target(word: Word) -> str:
    """The architecture."""
    if word.text in TARGETS:
        return word.text
    known = ", ".join(TARGETS)
    near = "sm_" + re.sub(r"^(sm|compute|cc)?_?", "", word.text.lower())
    hint = f"did you mean {near}? " if near in TARGETS else ""
    raise Refusal(
        f"unknown target `{shown(word.text)}`", at=word.span, hint=f"{hint}the targets are {known}"
    )
