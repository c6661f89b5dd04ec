"""warp_tile: give each warp its own sub-tile of the block's tile.

The warp's 32 threads then share few rows and few columns, so that a warp's read of a fragment
accesses few distinct words of shared memory.  With ``register_block`` the threads of a warp must
fill it: (m / reg.m) * (n / reg.n) = 32.  With ``tensor_core`` the warp owns it as a whole.

    accumulator acc[m=16, n=16] f32 spread [m=1x1x16x1, n=1x1x16x1] x=n
==> warp_tile m=8 n=8
    accumulator acc[m=16, n=16] f32 spread [m=2x1x8x1, n=2x1x8x1] x=n by_warp   # warp_tile m=8 n=8
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar

from gemmgen.base.errors import Refusal
from gemmgen.base.record import record
from gemmgen.base.source import remainder
from gemmgen.base.units import numeral
from gemmgen.ir.buffers import AxisSpread, Buffer
from gemmgen.ir.edit import changed_by, edit_buffer, edit_main
from gemmgen.ir.nodes import Program
from gemmgen.passes.base import Stated
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.roles import roles
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Elsewhere

LANES = ((8, 4), (4, 8), (16, 2), (2, 16), (32, 1), (1, 32))
"""The arrangements of a warp's threads, the squarest first."""
SHARES = ((1,), (2,), (4,), (8,), (16,), (32, 48, 64))
"""For the fuzzer: lanes along a letter, or elements if there is no micro-tile."""


@record
class WarpTile:
    SPEC: ClassVar = DirectiveSpec(
        "warp_tile",
        example="warp_tile m=64 n=32",
        sizes=True,
        arguments=(
            *(
                ArgumentSpec(x, required=True, maximum=1024, fuzz=SHARES, times=("register_block",))
                for x in ("<m>", "<n>")
            ),
        ),
        elsewhere=Elsewhere("CUTLASS warp tile", "warptile warp_shape warps num_warps warp"),
    )
    AFTER: ClassVar[tuple[str, ...]] = ("tile",)

    sizes: tuple[tuple[str, int], ...]
    stated: Stated = field(compare=False)

    @staticmethod
    def read(stated: Stated, gemm: Gemm) -> WarpTile:
        return WarpTile(stated.sizes(roles(gemm)[:2]), stated)

    def apply(self, program: Program) -> Program:
        tile = {a.letter: a.extent for a in program.main.spread.axes}
        micro_tile = dict(program.intent.micro_tile)
        if program.intent.via is None:  # else a warp's lanes own its tile together
            self._check_registers(tile, micro_tile)

        def distribute(acc: Buffer) -> Buffer:
            assert acc.spread is not None
            sides = ((acc.spread.axis(letter), size) for letter, size in self.sizes)
            axes = (self._axis(axis, size, tile, micro_tile) for axis, size in sides)
            spread = replace(acc.spread.with_axes(*axes), by_warp=True)
            return changed_by(self.stated.origin, acc, spread=spread)

        return edit_main(program, lambda kernel: edit_buffer(kernel, "acc", distribute))

    def _axis(
        self, axis: AxisSpread, size: int, tile: dict[str, int], micro_tile: dict[str, int]
    ) -> AxisSpread:
        if axis.extent % size:
            raise Refusal(
                f"warp_tile {axis.letter}={size} does not divide the tile",
                at=self.stated.span_of(axis.letter),
                notes=(
                    f"the tile has {axis.letter}={axis.extent}, and "
                    + remainder(axis.extent, size),
                ),
                hint=self._dividing(axis, size, tile, micro_tile),
            )
        return replace(axis, warps=axis.extent // size, lanes=size)

    def _dividing(
        self, axis: AxisSpread, size: int, tile: dict[str, int], micro_tile: dict[str, int]
    ) -> str:
        if micro_tile:
            return self._fitting(tile, micro_tile)
        whole = -(-axis.extent // size) * size
        sizes = (d for d in range(min(size, axis.extent), 0, -1) if axis.extent % d == 0)
        fitting = next((d for d in sizes if d % 16 == 0), None)
        longer = f"tile {axis.letter}={whole}"
        return f"{axis.letter}={fitting}, or {longer}" if fitting else longer

    def _check_registers(self, tile: dict[str, int], micro_tile: dict[str, int]) -> None:
        (m, rows), (n, columns) = self.sizes
        if not micro_tile:
            shares = (
                {m: rows // a, n: columns // b} for a, b in LANES if not rows % a + columns % b
            )
            share = next(shares, None)
            hint = "a warp_tile of more elements, with a register_block"
            if share:
                hint = f"add register_block {m}={share[m]} {n}={share[n]}"
            raise Refusal(
                "warp_tile needs register_block or tensor_core: 32 threads must fill a warp's tile",
                at=self.stated.span,
                notes=(f"{rows} x {columns} = {rows * columns} elements for 32 threads",),
                hint=hint,
            )
        reg_m, reg_n = micro_tile[m], micro_tile[n]
        threads = (rows * columns) / (reg_m * reg_n)
        if threads != 32:
            raise Refusal(
                f"a warp of 32 threads does not fill warp_tile {m}={rows} {n}={columns}",
                at=self.stated.span,
                notes=(
                    f"{rows} x {columns} elements, {reg_m} x {reg_n} a thread "
                    f"(register_block): {numeral(threads)} threads",
                ),
                hint=self._fitting(tile, micro_tile),
            )

    def _fitting(self, tile: dict[str, int], registers: dict[str, int]) -> str:
        """The warp tiles that 32 threads fill and that divide ``tile``, or a tile for one."""
        (m, _), (n, _) = self.sizes
        a, b = registers[m], registers[n]
        for lanes_m, lanes_n in LANES:
            if not tile[m] % (a * lanes_m) + tile[n] % (b * lanes_n):
                return f"warp_tile {m}={a * lanes_m} {n}={b * lanes_n}: 32 threads of {a} x {b}"
        sizes = dict(self.sizes)
        if sizes[m] % a + sizes[n] % b or sizes[m] * sizes[n] != 32 * a * b:
            sizes = {m: 8 * a, n: 4 * b}
        rows, columns = (-(-tile[x] // sizes[x]) * sizes[x] for x in (m, n))
        return (
            f"no warp of 32 threads of {a} x {b} divides this tile; tile {m}={rows} {n}={columns} "
            f"with warp_tile {m}={sizes[m]} {n}={sizes[n]} does"
        )
