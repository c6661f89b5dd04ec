"""What each directive may say, in ladder order: the table that schedules are read and checked
by."""

from __future__ import annotations

from gemmgen.passes.ladder import LADDER
from gemmgen.schedule.spec import DirectiveSpec

SPECS: tuple[DirectiveSpec, ...] = tuple(rung.SPEC for rung in LADDER)
"""Ladder order.  ``fuse_epilogue``, whose argument is an expression, comes after all of these."""
