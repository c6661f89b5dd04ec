"""Accesses of global and of shared memory as tables, and what pads would change."""

from __future__ import annotations

from gemmgen.analyze.explain import Traffic
from gemmgen.analyze.pads import PadChoice
from gemmgen.analyze.section import Section
from gemmgen.analyze.transactions import SECTOR
from gemmgen.ir.dtypes import BYTES, DType

JOINED = (
    "compiled: the compiler merges adjacent reads into wide ones, which are what the hardware "
    "counts"
)

BOXES = "box: TMA moves them, without requests of warps"


def _widths(traffic: Traffic) -> str:
    return "/".join(str(width) for width in traffic.widths) or "box"


def _each(ratio: float) -> str:
    """A figure per request; empty for TMA boxes, which have no requests."""
    return f"{ratio:.2f}" if ratio else "-"


def global_memory(traffic: list[Traffic], types: dict[str, DType]) -> Section:
    """Accesses of global memory; ``types`` are those of the buffers."""
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


def shared_memory(traffic: list[Traffic], joined: tuple[Traffic, ...]) -> Section:
    """Accesses of shared memory, as written and as the compiler has joined them."""
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


def pads_tried(pads: tuple[PadChoice, ...]) -> Section:
    """The bank conflicts of each tile, now and with the best pad."""
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
    """The result of the search for a pad or a swizzle, in words."""
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
