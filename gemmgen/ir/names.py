"""The names that emitted text uses: one letter in front says what a constant sizes.

``BM`` is the block's tile along m, ``WM`` a warp's, ``TM`` a thread's (the micro-tile), ``PM`` the
neighbours in one piece of it, ``LM`` the threads (lanes) along m.  On tensor cores ``IM`` is what
one instruction multiplies, and ``FM`` counts a warp's fragments.
"""

from __future__ import annotations

from gemmgen.ir.expr import Var
from gemmgen.ir.parameters import ld_name

__all__ = [
    "block",
    "copy_tile",
    "fragments",
    "instruction",
    "lanes",
    "ld_name",
    "load",
    "pad",
    "piece",
    "registers",
    "round_origin",
    "start",
    "stop",
    "thread_origin",
    "tile_origin",
    "warp",
    "warp_origin",
]


def block(letter: str) -> Var:
    """Extent of the block's tile: ``BM``."""
    return Var("B" + letter.upper())


def warp(letter: str) -> Var:
    """Extent of a warp's tile: ``WM``."""
    return Var("W" + letter.upper())


def registers(letter: str) -> Var:
    """Extent of a thread's micro-tile: ``TM``."""
    return Var("T" + letter.upper())


def piece(letter: str) -> Var:
    """Neighbours in one piece of the micro-tile: ``PM``."""
    return Var("P" + letter.upper())


def lanes(letter: str) -> Var:
    """Threads along the letter, of the warp or else of the block: ``LM``."""
    return Var("L" + letter.upper())


def instruction(letter: str) -> Var:
    """Extent of what one tensor-core instruction multiplies: ``IM``."""
    return Var("I" + letter.upper())


def fragments(letter: str) -> Var:
    """A warp's fragments along the letter: ``FM``."""
    return Var("F" + letter.upper())


def pad(tile: str) -> Var:
    """Elements at the end of each row of a shared tile: ``A_PAD`` of ``A_shared``."""
    return Var(f"{tile.removesuffix('_shared')}_PAD")


def load(tensor: str) -> str:
    """The function that loads vectors of a tensor: ``load_A``."""
    return f"load{'' if tensor.startswith('_') else '_'}{tensor}"


def copy_tile(tensor: str) -> str:
    """The function that begins to copy a tile of a tensor: ``copy_A_tile``."""
    return f"copy{'' if tensor.startswith('_') else '_'}{tensor}_tile"


def tile_origin(letter: str) -> Var:
    """First index of the current tile: ``tile_m``, ``tile_k``."""
    return Var(f"tile_{letter}")


def round_origin(letter: str) -> Var:
    """First index of the current round, the tiles of one iteration of an unrolled loop:
    ``round_k``."""
    return Var(f"round_{letter}")


def start(letter: str) -> Var:
    """First index of a part's range: ``start_k``."""
    return Var(f"start_{letter}")


def stop(letter: str) -> Var:
    """The index after a part's range: ``stop_k``."""
    return Var(f"stop_{letter}")


def thread_origin(letter: str) -> Var:
    """A thread's first element within the block's tile: ``thread_m``."""
    return Var(f"thread_{letter}")


def warp_origin(letter: str) -> Var:
    """A warp's first element within the block's tile: ``warp_m``."""
    return Var(f"warp_{letter}")
