"""A schedule of warpgroups as a plan: the form that the cost model estimates."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.explore.request import Request
from gemmgen.explore.suggest.warpgroup_plan import WarpgroupForm, WarpgroupPlan
from gemmgen.explore.suggest.warpgroup_plans import sizes_of
from gemmgen.explore.warpgroup_cost import ATOM_BYTES, HELD
from gemmgen.schedule.model import Directive, Schedule

COOPERATIVE = (None, "together", "cooperative")
"""The orders of consumers that share each tile."""
NARROWEST = 8
"""The number of columns of a tile is a multiple of this."""


def plan_of(schedule: Schedule, request: Request) -> WarpgroupPlan | None:
    """The plan whose sizes are those of ``schedule``; None if it does not use wgmma, or has a
    tile or a cluster that the model does not cover."""
    stated = {x.name: x for x in schedule.directives if x.name != "double_buffer"}
    asked, rows_of = request, _word(stated, "tensor_core", "rows")
    swapped = rows_of == request.letters[1]
    request = request.exchanged if swapped else request
    m, n, k = request.letters
    a, _, c = (request.access[role].tensor for role in "abc")
    tile = _sizes(stated, "tile", m, n, k)
    along = _sizes(stated, "cluster", m, n)
    if _word(stated, "tensor_core", "via") != "wgmma" or not tile[2]:
        return None
    if _word(stated, "decompose", "into") != request.terms:
        return None
    cluster = max(1, along[0]), max(1, along[1])
    if cluster[0] * cluster[1] not in HELD or tile[1] % NARROWEST:
        return None
    pingpong = _word(stated, "warp_specialize", "order") not in COOPERATIVE
    (rows,) = _sizes(stated, "warp_tile", m)
    consumers = 2 if pingpong else max(1, tile[0] // (rows or tile[0]))
    (parts,) = _sizes(stated, "split_k", "parts")
    sides = tile[0], tile[1], tile[2]
    form = WarpgroupForm(sides, consumers, pingpong, cluster, max(1, parts), swapped)
    copied = stated["async_copy"].operands if "async_copy" in stated else ()
    swizzled = stated["swizzle"].operands if "swizzle" in stated else ()
    sizes = sizes_of(
        form,
        request,
        persistent="persistent" in stated,
        staged=any(x.tensor == c for x in copied),
        stages=_stages(schedule, a) or 2,
        slices=_stages(schedule, c) or 1,
        plain=all(x.tensor != c for x in swizzled),
    )
    if sizes.atom_columns * ATOM_BYTES != tile[2] * sizes.item[0] or sizes.atom_columns == 0:
        return None
    return WarpgroupPlan(form, asked, replace(sizes, producer="warp_specialize" in stated))


def _stages(schedule: Schedule, tensor: str) -> int:
    """The tiles of a tensor in shared memory; 0 if no ``double_buffer`` names it, 1 where a
    thread's registers alone hold two."""
    for directive in schedule.directives:
        if directive.name == "double_buffer":
            for operand in directive.operands:
                if operand.tensor == tensor and operand.hop in (None, "shared"):
                    return _size(directive, "stages") or 2
    return 0


def _sizes(stated: dict[str, Directive], name: str, *arguments: str) -> tuple[int, ...]:
    """Arguments of a directive, 0 where one is left out."""
    directive = stated.get(name)
    return tuple(0 if directive is None else _size(directive, x) for x in arguments)


def _size(directive: Directive, name: str) -> int:
    found = directive.argument(name)
    return found.value if found is not None and isinstance(found.value, int) else 0


def _word(stated: dict[str, Directive], name: str, argument: str) -> str | None:
    directive = stated.get(name)
    found = directive.argument(argument) if directive else None
    return str(found.value) if found else None
