"""What can be wrong with a kernel's text, or show when it runs."""

from __future__ import annotations

from gemmgen.base.errors import GemmgenError
from gemmgen.sim.findings import Finding


class KernelFailure(GemmgenError):
    """Base of the failures that are the kernel's; the message says which and where."""

    exit_code = 1


class CompileFailure(KernelFailure):
    """g++ refuses the text, or warns; the message is g++'s, with the text's own line numbers."""


class KernelFault(KernelFailure):
    """A run was stopped, or a checked run found something.

    ``findings`` says what, one for each place in the text, in the order found.  It is empty where
    the process crashed or a guard band was overwritten; the message then tells all there is.
    """

    def __init__(self, message: str, findings: tuple[Finding, ...] = ()):
        super().__init__(message)
        self.findings = findings


class KernelTimeout(KernelFailure):
    """A run took longer than it was given."""
