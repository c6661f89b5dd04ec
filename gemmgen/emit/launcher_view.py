"""The launcher: the host's function that checks the arguments and launches the kernel."""

from __future__ import annotations

from functools import reduce

from gemmgen.emit.ctext import c_text
from gemmgen.emit.kernel_view import SHARED_BYTES
from gemmgen.emit.launcher_types import ElementTypes, as_bits
from gemmgen.emit.line_breaks import WIDTH, filled
from gemmgen.emit.parameter_list import parameter_rows
from gemmgen.emit.pre_pass_launches import pre_pass_view
from gemmgen.emit.printing import printed
from gemmgen.emit.tensor_maps import encoding_calls, enum_numbers, has_swizzles, maps_by_rank
from gemmgen.emit.views import View, fields_view
from gemmgen.ir import names
from gemmgen.ir.expr import Binary, BinaryOp, Call, Expr, Int, Select, Var, Wide
from gemmgen.ir.interface import Interface
from gemmgen.ir.launch_attribute import ATTRIBUTES
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.parameters import namespace
from gemmgen.ir.requirement import (
    Aligned,
    AtLeast,
    AtLeastBlocks,
    AtMost,
    Equal,
    MultipleOf,
    Requirement,
    Within,
)
from gemmgen.ir.simplify import wide_product
from gemmgen.ir.tensor_map import map_name

_COUNTED = {
    "clusters": ", and the clusters that this runs at a time",
    "multiprocessors": ", and the multiprocessors of this",
}
MATRIX_TILES = Var("matrix_tiles")
_ROOM = 88
"""Columns of a line of conditions."""


def launcher_view(kernel: LoweredKernel, types: ElementTypes) -> View:
    """What ``launcher.j2`` sees; ``types`` are those of its parameters."""
    interface, threads = kernel.interface, kernel.launch.block
    dynamic = interface.dynamic_shared > 0
    misaligned = _lines(_pointer_conditions(interface))
    batches = tuple(Var(name) for _, name in interface.batches)
    parts = (kernel.launch.parts,) if kernel.launch.parts else ()
    tiles = _chain("*", *_tiles(kernel), *([names.CLUSTER] if interface.cluster else []))
    every = Var("tiles" if interface.resident else "blocks")
    counted = (MATRIX_TILES if interface.resident else Var("tiles")) if batches else every
    extents = dict.fromkeys(interface.shaping())
    walking = [c_text(_walking_blocks(interface))] if interface.resident else []
    setup, calls = _setup(kernel), encoding_calls(kernel)
    attributes = [ATTRIBUTES[interface.attribute]] if interface.attribute else []
    alone = calls if not setup else []
    return {
        "name": interface.name,
        "namespace": namespace(interface.name),
        "parameters": launcher_rows(interface, types),
        "refused": _lines(_argument_conditions(interface)),
        "misaligned": [misaligned] if misaligned else [],
        "empty": c_text(_chain("||", *(Binary("==", Var(name), Int(0)) for name in extents))),
        "product": [interface.product] if interface.product else [],
        "counted": counted.name,
        "count": c_text(tiles if batches else _chain("*", tiles, *parts)),
        "most": c_text(
            _chain("/", Int(interface.most_tiles), *batches, *(parts if batches else ()))
        ),
        "times": [(every.name, c_text(_chain("*", counted, *batches, *parts)))] if batches else [],
        "walking": walking,
        "clustered": walking if interface.cluster else [],
        "kept": _kept(kernel, bool(setup)),
        "setup": setup,
        "only_call": alone if len(alone) == 1 else [],
        "first_call": alone[:1] if len(alone) > 1 else [],
        "other_calls": calls if setup else calls[1:],
        "checked": (*setup, *calls)[:1],
        "block": c_text(Call("dim3", threads) if len(threads) == 2 else threads[0]),
        "shared": c_text(SHARED_BYTES if dynamic else Int(0)),
        "attributes": list(map(fields_view, attributes)),
        "plain": range(not attributes),
        "encode": _encode(interface),
        "maps": maps_by_rank(interface),
        **pre_pass_view(interface),
        "arguments": _arguments(interface, types),
    }


def _setup(kernel: LoweredKernel) -> list[View]:
    """What a launch needs of the current device, which is asked once: calls, and what they count.

    Each is made if those before it succeeded.  The state is a thread's own, so it needs no lock.
    """
    interface = kernel.interface
    counted = _counted(interface)
    calls = ["allow_shared"] if interface.dynamic_shared > 0 else []
    calls += [f"count_{counted}"] if counted else []
    if not calls:
        return []
    return [
        {
            "calls": [printed(f"calls/{call}.j2", {"name": interface.name}) for call in calls],
            "counted": f", {counted} = 0" if counted else "",
        }
    ]


