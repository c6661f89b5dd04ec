"""tensor_core: the contraction on tensor cores, a warp at a time.

A warp's 32 lanes together hold 16 x 16 elements of A, of B and of the accumulator, in an
unspecified order, and multiply them by one instruction: 4096 products instead of 32.  A and B are
f16 or bf16, their sums f32.  Fragments are loaded from shared memory (``cache_shared``), in any
storage order.  A warp owns its ``warp_tile``, by default at most 64 x 64; for the epilogue its sums
are staged in a slice of shared memory.

    register acc[m=32, n=32] f32 spread [m=2x1x16x1, n=1x1x32x1] x=n by_warp   # warp_tile m=16 n=32
    loop k
      contract acc += A_shared * B_shared
    map C = alpha * acc + beta * C[m, n]
==> tensor_core via=wmma
    shared acc_shared[m=32, n=32] f32 pad=8   # tensor_core via=wmma
    loop k step=16
      copy A_frag = A_shared   # tensor_core via=wmma
      contract acc += A_frag * B_frag atom=wmma   # tensor_core via=wmma
    map C = alpha * acc + beta * C[m, n] through=acc_shared
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import remainder
from gemmgen.ir.atoms import ATOMS, Atom, AtomTraits
from gemmgen.ir.buffers import AxisSpread, Buffer, Space, Spread
from gemmgen.ir.edit import contraction, copy_outward, edit_main, edit_statements, pipeline_of
from gemmgen.ir.nodes import Contract, Kernel, Map, Program
from gemmgen.ir.problem import Problem, Tensor
from gemmgen.passes.base import Stated
from gemmgen.passes.fragments import contract_fragments, fragment, with_spread
from gemmgen.schedule.formatting import format_sizes
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere

SUMS = "acc_shared"
"""The slice of shared memory in which the sums are staged."""
PAD = 8
"""The pad of its rows, so that the lines of a fragment are in different banks: 32 bytes of f32, the
alignment of a fragment in the PTX manual."""
USUAL = 64
"""The greatest side of a warp's tile by default."""


