"""A kernel's parameters and what it requires of them, read off the lowered code.

The order of parameters: extents, the batches' last; the matrices of the ``gemm`` line, each with
its leading dimension and its strides, alpha before A and beta before C as in BLAS; then the
epilogue's own tensors and scalars as it names them.  A parameter that nothing reads is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from gemmgen.ir import names
from gemmgen.ir.buffers import Space
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import copies, pipeline_of
from gemmgen.ir.expr import Element, Expr, Var, walk
from gemmgen.ir.facts import equal_to
from gemmgen.ir.interface import (
    INT_MAX,
    Aligned,
    AtLeast,
    AtMost,
    Equal,
    Interface,
    MultipleOf,
    Param,
    Requirement,
)
from gemmgen.ir.nodes import Map
from gemmgen.ir.problem import Tensor
from gemmgen.lower import addresses, bounds
from gemmgen.lower.arithmetic import uses_sums_unscaled
from gemmgen.lower.context import ARRIVED, WORKSPACE, Context
from gemmgen.lower.split import piece_width
from gemmgen.lower.vectors import store_width

MARGIN = 16
"""Indices may run this far past a tile: a wide access looks at its last element."""


def interface_of(context: Context, static_shared: int, dynamic_shared: int) -> Interface:
    """How the kernel is called."""
    params = tuple(_params(context))
    threads = context.lowering.block(context)
    tiles = tuple(
        (bounds.extent(context, x).name, bounds.tile(context, x)) for x in context.letters
    )
    return Interface(
        context.kernel.name,
        params,
        threads,
        tiles,
        tuple(_requirements(context, params)),
        dynamic_shared,
        static_shared,
        tuple(_pitches(context, params)),
        tuple(_equal_extents(context)),
        context.kernel.work.parts,
        context.kernel.work.groups,
        context.kernel.work.reduce == "ordered",
        tuple((x, context.problem.extent(x)) for x in context.kernel.work.batch),
        tuple((t.name, *step) for t in context.tensors for step in _strides(context, t)),
        _product(context, params),
        tuple(_renamed(context)),
    )


def _product(context: Context, params: tuple[Param, ...]) -> tuple[str, str] | None:
    """``("alpha", "K")`` where the product may be left out at alpha = 0: the sums are in
    ``alpha * acc`` alone, and K is neither an extent of C nor a leading dimension outside the
    product."""
    problem = context.problem
    if not any(p.name == "alpha" for p in params) or uses_sums_unscaled(_map(context).value):
        return None
    depth = bounds.extent(context, problem.k).name
    pitches = {
        pitch
        for name, pitch in _pitches(context, params)
        if name not in (problem.a.name, problem.b.name)
    }
    used = {bounds.extent(context, letter).name for letter in context.named} | pitches
    return None if depth in used else ("alpha", depth)


def _map(context: Context) -> Map:
    return next(s for s in context.kernel.body if isinstance(s, Map))


def _scalars(context: Context) -> list[str]:
    """Scalars of the epilogue, in order of appearance."""
    known = {b.name for b in context.kernel.buffers} | set(context.named)
    found = (e.name for e in walk(_map(context).value) if isinstance(e, Var))
    return list(dict.fromkeys(name for name in found if name not in known))


def _params(context: Context) -> Iterator[Param]:
    scalars = _scalars(context)
    for letter in _letters(context):
        yield Param(bounds.extent(context, letter).name, "extent")
    final, numbers = _map(context), context.problem.accumulate
    for tensor in context.tensors:
        written = tensor.name == final.dst
        lead = "beta" if written else "alpha"
        if lead in scalars and context.kernel.has(tensor.name):
            scalars.remove(lead)
            yield Param(lead, "scalar", dtype=numbers)
        read = not written or _is_read(final.value, tensor.name)
        dtype = tensor.dtype
        yield Param(tensor.name, "tensor", tensor.letters, written, read, dtype)
        if context.problem.pitch(tensor):
            yield from _leading(context, tensor.name)
        for _, name in _strides(context, tensor):
            yield Param(name, "stride")
    for name in scalars:
        yield Param(name, "scalar", dtype=numbers)
    yield from _scratch(context)


def _scratch(context: Context) -> Iterator[Param]:
    """What blocks that share a tile leave their sums in, and count themselves with."""
    work, sums = context.kernel.work, context.problem.accumulate
    if context.is_split:
        size, atomic = prod(size for _, size in work.tile), work.reduce == "atomic"
        yield Param(
            WORKSPACE.name,
            "workspace",
            dtype=sums,
            per_tile=size if atomic else size * work.parts,
            zeroed=atomic,
            align=BYTES[sums] * (1 if atomic else piece_width(context)),
        )
        counters = 1 if work.groups == 1 else work.groups + 1
        yield Param(ARRIVED.name, "counter", per_tile=counters, zeroed=True)


def _strides(context: Context, tensor: Tensor) -> list[tuple[str, str]]:
    """Batch letters of a tensor, each with the parameter that is its stride."""
    return list(context.problem.strides(tensor).items())


def _letters(context: Context) -> list[str]:
    """Letters whose extents are parameters; two assumed equal are one."""
    letters = [*_all_letters(context), *context.kernel.work.batch]
    seen: dict[str, str] = {}
    for letter in letters:
        seen.setdefault(bounds.extent(context, letter).name, letter)
    return [x for x in letters if seen[bounds.extent(context, x).name] == x]


def _all_letters(context: Context) -> list[str]:
    """Row, column, and the contracted letter where this kernel contracts."""
    contracts = any(b.name == context.problem.a.name for b in context.kernel.buffers)
    return [*context.letters, *([context.problem.k] if contracts else [])]


def _renamed(context: Context) -> Iterator[tuple[str, str]]:
    """Letters of a matrix whose capitals are taken, each with its extent."""
    for letter in (*context.letters, context.problem.k):
        name = context.problem.extent(letter)
        if name != letter.upper():
            yield letter, name


def _equal_extents(context: Context) -> Iterator[tuple[str, str]]:
    """Extents that are no parameters, each with the one it is assumed equal to."""
    for letter in (*context.letters, context.problem.k):
        name, own = bounds.extent(context, letter).name, context.problem.extent(letter)
        if name != own:
            yield own, name


def _leading(context: Context, tensor: str) -> Iterator[Param]:
    own = names.ld_name(tensor)
    if equal_to(context.program, own) == own:
        yield Param(own, "ld")


def _is_read(value: Expr, tensor: str) -> bool:
    return any(isinstance(e, Element) and e.buffer == tensor for e in walk(value))


def _pitches(context: Context, params: tuple[Param, ...]) -> Iterator[tuple[str, str]]:
    for param in params:
        if param.kind == "tensor" and context.problem.pitch(context.tensor(param.name)):
            yield param.name, addresses.pitch(context, param.name).name


def _requirements(context: Context, params: tuple[Param, ...]) -> Iterator[Requirement]:
    yield from _ranges(context)
    for name, pitch in _pitches(context, params):
        letters = next(p.indices for p in params if p.name == name)
        row = bounds.extent(context, letters[-1]).name
        if pitch != row:
            yield AtLeast(pitch, row)
    yield from _wide(context)
    known = {p.name for p in params}
    for fact in context.program.facts:
        name = equal_to(context.program, fact.name)
        if fact.divisor is not None and name in known:
            yield MultipleOf(name, fact.divisor)
        if fact.equals is not None and fact.name in known and fact.equals in known:
            yield Equal(fact.name, fact.equals)


def _ranges(context: Context) -> Iterator[Requirement]:
    """Indices are ints: a tile that begins inside an extent must also end below 2^31."""
    pipeline = pipeline_of(context.kernel)
    stages = max(b.stages for b in context.kernel.buffers)
    reaches: dict[str, int] = {}
    for letter in _all_letters(context):
        reach = bounds.tile(context, letter)
        if pipeline is not None and letter == pipeline.letter:
            reach *= max(stages, pipeline.unroll) + context.kernel.work.parts - 1
        name = bounds.extent(context, letter).name
        reaches[name] = max(reach, reaches.get(name, 0))
    for name, reach in reaches.items():
        yield AtMost(name, INT_MAX - reach - MARGIN)


def _wide(context: Context) -> Iterator[Requirement]:
    """Wide accesses to global memory: aligned pointers, and rows that keep them aligned."""
    widths: dict[str, int] = {}
    for copy in copies(context.kernel):
        if context.buffer(copy.src).space is Space.GLOBAL:
            widths[copy.src] = max(copy.width, widths.get(copy.src, 1))
    final = _map(context)
    widths[final.dst] = max(store_width(context.kernel, final), widths.get(final.dst, 1))
    for buffer in context.kernel.buffers:
        width = widths.get(buffer.name, 1)
        if buffer.space is Space.GLOBAL and width > 1:
            yield Aligned(buffer.name, BYTES[buffer.dtype] * width)
            yield MultipleOf(addresses.pitch(context, buffer.name).name, width)
            for _, stride in _strides(context, context.tensor(buffer.name)):
                yield MultipleOf(stride, width)
