"""tensor_core: the contraction on tensor cores, a warp at a time.

A warp's 32 lanes together hold 16 x 16 elements of A, of B and of the accumulator, in an
unspecified order, and multiply them by one instruction: 4096 products instead of 32.  A and B are
f16 or bf16, their accumulators f32; ``via=mma`` multiplies i8, e4m3, e5m2, tf32 and f64, too.
Fragments are loaded from shared memory (``cache_shared``), in any storage order. A warp owns its
``warp_tile``, by default at most 64 x 64 (32 x 32 of f64, 64 x 32 with ``promote``); for the
epilogue its accumulators are staged in a slice of shared memory.

``via=wgmma`` multiplies f16, bf16, FP8, i8 and tf32 with four warps (a warpgroup), from swizzled
tiles that TMA loads. It truncates tf32, which ``via=mma`` rounds. Its accumulators of FP8 keep 14
bits: for K in the thousands, sums of positive products lose some percent. ``promote=N`` keeps that
error small: every N terms the accumulator is added to one in f32, and reset to zero. ``decompose``
needs ``promote``.

``rows=n`` exchanges the operands of ``via=mma`` and ``via=wgmma`` (swap AB): the second factor's
letter lies along the instruction's 16 or 64 rows, and the first one's along its columns, in steps
of 8. So a C with few rows wastes none of the instruction's. Storage orders and results stay the
same. A C that is contiguous along n has no ``vectorize`` then: threads have neighbors along m.
``cache_shared C`` with ``async_copy C via=tma`` stores it by ``stmatrix.trans`` (16-bit types) and
TMA.

    accumulator acc[m=32, n=32] f32 spread [m=2x1x16x1, n=1x1x32x1] x=n by_warp
    loop k
      contract acc += A_shared * B_shared
    map C = alpha * acc + beta * C[m, n]
==> tensor_core via=wmma
    staging acc_shared[m=32, n=32] f32 of=acc pad=8   # tensor_core via=wmma
    loop k step=16
      copy A_frag = A_shared   # tensor_core via=wmma
      contract acc += A_frag * B_frag atom=wmma   # tensor_core via=wmma
    map C = alpha * acc + beta * C[m, n] through=acc_shared
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar, cast, get_args

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import Blame
from gemmgen.ir.atoms import Atom, AtomTraits, Via
from gemmgen.ir.boxes import with_type
from gemmgen.ir.buffers import AxisSpread, Buffer, Role, Space, Spread
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.edit import contraction, copy_outward, edit_main, edit_statements, pipeline_of
from gemmgen.ir.fragment_layout import FragmentLayout
from gemmgen.ir.intent import Intent
from gemmgen.ir.nodes import Contract, Kernel, Map, Program
from gemmgen.ir.problem import Problem, Tensor
from gemmgen.passes.atom_choice import check_lines, chosen_atom
from gemmgen.passes.base import Stated
from gemmgen.passes.fragments import (
    contract_fragments,
    contract_in_place,
    fragment,
    with_spread,
)
from gemmgen.passes.instruction_tiles import InstructionTiles, check_sizes
from gemmgen.passes.promote import check_blocks, check_split, promoted
from gemmgen.passes.swapped_operands import with_swapped_operands
from gemmgen.passes.tiles_in_place import check_tiles, in_rounds
from gemmgen.schedule.formatting import format_sizes
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere

STAGED_ACC = "acc_shared"
"""The slice of shared memory in which the accumulators are staged."""
PAD = 8
"""The pad of its rows, so that the lines of a fragment are in different banks: 32 bytes of f32, the
alignment of a fragment in the PTX manual."""
USUAL = 64
"""The greatest side of a warp's tile by default, for accumulators of ``ACC_BYTES`` bytes."""
ACC_BYTES = 4


