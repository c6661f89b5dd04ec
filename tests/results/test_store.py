"""The store keeps every result that was recorded, whatever runs beside it or ends it."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gemmgen.base import caches
from gemmgen.explore.results import database, results_store
from gemmgen.explore.results.database import APPLICATION, FORMAT, Database, StoreError
from gemmgen.explore.results.measured_result import MachineInfo, MeasuredResult, ProblemKey
from gemmgen.explore.results.results_store import Results

from .samples import H200, SHAPE, result

ROOT = Path(__file__).parents[2]


def own() -> list[MeasuredResult]:
    """What the user's file has."""
    database = Results.open().database
    assert database is not None
    return database.all()


def key(found: MeasuredResult) -> tuple[object, ...]:
    return found.problem.shape, found.schedule


def test_gives_back_what_was_recorded(store: Path) -> None:
    first, results = result(), Results.open()
    assert results.exact(first.problem, "H200") == () and not store.exists()
    assert results.record(first)
    assert results.exact(first.problem, "H200") == (first,) == tuple(own())
    assert Results.open().best(first.problem, "NVIDIA H200") == first
    assert store.stat().st_mode & 0o777 == 0o600
    assert Results.open().exact(first.problem, "H100") == ()
    assert Results.open().exact(first.problem, "A100") == ()


def test_of_two_measurements_of_one_schedule_the_newer_one_counts() -> None:
    old = result(us=10)
    new = replace(old, seconds=30e-6, date="2026-11-21T00:00:00.000+00:00")
    for order in ((old, new), (new, old)):
        Results.open().record(*order)
        assert own() == [new]


def test_the_order_of_recording_changes_nothing() -> None:
    wanted: tuple[object, ...] | None = None
    some = [
        result(size, us, shape, date=f"2026-11-{day}T00:00:00.000+00:00")
        for size, us, shape, day in (
            (32, 30, SHAPE, 20),
            (64, 20, SHAPE, 21),
            (64, 25, SHAPE, 22),
            (64, 24, SHAPE, 22),
            (128, 22, (2048, 1024, 1024), 20),
            (32, 22, (1024, 1024, 512), 20),
        )
    ]
    for seed in range(6):
        random.Random(seed).shuffle(some)
        database = Results.open().database
        assert database is not None
        database.remove(own())
        database.record(some)
        results, problem = Results.open(), some[0].problem
        at = replace(problem, shape=SHAPE)
        found = results.exact(at, "H200"), results.nearest(at, "H200", 2), results.all()
        assert wanted in (None, found)
        wanted = found


WRITER = """
import sys
from dataclasses import replace
from results.samples import result
from gemmgen.explore.results.results_store import Results
results, first, number = Results.open(), result(), int(sys.argv[1])
for at in range(int(sys.argv[2])):
    shape = 64 + number, 64, 64 * (1 + at)
    assert results.record(replace(first, problem=replace(first.problem, shape=shape)))
    print(at, flush=True)
"""


def writer(number: int, count: int) -> subprocess.Popen[str]:
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    command = [sys.executable, "-W", "error", "-c", WRITER, str(number), str(count)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)


@pytest.mark.proof
def test_eight_processes_write_at_once() -> None:
    """The first of them creates the file; none waits for another to end."""
    writers = [writer(number, 12) for number in range(8)]
    for each in writers:
        each.communicate()
        assert each.returncode == 0
    assert len({key(x) for x in own()}) == 8 * 12


@pytest.mark.proof
def test_a_killed_process_loses_nothing() -> None:
    """What it said that it recorded is there, and the next process goes on."""
    recorded = 0
    for number in range(2):
        killed = writer(number, 100_000)
        assert killed.stdout is not None
        for _ in range(5):
            killed.stdout.readline()
        killed.send_signal(signal.SIGKILL)
        recorded = 5 + len(killed.stdout.read().split())
        killed.wait()
        there = [x for x in own() if x.problem.shape[0] == 64 + number]
        assert recorded <= len(there) <= recorded + 1
    assert Results.open().record(result())


