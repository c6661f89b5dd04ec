"""A pytest plugin: emitted kernels kept next to their schedules, and compared on every run.

    def test_my_kernel(gemmgen_golden):
        gemmgen_golden("kernels/my.sched", verify=True)

compares what ``kernels/my.sched`` compiles to with ``kernels/my.cu``.  ``pytest --gemmgen-update``
rewrites the ``.cu`` files.  Nothing of gemmgen is imported before a test uses a golden.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from gemmgen.base.record import record

if TYPE_CHECKING:
    from gemmgen.pipeline import Emitted

UPDATE = "--gemmgen-update"
_WRITTEN = "gemmgen golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("gemmgen").addoption(
        UPDATE,
        action="store_true",
        default=False,
        help="write the goldens that gemmgen_golden compares with again",
    )


@pytest.fixture
def gemmgen_golden(request: pytest.FixtureRequest) -> Golden:
    """``gemmgen_golden("my.sched")`` fails if ``my.cu`` isn't what the schedule compiles to."""
    return Golden(
        (request.path.parent, request.config.rootpath),
        bool(request.config.getoption(UPDATE)),
        request.node.user_properties,
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists the goldens that were written, to be reviewed before they are committed."""
    reports: list[object] = [r for found in terminalreporter.stats.values() for r in found]
    properties = [p for r in reports for p in getattr(r, "user_properties", ())]
    written = dict.fromkeys(str(value) for name, value in properties if name == _WRITTEN)
    if written:
        terminalreporter.section("gemmgen goldens written")
        for path in written:
            terminalreporter.write_line(path)


@record
class Golden:
    """The fixture's value.

    ``folders`` are searched for a relative path: the test's own folder, then pytest's root.
    """

    folders: tuple[Path, ...]
    update: bool
    properties: list[tuple[str, object]]

    def __call__(
        self,
        schedule: str | Path,
        golden: str | Path | None = None,
        *,
        arch: str | None = None,
        set: Mapping[str, int | str] | None = None,
        verify: bool = False,
    ) -> None:
        """Compiles ``schedule`` and compares the text with ``golden``.

        ``golden`` is by default the file of the same stem with ``.cu`` in the schedule's folder.
        ``arch`` and ``set`` are as in ``emit_cuda``.  ``verify`` also runs the text on this
        machine's CPU at ragged shapes (``gemmgen verify``, layer C2), so that a golden is known to
        be right and not only unchanged; without g++ the test is then skipped.
        """
        __tracebackhide__ = True
        path = self._found(Path(schedule))
        kept = path.with_suffix(".cu") if golden is None else path.parent / golden
        emitted = _compiled(path, arch, set)
        if self.update:
            _verified(path, emitted, verify)
            self._write(kept, emitted.text)
        else:
            _compared(path, kept, emitted.text)
            _verified(path, emitted, verify)

    def _found(self, path: Path) -> Path:
        __tracebackhide__ = True
        for folder in self.folders:
            if (folder / path).is_file():
                return folder / path
        folders = " or ".join(dict.fromkeys(str(folder) for folder in self.folders))
        _fail(f"{path}: there is no such schedule in {folders}")

    def _write(self, kept: Path, text: str) -> None:
        __tracebackhide__ = True
        from gemmgen.base.errors import UsageError
        from gemmgen.base.output_file import write_file

        if kept.is_file() and kept.read_bytes() == text.encode():
            return
        try:
            write_file(str(kept), text)
        except UsageError as wrong:
            _fail(str(wrong))
        self.properties.append((_WRITTEN, str(kept)))


def _compiled(path: Path, arch: str | None, settings: Mapping[str, int | str] | None) -> Emitted:
    __tracebackhide__ = True
    from gemmgen.api.kernels import compile_any
    from gemmgen.base.errors import GemmgenError

    try:
        return compile_any(path, arch=arch, set=settings)
    except GemmgenError as wrong:
        _fail(str(wrong))


def _compared(path: Path, kept: Path, text: str) -> None:
    __tracebackhide__ = True
    how = f"pytest {UPDATE} writes it"
    try:
        known = kept.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        _fail(f"{kept}: there is no such golden; {how}")
    except OSError as wrong:
        _fail(f"{kept} can't be read: {wrong.strerror}")
    if known == text:
        return
    if known.replace("\r\n", "\n") == text:
        _fail(
            f"{kept} has other line ends than what {path} compiles to; {how} again, and the line "
            "`*.cu text eol=lf` in .gitattributes keeps them"
        )
    lines = difflib.unified_diff(
        known.splitlines(), text.splitlines(), str(kept), f"{path}, as emitted", lineterm=""
    )
    diff = "\n".join(lines)
    _fail(f"{kept} is not what {path} compiles to; {how} again\n\n{diff}")


def _verified(path: Path, emitted: Emitted, wanted: bool) -> None:
    __tracebackhide__ = True
    if not wanted:
        return
    from gemmgen.proof import cpu
    from gemmgen.proof.outcome import Subject

    outcome = cpu.check(Subject(emitted))
    if outcome.status == "failed":
        _fail(f"the kernel of {path} is wrong: {outcome.detail}")
    if outcome.status == "skipped":
        pytest.skip(f"{path} compiles to its golden, which was not run: {outcome.reason}")


def _fail(message: str) -> NoReturn:
    __tracebackhide__ = True
    pytest.fail(message, pytrace=False)
