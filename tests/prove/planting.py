"""Lowered programs with a mistake that is planted in their text."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import cast

from gemmgen.base.record import record
from gemmgen.ir.lowered import LoweredProgram
from gemmgen.ir.text import parse_ir, print_ir
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.prove.goals import Fact
from gemmgen.schedule.read import read_source

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"


@record
class Mistake:
    """``old`` becomes ``new`` in the lowered program of ``program``; ``fact`` is refuted by it."""

    name: str
    program: str
    old: str
    new: str
    fact: Fact
    at: int | None = None

    def planted(self) -> LoweredProgram:
        text = print_ir(emitted(self.program).lowered)
        parts = text.split(self.old)
        assert len(parts) > 1, f"{self.program} has no {self.old!r}"
        if self.at is None:
            changed = self.new.join(parts)
        else:
            begin, end = parts[: self.at + 1], parts[self.at + 1 :]
            changed = self.old.join(begin) + self.new + self.old.join(end)
        return parse_ir(changed, LoweredProgram)


@functools.cache
def emitted(name: str) -> Emitted:
    """The kernel of an example, or of a schedule beside this file."""
    own = HERE / "schedules" / f"{name}.sched"
    return compile_source(read_source(str(own if own.exists() else EXAMPLES / f"{name}.sched")))


def mistakes() -> list[Mistake]:
    """All planted mistakes."""
    found = tomllib.loads((HERE / "mistakes.toml").read_text(encoding="utf-8"))
    return [Mistake(**cast("dict[str, object]", each)) for each in found["mistake"]]  # type: ignore[arg-type]  # the names of the fields


def without_requirement(program: LoweredProgram, text: str) -> LoweredProgram:
    """``program`` that does not require what ``text`` says."""
    kernel = program.kernels[0]
    rules = tuple(rule for rule in kernel.interface.requirements if rule.text() != text)
    assert len(rules) < len(kernel.interface.requirements)
    own = replace(kernel, interface=replace(kernel.interface, requirements=rules))
    return replace(program, kernels=(own,))
