"""The rules for tiles that wgmma reads in shared memory, each with a refusal."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.base.errors import Refusal
from gemmgen.base.source import Span, indexed, remainder
from gemmgen.ir.atoms import ATOMS, AtomTraits, Via
from gemmgen.ir.boxes import SPANS, atom_width_of
from gemmgen.ir.buffers import AxisSpread, Buffer, Spread
from gemmgen.ir.fragment_layout import Side
from gemmgen.ir.intent import Intent

SIDES: tuple[Side, Side] = ("row", "column")
"""The side of the accumulators that is A's, and B's."""


def in_rounds(spread: Spread, a: Buffer) -> Spread:
    """``spread`` for what instructions read of ``a``, the tile of A: where it lies along their rows
    these are neighbours, and those of all warpgroups come before the second ones of any."""
    rows, traits = spread.axes[0], ATOMS[spread.atom]
    if a.letters[-1] != rows.letter:
        return spread
    own = rows.extent // rows.warps * traits.warps("row")
    return spread.with_axes(replace(rows, rounds=own // traits.m))


def check_tiles(
    tiles: tuple[tuple[str, Buffer], ...],
    intent: Intent,
    spread: Spread,
    via: Via,
    at: Span,
) -> None:
    """Raises ``Refusal`` if the instructions can't read ``tiles``, by the names of their tensors,
    where they lie in shared memory: of A and B; ``spread`` is that of their accumulators."""
    for (_, tile), axis, side in zip(tiles, spread.axes, SIDES, strict=True):
        if tile.letters[-1] == axis.letter:
            _check_atom_columns(tile, axis, side, ATOMS[spread.atom], via, at)
    _check_copied(tuple(tensor for tensor, _ in tiles), intent, via, at)
    plain = [tensor for tensor, _ in tiles if tensor not in intent.swizzled]
    if plain:
        *others, last = sorted(SPANS, reverse=True)
        sizes = f"{', '.join(map(str, others))} or {last}"
        raise Refusal(
            f"tensor_core via={via} reads tiles whose rows of {sizes} bytes are swizzled",
            at=at,
            notes=(f"those of {' and '.join(plain)} are not",),
            hint=f"swizzle {' '.join(plain)}",
        )


def _check_atom_columns(
    tile: Buffer, axis: AxisSpread, side: Side, traits: AtomTraits, via: Via, at: Span
) -> None:
    """Checks that a warpgroup's part of a tile that lies along m or n is whole swizzle atom
    columns, as TMA cuts them."""
    letter, extent = axis.letter, axis.extent
    own = extent // axis.warps * traits.warps(side)
    atom_width = atom_width_of(extent, tile.dtype) or extent
    lies = f"{indexed(tile.name, tile.letters)} lies along {letter}"
    if own % atom_width:
        raise Refusal(
            f"tensor_core via={via} reads whole swizzle atom columns along {letter}",
            at=at,
            notes=(
                f"{lies}: rows of {extent} are cut into atom columns of {atom_width}, and a "
                "warpgroup has "
                f"{letter}={own}: {remainder(own, atom_width)}",
            ),
            hint=f"warp_tile {letter}={max(atom_width, own // atom_width * atom_width)}",
        )


def _check_copied(tensors: tuple[str, ...], intent: Intent, via: Via, at: Span) -> None:
    """Checks that TMA writes the tiles."""
    copied = dict(intent.copied)
    others = [tensor for tensor in tensors if copied.get(tensor) != "tma"]
    if not others:
        return
    single = [tensor for tensor in others if tensor not in intent.staged]
    stages = f"add double_buffer {' '.join(single)}, then " if single else ""
    raise Refusal(
        f"tensor_core via={via} reads tiles that TMA has written",
        at=at,
        notes=(
            f"threads write those of {' and '.join(others)}, which its instructions would see "
            "after a proxy fence of each thread",
        ),
        hint=f"{stages}async_copy {' '.join(others)} via=tma",
    )