def test_a_forked_process_opens_its_own(store: Path) -> None:
    results = Results.open()
    results.record(result())
    database = results.database
    assert database is not None
    parents = database._open
    child = os.fork()
    if child == 0:
        recorded = results.record(result(32)) and len(results.all()) >= 2
        os._exit(0 if recorded and database._open is not parents else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert results.record(result(128)) and len(own()) == 3


def test_a_file_that_is_created_meanwhile_is_read_as_one(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process creates the tables between two questions about the format."""
    others: list[bool] = []
    monkeypatch.setattr(database, "WRITE_SECONDS", 0.05)

    class Interrupted(sqlite3.Connection):
        def execute(self, sql: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
            if sql == "PRAGMA user_version" and not others:
                others.append(True)
                others.append(Results(Database(store, 0.05), None).record(result()))
            return super().execute(sql, parameters)

    connect = sqlite3.connect
    monkeypatch.setattr(
        database.sqlite3, "connect", lambda *x, **more: connect(*x, **more, factory=Interrupted)
    )
    store.parent.mkdir(mode=0o700, parents=True)
    store.touch(mode=0o600)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the other one is locked out, and says so
        assert Database(store, 0.25).shapes(result().problem.text) == {}
    assert others and Results.open().record(result(32))


def newer(path: Path) -> None:
    with sqlite3.connect(path) as found:
        found.execute(f"PRAGMA user_version = {FORMAT + 1}")


def of_another(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as found:
        found.execute("CREATE TABLE results (x)")


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096 : len(data)] = bytes(len(data) - 4096)
    path.write_bytes(data)


def without_tables(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as found:
        found.execute(f"PRAGMA application_id = {APPLICATION}")
        found.execute("CREATE TABLE other (x)")


def odd_values(path: Path) -> None:
    with sqlite3.connect(path) as found:
        found.execute("UPDATE results SET shape = 'ax3', seconds = 'soon'")


def in_a_files_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "not a database": (lambda p: p.write_bytes(b"x" * 5000), "is damaged"),
    "half": (lambda p: p.write_bytes(p.read_bytes()[:5000]), "is damaged"),
    "zeros": (flipped, "is damaged"),
    "another program's": (of_another, "is a database of another program"),
    "other tables": (without_tables, "is damaged"),
    "odd values": (odd_values, "is damaged"),
    "newer": (newer, f"has format {FORMAT + 1}, and this gemmgen reads format {FORMAT}"),
    "a folder": (in_a_files_place, "is a folder"),
    "a link": (link, "is not a regular file that its owner alone can write"),
    "others may write": (lambda p: p.chmod(0o666), "is not a regular file that its owner alone"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_that_cannot_be_used_is_one_error_and_never_a_failure(
    damage: str, store: Path
) -> None:
    first = result()
    Results.open().record(first)
    change, wanted = DAMAGE[damage]
    change(store)
    results = Results.open()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            assert results.exact(first.problem, "H200") == ()
            assert results.nearest(first.problem, "H200", 3) == ()
            assert not results.record(result(32)) or damage == "odd values"
    assert len(said) == 1 and wanted in str(said[0].message) and str(store) in str(said[0].message)
    assert results.database is not None
    with pytest.raises(StoreError, match=wanted):
        results.database.all()


def test_an_empty_file_is_filled(store: Path) -> None:
    store.parent.mkdir(mode=0o700, parents=True)
    store.touch(mode=0o600)
    assert Results.open().record(result()) and len(own()) == 1


def test_a_writer_that_hangs_is_not_waited_for(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Results.open().record(result())
    monkeypatch.setattr(results_store, "READ_SECONDS", 0.05)
    other = sqlite3.connect(store, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    began = time.monotonic()
    with pytest.warns(UserWarning, match="is locked by another process"):
        assert Results.open().best(result().problem, "H200") is None
    assert time.monotonic() - began < 2
    other.close()
    assert Results.open().best(result().problem, "H200") == result()


@pytest.mark.parametrize("home", ["/dev/null", "/proc/none"])
def test_where_nothing_can_be_written_it_is_said_once(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    results = Results.open()
    assert results.best(result().problem, "H200") is None
    with pytest.warns(UserWarning, match="can't be written, so no results are stored") as said:
        assert not results.record(result()) and not results.record(result(32))
    assert len(said) == 1


def test_without_a_cache_there_is_no_store(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMGEN_CACHE", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not Results.open().record(result())
    assert not store.exists()


def test_the_cache_never_evicts_results(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Results.open().record(result())
    monkeypatch.setattr(caches, "MOST_BYTES", 0)
    caches.write("an-entry", {"data": b"x"})
    assert [x.problem.shape for x in own()] == [SHAPE]


def test_the_nearest_shapes_come_first() -> None:
    results = Results.open()
    for shape in ((4096, 1024, 512), (2048, 1024, 1500), (2000, 1024, 512), (64, 64, 64)):
        results.record(result(64, 20, shape), result(32, 10, shape))
    near = results.nearest(ProblemKey(result().problem.text, SHAPE), "H200", 3)
    assert [x.problem.shape for x in near] == [
        (2000, 1024, 512),
        (4096, 1024, 512),
        (2048, 1024, 1500),
    ]
    assert all("m=32" in x.schedule for x in near)


def test_pitches_of_the_problem_come_first() -> None:
    results, dense = Results.open(), result(64, 20)
    padded = replace(result(32, 30), problem=replace(dense.problem, pitches=(520, 0, 0)))
    results.record(dense, padded)
    assert results.exact(dense.problem, "H200") == (dense, padded)
    assert results.exact(padded.problem, "H200") == (padded, dense)


def test_runs_are_compared_by_the_vendors_time_in_them() -> None:
    """A clock that is lower in one run says nothing of its schedules."""
    fast, slow = result(64, 20), result(32, 24)
    slow = replace(slow, vendor=2 * (slow.vendor or 0))
    results = Results.open()
    results.record(fast, slow)
    assert results.exact(fast.problem, "H200") == (slow, fast)
    alone = replace(result(128, 22), vendor=None)
    results.record(alone)
    assert results.exact(fast.problem, "H200") == (fast, alone, slow)


def test_names_of_gpus() -> None:
    results = Results.open()
    for name in ("NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090", "Some GPU"):
        results.record(result(machine=MachineInfo(name, "sm_80")))
    problem = result().problem
    for asked, wanted in {
        "A100-80GB": "NVIDIA A100-SXM4-80GB",
        "RTX4090": "NVIDIA GeForce RTX 4090",
        "NVIDIA GeForce RTX 4090": "NVIDIA GeForce RTX 4090",
        "Some GPU": "Some GPU",
    }.items():
        assert [x.machine.gpu for x in results.exact(problem, asked)] == [wanted]
    assert results.exact(problem, H200.gpu) == results.exact(problem, "A100") == ()


def test_looking_up_takes_about_a_millisecond() -> None:
    """Among 2,000 results of one problem; CPU time, the least of several."""
    first, results = result(), Results.open()
    for at in range(0, 2000, 100):
        shapes = [(64 + 8 * n, 512, 512) for n in range(at, at + 100)]
        results.record(*(replace(first, problem=replace(first.problem, shape=x)) for x in shapes))
    times: list[float] = []
    for at in range(20):
        problem = replace(first.problem, shape=(100 + at, 700, 512))
        begin = time.process_time()
        results.exact(problem, "H200"), results.nearest(problem, "H200", 3)
        times.append(time.process_time() - begin)
    assert min(times) < 0.01, times


def test_a_database_that_is_absent_is_empty(tmp_path: Path) -> None:
    found = Database(tmp_path / "none", 1.0)
    assert found.all() == [] and found.shapes("x") == {}
    found.remove([result()])
    assert not (tmp_path / "none").exists()
