"""Drawings of counts are tested without machine code, as counts are."""

from __future__ import annotations

from tests.analyze.conftest import uncompiled

__all__ = ["uncompiled"]
