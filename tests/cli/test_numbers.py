"""Numbers in what commands print: units of the right size, and no exponents."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gemmgen.base import units

from .running import gemmgen

PACKAGE = Path(units.__file__).parents[1]
EXAMPLES = PACKAGE.parent / "examples"
EXPONENT = re.compile(r"\d(\.\d+)?[eE][+-]?\d+\b")
OWN = {
    "base/units.py": "what formats numbers for all others",
    "calling/launches.py": "a case's alpha and beta, which are small",
    "draw/error.py": "rounding errors, which are tiny",
    "emit/ctext.py": "literals of C",
    "gpu/compare.py": "a bound of an error, which is tiny",
}
"""Files that may format by ``g`` or ``e``, and why."""


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (2.86e-3, "2.86 ms"),
        (999e-6, "999 us"),
        (999.6e-6, "1 ms"),
        (8.01e-6, "8.01 us"),
        (0.376e-6, "0.376 us"),
        (0.423, "423 ms"),
        (1234.5, "1,230 s"),
    ],
)
def test_times_have_the_unit_that_fits(seconds: float, said: str) -> None:
    assert units.duration(seconds) == said


def test_other_numbers_have_no_exponents() -> None:
    assert [units.significant(x) for x in (0, 48, 9.996, 0.03142, 12403, -1e6)] == [
        *("0", "48", "10", "0.0314", "12,400", "-1,000,000"),
    ]
    assert [units.count(x) for x in (7, 999.9, 4.12e11, 2.1e6)] == ["7", "1 k", "412 G", "2.1 M"]
    assert [units.size(x) for x in (12, 1e3, 67.1e6, 4.8e12)] == [
        *("12 B", "1 kB", "67.1 MB", "4.8 TB"),
    ]
    assert [units.numeral(x) for x in (0.75, 1e6, -3.0)] == ["0.75", "1,000,000", "-3"]


def formats_with_exponents() -> Iterator[str]:
    """Places that format a number by ``g`` or ``e``."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FormattedValue) or node.format_spec is None:
                continue
            spec = ast.unparse(node.format_spec)
            if re.search(r"[eg]['\"]$", spec) and name not in OWN:
                yield f"{name}:{node.lineno}: {spec}"


@pytest.mark.proof
def test_no_format_has_exponents() -> None:
    assert [*formats_with_exponents()] == []
    assert all((PACKAGE / name).exists() for name in OWN)


COMMANDS = (
    "suggest --shape 4096",
    "suggest --shape 8192 --dtype e4m3",
    "suggest --shape 20000 --dtype f64",
    "suggest --shape 1x4096x4096",
    "explain hopper/wgmma.sched --shape 16384",
    "explain warp_tiled.sched --shape 4x4x4 --beta 1000000",
    "explain matvec.sched --shape 1x4096x65536",
    "diff tiled.sched warp_tiled.sched",
    "draw tiled.sched --what hierarchy --shape 8192",
)


@pytest.mark.by_default("suggest*4096")
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_print_no_exponents(command: str) -> None:
    words = [str(EXAMPLES / w) if w.endswith(".sched") else w for w in command.split()]
    result = gemmgen(*words)
    assert result.exit_code == 0, result.output
    assert EXPONENT.search(result.output) is None, result.output
