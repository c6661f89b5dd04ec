"""Failures of a kernel's text, when it is compiled or run."""

from __future__ import annotations

from gemmgen.base.errors import GemmgenError
from gemmgen.sim.findings import Finding


class KernelFailure(GemmgenError):
    """Base of the kernel's failures; the message says which and where."""

    exit_code = 1


class CompileFailure(KernelFailure):
    """g++ refuses the text, or warns; the message is g++'s, with the text's own line numbers."""


class TextFailure(CompileFailure):
    """The text has a mistake that neither g++ nor a run can detect; the message says where."""


class KernelFault(KernelFailure):
    """A run was stopped, or a checked run found something.

    ``findings`` has one for each location in the text, in the order found.  It is empty if the
    process crashed or a guard band was overwritten; the message then says all that is known.
    """

    def __init__(self, message: str, findings: tuple[Finding, ...] = ()):
        super().__init__(message)
        self.findings = findings


class KernelTimeout(KernelFailure):
    """A run took longer than it was given."""
