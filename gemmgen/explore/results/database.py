"""Measured results in one SQLite file, which many processes read and write at once.

SQLite's rollback journal, not its write-ahead log: that one needs memory shared by all processes,
which a home on a network file system does not give.  Each result is one transaction, so that a
process that is killed loses none that it recorded.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from gemmgen.base.errors import UsageError
from gemmgen.base.source import shown
from gemmgen.explore.results.measured_result import MeasuredResult, ProblemKey
from gemmgen.explore.results.result_rows import COLUMNS, as_row, from_row, shape_of_text
from gemmgen.ir.launch_shape import Shape

FORMAT = 1
"""Of the tables; a file with a greater number was written by a newer gemmgen."""
APPLICATION = 0x67656D6D
"""``gemm``: SQLite's application id, by which a file is known to be gemmgen's."""
WRITE_SECONDS = 30.0
"""How long a writer waits for others."""
_KEY = ("problem", "gpu", "shape", "pitches", "schedule")
_NEWER = "excluded.date > date OR (excluded.date = date AND excluded.seconds < seconds)"
_INSERT = (
    f"INSERT INTO results ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET "
    + ", ".join(f"{x} = excluded.{x}" for x in COLUMNS if x not in _KEY)
    + f" WHERE {_NEWER}"
)
_CREATE = (
    "CREATE TABLE results (problem TEXT NOT NULL, gpu TEXT NOT NULL, shape TEXT NOT NULL, "
    "pitches TEXT NOT NULL, schedule TEXT NOT NULL, arch TEXT NOT NULL, driver TEXT NOT NULL, "
    "cuda TEXT NOT NULL, seconds REAL NOT NULL, vendor REAL, date TEXT NOT NULL, "
    "origin TEXT NOT NULL, code TEXT NOT NULL, version TEXT NOT NULL, "
    f"UNIQUE ({', '.join(_KEY)}))",
    "CREATE INDEX fastest ON results (problem, gpu, shape, seconds)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
)


class StoreError(UsageError):
    """The file of results can't be used; one sentence that says what to do."""


