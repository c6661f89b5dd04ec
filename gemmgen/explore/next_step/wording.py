"""The conclusion of ``explain`` in words, and as plain values: how fast the schedule should be,
what bounds it, and the change that would help most."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from gemmgen.analyze.explain import Explanation
from gemmgen.analyze.figures import Json
from gemmgen.analyze.section import Section
from gemmgen.base.errors import ScheduleError, UsageError
from gemmgen.base.units import duration, significant
from gemmgen.explore.next_step.expected import Basis, ExpectedTime, speed, uses_wgmma
from gemmgen.explore.next_step.trying import GAIN, NextStep
from gemmgen.explore.request import Request
from gemmgen.explore.results.measured_result import terms_of
from gemmgen.explore.suggest import GEMM
from gemmgen.gpu.gpus import DEFAULT, GPUS
from gemmgen.ir.atoms import VIA
from gemmgen.ir.exprtext import format_expression
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.roles import batches

WIDTH = 92
"""Of a sentence's lines."""
NOTABLE = 1.05
"""From here on a bound is said to fall."""
NEAR = 1.25
"""Up to this many times its bound a kernel is limited by it; above that by what the bounds leave
out."""
NOTHING: dict[Basis, str] = {
    "measured": f"nothing known is faster: no measured schedule is faster by {GAIN:.0%} or "
    "more, and no change is predicted to be",
    "estimated": f"nothing known is faster: no single change is predicted to save {GAIN:.0%} of "
    "the time, and `gemmgen suggest` finds no schedule that is clearly faster",
    "bound": "unknown: no model covers this kernel, so changes cannot be compared",
}
"""The next step of a schedule that has none."""
FEW = 1.2
"""Gains below it are given in percent."""
IDLE = 0.9
"""The share of the SMs' time with a block below which the idle ones are named."""


def conclusion(
    e: Explanation, name: str, own: ExpectedTime, step: NextStep | None, *, tried: bool = True
) -> Section:
    """The first lines of a report; ``tried``: a next step was looked for."""
    rows = [*_rows("speed", _speed(e, own)), *_rows("bound", _bound(e, own))]
    if tried:
        rows += _rows("next", sentence(e, own, step))
        rows += [("", f"  {line}") for line in _schedule(step)]
    return Section(f"{name} on {e.gpu.name} ({e.gpu.arch})", (), tuple(rows))


def _rows(name: str, text: str) -> list[tuple[str, ...]]:
    """A sentence in lines."""
    first, *more = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    return [(name, first), *(("", line) for line in more)]


def _speed(e: Explanation, own: ExpectedTime) -> str:
    said = f"{speed(e, own.seconds)}, {duration(own.seconds)}"
    match own.basis:
        case "measured":
            return f"{said}: {own.source}"
        case "estimated":
            return f"about {said}: {own.source}; at most {speed(e, _least(e))}"
        case "bound":
            return f"at most {said}: {own.source}, so only this bound is known"


def _least(e: Explanation) -> float:
    return e.roofline.flops / e.attainable


def _bound(e: Explanation, own: ExpectedTime) -> str:
    """What the time goes into, as far as the bounds and the waves tell."""
    binding = e.roofline.binding
    said = f"{binding.name}: {duration(binding.seconds)} at least, for {binding.how}"
    if own.basis != "bound" and own.seconds > NEAR * binding.seconds:
        said += "; the rest is latency, synchronization and what does not overlap"
    if e.balance < IDLE:
        said += (
            f"; SMs are idle {1 - e.balance:.0%} of the time: {e.waves.blocks:,} "
            f"{e.waves.unit} on {e.waves.sms} SMs"
        )
    return said


def sentence(e: Explanation, own: ExpectedTime, step: NextStep | None) -> str:
    """``add `register_block m=8 n=16`: about 61.2 TFLOP/s, 1.4 times as fast; ...``."""
    if step is None:
        return NOTHING[own.basis]
    gain = f"{step.expected / 1e12:.1f} TFLOP/s, {_gain(step.expected / step.now)}"
    if step.suggestion is not None:
        units = step.suggestion.emitted.program.main.spread.atom
        new = units in VIA["wgmma"] and not uses_wgmma(e)
        what = "wgmma and TMA: " if new else ""
        measured = step.suggestion.chosen.measured
        about = "measured at" if measured is not None and measured.exact else "about"
        return f"{what}`{command(e)}` writes this schedule, {about} {gain}"
    return f"{_instead(e, step)}: about {gain}; {_falls(step)}"


