"""The GPU's compilers in a process of their own, since a mutant may crash them."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache

from gemmgen.base.errors import CannotCheck
from gemmgen.base.processes import interrupts_held, serve_quietly
from gemmgen.gpu import compiler
from gemmgen.proof import compiled
from gemmgen.proof.outcome import Subject

CRASHED = "its compiler crashes"


class Compilers:
    """One process, started again after a crash."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool = self._begun()

    @staticmethod
    def _begun() -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, context, initializer=serve_quietly)

    def cubin(self, text: str, target: str) -> bytes | None:
        """A GPU's machine code; None if the text is refused, or crashes the compiler."""
        with self._lock, interrupts_held():
            try:
                return self._pool.submit(_cubin, text, target).result()
            except BrokenProcessPool:
                self._pool = self._begun()
                return None

    def complaint(self, subject: Subject) -> str | None:
        """How C3 detects a mutant; None if it passes."""
        with self._lock, interrupts_held():
            try:
                return self._pool.submit(_complaint, subject).result()
            except BrokenProcessPool:
                self._pool = self._begun()
                return CRASHED


@cache
def compilers() -> Compilers:
    """The one of this process."""
    return Compilers()


def _cubin(text: str, target: str) -> bytes | None:
    try:
        return compiler.compile_text(text, target).cubin
    except (compiler.CompileError, CannotCheck):
        return None


def _complaint(subject: Subject) -> str | None:
    outcome = compiled.check(subject)
    return outcome.detail if outcome.status == "failed" else None
