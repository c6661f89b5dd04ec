"""async_copy: copy tiles into shared memory without passing through registers.

``cp.async`` (sm_80 on) copies 4, 8 or 16 bytes from global to shared memory asynchronously, and
fills elements outside a matrix with zeros.  Copies are committed in groups, one per tile, and a
step waits for the group of its tile.  It needs ``double_buffer``, whose ``stages`` determine the
number of outstanding tiles; a transposed tile is copied element by element, for which elements of
two bytes are too small.

With ``via=tma`` TMA (sm_90 on) copies a tile as boxes.  One thread issues them; the other threads
spend no instruction and no register on the copy.  TMA writes zeros for elements outside a matrix,
so no guard is needed.  A box keeps the storage order of the matrix: such a tile is neither
transposed nor padded, and has TMA's own swizzle.  Leading dimensions, and the offset of a box in
its row, must be multiples of 16 bytes.  ``via=registers`` equals the directive's absence.

TMA also stores C, if ``cache_shared C`` stages it: the threads write a slice to shared memory, and
one thread issues the stores of its boxes.  Elements outside C are not written, in units of 16
bytes, so the length of a row of C must be a multiple of 16 bytes (``N % 4 == 0`` for f32); each
call is checked.  The threads still read old elements of C (``beta``).

    copy A_shared = A
==> async_copy A via=cp_async
    copy A_shared = A mode=cp_async   # async_copy A via=cp_async
"""

from __future__ import annotations

from dataclasses import field
from functools import partial, reduce
from typing import ClassVar, cast, get_args

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import indexed, remainder
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.boxes import spare_rows
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.dtypes import BYTES, widths
from gemmgen.ir.edit import (
    changed_by,
    contraction,
    copies,
    copy_outward,
    edit_buffer,
    edit_main,
    edit_operations,
    edit_statements,
    pipeline_of,
    stores_vectors,
)
from gemmgen.ir.nodes import Contract, Copy, CopyMode, Kernel, Program
from gemmgen.ir.problem import Problem
from gemmgen.ir.target import SINCE, has
from gemmgen.passes.base import OperandArgument, Stated, shared_tile
from gemmgen.passes.boxes import check_boxes, check_rank
from gemmgen.passes.scales_in_ring import with_scales_in_ring
from gemmgen.passes.slice_boxes import by_threads, check_slice
from gemmgen.passes.split_in_memory import with_parts_in_memory
from gemmgen.schedule.model import Directive, Gemm
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere

LEAST = 4
"""Bytes of the smallest copy by cp.async."""

MISSING: dict[CopyMode, tuple[str, str]] = {
    "cp_async": ("cp.async", "target sm_80 or later, or leave async_copy out"),
    "tma": ("TMA", "target sm_90, or via=cp_async on sm_80 and later"),
}
"""What targets before the first one with a way of copying lack, and the hint."""


@record
class CopyRequest:
    """A statement for one operand."""

    fact: OperandArgument
    via: CopyMode


