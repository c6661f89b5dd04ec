"""An explanation in words and tables, as sections that any printer can lay out."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from gemmgen.analyze.explain import Explanation, Traffic
from gemmgen.analyze.operation_counts import Unfused
from gemmgen.analyze.pads import PadChoice
from gemmgen.analyze.resources import Resources, Waves
from gemmgen.analyze.shared_strips import SharedStrips
from gemmgen.analyze.transactions import SECTOR
from gemmgen.base.record import record
from gemmgen.base.source import counted
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.edit import copies

JOINED = (
    "compiled: the compiler joins reads of neighbours into wide ones, and these are what the "
    "hardware counts"
)

BOXES = "box: the copy engine moves them, and no warp has a request for it"


@record
class Section:
    """A table under a title; ``header`` may be empty.  ``notes`` are lines below it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def report(explanation: Explanation, name: str) -> tuple[Section, ...]:
    """``name`` is what the schedule is called."""
    shared = [t for t in explanation.traffic if t.counts.phases]
    sections = [
        _head(explanation, name),
        _formulas(explanation),
        _global([t for t in explanation.traffic if not t.counts.phases], _types(explanation)),
    ]
    if shared:
        sections += [_shared(shared, explanation.joined), _pads(explanation.pads)]
    return (*sections, _resources(explanation), _roofline(explanation))


def _types(e: Explanation) -> dict[str, DType]:
    return {p.name: p.dtype for p in e.kernel.lowered.interface.params}


def _head(e: Explanation, name: str) -> Section:
    m, n, k, *batches = e.shape
    problem = e.kernel.program.problem
    c, named = problem.c.name, zip(problem.letters, e.shape, strict=True)
    shape = " ".join(f"{letter}={size}" for letter, size in named)
    x, y = e.kernel.lowered.interface.block
    useful = prod(e.shape) / e.fmas
    of_each = f", {' x '.join(map(str, batches))} matrices" if batches else ""
    rows = [
        ("shape", f"{shape}: {c} is {m} x {n}{of_each}, K = {k}; beta = {e.beta:g}"),
        ("work", f"{e.roofline.flops:,} operations (2 a multiply-add)"),
        *_operations(e),
        ("launch", f"{e.waves.launched:,} blocks of {x} x {y} threads{_walk(e.waves)}"),
    ]
    if e.shared is not None:
        rows.append(("order", _order(e, e.shared)))
    if e.kernel.lowered.interface.overlaps:
        rows.append(
            ("", "they may begin before the kernel in front has ended, and wait for its end")
        )
    rows += [("L2", f"{name} is the {when} to leave the cache") for name, when in _hints(e)]
    parts = e.kernel.lowered.interface.parts
    if parts > 1:
        rows.append(
            ("parts", f"{parts} blocks share each tile of {c}, and leave their sums to one")
        )
    if useful < 1:
        rows.append(
            ("ragged edges", f"{useful:.1%} of the multiply-adds are of {c}, the rest padding")
        )
    return Section(f"{name} on {e.gpu.name} ({e.gpu.arch})", (), tuple(rows))


