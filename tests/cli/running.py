"""How the tests run commands: in this process, or in a fresh one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from gemmgen.cli import main

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def gemmgen(
    *arguments: str | Path, input: str | bytes | None = None, as_given: bool = False
) -> Result:
    """The result of ``gemmgen ARGUMENTS`` in this process: ``.stdout``, ``.stderr``,
    ``.exit_code``.  Layer P of ``verify``, which takes seconds, is left out, unless the
    arguments are to be taken ``as_given``."""
    if arguments and arguments[0] == "verify" and not as_given:
        arguments = (*arguments, "--no-prove")
    result = CliRunner().invoke(main, [str(a) for a in arguments], input=input)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def fresh(
    *arguments: str | Path, input: bytes = b"", **options: object
) -> subprocess.CompletedProcess[bytes]:
    """``python -m gemmgen ARGUMENTS`` in its own process."""
    command = [sys.executable, "-m", "gemmgen", *map(str, arguments)]
    return subprocess.run(command, input=input, capture_output=True, cwd=ROOT, **options)
