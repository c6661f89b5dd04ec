"""vectorize: access several contiguous elements at once, at most 16 bytes.

Widths count elements: 2 and 4 of f32 (float2, float4), 2 of f64 (double2), and of f16 and bf16
2, 4 and 8 (unsigned, uint2, uint4).

A hop can be wide if its elements are contiguous at both ends: ``A.global`` along A's contiguous
letter, ``A.shared`` (shared memory to fragments) along the letter that is contiguous in shared
memory, which must be one of C; C along its contiguous letter.  An operand without a hop means all
of its hops.  With ``B.global`` alone shared memory is accessed element by element where a pad
misaligns the rows of the tile.  Lanes that split k (``split_k within=warp``) read wide along the
contracted letter, straight from global memory.  The kernel then requires aligned pointers and
leading dimensions; ragged edges stay guarded.

    copy A_shared = A
    loop k
      copy A_frag = A_shared
==> vectorize A width=4
    copy A_shared = A width=4   # vectorize A width=4
    loop k
      copy A_frag = A_shared width=4   # vectorize A width=4
"""

from __future__ import annotations

from dataclasses import field
from functools import reduce
from typing import ClassVar

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import indexed, remainder
from gemmgen.ir.buffers import AxisSpread, Buffer, Role, Space
from gemmgen.ir.dtypes import BYTES, DType, widths
from gemmgen.ir.edit import (
    changed_by,
    copies,
    copy_outward,
    edit_main,
    edit_operations,
    edit_statements,
    pipeline_of,
)
from gemmgen.ir.nodes import Contract, Copy, Kernel, Map, Program
from gemmgen.ir.problem import Problem
from gemmgen.passes.base import OperandArgument, Stated, micro_tile_line, tile_line
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere


