"""Lowering of whole kernels: arrays, placement, and each operation in its turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from gemmgen.ir import names
from gemmgen.ir.atoms import Holding
from gemmgen.ir.barriers import BarrierArray
from gemmgen.ir.buffers import Role, Space
from gemmgen.ir.control import AdvanceRing, Assign, Block, Break, Define, For, If
from gemmgen.ir.edit import has_fragments, output_of, staged_copies
from gemmgen.ir.expanded import ExpandedKernel, ExpandedProgram, OneThread, Release, Tiles, Timed
from gemmgen.ir.expr import Binary, Element, Expr, Int, Var
from gemmgen.ir.instruction import Instruction, instruction
from gemmgen.ir.interface import Interface
from gemmgen.ir.lowered import LaunchNames, LoweredKernel, LoweredProgram
from gemmgen.ir.nodes import Init, Program, Promote
from gemmgen.ir.occupancy import blocks_per_multiprocessor
from gemmgen.ir.simplify import less, mod, simplify
from gemmgen.ir.target import WARP
from gemmgen.ir.thread_code import Node
from gemmgen.ir.traversal import inside
from gemmgen.ir.warp_roles import WarpRole, WarpRoles
from gemmgen.lower import (
    async_copies,
    box_stores,
    boxes,
    copies,
    epilogue_store,
    lanes,
    matrix_stores,
    mma,
    promoted_accumulators,
    scale_fragments,
    split,
    threads,
    wgmma,
    wmma,
)
from gemmgen.lower.constants import constants_of
from gemmgen.lower.context import PARTS, THREADS, Context, Lowering, LowerNode, X
from gemmgen.lower.grid_wait import waiting
from gemmgen.lower.placement import of_block, of_thread, walk, without_unused
from gemmgen.lower.shared_arrays import shared_arrays, static_or_dynamic
from gemmgen.lower.signature import interface_of
from gemmgen.lower.split_planes import launch, pre_pass_of
from gemmgen.lower.static_asserts import static_asserts_of
from gemmgen.lower.tensor_maps import maps
from gemmgen.lower.thread_map import thread_maps
from gemmgen.lower.types import in_double, number


def lower(expanded: ExpandedProgram) -> LoweredProgram:
    """One thread's code of every kernel."""
    program = expanded.program
    kernels = tuple(
        _with_pre_passes(_kernel(_context(program, kernel))) for kernel in expanded.kernels
    )
    return LoweredProgram(kernels, _temporaries(program))


def _context(program: Program, kernel: ExpandedKernel) -> Context:
    return Context(program, kernel, LOWERINGS[kernel.kernel.spread.holding])


def _temporaries(program: Program) -> tuple[str, ...]:
    if len(program.kernels) == 1:
        return ()
    return (output_of(program.main),)


def _kernel(context: Context) -> LoweredKernel:
    shared = shared_arrays(context)
    body = waiting(context, _body(context, context.expanded.body))
    barriers = sum(node.bytes for node in inside(body) if isinstance(node, BarrierArray))
    interface = interface_of(context, *static_or_dynamic(shared, barriers), maps(context))
    if context.problem.accumulate == "f64":
        body = in_double(body)
    checks, launch = static_asserts_of(context), _launch(context, interface)
    return LoweredKernel(
        interface,
        constants_of(context, (body, checks, shared, launch)),
        checks,
        shared,
        body,
        context.kernel.threads,
        blocks_per_multiprocessor(context.kernel),
        context.kernel.bounds.origins,
        launch,
    )


def _with_pre_passes(kernel: LoweredKernel) -> LoweredKernel:
    """``kernel`` with the kernels that come before it, and their launches."""
    interface = kernel.interface
    if not interface.split:
        return kernel
    kernels = tuple(dict.fromkeys(pre_pass_of(param, interface) for param in interface.split))
    before = tuple(launch(param, interface) for param in interface.split)
    return replace(kernel, interface=replace(interface, before=before), pre_passes=kernels)


def _launch(context: Context, interface: Interface) -> LaunchNames:
    x = context.kernel.spread.x
    (y,) = (letter for letter in context.letters if letter != x)
    along = names.block if context.scalar_accumulator else names.lanes
    block = (along(x), along(y)) if interface.block[1] > 1 else (THREADS,)
    return LaunchNames(
        tuple(names.block(letter) for letter in context.letters),
        block,
        PARTS if context.is_split else None,
        context.lowering.threads(context) if context.leaves_early and len(block) > 1 else THREADS,
        tuple(names.cluster(letter) for letter in context.letters if context.kernel.work.cluster),
    )


def _tiles(context: Context, node: Tiles) -> tuple[Node, ...]:
    """The coordinates of the block's tile, what a thread keeps, and the tile's statements."""
    kept = (*_first_pieces(context), *_arrays(context)) if node.computes else ()
    rest = (*kept, *_body(context, node.body))
    if context.is_persistent:
        before = _body(context, node.before)
        rest = (*kept, *before, *walk(context, _body(context, node.body), node.pingpong))
    placed = () if context.has_roles else of_block(context)
    if node.computes:
        placed = (*placed, *of_thread(context))
    return (*without_unused(context, placed, rest), *rest)


