"""warp_tile: give each warp its own sub-tile of the block's tile.

The warp's 32 threads then share few rows and few columns, so that a warp's read of a fragment
touches few distinct shared-memory words.  With ``register_block`` the threads of a warp must fill
it: (m / reg.m) * (n / reg.n) = 32.

    register acc[m=64, n=64] f32 spread m=1x1x64x1 n=1x1x64x1 x=n
==> warp_tile m=32 n=16
    register acc[m=64, n=64] f32 spread m=2x1x32x1 n=4x1x16x1 x=n   # warp_tile m=32 n=16
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from gemmgen.errors import Refusal
from gemmgen.ir.edit import edit_buffer, edit_main
from gemmgen.ir.nodes import AxisSpread, Buffer, Program
from gemmgen.passes.base import Said
from gemmgen.schedule.model import Schedule
from gemmgen.schedule.roles import roles
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec


@dataclass(frozen=True)
class WarpTile:
    SPEC: ClassVar = DirectiveSpec(
        "warp_tile",
        arguments=(
            ArgumentSpec("<m>", required=True, maximum=1024),
            ArgumentSpec("<n>", required=True, maximum=1024),
        ),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile",)

    sizes: tuple[tuple[str, int], ...]
    registers: tuple[tuple[str, int], ...] | None
    """The micro-tile of ``register_block``, without which 32 threads can't fill a warp's tile."""
    said: Said = field(compare=False)

    @staticmethod
    def read(said: Said, schedule: Schedule) -> WarpTile:
        letters = roles(schedule.gemm)[:2]
        sizes = tuple((letter, said.integer(letter) or 1) for letter in letters)
        block = Said.of(schedule, "register_block")
        registers = block and tuple((letter, block.integer(letter) or 1) for letter in letters)
        return WarpTile(sizes, registers, said)

    def apply(self, program: Program) -> Program:
        self._check_registers()

        def deal(acc: Buffer) -> Buffer:
            assert acc.spread is not None
            axes = tuple(self._axis(acc.spread.axis(letter), size) for letter, size in self.sizes)
            spread = acc.spread.with_axes(*axes)
            return replace(acc, spread=spread, origins=(*acc.origins, self.said.origin))

        return edit_main(program, lambda kernel: edit_buffer(kernel, "acc", deal))

    def _axis(self, axis: AxisSpread, size: int) -> AxisSpread:
        if axis.extent % size:
            raise Refusal(
                f"warp_tile {axis.letter}={size} does not divide the tile",
                at=self.said.place(axis.letter),
                notes=(f"{axis.extent} % {size} = {axis.extent % size}",),
                hint=f"a divisor of {axis.extent}, such as {axis.letter}="
                + " or ".join(str(d) for d in (16, 32, 64, 128) if axis.extent % d == 0),
            )
        return replace(axis, warps=axis.extent // size, lanes=size)

    def _check_registers(self) -> None:
        (m, rows), (n, columns) = self.sizes
        if self.registers is None:
            raise Refusal(
                "warp_tile needs register_block: 32 threads must fill a warp's tile",
                at=self.said.span,
                notes=(f"{rows} x {columns} = {rows * columns} elements for 32 threads",),
                hint="add a register_block, such as register_block "
                f"{m}={max(1, rows // 8)} {n}={max(1, columns // 4)}",
            )
        (_, reg_m), (_, reg_n) = self.registers
        threads = (rows * columns) / (reg_m * reg_n)
        if threads != 32:
            raise Refusal(
                f"a warp of 32 threads does not fill warp_tile {m}={rows} {n}={columns}",
                at=self.said.span,
                notes=(
                    f"{rows} x {columns} elements, {reg_m} x {reg_n} a thread "
                    f"(register_block): {threads:g} threads",
                ),
                hint=f"a warp_tile of {32 * reg_m * reg_n} elements, such as "
                f"{m}={8 * reg_m} {n}={4 * reg_n}",
            )