@record
class TensorCore:
    SPEC: ClassVar = DirectiveSpec(
        "tensor_core",
        example="tensor_core via=wmma",
        sizes=True,
        arguments=(
            ArgumentSpec("via", "word", choices=get_args(Via), required=True),
            ArgumentSpec(
                *("rows", "word"),
                choices=("<m>", "<n>"),
                default="<m>",
                identity="<m>",
                elsewhere="swap_ab swapab swap transpose_c",
            ),
            ArgumentSpec(
                "promote",
                minimum=0,
                identity=0,
                fuzz=((16,), (32,), (64, 128)),
                elsewhere="promotion_interval promotion promotion_frequency mma_promotion_interval",
            ),
        ),
        elsewhere=Elsewhere(
            "TVM tensorize, tinygrad TC", "blockize tensorize tc wmma mma wgmma mma_sync"
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = (
        *("tile", "cache_shared", "warp_tile", "register_block", "decompose"),
    )

    via: Via
    rows: str | None
    """The letter of C that lies along the instruction's rows; None: the first factor's."""
    terms: int
    """The promotion interval in elements along k; 0: no promotion."""
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> TensorCore:
        terms = stated.integer("promote") or 0
        return TensorCore(cast(Via, stated.word("via")), stated.word("rows"), terms, stated)

    def apply(self, program: Program) -> Program:
        self._check_micro_tile(program.main)
        if self.rows == program.problem.n:
            program = with_swapped_operands(program)
        atom = chosen_atom(self.via, program, self.stated.span)
        return edit_main(program, lambda kernel: self._summed(kernel, program, atom))

    def _summed(self, kernel: Kernel, program: Program, atom: Atom) -> Kernel:
        problem = program.problem
        kernel = self._contract(kernel, problem, program.intent, atom)
        check_split(kernel, problem, self.terms, self.via, self.stated)
        check_blocks(kernel, problem, self.terms, self.via, self.stated)
        if not self.terms:
            return kernel
        return promoted(kernel, problem, self.terms, self.via, self.stated)

    def _contract(self, kernel: Kernel, problem: Problem, intent: Intent, atom: Atom) -> Kernel:
        tiles = InstructionTiles(problem, atom)
        self._check_epilogue_store(kernel, tiles.traits)
        self._check_lanes(tiles, intent)
        self._check_shared(kernel, problem, contraction(kernel))
        check_lines(kernel, problem, tiles.traits, self.via, self.stated.span)
        check_sizes(kernel, tiles, self.via)
        by_warp = kernel.spread.by_warp
        axes = tuple(
            tiles.distribute(axis, axis.lanes if by_warp else self._usual(axis, tiles))
            for axis in kernel.spread.axes
        )
        known = tiles.traits.accumulators is not None
        x = problem.n if known else kernel.spread.x
        spread = replace(kernel.spread, axes=axes, atom=atom, by_warp=known, x=x)
        origin = self.stated.origin
        if tiles.traits.in_place:
            spread = in_rounds(spread, kernel.buffer(contraction(kernel).a))
            self._check_in_place(kernel, problem, intent, spread)
            kernel = contract_in_place(kernel, origin, step=tiles.traits.k, atom=atom)
            return with_spread(kernel, (), spread, origin)

        def registers(tensor: Tensor, letter: str, layout: FragmentLayout | None) -> Buffer:
            own = Spread(tiles.operand(spread.axis(letter), layout), spread.x, atom, by_warp=known)
            split = contraction(kernel)
            found = fragment(tensor.name, split.into or tensor.dtype, own, origin)
            return replace(found, parts=split.parts)

        a = registers(problem.a, problem.m, tiles.traits.a)
        b = registers(problem.b, problem.n, tiles.traits.b)
        kernel = contract_fragments(kernel, a, b, origin, step=tiles.traits.k, atom=atom)
        if known:
            return with_spread(kernel, (a, b), spread, origin)
        kernel = edit_statements(kernel, Map, lambda final: replace(final, through=STAGED_ACC))
        return with_spread(kernel, (a, b, self._slice(problem, spread)), spread, origin)

    def _usual(self, axis: AxisSpread, tiles: InstructionTiles) -> int:
        """A warp's extent along an axis without ``warp_tile``."""
        usual = tiles.most(axis.letter) or USUAL * ACC_BYTES // BYTES[tiles.problem.accumulate]
        if self.terms and axis.letter == tiles.problem.n:
            usual //= 2  # there are two sets of accumulators
        return tiles.widest(axis, usual)

    def _slice(self, problem: Problem, spread: Spread) -> Buffer:
        """The slice: a piece of each warp along C's rows, the whole tile along its contiguous
        letter."""
        outer, inner = (spread.axis(letter) for letter in problem.matrix(problem.c.letters))
        sizes = ((outer.letter, outer.warps * outer.width), (inner.letter, inner.extent))
        origins = (self.stated.origin,)
        return Buffer(STAGED_ACC, Role.STAGING, "f32", sizes, "acc", pad=PAD, origins=origins)

    # Refusals.

    def _check_micro_tile(self, kernel: Kernel) -> None:
        blocked = kernel.buffer(contraction(kernel).a)
        if blocked.role is Role.FRAGMENT:
            raise Refusal(
                "tensor_core excludes register_block: its accumulators belong to warps, not "
                "to threads",
                at=self.stated.span,
                notes=(f"{blocked.origins[0]} distributes the tile over single threads",),
                hint="remove one of the two; warp_tile says what a warp owns",
            )

    def _check_epilogue_store(self, kernel: Kernel, traits: AtomTraits) -> None:
        outward = copy_outward(kernel)
        if outward is not None and traits.holding == "opaque":
            tensor = kernel.buffer(outward.src).tensor
            raise Refusal(
                f"tensor_core via={self.via} stages its accumulators in shared memory already",
                at=self.stated.span,
                notes=(
                    f"{outward.origins[0]} would stage {tensor} again; the fragment layout of the "
                    "accumulators is unspecified, so they all pass through acc_shared",
                ),
                hint=f"leave {tensor} out of cache_shared",
            )

    def _check_lanes(self, tiles: InstructionTiles, intent: Intent) -> None:
        """Checks that the lanes run along the letter that the instruction says."""
        n = tiles.problem.n
        if tiles.traits.holding == "opaque" or intent.bound in (None, n):
            return
        raise Refusal(
            f"tensor_core via={self.via} has neighbouring lanes along {n}",
            at=Blame("bind", "x"),
            notes=(
                f"four lanes share a row of the accumulators, which has {tiles.traits.n} along "
                f"{n}",
            ),
            hint=f"x={n}",
        )

    def _check_in_place(
        self, kernel: Kernel, problem: Problem, intent: Intent, spread: Spread
    ) -> None:
        contract = contraction(kernel)
        tiles = tuple(
            (tensor.name, with_type(kernel.buffer(name), contract.into or tensor.dtype))
            for tensor, name in ((problem.a, contract.a), (problem.b, contract.b))
        )
        check_tiles(tiles, intent, spread, self.via, self.stated.span)

    def _check_shared(self, kernel: Kernel, problem: Problem, contract: Contract) -> None:
        missing = [
            tensor.name
            for tensor, name in ((problem.a, contract.a), (problem.b, contract.b))
            if kernel.buffer(name).space is not Space.SHARED
        ]
        if not missing:
            return
        sizes = format_sizes(kernel.work.tile)
        if not kernel.work.origins:
            sizes = f"{problem.m}={2 * USUAL} {problem.n}={2 * USUAL}"
        step = "" if pipeline_of(kernel) else f"tile {sizes} {problem.k}=32 and "
        raise Refusal(
            f"tensor_core reads its operands from shared memory, and {' and '.join(missing)} "
            f"{'are' if len(missing) > 1 else 'is'} not there",
            at=self.stated.span,
            hint=f"{step}cache_shared {' '.join(missing)}",
        )