@record
class Vectorize:
    SPEC: ClassVar = DirectiveSpec(
        "vectorize",
        example="vectorize A B C width=4",
        operands=("a", "b", "c"),
        hops=(("a", ("global", "shared")), ("b", ("global", "shared")), ("c", ("global",))),
        arguments=(
            ArgumentSpec(
                "width",
                required=True,
                maximum=16,
                identity=1,
                elsewhere="factor vec vector lanes vector_width",
                fuzz=((2,), (4,), (8,)),
            ),
        ),
        elsewhere=Elsewhere(
            "TVM vectorize, loopy tag vec, CLBlast VWM",
            "vec vectorise vector coalesced_width alignment float4 vwm vwn vector_width",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = (
        *("tile", "cache_shared", "warp_tile", "register_block", "tensor_core"),
    )

    widths: tuple[OperandArgument, ...]
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> Vectorize:
        return Vectorize(stated.facts("width"), stated)

    def apply(self, program: Program) -> Program:
        problem = program.problem

        def widen(kernel: Kernel, fact: OperandArgument) -> Kernel:
            _check_bytes(fact, problem.dtype(fact.tensor))
            return _widen(kernel, problem, fact)

        # Who reads along k is not settled yet: split_k widens that.
        later = {tensor for tensor, *_ in program.intent.k_reads}
        now = [f for f in self.widths if f.tensor not in later or f.operand.hop == "shared"]
        return edit_main(program, lambda kernel: reduce(widen, now, kernel))


def _check_bytes(fact: OperandArgument, dtype: DType) -> None:
    if fact.value not in widths(dtype):
        size, sizes = BYTES[dtype], [width * BYTES[dtype] for width in (1, *widths(dtype))]
        each = f"{size} bytes" if dtype == "f32" else f"{size} bytes ({dtype})"
        options = [f"width={w} ({_access(dtype, w)})" for w in reversed(widths(dtype))]
        raise Refusal(
            f"width={fact.value} is not the width of a memory access",
            at=fact.span,
            notes=(
                f"{fact.value} x {each} = {fact.value * size}; "
                f"accesses are {', '.join(map(str, sizes[:-1]))} or {sizes[-1]} bytes",
            ),
            hint=" or ".join(options),
        )


def _access(dtype: DType, width: int) -> str:
    """The name of a wide access."""
    name = {"f32": "float", "f64": "double"}.get(dtype)
    return f"{name}{width}" if name else f"{width * BYTES[dtype]} bytes"


def _widen(kernel: Kernel, problem: Problem, fact: OperandArgument) -> Kernel:
    if fact.tensor == problem.c.name:
        return _widen_store(kernel, problem, fact)
    hops = [copy for copy in copies(kernel) if _hop(kernel, copy, problem, fact) in _wanted(fact)]
    if not hops:
        raise _nothing_to_widen(kernel, problem, fact)
    for hop in hops:
        _check_hop(kernel, hop, problem, fact)

    def widen(operation: Copy | Contract) -> Copy | Contract:
        if not isinstance(operation, Copy) or operation not in hops:
            return operation
        staged = kernel.buffer(operation.dst).space is Space.SHARED
        vectors = "global" if fact.operand.hop == "global" and staged else "both"
        return changed_by(fact.origin, operation, width=fact.value, vectors=vectors)

    return edit_operations(kernel, widen)


def _wanted(fact: OperandArgument) -> tuple[str, ...]:
    return (fact.operand.hop,) if fact.operand.hop else ("global", "shared")


def _hop(kernel: Kernel, copy: Copy, problem: Problem, fact: OperandArgument) -> str | None:
    """The hop of the fact's operand that ``copy`` is, named after the memory that it reads."""
    tensor = fact.tensor
    if copy.src == tensor:
        return "global"
    wide_by_itself = kernel.spread.collective
    source = kernel.buffer(copy.src)
    is_read = source.role is Role.TILE and source.tensor == tensor
    return "shared" if is_read and not wide_by_itself else None


def _nothing_to_widen(kernel: Kernel, problem: Problem, fact: OperandArgument) -> Refusal:
    tensor, hop = fact.tensor, fact.operand.hop
    if hop == "shared" and kernel.spread.collective:
        return Refusal(
            f"{tensor}.shared has one width: tensor_core loads fragments by an instruction of "
            "its own",
            at=fact.operand.span,
            hint=f"vectorize {tensor}.global width={fact.value}",
        )
    if hop == "shared":
        return Refusal(
            f"{tensor} has no hop from shared memory to registers",
            at=fact.operand.span,
            hint=f"needs cache_shared {tensor} and {micro_tile_line(kernel)}; "
            f"or vectorize {tensor}.global width={fact.value}",
        )
    tile = "" if pipeline_of(kernel) else f"{tile_line(kernel, problem.k, 8)} and "
    return Refusal(
        f"{tensor} is read element by element where it is used: there is no copy to widen",
        at=fact.operand.span,
        hint=f"stage it first: {tile}cache_shared {tensor}",
    )


def _check_hop(kernel: Kernel, copy: Copy, problem: Problem, fact: OperandArgument) -> None:
    """Checks that elements contiguous in the source are contiguous in the tile."""
    src, dst = kernel.buffer(copy.src), kernel.buffer(copy.dst)
    letter = src.letters[-1]
    if dst.space is Space.REGISTER:
        _check_fragment(dst, letter, problem, fact, src)
        return
    extent, most = dst.extent(letter), max(4, fact.value)
    if extent % fact.value:
        raise Refusal(
            f"vectorize width={fact.value} does not divide the {letter} tile of {src.name}",
            at=fact.span,
            notes=(
                f"{indexed(src.name, src.letters)} is contiguous along {letter}, "
                f"the tile has {letter}={extent}, and {remainder(extent, fact.value)}",
            ),
            hint=_width_hint(extent, src.dtype, f"tile {letter}={-(-extent // most) * most}"),
        )


def _check_fragment(
    fragment: Buffer, letter: str, problem: Problem, fact: OperandArgument, src: Buffer
) -> None:
    if letter not in fragment.letters:
        tensor, free = fact.tensor, fragment.letters[0]
        hop = "shared" if src.space is Space.SHARED else "global"
        hint = f"cache_shared {tensor}[{problem.k}, {free}] to lay it out along {free}"
        raise Refusal(
            f"{tensor}.{hop} can't be read {fact.value} at a time",
            at=fact.operand.span,
            notes=(
                f"a fragment is contiguous along {free}, but "
                f"{indexed(src.name, src.letters)} is contiguous along {letter}",
            ),
            hint=(
                f"vectorize {tensor}.global width={fact.value}, or {hint}"
                if hop == "shared"
                else hint
            ),
        )
    assert fragment.spread is not None
    _check_run(fragment.spread.axis(letter), src.dtype, fact)


def _widen_store(kernel: Kernel, problem: Problem, fact: OperandArgument) -> Kernel:
    axis, outward = kernel.spread.axis(problem.c.contiguous), copy_outward(kernel)
    if outward is None:
        _check_run(axis, problem.c.dtype, fact, by_warp=kernel.spread.collective)
        return edit_statements(
            kernel, Map, lambda final: changed_by(fact.origin, final, width=fact.value)
        )
    _check_row(axis, problem.c.dtype, fact)
    fitting = [w for w in widths(problem.c.dtype) if axis.width % w == 0 and w <= fact.value]

    def stage(final: Map) -> Map:
        return changed_by(fact.origin, final, width=fitting[-1]) if fitting else final

    def store(copy: Copy) -> Copy:
        return changed_by(fact.origin, copy, width=fact.value) if copy == outward else copy

    return edit_statements(edit_statements(kernel, Map, stage), Copy, store)


def _check_row(axis: AxisSpread, dtype: DType, fact: OperandArgument) -> None:
    """Checks that a row of the tile is whole wide accesses."""
    if axis.extent % fact.value:
        raise Refusal(
            f"vectorize width={fact.value} does not divide the {axis.letter} tile of {fact.tensor}",
            at=fact.span,
            notes=(
                f"the tile has {axis.letter}={axis.extent}, and "
                f"{remainder(axis.extent, fact.value)}",
            ),
            hint=_width_hint(
                axis.extent,
                dtype,
                f"tile {axis.letter}={-(-axis.extent // fact.value) * fact.value}",
            ),
        )


def _check_run(
    axis: AxisSpread, dtype: DType, fact: OperandArgument, *, by_warp: bool = False
) -> None:
    """Checks that a thread's contiguous elements along an axis are whole wide accesses;
    ``by_warp``: an instruction says which they are."""
    if axis.width % fact.value == 0:
        return
    held = "are single"
    if axis.registers > 1:
        shaped = "tensor_core" if by_warp else "register_block"
        held = f"are contiguous in runs of {axis.width} ({shaped})"
    rest = remainder(axis.width, fact.value)
    raise Refusal(
        f"vectorize width={fact.value} does not divide a thread's contiguous run of {fact.tensor}",
        at=fact.span,
        notes=(f"a thread's elements along {axis.letter} {held}, and {rest}",),
        hint=_width_hint(
            axis.width,
            dtype,
            f"cache_shared {fact.tensor}" if by_warp else _longer_run(axis, fact),
        ),
    )


def _longer_run(axis: AxisSpread, fact: OperandArgument) -> str:
    """The ``register_block`` that gives a thread runs of the width, if the tile is a multiple."""
    width = fact.value
    if axis.pieces > 1 and axis.registers % width == 0:
        return f"register_block with interleave={width}"
    run = -(-axis.registers // width) * width
    if axis.extent % run:
        return f"leave {fact.tensor} out of vectorize"
    return f"register_block with {axis.letter}={run}"


def _width_hint(extent: int, dtype: DType, otherwise: str) -> str:
    fitting = [w for w in widths(dtype) if extent % w == 0]
    return f"width={fitting[-1]}, or {otherwise}" if fitting else otherwise