def _kept(kernel: LoweredKernel, asks: bool) -> list[str]:
    """What the launcher keeps from a thread's last launch, in words."""
    maps = ["its maps"] if kernel.interface.maps else []
    device = [f"its device{_COUNTED.get(_counted(kernel.interface), '')}"] if asks else []
    return [", ".join((*maps, *device))] if maps or device else []


def _counted(interface: Interface) -> str:
    """What a launch counts on its device to know how many blocks it needs."""
    if not interface.resident:
        return ""
    return "clusters" if interface.cluster else "multiprocessors"


def _encode(interface: Interface) -> list[str]:
    """The function that encodes a map, which may be swizzled if any is."""
    swizzled = has_swizzles(interface)
    view: View = {
        "swizzled": range(swizzled),
        "plain": range(not swizzled),
        "numbers": enum_numbers(interface),
    }
    return [printed("encode_map.j2", view)] if interface.maps else []


def _arguments(interface: Interface, types: ElementTypes) -> list[str]:
    """The launcher's variables that are the kernel's parameters."""
    maps = {one.parameter: f"{map_name(one.tensor)}.map" for one in interface.maps}
    return [
        maps[param.name] if param.kind == "map" else as_bits(param, types)
        for param in interface.kernel_params
    ]


def _walking_blocks(interface: Interface) -> Expr:
    """How many blocks walk over the tiles: as many as the GPU runs at a time, or one for each
    tile."""
    held: Expr = Var("multiprocessors")
    if interface.cluster:
        held = names.CLUSTER * Var("clusters")
    elif interface.resident > 1:
        held = interface.resident * held
    return Select(Binary("<", Var("tiles"), held), Var("tiles"), held)


def _chain(op: BinaryOp, first: Expr, *others: Expr) -> Expr:
    return reduce(lambda left, right: Binary(op, left, right), others, first)


def _tiles(kernel: LoweredKernel) -> list[Expr]:
    """How many tiles, or clusters, cover each extent, as 64-bit integers: none of their products
    wraps."""
    extents = [Var(name) for name, _ in kernel.interface.tiles]
    last = [extent - 1 for extent in extents]
    sizes: list[Expr] = [*kernel.launch.tiles]
    for at, name in enumerate(kernel.launch.cluster):
        if kernel.interface.cluster[at] > 1:
            sizes[at] = sizes[at] * name
    return [index / size + Wide(Int(1)) for index, size in zip(last, sizes, strict=True)]


def launcher_rows(interface: Interface, types: ElementTypes) -> list[list[str]]:
    """The launcher's parameters line by line; the stream is the last one."""
    *rows, last = parameter_rows(interface.params, 92, restrict=False, types=types)
    stream = printed("parameters/stream.j2", {})
    with_stream = [*last, stream]
    if len("    " + ", ".join(with_stream) + ")") <= WIDTH:
        return [*rows, with_stream]
    return [*rows, last, [stream]]


def _lines(conditions: list[Expr]) -> list[str]:
    """Conditions that must all be false, joined into as few lines as possible."""
    return [" || ".join(row) for row in filled(list(map(c_text, conditions)), " || ", _ROOM)]


def _argument_conditions(interface: Interface) -> list[Expr]:
    """When the launcher refuses its integer arguments."""
    extents = [Var(param.name) for param in interface.params if param.kind == "extent"]
    negative = [Binary("<", extent, Int(0)) for extent in extents]
    return [*negative, *(_broken(r) for r in interface.requirements if not isinstance(r, Aligned))]


def _pointer_conditions(interface: Interface) -> list[Expr]:
    """When the launcher refuses its pointers."""
    aligned = [(r.name, r.bytes) for r in interface.requirements if isinstance(r, Aligned)]
    aligned += [(p.name, p.align) for p in interface.scratch if p.align > 4]
    return [_indivisible(Call("address", (Var(name),)), size) for name, size in aligned]


def _broken(requirement: Requirement) -> Expr:
    match requirement:
        case AtLeast(name, bound):
            return Binary("<", Var(name), Var(bound))
        case AtLeastBlocks(name, bound, elements):
            return Binary("<", wide_product(Var(name), Int(elements)), Var(bound))
        case AtMost(name, bound):
            return Binary(">", Var(name), Int(bound))
        case MultipleOf(name, divisor):
            return _indivisible(Var(name), divisor)
        case Equal(name, other):
            return Binary("!=", Var(name), Var(other))
        case Within(name, least, most):
            below = Binary("<", Var(name), Int(least))
            return Binary("||", below, Binary(">", Var(name), Int(most)))
        case Aligned():
            raise AssertionError("pointers have their own conditions")


def _indivisible(number: Expr, divisor: int) -> Expr:
    return Binary("!=", number % divisor, Int(0))