def _walk(waves: Waves) -> str:
    """How many tiles each persistent block computes."""
    if not waves.walked:
        return ""
    most, least = -(-waves.blocks // waves.launched), waves.blocks // waves.launched
    share = f"{least}" if least == most else f"{least} or {most}"
    return f", each of which walks over {share} of the {waves.blocks:,} tiles"


def _hints(e: Explanation) -> Iterator[tuple[str, str]]:
    """The operands whose copies have a hint for the L2 cache."""
    for copy in copies(e.kernel.program.main):
        if copy.evict != "normal":
            yield copy.src, copy.evict


def _order(e: Explanation, shared: SharedStrips) -> str:
    """What the blocks of a wave share."""
    at_once, problem = min(e.waves.per_wave, e.waves.blocks), e.kernel.program.problem
    return (
        f"{at_once:,} blocks at once read {shared.a:.1f} strips of {problem.a.name} and "
        f"{shared.b:.1f} of {problem.b.name} on average, {shared.a + shared.b:.1f} in all; "
        f"row by row {shared.row_by_row:.1f}"
    )


def _operations(e: Explanation) -> Iterator[tuple[str, str]]:
    """The operations one by one, and what C would be read and written without fusion."""
    work, problem, depth = e.operations, e.kernel.program.problem, e.shape[2]
    a, b, c = problem.a.name, problem.b.name, problem.c.name
    yield (
        "",
        f"{work.product:,} = {work.product_formula} of {a} {b}: {depth} multiplications and "
        f"{depth - 1} additions for an element of {c}",
    )
    if work.epilogue:
        yield (
            "",
            f"{work.epilogue:,} = {work.epilogue_formula} more for {work.expression}: "
            f"{work.spelled}; in all {work.total:,} = {work.formula}",
        )
    if e.unfused is not None:
        yield ("fusion", saved_by_fusion(e.unfused, c))


def saved_by_fusion(unfused: Unfused, c: str) -> str:
    """What the epilogue's operations would read and write in kernels of their own."""
    half, names = unfused.elements // 2, ", ".join(unfused.names)
    one = f"{half // unfused.kernels:,}"
    each = "" if unfused.kernels == 1 else f"; one kernel for all of them {one} and {one}"
    return (
        f"elementwise kernels ({names}) would add {half:,} reads and {half:,} writes of {c}, "
        f"{unfused.bytes / 1e6:,.1f} MB{each}"
    )


def _formulas(e: Explanation) -> Section:
    rows = tuple(
        (f.name, f"{f.counted:,}", f.text, f"{f.value:,.0f}", f"{f.ratio:.3f}") for f in e.formulas
    )
    return Section(
        "elements, counted thread by thread", ("", "counted", "formula", "", "ratio"), rows
    )


def _widths(traffic: Traffic) -> str:
    return "/".join(str(width) for width in traffic.widths) or "box"


def _each(ratio: float) -> str:
    """Of a request; a box has none."""
    return f"{ratio:.2f}" if ratio else "-"


def _global(traffic: list[Traffic], types: dict[str, DType]) -> Section:
    used: dict[DType, None] = dict.fromkeys(types[t.buffer] for t in traffic)
    each = [f"{SECTOR // BYTES[dtype]} elements of {dtype}" for dtype in used]
    per_sector = "8 elements" if set(used) <= {"f32"} else ", ".join(each)
    rows = tuple(
        (
            t.name,
            _widths(t),
            f"{t.counts.elements:,}",
            f"{t.counts.requests:,}",
            f"{t.counts.sectors:,}",
            _each(t.counts.sectors_per_request),
            f"{t.counts.elements / t.counts.sectors:.2f}",
        )
        for t in traffic
    )
    header = ("", "width", "elements", "requests", "sectors", "sectors/request", "elements/sector")
    note = f"a request is one access of a warp; a sector is 32 bytes, {per_sector}"
    boxes = (BOXES,) if any(not t.widths for t in traffic) else ()
    return Section("global memory", header, rows, (note, *boxes))


def _shared(traffic: list[Traffic], joined: tuple[Traffic, ...]) -> Section:
    named = [(t.name, t) for t in traffic] + [(f"{t.name}, compiled", t) for t in joined]
    rows = tuple(
        (
            name,
            _widths(t),
            f"{t.counts.elements:,}",
            f"{t.counts.requests:,}",
            f"{t.counts.wavefronts:,}",
            _each(t.counts.wavefronts_per_request),
            "none" if not t.counts.conflicts else f"{t.counts.ways}-way",
            f"{t.counts.wavefronts / t.counts.phases:.2f}",
        )
        for name, t in named
    )
    header = ("", "width", "elements", "requests", "wavefronts", "wavefronts/request")
    header += ("conflicts", "wavefronts/phase")
    notes = (
        "phases: a warp's access of 4 bytes is one, of 8 two half warps, of 16 four quarter warps",
        *((JOINED,) if joined else ()),
    )
    return Section("shared memory", header, rows, notes)


def _pads(pads: tuple[PadChoice, ...]) -> Section:
    rows = tuple(
        (
            p.buffer,
            p.now.layout if p.now.swizzle else f"by={p.now.pad}",
            f"{p.now.wavefronts / p.now.phases:.2f}",
            f"by={p.best.pad}",
            f"{p.best.wavefronts / p.best.phases:.2f}",
            pad_verdict(p),
        )
        for p in pads
    )
    header = ("tile", "pad now", "wavefronts/phase", "best pad", "wavefronts/phase", "")
    return Section("pads, over the tile's stores and reads as written", header, rows)


def pad_verdict(choice: PadChoice) -> str:
    """What the search for a pad or a swizzle came to, in words."""
    wide = f" that keeps rows {choice.width} elements wide" if choice.width > 1 else ""
    now, best, swizzled = choice.now, choice.best, choice.swizzled
    if not now.excess:
        return "no conflicts"
    if not best.excess:
        also = f"; so does {swizzled.layout}" if swizzled and not swizzled.excess else ""
        return f"{best.layout} removes the {now.ways}-way conflicts{also}"
    if swizzled and swizzled.excess < best.excess:
        if not swizzled.excess:
            return f"{swizzled.layout} removes the {now.ways}-way conflicts, no pad{wide} does"
        return f"{swizzled.layout} is the best; {swizzled.ways}-way conflicts remain"
    if best.excess == now.excess:
        return f"{now.ways}-way conflicts, and no pad{wide} does better"
    return f"{best.layout} is the best{wide}; {best.ways}-way conflicts remain"


def _resources(e: Explanation) -> Section:
    used, occupancy, waves = e.resources, e.occupancy, e.waves
    code = ", ".join(f"{count} {name}" for name, count in used.instructions)
    estimated = " by the estimate" if used.estimated else ""
    limits = ", ".join(f"{name} {count}" for name, count in occupancy.limits)
    rows = (
        ("threads", f"{used.threads} a block"),
        ("shared memory", f"{used.shared:,} bytes a block"),
        ("registers", registers_line(used)),
        *((("code", code),) if code else ()),
        ("main loop", _loop(used)),
        (
            "occupancy",
            f"{occupancy.blocks} blocks an SM{estimated}, limited by {occupancy.limiter} "
            f"({limits}); "
            f"{occupancy.warps} of {occupancy.most_warps} warps, {occupancy.share:.0%}",
        ),
        (
            "waves",
            f"{waves.count} of {waves.per_wave} {_units(waves)}; the last one is "
            f"{waves.last_fill:.0%} full, all together {waves.efficiency:.0%}",
        ),
    )
    return Section("resources", (), rows)


def _units(waves: Waves) -> str:
    return "tiles" if waves.walked else "blocks"


def registers_line(used: Resources) -> str:
    """Registers and spills, and the compiler that reports them."""
    if used.estimated:
        return (
            f"about {used.registers} a thread, estimated from its arrays (+- 25%): {used.unknown}"
        )
    spills = "no spills"
    if used.spills:
        spills = f"spills {used.spill_stores} bytes of stores + {used.spill_loads} of loads"
    return f"{used.registers} a thread, {spills} ({used.compiler})"


def _loop(used: Resources) -> str:
    """The compiled loop over k tiles: how much of it computes, and the register reuse cache."""
    loop = used.loop
    if loop is None:
        return f"not available: {used.unread}"
    return (
        f"{loop.count:,} {loop.arithmetic} and {loop.others:,} other instructions "
        f"({loop.overhead:.0%}), {loop.code / 1024:.0f} KiB; {loop.reuse:.0%} of the "
        f"{loop.arithmetic} mark an operand .reuse, {loop.operands:.0%} of the operands; "
        f"{counted(loop.conflicts, 'register bank conflict')}"
    )


def _roofline(e: Explanation) -> Section:
    roofline, waves = e.roofline, e.waves
    most = -(-waves.blocks // waves.sms)
    rows = tuple(
        (
            bound.name,
            f"{bound.seconds * 1e6:,.1f} us",
            f"{roofline.flops / bound.seconds / 1e12:,.1f} TFLOP/s",
            "binds" if bound is roofline.binding else "",
            bound.how,
        )
        for bound in sorted(roofline.bounds, key=lambda b: -b.seconds)
    )
    notes = (
        f"intensity: {roofline.intensity:,.1f} operations a byte of device memory; above "
        f"{roofline.ridge:.1f} memory does not bound",
        f"attainable: {roofline.attainable / 1e12:.1f} TFLOP/s by {roofline.binding.name}, "
        f"{roofline.attainable / roofline.peak:.0%} of {roofline.peak / 1e12:.1f}; "
        f"{e.attainable / 1e12:.1f} where an SM has {most} of the {waves.blocks:,} {_units(waves)}",
    )
    return Section("roofline", ("least time for", "", "at most", "", ""), rows, notes)
