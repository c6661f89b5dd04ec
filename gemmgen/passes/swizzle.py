"""swizzle: permute the rows of a tile in shared memory, to spread a column over the banks.

Rows are split into chunks, and chunk c of row r is stored at chunk ``c ^ (r / every % by)``: as
effective as a pad against bank conflicts, without its memory, and every row stays aligned.  ``by``
is the number of different permutations, ``every`` the number of consecutive rows with the same one,
``chunk`` the elements that stay contiguous, at least those of the widest access.  Arguments that
are left out are chosen for the fewest conflicts; ``explain`` shows how many remain.

A tile that TMA copies (``async_copy via=tma``) has TMA's own pattern: its rows
are 128, 64 or 32 bytes, ``by`` is 8, 4 or 2, ``every`` 1, 2 or 4, and ``chunk`` 16 bytes.  Longer
rows are cut into atom columns of such rows, as long as possible, which lie one after another. So
has the slice in which C leaves by TMA; atom columns of fewer than 8 rows take the room of 8.

    tile A_shared[k=16, m=64] f32 of=A
==> swizzle A by=4 chunk=8
    tile A_shared[k=16, m=64] f32 of=A swizzle by=4 every=1 chunk=8   # swizzle A by=4 chunk=8
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial, reduce
from typing import ClassVar

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import Span, remainder
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.buffers import Swizzle as Pattern
from gemmgen.ir.edit import changed_by, edit_buffer, edit_main, wide_access
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.ir.problem import Problem
from gemmgen.passes.banks import best_swizzle, candidates, conflicts, phases
from gemmgen.passes.base import Stated, shared_tile
from gemmgen.passes.swizzled_boxes import tma_tile
from gemmgen.schedule.formatting import format_directive
from gemmgen.schedule.model import NOWHERE, Directive, Gemm, Operand
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere

ARGUMENTS = ("by", "every", "chunk")


@record
class SwizzleRequest:
    """A statement for one operand."""

    operand: Operand
    statement: Directive

    @property
    def given(self) -> dict[str, int]:
        """The arguments that are not left out."""
        return {a.name: a.value for a in self.statement.arguments if isinstance(a.value, int)}

    def span_of(self, name: str) -> Span:
        found = self.statement.argument(name)
        return found.span if found and found.span != NOWHERE else self.operand.span


@record
class Swizzle:
    SPEC: ClassVar = DirectiveSpec(
        "swizzle",
        example="swizzle A by=4 every=4 chunk=8",
        operands=("a", "b", "c"),
        arguments=(
            ArgumentSpec("by", maximum=32, identity=1, fuzz=((2,), (4,), (8,))),
            ArgumentSpec("every", maximum=1024, fuzz=((1, 2, 4),)),
            ArgumentSpec("chunk", maximum=64, fuzz=((1, 2, 4, 8),)),
        ),
        elsewhere=Elsewhere(
            "TVM transform_layout", "transform_layout reorder_storage annotate_layout"
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = (
        *("tile", "cache_shared", "warp_tile", "register_block", "tensor_core", "vectorize", "pad"),
    )

    requests: tuple[SwizzleRequest, ...]
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> Swizzle:
        requests = (SwizzleRequest(operand, s) for s in stated.statements for operand in s.operands)
        return Swizzle(tuple(requests), stated)

    def apply(self, program: Program) -> Program:
        permute = partial(_permute, program.problem, dict(program.intent.copied))
        return edit_main(program, lambda kernel: reduce(permute, self.requests, kernel))


def _permute(
    problem: Problem, copied: dict[str, str], kernel: Kernel, request: SwizzleRequest
) -> Kernel:
    if request.given.get("by") == 1:
        return kernel
    tensor = request.operand.tensor
    via = copied.get(tensor, "registers")
    hint = f"add cache_shared {tensor}, or remove the line"
    tile = shared_tile(kernel, "swizzle", request.operand, hint)
    if kernel.spread.holding == "opaque":
        raise Refusal(
            f"swizzle {tensor}: tensor_core loads lines with a constant stride",
            at=request.operand.span,
            notes=(
                "a swizzle moves chunks within lines, and a fragment is loaded from one address",
            ),
            hint=f"pad {tensor} by={wide_access(kernel, tile)} in place of swizzle {tensor}",
        )
    if tile.pad:
        raise Refusal(
            f"swizzle {tensor}: its rows are padded already",
            at=request.operand.span,
            notes=(f"pad {tensor} by={tile.pad}; one of them is enough",),
            hint=f"remove the line, or pad {tensor}",
        )
    if via == "tma":
        given = {name: (value, request.span_of(name)) for name, value in request.given.items()}
        tile = tma_tile(kernel, tile, problem.dtype(tensor), request.operand, given)
    elif tensor == problem.c.name:
        raise Refusal(
            f"swizzle {tensor}: threads do not swizzle rows of {tile.name}",
            at=request.operand.span,
            notes=("TMA reads swizzled rows, and stores them in order",),
            hint=f"leave {tensor} out of swizzle",
        )
    else:
        _check(kernel, tile, request)
        tile = replace(tile, swizzle=_chosen(kernel, tile, request, via))
    origin = format_directive(request.statement)

    def permute(buffer: Buffer) -> Buffer:
        return changed_by(origin, buffer, atom_width=tile.atom_width, swizzle=tile.swizzle)

    return edit_buffer(kernel, tile.name, permute)


def _check(kernel: Kernel, tile: Buffer, request: SwizzleRequest) -> None:
    """Checks that arguments are powers of two, keep wide accesses contiguous and fit a row."""
    tensor, widest = request.operand.tensor, wide_access(kernel, tile)
    letter = tile.letters[-1]
    row = tile.extent(letter)
    for name in ARGUMENTS:
        value = request.given.get(name, 1)
        if value & (value - 1):
            below = 1 << value.bit_length() - 1
            raise Refusal(
                f"swizzle {tensor} {name}={value} is not a power of two",
                at=request.span_of(name),
                notes=("positions are computed from bits of a row's number",),
                hint=f"{name}={below}, or {name}={2 * below}",
            )
    every, rows = request.given.get("every", 1), tile.extent(tile.letters[0])
    if every > 1 and every >= rows:
        raise Refusal(
            f"swizzle {tensor} every={every} leaves all rows of {tile.name} the same",
            at=request.span_of("every"),
            notes=(f"the tile has {rows} rows along {tile.letters[0]}",),
            hint=(
                f"every={1 << (rows - 1).bit_length() - 1}, or leave every out"
                if rows > 2
                else "leave every out"
            ),
        )
    chunk = request.given.get("chunk", widest)
    if chunk < widest:
        raise Refusal(
            f"swizzle {tensor} chunk={chunk} would split the {widest}-wide accesses of {tile.name}",
            at=request.span_of("chunk"),
            notes=(f"{widest} elements of an access are contiguous, and a chunk has {chunk}",),
            hint=f"chunk={widest}, or leave chunk out",
        )
    by = request.given.get("by", 2)
    if row % (by * chunk):
        longest = row & -row
        note = f"chunk={chunk}" if "chunk" in request.given else f"chunks of {chunk}"
        raise Refusal(
            f"swizzle {tensor} by={by} does not fit the rows of {tile.name}",
            at=request.span_of("by"),
            notes=(
                f"by={by} x {note} = {by * chunk} elements; a row has {row} along {letter}, "
                f"and {remainder(row, by * chunk)}",
            ),
            hint=(
                f"by={longest // chunk}"
                if longest > chunk
                else f"remove the line: pad {tensor} by={widest} needs no such rows"
            ),
        )


def _chosen(kernel: Kernel, tile: Buffer, request: SwizzleRequest, via: str) -> Pattern:
    """The pattern with the fewest conflicts, and of those the smallest, that has the given
    arguments."""
    if len(request.given) == len(ARGUMENTS):
        return Pattern(**request.given)
    fitting = tuple(
        pattern
        for pattern in candidates(kernel, tile)
        if all(getattr(pattern, name) == value for name, value in request.given.items())
    )
    if not fitting:
        # Outside the searched range: the given arguments, with the smallest others.
        least = {"by": 2, "every": 1, "chunk": wide_access(kernel, tile)}
        return Pattern(**(least | request.given))
    row = tile.extent(tile.letters[-1])
    found = phases(kernel, tile, asynchronous=via == "cp_async")
    least, best = best_swizzle(found, row, fitting)
    plain = conflicts(found, row, None)
    if least >= plain and not request.given:
        tensor = request.operand.tensor
        note = f"each phase of stores to and reads from {tile.name} is one wavefront as it is"
        if plain:
            note = f"in {len(fitting)} permutations {least} wavefronts too many at least, "
            note += f"and {plain} without"
        raise Refusal(
            f"swizzle {tensor}: no permutation of its rows has fewer bank conflicts",
            at=request.operand.span,
            notes=(note,),
            hint="remove the line",
        )
    return best
