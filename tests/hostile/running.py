"""One command on one file, and everything that must hold of a refusal."""

from __future__ import annotations

import os
import re
from pathlib import Path

from click.testing import CliRunner, Result

from gemmgen.cli import main

FILE = "x.sched"
_FIRST = re.compile(r"x\.sched:([0-9]+):([0-9]+): error: (.+)\n")


def emit(data: bytes, folder: Path) -> Result:
    """``gemmgen emit x.sched -o out.cu`` in ``folder``, which is the working directory."""
    (folder / FILE).write_bytes(data)
    return CliRunner().invoke(main, ["emit", FILE, "-o", "out.cu"])


def refused(result: Result, folder: Path) -> tuple[int, int]:
    """The position of the first mistake; checks that the refusal is well formed."""
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert (result.exit_code, result.stdout) == (2, "")
    assert sorted(os.listdir(folder)) == [FILE]
    message = result.stderr
    first = _FIRST.match(message)
    assert first, message
    for block in message.rstrip("\n").split("\n\n"):
        lines = block.split("\n")
        if "more mistakes" not in lines[0]:
            assert lines[-1].startswith("  hint: ") and len(lines[-1]) > 12, block
            assert set(lines[2].split("| ")[1].strip()) == {"^"}, block
    assert all(c in "\n\t" or c.isprintable() for c in message)
    assert "Traceback" not in message and "<class" not in message and len(message) < 20_000
    return int(first.group(1)), int(first.group(2))
