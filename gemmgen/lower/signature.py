"""A kernel's parameters, read off the lowered code; ``requirements`` has what it requires of them.

The order of parameters: extents, the batches' last; the matrices of the ``gemm`` line, each with
its leading dimension and its strides, alpha before A and beta before C as in BLAS; then the
epilogue's own tensors and scalars as it names them.  A parameter that nothing reads is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from gemmgen.ir.arithmetic import Arithmetic
from gemmgen.ir.assumptions import equal_to
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.epilogue_arithmetic import reads, uses_accumulator_unscaled
from gemmgen.ir.expr import Var, walk
from gemmgen.ir.interface import Interface
from gemmgen.ir.names import ARRIVED, WORKSPACE
from gemmgen.ir.occupancy import blocks_per_multiprocessor
from gemmgen.ir.param import Param
from gemmgen.ir.parameters import ld_name
from gemmgen.ir.planes import SCALES, Planes, Scales
from gemmgen.ir.problem import Tensor
from gemmgen.ir.target import TARGETS
from gemmgen.ir.tensor_map import ALIGNMENT, TensorMap
from gemmgen.lower import addresses, bounds
from gemmgen.lower.context import Context
from gemmgen.lower.requirements import requirements
from gemmgen.lower.split import piece_width


def interface_of(
    context: Context, static_shared: int, dynamic_shared: int, maps: tuple[TensorMap, ...] = ()
) -> Interface:
    """How the kernel is called; ``maps`` are the tensors that TMA reads or writes."""
    params = tuple(_params(context))
    pitches = tuple(_pitches(context, params))
    threads = context.lowering.block(context)
    tiles = tuple(
        (bounds.extent(context, x).name, bounds.tile(context, x)) for x in context.letters
    )
    return Interface(
        context.kernel.name,
        params,
        threads,
        tiles,
        tuple(requirements(context, params, pitches, maps)),
        dynamic_shared,
        static_shared,
        pitches,
        tuple(_equal_extents(context)),
        context.kernel.work.parts,
        context.kernel.work.groups,
        context.kernel.work.reduce == "ordered",
        tuple((x, context.problem.extent(x)) for x in context.kernel.work.batch),
        tuple((t.name, *step) for t in context.tensors for step in _strides(context, t)),
        _product(context, params, pitches),
        tuple(_renamed(context)),
        maps,
        _resident(context, static_shared + dynamic_shared) if context.is_persistent else 0,
        cluster=tuple(count for _, count in context.kernel.work.cluster),
        attribute="dependent_launch" if context.kernel.work.overlap else None,
        arithmetic=Arithmetic.of(
            context.kernel, context.program.target, context.problem.factors[0].dtype
        ),
    )


def _resident(context: Context, shared: int) -> int:
    """The blocks of a multiprocessor: those of the launch bounds, or fewer if their ``shared``
    bytes leave room for fewer."""
    target, asked = TARGETS[context.program.target], blocks_per_multiprocessor(context.kernel)
    fitting = target.all_shared // (shared + target.reserved) if shared else asked
    return max(1, min(asked, fitting))


def _product(
    context: Context, params: tuple[Param, ...], pitches: tuple[tuple[str, str], ...]
) -> tuple[str, str] | None:
    """``("alpha", "K")`` where the product may be left out at alpha = 0: the accumulators are in
    ``alpha * acc`` alone, and K is neither an extent of C nor a leading dimension outside the
    product."""
    problem = context.problem
    if not any(p.name == "alpha" for p in params) or uses_accumulator_unscaled(context.final.value):
        return None
    depth = bounds.extent(context, problem.k).name
    used = {bounds.extent(context, letter).name for letter in context.named}
    used |= {pitch for name, pitch in pitches if name not in (problem.a.name, problem.b.name)}
    return None if depth in used else ("alpha", depth)


def _scalars(context: Context) -> list[str]:
    """Scalars of the epilogue, in order of appearance."""
    known = {b.name for b in context.kernel.buffers} | set(context.named)
    found = (e.name for e in walk(context.final.value) if isinstance(e, Var))
    return list(dict.fromkeys(name for name in found if name not in known))


def _params(context: Context) -> Iterator[Param]:
    scalars = _scalars(context)
    for letter in _letters(context):
        yield Param(bounds.extent(context, letter).name, "extent")
    final, numbers = context.final, context.numbers
    for tensor in context.tensors:
        written = tensor.name == context.output
        lead = "beta" if written else "alpha"
        if lead in scalars and context.kernel.has(tensor.name):
            scalars.remove(lead)
            yield Param(lead, "scalar", dtype=numbers)
        read = not written or reads(final.value, tensor.name)
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
    """The parts of what is split, and its scales; what blocks that share a tile leave their
    accumulators in, and count themselves with."""
    for split in (s for s in context.program.splits if context.kernel.has(s.dst)):
        tensor, own = context.tensor(split.src), context.buffer(split.dst)
        rows, columns = (bounds.extent(context, letter).name for letter in tensor.letters)
        scales = SCALES.format(tensor=tensor.name) if split.scaled else ""
        planes = Planes(tensor.name, split.parts, rows, columns, scales)
        yield Param(split.dst, "workspace", dtype=own.dtype, align=ALIGNMENT, planes=planes)
        if scales:
            by_rows = tensor.letters[-1] == context.problem.k
            each = Scales(tensor.name, rows if by_rows else columns, by_rows)
            letter = tensor.letters[0 if by_rows else -1]
            yield Param(scales, "workspace", (letter,), dtype=tensor.dtype, scales=each)
    work, acc_type = context.kernel.work, context.problem.accumulate
    if context.is_split:
        size, atomic = prod(size for _, size in work.tile), work.reduce == "atomic"
        yield Param(
            WORKSPACE.name,
            "workspace",
            dtype=acc_type,
            per_tile=size if atomic else size * work.parts,
            zeroed=atomic,
            align=BYTES[acc_type] * (1 if atomic else piece_width(context)),
        )
        counters = 1 if work.groups == 1 else work.groups + 1
        yield Param(ARRIVED.name, "counter", per_tile=counters, zeroed=True)


def _strides(context: Context, tensor: Tensor) -> list[tuple[str, str]]:
    """Batch letters of a tensor, each with the parameter that is its stride."""
    return list(context.problem.strides(tensor).items())


def _letters(context: Context) -> list[str]:
    """Letters whose extents are parameters; two assumed equal are one."""
    letters = [
        x for x in context.problem.letters if x in (*context.tiled, *context.kernel.work.batch)
    ]
    seen: dict[str, str] = {}
    for letter in letters:
        seen.setdefault(bounds.extent(context, letter).name, letter)
    return [x for x in letters if seen[bounds.extent(context, x).name] == x]


def _renamed(context: Context) -> Iterator[tuple[str, str]]:
    """Letters of a matrix whose capitals are taken, each with its extent."""
    for letter in (*context.letters, context.problem.k):
        name = context.problem.extent(letter)
        if name != letter.upper():
            yield letter, name


def _equal_extents(context: Context) -> Iterator[tuple[str, str]]:
    """Extents that are not parameters, each with the one it is assumed equal to."""
    for letter in (*context.letters, context.problem.k):
        name, own = bounds.extent(context, letter).name, context.problem.extent(letter)
        if name != own:
            yield own, name


def _leading(context: Context, tensor: str) -> Iterator[Param]:
    own = ld_name(tensor)
    if equal_to(context.program, own) == own:
        yield Param(own, "ld")


def _pitches(context: Context, params: tuple[Param, ...]) -> Iterator[tuple[str, str]]:
    for param in params:
        if param.kind == "tensor" and context.problem.pitch(context.tensor(param.name)):
            yield param.name, addresses.pitch(context, param.name).name
