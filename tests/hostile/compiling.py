"""Many emitted texts, read by g++ in one go, which refuses a declaration that hides another."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from gemmgen.pipeline import Emitted

from .words import unit

SIM = Path(__file__).parents[2] / "gemmgen" / "sim"
FLAGS = ("-Wall", "-Wextra", "-Wshadow", "-Werror", "-fmax-errors=0", "-fsyntax-only")
QUIET = ("unused-parameter", "unused-variable", "unused-but-set-variable", "unknown-pragmas")


def refused_by_compiler(found: Mapping[str, Emitted], folder: Path) -> list[str]:
    """The names of the texts that g++ refuses, with its first words."""
    names = list(found)
    source = folder / "unit.cpp"
    source.write_text(unit(enumerate(found.values()), launcher=True), encoding="utf-8")
    quiet = (f"-Wno-{name}" for name in QUIET)
    done = subprocess.run(
        ["g++", "-std=c++17", *FLAGS, *quiet, "-isystem", str(SIM), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    errors = re.findall(r"^(\d+):\d+:\d+: error: (.*)$", done.stderr, re.MULTILINE)
    assert errors or done.returncode == 0, done.stderr[:2000]
    return [f"{names[int(number)]}: {what}" for number, what in dict(reversed(errors)).items()]
