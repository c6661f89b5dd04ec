"""The resources of a block on a multiprocessor, and its least time, as tables."""

from __future__ import annotations

from gemmgen.analyze.explain import Explanation
from gemmgen.analyze.resources import Resources
from gemmgen.analyze.section import Section
from gemmgen.base.source import counted
from gemmgen.base.units import duration


def resources_table(e: Explanation) -> Section:
    """The resources of a block on a multiprocessor, and how the grid fills the GPU."""
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
            f"{counted(occupancy.blocks, 'block')} an SM{estimated}, limited by "
            f"{occupancy.limiter} ({limits}); "
            f"{occupancy.warps} of {occupancy.most_warps} warps, {occupancy.share:.0%}",
        ),
        (
            "waves",
            f"{waves.count} of {waves.per_wave} {waves.unit}; the last one is "
            f"{waves.last_fill:.0%} full, all together {waves.efficiency:.0%}",
        ),
    )
    return Section("resources", (), rows)


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


def roofline_table(e: Explanation) -> Section:
    """The bounds, the tightest first."""
    roofline, waves = e.roofline, e.waves
    most = -(-waves.blocks // waves.sms)
    rows = tuple(
        (
            bound.name,
            duration(bound.seconds, 4),
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
        f"an SM has up to {most} of the {waves.blocks:,} {waves.unit}, {e.balance:.0%} of that "
        "on average",
    )
    return Section("roofline", ("least time for", "", "at most", "", ""), rows, notes)
