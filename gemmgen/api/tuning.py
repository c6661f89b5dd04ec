"""``gemmgen.tune``: search for fast schedules from Python.

import gemmgen

gemmgen.tune("space.sched", [2048]).text
print(gemmgen.tune(gemm="C[m, n] = A[m, k] * B[n, k]", dtype="bf16", shape=2048, budget=30))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast, overload

from gemmgen.api.kernels import Settings, fixed
from gemmgen.base.choices import check_choice, check_sequence
from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.base.source import Source, value_shown
from gemmgen.ir.decompositions import Fast
from gemmgen.ir.target import TARGETS
from gemmgen.schedule.extents import AnyShape, shape_of
from gemmgen.schedule.read import read_source

if TYPE_CHECKING:
    from gemmgen.explore.autotune.shape_tuning import ShapeResult, Tuning
    from gemmgen.explore.tune.tuner import Tuned
    from gemmgen.gpu.gpus import Gpu


@record
class Winner:
    """The result of a search; ``text`` is the fastest schedule, None if no point was right."""

    text: str | None
    tuned: Tuned

    def figures(self) -> Mapping[str, object]:
        """The figures of ``gemmgen tune --json``."""
        from gemmgen.explore.tune import winner

        return winner.as_json(self.tuned)


@record
class TunedShapes:
    """The result of ``tune(gemm=...)``; ``str`` is its table."""

    tuning: Tuning

    @property
    def results(self) -> tuple[ShapeResult, ...]:
        """The result at each shape, in order."""
        return tuple(self.tuning.results)

    @property
    def text(self) -> str | None:
        """The fastest schedule at the first shape, None if none was right."""
        return self.tuning.results[0].text

    def figures(self) -> Mapping[str, object]:
        """The figures of ``gemmgen tune --gemm --json``."""
        from gemmgen.explore.autotune import result_table

        return result_table.as_json(self.tuning)

    def __str__(self) -> str:
        from gemmgen.analyze.plain_text import plain
        from gemmgen.explore.autotune import result_table

        return plain(result_table.section(self.tuning))


@overload
def tune(
    space: str | Path,
    shapes: Sequence[AnyShape],
    *,
    seconds: float = 300.0,
    jobs: int | None = None,
    seed: int = 0,
    trials: str | Path | None = None,
    resume: bool = False,
    arch: str | None = None,
    set: Settings | None = None,
    store: bool = True,
) -> Winner: ...


@overload
def tune(
    *,
    gemm: str,
    shape: AnyShape | None = None,
    shapes: Sequence[AnyShape] = (),
    dtype: str = "f32",
    epilogue: str | None = None,
    ld: Mapping[str, int] | None = None,
    gpu: str | Path | Gpu | None = None,
    fast: Fast = False,
    same_bits: str | None = None,
    budget: float = 60.0,
    jobs: int | None = None,
    store: bool = True,
) -> TunedShapes: ...


def tune(
    space: str | Path | None = None,
    shapes: Sequence[AnyShape] = (),
    *,
    gemm: str | None = None,
    shape: AnyShape | None = None,
    dtype: str = "f32",
    epilogue: str | None = None,
    ld: Mapping[str, int] | None = None,
    gpu: str | Path | Gpu | None = None,
    fast: Fast = False,
    same_bits: str | None = None,
    budget: float = 60.0,
    store: bool = True,
    seconds: float = 300.0,
    jobs: int | None = None,
    seed: int = 0,
    trials: str | Path | None = None,
    resume: bool = False,
    arch: str | None = None,
    set: Settings | None = None,
) -> Winner | TunedShapes:
    """The fastest schedules of a product, or the fastest point of a search space, by measuring.

    With ``gemm`` (and what ``gemmgen.suggest`` takes) the search starts from stored results and
    ``suggest``'s ranking, for ``shape`` or each of ``shapes``, ``budget`` seconds in all; results
    are stored as they arrive, unless ``store`` is false.  Ctrl-C ends it with those so far.

    ``space`` is a schedule with sets (``tile m={64, 128}``), searched for ``seconds`` in all; its
    winner is stored.  ``trials`` names a file with a line for each trial, from which ``resume``
    continues.

    Raises ``ScheduleError`` for a mistake in the space or the problem, ``UsageError`` if no point
    is legal or an argument can't be used, ``CannotCheck`` without a GPU.
    """
    if space is not None and gemm is not None:
        raise UsageError("tune takes a search space or gemm=, not both: leave one of them out")
    if gemm is not None:
        _check_unused(trials=trials, resume=resume or None, arch=arch, set=set, seed=seed or None)
        wanted = [] if shape is None else [shape]
        wanted += cast(Sequence[AnyShape], check_sequence("shapes", shapes))
        return _tune_gemm(
            gemm, wanted, dtype, epilogue, ld, gpu, fast, same_bits, budget, jobs, store
        )
    if space is None:
        raise UsageError(
            'tune takes what to tune: gemm="C[m, n] = A[m, k] * B[n, k]" with shape=2048, or a '
            "search space"
        )
    if not (shape is epilogue is ld is gpu is same_bits is None) or fast:
        raise UsageError(
            "shape=, epilogue=, ld=, gpu=, same_bits= and fast= go with gemm=; a space takes "
            "shapes="
        )
    return _tune_space(
        space, shapes, seconds=seconds, jobs=jobs, seed=seed, trials=trials, resume=resume,
        arch=arch, set=set, store=store,
    )  # fmt: skip


def _check_unused(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"{name}= goes with a search space, not with gemm=: leave it out")


def _tune_space(
    space: str | Path,
    shapes: Sequence[AnyShape],
    *,
    seconds: float,
    jobs: int | None,
    seed: int,
    trials: str | Path | None,
    resume: bool,
    arch: str | None,
    set: Settings | None,
    store: bool,
) -> Winner:
    from gemmgen.explore.autotune.keeping import keep_winner
    from gemmgen.explore.tune.session import run
    from gemmgen.explore.tune.space import SearchSpace
    from gemmgen.explore.tune.winner import schedule_text

    if arch is not None:
        check_choice("arch", arch, TARGETS)
    if not check_sequence("shapes", shapes):
        raise UsageError("tune needs a shape, 4096 or (4096, 512, 1000) say")
    is_file = isinstance(space, Path) or space.endswith(".sched")
    source = read_source(str(space)) if is_file else Source(str(space))
    points = SearchSpace(source, fixed(set), arch)
    wanted = tuple(dict.fromkeys(shape_of(points.gemm, shape) for shape in shapes))
    path = None if trials is None else Path(trials)
    tuned = run(points, wanted, seconds=seconds, jobs=jobs, seed=seed, trials=path, resume=resume)
    if store:
        keep_winner(tuned)
    return Winner(schedule_text(tuned) if tuned.finals.winner else None, tuned)


def _tune_gemm(
    gemm: str,
    shapes: Sequence[AnyShape],
    dtype: str,
    epilogue: str | None,
    ld: Mapping[str, int] | None,
    gpu: str | Path | Gpu | None,
    fast: Fast,
    same_bits: str | None,
    budget: float,
    jobs: int | None,
    store: bool,
) -> TunedShapes:
    from gemmgen.explore.autotune.gpu_tuning import requests_of, tune_here
    from gemmgen.explore.autotune.keeping import keeper
    from gemmgen.explore.request import gemm_of
    from gemmgen.gpu.gpu_names import gpu_named
    from gemmgen.gpu.gpus import DEFAULT, Gpu

    if not shapes:
        raise UsageError("tune needs a shape: shape=(2048, 2304, 768), or several by shapes=")
    is_number = isinstance(budget, float | int)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not is_number or not 0 < budget < float("inf"):
        raise UsageError(f"budget={value_shown(budget)}: it is a number of seconds above 0, 60 say")
    if not isinstance(gemm, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"gemm= is a text, not {value_shown(gemm)}")
    line = gemm_of(gemm)
    sizes = [shape_of(line, shape) for shape in shapes]
    tuning = tune_here(
        lambda figures: requests_of(
            gemm, sizes, dtype, epilogue, ld, figures, fast=fast, same_bits=same_bits
        ),
        gpu if isinstance(gpu, Gpu) else gpu_named(DEFAULT if gpu is None else gpu),
        keeper(store),
        budget=budget,
        named=gpu is not None,
        jobs=jobs,
    )
    return TunedShapes(tuning)