class Database:
    """The results in the file ``path``, opened when it is first used.

    All methods raise ``StoreError`` if the file can't be used.  An absent file has no results, and
    is created by the first one.  ``wait``: seconds that a reader waits for a writer.
    """

    def __init__(self, path: Path, wait: float) -> None:
        self.path, self._wait = path, wait
        self._open: sqlite3.Connection | None = None
        self._process = 0
        self._lock = threading.RLock()
        self._version, self._shapes = -1, dict[str, dict[str, list[Shape]]]()

    def record(self, results: Sequence[MeasuredResult]) -> None:
        """Keeps all of ``results`` or, on an error, none; of two results of one schedule at one
        shape on one GPU the newer one is kept."""
        rows = [as_row(result) for result in results]
        with self._use(create=True) as found:
            assert found is not None
            with self._patient(found):
                found.executemany(_INSERT, rows)

    def shapes(self, problem: str) -> dict[str, list[Shape]]:
        """The shapes that the problem with this text has results for, by GPU; as long as no other
        process writes, they are read from the file once."""
        with self._use() as found:
            if found is None:
                return {}
            (version,) = found.execute("PRAGMA data_version").fetchone()
            if version != self._version:
                self._version, self._shapes = version, {}
            if problem not in self._shapes:
                listed = self._shapes[problem] = {}
                query = "SELECT DISTINCT gpu, shape FROM results WHERE problem = ?"
                for gpu, shape in found.execute(query, (problem,)):
                    listed.setdefault(gpu, []).append(shape_of_text(shape))
            return self._shapes[problem]

    def fastest(self, problem: ProblemKey, gpu: str, most: int) -> list[MeasuredResult]:
        """The results at the problem's shape, whatever their pitches, fastest first."""
        query = (
            f"SELECT {', '.join(COLUMNS)} FROM results WHERE problem = ? AND gpu = ? AND shape = ? "
            "ORDER BY seconds, schedule LIMIT ?"
        )
        shape = "x".join(map(str, problem.shape))
        return self._rows(query, (problem.text, gpu, shape, most))

    def all(self) -> list[MeasuredResult]:
        query = f"SELECT {', '.join(COLUMNS)} FROM results ORDER BY problem, gpu, shape, seconds"
        return self._rows(query, ())

    def remove(self, results: Sequence[MeasuredResult]) -> None:
        """Removes these results, if they have not been measured again meanwhile."""
        query = f"DELETE FROM results WHERE {' AND '.join(f'{x} = ?' for x in _KEY)} AND date = ?"
        named = [dict(zip(COLUMNS, as_row(result), strict=True)) for result in results]
        with self._use() as found:
            if found is not None:
                with self._patient(found):
                    found.executemany(query, [[row[x] for x in (*_KEY, "date")] for row in named])

    def close(self) -> None:
        if self._open is not None and self._process == os.getpid():
            self._open.close()
        self._open = None

    def _rows(self, query: str, values: Sequence[object]) -> list[MeasuredResult]:
        with self._use() as found:
            rows = () if found is None else found.execute(query, values)
            return [from_row(row) for row in rows]

    @contextmanager
    def _use(self, *, create: bool = False) -> Generator[sqlite3.Connection | None]:
        """The connection, of this process and one thread at a time; None if there is no file."""
        with self._lock:
            try:
                yield self._connection(create)
            except (sqlite3.Error, OSError, ValueError, TypeError, AttributeError) as wrong:
                raise self._trouble(wrong) from None

    def _connection(self, create: bool) -> sqlite3.Connection | None:
        if self._open is not None and self._process == os.getpid():
            return self._open
        self._open = None  # one of the parent process must not be closed here
        if not self._ready(create):
            return None
        found = sqlite3.connect(
            f"file:{_quoted(self.path)}?mode=rw",
            uri=True,
            timeout=WRITE_SECONDS if create else self._wait,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            if not self._check_format(found, create):
                found.close()
                return None
            found.execute(f"PRAGMA busy_timeout = {int(self._wait * 1000)}")
        except BaseException:
            found.close()
            raise
        self._open, self._process = found, os.getpid()
        return found

    def _ready(self, create: bool) -> bool:
        """Whether the file exists; raises ``StoreError`` unless it is the user's alone."""
        try:
            about = self.path.lstat()
        except FileNotFoundError:
            if not create:
                return False
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(self.path, flags, 0o600))
            about = self.path.lstat()
        if stat.S_ISDIR(about.st_mode):
            raise StoreError(f"{self._name} is a folder: move it away")
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
            raise StoreError(
                f"{self._name} is not a regular file that its owner alone can write: move it away"
            )
        return True

    def _check_format(self, found: sqlite3.Connection, create: bool) -> bool:
        """Whether there are tables, which ``create`` makes in an empty file; raises ``StoreError``
        for another program's file and for a newer format."""
        found.execute("BEGIN")  # else another process may create the tables between two answers
        application, version, tables = _format_of(found)
        found.execute("COMMIT")
        if not tables and application == 0:
            if not create:
                return False
            with self._patient(found):
                application, version, tables = _format_of(found)
                if not tables:  # no other process was first
                    for statement in _CREATE:
                        found.execute(statement)
                    application, version = APPLICATION, FORMAT
        if application != APPLICATION:
            raise StoreError(f"{self._name} is a database of another program: move it away")
        if version > FORMAT:
            raise StoreError(
                f"{self._name} has format {version}, and this gemmgen reads format {FORMAT}: use "
                "the newer gemmgen that wrote it, or move the file away"
            )
        return True

    @contextmanager
    def _patient(self, found: sqlite3.Connection) -> Generator[None]:
        """A transaction that waits for other writers; the list is read again afterwards."""
        self._version = -1
        found.execute(f"PRAGMA busy_timeout = {int(WRITE_SECONDS * 1000)}")
        found.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                found.execute("ROLLBACK")
            raise
        found.execute("COMMIT")
        found.execute(f"PRAGMA busy_timeout = {int(self._wait * 1000)}")

    @property
    def _name(self) -> str:
        return "".join(x if x.isprintable() else "?" for x in str(self.path))

    def _trouble(self, wrong: Exception) -> StoreError:
        """The sentence for an error of the system or of SQLite."""
        self.close()
        if isinstance(wrong, OSError):
            return StoreError(f"{self._name} can't be used: {wrong.strerror}")
        said = shown(str(wrong))
        code = getattr(wrong, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreError(f"{self._name} is locked by another process: try again")
        if (
            code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
            or not code
        ):
            return StoreError(f"{self._name} is damaged ({said}): move it away or delete it")
        return StoreError(f"{self._name} can't be used: {said}")


def _format_of(found: sqlite3.Connection) -> tuple[int, int, int]:
    """The application id, the format, and the number of tables."""
    (application,) = found.execute("PRAGMA application_id").fetchone()
    (version,) = found.execute("PRAGMA user_version").fetchone()
    (tables,) = found.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return application, version, tables


def _quoted(path: Path) -> str:
    """A path within SQLite's URI."""
    from urllib.parse import quote

    return quote(os.fsencode(path))