@record
class TensorCore:
    SPEC: ClassVar = DirectiveSpec(
        "tensor_core",
        example="tensor_core via=wmma",
        sizes=True,
        arguments=(ArgumentSpec("via", "word", choices=("wmma",), required=True),),
        elsewhere=Elsewhere(
            "TVM tensorize, tinygrad TC", "blockize tensorize tc wmma mma wgmma mma_sync"
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile", "cache_shared", "warp_tile", "register_block")

    via: Atom
    stated: Stated = field(compare=False)
    distributing: tuple[tuple[str, Stated], ...] = field(compare=False)
    """The directives that distribute the tile to warps or threads, by name."""

    @staticmethod
    def read(stated: Stated, schedule: Schedule) -> TensorCore:
        found = ((n, Stated.of(schedule, n)) for n in ("tile", "warp_tile", "register_block"))
        return TensorCore("wmma", stated, tuple((n, other) for n, other in found if other))

    @property
    def has_warp_tile(self) -> bool:
        return "warp_tile" in dict(self.distributing)

    @property
    def atom(self) -> AtomTraits:
        return ATOMS[self.via]

    def apply(self, program: Program) -> Program:
        self._check_micro_tile()
        self._check_types(program)
        return edit_main(program, lambda kernel: self._contract(kernel, program.problem))

    def _contract(self, kernel: Kernel, problem: Problem) -> Kernel:
        self._check_way_out(kernel)
        self._check_shared(kernel, problem, contraction(kernel))
        self._check_tile(kernel, problem)
        axes = tuple(self._axis(axis, problem) for axis in kernel.spread.axes)
        spread = replace(kernel.spread, axes=axes, atom=self.via, by_warp=False)
        steps, origin = AxisSpread(problem.k, 1, 1, 1, self.atom.k), self.stated.origin

        def registers(tensor: Tensor, letter: str) -> Buffer:
            own = Spread((spread.axis(letter), steps), spread.x, self.via)
            return fragment(tensor.name, tensor.dtype, own, origin)

        a, b = registers(problem.a, problem.m), registers(problem.b, problem.n)
        kernel = contract_fragments(kernel, a, b, origin, step=self.atom.k, atom=self.via)
        kernel = edit_statements(kernel, Map, lambda final: replace(final, through=SUMS))
        return with_spread(kernel, (a, b, self._slice(problem, spread)), spread, origin)

    def _axis(self, axis: AxisSpread, problem: Problem) -> AxisSpread:
        """Whole pieces for each warp instead of an element for each of its threads."""
        side = self._side(axis.letter, problem)
        size = axis.lanes
        if not self.has_warp_tile:
            size = next(s for s in range(USUAL, 0, -side) if axis.extent % s == 0)
        return AxisSpread(axis.letter, axis.extent // size, size // side, 1, side)

    def _side(self, letter: str, problem: Problem) -> int:
        sides = {problem.m: self.atom.m, problem.n: self.atom.n, problem.k: self.atom.k}
        return sides[letter]

    def _slice(self, problem: Problem, spread: Spread) -> Buffer:
        """The slice: a piece of each warp along C's rows, the whole tile along its contiguous
        letter."""
        outer, inner = (spread.axis(letter) for letter in problem.matrix(problem.c.letters))
        sizes = ((outer.letter, outer.warps * outer.width), (inner.letter, inner.extent))
        return Buffer(SUMS, Space.SHARED, "f32", sizes, PAD, origins=(self.stated.origin,))

    # Refusals.

    def _check_micro_tile(self) -> None:
        blocked = dict(self.distributing).get("register_block")
        if blocked is not None:
            raise Refusal(
                "tensor_core excludes register_block: its sums belong to warps, not to threads",
                at=self.stated.span,
                notes=(f"{blocked.origin} distributes the tile over single threads",),
                hint="remove one of the two; warp_tile says what a warp owns",
            )

    def _check_way_out(self, kernel: Kernel) -> None:
        outward = copy_outward(kernel)
        if outward is not None:
            tensor = outward.src.removesuffix("_shared")
            raise Refusal(
                f"tensor_core via={self.via} takes its sums through shared memory already",
                at=self.stated.span,
                notes=(
                    f"{outward.origins[0]} would take {tensor} there once more; which lane has "
                    "which sum is unspecified, so they all pass through acc_shared",
                ),
                hint=f"leave {tensor} out of cache_shared",
            )

    def _check_types(self, program: Program) -> None:
        a, b = program.problem.a, program.problem.b
        if a.dtype == b.dtype and a.dtype in self.atom.types:
            return
        wanted = next((t.dtype for t in (a, b) if t.dtype in self.atom.types), "f16")
        raise Refusal(
            f"tensor_core via={self.via} multiplies {' or '.join(self.atom.types)}, with one "
            "type for both operands",
            at=self.stated.span,
            notes=(f"{a.name} is {a.dtype}, {b.name} is {b.dtype}",),
            hint=f"dtype {a.name}={wanted} {b.name}={wanted}, or register_block",
        )

    def _check_shared(self, kernel: Kernel, problem: Problem, contract: Contract) -> None:
        missing = [
            tensor.name
            for tensor, name in ((problem.a, contract.a), (problem.b, contract.b))
            if kernel.buffer(name).space is not Space.SHARED
        ]
        if not missing:
            return
        sizes = format_sizes(kernel.work.tile)
        if "tile" not in dict(self.distributing):
            sizes = f"{problem.m}={2 * USUAL} {problem.n}={2 * USUAL}"
        step = "" if pipeline_of(kernel) else f"tile {sizes} {problem.k}=32 and "
        raise Refusal(
            f"tensor_core reads its operands from shared memory, and {' and '.join(missing)} "
            f"{'are' if len(missing) > 1 else 'is'} not there",
            at=self.stated.span,
            hint=f"{step}cache_shared {' '.join(missing)}",
        )

    def _check_tile(self, kernel: Kernel, problem: Problem) -> None:
        pipeline = pipeline_of(kernel)
        assert pipeline is not None
        for axis in kernel.spread.axes:
            if self.has_warp_tile:
                self._check_side("warp_tile", axis.letter, axis.lanes, problem)
            else:
                self._check_side("tile", axis.letter, axis.extent, problem)
        self._check_side("tile", problem.k, pipeline.step, problem)

    def _check_side(self, what: str, letter: str, size: int, problem: Problem) -> None:
        side = self._side(letter, problem)
        if size % side == 0:
            return
        atom = f"{self.atom.m} x {self.atom.n} x {self.atom.k}"
        raise Refusal(
            f"tensor_core can't cut {letter}={size} into pieces of {side}",
            at=dict(self.distributing)[what].span_of(letter),
            notes=(f"via={self.via} multiplies {atom} (m x n x k), and {remainder(size, side)}",),
            hint=f"{what} {letter}={max(side, size // side * side)}",
        )
