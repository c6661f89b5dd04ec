"""Lowering of whole kernels: arrays, placement, and each operation in its turn."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.ir import names
from gemmgen.ir.control import Assign, Barrier, Block, Break, Commit, Define, For, If, Wait
from gemmgen.ir.dtypes import ACCESS
from gemmgen.ir.edit import pipeline_of, staged_copies
from gemmgen.ir.expanded import (
    Arrive,
    CopyTileAsync,
    ExpandedKernel,
    ExpandedProgram,
    Fetch,
    Load,
    LoadLaneSlice,
    Multiply,
    ReducePartials,
    Store,
    StorePartial,
    Timed,
    Transfer,
    WarpReduce,
)
from gemmgen.ir.expr import Expr, Float, Int
from gemmgen.ir.lowered import LoweredKernel, LoweredProgram, Node, RegisterArray, SharedArray
from gemmgen.ir.nodes import Buffer, Init, Map, Program, Space
from gemmgen.ir.occupancy import blocks_per_multiprocessor
from gemmgen.ir.simplify import add, div, mul, simplify
from gemmgen.ir.target import STATIC_SHARED
from gemmgen.lower import (
    asynchronous,
    bounds,
    contraction,
    copies,
    epilogue,
    lanes,
    operands,
    split,
    tensor_core,
)
from gemmgen.lower.checks import checks_of
from gemmgen.lower.constants import constants_of
from gemmgen.lower.context import Context
from gemmgen.lower.placement import placement
from gemmgen.lower.signature import interface_of
from gemmgen.lower.thread_map import thread_map_of
from gemmgen.lower.types import in_double


def lower(expanded: ExpandedProgram) -> LoweredProgram:
    """One thread's code of every kernel."""
    program = expanded.program
    kernels = tuple(_kernel(Context(program, kernel)) for kernel in expanded.kernels)
    return LoweredProgram(kernels, _temporaries(program))


def _temporaries(program: Program) -> tuple[str, ...]:
    if len(program.kernels) == 1:
        return ()
    final = next(s for s in program.main.body if isinstance(s, Map))
    return (final.dst,)


def _kernel(context: Context) -> LoweredKernel:
    shared = tuple(_shared(context, b) for b in context.kernel.buffers if b.space is Space.SHARED)
    total = sum(array.bytes for array in shared)
    laid = total + sum(-array.bytes % ACCESS for array in shared[:-1])
    is_static = laid <= STATIC_SHARED
    interface = interface_of(context, total if is_static else 0, 0 if is_static else laid)
    work = _body(context, context.expanded)
    starts = _first_pieces(context)
    body = (
        *placement(context, needs_tid=_copies_together(context) or context.is_split),
        *starts,
        *_arrays(context),
        *work,
    )
    if context.problem.accumulate == "f64":
        body = in_double(body)
    checks = checks_of(context)
    return LoweredKernel(
        interface,
        constants_of(context, (body, checks, shared)),
        checks,
        shared,
        body,
        context.kernel.spread.threads,
        blocks_per_multiprocessor(context.kernel),
        context.kernel.bounds.origins,
    )


def _shared(context: Context, buffer: Buffer) -> SharedArray:
    sizes = [buffer.extent(letter) for letter in buffer.letters]
    shape = [_extent(context, buffer, letter) for letter in buffer.letters]
    sizes[-1] += buffer.pad
    shape[-1] = add(shape[-1], Int(buffer.pad))
    if buffer.stages > 1:
        sizes.insert(0, buffer.stages)
        shape.insert(0, Int(buffer.stages))
    aligned = 32 if context.by_fragments else 16
    return SharedArray(
        buffer.name, buffer.dtype, tuple(shape), tuple(sizes), buffer.origins, aligned
    )


def _extent(context: Context, buffer: Buffer, letter: str) -> Expr:
    """The whole tile's extent; of a slice, a piece for each warp."""
    if buffer.extent(letter) == bounds.tile(context, letter):
        return names.block(letter)
    warps = div(names.block(letter), names.warp(letter))
    return mul(warps, names.instruction(letter))


