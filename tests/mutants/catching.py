"""Detection of a mutant, by the calls that C2 makes of a text, whose constants choose some."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.pipeline import Emitted
from gemmgen.proof.calls import Caller
from gemmgen.proof.cases import cases_of
from gemmgen.proof.cpu import first_complaint
from gemmgen.sim.failures import CompileFailure
from gemmgen.sim.toolchain import object_code
from gemmgen.sim.widths import NARROW

SECONDS = 5
"""The time limit of one run of a mutant, which may never end."""
STILLBORN = "does not compile"


class Trials:
    """The calls of the kernels that share one interface: an emitted one and its mutants."""

    def __init__(self, emitted: Emitted):
        self._emitted = emitted
        self._caller = Caller(emitted)
        self._code = object_code(emitted.text, emitted.interface)

    def is_same_program(self, text: str) -> bool:
        """Whether ``text``, which compiles, has the same machine code as the emitted text."""
        return object_code(text, self._emitted.interface) == self._code

    def verdict(self, text: str) -> str | None:
        """How ``text`` is detected, warnings of g++ aside; None if it passes."""
        cases = cases_of(replace(self._emitted, text=text))
        try:
            return first_complaint(self._caller, text, cases, warn=False, seconds=SECONDS)
        except CompileFailure as failure:
            return str(failure) if NARROW in str(failure) else STILLBORN
