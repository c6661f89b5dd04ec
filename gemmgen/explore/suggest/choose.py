"""The choice of a schedule: the fastest measured one, or a form and a number of splits along K with
the least estimated time.

Over 300 lines: the steps of one choice, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from math import ceil, inf

from gemmgen.base.errors import ScheduleError, UsageError
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.base.units import duration
from gemmgen.explore.cost import Kind
from gemmgen.explore.request import Request
from gemmgen.explore.results.results_store import Results
from gemmgen.explore.suggest.acceptance import accepts
from gemmgen.explore.suggest.forms import forms
from gemmgen.explore.suggest.measured_plans import (
    MeasuredPlan,
    at_the_shape,
    near_on_like_gpus,
    near_the_shape,
    of_the_other_halves,
    on_like_gpus,
)
from gemmgen.explore.suggest.order_family import family_of
from gemmgen.explore.suggest.reasons import as_comments, reasons
from gemmgen.explore.suggest.schedules import GROUPED, Form, SettledForm, groups_of
from gemmgen.explore.suggest.sizes import blocks_of, estimates, residents, shared_of
from gemmgen.explore.suggest.warpgroup_plan import WarpgroupPlan
from gemmgen.explore.suggest.warpgroup_ranking import fastest
from gemmgen.ir.target import TARGETS
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.schedule.formatting import format_gemm, format_schedule
from gemmgen.schedule.model import Schedule

PARTS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 64, 96, 128, 192, 256)
"""Splits of k that are tried, in addition to those that fill the GPU."""
PAIRED = 6
"""From this many parts on, even numbers of them may be reduced in two groups."""
STEPS = 2
"""The fewest steps of k in a part."""
OVER = 2
"""The most blocks of a split launch, in waves."""
LARGE = 64 * 64
"""Elements of a tile from which on loading through registers pays."""
SMALL = 16
"""The side of a tile that may be longer than any matrix."""
PAIR = 2
"""Blocks per multiprocessor that emitted kernels ask for by default, if their arrays fit."""
RASTER = 2
"""Waves from which on the order of the blocks affects L2 hits."""


TRIED = 12
"""The most schedules for warpgroups that are compiled to find a legal one."""

FEW = 4
"""Rows or columns up to which lanes that split K may be faster than tensor cores."""


@record
class Option:
    """A plan and its estimated seconds; ``measured``: the result that it is, or is estimated
    from."""

    plan: SettledForm | WarpgroupPlan
    seconds: float
    measured: MeasuredPlan | None = None

    def emitted(self) -> Emitted | None:
        """The kernel, None for a stale result; raises ``ScheduleError`` for an illegal plan."""
        if self.measured is not None:
            return self.measured.emitted()
        return compile_source(Source(self.plan.text))


@record
class MeasuredOption:
    """A measured schedule that is not a plan of the cost model, and its seconds."""

    plan: MeasuredPlan
    seconds: float

    @property
    def measured(self) -> MeasuredPlan:
        return self.plan

    def emitted(self) -> Emitted | None:
        return self.plan.emitted()


def _of_result(plan: MeasuredPlan, seconds: float) -> Option | MeasuredOption:
    form = plan.as_form()
    return MeasuredOption(plan, seconds) if form is None else Option(form, seconds, plan)


@record
class Suggestion:
    """``chosen`` among measured results and ``options``; ``emitted`` is its kernel."""

    request: Request
    chosen: Option | MeasuredOption
    options: tuple[Option, ...]
    emitted: Emitted

    def __repr__(self) -> str:
        r = self.request
        about = f"{format_gemm(r.problem.gemm)} at {'x'.join(map(str, r.shape))} on {r.gpu.name}"
        measured = self.chosen.measured
        how = "measured" if measured is not None and measured.exact else "estimated"
        return f"<Suggestion for {about}: {duration(self.chosen.seconds)}, {how}>"

    def __str__(self) -> str:
        """The text, without a last line end: it is a schedule file."""
        return self.text.removesuffix("\n")

    @property
    def resident_blocks(self) -> int:
        """Blocks that the GPU runs at once."""
        plan = self.chosen.plan
        held = plan.sizes.resident if isinstance(plan, WarpgroupPlan) else residents(self.settled)
        return self.request.gpu.sms * held

    @property
    def settled(self) -> SettledForm:
        """The plan, of threads or warps."""
        assert isinstance(self.chosen.plan, SettledForm)
        return self.chosen.plan

    @property
    def blocks(self) -> int:
        plan = self.chosen.plan
        return plan.blocks if isinstance(plan, WarpgroupPlan) else blocks_of(self.settled)

    @property
    def schedule(self) -> Schedule:
        """The schedule as a value."""
        return self.emitted.schedule

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """A sentence or two for each decision."""
        return tuple(reasons(self))

    @cached_property
    def text(self) -> str:
        """The schedule in its canonical form, after a comment for each decision."""
        return as_comments(self.reasons) + format_schedule(self.schedule)


def choose(request: Request, *, measured: bool = True) -> Suggestion:
    """Return the fastest schedule measured at the request's shape, on its GPU or a like one.

    Without one, or with ``measured=False``, return the schedule with the least estimated time.
    Raises ``UsageError`` if there is none.
    """
    results = Results.shared() if measured else None
    known = at_the_shape(request, results) if results else None
    if known is not None:
        plan, emitted = known
        return Suggestion(request, _of_result(plan, plan.result.seconds), (), emitted)
    for plan, seconds in on_like_gpus(request, results) if results else ():
        emitted = plan.emitted() if plan.terms == request.terms else None
        if emitted is not None:
            return Suggestion(request, _of_result(plan, seconds), (), emitted)
    near: list[Option | MeasuredOption] = []
    if results:
        near += [_of_result(*each) for each in near_the_shape(request, results)]
        near += [_of_result(*each) for each in of_the_other_halves(request, results)]
        near += [_of_result(*each) for each in near_on_like_gpus(request, results)]
    refusal: ScheduleError | None = None
    for ranking in (ranked, _by_time):
        found = ranking(request)
        for option in sorted((*near, *found), key=lambda option: option.seconds):
            try:
                emitted = option.emitted()
            except ScheduleError as error:
                refusal = refusal or error
                continue
            if emitted is not None and accepts(emitted, request):
                return Suggestion(request, option, tuple(found), emitted)
    why = refusal.message if refusal else "no form fits on a multiprocessor"
    types = ", ".join(dict.fromkeys(request.dtype[role] for role in "abc"))
    raise UsageError(f"there is no schedule for {types} on {request.gpu.name}: {why}")


def ranked(request: Request) -> list[Option]:
    """The options, fastest first.

    If wgmma is available it is the fastest except for few rows or columns, and nothing else is
    estimated, since the two models were fitted separately.  Split-bf16 f32 kernels compete with
    all f32 kernels.
    """
    family = family_of(request)
    if family is not None and not family.warpgroups:
        return _by_time(request)
    of_warpgroups = [Option(plan, plan.seconds) for plan in fastest(request, TRIED)]
    if family is not None:
        return of_warpgroups
    if not of_warpgroups:
        return _by_time(request)
    others: Iterable[Option] = ()
    if request.terms:
        others = options(request)
    elif min(request.shape[:2]) <= FEW:
        others = options(request, only="lanes")
    return sorted((*of_warpgroups, *others), key=lambda option: option.seconds)


def _by_time(request: Request) -> list[Option]:
    """The options of threads and warps, fastest first."""
    return sorted(options(request), key=lambda option: option.seconds)


def options(request: Request, only: Kind | None = None) -> Iterator[Option]:
    """Each plan of threads or warps that fits, or those of one kind, with its estimate."""
    family = family_of(request)
    for form in forms(request):
        if only not in (None, form.kind) or not (family or _near(form, request)):
            continue
        if family is not None and form.kind not in family.kinds:
            continue
        plain = SettledForm(form, request)
        plain = replace(plain, exact=plain.divides)
        plans = [plain]
        if _may_go_through(plain):
            early = replace(form, stages=2)
            plans.append(replace(plain, form=early, through=True))
        for vector in _vectors(plain):
            other = replace(plain, vector=vector)
            if other.text not in (plan.text for plan in plans):
                plans.append(other)
        for plan in plans:
            for split, resident, estimate in estimates(_split(plan)):
                if estimate < inf:
                    yield Option(_bounded(_rastered(split, resident), resident), estimate)


def _vectors(plan: SettledForm) -> tuple[int, ...]:
    """Narrower vectors of the micro-tile, for rows of C that are not stored 16 bytes at a time."""
    if plan.form.kind != "block":
        return ()
    if plan.load("c") == 1 and not plan.form.blocks:
        return (2, 1)
    return (2,) if plan.load("c") < 4 else ()


def _may_go_through(plan: SettledForm) -> bool:
    """Whether copies through registers may pay: both tiles are transposed, wide and large."""
    transposed = [role for role in plan.staged if plan.transposed(role)]
    wide = all(plan.request.width[role] > 1 for role in transposed)
    return len(transposed) == 2 and wide and plan.form.tile[0] * plan.form.tile[1] >= LARGE


def _near(form: Form, request: Request) -> bool:
    """Whether the tile's sides are at most twice the matrix's, or small."""
    sides = zip(form.tile[:2], request.shape[:2], strict=True)
    return all(tile <= max(SMALL, 2 * size) for tile, size in sides)


def _split(plan: SettledForm) -> Iterator[SettledForm]:
    """A plan without and with split-K; a plan with ``blocks`` has no registers for the
    reduction."""
    yield plan
    if plan.request.problem.same_bits or plan.form.kind in ("lanes", "direct") or plan.form.blocks:
        return
    tiles, sms = blocks_of(plan), plan.request.gpu.sms
    most = OVER * sms * residents(plan) // tiles
    steps = ceil(plan.request.shape[2] / plan.form.tile[2])
    full = {_grouped(sms * waves // tiles) for waves in (1, 2, 3, 4)}
    for parts in sorted({*PARTS, *full}):
        if 1 < parts <= min(most, steps // STEPS):
            yield replace(plan, parts=parts, groups=groups_of(parts))
            if PAIRED <= parts < GROUPED and parts % 2 == 0:
                yield replace(plan, parts=parts, groups=2)


def _grouped(parts: int) -> int:
    """The greatest number up to ``parts`` that is divisible by about its square root."""
    if parts < GROUPED:
        return parts
    return next(p for p in range(parts, 0, -1) if groups_of(p) ** 2 * 2 >= p)


def _bounded(plan: SettledForm, resident: int) -> SettledForm:
    """The plan with launch bounds for as many blocks as run at once: the reduction of parts would
    else take all registers."""
    if plan.form.kind != "block" or plan.parts == 1 or resident <= PAIR:
        return plan
    target = TARGETS[plan.request.problem.target]
    fit = min(
        resident,
        ceil(blocks_of(plan) / plan.request.gpu.sms),
        target.all_shared // (shared_of(plan) + target.reserved),
    )
    return replace(plan, form=replace(plan.form, blocks=fit)) if fit > PAIR else plan


def _rastered(plan: SettledForm, resident: int) -> SettledForm:
    many = blocks_of(plan) > RASTER * plan.request.gpu.sms * resident
    return replace(plan, raster=8) if many and plan.form.kind in ("block", "tensor") else plan