def _gain(ratio: float) -> str:
    """``1.4 times as fast``, or ``4% faster``."""
    if ratio < FEW:
        return f"{ratio - 1:.0%} faster"
    return f"{significant(ratio, 2)} times as fast"


def _falls(step: NextStep) -> str:
    """What a change does to the bound."""
    if step.less is None:
        return f"{step.binding} is then not a bound"
    if step.less > NOTABLE:
        return f"the time for {step.binding} falls {step.less:.1f}x"
    return "less time is waited for, or fewer SMs are idle"


def _instead(e: Explanation, step: NextStep) -> str:
    """The statements, each added or in place of that with the same word."""
    here = {line.split()[0]: line for line in _lines(format_schedule(e.kernel.emitted.schedule))}
    replaced = [x for x in step.statements if x.split()[0] in ONE and x.split()[0] in here]
    added = [f"`{x}`" for x in step.statements if x not in replaced]
    changes = [f"`{x}` in place of `{here[x.split()[0]]}`" for x in replaced]
    return "; ".join(
        [
            *([f"write {', '.join(changes)}"] if changes else []),
            *([f"add {', '.join(added)}"] if added else []),
        ]
    )


ONE = ("tile", "register_block", "warp_tile", "bind", "raster", "split_k", "residue")
"""Statements that a schedule has at most once."""


def _lines(text: str) -> Iterator[str]:
    return (" ".join(line.split()) for line in text.splitlines())


def _schedule(step: NextStep | None) -> list[str]:
    """The lines of the schedule that replaces this one."""
    if step is None or step.suggestion is None:
        return []
    return format_schedule(step.suggestion.schedule).splitlines()


def command(e: Explanation) -> str:
    """The command that writes the schedule of ``suggest``."""
    schedule = e.kernel.emitted.schedule
    lines = {line.split()[0]: line for line in _lines(format_schedule(schedule.problem_alone))}
    parts = ["gemmgen suggest"]
    gemm = lines["gemm"].removeprefix("gemm ")
    if gemm != GEMM:
        parts.append(f'--gemm "{gemm}"')
    if "dtype" in lines:
        parts.append(f"--dtype {_dtype(e, gemm, lines['dtype'].removeprefix('dtype '))}")
    if schedule.epilogue is not None:
        parts.append(f'--epilogue "{format_expression(schedule.epilogue.expression)}"')
    extents = "x".join(map(str, e.shape[:3]))
    letters = zip(batches(schedule.gemm), e.shape[3:], strict=True)
    parts.append(f"--shape {','.join((extents, *(f'{x}={size}' for x, size in letters)))}")
    if e.gpu.name != DEFAULT:
        parts.append(f"--gpu {e.gpu.name if e.gpu.name in GPUS else 'FILE'}")
    if terms := terms_of(schedule):
        parts.append("--fast" if terms == "bf16" else f"--fast={terms}")
    return " ".join(parts)


def _dtype(e: Explanation, gemm: str, text: str) -> str:
    """One type, if it says the same; else the text after ``dtype``."""
    schedule = e.kernel.emitted.schedule
    dtype = dict(schedule.dtypes)[schedule.gemm.a.tensor]
    try:
        short = Request.of(gemm, e.shape, dtype=dtype, gpu=e.gpu).problem
    except (ScheduleError, UsageError):
        return f'"{text}"'
    return dtype if short.dtypes == schedule.dtypes else f'"{text}"'


def as_json(e: Explanation, own: ExpectedTime, step: NextStep | None) -> dict[str, Json]:
    """The conclusion and the next step, None if there is none."""
    return {
        "conclusion": {
            "seconds": own.seconds,
            "flops": e.roofline.flops / own.seconds,
            "basis": own.basis,
            "source": own.source,
            "binding": e.roofline.binding.name,
        },
        "next_step": (
            None
            if step is None
            else {
                "statements": list(step.statements),
                "binding": step.binding,
                "binding_falls_by": step.less,
                "expected_flops_now": step.now,
                "expected_flops": step.expected,
                "rewrite": step.rewrite,
                "schedule": "\n".join(_schedule(step)) or None,
                "attainable_flops": step.attainable,
            }
        ),
    }
