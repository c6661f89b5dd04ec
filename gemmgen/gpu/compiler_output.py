"""What a compiler returns: its output, or an error with its log."""

from __future__ import annotations

from gemmgen.base.errors import GemmgenError
from gemmgen.base.record import record


class CompileError(GemmgenError):
    """A compiler refused a text, or warned about it; ``log`` is its output."""

    exit_code = 1

    def __init__(self, message: str, log: str):
        super().__init__(f"{message}\n{log.strip()}")
        self.message, self.log = message, log

    def __reduce__(self) -> tuple[type[CompileError], tuple[str, str]]:
        """Processes that compile send it to the one that asked."""
        return CompileError, (self.message, self.log)


@record
class Output:
    """A compiler's output: ``log`` includes ptxas's report."""

    cubin: bytes
    ptx: str
    log: str