def _first_pieces(context: Context) -> tuple[Node, ...]:
    found = thread_maps(context)
    starts = tuple(d for thread_map in found for d in thread_map.starts())
    tensors = " and ".join(thread_map.tensor for thread_map in found)
    one = "vector" if any(thread_map.width > 1 for thread_map in found) else "element"
    note = f"first {one} of {tensors} that this thread copies"
    return (Block(note, (), starts),) if starts else ()


def _arrays(context: Context) -> tuple[Node, ...]:
    """Fragments, accumulators and staging registers."""
    held = [b for b in context.kernel.buffers if b.space is Space.REGISTER]
    staged = staged_copies(context.kernel)
    parts = ["operand fragments"] if has_fragments(context.kernel) else []
    parts.append("accumulator" if context.scalar_accumulator else "accumulators")
    if staged:
        parts.append("staging")
    if context.is_persistent and context.scalar_accumulator:
        held = [b for b in held if b.role is not Role.ACCUMULATOR]
    arrays = (
        *(context.lowering.array(context, buffer) for buffer in held),
        *(copies.staging_array(context, copy) for copy in staged),
    )
    return (Block(f"registers: {', '.join(parts)}", (), arrays),)


def _body(context: Context, body: tuple[Timed, ...]) -> tuple[Node, ...]:
    nodes = context.lowering.nodes
    lowered = ((nodes.get(type(n)) or NODES[type(n)])(context, n) for n in body)
    return tuple(node for found in lowered for node in found)


def _kept(_context: Context, node: Node) -> tuple[Node, ...]:
    return (node,)


def _init(context: Context, node: Init) -> tuple[Node, ...]:
    """The accumulators of a block's only tile are born zero; a persistent block's are zeroed at
    each."""
    if context.born_zero:
        return ()
    if context.scalar_accumulator:
        return (context.lowering.array(context, context.buffer(node.dst)),)

    def zero(total: Element | Var, _number: Expr) -> tuple[Node, ...]:
        assert isinstance(total, Element)
        return (Assign(total, number(0, context.problem.accumulate)),)

    return (Block("zero the accumulators", (), context.lowering.each_sum(context, Int(1), zero)),)


def _define(_context: Context, node: Define) -> tuple[Node, ...]:
    return (replace(node, value=simplify(node.value)),)


def _nested(context: Context, node: Any) -> tuple[Node, ...]:
    """A loop or a block with its body lowered."""
    return (replace(node, body=_body(context, node.body)),)


def _if(context: Context, node: If[Timed]) -> tuple[Node, ...]:
    return (If(node.condition, _body(context, node.body), _body(context, node.otherwise)),)


def _one_thread(context: Context, node: OneThread) -> tuple[Node, ...]:
    return boxes.one_thread(context, node, _body(context, node.body))


def _roles(context: Context, node: WarpRoles[Timed]) -> tuple[Node, ...]:
    """The roles, after what all of them need of the block's tile."""
    lowered = (replace(role, body=_body(context, role.body)) for role in node.roles)
    roles = WarpRoles(cast("tuple[WarpRole[Node], ...]", tuple(lowered)))
    return (*of_block(context), roles)


def _release(context: Context, node: Release) -> tuple[Node, ...]:
    """All lanes have read when the first one says so; in a cluster one lane to each block."""
    lane = mod(X, Int(WARP))
    if context.kernel.work.cluster and node.everywhere:
        each = instruction("arrive_at", node.barrier, lane)
        return (instruction("sync_warp"), If(less(lane, names.CLUSTER), (each,)))
    arrival = instruction("arrive", node.barrier)
    return (instruction("sync_warp"), If(Binary("==", lane, Int(0)), (arrival,)))


NODES: Mapping[type, LowerNode] = {
    Tiles: _tiles,
    Init: _init,
    Promote: promoted_accumulators.promote,
    Define: _define,
    If: _if,
    OneThread: _one_thread,
    WarpRoles: _roles,
    Release: _release,
    **dict.fromkeys((For, Block), _nested),
    **dict.fromkeys((AdvanceRing, Assign, BarrierArray, Break, Instruction), _kept),
    **boxes.LOWER,
    **copies.LOWER,
    **async_copies.LOWER,
    **split.LOWER,
    **epilogue_store.LOWER,
    **matrix_stores.LOWER,
    **box_stores.LOWER,
    **scale_fragments.LOWER,
}
"""How expanded nodes are lowered, whatever holds the accumulators; the other nodes are in
``Lowering.nodes``."""

LOWERINGS: Mapping[Holding, Lowering] = {
    "thread": threads.LOWERING,
    "lanes": lanes.LOWERING,
    "opaque": wmma.LOWERING,
    "known": mma.LOWERING,
    "warpgroup": wgmma.LOWERING,
}