@record
class AsyncCopy:
    SPEC: ClassVar = DirectiveSpec(
        "async_copy",
        example="async_copy A B via=cp_async",
        operands=("a", "b", "c"),
        arguments=(
            ArgumentSpec(
                "via", "word", choices=get_args(CopyMode), required=True, identity="registers"
            ),
        ),
        elsewhere=Elsewhere(
            "TVM software_pipeline_async_stages, TileLang tma_copy",
            "software_pipeline_async_stages cp_async tma tma_copy create_async_groups async",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = (
        *("tile", "cache_shared", "tensor_core", "vectorize", "double_buffer"),
    )

    requests: tuple[CopyRequest, ...]
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> AsyncCopy:
        requests = (
            CopyRequest(fact, cast(CopyMode, own.word("via")))
            for own in (Stated((statement,)) for statement in stated.statements)
            for fact in own.facts("none")
        )
        return AsyncCopy(tuple(requests), stated)

    def apply(self, program: Program) -> Program:
        for statement in self.stated.statements:
            via = cast(CopyMode, Stated((statement,)).word("via"))
            if not has(program.target, SINCE[via]):
                name, hint = MISSING[via]
                output = program.problem.c.name
                if all(operand.tensor == output for operand in statement.operands):
                    hint = f"target sm_{SINCE['tma']}, or {by_threads(output)}"
                raise Refusal(f"{program.target} has no {name}", at=statement.span, hint=hint)
            contract = contraction(program.main)
            if via == "tma" and contract.parts > 1 and not ATOMS[contract.atom].in_place:
                self._check_addresses(program, statement)
        problem = program.problem
        inputs = tuple(r for r in self.requests if r.fact.tensor != problem.c.name)
        outputs = (r for r in self.requests if r.fact.tensor == problem.c.name)
        program = edit_main(program, lambda kernel: reduce(_switch, inputs, kernel))
        for request in outputs:
            program = edit_main(program, partial(_switch_output, problem=problem, request=request))
        tensors = {tensor.name: tensor for tensor in (problem.a, problem.b)}
        for request in inputs:
            if request.via == "tma":
                check_rank(tensors[request.fact.tensor], request.fact)
        if inputs:
            _check_ring(program, inputs)
        return with_scales_in_ring(with_parts_in_memory(program))

    @staticmethod
    def _check_addresses(program: Program, statement: Directive) -> None:
        """Raises ``Refusal`` if operands that are split would have tensor maps alone: accumulators
        that are not finite are computed again from their elements in global memory."""
        c = program.problem.c.name
        inputs = [operand for operand in statement.operands if operand.tensor != c]
        if inputs:
            raise Refusal(
                f"decompose reads elements of {inputs[0].tensor} again, for accumulators that "
                "are not "
                "finite, and a kernel with TMA has a tensor map in place of its address",
                at=statement.span,
                hint=f"async_copy {' '.join(o.tensor for o in inputs)} via=cp_async",
            )


def _switch(kernel: Kernel, request: CopyRequest) -> Kernel:
    fact = request.fact
    tensor = fact.tensor
    hint = f"add cache_shared {tensor} and double_buffer {tensor}"
    tile = shared_tile(kernel, "async_copy", fact.operand, hint)
    if tile.stages == 1:
        raise Refusal(
            f"async_copy {tensor}: with one stage a copy overlaps nothing",
            at=fact.operand.span,
            hint=f"double_buffer {tensor} stages=2",
        )
    (copy,) = (c for c in copies(kernel) if c.dst == tile.name)
    check = check_boxes if request.via == "tma" else _check_pieces
    check(kernel, fact, tile, copy)

    def switch(operation: Copy | Contract) -> Copy | Contract:
        return changed_by(fact.origin, copy, mode=request.via) if operation == copy else operation

    return edit_operations(kernel, switch)


def _switch_output(kernel: Kernel, problem: Problem, request: CopyRequest) -> Kernel:
    """Store C by TMA, from its staging slice."""
    fact, tensor = request.fact, request.fact.tensor
    if request.via != "tma":
        raise Refusal(
            f"async_copy {tensor}: cp.async only copies to shared memory, and {tensor} goes out",
            at=fact.operand.span,
            hint=f"async_copy {tensor} via=tma, or leave {tensor} out",
        )
    shared_tile(kernel, "async_copy", fact.operand, f"add cache_shared {tensor}")
    outward = copy_outward(kernel)
    assert outward is not None
    check_slice(kernel, problem.c.dtype, fact, outward)
    check_rank(problem.c, fact, by_threads(tensor))

    def send(copy: Copy) -> Copy:
        # Threads write the slice as wide as the map is; no thread stores vectors to C.
        return changed_by(fact.origin, copy, mode="tma", width=1) if copy == outward else copy

    def space(slice_: Buffer) -> Buffer:
        spare = spare_rows(slice_)
        return changed_by(fact.origin, slice_, spare=spare) if spare else slice_

    return edit_buffer(edit_statements(kernel, Copy, send), outward.src, space)


def _check_pieces(kernel: Kernel, fact: OperandArgument, tile: Buffer, copy: Copy) -> None:
    """Raises ``Refusal`` if cp.async can't copy a thread's pieces of the tile."""
    tensor = fact.tensor
    size = copy.width * BYTES[tile.dtype]
    if size < LEAST:
        raise Refusal(
            f"async_copy {tensor}: an asynchronous copy of {size} bytes does not exist",
            at=fact.operand.span,
            notes=(
                f"{tensor} is {tile.dtype} and is copied {copy.width} at a time: "
                f"{copy.width} x {BYTES[tile.dtype]} bytes; cp.async takes 4, 8 or 16",
            ),
            hint=_wider(kernel, tensor, tile),
        )
    straight = kernel.buffer(copy.src).letters[-1] == tile.letters[-1]
    if copy.width > 1 and not straight:
        order = indexed(tensor, kernel.buffer(copy.src).letters)
        raise Refusal(
            f"async_copy cannot scatter the {copy.width} elements of a wide access of {tensor}",
            at=fact.operand.span,
            notes=(
                f"{order} is laid out as {indexed(tile.name, tile.letters)}: "
                "what is contiguous in one is not in the other",
            ),
            hint=f"cache_shared {order}, or vectorize {tensor}.shared alone",
        )
    if copy.width > 1 and not stores_vectors(kernel, copy):
        fitting = tile.pad + -tile.row % copy.width
        raise Refusal(
            f"async_copy can't copy {copy.width} elements at once to {tile.name}",
            at=fact.operand.span,
            notes=(
                f"a row is {tile.row - tile.pad} + {tile.pad} = {tile.row} elements, "
                f"and {remainder(tile.row, copy.width)}: cp.async writes aligned vectors alone",
            ),
            hint=f"pad {tensor} by={fitting}, or leave {tensor} out of vectorize",
        )


def _wider(kernel: Kernel, tensor: str, tile: Buffer) -> str:
    """The hint for a tile of small elements: directives that allow an asynchronous copy."""
    order = kernel.buffer(tensor).letters
    straight = order[-1] == tile.letters[-1]
    laid = "" if straight else f"cache_shared {indexed(tensor, order)} and "
    return f"{laid}vectorize {tensor}.global width={widths(tile.dtype)[-1]}"


def _check_ring(program: Program, requests: tuple[CopyRequest, ...]) -> None:
    """Checks that all copies of the pipeline are asynchronous in one way: tiles that share stages
    are waited for together."""
    kernel, first = program.main, requests[0]
    pipeline = pipeline_of(kernel)
    assert pipeline is not None
    stages = {c.src: kernel.buffer(c.dst).stages for c in pipeline.produce}
    every = " ".join(c.src for c in pipeline.produce)
    others = [c for c in pipeline.produce if c.mode == "registers"]
    if others:
        raise Refusal(
            f"async_copy needs {others[0].src} to be copied asynchronously, too",
            at=first.fact.operand.span,
            hint=f"async_copy {every} via={first.via}",
        )
    if len({c.mode for c in pipeline.produce}) > 1:
        ways = ", ".join(f"{c.src} via={c.mode}" for c in pipeline.produce)
        raise Refusal(
            "async_copy copies the tiles that share stages in one way",
            at=requests[-1].fact.operand.span,
            notes=(f"{ways}; a step waits for both of its tiles at once",),
            hint=f"async_copy {every} via=cp_async, or via=tma for both",
        )
    if len(set(stages.values())) > 1:
        raise Refusal(
            "async_copy needs the same number of stages for both operands",
            at=first.fact.operand.span,
            notes=(", ".join(f"{name} has {count}" for name, count in stages.items()),),
            hint=f"double_buffer {' '.join(stages)} stages={max(stages.values())}",
        )
