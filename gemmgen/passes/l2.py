"""l2: the eviction priority of copied tiles in the L2 cache.

``evict=last`` is for an operand that other blocks will read soon, ``evict=first`` for one that no
block reads again, so that it displaces nothing else.  A hint changes no result and no access.  It
is an operand of asynchronous copies (``async_copy``, sm_80 on), both of cp.async and of TMA.
``evict=normal`` equals the directive's absence.

    copy A_shared = A mode=cp_async
==> l2 A evict=last
    copy A_shared = A mode=cp_async evict=last   # l2 A evict=last
"""

from __future__ import annotations

from dataclasses import field
from functools import reduce
from typing import ClassVar, cast, get_args

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.ir.edit import changed_by, copies, edit_main, edit_operations, tile_of
from gemmgen.ir.nodes import Contract, Copy, Eviction, Kernel, Program
from gemmgen.ir.target import SINCE, has
from gemmgen.passes.base import OperandArgument, Stated, shared_tile
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere


@record
class Hint:
    """A statement for one operand."""

    fact: OperandArgument
    evict: Eviction


@record
class L2:
    SPEC: ClassVar = DirectiveSpec(
        "l2",
        example="l2 A evict=last",
        operands=("a", "b"),
        arguments=(
            ArgumentSpec(
                "evict", "word", choices=get_args(Eviction), required=True, identity="normal"
            ),
        ),
        elsewhere=Elsewhere(
            "Triton eviction_policy, CUTLASS TMA::CacheHintSm90",
            "eviction_policy cache_hint cachehintsm90 cache_policy evict_first evict_last",
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = (
        *("tile", "cache_shared", "vectorize", "double_buffer", "async_copy"),
    )

    hints: tuple[Hint, ...]
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> L2:
        hints = (
            Hint(fact, cast(Eviction, own.word("evict")))
            for own in (Stated((statement,)) for statement in stated.statements)
            for fact in own.facts("none")
        )
        return L2(tuple(hints), stated)

    def apply(self, program: Program) -> Program:
        if not has(program.target, SINCE["cp_async"]):
            raise Refusal(
                f"{program.target} has no copies with hints for L2",
                at=self.stated.span,
                hint="target sm_80 or later, or leave l2 out",
            )
        return edit_main(program, lambda kernel: reduce(_hinted, self.hints, kernel))


def _hinted(kernel: Kernel, hint: Hint) -> Kernel:
    tensor, operand = hint.fact.tensor, hint.fact.operand
    tile = shared_tile(kernel, "l2", operand, f"add cache_shared {tensor}")
    (copy,) = (copy for copy in copies(kernel) if copy.dst == tile.name)
    if copy.mode == "registers":
        every = " ".join(c.src for c in copies(kernel) if tile_of(kernel, c.src))
        asynchronous = f"async_copy {every} via=cp_async"
        raise Refusal(
            f"l2 {tensor}: {tensor} is copied through registers, by loads without a hint",
            at=operand.span,
            notes=("a hint for L2 is an operand of an asynchronous copy",),
            hint=f"add {asynchronous if tile.stages > 1 else f'double_buffer {every}'}",
        )

    def change(operation: Copy | Contract) -> Copy | Contract:
        if operation != copy:
            return operation
        return changed_by(hint.fact.origin, copy, evict=hint.evict)

    return edit_operations(kernel, change)
