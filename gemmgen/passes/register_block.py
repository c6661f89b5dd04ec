"""register_block: each thread owns an m x n micro-tile of C.

A thread reads m elements of A and n of B (its fragments) for m * n multiply-adds: (1/m + 1/n) reads
each instead of 2.  ``interleave`` splits the micro-tile into pieces of that many contiguous
elements, strided over the tile, so that a warp reads contiguous words; by default the pieces are as
wide as the fragment's wide reads (``vectorize``), or the whole micro-tile.  If only one fragment is
read wider than ``interleave``, its letter keeps pieces of that width: ``interleave=1`` together
with ``vectorize A.shared width=4`` gives pieces of four rows and of single columns.  ``order`` is
that of a thread's FMAs: ``serpentine`` and ``zigzag`` let consecutive FMAs share operands.

    accumulator acc[m=16, n=16] f32 spread [m=1x1x16x1, n=1x1x16x1] x=n
    loop k
      contract acc += A * B
==> register_block m=4 n=4
    fragment A_frag[m=16] f32 of=A spread [m=1x1x4x4] x=n   # register_block m=4 n=4
    accumulator acc[m=16, n=16] f32 spread [m=1x1x4x4, n=1x1x4x4] x=n   # register_block m=4 n=4
    loop k
      copy A_frag = A   # register_block m=4 n=4
      contract acc += A_frag * B_frag   # register_block m=4 n=4
"""

from __future__ import annotations

from dataclasses import field, replace
from math import gcd
from typing import ClassVar, cast, get_args

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import remainder
from gemmgen.ir.buffers import AxisSpread, Buffer, Spread
from gemmgen.ir.edit import edit_main
from gemmgen.ir.nodes import FmaOrder, Kernel, Program
from gemmgen.ir.problem import Problem
from gemmgen.passes.base import Stated
from gemmgen.passes.fragments import contract_fragments, fragment, with_spread
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.roles import roles
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere

SIZES = ((1,), (3, 5, 7), (2, 6), (4, 12), (8,))
PIECES = ((1,), (2,), (4,), (3, 5, 6, 7, 8, 12))
"""For the fuzzer: micro-tiles and pieces by what divides them."""


@record
class RegisterBlock:
    SPEC: ClassVar = DirectiveSpec(
        "register_block",
        example="register_block m=8 n=8",
        sizes=True,
        arguments=(
            ArgumentSpec("<m>", required=True, maximum=64, fuzz=SIZES),
            ArgumentSpec("<n>", required=True, maximum=64, fuzz=SIZES),
            ArgumentSpec("interleave", maximum=64, elsewhere="parts pieces", fuzz=PIECES),
            ArgumentSpec(
                "order", "word", choices=get_args(FmaOrder), default="rows", identity="rows"
            ),
        ),
        elsewhere=Elsewhere(
            "TVM cache_write, CUTLASS thread tile, CLBlast MDIMC",
            "cache_write alloc_fragment copy_to_registers thread_tile micro_tile "
            "microtile upcast unroll_buffer register_tile mdimc ndimc blockwise "
            "thread_block_tile",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile", "cache_shared", "warp_tile")

    sizes: tuple[tuple[str, int], ...]
    interleave: int | None
    order: FmaOrder
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> RegisterBlock:
        sizes, given = stated.sizes(roles(gemm)[:2]), stated.integer("interleave")
        order = cast(FmaOrder, stated.word("order") or "rows")
        return RegisterBlock(sizes, given, order, stated)

    def apply(self, program: Program) -> Program:
        (letter, rows), _ = self.sizes
        if self.order == "zigzag" and rows % 2:
            raise Refusal(
                f"order=zigzag goes through pairs of rows, and {letter}={rows} is odd",
                at=self.stated.span_of("order"),
                notes=(f"{rows} % 2 = 1",),
                hint=f"order=serpentine, or {letter}={rows + 1}",
            )
        pieces = self._pieces(program)
        return edit_main(program, lambda kernel: self._block(kernel, program.problem, pieces))

    def _pieces(self, program: Program) -> dict[str, int]:
        """Contiguous elements of a piece, per letter."""
        problem, given = program.problem, self.interleave
        letters = {problem.a.name: problem.m, problem.b.name: problem.n}
        widths = {letters[tensor]: width for tensor, width in program.intent.fragment_widths}
        pieces = {letter: _piece(size, widths.get(letter), given) for letter, size in self.sizes}
        if given and given not in pieces.values():
            pieces = {letter: given for letter, _ in self.sizes}
        return pieces

    def _block(self, kernel: Kernel, problem: Problem, pieces: dict[str, int]) -> Kernel:
        spread, origin = kernel.spread, self.stated.origin
        axes = (self._axis(spread.axis(letter), pieces[letter]) for letter, _ in self.sizes)
        spread = spread.with_axes(*axes)

        def registers(tensor: str, letter: str) -> Buffer:
            """An operand's registers for one k, converted to the type of the accumulators."""
            own = Spread((spread.axis(letter),), spread.x)
            return fragment(tensor, problem.accumulate, own, origin)

        a, b = registers(problem.a.name, problem.m), registers(problem.b.name, problem.n)
        kernel = contract_fragments(kernel, a, b, origin, order=self.order)
        return with_spread(kernel, (a, b), spread, origin)

    def _axis(self, axis: AxisSpread, piece: int) -> AxisSpread:
        letter, size = axis.letter, dict(self.sizes)[axis.letter]
        if axis.lanes % size:
            raise Refusal(
                f"register_block {letter}={size} does not divide the tile",
                at=self.stated.span_of(letter),
                notes=(f"{axis.lanes} elements along {letter}: {remainder(axis.lanes, size)}",),
                hint=f"a divisor of {axis.lanes}: {letter}="
                + " or ".join(
                    str(d) for d in range(1, min(axis.lanes, 16) + 1) if axis.lanes % d == 0
                ),
            )
        if size % piece:
            raise Refusal(
                f"interleave={piece} does not divide the micro-tile along {letter}",
                at=self.stated.span_of("interleave"),
                notes=(remainder(size, piece),),
                hint=self._fitting_pieces(letter, size, piece),
            )
        return replace(axis, lanes=axis.lanes // size, pieces=size // piece, width=piece)

    def _fitting_pieces(self, letter: str, size: int, piece: int) -> str:
        """Pieces that divide the micro-tile; or, for wide pieces, a micro-tile of whole ones."""
        fitting = f"interleave={_largest_divisor(gcd(*dict(self.sizes).values()), piece)}"
        whole = -(-size // piece) * piece
        return f"{letter}={whole}, or {fitting}" if piece in (2, 4) and whole <= 64 else fitting


def _piece(size: int, width: int | None, given: int | None) -> int:
    """Elements of a piece: as given, but at least the width of the fragment's reads."""
    if given is None:
        return width if width and size % width == 0 else size
    return width if width and width % given == 0 and size % width == 0 else given


def _largest_divisor(size: int, limit: int) -> int:
    return next(d for d in range(min(size, limit), 0, -1) if size % d == 0)
