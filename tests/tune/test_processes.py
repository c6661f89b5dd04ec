"""The processes that compile and measure: what happens where one of them ends."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import time
from functools import partial
from pathlib import Path

import pytest

from gemmgen.base.errors import CannotCheck, ScheduleError
from gemmgen.base.source import Source
from gemmgen.explore.tune.cubins import CompilingBuilder, code_of
from gemmgen.explore.tune.legal_points import census
from gemmgen.explore.tune.measuring import Candidate
from gemmgen.explore.tune.remote import RemoteRunner
from gemmgen.explore.tune.workers import Workers
from gemmgen.gpu import compiler
from gemmgen.pipeline import compile_source

from . import fakes

# Processes that are begun here import this file: each of them runs its top-level code.


def double(number: int) -> int:
    return 2 * number


def end(number: int) -> int:
    os._exit(number)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def candidate(number: int) -> Candidate:
    return Candidate(number, fakes.interface(), "sm_80", fakes.FILES)


@pytest.mark.proof
def test_who_ends_its_process_is_known_and_the_others_get_their_answers() -> None:
    with Workers(2) as workers:
        jobs = [workers.submit(end if n == 3 else double, n) for n in range(8)]
        assert [workers.result(job) for job in jobs] == [0, 2, 4, None, 8, 10, 12, 14]


@pytest.mark.proof
def test_processes_end_whatever_they_do() -> None:
    start = time.monotonic()
    with Workers(1) as workers:
        assert workers.result(workers.submit(double, 1)) == 2
        workers.submit(sleep, 60.0)
    assert time.monotonic() - start < 55


@pytest.mark.proof
def test_processes_count_the_same_points() -> None:
    space, known = fakes.points()
    with Workers(2) as workers:
        assert census(space, [fakes.SHAPE], workers.pool) == known


@pytest.mark.proof
@pytest.mark.skipif(compiler.available() is not None, reason="compiles")
def test_points_are_compiled_to_files() -> None:
    _, known = fakes.points()
    points = known.legal[:3]
    with Workers(2) as workers:
        found = CompilingBuilder(workers, "sm_90").submit(points)()
        assert [one.number for one in found] == [point.number for point in points]
        for one in found:
            assert one.candidate is not None and one.candidate.number == one.number
            assert one.candidate.files.cubin.read_bytes()[:4] == b"\x7fELF"
            assert one.registers and one.spills == 0
            assert code_of(one.candidate.files.source.read_text()) == one.code
        assert len({one.code for one in found}) == 3
        assert len(list(workers.folder.iterdir())) == 6


@pytest.mark.proof
@pytest.mark.skipif(compiler.available() is not None, reason="compiles")
def test_what_is_cancelled_is_not_compiled() -> None:
    """The next search's points do not wait for those of one that has ended."""
    _, known = fakes.points()
    with Workers(1) as workers:
        builder = CompilingBuilder(workers, "sm_90")
        builder.submit(known.legal[:40])
        builder.cancel()
        (found,) = builder.submit(known.legal[40:41])()
        assert found.candidate is not None and len(list(workers.folder.iterdir())) < 20


def _write_for_ever(folder: Path) -> None:
    for number in itertools.count():
        (folder / str(number)).touch()


@pytest.mark.proof
def test_the_folder_of_workers_outlives_them() -> None:
    """Removed while a process still wrote, it was not empty, and tune ended in a traceback."""
    others = set(multiprocessing.active_children())
    with Workers(2) as workers:
        folder = workers.folder
        for _ in range(2):
            workers.submit(_write_for_ever, folder)
        processes = set(multiprocessing.active_children()) - others
        while not any(folder.iterdir()):
            time.sleep(0.01)
    assert processes and not any(process.is_alive() for process in processes)
    assert not folder.exists()


def test_code_is_the_text_without_comments() -> None:
    assert code_of("int a;\n  // tile\nint b;\n") == code_of("int a;\nint b;\n")
    assert code_of("int a;\nint b;\n") != code_of("int a;\nint c;\n")


@pytest.mark.proof
def test_a_lab_that_a_kernel_crashes_begins_again() -> None:
    """One kernel ends the process, another spoils its GPU: both are known, the rest is timed."""
    runner = RemoteRunner(partial(fakes.FragileRunner, frozenset({4, 7})))
    try:
        assert runner.device_info == fakes.HERE
        found = runner.time([candidate(number) for number in (2, 4, 6, 7, 8)], rounds=1)
        assert [reading.number for reading in found] == [2, 4, 6, 7, 8]
        lost = {r.number: r.finding for r in found if r.finding is not None}
        assert {number: f.status for number, f in lost.items()} == {4: "crashed", 7: "crashed"}
        assert lost[4].reason == "the GPU's process ended"
        assert lost[7].reason == "RuntimeError: cudaErrorIllegalAddress"
        assert all(reading.ms for reading in found if reading.finding is None)
    finally:
        runner.end()


@pytest.mark.proof
def test_a_kernel_that_never_ends_is_given_up() -> None:
    runner = RemoteRunner(partial(fakes.FragileRunner, frozenset(), frozenset({5})), patience=4.0)
    try:
        assert runner.device_info
        (found,) = runner.time([candidate(5)], rounds=1)
        assert found.finding is not None and "no answer within 4 s" in found.finding.reason
        assert runner.check([candidate(6)]) == (None,)
    finally:
        runner.end()


def no_gpu() -> fakes.FakeRunner:
    raise CannotCheck("this machine has no NVIDIA GPU, so no kernel can be launched")


@pytest.mark.proof
def test_a_lab_that_cannot_be_says_why() -> None:
    runner = RemoteRunner(no_gpu)
    with pytest.raises(CannotCheck, match="has no NVIDIA GPU"):
        print(runner.device_info)
    runner.end()


def refused(text: str) -> None:
    compile_source(Source(text))


def test_a_refused_schedule_is_an_error_here_and_ends_no_process() -> None:
    with Workers(1) as workers:
        pool = workers.pool
        with pytest.raises(ScheduleError, match="does not divide") as raised:
            workers.result(workers.submit(refused, "tile m=32 n=32 k=8\nregister_block m=5 n=4\n"))
        assert (raised.value.line, raised.value.hint) == (2, raised.value.mistakes[0].hint)
        assert workers.result(workers.submit(double, 4)) == 8 and workers.pool is pool
