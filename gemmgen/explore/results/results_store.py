"""``Results``: the stored results of this user together with those that ship with gemmgen.

results = Results.open()
results.record(MeasuredResult.of(schedule, shape, MachineInfo.here(0), seconds))
found = results.best(ProblemKey.of(schedule, shape), "NVIDIA H200")
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from heapq import nsmallest
from pathlib import Path
from typing import TypeVar

from gemmgen.base import caches
from gemmgen.explore.results.database import Database, StoreError
from gemmgen.explore.results.freshness import stale
from gemmgen.explore.results.measured_result import MeasuredResult, ProblemKey
from gemmgen.explore.results.shipped_table import ShippedTable, shipped
from gemmgen.explore.results.store_path import path
from gemmgen.gpu.gpu_names import same_gpu
from gemmgen.ir.launch_shape import Shape

T = TypeVar("T")
READ_SECONDS = 0.25
"""How long a reader waits for a writer."""
MOST = 16
"""Results of one shape that are looked at."""


class Results:
    """Results by problem and GPU; no method fails because of the file.

    A file that can't be used is left out, and a warning says so once; ``database`` raises the
    error.  A GPU's name is that of its driver or of the table of products: results for one are
    found by the other.
    """

    def __init__(self, database: Database | None, table: ShippedTable | None) -> None:
        self.database, self._table = database, table

    @staticmethod
    def open() -> Results:
        """Those of this user's cache, and the shipped ones; no file is touched before use."""
        return _opened(path())

    @staticmethod
    def shared() -> Results:
        """The same, opened once in a process."""
        return _shared(path())

    def record(self, *results: MeasuredResult) -> bool:
        """Stores the results, all in one transaction, before it returns; False if it can't."""
        if self.database is None:
            if caches.enabled():
                _say(f"{_place()} can't be written, so no results are stored")
            return False
        database = self.database
        return self._try(lambda: database.record(results) or True, False)

    def exact(self, problem: ProblemKey, gpu: str) -> tuple[MeasuredResult, ...]:
        """The results at the problem's shape, fastest first, stale ones too; those with its pitches
        come before others.

        Runs differ in clock and power, so that results of several runs are compared by the share of
        the vendor's time in the same run, if all have one.
        """
        found: dict[str, MeasuredResult] = {}
        for source in self._sources():
            for name in self._try(lambda s=source: s.shapes(problem.text), {}):
                if same_gpu(name, gpu):
                    at = self._try(lambda s=source, n=name: s.fastest(problem, n, MOST), [])
                    for one in at:
                        found.setdefault(f"{one.problem.pitches} {one.schedule}", one)
        relative = all(x.vendor is not None for x in found.values())

        def rank(x: MeasuredResult) -> tuple[bool, float, str]:
            time = x.seconds / x.vendor if relative and x.vendor else x.seconds
            return x.problem.pitches != problem.pitches, time, x.schedule

        return tuple(sorted(found.values(), key=rank))

    def best(self, problem: ProblemKey, gpu: str) -> MeasuredResult | None:
        """The fastest result at the problem's shape that is not stale."""
        return next((x for x in self.exact(problem, gpu) if not stale(x)), None)

    def nearest(self, problem: ProblemKey, gpu: str, count: int) -> tuple[MeasuredResult, ...]:
        """The fastest results of the ``count`` nearest other shapes, stale ones too."""
        shapes = set[Shape]()
        for source in self._sources():
            known = self._try(lambda s=source: s.shapes(problem.text), {})
            shapes.update(*(known[name] for name in known if same_gpu(name, gpu)))
        shapes.discard(problem.shape)
        near = nsmallest(count, shapes, key=lambda shape: (problem.distance(shape), shape))
        keys = (ProblemKey(problem.text, shape, problem.pitches) for shape in near)
        return tuple(found[0] for key in keys if (found := self.exact(key, gpu)))

    def all(self) -> tuple[MeasuredResult, ...]:
        """All of them, by problem, GPU and shape, fastest first; shipped ones last."""
        return tuple(x for source in self._sources() for x in self._try(source.all, []))

    def _sources(self) -> Iterable[Database | ShippedTable]:
        return (x for x in (self.database, self._table) if x is not None)

    def _try(self, ask: Callable[[], T], otherwise: T) -> T:
        try:
            return ask()
        except StoreError as trouble:
            _say(f"{trouble}.  Measured results are left out")
            return otherwise


def _opened(where: Path | None) -> Results:
    return Results(Database(where, READ_SECONDS) if where else None, shipped())


_shared = lru_cache(4)(_opened)


def _place() -> str:
    try:
        return str(caches.location())
    except RuntimeError:
        return "the user's cache"


_said: set[str] = set()


def _say(trouble: str) -> None:
    if trouble not in _said:
        _said.add(trouble)
        warnings.warn(trouble, stacklevel=4)
