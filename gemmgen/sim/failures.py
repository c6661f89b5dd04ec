"""What can be wrong with a kernel's text, or show when it runs."""

from __future__ import annotations


class KernelFailure(Exception):
    """Base of the failures that are the kernel's; the message says which and where."""


class CompileFailure(KernelFailure):
    """g++ refuses the text, or warns; the message is g++'s, with the text's own line numbers."""


class KernelFault(KernelFailure):
    """A run was stopped: access outside every argument, misaligned, or a divergent barrier."""


class KernelTimeout(KernelFailure):
    """A run took longer than it was given."""
