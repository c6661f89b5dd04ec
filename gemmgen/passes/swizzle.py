"""swizzle: permute the rows of a tile in shared memory, to spread a column over the banks.

Rows are cut into chunks, and row r keeps its chunk c where chunk ``c ^ (r / every % by)`` would be:
as good as a pad against bank conflicts, without its memory, and every row stays aligned.  ``by`` is
the number of rows that differ, ``every`` how many rows in turn are alike, ``chunk`` (elements) the
smallest part that stays together, at least as long as the widest access.  What is left out is
chosen for the fewest conflicts; ``explain`` shows how many remain.

    shared A_shared[k=16, m=64] f32
==> swizzle A by=4 every=4 chunk=8
    shared A_shared[k=16, m=64] f32 swizzle by=4 every=4 chunk=8   # swizzle A by=4 every=4 chunk=8
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import ClassVar

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import Span
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.buffers import Swizzle as Pattern
from gemmgen.ir.edit import edit_buffer, edit_main, wide_access
from gemmgen.ir.nodes import Kernel, Program
from gemmgen.passes.banks import candidates, conflicts, phases
from gemmgen.passes.base import Said
from gemmgen.schedule.formatting import format_directive
from gemmgen.schedule.model import NOWHERE, Directive, Operand, Schedule
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere

ARGUMENTS = ("by", "every", "chunk")


@record
class Wish:
    """What a statement says of one operand: ``given`` of its arguments, each with its place."""

    operand: Operand
    given: Mapping[str, int]
    places: Mapping[str, Span] = field(compare=False)
    origin: str = ""

    def place(self, name: str) -> Span:
        return self.places.get(name, self.operand.span)


@record
class Swizzle:
    SPEC: ClassVar = DirectiveSpec(
        "swizzle",
        example="swizzle A by=4 every=4 chunk=8",
        operands=("a", "b"),
        arguments=(
            ArgumentSpec("by", maximum=32, identity=1),
            ArgumentSpec("every", maximum=1024),
            ArgumentSpec("chunk", maximum=64),
        ),
        elsewhere=Elsewhere(
            "TVM transform_layout", "transform_layout reorder_storage annotate_layout"
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = (
        *("tile", "cache_shared", "warp_tile", "register_block", "tensor_core", "vectorize", "pad"),
    )

    wishes: tuple[Wish, ...]
    asynchronous: bool
    """Will the tiles be copied by cp.async, which deals small pieces in another way?"""
    said: Said = field(compare=False)

    @staticmethod
    def read(said: Said, schedule: Schedule) -> Swizzle:
        wishes = (_wish(s, operand) for s in said.statements for operand in s.operands)
        copied = Said.of(schedule, "async_copy")
        asynchronous = copied is not None and copied.word("via") == "cp_async"
        return Swizzle(tuple(wishes), asynchronous, said)

    def apply(self, program: Program) -> Program:
        for wish in self.wishes:
            program = edit_main(program, lambda kernel, wish=wish: self._permute(kernel, wish))
        return program

    def _permute(self, kernel: Kernel, wish: Wish) -> Kernel:
        if wish.given.get("by") == 1:
            return kernel
        tensor = wish.operand.tensor
        name = f"{tensor}_shared"
        if not kernel.has(name):
            raise Refusal(
                f"swizzle {tensor}: {tensor} is not in shared memory",
                at=wish.operand.span,
                hint=f"add cache_shared {tensor}, or remove the line",
            )
        tile = kernel.buffer(name)
        if kernel.spread.holding == "opaque":
            raise Refusal(
                f"swizzle {tensor}: tensor_core loads lines that lie a fixed distance apart",
                at=wish.operand.span,
                notes=("a swizzle moves the chunks of some lines, and no address names them",),
                hint=f"pad {tensor} by={wide_access(kernel, tile)} in place of swizzle {tensor}",
            )
        if tile.pad:
            raise Refusal(
                f"swizzle {tensor}: its rows are padded already",
                at=wish.operand.span,
                notes=(f"pad {tensor} by={tile.pad}; one of them is enough",),
                hint=f"remove the line, or pad {tensor}",
            )
        _check(kernel, tile, wish)
        pattern = _chosen(kernel, tile, wish, self.asynchronous)

        def permute(buffer: Buffer) -> Buffer:
            return replace(buffer, swizzle=pattern, origins=(*buffer.origins, wish.origin))

        return edit_buffer(kernel, name, permute)


def _wish(statement: Directive, operand: Operand) -> Wish:
    given = {a.name: a.value for a in statement.arguments if isinstance(a.value, int)}
    places = {a.name: a.span for a in statement.arguments if a.span != NOWHERE}
    return Wish(operand, given, places, format_directive(statement))


def _check(kernel: Kernel, tile: Buffer, wish: Wish) -> None:
    """What is said must be powers of two that keep wide accesses whole and fit into a row."""
    tensor, widest = wish.operand.tensor, wide_access(kernel, tile)
    letter = tile.letters[-1]
    row = tile.extent(letter)
    for name in ARGUMENTS:
        value = wish.given.get(name, 1)
        if value & (value - 1):
            below = 1 << value.bit_length() - 1
            raise Refusal(
                f"swizzle {tensor} {name}={value} is no power of two",
                at=wish.place(name),
                notes=("places are told from bits of a row's number",),
                hint=f"{name}={below}, or {name}={2 * below}",
            )
    every, rows = wish.given.get("every", 1), tile.extent(tile.letters[0])
    if every > 1 and every >= rows:
        below = 1 << (rows - 1).bit_length() - 1
        raise Refusal(
            f"swizzle {tensor} every={every} leaves all rows of {tile.name} alike",
            at=wish.place("every"),
            notes=(f"the tile has {rows} rows along {tile.letters[0]}",),
            hint=f"every={below}, or leave every out" if rows > 2 else "leave every out",
        )
    chunk = wish.given.get("chunk", widest)
    if chunk < widest:
        raise Refusal(
            f"swizzle {tensor} chunk={chunk} would tear the {widest}-wide accesses of {tile.name}",
            at=wish.place("chunk"),
            notes=(f"{widest} elements lie together, chunks of {chunk} do not",),
            hint=f"chunk={widest}, or leave chunk out",
        )
    by = wish.given.get("by", 2)
    if row % (by * chunk):
        longest = row & -row
        told = f"chunk={chunk}" if "chunk" in wish.given else f"chunks of {chunk}"
        raise Refusal(
            f"swizzle {tensor} by={by} does not fit the rows of {tile.name}",
            at=wish.place("by"),
            notes=(
                f"by={by} x {told} = {by * chunk} elements; a row has {row} along {letter}, "
                f"and {row} % {by * chunk} = {row % (by * chunk)}",
            ),
            hint=(
                f"by={longest // chunk}"
                if longest > chunk
                else f"remove the line: pad {tensor} by={widest} needs no such rows"
            ),
        )


def _chosen(kernel: Kernel, tile: Buffer, wish: Wish, asynchronous: bool) -> Pattern:
    """The pattern with the fewest conflicts, of those the smallest, in which the given arguments
    are as given."""
    if all(name in wish.given for name in ARGUMENTS):
        return Pattern(*(wish.given[name] for name in ARGUMENTS))
    row = tile.extent(tile.letters[-1])
    found = phases(kernel, tile, asynchronous=asynchronous)
    fitting = [
        pattern
        for pattern in candidates(kernel, tile)
        if all(getattr(pattern, name) == value for name, value in wish.given.items())
    ]
    if not fitting:
        return _nearest(kernel, tile, wish)
    counted = ((conflicts(found, row, pattern), at) for at, pattern in enumerate(fitting))
    least, at = min(counted)
    plain = conflicts(found, row, None)
    if least >= plain and not wish.given:
        tensor = wish.operand.tensor
        told = f"each phase of stores to and reads from {tile.name} is one wavefront as it is"
        if plain:
            told = f"in {len(fitting)} permutations {least} wavefronts too many at the least, "
            told += f"and {plain} without"
        raise Refusal(
            f"swizzle {tensor}: no permutation of its rows has fewer bank conflicts",
            at=wish.operand.span,
            notes=(told,),
            hint="remove the line",
        )
    return fitting[at]


def _nearest(kernel: Kernel, tile: Buffer, wish: Wish) -> Pattern:
    """What is given, beyond what a search looks at, with the smallest of the rest."""
    return Pattern(
        wish.given.get("by", 2),
        wish.given.get("every", 1),
        wish.given.get("chunk", wide_access(kernel, tile)),
    )
