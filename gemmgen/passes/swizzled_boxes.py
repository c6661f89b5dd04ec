"""The pattern in which TMA permutes rows (``swizzle`` beside ``via=tma``), and what it
asks of the tile, refused one by one."""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen.base.errors import Refusal
from gemmgen.base.source import Span, remainder
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.boxes import SPANS, permuted, with_type
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.buffers import Swizzle as Pattern
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.edit import contraction
from gemmgen.ir.nodes import Kernel
from gemmgen.ir.tensor_map import ALIGNMENT
from gemmgen.passes.base import tile_with
from gemmgen.schedule.model import Operand


def tma_tile(
    kernel: Kernel,
    tile: Buffer,
    dtype: DType,
    operand: Operand,
    given: Mapping[str, tuple[int, Span]],
) -> Buffer:
    """``tile`` with its rows as TMA permutes them, in atom columns if they are too long.

    ``dtype`` is that of the operand; a slice of the output may have a wider temporary's, before an
    epilogue is fused.  Raises ``Refusal`` if TMA can't permute such rows, or if an argument
    that is ``given``, with its span, is another.
    """
    own = with_type(tile, dtype)
    _check_rows(kernel, own, operand, given)
    contract = contraction(kernel)
    if contract.into and ATOMS[contract.atom].in_place and tile.name in (contract.a, contract.b):
        _check_rows(kernel, with_type(tile, contract.into), operand, {})  # as it will be in parts
    found = permuted(tile)
    assert found is not None, f"rows of {dtype} can be permuted, those of {tile.dtype} cannot"
    return found


def _check_rows(
    kernel: Kernel, tile: Buffer, operand: Operand, given: Mapping[str, tuple[int, Span]]
) -> None:
    tensor, letter, size = operand.tensor, tile.letters[-1], BYTES[tile.dtype]
    columns = tile.extent(letter)
    row = f"a row of {tile.name} has {columns} x {size} = {columns * size} bytes along {letter}"
    found = permuted(tile)
    if found is None:
        least = min(SPANS)
        longer = -(-columns * size // least) * least // size
        raise Refusal(
            f"swizzle {tensor}: TMA swizzles rows of {_listed(SPANS)} bytes",
            at=operand.span,
            notes=(f"{row}, and {remainder(columns * size, least)}",),
            hint=f"{tile_with(kernel, letter, longer)}, or remove the line",
        )
    pattern = found.swizzle
    assert pattern is not None
    for name, (value, at) in given.items():
        own = getattr(pattern, name)
        if value != own:
            cut = f" in atom columns of {found.atom_width * size}" if found.atom_width else ""
            raise Refusal(
                f"swizzle {tensor} {name}={value}: TMA has {name}={own} for these rows",
                at=at,
                notes=(f"{row}{cut}", _spelled(pattern, size)),
                hint=f"{name}={own}, or leave {name} out",
            )


def _listed(sizes: tuple[int, ...]) -> str:
    *others, last = map(str, sorted(sizes, reverse=True))
    return f"{', '.join(others)} or {last}"


def _spelled(pattern: Pattern, size: int) -> str:
    """The permutation of TMA for chunk c of row r, in words."""
    number = "r" if pattern.every == 1 else f"r / {pattern.every}"
    chunks = f"{pattern.by} chunks of {pattern.chunk} x {size} = {ALIGNMENT} bytes"
    return f"of {chunks}, chunk c of row r is stored at c ^ ({number} % {pattern.by})"