def _copies_together(context: Context) -> bool:
    pipeline = pipeline_of(context.kernel)
    return bool(pipeline and pipeline.produce) and not context.by_lanes


def _first_pieces(context: Context) -> tuple[Node, ...]:
    pipeline = pipeline_of(context.kernel)
    copies_ = pipeline.produce if pipeline and not context.by_lanes else ()
    starts = tuple(d for copy in copies_ for d in thread_map_of(context, copy).starts())
    return (Block("its first piece of each tile that it copies", (), starts),) if starts else ()


def _arrays(context: Context) -> tuple[Node, ...]:
    """Sums, fragments and staging registers."""
    found: list[Node] = []
    for buffer in context.kernel.buffers:
        if buffer.space is Space.REGISTER:
            found.append(_registers(context, buffer))
    for copy in staged_copies(context.kernel):
        found.append(copies.staging_array(context, copy))
    return (Block("what it keeps in registers", (), tuple(found)),)


def _registers(context: Context, buffer: Buffer) -> Node:
    if context.by_fragments:
        return tensor_core.array(context, buffer)
    if context.by_lanes and buffer.name != "acc":
        return lanes.array(context, buffer)
    if buffer.name == "acc":
        if context.scalar_sums:
            return Define("acc", Float(0.0), "float", mutable=True)
        sizes = tuple(context.axis(x).registers for x in context.letters)
        shape: tuple[Expr, ...] = tuple(names.registers(x) for x in context.letters)
        wide = context.is_split and split.piece_width(context) > 1
        return RegisterArray("acc", buffer.dtype, shape, sizes, zero=True, wide=wide)
    (letter,) = buffer.letters
    shape, sizes = (names.registers(letter),), (context.axis(letter).registers,)
    if buffer.stages > 1:
        shape, sizes = (Int(buffer.stages), *shape), (buffer.stages, *sizes)
    wide = any(c.dst == buffer.name and c.width > 1 for c in _all_copies(context))
    return RegisterArray(buffer.name, buffer.dtype, shape, sizes, wide=wide)


def _all_copies(context: Context) -> tuple[copies.Copy, ...]:
    from gemmgen.ir.edit import copies as all_copies

    return all_copies(context.kernel)


def _body(context: Context, expanded: ExpandedKernel) -> tuple[Node, ...]:
    return _timed(context, expanded.body)


def _timed(context: Context, body: tuple[Timed, ...]) -> tuple[Node, ...]:
    found: list[Node] = []
    for node in body:
        found.extend(_one(context, node))
    return tuple(found)


def _one(context: Context, node: Timed) -> tuple[Node, ...]:
    match node:
        case Init():
            return ()  # sums are born zero
        case Load():
            return copies.load(context, node)
        case Store():
            return copies.store(context, node)
        case Transfer():
            return copies.transfer(context, node)
        case CopyTileAsync():
            return asynchronous.copy_async(context, node)
        case Fetch():
            by = tensor_core if context.by_fragments else operands
            return by.fetch(context, node)
        case Multiply():
            by = tensor_core if context.by_fragments else lanes if context.by_lanes else contraction
            return by.multiply(context, node)
        case Map():
            by = tensor_core if context.by_fragments else lanes if context.by_lanes else epilogue
            return (Block("the epilogue", node.origins, by.store(context, node)),)
        case LoadLaneSlice():
            return lanes.load_slice(context, node)
        case WarpReduce():
            return lanes.reduce(context)
        case StorePartial():
            return split.store_partial(context, node)
        case Arrive():
            return split.arrive(context, node)
        case ReducePartials():
            return split.reduce_partials(context, node)
        case Define():
            return (replace(node, value=simplify(node.value)),)
        case For(variable, start, stop, step, body, unroll):
            return (For(variable, start, stop, step, _timed(context, body), unroll),)
        case If(condition, body, otherwise):
            return (If(condition, _timed(context, body), _timed(context, otherwise)),)
        case Block(note, origins, body, scoped):
            return (Block(note, origins, _timed(context, body), scoped),)
        case Assign() | Break() | Barrier() | Commit() | Wait():
            return (node,)
