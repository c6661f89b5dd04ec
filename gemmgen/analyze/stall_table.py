"""Measured warp stalls as a table, or one line that says why nothing was measured."""

from __future__ import annotations

from gemmgen.analyze.section import Section
from gemmgen.base.errors import CannotCheck
from gemmgen.gpu import stalls
from gemmgen.ir.launch_shape import Shape, spelled
from gemmgen.pipeline import Emitted

MEANINGS = {
    "barrier": "the block's other warps, at a barrier",
    "branch_resolve": "the target of a branch",
    "dispatch_stall": "the dispatcher",
    "drain": "its stores, after its last instruction",
    "gmma": "wgmma",
    "imc_miss": "a constant that is not cached",
    "lg_throttle": "a place in the queue of global memory",
    "long_scoreboard": "global or local memory",
    "math_pipe_throttle": "a pipe of arithmetic",
    "membar": "a memory barrier",
    "mio_throttle": "a place in the queue of shared memory",
    "misc": "something else",
    "no_instruction": "its next instruction to be fetched",
    "not_selected": "none: another warp was issued",
    "selected": "nothing: it is issued",
    "short_scoreboard": "shared memory or special functions",
    "sleeping": "the end of its sleep",
    "tex_throttle": "a place in the queue of textures",
    "wait": "a fixed latency",
    "warpgroup_arrive": "the other warps of its warpgroup",
}
"""What a warp waits for, by ncu's name of the reason."""
LEAST = 0.005
"""Reasons with a smaller share are added up."""


def stall_table(emitted: Emitted, shape: Shape) -> Section | str:
    """The table of a launch at ``shape``, or the line."""
    try:
        found = stalls.measured(emitted, shape)
    except CannotCheck as why:
        return f"warp stalls were not measured: {why}"
    return table(found, shape)


def table(found: stalls.Stalls, shape: Shape) -> Section:
    """A row for each reason, the most first."""
    total = found.total
    shown = [stall for stall in found.reasons if stall.warps >= LEAST * total]
    rows = [_row(stall.reason, stall.warps, total) for stall in shown]
    rest = total - sum(stall.warps for stall in shown)
    if len(shown) < len(found.reasons):
        rows.append(("others", f"{rest:.2f}", f"{rest / total:.1%}", ""))
    title = f"warp stalls by reason, measured by ncu on {found.gpu} at {spelled(shape)}"
    note = f"a warp issues an instruction every {total:.1f} clocks, and waits in between"
    return Section(title, ("", "warps", "share", "waits for"), tuple(rows), (note,))


def _row(reason: str, warps: float, total: float) -> tuple[str, str, str, str]:
    return reason, f"{warps:.2f}", f"{warps / total:.1%}", MEANINGS.get(reason, "")
