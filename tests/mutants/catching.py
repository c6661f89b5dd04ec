"""Detection of a mutant, by what C2 and C3 do to a text; the text's constants choose some calls."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.pipeline import Emitted
from gemmgen.proof.calls import Caller
from gemmgen.proof.cases import cases_of
from gemmgen.proof.cpu import first_complaint
from gemmgen.proof.outcome import Subject
from gemmgen.sim.failures import CompileFailure
from gemmgen.sim.toolchain import object_code

from .everywhere import is_of_launcher
from .mutants import Mutant
from .own_process import compilers

SECONDS = 5
"""The time limit of one run of a mutant, which may never end."""
STILLBORN = "does not compile"


class Trials:
    """The calls of the kernels that share one interface: an emitted one and its mutants."""

    def __init__(self, emitted: Emitted):
        self._emitted = emitted
        self._caller = Caller(emitted)
        self._code = object_code(emitted.text, emitted.interface)

    def is_same_program(self, mutant: Mutant) -> bool:
        """Whether a mutant, which compiles, has the same machine code as the emitted text, on this
        machine or, unless it is one of the launcher, on the GPU."""
        if object_code(mutant.text, self._emitted.interface) == self._code:
            return True
        cubin = None if is_of_launcher(mutant) else self._cubin(mutant.text)
        return cubin is not None and cubin == self._cubin(self._emitted.text)

    def verdict(self, mutant: Mutant) -> str | None:
        """How a mutant is detected, warnings of g++ aside; None if it passes C2."""
        text = mutant.text
        cases = cases_of(replace(self._emitted, text=text))
        try:
            return first_complaint(self._caller, text, cases, warn=False, seconds=SECONDS)
        except CompileFailure as failure:
            # A text that no compiler takes is not a mutant.
            taken = not is_of_launcher(mutant) and self._cubin(text) is not None
            return str(failure) if taken else STILLBORN

    def by_compiler(self, mutant: Mutant) -> str | None:
        """How C3 detects a mutant that passes C2; None if it passes."""
        return compilers().complaint(Subject(replace(self._emitted, text=mutant.text)))

    def _cubin(self, text: str) -> bytes | None:
        """A GPU's machine code; None if the text is refused."""
        return compilers().cubin(text, self._emitted.target)
